//! The cache whose conflicts the colors are to end.

use serde::Serialize;
use warmq_coloring::{Cache, first_free_bit};
use warmq_machine::description::{CacheDescription, MachineDescription};
use warmq_units::{Bytes, CpuId};

/// One data cache of the measured CPU.
///
/// Invariant: `ways * line` divides `size`; `line` is a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// 1 is nearest to the CPU.
    pub level: u8,
    /// Capacity in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub size: Bytes,
    /// Associativity.
    pub ways: u32,
    /// Line size in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub line: Bytes,
}

impl Geometry {
    /// The cache that coloring is for on `cpu`: its level 2, where today's cores end what is
    /// their own; the outermost where there is no level 2. `None` for a CPU without caches.
    pub fn to_color(machine: &MachineDescription, cpu: CpuId) -> Option<Geometry> {
        Geometry::at(machine, cpu, 2).or_else(|| Geometry::at(machine, cpu, 1))
    }

    /// The cache of `cpu` at `level`.
    pub fn at(machine: &MachineDescription, cpu: CpuId, level: u8) -> Option<Geometry> {
        let cache = machine
            .caches
            .iter()
            .find(|c| c.level == level && c.cpus.contains(&cpu));
        cache.map(Geometry::from)
    }

    /// Bytes that one way covers: addresses this far apart share a set.
    pub fn way_size(self) -> u64 {
        self.size.0 / u64::from(self.ways)
    }

    /// The lowest address bit that no longer takes part in the choice of a set, `b` of the
    /// paper's equation 1: log2(size / ways), rounded down where that is no power of two.
    pub fn first_free_bit(self) -> u32 {
        first_free_bit(self.way_size())
    }

    /// How many blocks, one every `block_size` bytes, have hot lines that fit without colors where
    /// the address alone chooses the set: the paper's `s / block`.
    pub fn fit(self, block_size: Bytes) -> u64 {
        let cache = Cache::new(self.size.0, u64::from(self.ways), self.line.0);
        cache.map_or(0, |cache| cache.fit(block_size.0))
    }

    /// How many sets there are.
    pub fn sets(self) -> u64 {
        self.way_size() / self.line.0
    }

    /// The set that holds `address`.
    pub fn set_of(self, address: u64) -> u64 {
        address / self.line.0 % self.sets()
    }
}

impl From<&CacheDescription> for Geometry {
    fn from(cache: &CacheDescription) -> Geometry {
        Geometry {
            level: cache.level,
            size: cache.size,
            ways: cache.ways,
            line: cache.line,
        }
    }
}
