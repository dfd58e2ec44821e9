//! Our side of the comparison with pycachesim: makes a stream of references, or plays one through
//! the caches and prints what was counted and how long it took. Only the playing is timed.
//!
//! ```text
//! compare_caches make COUNT BYTES ONE_WRITE_IN FILE     random lines of the first BYTES; 0: no writes
//! compare_caches play L1_SIZE L1_WAYS L2_SIZE L2_WAYS LINE FILE     sizes in bytes, LRU
//! ```
//!
//! The file holds 64-bit words in the order of the machine: address * 2 + (1 for a write).

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the clock of the host is what it measures with"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant as HostInstant;
use std::{env, fs};

use warmq_machine::{
    Access, CacheDescription, Coherence, CpuPlace, Hierarchy, Inclusion, MachineDescription,
    MemoryDescription, Options, Replacement,
};
use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Hertz, Instant, Seed};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["make", count, bytes, one_write_in, file] => {
            let stream = make(count.parse()?, bytes.parse()?, one_write_in.parse()?);
            let bytes: Vec<u8> = stream.iter().flat_map(|word| word.to_ne_bytes()).collect();
            Ok(fs::write(file, bytes)?)
        }
        ["play", ref geometry @ .., file] if geometry.len() == 5 => {
            let numbers: Vec<u64> = geometry
                .iter()
                .map(|word| word.parse())
                .collect::<Result<_, _>>()?;
            let [l1, l1_ways, l2, l2_ways, line] = numbers[..] else {
                unreachable!("five")
            };
            let machine = machine(line, [(l1, l1_ways), (l2, l2_ways)]);
            play(&machine, &read(file)?);
            Ok(())
        }
        _ => Err("see the head of bench/caches/ours.rs for the arguments".into()),
    }
}

fn make(count: u64, bytes: u64, one_write_in: u64) -> Vec<u64> {
    let mut stream = Seed(1).stream("compare caches");
    let mut word = || {
        let writes = one_write_in > 0 && stream.chance(1, one_write_in);
        stream.below(bytes) << 1 | u64::from(writes)
    };
    (0..count).map(|_| word()).collect()
}

fn read(file: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    let bytes = fs::read(file)?;
    let words = bytes
        .chunks_exact(8)
        .map(|word| word.try_into().map(u64::from_ne_bytes));
    Ok(words.collect::<Result<_, _>>()?)
}

fn play(machine: &MachineDescription, stream: &[u64]) {
    let mut caches = Hierarchy::new(machine, Options::default());
    let mut now = Instant::START;
    let start = HostInstant::now();
    for word in stream {
        let access = if word & 1 == 1 {
            Access::Write
        } else {
            Access::Read
        };
        now += caches
            .access(CpuId(0), Address(word >> 1), access, now)
            .takes;
    }
    let took = start.elapsed().as_secs_f64();
    let misses = [1, 2].map(|level| {
        let counts = caches.counts().total(level);
        counts.read_misses + counts.write_misses
    });
    println!(
        "{{\"references\": {}, \"seconds\": {took:.6}, \"misses\": {misses:?}}}",
        stream.len()
    );
}

fn machine(line: u64, levels: [(u64, u64); 2]) -> MachineDescription {
    let cache = |(index, (size, ways)): (usize, (u64, u64))| CacheDescription {
        level: index as u8 + 1,
        size: Bytes(size),
        ways: ways as u32,
        line: Bytes(line),
        latency: Cycles(4 + 10 * index as u64),
        replacement: Replacement::Lru,
        inclusion: Inclusion::NonInclusive,
        cpus: vec![CpuId(0)],
    };
    MachineDescription {
        name: "compared".into(),
        title: "One CPU with two levels of cache".into(),
        clock: Hertz::from_khz(1_000_000),
        cpus: vec![CpuPlace {
            socket: 0,
            llc: 0,
            core: 0,
        }],
        caches: levels.into_iter().enumerate().map(cache).collect(),
        coherence: Coherence::Bus {
            line_transfer: Duration::from_ns(40),
            address_only: Duration::from_ns(10),
            cache_to_cache: Duration::from_ns(200),
            crossing: None,
        },
        memory: MemoryDescription {
            size: Bytes::from_mb(1_024),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(2),
            latency: Duration::from_ns(100),
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
