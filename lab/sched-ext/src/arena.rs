//! The arena of scx_arena: what its library runs before a scheduler attaches.

use std::collections::BTreeSet;

use crate::facts::{Facts, Place};
use crate::profile::Run;

/// `STATIC_ALLOC_PAGES_GRANULARITY`.
const STATIC_PAGES: u64 = 8;
/// Levels of its topology, from the machine to the CPU.
const LEVELS: usize = 5;

/// The part of each level that a CPU is in.
type Parts = [u16; LEVELS];

/// What is run for tasks that have `task_size` bytes each.
pub(crate) fn runs(facts: &Facts, task_size: u64) -> Vec<Run> {
    let parts: Vec<Parts> = (0..).zip(facts.places()).map(parts).collect();
    let mut runs = vec![
        run("arena_init", numbers(&[STATIC_PAGES, task_size, 0])),
        run("arena_topology_init", children(&parts)),
    ];
    for level in 0..LEVELS {
        let all: BTreeSet<u16> = parts.iter().map(|parts| parts[level]).collect();
        runs.extend(all.into_iter().map(|part| node(&parts, level, part)));
    }
    runs
}

fn parts((cpu, place): (u16, &Place)) -> Parts {
    [0, place.node, place.llc, place.core, cpu]
}

fn run(program: &str, argument: Vec<u8>) -> Run {
    Run {
        program: program.to_owned(),
        argument,
        after: false,
        mask: None,
    }
}

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

/// The most children that a part of each level has.
fn children(parts: &[Parts]) -> Vec<u8> {
    let most = |level: usize| {
        let children = |one: &Parts| {
            let same = parts.iter().filter(|parts| parts[level] == one[level]);
            let below: BTreeSet<u16> = same.map(|parts| parts[level + 1]).collect();
            below.len() as u32
        };
        parts.iter().map(children).max().unwrap_or(0)
    };
    let all = (0..LEVELS - 1).map(most).chain([0]);
    all.flat_map(u32::to_le_bytes).collect()
}

/// A node of the topology: its CPUs, and its number.
fn node(parts: &[Parts], level: usize, part: u16) -> Run {
    let mut mask = vec![0_u64; parts.len().div_ceil(64)];
    let cpus = parts.iter().filter(|parts| parts[level] == part);
    for cpu in cpus.map(|parts| usize::from(parts[LEVELS - 1])) {
        mask[cpu / 64] |= 1 << (cpu % 64);
    }
    Run {
        mask: Some(mask),
        ..run("arena_topology_node_init", numbers(&[0, 0, part.into()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two caches of two cores of two threads.
    #[test]
    fn the_topology_goes_from_the_machine_to_its_cpus() {
        let place = |cpu: u16| Place {
            core: cpu / 2,
            llc: cpu / 4,
            node: 0,
            ..Place::default()
        };
        let facts = Facts::of_places((0..8).map(place).collect());
        let runs = runs(&facts, 72);
        assert_eq!(runs[0].argument, numbers(&[8, 72, 0]));
        let children: Vec<u8> = [1_u32, 2, 2, 2, 0]
            .iter()
            .flat_map(|one| one.to_le_bytes())
            .collect();
        assert_eq!(runs[1].argument, children);
        let masks: Vec<u64> = runs[2..]
            .iter()
            .map(|run| run.mask.as_ref().expect("a mask")[0])
            .collect();
        assert_eq!(masks[..6], [0xff, 0xff, 0x0f, 0xf0, 0x03, 0x0c]);
        assert_eq!(masks.len(), 1 + 1 + 2 + 4 + 8);
        assert_eq!(runs[5].argument, numbers(&[0, 0, 1]));
    }
}
