//! CPUs, caches, coherence, bus, memory and topology as passive models.
//!
//! Purpose: to answer *what does this access cost here, and why*. The models know nothing of events
//! and tasks: the caller owns the timeline and advances time by the answer.
//!
//! - [`MachineDescription`]: a machine as plain data; from TOML, hwloc XML, or a host's /sys.
//! - [`Hierarchy`]: its caches with coherence and bus, line-accurate.
//! - [`PhysicalMemory`]: its page allocator, which fragments as a real one does.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod bus;
mod cache;
mod card;
mod check;
mod coherence;
mod counts;
pub mod description;
mod error;
mod hierarchy;
mod hwloc;
mod memory;
mod observed;
mod overrides;
mod pairs;
mod shadow;
mod shipped;
mod sparse;
mod toml_blame;
mod toml_caches;
mod toml_machine;
mod toml_written;
mod topology;

pub use bus::Timetable;
pub use cache::LineState;
pub use card::{CARD_MODELS, CardModel, LastOfPoll, Moderation, PLAIN, on_ethernet};
pub use check::MOST_CPUS;
pub use counts::{BusCounts, Counts, Histogram, LevelCounts, MissKind, MissKinds, Transaction};
pub use description::{
    CacheDescription, Coherence, Cost, CpuPlace, Inclusion, MachineDescription, MemoryDescription,
    Replacement, Steal,
};
pub use error::Flaw;
pub use hierarchy::{Access, Hierarchy, Options, Outcome, Served};
pub use hwloc::read_hwloc;
pub use memory::{Fragmentation, OutOfMemory, PhysicalMemory};
pub use observed::{
    ASSUMED, Observed, ObservedCache, ObservedCpu, ObservedNodes, ObservedSpeeds, ObservedWays,
};
pub use overrides::Overrides;
pub use pairs::PairKind;
pub use shipped::{builtin, builtin_names, costs_taken_from};
pub use toml_machine::{NOT_GIVEN, read_toml};
pub use topology::{FULL_CAPACITY, Layout};
