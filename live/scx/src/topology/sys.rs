//! What the kernel says in /sys of memory nodes and of the capacity of CPUs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// As the kernel counts where the firmware says nothing (LOCAL_DISTANCE and REMOTE_DISTANCE).
const WITHIN_A_NODE: u32 = 10;
const BETWEEN_NODES: u32 = 20;

/// How far memory nodes are from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distances(BTreeMap<(usize, usize), u32>);

impl Distances {
    /// As /sys/devices/system/node/nodeN/distance says under `root`: a number for each node that
    /// has a folder.
    pub fn read(root: &Path) -> Distances {
        let folder = root.join("sys/devices/system/node");
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let mut nodes: Vec<usize> = names
            .filter_map(|name| name.strip_prefix("node")?.parse().ok())
            .collect();
        nodes.sort_unstable();
        let row = |node: usize| {
            let text = fs::read_to_string(folder.join(format!("node{node}/distance")));
            let numbers = numbers(&text.unwrap_or_default());
            let to = nodes.iter().copied().zip(numbers);
            to.map(move |(other, distance)| ((node, other), distance))
                .collect::<Vec<_>>()
        };
        Distances(nodes.iter().flat_map(|node| row(*node)).collect())
    }

    /// The longer way between two nodes, should the firmware have one for each direction.
    pub fn between(&self, node: usize, other: usize) -> u32 {
        let usual = match node == other {
            true => WITHIN_A_NODE,
            false => BETWEEN_NODES,
        };
        let ways = [(node, other), (other, node)];
        let said = ways.iter().filter_map(|way| self.0.get(way).copied());
        said.max().unwrap_or(usual)
    }
}

fn numbers<T: FromStr>(text: &str) -> Vec<T> {
    let words = text.split_whitespace();
    words.map_while(|word| word.parse().ok()).collect()
}

/// Where the kernel says how fast CPUs are, each in a unit of its own: unlike cores; the order in
/// which AMD's preferred cores are taken; preferred cores of others.
const CAPACITIES: [&str; 3] = [
    "cpu_capacity",
    "cpufreq/amd_pstate_prefcore_ranking",
    "acpi_cppc/highest_perf",
];

/// The capacities of CPUs under `root`, by the first source that knows all of them and in which
/// they differ; else each has the same.
pub fn capacities(root: &Path, cpus: &[usize]) -> Vec<u64> {
    let folder = root.join("sys/devices/system/cpu");
    let of = |cpu: &usize, source: &str| -> Option<u64> {
        let text = fs::read_to_string(folder.join(format!("cpu{cpu}/{source}")));
        text.ok()?.trim().parse().ok().filter(|number| *number > 0)
    };
    CAPACITIES
        .iter()
        .filter_map(|source| cpus.iter().map(|cpu| of(cpu, source)).collect())
        .find(|all: &Vec<u64>| all.iter().any(|number| *number != all[0]))
        .unwrap_or_else(|| vec![1; cpus.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join("sys/devices/system").join(file);
        let folder = path.parent().expect("it is in a folder");
        fs::create_dir_all(folder).expect("it is made");
        fs::write(path, text).expect("it is written");
    }

    #[test]
    fn distances_are_those_of_nodes_that_are_there_and_symmetric() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path(), "node/node0/distance", "10 12 32\n");
        write(root.path(), "node/node1/distance", "12 10 30\n");
        write(root.path(), "node/node4/distance", "32 32 10\n");
        write(root.path(), "node/online", "0-1,4\n");
        let distances = Distances::read(root.path());
        let between = |node, other| distances.between(node, other);
        assert_eq!([between(0, 0), between(0, 1), between(0, 4)], [10, 12, 32]);
        assert_eq!([between(1, 4), between(4, 1)], [32, 32], "the longer way");
        assert_eq!([between(0, 7), between(7, 7)], [20, 10], "unknown nodes");
    }

    #[test]
    fn without_a_file_nodes_are_as_far_as_usual() {
        let root = tempfile::tempdir().expect("a folder");
        write(root.path(), "node/node0/distance", "10 far\n");
        let distances = Distances::read(root.path());
        assert_eq!([distances.between(0, 1), distances.between(0, 0)], [20, 10]);
        assert_eq!(Distances::read(Path::new("/none")), Distances::default());
    }

    #[test]
    fn capacities_are_of_the_first_source_in_which_cpus_differ() {
        let root = tempfile::tempdir().expect("a folder");
        let capacities = || capacities(root.path(), &[0, 2]);
        assert_eq!(capacities(), [1, 1], "nobody says anything");
        write(root.path(), "cpu/cpu0/acpi_cppc/highest_perf", "255\n");
        write(root.path(), "cpu/cpu2/acpi_cppc/highest_perf", "196\n");
        assert_eq!(capacities(), [255, 196]);
        write(root.path(), "cpu/cpu0/cpu_capacity", "1024\n");
        assert_eq!(capacities(), [255, 196], "CPU 2 has no such file");
        write(root.path(), "cpu/cpu2/cpu_capacity", "1024\n");
        assert_eq!(capacities(), [255, 196], "they do not differ there");
        write(root.path(), "cpu/cpu2/cpu_capacity", "446\n");
        assert_eq!(capacities(), [1024, 446]);
        write(root.path(), "cpu/cpu2/cpu_capacity", "0\n");
        assert_eq!(capacities(), [255, 196], "0 is no capacity");
    }
}
