//! Laws of machines in TOML: what is rejected, at which place and with which help.

use proptest::prelude::*;
use warmq_config::{Problem, Problems};
use warmq_machine::{MachineDescription, NOT_GIVEN, builtin, read_toml};
use warmq_units::{Bytes, CpuId, Duration};

const SMT: &str = r#"
name = "smt"
[cpu]
clock = "2.4GHz"
smt_speed_permille = 610
[topology]
sockets = 2
llcs_per_socket = 2
cores_per_llc = 2
threads_per_core = 2
[[cache]]
level = 1
per = "core"
size = "32KB"
ways = 8
line = 64
latency_cycles = 4
[[cache]]
level = 2
per = "llc"
size = "1MB"
ways = 16
line = 64
latency_cycles = 20
[coherence]
kind = "directory"
same_domain_ns = 20
other_domain_ns = 80.5
other_socket_ns = 150
line_transfer_ns = 0.25
[memory]
size = "1GB"
latency_ns = 100
[costs."linux-2.4"]
goodness = 12
wakeup = { cycles = 300, source = "measured by me" }
[[steal]]
every = "10ms"
span = "50us"
[[steal]]
every = "1s"
span = "2ms"
source = "measured by me"
"#;

fn read(text: &str) -> Result<MachineDescription, Problems> {
    read_toml("machine.toml", text)
}

/// The problems of `SMT` with `old` replaced by `new`.
fn refusal(old: &str, new: &str) -> Vec<Problem> {
    assert!(SMT.contains(old), "{old}");
    let text = SMT.replacen(old, new, 1);
    read(&text).expect_err(new).list
}

/// The only problem.
fn only(mut problems: Vec<Problem>) -> Problem {
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

fn tiny() -> MachineDescription {
    read(builtin("tiny-2cpu").unwrap()).unwrap()
}

#[test]
fn nodes_have_distances_and_cpus_priorities() {
    let machine = read(SMT).unwrap();
    assert_eq!((machine.nodes(), machine.priority(CpuId(5))), (2, 0));
    let distance = |machine: &MachineDescription| {
        [0, 1, 4, 15].map(|cpu| machine.distance(CpuId(0), CpuId(cpu)))
    };
    assert_eq!(distance(&machine), [10, 10, 20, 20]);

    let priorities: Vec<u16> = (100..116).collect();
    let keys = format!("priorities = {priorities:?}\ndistances = [[10, 32], [32, 10]]");
    let text = SMT.replacen("[[cache]]", &format!("{keys}\n[[cache]]"), 1);
    let machine = read(&text).unwrap();
    assert_eq!(distance(&machine), [10, 10, 32, 32]);
    assert_eq!(machine.priority(CpuId(5)), 105);
    let back = read(&machine.to_toml()).unwrap();
    assert_eq!(back.priorities, machine.priorities);
    assert_eq!(back.node_distances, machine.node_distances);

    let half = warmq_machine::Overrides::default().first_cpus(4);
    let half = machine.with_overrides(&half).unwrap();
    assert_eq!(
        (
            half.nodes(),
            half.node_distances.len(),
            half.priorities.len()
        ),
        (1, 1, 4)
    );
}

#[test]
fn a_cache_is_of_cpus_that_there_are() {
    let of = |cpus: &str| {
        let text = SMT.replacen("level = 1\n", &format!("level = 1\ncpus = {cpus}\n"), 1);
        only(read(&text).unwrap_err().list)
    };
    let beyond = of("[0, 16]");
    assert!(beyond.help.contains("15"), "{}", beyond.help);
}

#[test]
fn the_first_cpus_have_the_distances_of_their_own_nodes() {
    let keys = "sockets = [2, 2, 0, 0, 1, 1]\ncores = [0, 1, 2, 3, 4, 5]\n\
                llcs = [2, 2, 0, 0, 1, 1]\n\
                distances = [[10, 11, 40], [11, 10, 12], [40, 12, 10]]\n";
    let text = SMT
        .replacen("sockets = 2\n", keys, 1)
        .replacen("llcs_per_socket = 2\n", "", 1)
        .replacen("cores_per_llc = 2\n", "", 1)
        .replacen("threads_per_core = 2\n", "", 1)
        .replacen("smt_speed_permille = 610\n", "", 1);
    let machine = read(&text).unwrap();
    assert_eq!(machine.distance(CpuId(0), CpuId(2)), 40);
    let first = warmq_machine::Overrides::default().first_cpus(4);
    let first = machine.with_overrides(&first).unwrap();
    assert_eq!(first.distance(CpuId(0), CpuId(2)), 40);
    assert_eq!(first.node_distances, [[10, 40], [40, 10]]);
}

#[test]
fn memory_nodes_may_be_other_than_sockets() {
    let nodes = [0, 0, 1, 1, 2, 2, 3, 3].repeat(2);
    let with = |keys: &str| {
        let text = SMT.replacen("[[cache]]", &format!("{keys}\n[[cache]]"), 1);
        read(&text)
    };
    let machine = with(&format!("nodes = {nodes:?}")).unwrap();
    assert_eq!((machine.nodes(), machine.sockets()), (4, 2));
    assert_eq!([0, 2, 12].map(|cpu| machine.node(CpuId(cpu))), [0, 1, 2]);
    assert_eq!(machine.distance(CpuId(0), CpuId(2)), 20);
    let back = read(&machine.to_toml()).unwrap();
    assert_eq!(back.nodes, machine.nodes);

    for (nodes, said) in [
        (
            [1, 1, 0, 0, 2, 2, 3, 3].repeat(2),
            "in the order of their first CPUs",
        ),
        ([0, 0, 2, 2, 3, 3, 4, 4].repeat(2), "without a gap"),
        ([[0; 8], [1; 8]].concat(), "all threads of a core"),
        (
            [0, 0, 0, 1, 1, 1, 1, 1].repeat(2),
            "put all CPUs of a shared cache into one",
        ),
        (vec![0, 1], "give each CPU one"),
    ] {
        let problem = only(with(&format!("nodes = {nodes:?}")).unwrap_err().list);
        assert_eq!(problem.key, "topology.nodes");
        assert!(problem.help.contains(said), "{}", problem.help);
    }
}

#[test]
fn cpus_have_capacities_of_which_kernels_learn_unless_they_prefer_some() {
    let machine = read(SMT).unwrap();
    assert_eq!(
        (machine.capacity(CpuId(5)), machine.knows_capacities()),
        (1024, false)
    );

    let with = |keys: &str| {
        let text = SMT.replacen("[[cache]]", &format!("{keys}\n[[cache]]"), 1);
        read(&text).unwrap()
    };
    let capacities = [[446; 4], [1024; 4], [446; 4], [1024; 4]].concat();
    let keys = format!("capacities = {capacities:?}");
    let machine = with(&keys);
    assert_eq!([3, 4].map(|cpu| machine.capacity(CpuId(cpu))), [446, 1024]);
    assert!(machine.knows_capacities());
    let back = read(&machine.to_toml()).unwrap();
    assert_eq!(back.capacities, machine.capacities);

    let preferred = with(&format!("{keys}\npriorities = {:?}", [7; 16]));
    assert!(!preferred.knows_capacities());

    let first = |cpus| {
        let few = warmq_machine::Overrides::default().first_cpus(cpus);
        machine.with_overrides(&few)
    };
    assert_eq!(first(5).unwrap().capacities, [446, 446, 446, 446, 1024]);
    assert_eq!(
        first(4).unwrap().capacities,
        [446; 4],
        "the others are offline"
    );
}

#[test]
fn lists_that_say_nothing_are_refused() {
    for (key, value) in [
        ("distances", "[]"),
        ("priorities", "[]"),
        ("capacities", "[]"),
        ("distances", "[[], []]"),
    ] {
        let with = format!("{key} = {value}\n[[cache]]");
        for problem in refusal("[[cache]]", &with) {
            let said = (problem.what.as_str(), problem.help.as_str());
            assert_eq!(said, ("nothing is listed", "leave the key out"));
        }
    }
}

#[test]
fn what_a_file_leaves_out_is_as_in_the_machine_that_it_is_like() {
    let own = "name = \"two\"\nlike = \"tiny-1cpu\"\n[topology]\nsockets = 2\nsource = \"mine\"";
    let (two, base) = (
        read(own).unwrap(),
        read(builtin("tiny-1cpu").unwrap()).unwrap(),
    );
    assert_eq!((two.cpus.len(), two.clock), (2, base.clock));
    assert_eq!((&two.costs, two.memory), (&base.costs, base.memory));
    assert_eq!(two.sources["topology"], "mine");
    assert_eq!(two.sources["memory"], base.sources["memory"]);

    let unknown = read("name = \"x\"\nlike = \"tiny\"").unwrap_err();
    let said = only(unknown.list);
    assert_eq!((said.key.as_str(), said.line), ("like", Some(2)));
    assert!(said.help.contains("tiny-1cpu"), "{}", said.help);
    let nameless = only(read("like = \"tiny-1cpu\"").unwrap_err().list);
    assert_eq!(nameless.what, "`name` is missing");
    // What is wrong in the base with what the file says is said of the base's text.
    let smt = "name = \"x\"\nlike = \"tiny-1cpu\"\n[topology]\nthreads_per_core = 2";
    let said = only(read(smt).unwrap_err().list);
    assert_eq!(&*said.source.name, "tiny-1cpu.toml");
}

#[test]
fn cpus_are_numbered_as_linux_numbers_them() {
    let machine = read(SMT).unwrap();
    assert_eq!(machine.cpus.len(), 16);
    assert_eq!(
        machine.siblings(CpuId(3)).collect::<Vec<_>>(),
        [CpuId(3), CpuId(11)]
    );
    let llc: Vec<CpuId> = [2, 3, 10, 11].map(CpuId).into();
    assert_eq!(machine.cpus_of_llc(1).collect::<Vec<_>>(), llc);
    assert_eq!(
        (machine.sockets(), machine.llcs(), machine.cores()),
        (2, 4, 8)
    );
    let levels: Vec<u8> = machine
        .caches_of(CpuId(10))
        .map(|cache| cache.level)
        .collect();
    assert_eq!(levels, [1, 2]);
    assert_eq!(
        machine
            .caches
            .iter()
            .filter(|cache| cache.level == 2)
            .count(),
        4
    );
    assert_eq!(machine.caches_of(CpuId(10)).last().unwrap().cpus, llc);
}

/// Who shares a core stays the same, whatever the numbers are.
#[test]
fn cpus_can_be_numbered_otherwise() {
    let with = |numbers: &str| {
        let both = format!("threads_per_core = 2\nnumbers = {numbers}");
        read(&SMT.replacen("threads_per_core = 2", &both, 1)).unwrap()
    };
    let siblings = |machine: &MachineDescription, cpu| -> Vec<u16> {
        machine.siblings(CpuId(cpu)).map(|cpu| cpu.0).collect()
    };
    let adjacent = with("\"adjacent-siblings\"");
    assert_eq!(siblings(&adjacent, 7), [6, 7]);
    let llc: Vec<CpuId> = [4, 5, 6, 7].map(CpuId).into();
    assert_eq!(adjacent.cpus_of_llc(1).collect::<Vec<_>>(), llc);
    assert_sound(&adjacent);

    let listed = with("[9, 1, 0, 2, 3, 4, 5, 6, 7, 8, 15, 14, 13, 12, 11, 10]");
    assert_eq!(
        (siblings(&listed, 0), siblings(&listed, 2)),
        (vec![0, 1], vec![2, 9])
    );
    let firsts: Vec<CpuId> = listed.caches.iter().map(|cache| cache.cpus[0]).collect();
    assert_eq!(listed.caches.len(), read(SMT).unwrap().caches.len());
    assert_eq!(firsts[0], CpuId(0));
    assert_sound(&listed);

    let machine = read(SMT).unwrap();
    let same: Vec<String> = (0..16).map(|cpu| cpu.to_string()).collect();
    assert_eq!(with(&format!("[{}]", same.join(", "))), machine);
}

#[test]
fn numbers_are_read_exactly_and_what_is_left_out_has_a_default() {
    let machine = read(SMT).unwrap();
    let warmq_machine::Coherence::Directory {
        other_domain,
        line_transfer,
        ..
    } = machine.coherence
    else {
        panic!("a directory")
    };
    assert_eq!(
        (other_domain, line_transfer),
        (Duration(80_500), Duration(250))
    );
    assert_eq!(machine.clock.khz(), 2_400_000);
    assert_eq!((machine.title.as_str(), machine.miss_overlap), ("smt", 1));
    assert_eq!(machine.memory.page, Bytes::from_kb(4));
    assert_eq!(
        (machine.smt_speed, machine.memory.dma_into_llc),
        (610, false)
    );
    let steals: Vec<(Duration, Duration)> = machine
        .steals
        .iter()
        .map(|steal| (steal.every, steal.span))
        .collect();
    let us = Duration::from_us;
    assert_eq!(steals, [(us(10_000), us(50)), (us(1_000_000), us(2_000))]);
    assert_eq!(machine.sources["steal.0"], NOT_GIVEN);
    assert_eq!(machine.sources["steal.1"], "measured by me");
}

#[test]
fn one_cache_of_the_whole_machine_is_one_domain() {
    let text = SMT
        .replacen("llcs_per_socket = 2", "llcs_per_socket = 1", 1)
        .replacen("per = \"llc\"", "per = \"machine\"", 1);
    let machine = read(&text).unwrap();
    assert_eq!((machine.sockets(), machine.llcs()), (2, 1));
    assert_eq!(machine.caches.last().unwrap().cpus.len(), 8);
}

#[test]
fn a_source_that_is_missing_is_shown_as_not_given() {
    let machine = read(SMT).unwrap();
    assert_eq!(machine.sources["cache.l2"], NOT_GIVEN);
    let costs = &machine.costs["linux-2.4"];
    assert_eq!(
        (
            costs["goodness"].cycles.0,
            costs["goodness"].source.as_str()
        ),
        (12, NOT_GIVEN)
    );
    assert_eq!(costs["wakeup"].source, "measured by me");
}

/// The text replaced, its replacement, the key and line in the error, and words of the help.
const REFUSED: &[(&str, &str, &str, usize, &str)] = &[
    (
        "ways = 16",
        "ways = 17",
        "cache[1].ways",
        22,
        "give 16 ways",
    ),
    (
        "ways = 16",
        "ways = 0",
        "cache[1].ways",
        22,
        "direct-mapped",
    ),
    (
        "ways = 16",
        "ways = -1",
        "cache[1].ways",
        22,
        "whole number",
    ),
    (
        "ways = 16",
        "wais = 16",
        "cache[1].wais",
        22,
        "did you mean `ways`?",
    ),
    ("ways = 16", "", "cache[1]", 18, "add ways"),
    (
        "ways = 16",
        "ways = \"16\"",
        "cache[1].ways",
        22,
        "whole number",
    ),
    ("line = 64", "line = 48", "cache[0].line", 16, "32 or 64"),
    (
        "line = 64",
        "line = 32",
        "cache[1].line",
        23,
        "same line size",
    ),
    ("line = 64", "line = 0", "cache[0].line", 16, "32 or 64"),
    (
        "size = \"1MB\"",
        "size = \"1 apple\"",
        "cache[1].size",
        21,
        "512KB",
    ),
    (
        "size = \"1MB\"",
        "size = \"65GB\"",
        "cache[1].size",
        21,
        "up to 64GB",
    ),
    (
        "size = \"1MB\"",
        "size = 0",
        "cache[1].size",
        21,
        "up to 64GB",
    ),
    (
        "level = 1",
        "level = 3",
        "cache[1].level",
        19,
        "without a gap",
    ),
    (
        "level = 1",
        "level = 2",
        "cache[1].level",
        19,
        "describe each level once",
    ),
    (
        "level = 2",
        "level = 3",
        "cache[1].level",
        19,
        "without a gap",
    ),
    (
        "per = \"llc\"",
        "per = \"lcl\"",
        "cache[1].per",
        20,
        "did you mean `llc`?",
    ),
    (
        "per = \"llc\"",
        "per = \"core\"",
        "topology",
        6,
        "outermost cache",
    ),
    (
        "per = \"core\"",
        "per = \"cpu\"",
        "cache[0].per",
        13,
        "per core",
    ),
    (
        "per = \"core\"",
        "per = \"socket\"",
        "cache[1].per",
        20,
        "at least the CPUs",
    ),
    (
        "latency_cycles = 20",
        "latency_cycles = 3",
        "cache[1].latency_cycles",
        24,
        "load-to-use",
    ),
    (
        "latency_cycles = 4",
        "latency_cycles = 0",
        "cache[0].latency_cycles",
        17,
        "at least 1",
    ),
    (
        "clock = \"2.4GHz\"",
        "clock = \"0MHz\"",
        "cpu.clock",
        4,
        "550MHz",
    ),
    (
        "clock = \"2.4GHz\"",
        "clock = \"fast\"",
        "cpu.clock",
        4,
        "550MHz",
    ),
    (
        "clock = \"2.4GHz\"",
        "clock = \"900GHz\"",
        "cpu.clock",
        4,
        "100GHz",
    ),
    (
        "smt_speed_permille = 610",
        "",
        "cpu",
        3,
        "smt_speed_permille = 610",
    ),
    (
        "smt_speed_permille = 610",
        "smt_speed_permille = 0",
        "cpu.smt_speed_permille",
        5,
        "two busy siblings",
    ),
    (
        "smt_speed_permille = 610",
        "smt_speed_permille = 1001",
        "cpu.smt_speed_permille",
        5,
        "from 0 to 1000",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 1",
        "cpu.smt_speed_permille",
        5,
        "leave the key out",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\nnumbers = [0, 1]",
        "topology.numbers",
        11,
        "each number from 0 to 15 once",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\nnumbers = [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]",
        "topology.numbers",
        11,
        "each number from 0 to 15 once",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\nnumbers = [16]",
        "topology.numbers",
        11,
        "a whole number from 0 to 15",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\npriorities = [1, 2]",
        "topology.priorities",
        11,
        "give each CPU one",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ndistances = [[10, 20]]",
        "topology.distances",
        11,
        "give a list for each node",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ndistances = [[10, 21], [21, 11]]",
        "topology.distances",
        11,
        "10 for a node itself",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ndistances = [[10, 21], [22, 10]]",
        "topology.distances",
        11,
        "the same distance both ways",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ndistances = [[10, 255], [255, 10]]",
        "topology.distances",
        11,
        "11 to 254",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\npriorities = [70000]",
        "topology.priorities",
        11,
        "from 0 to 65535",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ncores = [0, 1]",
        "topology.threads_per_core",
        10,
        "leave out `cores`",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ncapacities = [1024, 512]",
        "topology.capacities",
        11,
        "give each CPU one",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ncapacities = [0,1024,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "topology.capacities",
        11,
        "give 1 to 1024",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ncapacities = [1025,1024,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "topology.capacities",
        11,
        "give 1 to 1024",
    ),
    (
        "threads_per_core = 2",
        "threads_per_core = 2\ncapacities = [512,512,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
        "topology.capacities",
        11,
        "until the fastest CPU has 1024",
    ),
    (
        "ways = 8",
        "ways = 8\ninclusion = \"victim\"",
        "cache[0].inclusion",
        16,
        "leave the key out",
    ),
    (
        "ways = 16",
        "ways = 16\ninclusion = \"exclusive\"",
        "cache[1].inclusion",
        23,
        "did you mean `inclusive`?",
    ),
    (
        "sockets = 2",
        "sockets = 0",
        "topology.sockets",
        7,
        "from 1",
    ),
    (
        "sockets = 2",
        "sockets = 2000",
        "topology",
        6,
        "at most 4096",
    ),
    (
        "sockets = 2",
        "sockets = 9223372036854775807",
        "topology",
        6,
        "at most 4096",
    ),
    (
        "size = \"1GB\"",
        "size = \"512KB\"",
        "memory.size",
        32,
        "1MB",
    ),
    (
        "latency_ns = 100",
        "latency_ns = 5",
        "memory.latency_ns",
        33,
        "to the data",
    ),
    (
        "latency_ns = 100",
        "latency_ns = 5e3",
        "memory.latency_ns",
        33,
        "decimal",
    ),
    (
        "latency_ns = 100",
        "latency_ns = 1_000_001",
        "memory.latency_ns",
        33,
        "millisecond",
    ),
    (
        "kind = \"directory\"",
        "kind = \"bus\"",
        "coherence.same_domain_ns",
        27,
        "directory",
    ),
    (
        "same_domain_ns = 20",
        "",
        "coherence",
        25,
        "add same_domain_ns",
    ),
    (
        "goodness = 12",
        "goodness = 99999999999",
        "costs.\"linux-2.4\".goodness",
        35,
        "at most",
    ),
    (
        "goodness = 12",
        "goodness = \"12\"",
        "costs.\"linux-2.4\".goodness",
        35,
        "whole number",
    ),
    ("span = \"2ms\"", "", "steal[1]", 40, "add span = "),
    (
        "span = \"2ms\"",
        "span = \"600ms\"",
        "steal[1].span",
        42,
        "at most half",
    ),
    (
        "span = \"50us\"",
        "span = 50",
        "steal[0].span",
        39,
        "a time such as",
    ),
    (
        "every = \"10ms\"",
        "every = \"10ns\"",
        "steal[0].every",
        38,
        "give 1us",
    ),
    ("name = \"smt\"", "name = \"a b\"", "name", 2, "letters"),
    ("name = \"smt\"", "name = 7", "name", 2, "in quotes"),
    (
        "[memory]",
        "[memoir]",
        "memoir",
        31,
        "did you mean `memory`?",
    ),
];

#[test]
fn what_is_refused_is_blamed_on_its_key_with_help() {
    for (old, new, key, line, help) in REFUSED {
        let problems = refusal(old, new);
        let meant = |problem: &Problem| {
            problem.key == *key && problem.line == Some(*line) && problem.help.contains(help)
        };
        assert!(problems.iter().any(meant), "{new}: {problems:?}");
    }
}

#[test]
fn one_reading_finds_all_that_is_wrong() {
    let text = SMT
        .replacen("clock", "clok", 1)
        .replacen("ways = 16", "ways = \"many\"", 1)
        .replacen("kind = \"directory\"", "kind = \"ring\"", 1);
    let problems = read(&text).unwrap_err();
    let keys: Vec<&str> = problems
        .list
        .iter()
        .map(|problem| problem.key.as_str())
        .collect();
    let expected = ["cpu", "cpu.clok", "cache[1].ways", "coherence.kind"];
    assert_eq!(keys, expected, "{problems}");
}

#[test]
fn the_span_of_an_error_covers_the_value() {
    let error = only(refusal("ways = 16", "ways = 17"));
    assert_eq!(&error.source.text[error.span], "17");
}

#[test]
fn a_tree_needs_a_power_of_two_of_ways() {
    let with = |size, ways| {
        let size = format!("size = \"{size}\"");
        let ways = format!("ways = {ways}\nreplacement = \"tree-plru\"");
        read(
            &SMT.replacen("size = \"1MB\"", &size, 1)
                .replacen("ways = 16", &ways, 1),
        )
    };
    assert!(with("1MB", 8).is_ok());
    let error = only(with("768KB", 12).unwrap_err().list);
    assert_eq!(
        (error.key.as_str(), error.line),
        ("cache[1].replacement", Some(23)),
        "{error}"
    );
}

#[test]
fn text_that_is_not_toml_is_blamed_on_its_place() {
    let error = only(read("name = \"x\"\n[cpu\n").unwrap_err().list);
    assert_eq!(
        (&*error.source.name, error.line),
        ("machine.toml", Some(2)),
        "{error}"
    );
}

#[test]
fn an_error_prints_file_line_key_problem_and_help() {
    assert_eq!(
        only(refusal("ways = 16", "ways = 17")).to_string(),
        "machine.toml:22: `cache[1].ways`: 17 ways of 64 B lines do not divide 1 MB; \
         give 16 ways, say, or another size"
    );
}

#[test]
fn a_machine_without_cpus_or_with_places_that_have_gaps_is_refused() {
    let mut machine = tiny();
    machine.cpus.clear();
    assert_eq!(machine.check().unwrap_err().key, "topology");
    let mut machine = tiny();
    machine.cpus[1].core = 7;
    assert_eq!(machine.check().unwrap_err().key, "topology");
}

#[test]
fn a_cache_of_cpus_that_do_not_exist_is_refused() {
    let mut machine = tiny();
    machine.caches[0].cpus = vec![CpuId(9)];
    let flaw = machine.check().unwrap_err();
    assert_eq!(flaw.key, "cache.l1.sharing");
    assert!(flaw.problem.contains("cpu9"), "{flaw}");
}

/// Checks the invariant that the models rely on, independently of the code under test.
fn assert_sound(machine: &MachineDescription) {
    assert!((1..=4096).contains(&machine.cpus.len()));
    for cpu in machine.cpu_ids() {
        let chain: Vec<_> = machine.caches_of(cpu).collect();
        assert!(!chain.is_empty());
        for (index, cache) in chain.iter().enumerate() {
            assert_eq!(usize::from(cache.level), index + 1);
            assert_eq!(cache.size.0 % (u64::from(cache.ways) * cache.line.0), 0);
            assert!(cache.line.0.is_power_of_two() && cache.line == machine.line());
            let outer = chain.get(index + 1);
            assert!(outer.is_none_or(|outer| cache.cpus.iter().all(|c| outer.cpus.contains(c))));
        }
        let llc: Vec<CpuId> = machine.cpus_of_llc(machine.place(cpu).llc).collect();
        assert_eq!(chain[chain.len() - 1].cpus, llc);
    }
}

/// One of the values a person might write for a key, right or wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("0".into()),
        Just("-1".into()),
        Just("\"core\"".into()),
        Just("\"machine\"".into()),
        Just("\"32KB\"".into()),
        Just("true".into()),
        Just("[1, 2]".into()),
        Just("{ a = 1 }".into()),
        (0_u32..8).prop_map(|shift| (1 << shift).to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "\\PC{0,8}".prop_map(|text| format!("{text:?}")),
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn what_is_accepted_is_sound(
        sockets in 1_u64..4, llcs in 1_u64..4, cores in 1_u64..4, threads in 1_u64..3,
        edits in prop::collection::vec((2_usize..34, value()), 0..3),
    ) {
        let text = SMT
            .replacen("sockets = 2", &format!("sockets = {sockets}"), 1)
            .replacen("llcs_per_socket = 2", &format!("llcs_per_socket = {llcs}"), 1)
            .replacen("cores_per_llc = 2", &format!("cores_per_llc = {cores}"), 1)
            .replacen("threads_per_core = 2", &format!("threads_per_core = {threads}"), 1);
        let text = match threads {
            1 => text.replacen("smt_speed_permille = 610", "", 1),
            _ => text,
        };
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let unedited = edits.is_empty();
        for (line, value) in edits {
            if let Some((key, _)) = lines[line].split_once('=') {
                lines[line] = format!("{key}= {value}");
            }
        }
        match read(&lines.join("\n")) {
            Ok(machine) => assert_sound(&machine),
            Err(problems) => {
                prop_assert!(!unedited, "{}", problems);
                for problem in &problems.list {
                    prop_assert!(problem.line.is_some(), "{}", problem);
                    let place = problem.source.text.get(problem.span.clone());
                    prop_assert!(place.is_some(), "{}", problem);
                }
            }
        }
    }
}
