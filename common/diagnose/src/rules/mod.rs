//! The rules, from the most specific to the most general. Of those that fit a task the first one
//! speaks:
//!
//! 1. [`Kind::Quota`] and 2. [`Kind::Reservation`]: whoever may not run waits for no CPU, whatever
//!    else is the matter.
//! 3. [`Kind::Realtime`] and 4. [`Kind::Interrupts`]: these are served before any fair task, so
//!    that no scheduler of fair tasks could have done better.
//! 5. [`Kind::Affinity`] and 6. [`Kind::IdleBeside`]: there was a CPU, and who ran instead matters
//!    less than why that one was not used.
//! 7. [`Kind::GroupStarved`] and 8. [`Kind::SleeperPreempts`]: faults of schedulers, the one
//!    between groups before the one within a group, whose signs it has as well.
//! 9. [`Kind::LeastWeight`] and 10. [`Kind::TooMany`]: it got what it was due, which is little.
//! 11. [`Kind::Unexplained`]: it got less than it was due, and none of these fits.

mod affinity;
mod group_starved;
mod idle_beside;
mod interrupts;
mod least_weight;
mod quota;
mod realtime;
mod reservation;
mod sleeper_preempts;
mod too_many;
mod unexplained;

use crate::Kind;
use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{share, span};

/// Whether a rule fits a task, and what it says then.
pub(crate) type Rule = fn(&Case<'_, '_>) -> Option<Finding>;

/// All rules in their order.
pub(crate) const RULES: &[(Kind, Rule)] = &[
    (Kind::Quota, quota::find),
    (Kind::Reservation, reservation::find),
    (Kind::Realtime, realtime::find),
    (Kind::Interrupts, interrupts::find),
    (Kind::Affinity, affinity::find),
    (Kind::IdleBeside, idle_beside::find),
    (Kind::GroupStarved, group_starved::find),
    (Kind::SleeperPreempts, sleeper_preempts::find),
    (Kind::LeastWeight, least_weight::find),
    (Kind::TooMany, too_many::find),
    (Kind::Unexplained, unexplained::find),
];

/// The first rule that fits.
pub(crate) fn first(case: &Case<'_, '_>) -> Option<(Kind, Finding)> {
    RULES
        .iter()
        .find_map(|(kind, find)| Some((*kind, find(case)?)))
}

/// `hog waited 4.02 s of 4.50 s`.
fn waited(case: &Case<'_, '_>) -> String {
    let (name, waited) = (case.name(), span(case.tally.waited));
    format!("{name} waited {waited} of {}", span(case.wanted))
}

/// `it got 11 % of what it wanted, and 66 % were due`.
fn got(case: &Case<'_, '_>) -> String {
    format!(
        "it got {} of the time that it wanted, and about {} were due",
        share(case.got()),
        share(case.was_due())
    )
}

fn owned(cures: &[&str]) -> Vec<String> {
    cures.iter().map(|cure| (*cure).to_owned()).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
