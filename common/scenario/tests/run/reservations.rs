//! Which deadline tasks are admitted. On Linux 6.18.44 with two CPUs, two of 89.99 % of a CPU are,
//! two of 90.1 % are not, and no task that is bound; on 7.3.4, two of 94.9 % are, two of 95.1 % are
//! not.

use warmq_config::Chosen;
use warmq_scenario::Scenario;
use warmq_scenario::program::{Cpu, Cpus};
use warmq_units::CpuId;

/// Why a machine with so many CPUs does not admit the tasks.
fn refused(text: &str, cpus: u16) -> Option<String> {
    refused_by(text, cpus, true)
}

fn refused_by(text: &str, cpus: u16, by_servers: bool) -> Option<String> {
    let scenario = Scenario::read("s.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let chosen = Chosen::new(scenario.settings(), Default::default()).expect("no settings");
    let cpu = |id: u16| Cpu {
        id: CpuId(id),
        llc: 0,
        node: 0,
        socket: 0,
        core: id.into(),
    };
    let cpus: Cpus = (0..cpus).map(cpu).collect();
    let bound = scenario
        .bind(&chosen, &cpus.site())
        .expect("a sound scenario");
    let error = bound.check_reservations(&cpus, by_servers).err()?;
    Some(error.to_string())
}

fn tasks(policy: &str, rest: &str) -> String {
    format!("[task.t]\npolicy = \"{policy}\"\n{rest}\nbody = [{{ run = \"1ms\" }}]\n")
}

#[test]
fn together_they_have_nine_tenths_of_the_cpus() {
    // policy, how many, CPUs
    let table = [
        (("deadline 89990us 100ms", 1, 1), true),
        (("deadline 90100us 100ms", 1, 1), false),
        (("deadline 89990us 100ms", 2, 2), true),
        (("deadline 90100us 100ms", 2, 2), false),
        (("deadline 100ms 100ms", 1, 2), true),
        (("deadline 100ms 100ms", 2, 2), false),
        // What counts is the period, not the deadline.
        (("deadline 10ms 10ms 100ms", 9, 1), true),
        (("deadline 10ms 10ms 100ms", 10, 1), false),
        (("fifo 50", 10, 1), true),
    ];
    for ((policy, count, cpus), admitted) in table {
        let text = tasks(policy, &format!("count = {count}"));
        let said = refused(&text, cpus);
        assert_eq!(
            said.is_none(),
            admitted,
            "{policy} {count} {cpus}: {said:?}"
        );
        if let Some(said) = said {
            assert!(said.contains("task.t") || said.contains("s.toml"), "{said}");
            assert!(said.contains("ask for less runtime"), "{said}");
        }
    }
}

#[test]
fn where_servers_do_not_count_they_have_95_percent() {
    for (policy, admitted) in [
        ("deadline 94900us 100ms", true),
        ("deadline 95100us 100ms", false),
    ] {
        let said = refused_by(&tasks(policy, "count = 2"), 2, false);
        assert_eq!(said.is_none(), admitted, "{policy}: {said:?}");
    }
}

#[test]
fn what_steps_and_changes_set_counts_with_the_most_that_a_task_asks_for() {
    let step = "[task.t]\ncount = 2\nbody = [{ policy = \"deadline 5ms 10ms\" }, { run = \"1ms\" }, \
                { policy = \"deadline 1ms 10ms\" }]\n";
    assert!(refused(step, 1).is_some());
    assert_eq!(refused(step, 2), None);
    let change = tasks("normal", "")
        + "[[change]]\nat = \"1s\"\ntask = \"t\"\nset = { policy = \"deadline 10ms 10ms\" }\n";
    assert!(refused(&change, 1).is_some());
    assert_eq!(refused(&change, 2), None);
}

#[test]
fn who_is_bound_is_refused_unless_to_all_cpus() {
    let policy = "deadline 1ms 10ms";
    let cpuset = "[group.outer]\ncpus = \"cpu 0\"\n[group.inner]\nparent = \"outer\"\n";
    let table = [
        (tasks(policy, "cpus = \"cpu 1\""), false),
        (tasks(policy, "cpus = \"cpus 0-1\""), true),
        (tasks(policy, "cpus = \"all\""), true),
        (
            format!("{cpuset}{}", tasks(policy, "group = \"inner\"")),
            false,
        ),
        (
            format!("{cpuset}{}", tasks("fifo 1", "group = \"inner\"")),
            true,
        ),
    ];
    for (text, admitted) in table {
        let said = refused(&text, 2);
        assert_eq!(said.is_none(), admitted, "{text}: {said:?}");
        assert!(
            said.is_none_or(|said| said.contains("leave out `cpus`")),
            "{text}"
        );
    }
}
