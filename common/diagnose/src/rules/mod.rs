//! The rules, from the most specific to the most general. Of those that fit a task the first one
//! speaks:
//!
//! - [`Kind::QuotaStranded`], [`Kind::Quota`], [`Kind::Reservation`]: whoever may not run waits for
//!   no CPU, whatever else is the matter.
//! - [`Kind::Steal`], [`Kind::Realtime`], [`Kind::Interrupts`]: these come before any fair task, so
//!   that no scheduler of fair tasks could have done better.
//! - [`Kind::Affinity`], [`Kind::IdleBeside`]: there was a CPU, and who ran instead matters less
//!   than why that one was not used.
//! - [`Kind::GroupStarved`], [`Kind::SleeperPreempts`]: faults of schedulers, the one between
//!   groups before the one within a group, whose signs it has as well.
//! - [`Kind::Outweighed`], [`Kind::NiceWithoutEffect`]: it got what it was due, by settings that
//!   may not mean that.
//! - [`Kind::LeastWeight`], [`Kind::TooMany`]: it got what it was due, which is little.
//! - [`Kind::SlicesLong`], [`Kind::SlicesShort`], [`Kind::Latency`]: it got what it was due, and
//!   later than it needs it, or in small pieces.
//! - [`Kind::Moves`]: it got that on CPUs under changing caches.
//! - [`Kind::Unexplained`]: it got less than it was due, and none of these fits.

mod affinity;
mod group_starved;
mod idle_beside;
mod interrupts;
mod latency;
mod least_weight;
mod moves;
mod nice_without_effect;
mod outweighed;
mod quota;
mod quota_stranded;
mod realtime;
mod reservation;
mod sleeper_preempts;
mod slices_long;
mod slices_short;
mod steal;
mod too_many;
mod unexplained;

use std::collections::BTreeSet;

use crate::case::Case;
use crate::verdict::Finding;
use crate::words::{count, share, span};
use crate::{Kind, Need};

/// A rule: what it says of a task, if it fits.
pub(crate) struct Rule {
    pub kind: Kind,
    /// Whom it can say something of.
    asks: Asks,
    find: fn(&Case<'_, '_>) -> Option<Finding>,
    /// Without these it would guess.
    pub needs: &'static [Need],
    /// The kernels of which it is true.
    pub kernels: &'static str,
}

/// Of whom a rule can say something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    /// Who wanted a CPU for a good part of the time.
    Wanting,
    /// The same, where being held back by a quota counts, and waits that are not certain: so it
    /// looks in recordings.
    Held,
    /// Who is woken often and waits for longer than it runs.
    Late,
    /// Both.
    Either,
    /// Who moves often between caches.
    Moving,
}

const fn rule(
    kind: Kind,
    asks: Asks,
    find: fn(&Case<'_, '_>) -> Option<Finding>,
    needs: &'static [Need],
    kernels: &'static str,
) -> Rule {
    Rule {
        kind,
        asks,
        find,
        needs,
        kernels,
    }
}

use self::Asks::{Either, Held, Late, Moving, Wanting};
use Need::{
    Affinities, Caches, Contexts, GroupWeights, Groups, Interrupts, Policies, Quotas, Steal,
    Switches, Wakeups, Weights,
};

/// What is true of all kernels.
pub const ALL_KERNELS: &str = "all";

/// All rules in their order.
#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    rule(Kind::QuotaStranded, Held, quota_stranded::find, &[Switches, Groups, Quotas],
        "all that have quotas (Linux 3.2 and later)"),
    rule(Kind::Quota, Held, quota::find, &[Switches, Groups, Quotas],
        "all that have quotas (Linux 3.2 and later)"),
    rule(Kind::Reservation, Wanting, reservation::find, &[Switches, Wakeups, Policies],
        "all that have SCHED_DEADLINE (Linux 3.14 and later)"),
    rule(Kind::Steal, Wanting, steal::find, &[Switches, Steal], ALL_KERNELS),
    rule(Kind::Realtime, Wanting, realtime::find, &[Switches, Wakeups, Policies], ALL_KERNELS),
    rule(Kind::Interrupts, Wanting, interrupts::find, &[Switches, Interrupts], ALL_KERNELS),
    rule(Kind::Affinity, Wanting, affinity::find, &[Switches, Wakeups, Affinities], ALL_KERNELS),
    rule(Kind::IdleBeside, Wanting, idle_beside::find, &[Switches, Wakeups, Affinities], ALL_KERNELS),
    rule(Kind::GroupStarved, Wanting, group_starved::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies],
        "Linux 6.13 to 7.0, but for 6.18.45 and later ones of 6.18"),
    rule(Kind::SleeperPreempts, Wanting, sleeper_preempts::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies],
        "Linux before 6.12, and later ones without PLACE_LAG and DELAY_DEQUEUE"),
    rule(Kind::Outweighed, Either, outweighed::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies],
        "all that share by groups (Linux 2.6.24 and later)"),
    rule(Kind::NiceWithoutEffect, Either, nice_without_effect::find, &[Switches, Groups, Weights, Policies],
        "all that share by groups; of sessions Linux 2.6.38 and later"),
    rule(Kind::LeastWeight, Wanting, least_weight::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies], ALL_KERNELS),
    rule(Kind::TooMany, Wanting, too_many::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies], ALL_KERNELS),
    rule(Kind::SlicesLong, Late, slices_long::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies],
        "those that let tasks ask for slices (Linux 6.12 and later); of SCHED_BATCH all"),
    rule(Kind::SlicesShort, Wanting, slices_short::find, &[Switches, Wakeups],
        "those that let tasks ask for slices (Linux 6.12 and later)"),
    rule(Kind::Latency, Late, latency::find, &[Switches, Wakeups],
        "all; slices and deadlines are those of EEVDF (Linux 6.6 and later)"),
    rule(Kind::Moves, Moving, moves::find, &[Switches, Wakeups, Caches, Contexts], ALL_KERNELS),
    rule(Kind::Unexplained, Wanting, unexplained::find, &[Switches, Wakeups, Groups, GroupWeights, Weights, Policies], ALL_KERNELS),
];

impl Rule {
    /// Whether nothing that it needs is among `lacks`.
    fn can_say(&self, lacks: &BTreeSet<Need>) -> bool {
        self.needs.iter().all(|need| !lacks.contains(need))
    }

    fn find(&self, case: &Case<'_, '_>) -> Option<Finding> {
        let asked = match self.asks {
            Wanting => case.wants_much,
            Held => case.asks_much,
            Late => case.late.is_some(),
            Either => case.wants_much || case.late.is_some(),
            Moving => case.moves,
        };
        let says = asked && self.can_say(&case.facts.watcher.lacks);
        says.then(|| (self.find)(case)).flatten()
    }
}

/// The kernels of which verdicts of a kind are true.
pub(crate) fn kernels(kind: Kind) -> &'static str {
    let rule = RULES.iter().find(|rule| rule.kind == kind);
    rule.map_or("", |rule| rule.kernels)
}

/// The first rule that fits.
pub(crate) fn first(case: &Case<'_, '_>) -> Option<(Kind, Finding)> {
    let mut all = RULES.iter();
    all.find_map(|rule| Some((rule.kind, rule.find(case)?)))
}

/// `hog waited 4.02 s of 4.50 s`.
fn waited(case: &Case<'_, '_>) -> String {
    let (name, waited) = (case.name(), span(case.tally.waited));
    format!("{name} waited {waited} of {}", span(case.wanted))
}

/// How late it is at its wakeups, or how long it waited in all.
fn late_or_waited(case: &Case<'_, '_>) -> String {
    let Some(late) = case.late else {
        return waited(case);
    };
    format!(
        "{} is woken {} times a second, runs for {} at a time, and waits for {} at p99, {} at most",
        case.name(),
        count(late.often),
        span(late.runs),
        span(late.p99),
        span(late.longest)
    )
}

/// `it got 11 % of what it wanted, and 66 % were due`.
fn got(case: &Case<'_, '_>) -> String {
    format!(
        "it got {} of the time that it wanted, and about {} were due",
        share(case.got()),
        share(case.was_due())
    )
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_rule_which_needs_switches_and_says_for_which_kernels_it_is() {
        let kinds: BTreeSet<Kind> = RULES.iter().map(|rule| rule.kind).collect();
        assert_eq!(kinds.len(), RULES.len());
        for rule in RULES {
            assert!(rule.needs.contains(&Switches), "{:?}", rule.kind);
            assert!(!kernels(rule.kind).is_empty());
        }
    }
}
