//! Where the CPUs of this machine are, from /sys. The root of the file system is a parameter, so
//! that tests feed a tree of their own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use warmq_scenario::program::{Cpu, Cpus};
use warmq_units::{CpuId, CpuSet};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
/// The line where /sys names none.
const LINE: u64 = 64;

/// Those of `allowed`, below the file system's `root`. Where the system does not say what a CPU
/// shares with others, it shares its caches with its socket and its core with nobody.
pub fn cpus(root: &Path, allowed: &CpuSet) -> Cpus {
    let cpus: Vec<Raw> = allowed.iter().map(|cpu| Raw::read(root, cpu)).collect();
    // Caches and cores are numbered in the order of their first CPUs.
    let number = |of: fn(&Raw) -> u16, cpu: &Raw| {
        let firsts: BTreeSet<u16> = cpus.iter().map(of).collect();
        firsts.range(..of(cpu)).count() as u64
    };
    let cpu = |cpu: &Raw| Cpu {
        id: cpu.id,
        llc: number(|cpu| cpu.llc_first, cpu),
        node: cpu.node,
        socket: cpu.socket,
        core: number(|cpu| cpu.core_first, cpu),
    };
    cpus.iter().map(cpu).collect()
}

/// The line of the caches, in bytes.
pub fn line(root: &Path) -> u64 {
    let file = root
        .join(CPUS)
        .join("cpu0/cache/index0/coherency_line_size");
    number_in(&file).filter(|line| *line > 0).unwrap_or(LINE)
}

/// A CPU as /sys has it.
struct Raw {
    id: CpuId,
    llc_first: u16,
    core_first: u16,
    node: u64,
    socket: u64,
}

impl Raw {
    fn read(root: &Path, id: CpuId) -> Raw {
        let folder = root.join(CPUS).join(format!("cpu{}", id.0));
        let topology = folder.join("topology");
        let socket = number_in(&topology.join("physical_package_id")).unwrap_or(0);
        let first = |path: &Path| Some(list_in(path)?.first()?.0);
        let of_socket = first(&topology.join("package_cpus_list"))
            .or_else(|| first(&topology.join("core_siblings_list")));
        let llc = last_level(&folder.join("cache")).or(of_socket);
        Raw {
            id,
            llc_first: llc.unwrap_or(0),
            core_first: first(&topology.join("thread_siblings_list")).unwrap_or(id.0),
            node: node_of(root, id).unwrap_or(0),
            socket,
        }
    }
}

/// The first CPU below the last-level cache.
fn last_level(caches: &Path) -> Option<u16> {
    let index = |number: u32| {
        let folder = caches.join(format!("index{number}"));
        let level = number_in(&folder.join("level"))?;
        let shared = list_in(&folder.join("shared_cpu_list"))?;
        Some((level, shared.first()?.0))
    };
    let levels = (0..16).map_while(index);
    levels
        .max_by_key(|(level, _)| *level)
        .map(|(_, first)| first)
}

/// The memory node that lists `cpu`.
fn node_of(root: &Path, cpu: CpuId) -> Option<u64> {
    let folder = fs::read_dir(root.join(NODES)).ok()?;
    folder.filter_map(Result::ok).find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let node: u64 = name.strip_prefix("node")?.parse().ok()?;
        let cpus = list_in(&entry.path().join("cpulist"))?;
        cpus.contains(cpu).then_some(node)
    })
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// A file with a list of CPUs such as `0-3,8`.
fn list_in(path: &Path) -> Option<CpuSet> {
    fs::read_to_string(path).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bound;

    /// Eight CPUs: two sockets that are nodes, four caches, four cores of two threads, CPU n and
    /// n + 4.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("written");
        };
        for cpu in 0..8_u16 {
            let (core, socket) = (cpu % 4, cpu % 4 / 2);
            let threads = format!("{core},{}\n", core + 4);
            let folder = format!("{CPUS}/cpu{cpu}");
            write(
                format!("{folder}/topology/physical_package_id"),
                &format!("{socket}\n"),
            );
            write(format!("{folder}/topology/thread_siblings_list"), &threads);
            for (index, level, shared) in [(0, 1, &threads), (1, 3, &threads)] {
                write(
                    format!("{folder}/cache/index{index}/level"),
                    &level.to_string(),
                );
                write(
                    format!("{folder}/cache/index{index}/shared_cpu_list"),
                    shared,
                );
            }
        }
        write(
            format!("{CPUS}/cpu0/cache/index0/coherency_line_size"),
            "128\n",
        );
        for node in 0..2 {
            let first = 2 * node;
            let cpus = format!("{first}-{},{}-{}\n", first + 1, first + 4, first + 5);
            write(format!("{NODES}/node{node}/cpulist"), &cpus);
        }
        root
    }

    fn at(cpus: &Cpus, place: &str) -> String {
        let bound = bound(&format!(
            "[task.t]\ncpus = \"{place}\"\nbody = [{{ run = \"1us\" }}]"
        ));
        let place = bound.scenario().tasks()[0].cpus.clone().expect("a place");
        cpus.at(&bound, &place, &[]).expect("a number").to_string()
    }

    #[test]
    fn places_are_those_of_the_system() {
        let root = tree();
        let cpus = cpus(root.path(), &CpuSet::first_cpus(8));
        assert_eq!(line(root.path()), 128);
        for (place, wanted) in [
            ("all", "0-7"),
            ("cpu 3", "3"),
            ("cpu 8", ""),
            ("cpus 0-2,6", "0-2,6"),
            ("llc 1", "1,5"),
            ("core 3", "3,7"),
            ("core 4", ""),
            ("node 1", "2-3,6-7"),
            ("socket 0", "0-1,4-5"),
            ("part 0 of 2", "0-3"),
            ("part 2 of 3", "6-7"),
        ] {
            assert_eq!(at(&cpus, place), wanted, "{place}");
        }
    }

    #[test]
    fn cpus_that_may_not_be_used_are_not_there() {
        let root = tree();
        let allowed = [2, 6, 7].map(CpuId).into_iter().collect();
        let cpus = cpus(root.path(), &allowed);
        for (place, wanted) in [
            ("all", "2,6-7"),
            ("cpu 0", ""),
            ("llc 0", "2,6"),
            ("part 1 of 3", "6"),
        ] {
            assert_eq!(at(&cpus, place), wanted, "{place}");
        }
    }

    #[test]
    fn a_system_that_says_nothing_has_one_cache_and_a_core_a_cpu() {
        let root = tempfile::tempdir().expect("a folder");
        let cpus = cpus(root.path(), &CpuSet::first_cpus(3));
        for (place, wanted) in [
            ("llc 0", "0-2"),
            ("core 1", "1"),
            ("node 0", "0-2"),
            ("socket 1", ""),
        ] {
            assert_eq!(at(&cpus, place), wanted, "{place}");
        }
        assert_eq!(line(root.path()), LINE);
    }
}
