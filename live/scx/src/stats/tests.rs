//! Statistics of a recorded state.

use super::sample::state;
use super::*;

#[test]
fn a_state_as_json() {
    let statistics = Statistics::of(&state(1, false));
    insta::assert_snapshot!(serde_json::to_string_pretty(&statistics).expect("it is written"));
}

#[test]
fn where_a_place_is_a_cpu_the_others_tasks_are_the_domains() {
    let statistics = Statistics::of(&state(1, true));
    let places = &statistics.places;
    assert_eq!(
        places.iter().map(|place| place.place).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(
        places.iter().map(|place| place.domain).collect::<Vec<_>>(),
        [0, 0, 1, 1]
    );
    // One of group 1 waits at CPU 0, one of group 7 at CPU 1, and CPU 3 has one that is bound to
    // it.
    assert_eq!(
        places.iter().map(|place| place.queued).collect::<Vec<_>>(),
        [1, 1, 0, 1]
    );
    assert_eq!(
        statistics
            .domains
            .iter()
            .map(|domain| domain.queued)
            .collect::<Vec<_>>(),
        [2, 2]
    );
}

#[test]
fn an_offline_cpu_is_no_cpu() {
    let statistics = Statistics::of(&state(1, false));
    assert_eq!(
        statistics
            .cpus
            .iter()
            .map(|cpu| cpu.cpu)
            .collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
}

#[test]
fn nonsense_in_a_map_is_no_panic() {
    let mut copy = state(1, false);
    copy.settings.nr_cpus = u32::MAX;
    copy.settings.nr_domains = u32::MAX;
    copy.settings.scope = 9;
    copy.settings.cpu_domain.fill(127);
    copy.state.groups[1].home = u32::MAX;
    copy.state.groups[1].running = u64::MAX;
    copy.state.entities[127].domain.weight = u64::MAX;
    assert_eq!(Statistics::of(&copy).cpus.len(), 512);
}
