//! CPUs, caches, coherence, bus, memory and topology as passive models.
//!
//! Purpose: to answer *what does this access cost here, and why*. The models know no event and no
//! task: whoever owns the timeline asks, and waits as long as the answer says.
//!
//! - [`MachineDescription`]: a machine as plain data; from TOML, hwloc XML, or a host's /sys.
//! - [`Hierarchy`]: its caches with coherence and bus, line-accurate.
//! - [`PhysicalMemory`]: its page allocator, which fragments as a real one does.

pub mod description;
