//! Laws of machines from hwloc's XML. The files in tests/hwloc were recorded with `lstopo --no-io
//! --of xml` of hwloc 2.9, without what identifies the machine; synthetic ones with `-i "pack:2
//! [numa] l3:2 l2:2 l1d:1 core:1 pu:2"` and the like.

use proptest::prelude::*;
use warmq_config::{Problem, Problems};
use warmq_machine::{ASSUMED, MachineDescription, read_hwloc};
use warmq_units::{Bytes, CpuId};

const XEON_V1: &str = include_str!("../hwloc/xeon-2cpu-v1.xml");
const XEON_V2: &str = include_str!("../hwloc/xeon-2cpu-v2.xml");
const SMT_V1: &str = include_str!("../hwloc/smt-4llc-v1.xml");
const SMT_V2: &str = include_str!("../hwloc/smt-4llc-v2.xml");
const NO_L1: &str = include_str!("../hwloc/no-l1-384cpu-v2.xml");

fn read(text: &str) -> Result<MachineDescription, Problems> {
    read_hwloc("some/folder/server.xml", text)
}

/// The only problem.
fn only(read: Result<MachineDescription, Problems>) -> Problem {
    let mut problems = read.expect_err("something is wrong").list;
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

fn refusal(old: &str, new: &str) -> Problem {
    assert!(SMT_V2.contains(old), "{old}");
    only(read(&SMT_V2.replacen(old, new, 1)))
}

#[test]
fn both_versions_of_the_format_describe_the_same_machine() {
    for (one, two) in [(XEON_V1, XEON_V2), (SMT_V1, SMT_V2)] {
        let (one, two) = (read(one).unwrap(), read(two).unwrap());
        assert_eq!((one.cpus, one.caches), (two.cpus, two.caches));
    }
}

#[test]
fn a_machine_is_read_as_it_is() {
    let machine = read(XEON_V2).unwrap();
    assert_eq!(machine.name, "server");
    let l3 = machine.caches.last().unwrap();
    assert_eq!((l3.size, l3.ways), (Bytes::from_kb(266_240), 20));
    assert_eq!(
        l3.size.0 / (u64::from(l3.ways) * l3.line.0),
        212_992,
        "sets, no power of two"
    );
    let l1 = &machine.caches[0];
    assert_eq!(
        (l1.size, l1.ways),
        (Bytes::from_kb(48), 12),
        "data, not instructions"
    );
}

#[test]
fn threads_domains_and_sockets_are_found() {
    let machine = read(SMT_V2).unwrap();
    assert_eq!(machine.cpus.len(), 16);
    assert_eq!(
        (machine.sockets(), machine.llcs(), machine.cores()),
        (2, 4, 8)
    );
    assert_eq!(
        machine.siblings(CpuId(0)).collect::<Vec<_>>(),
        [CpuId(0), CpuId(8)]
    );
    assert_eq!(machine.memory.size, Bytes(128 << 30));
}

#[test]
fn what_the_file_does_not_have_is_assumed_and_says_so() {
    let machine = read(SMT_V2).unwrap();
    for key in [
        "cache.l1.latency",
        "coherence",
        "memory.latency",
        "cpu.clock",
    ] {
        assert_eq!(machine.sources[key], ASSUMED, "{key}");
    }
    assert!(machine.sources["cache.l3.ways"].starts_with(ASSUMED));
    assert_eq!(machine.caches.last().unwrap().ways, 16);
}

#[test]
fn a_file_without_level_one_gets_one_a_core() {
    let machine = read(NO_L1).unwrap();
    assert_eq!(
        (machine.cpus.len(), machine.llcs(), machine.cores()),
        (384, 24, 192)
    );
    assert_eq!(
        machine
            .caches
            .iter()
            .filter(|cache| cache.level == 1)
            .count(),
        192
    );
    assert_eq!(machine.sources["cache.l1"], ASSUMED);
}

#[test]
fn units_that_are_not_allowed_are_left_out_and_the_others_counted_from_0() {
    let allowed = SMT_V2.replace(
        "allowed_cpuset=\"0x0000ffff\"",
        "allowed_cpuset=\"0x00000e0e\"",
    );
    let machine = read(&allowed).unwrap();
    assert_eq!(machine.cpus.len(), 6);
    assert_eq!(
        (machine.sockets(), machine.llcs(), machine.cores()),
        (1, 2, 3)
    );
}

#[test]
fn a_fully_associative_cache_has_as_many_ways_as_lines_if_that_is_few() {
    let full = SMT_V2.replace("cache_associativity=\"0\"", "cache_associativity=\"-1\"");
    // Such a cache cannot distinguish the lines of more than 64 GB.
    let full = full.replace("68719476736", "17179869184");
    let machine = read(&full).unwrap();
    assert_eq!(
        (machine.caches[0].ways, machine.caches.last().unwrap().ways),
        (512, 16)
    );
}

/// A package of one core for each text: what is above its processing unit, from the outside in.
fn package(cores: &[&str], beside: &str) -> String {
    let core = |(number, caches): (usize, &&str)| {
        let opened = caches.replace("/>", ">");
        let closed = "</object>".repeat(caches.matches("/>").count());
        format!(
            "{opened}<object type=\"Core\" os_index=\"{number}\"><object type=\"PU\" \
             os_index=\"{number}\"/></object>{closed}"
        )
    };
    let cores: String = cores.iter().enumerate().map(core).collect();
    format!(
        "<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\">{cores}\
         </object></object>{beside}</topology>"
    )
}

fn cache(level: u8, size: u64, ways: i64, line: u64) -> String {
    format!(
        "<object type=\"L{level}Cache\" depth=\"{level}\" cache_size=\"{size}\" \
         cache_associativity=\"{ways}\" cache_linesize=\"{line}\" cache_type=\"0\"/>"
    )
}

const SEEN: &str = "hwloc XML";

/// Kinds of processors, by what hwloc says of one core: how their caches are read, and who says so.
#[test]
fn what_was_read_is_never_called_assumed_and_what_was_not_follows_its_neighbours() {
    let others = "assumed: as that of the machine's other caches";
    let kinds = [
        // POWER: no line size and no ways of level 2.
        (
            [cache(2, 512 << 10, 0, 0), cache(1, 32 << 10, 32, 128)],
            [(128, SEEN, SEEN), (128, others, ASSUMED)],
        ),
        (
            [cache(2, 512 << 10, 8, 128), cache(1, 32 << 10, 8, 0)],
            [(128, others, SEEN), (128, SEEN, SEEN)],
        ),
        // Arm by a device tree: sizes and nothing more.
        (
            [cache(2, 512 << 10, 0, 0), cache(1, 64 << 10, 0, 0)],
            [(64, ASSUMED, ASSUMED), (64, ASSUMED, ASSUMED)],
        ),
        // AMD and Intel.
        (
            [cache(2, 1 << 20, 16, 64), cache(1, 48 << 10, 12, 64)],
            [(64, SEEN, SEEN), (64, SEEN, SEEN)],
        ),
        (
            [cache(2, 2 << 20, 16, 64), cache(1, 1 << 12, -1, 64)],
            [(64, SEEN, SEEN), (64, SEEN, SEEN)],
        ),
        // 48 ways of an Opteron do not divide what its probe filter leaves.
        (
            [cache(2, 5 << 20, 48, 64), cache(1, 64 << 10, 2, 64)],
            [(64, SEEN, SEEN), (64, SEEN, ASSUMED)],
        ),
    ];
    for ([l2, l1], wanted) in kinds {
        let text = package(&[&format!("{l2}{l1}")], "");
        let machine = read(&text).unwrap_or_else(|problems| panic!("{text}: {problems}"));
        for (cache, (line, line_by, ways_by)) in machine.caches.iter().zip(wanted) {
            let source = |key: &str| &machine.sources[&format!("cache.l{}{key}", cache.level)];
            assert_eq!(
                (cache.line, source("")),
                (Bytes(line), &SEEN.to_owned()),
                "{text}"
            );
            assert_eq!(source(".line"), line_by, "{text}");
            assert!(
                source(".ways").starts_with(ways_by),
                "{text}: {}",
                source(".ways")
            );
            assert_eq!(source(".latency"), ASSUMED);
        }
    }
}

#[test]
fn a_level_whose_caches_differ_has_the_sources_of_all() {
    let big = cache(2, 1 << 20, 16, 64) + &cache(1, 64 << 10, 4, 64);
    let small = cache(2, 512 << 10, 0, 64) + &cache(1, 32 << 10, 4, 64);
    let machine = read(&package(&[&big, &small], "")).unwrap();
    assert_eq!(machine.sources["cache.l1.ways"], SEEN);
    let ways = &machine.sources["cache.l2.ways"];
    assert!(
        ways.starts_with(ASSUMED) && ways.ends_with("; hwloc XML"),
        "{ways}"
    );
}

#[test]
fn what_a_file_does_not_say_of_memory_and_devices_is_assumed() {
    let machine = read(&package(&[&cache(1, 32 << 10, 8, 64)], "")).unwrap();
    for key in [
        "memory.size",
        "memory.page",
        "memory.huge_page",
        "memory.dma_into_llc",
    ] {
        assert_eq!(machine.sources[key], ASSUMED, "{key}");
    }
    let sized = read(SMT_V2).unwrap();
    assert_eq!(sized.sources["memory.size"], SEEN);
}

#[test]
fn a_level_that_no_cpu_has_is_left_out_of_the_count_and_said() {
    let power8 = cache(3, 8 << 20, 8, 128) + &cache(1, 64 << 10, 8, 128);
    let machine = read(&package(&[&power8], "")).unwrap();
    let levels: Vec<u8> = machine.caches.iter().map(|cache| cache.level).collect();
    assert_eq!(levels, [1, 2]);
    let said = "hwloc XML shows no cache of level 2: level 3 is modelled as level 2.";
    assert_eq!(machine.left_out, [said]);
}

#[test]
fn kinds_of_cpus_and_caches_of_memory_are_said_to_be_left_out() {
    let kind = |set: &str, name: &str| {
        format!("<cpukind cpuset=\"{set}\"><info name=\"CoreType\" value=\"{name}\"/></cpukind>")
    };
    let core = cache(1, 32 << 10, 8, 64);
    let left_out = |beside: &str| read(&package(&[&core, &core], beside)).unwrap().left_out;
    let kinds = kind("0x1", "IntelAtom") + &kind("0x2", "IntelCore");
    let said = "hwloc XML shows 2 kinds of CPUs by <cpukind> (IntelAtom, IntelCore), which are \
                modelled as equally fast.";
    assert_eq!(left_out(&kinds), [said]);
    // One kind is no difference.
    assert_eq!(left_out(&kind("0x3", "IntelCore")), [""; 0]);
    let beside = "<object type=\"MemCache\" cache_size=\"17179869184\"/>";
    assert!(left_out(beside)[0].contains("memory-side caches (MemCache: 1)"));
}

/// Two cores under a cache each, and what a file says of their kinds.
fn of_kinds(kinds: &[(&str, &[(&str, &str)])]) -> String {
    let core = cache(1, 32 << 10, 8, 64);
    let kind = |(set, infos): &(&str, &[(&str, &str)])| {
        let info =
            |(name, value): &(&str, &str)| format!("<info name=\"{name}\" value=\"{value}\"/>");
        let infos: String = infos.iter().map(info).collect();
        format!("<cpukind cpuset=\"{set}\">{infos}</cpukind>")
    };
    let kinds: String = kinds.iter().map(kind).collect();
    package(&[&core, &core], &kinds)
}

#[test]
fn capacities_are_those_of_the_kernel_or_else_by_frequency() {
    let of = |kinds: &[(&str, &[(&str, &str)])]| {
        let machine = read(&of_kinds(kinds)).unwrap();
        (machine.capacities, machine.priorities)
    };
    let arm: [(&str, &[(&str, &str)]); 2] = [
        (
            "0x1",
            &[("LinuxCapacity", "446"), ("FrequencyMaxMHz", "1400")],
        ),
        (
            "0x2",
            &[("LinuxCapacity", "1024"), ("FrequencyMaxMHz", "2000")],
        ),
    ];
    assert_eq!(of(&arm), (vec![446, 1024], vec![]));
    // A kernel with SMT knows no capacities, and prefers the CPUs that go higher.
    let hybrid: [(&str, &[(&str, &str)]); 2] = [
        (
            "0x1",
            &[("LinuxCapacity", "1024"), ("FrequencyMaxMHz", "3900")],
        ),
        (
            "0x2",
            &[("LinuxCapacity", "1024"), ("FrequencyMaxMHz", "5100")],
        ),
    ];
    assert_eq!(of(&hybrid), (vec![783, 1024], vec![3900, 5100]));
    let machine = read(&of_kinds(&hybrid)).unwrap();
    assert!(machine.sources["topology.capacities"].contains("the highest frequencies"));
    assert_eq!(machine.left_out, [""; 0]);
    // Of one CPU, it says nothing.
    assert_eq!(of(&arm[..1]), (vec![], vec![]));
    // All are alike.
    assert_eq!(
        of(&[("0x3", &[("LinuxCapacity", "512")])]),
        (vec![], vec![])
    );
}

/// Four CPUs of a package in two nodes, as of AMD's NPS2 or Intel's SNC2.
#[test]
fn memory_nodes_below_a_package_are_read_with_their_distances() {
    let core = cache(1, 32 << 10, 8, 64);
    let node = |number: u8, set: &str| {
        format!("<object type=\"NUMANode\" os_index=\"{number}\" cpuset=\"{set}\"/>")
    };
    let far = "<distances2 type=\"NUMANode\" nbobjs=\"2\" kind=\"5\" indexing=\"os\">\
               <indexes length=\"4\">0 1 </indexes><u64values length=\"12\">10 12 12 10 \
               </u64values></distances2>";
    let of = |nodes: &str| read(&package(&[&core, &core, &core, &core], nodes)).unwrap();
    let split = node(0, "0x3") + &node(1, "0xc") + far;
    let machine = of(&split);
    assert_eq!(
        (machine.nodes.clone(), machine.sockets()),
        (vec![0, 0, 1, 1], 1)
    );
    assert_eq!(machine.node_distances, [[10, 12], [12, 10]]);
    assert_eq!(machine.distance(CpuId(0), CpuId(3)), 12);
    // Distances that are none of ACPI's are not known, as is a node of half a core.
    let alike = of(&split.replace("10 12 12 10", "10 10 10 10"));
    assert_eq!((alike.nodes(), alike.node_distances.len()), (2, 0));
    // Nor are nodes of which a shared cache has parts.
    let cut = SMT_V2
        .replace(
            "os_index=\"0\" cpuset=\"0x00000f0f\"",
            "os_index=\"0\" cpuset=\"0x00000505\"",
        )
        .replace(
            "os_index=\"1\" cpuset=\"0x0000f0f0\"",
            "os_index=\"1\" cpuset=\"0x0000fafa\"",
        );
    assert!(cut.contains("NUMANode\" os_index=\"0\" cpuset=\"0x00000505\""));
    assert_eq!(read(&cut).unwrap().nodes, [0; 0]);
    // A node that is the package is no other, and one without CPUs is none.
    let whole = of(&(node(0, "0xf") + &node(1, "0x0")));
    assert_eq!((whole.nodes.len(), whole.nodes()), (0, 1));
}

#[test]
fn kinds_of_cpus_that_make_no_sense_are_refused() {
    for (kinds, said) in [
        (of_kinds(&[("0xzz", &[])]), "a set of them"),
        (
            of_kinds(&[("0x1", &[("LinuxCapacity", "0")])]),
            "LinuxCapacity is `0`",
        ),
        (
            of_kinds(&[("0x1", &[("FrequencyMaxMHz", "fast")])]),
            "FrequencyMaxMHz is `fast`",
        ),
    ] {
        let error = read(&kinds).unwrap_err().to_string();
        assert!(
            error.contains(said) && error.contains("<cpukind>"),
            "{error}"
        );
    }
}

#[test]
fn errors_name_the_element() {
    let l3 = "<object type=\"L3Cache\" gp_index=\"12\">";
    for (old, new, key, problem) in [
        (
            "cache_size=\"33554432\"",
            "cache_size=\"big\"",
            l3,
            "cache_size=\"big\" is not a number",
        ),
        (
            "cache_size=\"33554432\"",
            "cache_size=\"-5\"",
            l3,
            "negative",
        ),
        ("cache_size=\"33554432\"", "", l3, "without a size"),
        ("depth=\"3\"", "depth=\"900\"", l3, "without its level"),
        (
            "type=\"PU\" os_index=\"8\"",
            "type=\"PU\" os_index=\"0\"",
            "<object type=\"PU\" os_index=\"0\" gp_index=\"3\">",
            "PU 0 occurs twice",
        ),
        (
            "cache_linesize=\"64\"",
            "cache_linesize=\"48\"",
            "cache.l3.line",
            "power of two",
        ),
    ] {
        let error = refusal(old, new);
        assert_eq!(error.key, key, "{error}");
        assert!(error.what.contains(problem), "{error}");
    }
    assert_eq!(refusal("cache_size=\"33554432\"", "").line, Some(10));
}

#[test]
fn what_is_no_topology_is_refused() {
    assert!(only(read("no XML")).what.contains("not XML"));
    assert_eq!(only(read("<html/>")).key, "<html>");
    assert!(only(read("<topology/>")).what.contains("no cache"));
}

proptest! {
    #[test]
    fn a_damaged_file_is_refused_or_gives_a_machine_that_holds(
        at in 0..SMT_V2.len(), len in 0_usize..40, with in "[0-9a-zA-Z\"<>/=, -]{0,12}",
    ) {
        let end = (at + len).min(SMT_V2.len());
        let text = format!("{}{with}{}", &SMT_V2[..at], &SMT_V2[end..]);
        if let Ok(machine) = read(&text) {
            prop_assert_eq!(machine.check(), Ok(()));
        }
    }
}
