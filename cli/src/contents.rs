//! What is in a recording of another program, and what it lacks: said before anything is judged.

use serde_json::{Value, json};
use warmq_diagnose::{Need, count};
use warmq_recordings::{Contents, Foreign, Kind};
use warmq_units::printable;

use crate::diagnose::text::time;
use crate::listing;

/// Other events that are named, at most.
const MOST_OTHERS: usize = 5;

/// What a diagnosis would need, and the recording lacks. No format says which CPUs tasks may use,
/// what groups weigh (nor which sessions those in `/` are of), what quotas they have, and what a
/// hypervisor took away.
pub fn lacks(contents: &Contents) -> Vec<Need> {
    let has = |kinds: &[Kind]| {
        contents.partial.is_empty() && kinds.iter().any(|kind| contents.has(*kind))
    };
    let needs = [
        (Need::Switches, has(&[Kind::Switch])),
        (Need::Wakeups, has(&[Kind::Waking, Kind::Wakeup])),
        (Need::Groups, has(&[Kind::Group])),
        (Need::GroupWeights, false),
        (Need::Weights, contents.has_priorities),
        (Need::Policies, contents.has_priorities),
        (Need::Affinities, false),
        (Need::Quotas, false),
        (Need::Interrupts, has(&[Kind::Interrupt, Kind::Softirq])),
        (Need::Steal, false),
        (Need::Caches, contents.has_places),
        (Need::Contexts, !contents.lacks_contexts),
    ];
    let absent = needs.into_iter().filter(|(_, has)| !has);
    absent.map(|(need, _)| need).collect()
}

/// What a replay does without, as a sentence.
pub fn without(contents: &Contents) -> String {
    let kinds = [Kind::Switch, Kind::Waking, Kind::Wakeup, Kind::Fork];
    let absent = kinds.into_iter().filter(|kind| !contents.has(*kind));
    let names: Vec<&str> = absent.map(Kind::name).collect();
    let events = (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("the recording has no {names}: what these would say is taken from what it has")
    });
    let contexts = contents.lacks_contexts.then(|| {
        let lacks = Need::Contexts.shown();
        format!("the recording has no {lacks}: tasks that are woken sleep as long as recorded")
    });
    let anywhere =
        "the recording does not say which CPUs a task may use: here it may use all".to_owned();
    let all = events.into_iter().chain(contexts).chain([anywhere]);
    all.collect::<Vec<_>>().join("; ")
}

/// What is in it: a key and some words each.
pub fn rows(contents: &Contents) -> Vec<(&'static str, String)> {
    let (present, absent): (Vec<Kind>, Vec<Kind>) =
        Kind::ALL.into_iter().partition(|kind| contents.has(*kind));
    let counted = present
        .iter()
        .map(|kind| format!("{} {}", kind.name(), count(contents.count(*kind))));
    let names = absent.iter().map(|kind| kind.name().to_owned());
    let contexts = contents
        .lacks_contexts
        .then(|| Need::Contexts.shown().to_owned());
    let mut rows = vec![
        ("read as", contents.format.to_string()),
        ("events", listed(counted)),
        ("without", listed(names.chain(contexts))),
    ];
    let others = others(contents);
    rows.extend((!others.is_empty()).then_some(("not read", others)));
    rows.push(("CPUs", contents.cpus.len().to_string()));
    if let Some((from, to)) = contents.span_ns {
        rows.push(("length", time(to - from)));
    }
    let lost = match contents.lost {
        0 => "none that is known".to_owned(),
        lost => count(lost),
    };
    rows.push(("lost", lost));
    let optional = [
        ("clock", &contents.clock),
        ("recorded by", &contents.command),
    ];
    let optional = optional.into_iter().filter(|(_, value)| !value.is_empty());
    rows.extend(optional.map(|(key, value)| (key, printable(value).to_string())));
    rows.extend(
        contents
            .partial
            .iter()
            .map(|why| ("a part only", why.clone())),
    );
    rows.extend(contents.notes.iter().map(|note| ("note", note.clone())));
    let damage = contents.damage.as_ref();
    rows.extend(damage.map(|damage| ("damaged", damage.to_string())));
    rows
}

/// A table of it, and the commands that would record what is missing.
pub fn text(contents: &Contents) -> String {
    let mut text = listing::names(rows(contents));
    if let Some(how) = how(contents) {
        text += &format!("\n\nTo have all that a diagnosis uses:\n{how}");
    }
    text
}

fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

/// Events that are not read, the most frequent ones first.
fn others(contents: &Contents) -> String {
    let mut all: Vec<(&String, u64)> = contents.others.iter().map(|(name, n)| (name, *n)).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let more = all.len().saturating_sub(MOST_OTHERS);
    let mut named: Vec<String> = all
        .iter()
        .take(MOST_OTHERS)
        .map(|(name, times)| {
            let times = count(*times);
            match name.is_empty() {
                true => format!("{times} others"),
                false => format!("{} {times}", printable(name)),
            }
        })
        .collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    named.join(", ")
}

/// Events of which a recording has all that a diagnosis uses of any kernel.
const EVENTS: [&str; 12] = [
    "sched:sched_switch",
    "sched:sched_waking",
    "sched:sched_wakeup",
    "sched:sched_wakeup_new",
    "sched:sched_migrate_task",
    "sched:sched_process_fork",
    "sched:sched_process_exec",
    "task:task_rename",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
];

/// The commands that would record what is missing; nothing if only `warmq watch` has more.
fn how(contents: &Contents) -> Option<String> {
    let kinds = [
        Kind::Switch,
        Kind::Waking,
        Kind::Wakeup,
        Kind::Migrate,
        Kind::Fork,
        Kind::Softirq,
        Kind::Group,
    ];
    let lacks = kinds.iter().any(|kind| !contents.has(*kind));
    let watch = "  sudo warmq watch --for 10s        (groups, weights, quotas, affinities as well)";
    let command = match contents.format {
        _ if !lacks => String::new(),
        Foreign::PerfData | Foreign::PerfDataSwapped | Foreign::PerfScript => {
            format!(
                "  perf record -a --all-cgroups -e {} -- sleep 10\n",
                EVENTS.join(",")
            )
        }
        Foreign::Perfetto => {
            let events = EVENTS.iter().chain(&["cgroup:cgroup_attach_task"]);
            let events =
                events.map(|event| format!("ftrace_events: \"{}\"", event.replace(':', "/")));
            let events: Vec<String> = events.collect();
            format!(
                "  data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{\n    {}\n  }} }} }}\n",
                events.join("\n    ")
            )
        }
        _ => {
            let events: Vec<String> = EVENTS
                .iter()
                .chain(&["cgroup:cgroup_attach_task"])
                .map(|event| format!("-e {event}"))
                .collect();
            format!("  trace-cmd record -C mono {} sleep 10\n", events.join(" "))
        }
    };
    Some(format!("{command}{watch}"))
}

/// The same as JSON.
pub fn json(contents: &Contents) -> Value {
    let events = Kind::ALL.into_iter().filter(|kind| contents.has(*kind));
    let events: serde_json::Map<String, Value> = events
        .map(|kind| (kind.name().to_owned(), contents.count(kind).into()))
        .collect();
    let length = contents.span_ns.map(|(from, to)| to - from);
    let shown = |text: &String| printable(text).to_string();
    let others = contents
        .others
        .iter()
        .map(|(name, count)| (shown(name), *count));
    json!({
        "format": contents.format.to_string(),
        "events": events,
        "not_read": others.collect::<std::collections::BTreeMap<_, _>>(),
        "cpus": contents.cpus,
        "length_ns": length,
        "lost": contents.lost,
        "clock": shown(&contents.clock),
        "recorded_by": shown(&contents.command),
        "partial": contents.partial,
        "notes": contents.notes,
        "damage": contents.damage.as_ref().map(|damage| json!({
            "byte": damage.offset,
            "what": damage.what,
        })),
    })
}
