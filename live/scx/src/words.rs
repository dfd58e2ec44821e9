//! The message after the start.

use crate::options::{Place, Schedule};
use crate::refuse;
use crate::topology::Layout;

/// What was started, and how to stop it.
pub fn started(schedule: &Schedule, layout: &Layout) -> String {
    let release = refuse::release("/".as_ref());
    started_on(&release, schedule, layout)
}

fn started_on(release: &str, schedule: &Schedule, layout: &Layout) -> String {
    let place = schedule.groups.place.unwrap_or(layout.natural_place());
    format!(
        "scx_warmq {} schedules this machine: Linux {release}, {} in {}; the home of a group is {} \
         (--place {}). {}. Stop it with Ctrl-C or SIGTERM; observe it with: scx_warmq --monitor 1",
        env!("CARGO_PKG_VERSION"),
        plural(layout.online() as u64, "CPU"),
        domains(layout),
        home(place),
        place.name(),
        switched_off(schedule),
    )
}

/// A count and its noun.
pub fn plural(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn domains(layout: &Layout) -> String {
    if layout.by_node {
        let nodes = plural(layout.domains.len() as u64, "memory node");
        return format!(
            "{nodes} (used as domains, because there are more cache domains than scx_warmq has room for)"
        );
    }
    let caches = plural(layout.domains.len() as u64, "cache domain");
    match layout.nodes() {
        1 => caches,
        nodes => format!("{caches} of {nodes} memory nodes"),
    }
}

fn home(place: Place) -> &'static str {
    match place {
        Place::Cpu => "a CPU",
        Place::Llc => "a cache domain",
    }
}

fn switched_off(schedule: &Schedule) -> String {
    let zero = |span: warmq_units::Duration| span.0 == 0;
    let off = [
        (schedule.groups.no_groups, "groups"),
        (schedule.wakeups.no_preempt, "wakeup preemption"),
        (
            schedule.wakeups.no_granularity || zero(schedule.wakeups.alpha),
            "wakeup granularity",
        ),
        (
            zero(schedule.wakeups.preempt_interval),
            "preemption interval",
        ),
        (zero(schedule.wakeups.min_sleep), "minimum sleep"),
        (!schedule.groups.infer, "inference"),
    ];
    let off: Vec<&str> = off
        .iter()
        .filter(|(is_off, _)| *is_off)
        .map(|(_, name)| *name)
        .collect();
    if off.is_empty() {
        return "Nothing is switched off".to_owned();
    }
    format!("Switched off: {}", off.join(", "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::Options;
    use crate::topology::{CpuPlace, Distances};

    fn said(line: &str, caches: usize) -> String {
        let cpu = |cpu| CpuPlace {
            cpu,
            core: cpu,
            cache: cpu % caches,
            node: cpu % caches / 2,
            capacity: 1024,
        };
        let cpus: Vec<CpuPlace> = (0..8).map(cpu).collect();
        let layout = Layout::new(8, &cpus, &Distances::default()).expect("it has room");
        let options = Options::try_parse_from(line.split(' ')).expect("right options");
        started_on("6.18.15", &options.schedule, &layout)
    }

    #[test]
    fn it_says_what_it_was_started_with() {
        let all = [
            said("scx_warmq", 4),
            said("scx_warmq --infer --min-sleep 1ms", 1),
            said(
                "scx_warmq --place cpu --no-groups --no-preempt --alpha 0 --preempt-interval 0",
                2,
            ),
        ];
        insta::assert_snapshot!(all.join("\n"));
    }
}
