//! A machine that is written as TOML is the same when it is read again.

use warmq_machine::{
    CacheDescription, CpuPlace, Inclusion, MachineDescription, builtin, builtin_names, read_hwloc,
    read_toml,
};
use warmq_units::{Bytes, CpuId, Cycles};

fn again(machine: &MachineDescription) -> MachineDescription {
    let text = machine.to_toml();
    read_toml("again.toml", &text).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

fn shipped(name: &str) -> MachineDescription {
    read_toml(name, builtin(name).unwrap()).unwrap()
}

#[test]
fn every_machine_that_is_shipped_is_read_back_as_it_was() {
    for name in builtin_names() {
        let machine = shipped(name);
        assert_eq!(again(&machine), machine, "{name}");
    }
}

/// Names and sources are other people's, too.
#[test]
fn whatever_letters_a_text_has_it_comes_back() {
    let mut machine = shipped("tiny-2cpu");
    machine.title = "a \"machine\"\\ with 'quotes' and \u{e9}".to_owned();
    assert_eq!(again(&machine), machine);
}

#[test]
fn machines_of_hwloc_come_back() {
    let mut written = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hwloc")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Ok(machine) = read_hwloc(&name, &text) else {
            continue;
        };
        let back = again(&machine);
        written += 1;
        assert_eq!(
            (&back.cpus, &back.caches),
            (&machine.cpus, &machine.caches),
            "{name}"
        );
        assert_eq!(
            (back.memory, back.coherence),
            (machine.memory, machine.coherence),
            "{name}"
        );
    }
    assert_eq!(written, 5);
}

/// Two cores of two threads, each with a level-2 cache of its own, and two small cores that share
/// another, under one of level 3.
#[test]
fn a_machine_whose_cores_differ_comes_back() {
    let mut machine = shipped("small-smt");
    let core = |core| CpuPlace {
        socket: 0,
        llc: 0,
        core,
    };
    machine.cpus = [0, 0, 1, 1, 2, 3].map(core).to_vec();
    machine.capacities = vec![1024, 1024, 1024, 1024, 700, 700];
    let cpus = |range: std::ops::Range<u16>| range.map(CpuId).collect::<Vec<CpuId>>();
    let of = |level: u8, kb: u64, cpus: Vec<CpuId>| CacheDescription {
        level,
        cpus,
        size: Bytes::from_kb(kb),
        latency: Cycles(10 * u64::from(level)),
        inclusion: Inclusion::NonInclusive,
        ways: 4,
        ..machine.caches[0].clone()
    };
    machine.caches = vec![
        of(1, 48, cpus(0..2)),
        of(1, 48, cpus(2..4)),
        of(1, 32, cpus(4..5)),
        of(1, 32, cpus(5..6)),
        of(2, 1024, cpus(0..2)),
        of(2, 1024, cpus(2..4)),
        of(2, 2048, cpus(4..6)),
        of(3, 8192, cpus(0..6)),
    ];
    machine.check().unwrap();
    assert_eq!(again(&machine), machine);
}
