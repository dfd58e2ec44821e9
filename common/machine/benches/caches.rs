//! Measures how many accesses per second the cache model handles.

use std::collections::BTreeMap;

use divan::{Bencher, counter::ItemsCount};
use warmq_machine::{
    Access, CacheDescription, Coherence, CpuPlace, Hierarchy, Inclusion, MachineDescription,
    MemoryDescription, Options, Replacement, builtin, read_toml,
};
use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Hertz, Instant, Seed};

/// Enough accesses for a stable figure if the lines fit into the caches.
const FEW: usize = 1 << 16;
/// Four times as many as the level-2 caches of eight CPUs have lines.
const MANY: usize = 1 << 20;

/// The caches of a level, each shared by `shared_by` CPUs.
struct Level {
    size: Bytes,
    ways: u32,
    cycles: u64,
    shared_by: u16,
    inclusion: Inclusion,
}

fn machine(cpus: u16, line: u64, levels: &[Level], coherence: Coherence) -> MachineDescription {
    let outermost = levels[levels.len() - 1].shared_by;
    let mut caches = Vec::new();
    for (index, level) in levels.iter().enumerate() {
        for first in (0..cpus).step_by(usize::from(level.shared_by)) {
            caches.push(CacheDescription {
                level: index as u8 + 1,
                size: level.size,
                ways: level.ways,
                line: Bytes(line),
                latency: Cycles(level.cycles),
                replacement: Replacement::Lru,
                inclusion: level.inclusion,
                cpus: (first..first + level.shared_by).map(CpuId).collect(),
            });
        }
    }
    let place = |cpu| CpuPlace {
        socket: cpu / 192,
        llc: cpu / outermost,
        core: cpu / 2,
    };
    MachineDescription {
        name: "bench".into(),
        title: "Made up for a benchmark".into(),
        clock: Hertz::from_khz(550_000),
        cpus: (0..cpus).map(place).collect(),
        caches,
        coherence,
        memory: MemoryDescription {
            size: Bytes::from_mb(4096),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(2),
            latency: Duration::from_ns(190),
            dma_into_llc: false,
        },
        miss_overlap: 1,
        smt_speed: 1_000,
        priorities: Vec::new(),
        capacities: Vec::new(),
        nodes: Vec::new(),
        node_distances: Vec::new(),
        card: None,
        steals: Vec::new(),
        costs: BTreeMap::new(),
        sources: BTreeMap::new(),
        left_out: Vec::new(),
    }
}

/// Like an 8-way Pentium III Xeon.
fn xeon(cpus: u16, inclusive: bool) -> MachineDescription {
    let bus = Coherence::Bus {
        line_transfer: Duration::from_ns(40),
        address_only: Duration::from_ns(10),
        cache_to_cache: Duration::from_ns(200),
        crossing: None,
    };
    let private = |kb, ways, cycles, inclusive| Level {
        size: Bytes::from_kb(kb),
        ways,
        cycles,
        shared_by: 1,
        inclusion: if inclusive {
            Inclusion::Inclusive
        } else {
            Inclusion::NonInclusive
        },
    };
    machine(
        cpus,
        32,
        &[private(16, 4, 3, false), private(1024, 4, 18, inclusive)],
        bus,
    )
}

/// Like two EPYCs of 12 chiplets each: 384 CPUs, 24 last levels.
fn epyc() -> MachineDescription {
    let directory = Coherence::Directory {
        same_domain: Duration::from_ns(25),
        other_domain: Duration::from_ns(110),
        other_socket: Duration::from_ns(220),
        line_transfer: Duration::from_ns(1),
    };
    let level = |kb, ways, cycles, shared_by| Level {
        size: Bytes::from_kb(kb),
        ways,
        cycles,
        shared_by,
        inclusion: Inclusion::NonInclusive,
    };
    let levels = [
        level(32, 8, 4, 2),
        level(1024, 8, 14, 2),
        level(32 << 10, 16, 50, 16),
    ];
    machine(384, 64, &levels, directory)
}

/// Random accesses of random CPUs to the first `bytes` of memory, of which one in `one_write_in` is
/// a write.
fn accesses(
    number: usize,
    cpus: u64,
    bytes: u64,
    one_write_in: u64,
) -> Vec<(CpuId, Address, Access)> {
    let mut stream = Seed(1).stream("bench");
    let mut one = || {
        let access = if stream.chance(1, one_write_in) {
            Access::Write
        } else {
            Access::Read
        };
        (
            CpuId(stream.below(cpus) as u16),
            Address(stream.below(bytes)),
            access,
        )
    };
    (0..number).map(|_| one()).collect()
}

/// Plays `accesses` once to warm up, and then repeatedly.
fn play(
    bencher: Bencher,
    machine: &MachineDescription,
    options: Options,
    accesses: &[(CpuId, Address, Access)],
) {
    let mut caches = Hierarchy::new(machine, options);
    let mut clocks = vec![Instant(0); machine.cpus.len()];
    let mut turn = || {
        for (cpu, address, access) in accesses {
            let clock = &mut clocks[cpu.index()];
            *clock += caches.access(*cpu, *address, *access, *clock).takes;
        }
    };
    turn();
    bencher
        .counter(ItemsCount::new(accesses.len()))
        .bench_local(turn);
}

fn main() {
    divan::main();
}

#[divan::bench]
fn hits_in_level_1(bencher: Bencher) {
    play(
        bencher,
        &xeon(1, false),
        Options::default(),
        &accesses(FEW, 1, 12 << 10, 4),
    );
}

/// Half of the accesses hit level 1, the others level 2.
#[divan::bench(args = [false, true])]
fn hits_in_levels_1_and_2(bencher: Bencher, inclusive: bool) {
    play(
        bencher,
        &xeon(1, inclusive),
        Options::default(),
        &accesses(FEW, 1, 32 << 10, 4),
    );
}

/// Nearly all accesses miss both levels.
#[divan::bench(args = [1, 8], sample_count = 10)]
fn misses_to_memory(bencher: Bencher, cpus: u16) {
    let stream = accesses(MANY, u64::from(cpus), 64 << 20, 4);
    play(bencher, &xeon(cpus, false), Options::default(), &stream);
}

#[divan::bench(sample_count = 10)]
fn misses_classified(bencher: Bencher) {
    let options = Options {
        classify_misses: true,
        histogram: true,
    };
    play(
        bencher,
        &xeon(1, false),
        options,
        &accesses(MANY, 1, 64 << 20, 4),
    );
}

/// Eight CPUs read and write the same 256 KB.
#[divan::bench(args = [4, 64])]
fn eight_cpus_share(bencher: Bencher, one_write_in: u64) {
    play(
        bencher,
        &xeon(8, false),
        Options::default(),
        &accesses(FEW, 8, 256 << 10, one_write_in),
    );
}

/// 384 CPUs, each in its own 64 KB or all in the same 8 MB.
#[divan::bench(args = [false, true], sample_count = 10)]
fn an_epyc(bencher: Bencher, shared: bool) {
    let mut stream = accesses(MANY, 384, if shared { 8 << 20 } else { 64 << 10 }, 16);
    if !shared {
        for (cpu, address, _) in &mut stream {
            address.0 += u64::from(cpu.0) << 16;
        }
    }
    play(bencher, &epyc(), Options::default(), &stream);
}

/// On the shipped server of 384 CPUs each CPU in turn reads a line of every CPU, and then writes
/// its own, as a scheduler with per-CPU queues does when it looks for work.
#[divan::bench(sample_count = 10)]
fn each_of_384_cpus_reads_a_line_of_all_and_writes_its_own(bencher: Bencher) {
    let text = builtin("server-24llc").expect("a machine of ours");
    let machine = read_toml("server-24llc", text).expect("a machine that can be read");
    let cpus = machine.cpus.len() as u64;
    let line_of = |cpu: u64| Address(cpu * 128);
    let mut stream = Vec::new();
    for cpu in 0..cpus {
        let id = CpuId(cpu as u16);
        stream.extend((0..cpus).map(|other| (id, line_of(other), Access::Read)));
        stream.push((id, line_of(cpu), Access::Write));
    }
    play(bencher, &machine, Options::default(), &stream);
}
