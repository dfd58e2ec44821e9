//! Variables of an object by their names, and parts of them.

use std::collections::BTreeMap;

use crate::btf::{Btf, Kind};
use crate::image::Image;

/// Where variables are: map, offset, type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    all: BTreeMap<String, (u32, u64, u32)>,
}

/// Where a variable or a part of one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index in [`Image::maps`].
    pub map: u32,
    /// In the map's only value.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Whether it is a signed number.
    pub signed: bool,
}

impl Place {
    /// Whether a number fits.
    pub(crate) fn fits(&self, value: i128) -> bool {
        let bits = 8 * self.size.min(8) as u32;
        match self.signed {
            _ if bits == 0 || self.size > 8 => false,
            true => (-(1_i128 << (bits - 1))..1 << (bits - 1)).contains(&value),
            false => (0..1_i128 << bits).contains(&value),
        }
    }
}

impl Variables {
    pub(crate) fn insert(&mut self, name: String, map: u32, offset: u64, of: u32) {
        self.all.insert(name, (map, offset, of));
    }

    /// Where a variable is: map, offset, type.
    pub(crate) fn get(&self, name: &str) -> Option<(u32, u64, u32)> {
        self.all.get(name).copied()
    }

    /// The variable that a byte of a map belongs to: its name, offset and type.
    pub(crate) fn at(&self, btf: &Btf, map: u32, at: u64) -> Option<(&str, u64, u32)> {
        let mut within = self.all.iter().filter(|(_, (of, from, id))| {
            *of == map && (*from..from.saturating_add(btf.size(*id))).contains(&at)
        });
        let (name, (_, from, id)) = within.next()?;
        Some((name, *from, *id))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.keys().map(String::as_str)
    }
}

impl Image {
    /// A variable or a part of one: `slice_max`, `cpdom_ctxs[0].id`.
    ///
    /// # Errors
    /// What of the path is not there.
    pub fn variable(&self, path: &str) -> Result<Place, String> {
        let mut parts = parts(path);
        let name = parts.next().unwrap_or_default();
        let found = self.variables.get(name);
        let (map, mut offset, mut of) = found.ok_or_else(|| format!("there is no {name}"))?;
        for part in parts {
            let (more, inner) =
                step(&self.btf, of, part).ok_or_else(|| format!("{path}: there is no {part}"))?;
            (offset, of) = (offset.saturating_add(more), inner);
        }
        let signed = matches!(self.btf.kind(of), Kind::Int { signed: true, .. });
        let size = self.btf.size(of);
        let end = offset.saturating_add(size);
        let whole = self
            .maps
            .get(map as usize)
            .map_or(0, |map| map.initial.len() as u64);
        if end > whole {
            return Err(format!("{path} is outside of its section"));
        }
        Ok(Place {
            map,
            offset,
            size,
            signed,
        })
    }
}

/// The name of a variable, then those of members and indexes.
pub(crate) fn parts(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split(['.', '[']);
    parts.map(|part| part.trim_end_matches(']'))
}

/// A member of a struct, or one of an array: how far it is, and its type.
pub(crate) fn step(btf: &Btf, of: u32, part: &str) -> Option<(u64, u32)> {
    if let Kind::Array(of, count) = btf.kind(of) {
        let index: u32 = part.parse().ok().filter(|index| index < count)?;
        return Some((u64::from(index).saturating_mul(btf.size(*of)), *of));
    }
    let members = &btf.composite(of)?.members;
    if let Some(member) = members.iter().find(|member| member.name == part) {
        return Some((u64::from(member.bits / 8), member.of));
    }
    // Members of anonymous structs are the outer one's. These have smaller ids or end the search.
    let mut anonymous = members
        .iter()
        .filter(|member| member.name.is_empty() && member.of != of);
    anonymous.find_map(|member| {
        let inner = btf.composite(member.of)?;
        let found = inner.members.iter().find(|one| one.name == part)?;
        Some((u64::from(member.bits / 8 + found.bits / 8), found.of))
    })
}
