//! CPUs, caches, coherence, bus, memory and topology as passive models.
//!
//! Purpose: to answer *what does this access cost here, and why*. The models know nothing of events
//! and tasks: the caller owns the timeline and advances time by the answer.
//!
//! - [`MachineDescription`]: a machine as plain data; from TOML, hwloc XML, or a host's /sys.
//! - [`Hierarchy`]: its caches with coherence and bus, line-accurate.
//! - [`PhysicalMemory`]: its page allocator, which fragments as a real one does.
//!
//! ```
//! use warmq_machine::{Access, Hierarchy, Options, Served, builtin, read_toml};
//! use warmq_units::{Address, CpuId, Instant};
//!
//! let machine = read_toml("small-4llc", builtin("small-4llc").unwrap()).unwrap();
//! let mut caches = Hierarchy::new(&machine, Options::default());
//! let mut read = |cpu| caches.access(CpuId(cpu), Address(4_096), Access::Read, Instant(0));
//! assert_eq!(read(0).served, Served::Memory);
//! assert_eq!(read(0).served, Served::Level(1));
//! // The first CPU of another cache does not have the line.
//! assert_ne!(read(4).served, Served::Level(1));
//! ```

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
