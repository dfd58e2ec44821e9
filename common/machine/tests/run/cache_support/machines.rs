//! Made-up machines, from a line of geometry a level.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_machine::{
    CacheDescription, Coherence, CpuPlace, Inclusion, MachineDescription, MemoryDescription,
    Replacement,
};
use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz};

pub const LINE: u64 = 32;

/// All caches of one level.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    pub sets: u64,
    pub ways: u32,
    pub replacement: Replacement,
    pub inclusion: Inclusion,
    /// How many CPUs share one.
    pub shared_by: u16,
}

impl Level {
    pub fn lru(sets: u64, ways: u32) -> Level {
        Level {
            sets,
            ways,
            replacement: Replacement::Lru,
            inclusion: Inclusion::NonInclusive,
            shared_by: 1,
        }
    }

    pub fn tree(sets: u64, ways: u32) -> Level {
        Level {
            replacement: Replacement::TreePlru,
            ..Level::lru(sets, ways)
        }
    }

    pub fn quad_age(sets: u64, ways: u32) -> Level {
        Level {
            replacement: Replacement::QuadAge,
            ..Level::lru(sets, ways)
        }
    }

    pub fn inclusive(self) -> Level {
        Level {
            inclusion: Inclusion::Inclusive,
            ..self
        }
    }

    pub fn victim(self) -> Level {
        Level {
            inclusion: Inclusion::Victim,
            ..self
        }
    }

    pub fn shared_by(self, cpus: u16) -> Level {
        Level {
            shared_by: cpus,
            ..self
        }
    }
}

pub fn bus() -> Coherence {
    Coherence::Bus {
        line_transfer: Duration::from_ns(60),
        address_only: Duration::from_ns(15),
        cache_to_cache: Duration::from_ns(130),
        crossing: None,
    }
}

/// A bus for each socket.
pub fn buses() -> Coherence {
    let Coherence::Bus {
        line_transfer,
        address_only,
        cache_to_cache,
        ..
    } = bus()
    else {
        unreachable!("that is a bus");
    };
    Coherence::Bus {
        line_transfer,
        address_only,
        cache_to_cache,
        crossing: Some(Duration::from_ns(70)),
    }
}

pub fn any_coherence() -> impl Strategy<Value = Coherence> {
    prop::sample::select(vec![bus(), buses(), directory()])
}

pub fn directory() -> Coherence {
    Coherence::Directory {
        same_domain: Duration::from_ns(45),
        other_domain: Duration::from_ns(150),
        other_socket: Duration::from_ns(310),
        line_transfer: Duration::from_ns(4),
    }
}

/// `cpus` CPUs at 100 MHz with the given levels, nearest first; a hit in level n takes 3n cycles.
/// A last level is a domain, two domains are a socket.
pub fn machine(cpus: u16, levels: &[Level], coherence: Coherence) -> MachineDescription {
    let outermost = levels[levels.len() - 1].shared_by;
    let place = |cpu: u16| CpuPlace {
        socket: cpu / outermost / 2,
        llc: cpu / outermost,
        core: cpu / levels[0].shared_by,
    };
    let mut caches = Vec::new();
    for (index, level) in levels.iter().enumerate() {
        for first in (0..cpus).step_by(usize::from(level.shared_by)) {
            caches.push(cache(index as u8 + 1, level, first, cpus));
        }
    }
    MachineDescription {
        name: "made-up".into(),
        title: "Made up for a test".into(),
        clock: Hertz::from_khz(100_000),
        cpus: (0..cpus).map(place).collect(),
        caches,
        coherence,
        memory: MemoryDescription {
            size: Bytes::from_mb(64),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(4),
            latency: Duration::from_ns(200),
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

fn cache(number: u8, level: &Level, first: u16, cpus: u16) -> CacheDescription {
    CacheDescription {
        level: number,
        size: Bytes(level.sets * u64::from(level.ways) * LINE),
        ways: level.ways,
        line: Bytes(LINE),
        latency: Cycles(3 * u64::from(number)),
        replacement: level.replacement,
        inclusion: level.inclusion,
        cpus: (first..(first + level.shared_by).min(cpus))
            .map(CpuId)
            .collect(),
    }
}
