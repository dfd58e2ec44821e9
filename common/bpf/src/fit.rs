//! How an object is fitted to a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::btf::{Btf, Kind, essential};
use crate::core_relo;
use crate::fold;
use crate::image::{Image, Map, MapKind, ProgramKind, To};
use crate::kernel::KernelTable;
use crate::missing::{Missing, Offer, What};
use crate::object::{Extern, ExternKind, Object};

/// What is found while an object is fitted; counted only where code is live.
#[derive(Default)]
struct Found {
    /// Instructions that cannot be fitted.
    broken: BTreeMap<u32, What>,
    /// Fields that instructions use.
    fields: BTreeMap<u32, (String, String)>,
    /// Kfuncs and variables by the indexes that instructions have for now.
    kfuncs: Vec<String>,
}

impl Object {
    /// Fits the object to a kernel, for whoever offers this. Programs at events that are not
    /// offered are left out, and so is whatever only other kernels run.
    ///
    /// Enumerators are filled as by [`Object::suit`].
    ///
    /// # Errors
    /// All that is missing.
    pub fn fit(&self, kernel: &KernelTable, offer: &Offer) -> Result<Image, Vec<Missing>> {
        let mut image = self.image.clone();
        fill_enumerators(&mut image, kernel);
        let mut found = Found::default();
        self.resolve_externs(&mut image, kernel, &mut found);
        for (at, relo) in &self.relocations {
            let Some(insn) = image.code.get_mut(*at as usize) else {
                continue;
            };
            match core_relo::answer(&self.btf, relo, kernel) {
                Ok(answer) if core_relo::patch(insn, &answer) => {
                    found.fields.extend(answer.field.map(|field| (*at, field)));
                }
                Ok(_) => {
                    let text = format!("has a CO-RE relocation at instruction {:#04x}", insn.code);
                    found.broken.insert(*at, What::Other(text));
                }
                Err(what) => drop(found.broken.insert(*at, what)),
            }
        }
        let entries = entries(&image, offer);
        image.live = fold::live(&image, entries.into_iter());
        let mut missing = missing(&image, kernel, offer, &found);
        missing.extend(self.without_size(&image));
        if !missing.is_empty() {
            return Err(missing);
        }
        keep_live(&mut image, found.kfuncs);
        Ok(image)
    }

    /// Maps and arrays that live code names and that have no size yet.
    fn without_size(&self, image: &Image) -> Vec<Missing> {
        let named = |at: usize| {
            let mut live = image
                .code
                .iter()
                .zip(&image.live)
                .filter(|(_, live)| **live);
            live.any(|(insn, _)| match insn.to {
                To::Map(map) | To::MapValue(map, _) => map as usize == at,
                _ => false,
            })
        };
        let maps = image.maps.iter().enumerate();
        let empty = maps.filter(|(_, map)| map.max_entries == 0 && map.kind.has_size());
        let empty = empty.map(|(at, map)| (at, map.name.clone()));
        let arrays =
            crate::maps::arrays(&self.btf, image).filter(|array| !self.sized.contains(&array.name));
        let all = empty.chain(arrays.map(|array| (array.map, array.name)));
        let named = all.filter(|(at, _)| named(*at));
        let missing = |(_, name)| Missing {
            what: What::Size(name),
            place: None,
        };
        named.map(missing).collect()
    }

    /// Does what scx_utils' user space does for a kernel: variables `__SCX_...` that are 0 get the
    /// enumerator of that name, and callbacks that the kernel does not have are taken out.
    pub fn suit(&mut self, kernel: &KernelTable) {
        fill_enumerators(&mut self.image, kernel);
        let Some(ops) = &mut self.image.ops else {
            return;
        };
        let of = ops.type_name.as_str();
        let knows = |member: &str| kernel.field(of, member).is_some();
        ops.callbacks.retain(|name, _| knows(name));
        let numbers = ops.numbers.iter_mut().filter(|(name, _)| !knows(name));
        numbers.for_each(|(_, number)| *number = 0);
    }

    fn resolve_externs(&self, image: &mut Image, kernel: &KernelTable, found: &mut Found) {
        let options = options(&self.btf, &self.externs, kernel);
        let config = image.maps.len() as u32;
        for (at, which) in &self.uses {
            let Some(insn) = image.code.get_mut(*at as usize) else {
                continue;
            };
            let one = &self.externs[*which];
            let to = match &one.kind {
                ExternKind::Config(_) => options.at.get(which).map(|at| To::MapValue(config, *at)),
                ExternKind::Variable => kernel
                    .variables
                    .contains_key(&one.name)
                    .then(|| To::Kernel(index(&mut image.kernel_variables, &one.name))),
                ExternKind::Function(signature) => {
                    let name = essential(&one.name);
                    let is_there = kernel.kfuncs.get(name).is_some_and(|has| has == signature);
                    is_there.then(|| To::Kfunc(index(&mut found.kfuncs, name)))
                }
            };
            match to {
                // The address of a kfunc is only compared with 0.
                Some(To::Kfunc(_)) if insn.code == 0x18 => insn.to = To::Number(1),
                Some(to) => insn.to = to,
                None if one.weak && insn.code == 0x18 => insn.to = To::Number(0),
                None => drop(found.broken.insert(*at, lacking(one))),
            }
        }
        if !options.bytes.is_empty() {
            image.maps.push(Map {
                name: ".kconfig".to_owned(),
                kind: MapKind::Array,
                key_size: 4,
                value_size: options.bytes.len() as u32,
                max_entries: 1,
                initial: Arc::new(options.bytes),
                frozen: true,
                ..Map::default()
            });
        }
    }
}

fn fill_enumerators(image: &mut Image, kernel: &KernelTable) {
    let names: Vec<String> = image.variables.names().map(str::to_owned).collect();
    for name in names.iter().filter(|name| name.starts_with("__SCX_")) {
        let (Ok(place), Some(value)) = (image.variable(name), kernel.enum_value(&name[2..])) else {
            continue;
        };
        let initial = Arc::make_mut(&mut image.maps[place.map as usize].initial);
        let at = place.offset as usize..(place.offset + place.size) as usize;
        let bytes = value.to_le_bytes();
        let bytes = bytes.get(..place.size as usize);
        if let (Some(old), Some(bytes)) = (initial.get_mut(at), bytes)
            && old.iter().all(|byte| *byte == 0)
        {
            old.copy_from_slice(bytes);
        }
    }
}

/// The index of a name, which is added if it is not there.
fn index(names: &mut Vec<String>, name: &str) -> u32 {
    let at = names.iter().position(|one| one == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    at as u32
}

fn lacking(one: &Extern) -> What {
    let name = one.name.clone();
    match one.kind {
        ExternKind::Config(_) => What::Config(name),
        ExternKind::Variable => What::Variable(name),
        ExternKind::Function(_) => What::Kfunc(name),
    }
}

/// `.kconfig` as a map's value, and where each extern is in it.
struct Options {
    bytes: Vec<u8>,
    at: BTreeMap<usize, u32>,
}

fn options(btf: &Btf, externs: &[Extern], kernel: &KernelTable) -> Options {
    let mut options = Options {
        bytes: Vec::new(),
        at: BTreeMap::new(),
    };
    for (which, one) in externs.iter().enumerate() {
        let ExternKind::Config(of) = one.kind else {
            continue;
        };
        let value = match one.name.as_str() {
            "LINUX_KERNEL_VERSION" => Some(kernel.version_code().to_string()),
            name => kernel.config.get(name).cloned(),
        };
        let Some(bytes) = option(btf, of, value.as_deref().or(one.weak.then_some("n"))) else {
            continue;
        };
        options
            .bytes
            .resize(options.bytes.len().next_multiple_of(8), 0);
        options.at.insert(which, options.bytes.len() as u32);
        options.bytes.extend(bytes);
    }
    options
}

/// The longest text of an option.
const MOST_TEXT: u64 = 4096;

/// An option's bytes as libbpf writes them.
fn option(btf: &Btf, of: u32, value: Option<&str>) -> Option<Vec<u8>> {
    let value = value?;
    let size = btf.size(of).min(MOST_TEXT) as usize;
    let number = match (btf.kind(of), value) {
        (Kind::Array(..), text) => {
            let mut bytes = text.as_bytes().to_vec();
            bytes.resize(size, 0);
            return Some(bytes);
        }
        // An enum libbpf_tristate: no, yes, module. A char has the letter itself.
        (
            Kind::Int {
                size: 1,
                signed: true,
            },
            "y" | "n" | "m",
        ) => u64::from(value.as_bytes()[0]),
        (_, "y") => 1,
        (_, "n") => 0,
        (_, "m") => 2,
        (_, number) => number.parse().ok()?,
    };
    number.to_le_bytes().get(..size).map(<[u8]>::to_vec)
}

/// Programs that are called: callbacks, programs of user space, and those at events that there are,
/// if they are turned on.
fn entries(image: &Image, offer: &Offer) -> Vec<u32> {
    let callbacks = image.ops.iter().flat_map(|ops| &ops.callbacks);
    let is_called = |name: &String| {
        let called = offer.callbacks.as_ref();
        called.is_none_or(|called| called.contains(name))
    };
    let callbacks = callbacks.filter(|(name, _)| is_called(name));
    let callbacks = callbacks.map(|(_, function)| *function);
    let programs = image.programs.iter().filter(|program| {
        let event = program.kind.event();
        let runs = event.map_or(program.kind == ProgramKind::Syscall, |event| {
            offer.events.contains(&event)
        });
        runs && !program.optional
    });
    callbacks
        .chain(programs.map(|program| program.function))
        .collect()
}

/// All that live code needs and nobody has.
fn missing(image: &Image, kernel: &KernelTable, offer: &Offer, found: &Found) -> Vec<Missing> {
    let mut missing = BTreeMap::new();
    let mut maps = BTreeSet::new();
    let live = image.live.iter().enumerate().filter(|(_, live)| **live);
    for (at, insn) in live.map(|(at, _)| (at as u32, &image.code[at])) {
        let mut need = |what: What| {
            let place = || image.line_at(at).map(crate::image::Line::place);
            missing.entry(what).or_insert_with(place);
        };
        if let Some(what) = found.broken.get(&at) {
            need(what.clone());
            continue;
        }
        if let Some(field) = found.fields.get(&at)
            && offer
                .fields
                .as_ref()
                .is_some_and(|fields| !fields.contains(field))
        {
            need(What::Field(field.0.clone(), field.1.clone()));
        }
        match insn.to {
            To::Kfunc(which) => {
                let name = &found.kfuncs[which as usize];
                if !offer.kfuncs.contains(name) {
                    need(What::Kfunc(name.clone()));
                }
            }
            To::Helper(number) if !offer.helpers.contains(&number) => {
                let name = kernel.helper_name(number);
                need(What::Helper(
                    name.unwrap_or_else(|| format!("helper {number}")),
                ));
            }
            To::Kernel(which) => {
                let name = &image.kernel_variables[which as usize];
                if !offer.variables.contains(name) {
                    need(What::Variable(name.clone()));
                }
            }
            To::Map(map) | To::MapValue(map, _) => drop(maps.insert(map)),
            _ => {}
        }
    }
    for map in maps.iter().filter_map(|map| image.maps.get(*map as usize)) {
        if !offer.maps.contains(&map.kind.number()) {
            let kind = format!("{:?}", map.kind);
            missing.insert(What::Map(map.name.clone(), kind), None);
        }
    }
    missing
        .into_iter()
        .map(|(what, place)| Missing { what, place })
        .collect()
}

/// Names only the kfuncs and variables that live code has.
fn keep_live(image: &mut Image, kfuncs: Vec<String>) {
    let variables = std::mem::take(&mut image.kernel_variables);
    for (insn, live) in image.code.iter_mut().zip(&image.live) {
        match insn.to {
            To::Kfunc(which) if *live => {
                insn.to = To::Kfunc(index(&mut image.kfuncs, &kfuncs[which as usize]));
            }
            To::Kernel(which) if *live => {
                let name = &variables[which as usize];
                insn.to = To::Kernel(index(&mut image.kernel_variables, name));
            }
            To::Kfunc(_) | To::Kernel(_) => insn.to = To::Nothing,
            _ => {}
        }
    }
}
