//! Maps of an object: those that it declares in `.maps`, and sections of data.

use std::sync::Arc;

use crate::btf::{Btf, Kind, Member};
use crate::elf::Elf;
use crate::image::{Image, Map, MapKind, Special, SpecialKind};

/// `BPF_F_RDONLY_PROG`, which libbpf sets for `.rodata`.
const READ_ONLY: u32 = 1 << 7;
/// The section of variables that are in the arena.
const OF_ARENA: &str = ".addr_space.1";
/// How many levels of structs and arrays are searched for what is the kernel's.
const DEPTH: usize = 6;
/// The most fields of a value that are the kernel's, elements of arrays counted; the most maps that
/// a map is declared with.
const MOST_SPECIAL: usize = 4096;

/// Maps of `.maps`, and the offset of each in that section.
pub(crate) fn declared(elf: &Elf, btf: &Btf) -> Vec<(u32, Map)> {
    let mut maps: Vec<(u32, Map)> = Vec::new();
    for (variable, offset, _) in btf.section(".maps") {
        let mut map = declaration(btf, *variable, 1);
        map.name.clone_from(&btf.get(*variable).name);
        maps.push((*offset, map));
    }
    fill_maps_of_maps(elf, btf, &mut maps);
    let arena = elf.sections.iter().find(|section| section.name == OF_ARENA);
    let map = maps.iter_mut().find(|(_, map)| map.kind == MapKind::Arena);
    if let (Some(section), Some((_, map))) = (arena, map) {
        map.initial = Arc::new(section.bytes.clone());
    }
    maps
}

/// `__uint(name, N)`: a pointer to an array of N.
fn number(btf: &Btf, member: &Member) -> u64 {
    let Kind::Ptr(to) = btf.kind(member.of) else {
        return 0;
    };
    match btf.kind(*to) {
        Kind::Array(_, count) => u64::from(*count),
        _ => 0,
    }
}

/// `__ulong(name, N)`: an enum with one value.
fn long(btf: &Btf, member: &Member) -> u64 {
    let pointed = match btf.kind(member.of) {
        Kind::Ptr(to) => *to,
        _ => member.of,
    };
    match btf.kind(pointed) {
        Kind::Enum { values, .. } => values.first().map_or(0, |(_, value)| *value as u64),
        _ => number(btf, member),
    }
}

/// `__type(name, T)`: a pointer to T.
fn typed(btf: &Btf, member: &Member) -> u32 {
    match btf.kind(member.of) {
        Kind::Ptr(to) => *to,
        _ => 0,
    }
}

/// A map's declaration, and that of what it holds, `levels` deep.
fn declaration(btf: &Btf, variable: u32, levels: usize) -> Map {
    let mut map = Map::default();
    let members = btf
        .composite(variable)
        .map(|composite| &composite.members[..]);
    for member in members.unwrap_or_default() {
        let value = number(btf, member) as u32;
        match member.name.as_str() {
            "type" => map.kind = MapKind::of(value),
            "max_entries" => map.max_entries = value,
            "map_flags" => map.flags = value,
            "key_size" => map.key_size = value,
            "value_size" => map.value_size = value,
            "map_extra" => map.extra = long(btf, member),
            "key" => map.key_size = btf.size(typed(btf, member)) as u32,
            "value" => {
                let of = typed(btf, member);
                (map.value_type, map.value_size) = (of, btf.size(of) as u32);
                special(btf, of, 0, DEPTH, &mut map.special);
            }
            "values" => map.inner = inner(btf, member, levels).map(Box::new),
            _ => {}
        }
    }
    if map.inner.is_some() {
        (map.key_size, map.value_size) = (4, 4);
    }
    map
}

/// `__array(values, struct {...})`: an array of pointers to declarations.
fn inner(btf: &Btf, member: &Member, levels: usize) -> Option<Map> {
    let Kind::Array(of, _) = btf.kind(member.of) else {
        return None;
    };
    let Kind::Ptr(to) = btf.kind(*of) else {
        return None;
    };
    (levels > 0 && btf.composite(*to).is_some()).then(|| declaration(btf, *to, levels - 1))
}

/// What is the kernel's in a value of type `id` at `offset`.
fn special(btf: &Btf, id: u32, offset: u32, depth: usize, found: &mut Vec<Special>) {
    let kind = match btf.get(btf.resolve(id)).name.as_str() {
        "bpf_timer" => Some(SpecialKind::Timer),
        "bpf_spin_lock" => Some(SpecialKind::SpinLock),
        _ => kptr(btf, id).map(SpecialKind::Kptr),
    };
    if found.len() >= MOST_SPECIAL || depth == 0 {
        return;
    }
    if let Some(kind) = kind {
        found.push(Special { offset, kind });
        return;
    }
    match btf.kind(id) {
        Kind::Struct(composite) | Kind::Union(composite) => {
            for member in &composite.members {
                let at = offset.saturating_add(member.bits / 8);
                special(btf, member.of, at, depth - 1, found);
            }
        }
        Kind::Array(of, count) if btf.composite(*of).is_some() || kptr(btf, *of).is_some() => {
            let size = btf.size(*of) as u32;
            for index in 0..(*count).min(MOST_SPECIAL as u32) {
                let at = offset.saturating_add(index.saturating_mul(size));
                special(btf, *of, at, depth - 1, found);
            }
        }
        _ => {}
    }
}

/// The type that a `__kptr` pointer points to.
fn kptr(btf: &Btf, id: u32) -> Option<String> {
    let Kind::Ptr(to) = btf.kind(id) else {
        return None;
    };
    let mut at = *to;
    let mut tagged = false;
    for _ in 0..DEPTH {
        match btf.get(at).kind {
            Kind::TypeTag(to) => {
                tagged |= btf.get(at).name.starts_with("kptr");
                at = to;
            }
            Kind::Modifier(to) | Kind::Typedef(to) => at = to,
            _ => break,
        }
    }
    tagged.then(|| btf.get(at).name.clone())
}

/// Which maps a map of maps is declared with: relocations within its variable.
fn fill_maps_of_maps(elf: &Elf, btf: &Btf, maps: &mut [(u32, Map)]) {
    let Some(section) = elf.sections.iter().find(|section| section.name == ".maps") else {
        return;
    };
    let offsets: Vec<u32> = maps.iter().map(|(offset, _)| *offset).collect();
    for ((variable, offset, size), (_, map)) in btf.section(".maps").iter().zip(maps) {
        let members = btf
            .composite(*variable)
            .map(|composite| &composite.members[..]);
        let values = members
            .unwrap_or_default()
            .iter()
            .find(|member| member.name == "values");
        let Some(first) = values.map(|values| offset.saturating_add(values.bits / 8)) else {
            continue;
        };
        let within = first as usize..offset.saturating_add(*size) as usize;
        for relocation in section
            .relocations
            .iter()
            .filter(|one| within.contains(&one.offset))
        {
            let slot = (relocation.offset - first as usize) / 8;
            let to = elf
                .symbols
                .get(relocation.symbol)
                .map(|symbol| symbol.value);
            let named = offsets
                .iter()
                .position(|offset| Some(*offset as usize) == to);
            if slot >= MOST_SPECIAL {
                continue;
            }
            map.values.resize(map.values.len().max(slot + 1), None);
            map.values[slot] = named.map(|at| at as u32);
        }
    }
}

/// Sections of data as maps, and the index of each section.
pub(crate) fn of_data(elf: &Elf) -> Vec<(usize, Map)> {
    let data = |name: &str| {
        [".data", ".bss", ".rodata"]
            .iter()
            .any(|kind| name == *kind || name.starts_with(&format!("{kind}.")))
    };
    let sections = elf.sections.iter().enumerate();
    let of_data = sections.filter(|(_, section)| data(&section.name) && !section.bytes.is_empty());
    let map = |(at, section): (usize, &crate::elf::Section)| {
        let frozen = section.name.starts_with(".rodata");
        let map = Map {
            name: section.name.clone(),
            kind: MapKind::Array,
            key_size: 4,
            value_size: section.bytes.len() as u32,
            max_entries: 1,
            flags: if frozen { READ_ONLY } else { 0 },
            initial: Arc::new(section.bytes.clone()),
            frozen,
            ..Map::default()
        };
        (at, map)
    };
    of_data.map(map).collect()
}

/// An array that is alone in a section of data (`RESIZABLE_ARRAY` of scx): its loader gives it its
/// size.
pub(crate) struct Array {
    pub(crate) name: String,
    /// Index in [`Image::maps`].
    pub(crate) map: usize,
    /// Bytes of an element.
    pub(crate) element: u32,
}

/// Arrays of one element that have sections `.data.NAME`, `.bss.NAME` or `.rodata.NAME`.
pub(crate) fn arrays(btf: &Btf, image: &Image) -> impl Iterator<Item = Array> {
    let maps = image.maps.iter().enumerate();
    maps.filter_map(|(at, map)| {
        let (_, name) = map.name.strip_prefix('.')?.split_once('.')?;
        let [(variable, _, _)] = btf.section(&map.name) else {
            return None;
        };
        let Kind::Array(of, 1) = btf.kind(*variable) else {
            return None;
        };
        let one = btf.get(*variable).name == name;
        one.then(|| Array {
            name: name.to_owned(),
            map: at,
            element: btf.size(*of) as u32,
        })
    })
}
