//! Maps while a program runs.

use std::collections::{BTreeMap, VecDeque};

use warmq_bpf::{Counter, Map, MapKind, SpecialKind};

use crate::ending::Ending;
use crate::guest::{Guest, map_of};
use crate::memory::{Memory, PAGE};

/// `BPF_NOEXIST`: fail where a value is already.
const NO_EXIST: u64 = 1;
/// `BPF_EXIST`: fail where no value is yet.
const EXIST: u64 = 2;
const ENOENT: i64 = 2;
const E2BIG: i64 = 7;
const EEXIST: i64 = 17;
const EINVAL: i64 = 22;
const EOPNOTSUPP: i64 = 95;

/// A map's contents. Values are in guest memory, keys of hashes too, so that programs can point to
/// them; which values there are is kept here.
#[derive(Clone, Debug)]
pub(crate) struct MapState {
    /// The values of arrays; of per-CPU arrays, those of CPU 0.
    pub(crate) base: u64,
    /// From a CPU's values to those of the next.
    stride: u64,
    /// From one value to the next.
    step: u64,
    /// Keys and the addresses of their values.
    hash: BTreeMap<Vec<u8>, u64>,
    queue: VecDeque<Vec<u8>>,
    /// Bytes of a ring buffer that are taken.
    pub(crate) taken: u64,
}

/// Bytes from one value to the next.
fn step(map: &Map) -> u64 {
    u64::from(map.value_size).next_multiple_of(8)
}

impl MapState {
    pub(crate) fn new(map: &Map, cpus: u32, memory: &mut Memory) -> Result<MapState, Ending> {
        let step = step(map);
        let values = step.saturating_mul(u64::from(map.max_entries));
        let stride = values.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        let base = match map.kind {
            MapKind::Array if map.frozen => memory.freeze(&map.initial)?,
            MapKind::Array => Self::filled(map, values, memory)?,
            MapKind::PerCpuArray => memory.allocate(stride.saturating_mul(u64::from(cpus)))?,
            MapKind::ArrayOfMaps => Self::of_maps(map, memory)?,
            MapKind::Arena => Self::arena(map, memory)?,
            MapKind::RingBuffer => memory.allocate(map.max_entries.into())?,
            _ => 0,
        };
        Ok(MapState {
            base,
            stride,
            step,
            hash: BTreeMap::new(),
            queue: VecDeque::new(),
            taken: 0,
        })
    }

    fn filled(map: &Map, size: u64, memory: &mut Memory) -> Result<u64, Ending> {
        let base = memory.allocate(size.max(map.initial.len() as u64))?;
        if let Some(bytes) = memory.bytes_mut(base, map.initial.len() as u64) {
            bytes.copy_from_slice(&map.initial);
        }
        Ok(base)
    }

    /// Values are handles of maps.
    fn of_maps(map: &Map, memory: &mut Memory) -> Result<u64, Ending> {
        let base = memory.allocate(u64::from(map.max_entries).saturating_mul(8))?;
        for (at, value) in (0..).zip(&map.values) {
            let handle = value.map_or(0, crate::guest::map_handle);
            memory.store(base + at * 8, 8, handle)?;
        }
        Ok(base)
    }

    /// Variables in the arena (`__arena` ones) are its first pages.
    fn arena(map: &Map, memory: &mut Memory) -> Result<u64, Ending> {
        let size = map.initial.len() as u64;
        if size == 0 {
            return Ok(crate::memory::ARENA);
        }
        let pages = size.div_ceil(PAGE);
        let wanted = Some(crate::memory::ARENA);
        let full = Ending::Memory(u64::from(map.max_entries) * PAGE);
        let base = memory
            .allocate_pages(wanted, pages, map.max_entries.into())
            .ok_or(full)?;
        if let Some(bytes) = memory.bytes_mut(base, size) {
            bytes.copy_from_slice(&map.initial);
        }
        Ok(base)
    }
}

/// A negative errno as programs get it.
pub(crate) fn error(number: i64) -> u64 {
    -number as u64
}

impl Guest {
    /// Where a byte of a map's only value is.
    pub fn value_address(&self, map: u32, offset: u32) -> u64 {
        let base = self.maps.get(map as usize).map_or(0, |state| state.base);
        base.wrapping_add(offset.into())
    }

    /// What a counter of the object has counted, on all CPUs.
    pub fn counted(&self, counter: &Counter) -> u64 {
        let at = counter.map as usize;
        let (Some(map), Some(state)) = (self.image.maps.get(at), self.maps.get(at)) else {
            return 0;
        };
        let cpus = match map.kind {
            MapKind::PerCpuArray => self.shape.cpus,
            _ => 1,
        };
        let first = state.base + u64::from(counter.key) * state.step + u64::from(counter.offset);
        let (copies, distance) = counter.copies_on(self.shape.cpus);
        let places = (0..u64::from(cpus)).flat_map(|cpu| {
            let of_cpu = first + cpu * state.stride;
            (0..u64::from(copies)).map(move |copy| of_cpu + copy * u64::from(distance))
        });
        let values = places.filter_map(|place| self.memory.peek(place, counter.size.into()));
        values.fold(0, u64::wrapping_add)
    }

    /// A map by its handle: its index, and what it is.
    pub(crate) fn map(&self, handle: u64, call: &'static str) -> Result<(usize, &Map), Ending> {
        let at = map_of(handle).map(|at| at as usize);
        let map = at.and_then(|at| Some((at, self.image.maps.get(at)?)));
        map.ok_or(Ending::Argument {
            call,
            address: handle,
            wanted: "map",
        })
    }

    /// The key at an address, as bytes.
    fn key(&self, address: u64, size: u32) -> Option<Vec<u8>> {
        self.memory.bytes(address, size.into()).map(<[u8]>::to_vec)
    }

    /// `bpf_map_lookup_elem`, for the values of `cpu` where each CPU has its own: where the value
    /// is, or 0.
    ///
    /// # Errors
    /// If `handle` is no map.
    pub fn map_lookup(&self, handle: u64, key: u64, cpu: u32) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_map_lookup_elem")?;
        let state = &self.maps[at];
        let Some(key) = self.key(key, map.key_size) else {
            return Ok(0);
        };
        let index = || key.get(..4)?.try_into().ok().map(u32::from_le_bytes);
        let index = index()
            .filter(|index| *index < map.max_entries)
            .map(u64::from);
        let of_cpu = (cpu < self.shape.cpus).then(|| u64::from(cpu) * state.stride);
        Ok(match map.kind {
            MapKind::Array => index.map_or(0, |index| state.base + index * state.step),
            MapKind::PerCpuArray => {
                let both = index.zip(of_cpu);
                both.map_or(0, |(index, cpu)| state.base + cpu + index * state.step)
            }
            MapKind::ArrayOfMaps => {
                let handle = index.and_then(|index| self.memory.peek(state.base + index * 8, 8));
                handle.unwrap_or(0)
            }
            _ => state.hash.get(&key).copied().unwrap_or(0),
        })
    }

    /// `bpf_map_update_elem`: 0 or a negative errno.
    ///
    /// # Errors
    /// If `handle` is no map, or memory is used up.
    pub fn map_update(
        &mut self,
        handle: u64,
        key: u64,
        value: u64,
        flags: u64,
        cpu: u32,
    ) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_map_update_elem")?;
        let (kind, size, most) = (
            map.kind,
            u64::from(map.value_size),
            map.max_entries as usize,
        );
        let key_bytes = self.key(key, map.key_size);
        let found = self.map_lookup(handle, key, cpu)?;
        if kind == MapKind::ArrayOfMaps {
            return Ok(error(EOPNOTSUPP));
        }
        let value = self.memory.bytes(value, size).map(<[u8]>::to_vec);
        let (Some(key), Some(value)) = (key_bytes, value) else {
            return Ok(error(EINVAL));
        };
        let is_array = matches!(kind, MapKind::Array | MapKind::PerCpuArray);
        let to = match found {
            0 if is_array => return Ok(error(E2BIG)),
            0 if flags & EXIST != 0 => return Ok(error(ENOENT)),
            0 if self.maps[at].hash.len() >= most => return Ok(error(E2BIG)),
            0 => self.insert(at, key, size)?,
            _ if flags & NO_EXIST != 0 => return Ok(error(EEXIST)),
            found => found,
        };
        self.write_value(at, to, &value);
        Ok(0)
    }

    /// A new value of a hash.
    fn insert(&mut self, at: usize, key: Vec<u8>, size: u64) -> Result<u64, Ending> {
        let address = self.memory.allocate(size)?;
        self.maps[at].hash.insert(key, address);
        Ok(address)
    }

    /// Overwrites a value but for the fields that only the kernel may change.
    fn write_value(&mut self, at: usize, to: u64, value: &[u8]) {
        let mut value = value.to_vec();
        for special in &self.image.maps[at].special {
            let size = match special.kind {
                SpecialKind::Kptr(_) => 8,
                SpecialKind::Timer => 16,
                SpecialKind::SpinLock => 4,
            };
            let kept = self.memory.bytes(to + u64::from(special.offset), size);
            let range = special.offset as usize..special.offset as usize + size as usize;
            if let (Some(new), Some(kept)) = (value.get_mut(range), kept) {
                new.copy_from_slice(kept);
            }
        }
        if let Some(bytes) = self.memory.bytes_mut(to, value.len() as u64) {
            bytes.copy_from_slice(&value);
        }
    }

    /// The key of a value that is at an address.
    pub(crate) fn key_bytes(&self, handle: u64, value: u64) -> Option<Vec<u8>> {
        let at = map_of(handle)? as usize;
        let (map, state) = (self.image.maps.get(at)?, self.maps.get(at)?);
        if map.kind == MapKind::Array {
            let index = value.checked_sub(state.base)?.checked_div(state.step)? as u32;
            return Some(index.to_le_bytes().to_vec());
        }
        let mut keys = state.hash.iter();
        let found = keys.find(|(_, address)| **address == value);
        found.map(|(key, _)| key.clone())
    }

    /// `bpf_map_delete_elem`: 0 or a negative errno.
    ///
    /// # Errors
    /// If `handle` is no map.
    pub fn map_delete(&mut self, handle: u64, key: u64) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_map_delete_elem")?;
        let size = map.value_size;
        let Some(key) = self.key(key, map.key_size) else {
            return Ok(error(EINVAL));
        };
        Ok(self.remove(at, &key, size))
    }

    fn remove(&mut self, at: usize, key: &[u8], size: u32) -> u64 {
        let Some(address) = self.maps[at].hash.remove(key) else {
            return error(ENOENT);
        };
        let end = address + u64::from(size);
        let timers: Vec<u64> = self.timers.range(address..end).map(|(at, _)| *at).collect();
        for timer in timers {
            self.timers.remove(&timer);
        }
        self.memory.free(address, size.into());
        0
    }

    /// `bpf_task_storage_get` and `bpf_cgrp_storage_get`: where the value is that belongs to the
    /// object at `owner`, or 0. With `create` it is made where it is not there, a copy of what is
    /// at `init`, if that is not 0.
    ///
    /// # Errors
    /// If `handle` is no map, or memory is used up.
    pub fn storage_get(
        &mut self,
        handle: u64,
        owner: u64,
        init: u64,
        create: bool,
    ) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_task_storage_get")?;
        let size = u64::from(map.value_size);
        let key = owner.to_le_bytes();
        let found = self.maps[at].hash.get(&key[..]).copied().unwrap_or(0);
        if owner == 0 || found != 0 || !create {
            return Ok(if owner == 0 { 0 } else { found });
        }
        let address = self.insert(at, key.to_vec(), size)?;
        let init = self.memory.bytes(init, size).map(<[u8]>::to_vec);
        self.write_value(at, address, &init.unwrap_or_default());
        Ok(address)
    }

    /// `bpf_task_storage_delete` and `bpf_cgrp_storage_delete`: 0 or a negative errno.
    ///
    /// # Errors
    /// If `handle` is no map.
    pub fn storage_delete(&mut self, handle: u64, owner: u64) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_task_storage_delete")?;
        let size = map.value_size;
        Ok(self.remove(at, &owner.to_le_bytes(), size))
    }

    /// Frees what belongs to a task or cgroup that is gone.
    pub fn drop_owner(&mut self, owner: u64) {
        let image = self.image.clone();
        let storages = [MapKind::TaskStorage, MapKind::CgroupStorage];
        for (at, map) in image.maps.iter().enumerate() {
            if storages.contains(&map.kind) {
                self.remove(at, &owner.to_le_bytes(), map.value_size);
            }
        }
    }

    /// `bpf_map_push_elem`: 0 or a negative errno. `BPF_EXIST` makes room by dropping the oldest.
    ///
    /// # Errors
    /// If `handle` is no map.
    pub fn queue_push(&mut self, handle: u64, value: u64, flags: u64) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_map_push_elem")?;
        let most = map.max_entries as usize;
        let Some(value) = self.key(value, map.value_size) else {
            return Ok(error(EINVAL));
        };
        let queue = &mut self.maps[at].queue;
        if queue.len() >= most {
            if flags & EXIST == 0 {
                return Ok(error(E2BIG));
            }
            queue.pop_front();
        }
        queue.push_back(value);
        Ok(0)
    }

    /// `bpf_map_pop_elem`, or `bpf_map_peek_elem` where `keep`: 0 or a negative errno.
    ///
    /// # Errors
    /// If `handle` is no map.
    pub fn queue_pop(&mut self, handle: u64, value: u64, keep: bool) -> Result<u64, Ending> {
        let (at, map) = self.map(handle, "bpf_map_pop_elem")?;
        let is_stack = map.kind == MapKind::Stack;
        let queue = &mut self.maps[at].queue;
        let taken = match (is_stack, keep) {
            (false, false) => queue.pop_front(),
            (true, false) => queue.pop_back(),
            (false, true) => queue.front().cloned(),
            (true, true) => queue.back().cloned(),
        };
        let Some(taken) = taken else {
            return Ok(error(ENOENT));
        };
        let size = taken.len() as u32;
        let to = self.memory.bytes_mut(value, size.into());
        to.ok_or(Ending::Store {
            address: value,
            size,
        })?
        .copy_from_slice(&taken);
        Ok(0)
    }
}
