//! Laws of reading /sys. `tests/xeon-2cpu` was recorded on a virtual machine of 2 CPUs; the other
//! trees are written here, in the form that the kernel writes them.

use std::fs;
use std::path::{Path, PathBuf};

use warmq_host::{HostError, Latencies, online, read, set_latencies};
use warmq_machine::description::Replacement;
use warmq_machine::{ASSUMED, MachineDescription};
use warmq_units::{Bytes, CpuId, Cycles, Duration};

/// A tree of files in a folder of its own, gone when dropped.
struct Tree {
    root: PathBuf,
}

impl Tree {
    fn new(name: &str) -> Tree {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        Tree { root }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn cpu(&self, cpu: u16, path: &str, text: &str) {
        self.write(&format!("sys/devices/system/cpu/cpu{cpu}/{path}"), text);
    }

    fn cache(&self, cpu: u16, index: u8, fields: [&str; 6]) {
        let names = [
            "level",
            "type",
            "size",
            "ways_of_associativity",
            "coherency_line_size",
            "shared_cpu_list",
        ];
        for (name, field) in names.into_iter().zip(fields) {
            self.cpu(cpu, &format!("cache/index{index}/{name}"), field);
        }
    }

    fn read(&self) -> Result<MachineDescription, HostError> {
        read(&self.root)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Two sockets of two last-level caches of two cores of two threads: CPU n and n + 8 are siblings.
fn smt(name: &str) -> Tree {
    let tree = Tree::new(name);
    tree.write("sys/devices/system/cpu/online", "0-15");
    tree.write(
        "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
        "2097152",
    );
    tree.write(
        "proc/meminfo",
        "MemTotal:       65839084 kB\nMemFree:  1 kB",
    );
    tree.write(
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: 1200.123",
    );
    for cpu in 0..16 {
        let core = cpu % 8;
        tree.cpu(cpu, "topology/physical_package_id", &(core / 4).to_string());
        tree.cpu(cpu, "topology/core_id", &(core % 4).to_string());
        let siblings = format!("{core},{}", core + 8);
        tree.cpu(cpu, "topology/thread_siblings_list", &siblings);
        let first = core / 2 * 2;
        let domain = format!("{first}-{},{}-{}", first + 1, first + 8, first + 9);
        tree.cache(cpu, 0, ["1", "Data", "32K", "8", "64", &siblings]);
        tree.cache(cpu, 1, ["1", "Instruction", "64K", "4", "64", &siblings]);
        tree.cache(cpu, 2, ["2", "Unified", "1024K", "8", "64", &siblings]);
        tree.cache(cpu, 3, ["3", "Unified", "32768K", "16", "64", &domain]);
        tree.cpu(cpu, "cpufreq/cpuinfo_max_freq", "3700000");
    }
    tree
}

fn recorded() -> MachineDescription {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xeon-2cpu")).unwrap()
}

#[test]
fn a_recorded_machine_is_read_as_it_is() {
    let machine = recorded();
    assert_eq!(
        (machine.cpus.len(), machine.llcs(), machine.cores()),
        (2, 1, 2)
    );
    assert_eq!(machine.clock.khz(), 2_300_000);
    let shapes: Vec<_> = machine
        .caches
        .iter()
        .map(|cache| (cache.level, cache.size, cache.ways))
        .collect();
    let (l1, l2) = ((1, Bytes::from_kb(48), 12), (2, Bytes::from_mb(2), 16));
    assert_eq!(shapes, [l1, l1, l2, l2, (3, Bytes::from_kb(266_240), 20)]);
    let l3 = machine.caches.last().unwrap();
    assert_eq!(
        l3.size.0 / (u64::from(l3.ways) * l3.line.0),
        212_992,
        "sets, no power of two"
    );
    assert_eq!(machine.memory.huge_page, Bytes::from_mb(2));
}

#[test]
fn threads_domains_and_sockets_are_found() {
    let machine = smt("threads").read().unwrap();
    assert_eq!(
        (machine.sockets(), machine.llcs(), machine.cores()),
        (2, 4, 8)
    );
    assert_eq!(
        machine.siblings(CpuId(3)).collect::<Vec<_>>(),
        [CpuId(3), CpuId(11)]
    );
    let domain: Vec<CpuId> = [2, 3, 10, 11].map(CpuId).into();
    assert_eq!(machine.cpus_of_llc(1).collect::<Vec<_>>(), domain);
    assert_eq!(
        machine.caches.len(),
        8 + 8 + 4,
        "each cache once, instructions left out"
    );
    assert_eq!(machine.memory.size, Bytes::from_mb(64_295));
}

#[test]
fn cpufreq_knows_the_clock_better_than_cpuinfo() {
    assert_eq!(smt("clock").read().unwrap().clock.khz(), 3_700_000);
}

#[test]
fn cpus_that_are_offline_are_left_out() {
    let tree = smt("offline");
    tree.write("sys/devices/system/cpu/online", "0-1,4-5,9");
    let machine = tree.read().unwrap();
    assert_eq!(online(&tree.root).unwrap(), [0, 1, 4, 5, 9].map(CpuId));
    assert_eq!(
        (machine.sockets(), machine.llcs(), machine.cores()),
        (2, 2, 4)
    );
    assert_eq!(
        machine.siblings(CpuId(1)).collect::<Vec<_>>(),
        [CpuId(1), CpuId(4)]
    );
}

#[test]
fn a_virtual_machine_has_costs_of_one_and_another_has_none() {
    let costs = |flags: &str| {
        let tree = smt("virtual");
        tree.write(
            "proc/cpuinfo",
            &format!("processor\t: 0\nflags\t\t: {flags}"),
        );
        tree.read().unwrap().costs
    };
    assert!(costs("fpu vme lahf_lm").is_empty());
    let costs = costs("fpu hypervisor lahf_lm");
    let send = &costs["linux-6.18"]["reschedule_interrupt"];
    assert!(
        send.source.starts_with("taken from epyc-vm: measured"),
        "{}",
        send.source
    );
}

#[test]
fn pages_follow_from_huge_pages() {
    for (huge, page) in [
        (2 << 20, 4 << 10),
        (32 << 20, 16 << 10),
        (512 << 20, 64 << 10),
    ] {
        let tree = smt(&format!("pages-{page}"));
        let path = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
        tree.write(path, &huge.to_string());
        let memory = tree.read().unwrap().memory;
        assert_eq!((memory.page, memory.huge_page), (Bytes(page), Bytes(huge)));
    }
}

#[test]
fn errors_name_the_file_and_the_mend() {
    let cases = [
        (
            "online",
            "sys/devices/system/cpu/online",
            "all",
            "not a list of CPUs",
        ),
        ("empty", "sys/devices/system/cpu/online", "", "names 0 CPUs"),
        (
            "size",
            "sys/devices/system/cpu/cpu3/cache/index2/size",
            "big",
            "not a size",
        ),
        (
            "level",
            "sys/devices/system/cpu/cpu3/cache/index2/level",
            "x",
            "not a number",
        ),
        (
            "memory",
            "proc/meminfo",
            "MemTotal: lots",
            "no number of kB",
        ),
        (
            "huge",
            "sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
            "12345",
            "no page size",
        ),
    ];
    for (name, path, text, problem) in cases {
        let tree = smt(name);
        tree.write(path, text);
        let error = tree.read().unwrap_err();
        assert_eq!(error.path, tree.root.join(path));
        assert!(error.problem.contains(problem), "{error}");
        assert!(error.fix.contains("TOML"), "{error}");
    }
}

#[test]
fn a_machine_that_shows_no_caches_is_refused() {
    let tree = smt("no-caches");
    fs::remove_dir_all(tree.root.join("sys/devices/system/cpu/cpu5/cache")).unwrap();
    let error = tree.read().unwrap_err();
    assert!(error.path.ends_with("cpu5/cache"), "{error}");
    assert!(error.problem.contains("shows no caches"), "{error}");
}

#[test]
fn a_tree_that_is_not_there_is_refused() {
    let error = read(Path::new("no/such/folder")).unwrap_err();
    assert!(
        error.path.ends_with("online") && error.problem.contains("not there"),
        "{error}"
    );
}

#[test]
fn measured_latencies_take_the_place_of_assumed_ones() {
    let mut machine = recorded();
    assert_eq!(machine.sources["cache.l2.latency"], ASSUMED);
    let memory = Duration::from_ns(120);
    let latencies = Latencies {
        l1: Cycles(5),
        l2: Cycles(16),
        l3: Cycles(80),
        memory,
    };
    set_latencies(&mut machine, &latencies, "measured by the walk").unwrap();
    let by_level: Vec<u64> = machine.caches.iter().map(|cache| cache.latency.0).collect();
    assert_eq!(
        (by_level, machine.memory.latency),
        (vec![5, 5, 16, 16, 80], memory)
    );
    assert_eq!(machine.sources["cache.l2.latency"], "measured by the walk");
    assert_eq!(machine.sources["memory.latency"], "measured by the walk");
}

#[test]
fn latencies_that_fall_outwards_change_nothing() {
    let mut machine = recorded();
    let memory = Duration::from_ns(120);
    let latencies = Latencies {
        l1: Cycles(5),
        l2: Cycles(3),
        l3: Cycles(80),
        memory,
    };
    assert!(set_latencies(&mut machine, &latencies, "measured").is_err());
    assert_eq!(machine, recorded());
}

#[test]
fn how_level_2_of_a_recent_core_replaces_follows_from_its_model() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xeon-2cpu");
    let policies = |machine: &MachineDescription| -> Vec<(u8, Replacement)> {
        machine
            .caches
            .iter()
            .map(|cache| (cache.level, cache.replacement))
            .collect()
    };
    let recent = policies(&read(&recorded).unwrap());
    assert!(recent.contains(&(2, Replacement::QuadAge)));
    assert!(
        recent
            .iter()
            .all(|(level, policy)| *level == 2 || *policy == Replacement::Lru)
    );
    let unknown = policies(&smt("unknown-model").read().unwrap());
    assert!(
        unknown
            .iter()
            .all(|(_, policy)| *policy == Replacement::Lru)
    );
}

#[test]
fn capacities_are_those_of_the_kernel_or_else_by_frequency_where_some_cores_are_small() {
    // Of the cores of the first socket, and of the second.
    let read = |name: &str, files: &[(&str, [&str; 2])], small: bool| {
        let tree = smt(name);
        for (file, texts) in files {
            (0..16).for_each(|cpu| tree.cpu(cpu, file, texts[usize::from(cpu / 4 % 2)]));
        }
        if small {
            tree.write("sys/devices/cpu_atom/cpus", "2-3");
        }
        let machine = tree.read().unwrap();
        let ends =
            |all: Vec<u16>| [all.first().copied(), all.last().copied()].map(|one| one.unwrap_or(0));
        (
            ends(machine.capacities),
            ends(machine.priorities),
            machine.left_out.len(),
        )
    };
    let alike = ("cpu_capacity", ["1024"; 2]);
    let unlike = ("cpu_capacity", ["446", "1024"]);
    let highest = ("cpufreq/cpuinfo_max_freq", ["5100000", "3900000"]);
    let none = ([0, 0], [0, 0], 0);
    assert_eq!(read("alike", &[alike], false), none);
    assert_eq!(
        read("arm", &[unlike, highest], false),
        ([446, 1024], [0, 0], 0)
    );
    let hybrid = ([1024, 783], [5100, 3900], 0);
    assert_eq!(read("hybrid", &[alike, highest], true), hybrid);
    // Without small cores, one core that goes higher is no other kind of it.
    assert_eq!(read("favored", &[highest], false), none);
    assert_eq!(read("unknown", &[], true), ([0, 0], [0, 0], 1));
}

/// Two nodes in each socket, as of AMD's NPS2.
#[test]
fn memory_nodes_are_those_of_the_system() {
    let tree = smt("nodes");
    tree.write("sys/devices/system/node/online", "0-3");
    for (node, cpus) in ["0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"]
        .iter()
        .enumerate()
    {
        let far = |to: usize| match (node == to, node / 2 == to / 2) {
            (true, _) => "10",
            (false, true) => "12",
            (false, false) => "32",
        };
        let distances = [0, 1, 2, 3].map(far).join(" ");
        tree.write(&format!("sys/devices/system/node/node{node}/cpulist"), cpus);
        tree.write(
            &format!("sys/devices/system/node/node{node}/distance"),
            &distances,
        );
    }
    let machine = tree.read().unwrap();
    assert_eq!(machine.nodes, [0, 0, 1, 1, 2, 2, 3, 3].repeat(2));
    assert_eq!(machine.node_distances[1], [12, 10, 32, 32]);
}
