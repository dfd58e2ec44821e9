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
    copy.state.domains[127].time.weight = u64::MAX;
    assert_eq!(Statistics::of(&copy).cpus.len(), 512);
}

const DECIDE: &str = include_str!("../../../../common/decide/include/decide.h");
const STATE: &str = include_str!("../bpf/state.bpf.h");

fn constant(header: &str, name: &str) -> usize {
    let line = header
        .lines()
        .find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name));
    let value = line.expect("it is there").trim().trim_end_matches("ULL");
    value.parse().expect("it is a number")
}

#[test]
fn constants_are_those_of_the_bpf_program() {
    use crate::topology::{MOST_CPUS, MOST_DOMAINS};
    assert_eq!(constant(STATE, "MAX_CPUS "), MOST_CPUS);
    assert_eq!(constant(STATE, "MAX_DOMAINS "), MOST_DOMAINS);
    assert_eq!(
        constant(STATE, "MAX_GROUPS ") as i64 - 1,
        crate::options::MOST_GROUPS
    );
    assert_eq!(constant(STATE, "PINNED_BASE "), PINNED_BASE);
    assert_eq!(constant(STATE, "GROUP_BASE "), GROUP_BASE);
    assert_eq!(constant(DECIDE, "WARMQ_WHOLE ") as u64, WHOLE);
}
