//! A small scheduler of our own, whose races can be cured one by one.

use warmq_race::Fault;
use warmq_units::Seed;

use crate::stage::{first, load, load_for, race};

const RACES: &[u8] = include_bytes!("../programs/races.bpf.o");

#[test]
fn a_wakeup_that_is_lost_is_found_and_shown() {
    let loaded = load(RACES, &[("counts_once", 1)]);
    let race = race(&loaded, &[]);
    let found = first(&race, 300).expect("it is found");
    assert!(matches!(found.fault, Fault::Asleep { raced: true, .. }));
    assert!(found.plan.steps.len() < 8, "{:?}", found.plan);
    insta::assert_snapshot!(race.story(&found).expect("it is attached"));
}

#[test]
fn a_count_that_two_change_at_once_is_found_and_shown() {
    let loaded = load(RACES, &[("kicks_all", 1)]);
    let race = race(&loaded, &[]);
    let found = first(&race, 300).expect("it is found");
    assert!(matches!(&found.fault, Fault::Ejected(why) if why.contains("race_check")));
    insta::assert_snapshot!(race.story(&found).expect("it is attached"));
}

#[test]
fn a_queue_that_is_not_there_needs_no_interruption() {
    let loaded = load(RACES, &[("has_queue", 0)]);
    let found = first(&race(&loaded, &[]), 1).expect("it is found");
    assert_eq!(
        found.fault.to_string(),
        "the scheduler is thrown out: non-existent DSQ 0x7"
    );
    assert!(found.plan.steps.iter().all(|step| step.hold.is_none()));
    assert_eq!(found.plan.steps.len(), 1);
}

#[test]
fn one_that_is_cured_has_no_fault() {
    let loaded = load(RACES, &[("kicks_all", 1), ("counts_once", 1)]);
    assert_eq!(first(&race(&loaded, &[]), 500), None);
}

/// Ticks of either CPU kick the other one with SCX_KICK_WAIT.
#[test]
fn two_cpus_that_wait_for_each_other_are_found_in_6_18() {
    const KICKS: &[u8] = include_bytes!("../../../sched-ext/tests/programs/kicks.bpf.o");
    let all = i128::from(u32::MAX);
    let set = [("flags", 1 << 2), ("kicks_of_0", all), ("kicks_of_1", all)];
    let loaded = load_for("6.18", KICKS, &set);
    let found = first(&race(&loaded, &[]), 300).expect("it is found");
    assert!(matches!(&found.fault, Fault::Ejected(why) if why.contains("wait for each other")));
    let loaded = load_for("7.3", KICKS, &set);
    assert_eq!(first(&race(&loaded, &[]), 300), None);
}

#[test]
fn the_same_seed_leads_to_the_same_plan_and_the_same_text() {
    let loaded = load(RACES, &[]);
    let race = race(&loaded, &[]);
    let found = first(&race, 300).expect("it is found");
    let again = race.run(found.seed).expect("it is attached");
    assert_eq!(again.as_ref(), Some(&found));
    assert_eq!(
        race.story(&found),
        again.map_or(Ok(String::new()), |again| race.story(&again))
    );
    assert_ne!(
        race.run(Seed(found.seed.0 + 1)).expect("it is attached"),
        Some(found)
    );
}
