//! What a scheduler counts, read out of its maps.
//!
//! Whoever loads a scheduler holds its maps: the kernel names them in `/proc/PID/fdinfo`, and each
//! is opened once more by its id. What is a counter, and where it is in which map, the caller
//! knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::str::FromStr;

use crate::sys::bpf::Map;

/// An integer in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// What it counts.
    pub name: String,
    /// The map as its object calls it, of which the kernel keeps 15 bytes; `.bss` with something
    /// before it.
    pub map: String,
    /// Bytes of the map's values.
    pub value_size: u32,
    /// The entry of the map.
    pub key: u32,
    /// In the entry's value.
    pub offset: u32,
    /// Bytes of the integer.
    pub size: u32,
    /// How many of them are added up.
    pub copies: u32,
    /// Bytes from one to the next.
    pub distance: u32,
}

impl FromStr for Counter {
    type Err = String;

    /// `NAME:MAP:VALUE_SIZE:KEY:OFFSET:SIZE:COPIES:DISTANCE`.
    fn from_str(text: &str) -> Result<Counter, String> {
        let read = || {
            let mut parts = text.split(':');
            let (name, map) = (parts.next()?.to_owned(), parts.next()?.to_owned());
            let numbers: Result<Vec<u32>, _> = parts.map(str::parse).collect();
            let [value_size, key, offset, size, copies, distance] = numbers.ok()?[..] else {
                return None;
            };
            Some(Counter {
                name,
                map,
                value_size,
                key,
                offset,
                size,
                copies,
                distance,
            })
        };
        let fix = "write NAME:MAP and six numbers, with colons between them";
        read().ok_or_else(|| format!("{text} is no counter: {fix}"))
    }
}

impl Counter {
    fn is_in(&self, map: &Map) -> bool {
        let is_called = match self.map.starts_with('.') {
            true => map.name.ends_with(&self.map),
            false => map.name == self.map[..self.map.floor_char_boundary(15)],
        };
        is_called && map.value_size == self.value_size
    }

    /// The sum of its copies in values that each take `step` bytes.
    fn sum(&self, values: &[u8], step: usize) -> u64 {
        let copies = (0..self.copies as usize).map(|copy| copy * self.distance as usize);
        let starts = copies.map(|more| self.offset as usize + more);
        let of_value = |value| starts.clone().filter_map(move |at| self.number(value, at));
        let numbers = values.chunks(step.max(1)).flat_map(of_value);
        numbers.fold(0, u64::wrapping_add)
    }

    /// Programs of BPF are little-endian where the player is.
    fn number(&self, value: &[u8], at: usize) -> Option<u64> {
        let bytes = value.get(at..at + self.size as usize)?.iter().rev();
        Some(bytes.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// The counters of a scheduler that is loaded.
#[derive(Debug)]
pub struct Counting {
    pid: i32,
    /// Their maps by id.
    maps: Vec<(u32, Map)>,
    /// Each with the place of its map in that list.
    counters: Vec<(Counter, usize)>,
}

impl Counting {
    /// Those of `wanted` that are in maps of the process `pid`.
    pub fn of(pid: i32, wanted: &[Counter]) -> Counting {
        let cpus = possible_cpus();
        let ids = held(pid).into_iter();
        let maps = ids.filter_map(|id| Some((id, Map::open(id, cpus).ok()?)));
        let maps: Vec<(u32, Map)> = maps.collect();
        let found = wanted.iter().filter_map(|counter| {
            let mut fit = (0..maps.len()).filter(|at| counter.is_in(&maps[*at].1));
            let at = fit.next().filter(|_| fit.next().is_none())?;
            let there = maps[at].1.values(counter.key).is_ok();
            there.then(|| (counter.clone(), at))
        });
        let counters = found.collect();
        Counting {
            pid,
            maps,
            counters,
        }
    }

    /// The names of those that were found.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.counters.iter().map(|(counter, _)| &*counter.name)
    }

    /// What each of them has counted so far.
    pub fn read(&self) -> Vec<u64> {
        // Each entry is read once: that of scx_warmq has 300 KB, and all its counters.
        let mut entries = BTreeMap::new();
        let totals = self.counters.iter().map(|(counter, at)| {
            let (_, map) = &self.maps[*at];
            let values = || map.values(counter.key).unwrap_or_default();
            let values = entries.entry((at, counter.key)).or_insert_with(values);
            counter.sum(values, map.step())
        });
        totals.collect()
    }

    /// Whether they are still the scheduler's: one that is loaded anew has new maps.
    pub fn is_current(&self) -> bool {
        let held = held(self.pid);
        let mut used = self.counters.iter();
        used.all(|(_, map)| held.contains(&self.maps[*map].0))
    }
}

/// The ids of the maps that a process holds.
fn held(pid: i32) -> BTreeSet<u32> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .into_iter()
        .flatten();
    let texts = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    let id = |text: String| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix("map_id:")?.trim().parse().ok())
    };
    texts.filter_map(id).collect()
}

/// How many CPUs there may be (`0-3`: 4); if nobody knows, as many as any kernel has.
fn possible_cpus() -> usize {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let last = text.trim().rsplit(['-', ',']).next();
    last.and_then(|last| last.parse().ok()).unwrap_or(8191) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_read_from_its_text() {
        let counter: Counter = "granted:.bss:294912:0:18712:8:2:576".parse().unwrap();
        assert_eq!(
            (counter.name.as_str(), counter.map.as_str()),
            ("granted", ".bss")
        );
        let mut values = vec![0; 294_912];
        values[18_712..18_714].copy_from_slice(&[2, 1]);
        values[19_288] = 1;
        assert_eq!(counter.sum(&values, 294_912), 259);
        assert_eq!(counter.sum(&[0; 8], 8), 0, "what is not there is not added");
        for wrong in [
            "",
            "granted",
            "granted:.bss:1:2",
            "a:b:1:2:3:4:5:x",
            "a:b:1:2:3:4:5:6:7",
        ] {
            let refused = wrong.parse::<Counter>().unwrap_err();
            assert!(refused.contains("is no counter"), "{refused}");
        }
    }

    #[test]
    fn a_process_without_maps_counts_nothing() {
        let counter = "granted:.bss:8:0:0:8:1:0".parse().unwrap();
        let counting = Counting::of(std::process::id() as i32, &[counter]);
        assert_eq!((counting.names().count(), counting.read()), (0, vec![]));
        assert!(counting.is_current(), "there is nothing to lose");
    }
}
