//! Its own slice is too long for somebody who is woken often, or it is of SCHED_BATCH.
//!
//! A deadline is as far away as the slice is long. Whoever asks for long slices, so as to be left
//! alone while it computes, goes after all others when it is woken; wakeups of SCHED_BATCH preempt
//! nobody at all.

use warmq_trace::Policy;
use warmq_units::Duration;

use super::late_or_waited;
use super::latency::{preferred, uses_its_share};
use crate::Cure;
use crate::case::Case;
use crate::cure::SLICES;
use crate::preference::Preference;
use crate::verdict::Finding;
use crate::words::{list, span};

/// Three times the longest slice that a kernel gives by itself.
const LONG: Duration = Duration::from_ms(9);

const SHORTER: Cure = Cure::new(
    "let it ask for a shorter slice, or for the kernel's own, 0 (`chrt --sched-runtime`, \
     sched_setattr(2))",
    "it is switched more often while it computes",
)
.on(SLICES);
const OTHER: Cure = Cure::new(
    "give it SCHED_OTHER (`chrt --other 0`)",
    "its wakeups take CPUs from others, with a switch each",
);

pub(super) fn find(case: &Case<'_, '_>) -> Option<Finding> {
    case.late?;
    let (facts, preference) = (case.facts, preferred(case));
    let who = &facts.task(case.id).who;
    let (what, cure) = match preference {
        Preference::OwnPolicy if who.policy() == Policy::Batch => {
            ("it is of SCHED_BATCH".to_owned(), OTHER)
        }
        Preference::Slice if who.slice >= LONG => (
            format!("it asks for slices of {}", span(who.slice)),
            SHORTER,
        ),
        _ => return None,
    };
    if case.starves || uses_its_share(case) {
        return None;
    }
    let is = |id| facts.preference(id, case.id) == preference;
    let names = list(&case.names_beside(is), 3);
    Some(Finding {
        cause: what.clone(),
        says: format!("{}: {what}", late_or_waited(case)),
        because: format!(
            "{}. Their deadlines at its wakeups are earlier, or it may not preempt them.",
            case.had(&names, is)
        ),
        cures: vec![cure],
    })
}
