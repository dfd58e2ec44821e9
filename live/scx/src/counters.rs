//! The counters of the BPF program, by name.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// In the order of `enum counter` of state.bpf.h. Times are in nanoseconds, and say so.
pub const NAMES: &[&str] = &[
    "wakeups",
    "idle_previous",
    "idle_core",
    "idle_domain",
    "idle_elsewhere",
    "granted",
    "too_close",
    "too_soon",
    "short_sleep",
    "batches",
    "batched_runs",
    "group_moves",
    "group_splits",
    "unmanaged_moves",
    "core_moves",
    "kept",
    "dispatched",
    "changes",
    "prompt_moves",
    "groups_made",
    "groups_refused",
    "inferred",
    "hints",
    "forged_slots",
    "over_bound",
    "helped",
    "longest_wait_ns",
    "longest_bound_ns",
    "ran_home_ns",
    "ran_away_ns",
    "ran_unmanaged_ns",
];

const LONGEST_WAIT: &str = "longest_wait_ns";
const LONGEST_BOUND: &str = "longest_bound_ns";

/// The counters of all CPUs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(Vec<u64>);

impl Counters {
    /// Sums up the counters of all CPUs. Of the longest wait it takes the maximum, with its bound.
    pub fn sum<'a>(cpus: impl Iterator<Item = &'a [u64]> + Clone) -> Counters {
        let sum = |index: usize| {
            cpus.clone()
                .map(|counters| counters[index])
                .fold(0, u64::wrapping_add)
        };
        let mut sums: Vec<u64> = (0..NAMES.len()).map(sum).collect();
        let (wait, bound) = (index(LONGEST_WAIT), index(LONGEST_BOUND));
        if let Some(longest) = cpus.max_by_key(|counters| counters[wait]) {
            sums[wait] = longest[wait];
            sums[bound] = longest[bound];
        }
        Counters(sums)
    }

    /// A counter; 0 for a name that does not exist, which a test excludes.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(index(name)).copied().unwrap_or(0)
    }

    /// By how much a counter has grown since `before`; its value if the scheduler was restarted.
    pub fn grown(&self, before: &Counters, name: &str) -> u64 {
        let (now, then) = (self.get(name), before.get(name));
        now.checked_sub(then).unwrap_or(now)
    }
}

fn index(name: &str) -> usize {
    NAMES
        .iter()
        .position(|known| *known == name)
        .unwrap_or(usize::MAX)
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(NAMES.len()))?;
        for (name, value) in NAMES.iter().zip(&self.0) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("bpf/state.bpf.h");

    /// The names in `enum counter`.
    fn names_in_header() -> Vec<String> {
        let body = HEADER.split_once("enum counter {").expect("the enum").1;
        let body = body.split_once("NR_COUNTERS").expect("its end").0;
        let lines = body
            .lines()
            .filter_map(|line| line.trim().strip_prefix("COUNT_"));
        let names = lines.map(|line| line.split_once(',').expect("a comma").0);
        names.map(str::to_lowercase).collect()
    }

    #[test]
    fn names_are_those_of_the_bpf_program_in_its_order() {
        assert_eq!(NAMES, names_in_header());
    }

    #[test]
    fn counters_add_up_but_the_longest_wait_is_one_cpus() {
        let mut cpus = [vec![1; NAMES.len()], vec![2; NAMES.len()]];
        cpus[0][index(LONGEST_WAIT)] = 70;
        cpus[0][index(LONGEST_BOUND)] = 80;
        cpus[1][index(LONGEST_WAIT)] = 60;
        cpus[1][index(LONGEST_BOUND)] = 90;
        let sum = Counters::sum(cpus.iter().map(Vec::as_slice));
        assert_eq!(sum.get("wakeups"), 3);
        assert_eq!(sum.get(LONGEST_WAIT), 70);
        assert_eq!(sum.get(LONGEST_BOUND), 80);
    }

    #[test]
    fn a_counter_that_began_anew_has_grown_from_nothing() {
        let counters = |value| Counters(vec![value; NAMES.len()]);
        assert_eq!(counters(9).grown(&counters(4), "hints"), 5);
        assert_eq!(counters(3).grown(&counters(4), "hints"), 3);
    }
}
