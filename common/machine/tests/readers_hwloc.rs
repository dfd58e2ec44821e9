//! Laws of machines from hwloc's XML. The files in tests/hwloc were recorded with `lstopo --no-io
//! --of xml` of hwloc 2.9, without what identifies the machine; synthetic ones with `-i "pack:2
//! [numa] l3:2 l2:2 l1d:1 core:1 pu:2"` and the like.

use proptest::prelude::*;
use warmq_config::{Problem, Problems};
use warmq_machine::{ASSUMED, MachineDescription, read_hwloc};
use warmq_units::{Bytes, CpuId};

const XEON_V1: &str = include_str!("hwloc/xeon-2cpu-v1.xml");
const XEON_V2: &str = include_str!("hwloc/xeon-2cpu-v2.xml");
const SMT_V1: &str = include_str!("hwloc/smt-4llc-v1.xml");
const SMT_V2: &str = include_str!("hwloc/smt-4llc-v2.xml");
const NO_L1: &str = include_str!("hwloc/no-l1-384cpu-v2.xml");

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
fn what_the_file_does_not_tell_is_assumed_and_says_so() {
    let machine = read(SMT_V2).unwrap();
    for key in ["cache.l1.latency", "coherence", "memory.latency", "cpu"] {
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
