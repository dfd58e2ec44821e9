//! What programs count: integers of an object's maps.
//!
//! Which these are, a profile says, or the code ([`Object::counted`]): what it only adds to, in
//! sections of data, arrays and arrays of each CPU. Hashes, and what belongs to tasks and cgroups,
//! are left out: their values come and go.

use crate::btf::{Btf, Kind};
use crate::fold;
use crate::image::{Map, MapKind};
use crate::object::Object;
use crate::variables::{parts, step};

/// A number that the programs of an object count with; of maps that each CPU has, of all CPUs
/// together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// `nr_direct_dispatches`, `stats.0`, or the name that an enumeration has for it.
    pub name: String,
    /// Index in [`crate::Image::maps`].
    pub map: u32,
    /// The entry; 0 of sections of data.
    pub key: u32,
    /// In the entry's value.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// How many of them are added up, and the bytes from one to the next.
    pub copies: (u32, u32),
    /// Whether of the copies only as many count as there are CPUs.
    pub of_cpus: bool,
}

/// Elements of more have no names of their own: they are added up.
const MOST_ELEMENTS: u32 = 16;
/// How many levels of structs and arrays are looked through.
const DEPTH: usize = 8;

impl Counter {
    /// Its copies on a machine of so many CPUs, and the bytes from one to the next.
    pub fn copies_on(&self, cpus: u32) -> (u32, u32) {
        let (copies, distance) = self.copies;
        let most = if self.of_cpus { cpus } else { copies };
        (copies.min(most), distance)
    }
}

impl Object {
    /// Paths of what the code counts with, as [`Object::counters`] takes them.
    pub fn counted(&self) -> Vec<String> {
        let spots = fold::counted(&self.image).into_iter();
        let paths = spots.filter_map(|spot| {
            let map = self.array(spot.map)?;
            let named = self.image.variables.at(&self.btf, spot.map, spot.at);
            let (name, from, of) = match named {
                Some(variable) => variable,
                None => (map.name.as_str(), 0, map.value_type),
            };
            let rest = path_of(&self.btf, of, spot.at - from, DEPTH)?;
            Some(format!("{name}{rest}"))
        });
        let mut paths: Vec<String> = paths.collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Counters as text, each as `warmq-player --counters` takes it, on a machine of so many CPUs.
    pub fn written<'c>(&self, counters: impl Iterator<Item = &'c Counter>, cpus: u32) -> String {
        let texts = counters.filter_map(|counter| {
            let (map, (copies, distance)) = (self.array(counter.map)?, counter.copies_on(cpus));
            let (key, offset, size) = (counter.key, counter.offset, counter.size);
            let (name, map, bytes) = (&counter.name, &map.name, map.value_size);
            Some(format!(
                "{name}:{map}:{bytes}:{key}:{offset}:{size}:{copies}:{distance}"
            ))
        });
        texts.collect::<Vec<String>>().join(" ")
    }

    /// The counters of a path: a variable, an array or what is in them. `cpus[].runs` is of all
    /// elements together, `cpus[cpu].runs` of as many as there are CPUs. What is an array itself
    /// has a counter for each element, with the names of `enumeration`, if there is one. Empty, if
    /// there is no such path or enumeration.
    pub fn counters(&self, path: &str, enumeration: Option<&str>) -> Vec<Counter> {
        self.find_counters(path, enumeration).unwrap_or_default()
    }

    fn find_counters(&self, path: &str, enumeration: Option<&str>) -> Option<Vec<Counter>> {
        let (one, of) = self.find(path)?;
        let names = match enumeration {
            Some(name) => Some(self.names_of(name)?),
            None => None,
        };
        let map = &self.image.maps[one.map as usize];
        let (of, elements, by_key) = match *self.btf.kind(of) {
            Kind::Array(element, count) => (element, count, false),
            _ => (of, map.max_entries, true),
        };
        let size = match *self.btf.kind(of) {
            Kind::Int { size, .. } => size,
            // Only its size was declared.
            Kind::Void => map.value_size,
            _ => return None,
        };
        let one = Counter { size, ..one };
        let within = if by_key { 1 } else { u64::from(elements) };
        let last = u64::from(one.copies.0.max(1) - 1) * u64::from(one.copies.1);
        let end = u64::from(one.offset) + last + within * u64::from(size);
        (end <= map.value_size.into()).then_some(())?;
        let element = |at: u32, name: String| {
            let (key, more) = if by_key { (at, 0) } else { (0, at * size) };
            let offset = one.offset + more;
            Counter {
                name,
                key,
                offset,
                ..one.clone()
            }
        };
        Some(match names {
            Some(names) => {
                let numbers = names.into_iter().filter_map(|(name, at)| {
                    let at = u32::try_from(at).ok().filter(|at| *at < elements)?;
                    Some(element(at, name))
                });
                numbers.collect()
            }
            None if elements == 1 => vec![one],
            None if elements <= MOST_ELEMENTS => {
                let named = |at| element(at, format!("{}.{at}", one.name));
                (0..elements).map(named).collect()
            }
            None if by_key => return None,
            None => vec![Counter {
                copies: (elements, size),
                ..one
            }],
        })
    }

    /// A map that is a section of data or an array.
    fn array(&self, map: u32) -> Option<&Map> {
        let map = self.image.maps.get(map as usize)?;
        matches!(map.kind, MapKind::Array | MapKind::PerCpuArray).then_some(map)
    }

    /// What a path leads to, as if it were one number, and its type.
    fn find(&self, path: &str) -> Option<(Counter, u32)> {
        let mut parts = parts(path);
        let name = parts.next()?;
        let (map, offset, mut of) = match self.image.variables.get(name) {
            Some(found) => found,
            None => {
                let (at, map) = self.image.map(name)?;
                (at, 0, map.value_type)
            }
        };
        self.array(map)?;
        let mut one = Counter {
            name: name.to_owned(),
            map,
            key: 0,
            offset: u32::try_from(offset).ok()?,
            size: 0,
            copies: (1, 0),
            of_cpus: false,
        };
        for part in parts {
            let more = match (part, self.btf.kind(of)) {
                ("" | "cpu", Kind::Array(element, count)) => {
                    one.of_cpus = part == "cpu";
                    one.copies = (*count, self.btf.size(*element) as u32);
                    of = *element;
                    continue;
                }
                _ => step(&self.btf, of, part)?,
            };
            one.offset = one.offset.checked_add(u32::try_from(more.0).ok()?)?;
            one.name = format!("{}.{part}", one.name);
            of = more.1;
        }
        Some((one, of))
    }

    /// The names and values of an enumeration, in small letters and without what all begin with.
    fn names_of(&self, enumeration: &str) -> Option<Vec<(String, i64)>> {
        let mut named = self.btf.types.iter().filter(|of| of.name == enumeration);
        let values = named.find_map(|of| match &of.kind {
            Kind::Enum { values, .. } => Some(values),
            _ => None,
        })?;
        // The last is how many there are.
        let (_, values) = values.split_last()?;
        let (first, _) = values.first()?;
        let begins = |end: &usize| {
            let mut names = values.iter();
            names.all(|(name, _)| name.starts_with(&first[..*end]))
        };
        let ends = first.match_indices('_').map(|(at, _)| at + 1);
        let common = ends.take_while(begins).last().unwrap_or(0);
        let named = values.iter();
        let named = named.map(|(name, value)| (name[common..].to_lowercase(), *value));
        Some(named.collect())
    }
}

/// The path within a type of the integer at `at`, or of the array of integers that it is in.
fn path_of(btf: &Btf, of: u32, at: u64, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    match btf.kind(of) {
        Kind::Int { .. } | Kind::Void => Some(String::new()),
        Kind::Array(element, _) if matches!(btf.kind(*element), Kind::Int { .. }) => {
            Some(String::new())
        }
        Kind::Array(element, _) => {
            let rest = path_of(btf, *element, at % btf.size(*element).max(1), depth)?;
            Some(format!("[]{rest}"))
        }
        Kind::Struct(composite) => {
            let mut members = composite.members.iter();
            let member = members.find(|member| {
                let from = u64::from(member.bits / 8);
                member.bit_size == 0
                    && (from..from.saturating_add(btf.size(member.of))).contains(&at)
            })?;
            let rest = path_of(btf, member.of, at - u64::from(member.bits / 8), depth)?;
            let name = &member.name;
            Some(if name.is_empty() {
                rest
            } else {
                format!(".{name}{rest}")
            })
        }
        _ => None,
    }
}
