//! What a loaded object has while it runs: memory, maps, variables, timers.

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_bpf::Image;

use crate::ending::Ending;
use crate::graph::Graph;
use crate::maps::MapState;
use crate::memory::{HANDLES, Memory, PAGE};

/// How large the machine is on which a program runs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// CPUs, for per-CPU data.
    pub cpus: u32,
    /// Bytes that maps and objects may take.
    pub memory: u64,
    /// Instructions of one callback at most.
    pub instructions: u64,
}

impl Shape {
    /// A machine with `cpus` CPUs, 1 GiB for maps and objects, and the verifier's million.
    pub fn of(cpus: u32) -> Shape {
        Shape {
            cpus,
            memory: 1 << 30,
            instructions: 1_000_000,
        }
    }
}

/// Memory, maps, variables and timers of one object. Memory's functions are its own.
#[derive(Clone, Debug, derive_more::Deref, derive_more::DerefMut)]
pub struct Guest {
    pub(crate) image: Arc<Image>,
    pub(crate) shape: Shape,
    #[deref]
    #[deref_mut]
    pub(crate) memory: Memory,
    pub(crate) maps: Vec<MapState>,
    variables: BTreeMap<String, u64>,
    /// Where data that each CPU has begins, and the bytes from one CPU's to the next one's.
    per_cpu: BTreeMap<u64, u64>,
    pub(crate) timers: BTreeMap<u64, Timer>,
    pub(crate) graph: Graph,
    /// Frames in use, and where a callback that began in none is cut off.
    pub(crate) depth: usize,
    pub(crate) end: u64,
    pub(crate) instructions: u64,
    /// How many arguments the program got that runs, what a function returned included.
    pub(crate) arguments: u64,
}

/// A `struct bpf_timer` in a map's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// What runs when it expires, by its index in `Image::functions`.
    pub function: Option<u32>,
    /// The map, as the callback's first argument.
    pub map: u64,
    /// Where the map's key is, the second argument.
    pub key: u64,
    /// Where the map's value is, the third.
    pub value: u64,
}

/// A kind of [`HANDLES`].
const FUNCTIONS: u64 = 1 << 32;

/// The address that names a map.
pub fn map_handle(map: u32) -> u64 {
    HANDLES + u64::from(map)
}

/// The address that names a function.
pub fn function_handle(function: u32) -> u64 {
    HANDLES + FUNCTIONS + u64::from(function)
}

/// The map that an address names.
pub fn map_of(handle: u64) -> Option<u32> {
    (handle >> 32 == HANDLES >> 32).then_some(handle as u32)
}

/// The function that an address names.
pub fn function_of(handle: u64) -> Option<u32> {
    (handle >> 32 == (HANDLES + FUNCTIONS) >> 32).then_some(handle as u32)
}

impl Guest {
    /// Maps with their first contents, and nothing else.
    ///
    /// # Errors
    /// If they do not fit into `shape.memory`.
    pub fn new(image: Arc<Image>, shape: Shape) -> Result<Guest, Ending> {
        let mut guest = Guest {
            memory: Memory::new(shape.memory),
            maps: Vec::new(),
            variables: BTreeMap::new(),
            per_cpu: BTreeMap::new(),
            timers: BTreeMap::new(),
            graph: Graph::default(),
            depth: 0,
            end: 0,
            instructions: 0,
            arguments: 0,
            image: image.clone(),
            shape,
        };
        for map in &image.maps {
            let state = MapState::new(map, shape.cpus, &mut guest.memory)?;
            guest.maps.push(state);
        }
        Ok(guest)
    }

    /// The object.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Data of `size` bytes for each CPU, each in pages of its own; the address of CPU 0's.
    ///
    /// # Errors
    /// If memory is used up.
    pub fn allocate_per_cpu(&mut self, size: u64) -> Result<u64, Ending> {
        let stride = size
            .max(1)
            .checked_next_multiple_of(PAGE)
            .unwrap_or(u64::MAX);
        let all = stride.saturating_mul(u64::from(self.shape.cpus));
        let address = self.memory.allocate(all)?;
        self.per_cpu.insert(address, stride);
        Ok(address)
    }

    /// A CPU's own copy of the data at `address`, which [`Self::allocate_per_cpu`] gave.
    pub fn per_cpu(&self, address: u64, cpu: u32) -> Option<u64> {
        let (first, stride) = self.per_cpu.range(..=address).next_back()?;
        let within = (address - first < *stride) && cpu < self.shape.cpus;
        within.then(|| address + u64::from(cpu) * stride)
    }

    /// Says where a variable of the kernel is, before [`crate::Program::new`] asks for it.
    pub fn set_variable(&mut self, name: &str, address: u64) {
        self.variables.insert(name.to_owned(), address);
    }

    /// Where a variable of the kernel is.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.variables.get(name).copied()
    }

    /// The timer at an address that `bpf_timer_start` or `bpf_timer_cancel` got.
    pub fn timer(&self, address: u64) -> Option<&Timer> {
        self.timers.get(&address)
    }

    /// CPUs of the machine.
    pub fn cpus(&self) -> u32 {
        self.shape.cpus
    }

    /// Instructions run since the beginning, up to the call that is being made.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Loads from where no memory is, since the beginning. A scheduler that is right has none.
    pub fn faults(&self) -> u64 {
        self.memory.faults
    }
}
