//! The statistics that scx's own tools ask schedulers for (scx_stats): a socket at
//! /var/run/scx/root/stats, and descriptions of what it answers.

use std::collections::BTreeMap;

use scx_stats::prelude::{StatsOpener, StatsOps, StatsReader, StatsServer, StatsServerData};
use scx_stats::{Meta, ToJson};
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

use super::{Group, Interval, Look};
use crate::say;
use crate::state::State;

/// What a running scheduler did since the same tool asked last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(desc = "scx_warmq since the last request", _om_prefix = "warmq_", top)]
pub struct Metrics {
    #[stat(desc = "Seconds since the last request")]
    pub seconds: f64,
    #[stat(desc = "Tasks that woke")]
    pub wakeups: u64,
    #[stat(desc = "Wakeups that found the previous CPU idle")]
    pub idle_previous: u64,
    #[stat(desc = "Wakeups that found a CPU of the same core idle")]
    pub idle_core: u64,
    #[stat(desc = "Wakeups that found a CPU under the same cache idle")]
    pub idle_domain: u64,
    #[stat(desc = "Wakeups that found a CPU elsewhere idle")]
    pub idle_elsewhere: u64,
    #[stat(desc = "Wakeups that preempted the running task")]
    pub preemptions: u64,
    #[stat(desc = "Wakeups that did not, as the deadline was too close")]
    pub refused_too_close: u64,
    #[stat(desc = "Wakeups that did not, so soon after another preemption of the CPU")]
    pub refused_too_soon: u64,
    #[stat(desc = "Wakeups that did not, after too short a sleep")]
    pub refused_short_sleep: u64,
    #[stat(desc = "Groups that got another home")]
    pub group_moves: u64,
    #[stat(desc = "Tasks that were taken off their group's home")]
    pub group_splits: u64,
    #[stat(desc = "Tasks without a group that went under another cache")]
    pub unmanaged_moves: u64,
    #[stat(desc = "Tasks that left a core that they shared for a better one")]
    pub core_moves: u64,
    #[stat(desc = "Fragments and labels that found no room for a group")]
    pub groups_refused: u64,
    #[stat(desc = "CPUs used by groups at home")]
    pub cpus_at_home: f64,
    #[stat(desc = "CPUs used by groups elsewhere")]
    pub cpus_away: f64,
    #[stat(desc = "CPUs used by tasks without a group")]
    pub cpus_unmanaged: f64,
    #[stat(desc = "Half of the waits for a CPU were below, in ns")]
    pub wait_p50_ns: u64,
    #[stat(desc = "99 percent of the waits were below, in ns")]
    pub wait_p99_ns: u64,
    #[stat(desc = "99.9 percent of the waits were below, in ns")]
    pub wait_p999_ns: u64,
    #[stat(desc = "The longest wait since the scheduler was started, in ns")]
    pub longest_wait_ns: u64,
    #[stat(desc = "Waits over the bound that is promised")]
    pub waits_over_bound: u64,
    #[stat(desc = "Groups with members, by their slot", _om_label = "group")]
    pub groups: BTreeMap<u64, GroupMetrics>,
}

/// What a group did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(desc = "The tasks of a fragment", _om_prefix = "group_")]
pub struct GroupMetrics {
    #[stat(desc = "Why they are together: named, inferred, memory, cgroup, process")]
    pub origin: String,
    #[stat(desc = "Its process; 0: of several")]
    pub pid: u64,
    #[stat(desc = "The app that was named")]
    pub app: u64,
    #[stat(desc = "The fragment that was named")]
    pub fragment: u64,
    #[stat(desc = "Where it lives")]
    pub home: u64,
    #[stat(desc = "Its tasks, asleep or not")]
    pub members: u64,
    #[stat(desc = "CPUs that they used")]
    pub cpus: f64,
    #[stat(desc = "99 percent of their waits were below, in ns")]
    pub wait_p99_ns: u64,
}

impl Metrics {
    fn of(interval: &Interval<'_>) -> Metrics {
        let grown = |counter| interval.grown(counter);
        let cpus = |counter| per_second(interval.grown(counter), interval.seconds);
        let waits = interval.waits();
        let below = |part| waits.quantile(part).unwrap_or(0);
        let groups = interval.now.groups.iter();
        let groups = groups.filter(|group| group.members > 0);
        Metrics {
            seconds: interval.seconds,
            wakeups: grown("wakeups"),
            idle_previous: grown("idle_previous"),
            idle_core: grown("idle_core"),
            idle_domain: grown("idle_domain"),
            idle_elsewhere: grown("idle_elsewhere"),
            preemptions: grown("granted"),
            refused_too_close: grown("too_close"),
            refused_too_soon: grown("too_soon"),
            refused_short_sleep: grown("short_sleep"),
            group_moves: grown("group_moves"),
            group_splits: grown("group_splits"),
            unmanaged_moves: grown("unmanaged_moves"),
            core_moves: grown("core_moves"),
            groups_refused: grown("groups_refused"),
            cpus_at_home: cpus("ran_home_ns"),
            cpus_away: cpus("ran_away_ns"),
            cpus_unmanaged: cpus("ran_unmanaged_ns"),
            wait_p50_ns: below(0.5),
            wait_p99_ns: below(0.99),
            wait_p999_ns: below(0.999),
            longest_wait_ns: interval.now.counters.get("longest_wait_ns"),
            waits_over_bound: grown("over_bound"),
            groups: groups
                .map(|group| (group.slot as u64, GroupMetrics::of(interval, group)))
                .collect(),
        }
    }
}

impl GroupMetrics {
    fn of(interval: &Interval<'_>, group: &Group) -> GroupMetrics {
        let ran = interval.group_grown(group, |group| group.ran_home_ns + group.ran_away_ns);
        let number = |number: Option<u32>| number.map_or(0, u64::from);
        GroupMetrics {
            origin: group.origin.name().to_owned(),
            pid: number(group.tgid),
            app: number(group.app),
            fragment: number(group.fragment),
            home: group.home.into(),
            members: group.members,
            cpus: per_second(ran, interval.seconds),
            wait_p99_ns: interval.group_waits(group).quantile(0.99).unwrap_or(0),
        }
    }
}

fn per_second(ns: u64, seconds: f64) -> f64 {
    ns as f64 / 1e9 / seconds.max(1e-9)
}

/// At the scheduler of this process.
fn look() -> anyhow::Result<Look> {
    Ok(Look::at(&State::read()?))
}

/// What the socket answers. Each connection has its own intervals.
fn data() -> StatsServerData<(), ()> {
    let open: Box<dyn StatsOpener<(), ()>> = Box::new(|_| {
        let mut before = look()?;
        let read: Box<dyn StatsReader<(), ()>> = Box::new(move |_, _| {
            let now = look()?;
            let answer = Metrics::of(&now.since(&before)).to_json();
            before = now;
            answer
        });
        Ok(read)
    });
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_meta(GroupMetrics::meta())
        .add_ops("top", StatsOps { open, close: None })
}

/// Answers at the socket until this is dropped. Where there can be none, the scheduler does
/// without.
pub fn serve() -> Option<StatsServer<(), ()>> {
    match StatsServer::new(data()).launch() {
        Ok(server) => Some(server),
        Err(error) => {
            say::error(&format!(
                "scx_warmq: warning: no statistics for the tools of scx: {error:#}"
            ));
            None
        }
    }
}

/// `--help-stats`: what each number means.
pub fn describe() -> anyhow::Result<()> {
    let mut text = Vec::new();
    data().describe_meta(&mut text, None)?;
    say::put(&String::from_utf8_lossy(&text))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Statistics;
    use super::super::sample::state;
    use super::*;

    #[test]
    fn each_number_is_described() {
        let mut text = Vec::new();
        data()
            .describe_meta(&mut text, None)
            .expect("the descriptions fit each other");
        insta::assert_snapshot!(String::from_utf8_lossy(&text));
    }

    #[test]
    fn an_answer_is_of_the_time_since_the_last_one() {
        let look = |age| Statistics::of(&state(age, false));
        let interval = Interval {
            before: &look(1),
            now: &look(3),
            seconds: 2.0,
        };
        let answer = Metrics::of(&interval).to_json().expect("numbers and text");
        insta::assert_snapshot!(format!("{answer:#}"));
    }
}
