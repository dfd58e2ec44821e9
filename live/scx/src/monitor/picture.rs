//! The monitor's picture as text: rates of an interval, places, and the groups that ran most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use warmq_decide::WEIGHT_NICE_0;
use warmq_units::{CpuId, CpuSet};

use crate::stats::{Group, Home, Interval, Statistics, Waits};
use crate::words::plural;

/// Lines that are not groups: eight of rates, the heads of both tables, and those between.
const OTHER_ROWS: usize = 13;
/// Groups that are shown in any case, however small the terminal is.
const LEAST_GROUPS: usize = 3;
/// Places that are shown when they do not all fit.
const MOST_PLACES: usize = 16;

/// The picture, of at most `rows` rows if there are few places.
pub fn draw(
    interval: &Interval<'_>,
    rows: usize,
    name_of: &dyn Fn(u32) -> Option<String>,
) -> String {
    let places = &interval.now.places;
    let shown = places.len().min(MOST_PLACES);
    let mut text = head(interval);
    text += &place_table(&places[..shown], places.len() - shown);
    let left = rows.saturating_sub(OTHER_ROWS + shown).max(LEAST_GROUPS);
    text + &group_table(interval, left, name_of)
}

fn head(interval: &Interval<'_>) -> String {
    let lines = [
        identity(interval),
        wakeups(interval),
        preemptions(interval),
        groups(interval),
        moves(interval),
        waits(interval),
        since_start(interval),
        held(interval.now),
    ];
    lines.join("\n") + "\n\n"
}

fn rate(interval: &Interval<'_>, counter: &str) -> String {
    per_second(interval.grown(counter), interval.seconds)
}

fn identity(interval: &Interval<'_>) -> String {
    let now = interval.now;
    let with_members = now.groups.iter().filter(|group| group.members > 0);
    let members: u64 = with_members.clone().map(|group| group.members).sum();
    format!(
        "scx_warmq   {}, {}, --place {}   {} with {}{}",
        plural(now.cpus.len() as u64, "CPU"),
        plural(now.domains.len() as u64, "cache domain"),
        now.settings.place,
        plural(with_members.count() as u64, "group"),
        plural(members, "member"),
        if interval.is_same() {
            ""
        } else {
            "   (restarted)"
        },
    )
}

fn wakeups(interval: &Interval<'_>) -> String {
    format!(
        "wakeups     {}; idle CPU found: {} previous, {} same core, {} same cache, {} elsewhere",
        rate(interval, "wakeups"),
        rate(interval, "idle_previous"),
        rate(interval, "idle_core"),
        rate(interval, "idle_domain"),
        rate(interval, "idle_elsewhere"),
    )
}

fn preemptions(interval: &Interval<'_>) -> String {
    format!(
        "preemption  {} granted; refused: {} deadline too close, {} too soon, {} short sleep",
        rate(interval, "granted"),
        rate(interval, "too_close"),
        rate(interval, "too_soon"),
        rate(interval, "short_sleep"),
    )
}

fn groups(interval: &Interval<'_>) -> String {
    let (home, away) = (interval.grown("ran_home_ns"), interval.grown("ran_away_ns"));
    format!(
        "groups      {} batches of {} runs; {} CPUs used, {} of that at home; {} changes of fragment",
        rate(interval, "batches"),
        ratio(interval.grown("batched_runs"), interval.grown("batches")),
        cpus(home + away, interval.seconds),
        percent(home, home + away),
        rate(interval, "changes"),
    )
}

fn moves(interval: &Interval<'_>) -> String {
    format!(
        "moves       {} groups, {} tasks split off a group, {} tasks without a group, {} to a better core, {} right after a hint",
        rate(interval, "group_moves"),
        rate(interval, "group_splits"),
        rate(interval, "unmanaged_moves"),
        rate(interval, "core_moves"),
        rate(interval, "prompt_moves"),
    )
}

fn waits(interval: &Interval<'_>) -> String {
    let waits = interval.waits();
    let below = |part| below(&waits, part);
    format!(
        "waits       half of them below {}, 99% below {}, 99.9% below {}",
        below(0.5),
        below(0.99),
        below(0.999),
    )
}

/// What that part of the waits was below; `-` if there were none.
fn below(waits: &Waits, part: f64) -> String {
    match waits.quantile(part) {
        None => "-".to_owned(),
        Some(ns @ ..1_000_000) => format!("{} us", ns / 1_000),
        Some(ns) => milliseconds(ns),
    }
}

fn since_start(interval: &Interval<'_>) -> String {
    let counters = &interval.now.counters;
    format!(
        "since start longest wait {} (bound {}), {} waits over their bound{}; {} groups refused, {} \
         slots ignored",
        milliseconds(counters.get("longest_wait_ns")),
        milliseconds(counters.get("longest_bound_ns")),
        counters.get("over_bound"),
        last_overdue(interval.now),
        counters.get("groups_refused"),
        counters.get("forged_slots"),
    )
}

/// How many holders of groups are named.
const MOST_HOLDERS: usize = 3;

/// Who has how many of the groups, those with most first.
fn held(now: &Statistics) -> String {
    let mut holders = BTreeMap::<Option<u32>, usize>::new();
    for group in &now.groups {
        *holders.entry(group.payer).or_default() += 1;
    }
    let mut holders: Vec<_> = holders.into_iter().collect();
    holders.sort_by_key(|(_, held)| Reverse(*held));
    let named = holders
        .iter()
        .take(MOST_HOLDERS)
        .map(|(payer, held)| match payer {
            Some(user) => format!("{held} by user {user}"),
            None => format!("{held} nobody's"),
        });
    let named: Vec<String> = named.collect();
    format!(
        "held        {} of {}{}{}{}",
        now.groups.len(),
        plural(now.settings.groups.into(), "group"),
        if named.is_empty() { "" } else { ": " },
        named.join(", "),
        if holders.len() > MOST_HOLDERS {
            ", ..."
        } else {
            ""
        },
    )
}

/// The task whose wait was over its bound last, in parentheses.
fn last_overdue(now: &Statistics) -> String {
    match now.overdue.first() {
        Some(wait) => format!(" (last {}[{}])", wait.name, wait.pid),
        None => String::new(),
    }
}

fn place_table(places: &[Home], more: usize) -> String {
    let mut text = format!(
        "{:>5}  {:<16} {:>7} {:>7} {:>7}\n",
        "PLACE", "CPUS", "LOAD", "GROUPS", "QUEUED"
    );
    for place in places {
        let (load, cpus) = (
            place.weight as f64 / WEIGHT_NICE_0 as f64,
            ranges(&place.cpus),
        );
        let _ = writeln!(
            text,
            "{:>5}  {cpus:<16} {load:>7.2} {:>7} {:>7}",
            place.place, place.groups, place.queued
        );
    }
    if more > 0 {
        let _ = writeln!(text, "and {more} more (see --stats-json)");
    }
    text + "\n"
}

fn group_table(
    interval: &Interval<'_>,
    rows: usize,
    name_of: &dyn Fn(u32) -> Option<String>,
) -> String {
    let ran =
        |group: &Group| interval.group_grown(group, |group| group.ran_home_ns + group.ran_away_ns);
    let mut groups: Vec<&Group> = interval
        .now
        .groups
        .iter()
        .filter(|group| group.members > 0 || ran(group) > 0)
        .collect();
    groups.sort_by_key(|group| (std::cmp::Reverse(ran(group)), group.slot));
    let more = groups.len().saturating_sub(rows);
    let mut text = format!(
        "{:>5}  {:<22} {:>12} {:>5} {:>7} {:>8} {:>6} {:>8} {:>9} {:>6} {:>8}",
        "GROUP",
        "WHOSE",
        "FRAGMENT",
        "HOME",
        "MEMBERS",
        "RUNNABLE",
        "CPUS",
        "AT HOME",
        "BATCHES/s",
        "MOVES",
        "99% WAIT"
    );
    for group in groups.iter().take(rows) {
        text += &group_row(interval, group, name_of);
    }
    if more > 0 {
        let _ = write!(text, "\nand {more} more (see --stats-json)");
    }
    if groups.is_empty() {
        text +=
            "\n  none: no task has a fragment (see warmq.h, scx_warmq label, --group-by, --infer)";
    }
    text
}

fn group_row(
    interval: &Interval<'_>,
    group: &Group,
    name_of: &dyn Fn(u32) -> Option<String>,
) -> String {
    let grown = |field: fn(&Group) -> u64| interval.group_grown(group, field);
    let (home, away) = (
        grown(|group| group.ran_home_ns),
        grown(|group| group.ran_away_ns),
    );
    format!(
        "\n{:>5}  {:<22} {:>12} {:>5} {:>7} {:>8} {:>6} {:>8} {:>9} {:>6} {:>8}",
        group.slot,
        whose(group, name_of),
        fragment(group),
        group.home,
        group.members,
        group.runnable,
        cpus(home + away, interval.seconds),
        percent(home, home + away),
        per_second(grown(|group| group.batches), interval.seconds).trim_end_matches("/s"),
        group.moves,
        below(&interval.group_waits(group), 0.99),
    )
}

fn whose(group: &Group, name_of: &dyn Fn(u32) -> Option<String>) -> String {
    match (group.tgid, group.uid) {
        (Some(pid), _) => match name_of(pid) {
            Some(name) => format!("{name}[{pid}]"),
            None => format!("process {pid}"),
        },
        (None, Some(uid)) => format!("user {uid}"),
        (None, None) => "everybody".to_owned(),
    }
}

fn fragment(group: &Group) -> String {
    match (group.app, group.fragment) {
        (Some(app), Some(fragment)) => format!("{app}/{fragment}"),
        _ => group.origin.name().to_owned(),
    }
}

/// CPUs as `0-3,8`.
fn ranges(cpus: &[usize]) -> String {
    let cpus = cpus.iter().map(|cpu| CpuId(*cpu as u16));
    CpuSet::from_iter(cpus).to_string()
}

fn per_second(count: u64, seconds: f64) -> String {
    let rate = count as f64 / seconds.max(1e-9);
    match rate {
        _ if count == 0 => "0/s".to_owned(),
        1e6.. => format!("{:.1}M/s", rate / 1e6),
        1e4.. => format!("{:.1}k/s", rate / 1e3),
        10.0.. => format!("{rate:.0}/s"),
        _ => format!("{rate:.1}/s"),
    }
}

/// `-` if the whole is 0.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1}%", part as f64 * 100.0 / whole as f64)
}

fn ratio(of: u64, by: u64) -> String {
    if by == 0 {
        return "-".to_owned();
    }
    format!("{:.1}", of as f64 / by as f64)
}

fn cpus(ran_ns: u64, seconds: f64) -> String {
    format!("{:.2}", ran_ns as f64 / 1e9 / seconds.max(1e-9))
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests;
