//! It starved, and no rule says why.

use super::{capital, got, waited};
use crate::Cure;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::list;

/// So many of those who ran instead are named.
const MOST_NAMED: usize = 3;

const CURES: &[Cure] = &[
    Cure::new(
        "look at the picture and the trace around its longest wait",
        "nothing",
    ),
    Cure::new(
        "try another scheduler, to see whether it is this one's fault",
        "another scheduler for all tasks meanwhile",
    ),
];

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    if !case.starves {
        return None;
    }
    let mut who = case.names_beside(|_| true);
    who.truncate(MOST_NAMED);
    let beside = list(&who, MOST_NAMED);
    Some(Finding {
        cause: String::new(),
        says: format!("{} beside {beside}", waited(case)),
        because: format!(
            "{}, and it waited at no time for a reason that is known here. {}.",
            capital(&got(case)),
            capital(&case.had("they", |id| who.contains(&case.facts.name(id))))
        ),
        cures: CURES.to_vec(),
    })
}
