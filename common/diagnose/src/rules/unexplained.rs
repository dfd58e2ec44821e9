//! It starved, and no rule says why.

use super::{got, owned, waited};
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{list, share};

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    if !case.starves {
        return None;
    }
    let who = list(&case.names_beside(|_| true), 3);
    Some(Finding {
        cause: String::new(),
        says: format!("{} beside {who}", waited(case)),
        because: format!(
            "{}, and it waited at no time for a reason that is known here; they had {} of the CPU \
             meanwhile.",
            capital(&got(case)),
            share(case.share_beside(|_| true))
        ),
        cures: owned(&[
            "look at the picture and the trace around its longest wait",
            "try another scheduler, to see whether it is this one's fault",
        ]),
    })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
