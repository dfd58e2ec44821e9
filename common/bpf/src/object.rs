//! An object as it was compiled, before it is fitted to a kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::btf::{Btf, Kind};
use crate::bytes::u32_at;
use crate::elf::{self, Elf, Symbol};
use crate::ext::{self, Relo};
use crate::image::{Function, Image, Insn, Program, ProgramKind, StructOps, To};
use crate::maps;
use crate::ops;
use crate::variables::{Place, Variables};

/// An object as it was compiled. [`Object::set`] writes variables; [`Object::fit`] makes an
/// [`Image`] of it.
#[derive(Clone, Debug)]
pub struct Object {
    /// What does not depend on the kernel; calls and addresses of externs are not resolved.
    pub(crate) image: Image,
    pub(crate) btf: Arc<Btf>,
    /// By CO-RE, and their instructions.
    pub(crate) relocations: Vec<(u32, Relo)>,
    pub(crate) externs: Vec<Extern>,
    /// Instructions that name an extern, by its index.
    pub(crate) uses: BTreeMap<u32, usize>,
    /// Arrays to which [`Object::resize`] gave their size.
    pub(crate) sized: BTreeSet<String>,
}

/// What the kernel has to provide.
#[derive(Clone, Debug)]
pub(crate) struct Extern {
    pub(crate) name: String,
    pub(crate) weak: bool,
    pub(crate) kind: ExternKind,
}

/// Kinds of [`Extern`].
#[derive(Clone, Debug)]
pub(crate) enum ExternKind {
    /// A kfunc and its signature.
    Function(String),
    /// A variable of the kernel.
    Variable,
    /// An option of the kernel's configuration, and its type.
    Config(u32),
}

/// Why bytes are no object that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Neither an object nor a program that has one inside.
    #[error("there is no compiled BPF program in it")]
    NoObject,
    /// Without `-g`, nothing can be fitted.
    #[error("it has no readable {0}: compile it with -g")]
    NoTypes(&'static str),
    /// A relocation that leads nowhere.
    #[error("instruction {at} of section {section} names nothing that is there")]
    Relocation {
        /// The section.
        section: String,
        /// From the section's first.
        at: usize,
    },
}

/// Where things are while an object is put together.
struct Linker<'e> {
    elf: &'e Elf,
    /// The first instruction of each section with code.
    code: BTreeMap<usize, u32>,
    /// The map of each section of data.
    data: BTreeMap<usize, u32>,
    /// The map of each offset in `.maps`.
    maps: BTreeMap<usize, u32>,
    /// The map that has variables of the arena, and its section.
    arena: Option<(usize, u32)>,
    /// Externs by their symbols.
    externs: BTreeMap<usize, usize>,
}

impl Object {
    /// Reads an object, or a program that has one inside.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Object, Unreadable> {
        let elf = elf::find(bytes).ok_or(Unreadable::NoObject)?;
        let section = |name: &str| elf.sections.iter().find(|section| section.name == name);
        let btf = section(".BTF").and_then(|section| Btf::read(&section.bytes));
        let mut btf = btf.ok_or(Unreadable::NoTypes(".BTF"))?;
        btf.place_variables(|section, name| elf.offset(section, name));
        let mut image = Image::default();
        let declared = maps::declared(&elf, &btf);
        let of_data = maps::of_data(&elf);
        let mut linker = Linker::new(&elf, &declared, &of_data);
        image.maps.extend(declared.into_iter().map(|(_, map)| map));
        image.maps.extend(of_data.into_iter().map(|(_, map)| map));
        let externs = linker.find_externs(&btf);
        linker.read_code(&mut image);
        let uses = linker.link(&mut image)?;
        image.ops = ops::read(&elf, &btf, &image.functions);
        image.programs = programs(&elf, &image);
        image.variables = Arc::new(linker.variables(&btf));
        let mut object = Object {
            image,
            btf: Arc::new(btf),
            relocations: Vec::new(),
            externs,
            uses,
            sized: BTreeSet::new(),
        };
        object.image.btf = object.btf.clone();
        if let Some(ext) = section(".BTF.ext") {
            object
                .read_ext(&ext.bytes, &linker)
                .ok_or(Unreadable::NoTypes(".BTF.ext"))?;
        }
        Ok(object)
    }

    fn read_ext(&mut self, bytes: &[u8], linker: &Linker<'_>) -> Option<()> {
        for said in ext::lines(bytes, &self.btf)? {
            let base = linker.section_named(&said.section);
            let lines = said
                .of
                .into_iter()
                .filter_map(|(at, line)| Some((base? + at / 8, line)));
            self.image.lines.extend(lines);
        }
        for said in ext::relocations(bytes, &self.btf)? {
            let base = linker.section_named(&said.section);
            let relos = said
                .of
                .into_iter()
                .filter_map(|(at, relo)| Some((base? + at / 8, relo)));
            self.relocations.extend(relos);
        }
        Some(())
    }

    /// The name in its `sched_ext_ops`.
    pub fn name(&self) -> Option<&str> {
        self.image
            .ops
            .as_ref()?
            .texts
            .get("name")
            .map(String::as_str)
    }

    /// Its callbacks and their settings.
    pub fn ops(&self) -> Option<&StructOps> {
        self.image.ops.as_ref()
    }

    /// Its programs.
    pub fn programs(&self) -> &[Program] {
        &self.image.programs
    }

    /// Names of its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.image.variables.names()
    }

    /// A variable or a part of one: `slice_max`, `cpdom_ctxs[0].id`.
    ///
    /// # Errors
    /// What of the path is not there.
    pub fn variable(&self, path: &str) -> Result<Place, String> {
        self.image.variable(path)
    }

    /// Sets a variable or a part of one, as user space does before loading. A map's value of one
    /// number is set by it; arrays of characters by [`Object::set_bytes`].
    ///
    /// # Errors
    /// What of the path is not there, or that the number does not fit.
    pub fn set(&mut self, path: &str, value: i128) -> Result<(), String> {
        let place = self.variable(path)?;
        if !place.fits(value) {
            return Err(format!(
                "{path} has {} bytes, and {value} does not fit",
                place.size
            ));
        }
        let bytes = (value as u64).to_le_bytes();
        self.write(&place, &bytes[..place.size.min(8) as usize]);
        Ok(())
    }

    /// Sets all bytes of a variable or a part of one; those that are left are 0.
    ///
    /// # Errors
    /// What of the path is not there, or that there are too many.
    pub fn set_bytes(&mut self, path: &str, bytes: &[u8]) -> Result<(), String> {
        let place = self.variable(path)?;
        if bytes.len() as u64 > place.size {
            return Err(format!(
                "{path} has {} bytes, not {}",
                place.size,
                bytes.len()
            ));
        }
        let mut all = bytes.to_vec();
        all.resize(place.size as usize, 0);
        self.write(&place, &all);
        Ok(())
    }

    /// The initial value of a variable or a part of one, of 8 bytes at most.
    pub fn initial(&self, place: &Place) -> Option<u64> {
        let initial = &self.image.maps.get(place.map as usize)?.initial;
        let at = place.offset as usize;
        let bytes = initial.get(at..at.checked_add(place.size.min(8) as usize)?)?;
        let number = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        Some(bytes.iter().rev().fold(0, number))
    }

    fn write(&mut self, place: &Place, bytes: &[u8]) {
        let map = &mut self.image.maps[place.map as usize];
        let initial = Arc::make_mut(&mut map.initial);
        let at = place.offset as usize;
        if let Some(old) = at
            .checked_add(bytes.len())
            .and_then(|end| initial.get_mut(at..end))
        {
            old.copy_from_slice(bytes);
        }
    }

    /// How many elements a map has, or an array that is alone in its section, as user space may say
    /// before loading.
    ///
    /// # Errors
    /// If there is no such map or array.
    pub fn resize(&mut self, name: &str, elements: u32) -> Result<(), String> {
        let maps = &mut self.image.maps;
        if let Some(map) = maps.iter_mut().find(|map| map.name == name) {
            map.max_entries = elements;
            return Ok(());
        }
        let array = maps::arrays(&self.btf, &self.image).find(|array| array.name == name);
        let array = array.ok_or_else(|| format!("there is no map or array {name}"))?;
        let map = &mut self.image.maps[array.map];
        let size = u64::from(array.element) * u64::from(elements);
        map.value_size = u32::try_from(size).map_err(|_| format!("{name} is too large"))?;
        Arc::make_mut(&mut map.initial).resize(size as usize, 0);
        self.sized.insert(name.to_owned());
        Ok(())
    }

    /// Turns on an optional program.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn turn_on(&mut self, program: &str) -> Result<(), String> {
        let mut programs = self.image.programs.iter_mut();
        let found = programs.find(|one| one.name == program);
        let found = found.ok_or_else(|| format!("there is no program {program}"))?;
        found.optional = false;
        Ok(())
    }

    /// Takes a callback out of its struct.
    pub fn take_out(&mut self, callback: &str) {
        if let Some(ops) = &mut self.image.ops {
            ops.callbacks.remove(callback);
        }
    }

    /// Adds flags to its callbacks' struct.
    pub fn add_flags(&mut self, flags: u64) {
        if let Some(ops) = self.image.ops.as_mut().filter(|_| flags != 0) {
            *ops.numbers.entry("flags".to_owned()).or_default() |= flags;
        }
    }

    /// Bytes of a struct of its own, by its name.
    pub fn size_of(&self, name: &str) -> Option<u64> {
        let mut named = self.btf.types.iter().filter(|of| of.name == name);
        named.find_map(|of| match &of.kind {
            Kind::Struct(composite) => Some(composite.size.into()),
            _ => None,
        })
    }
}

impl<'e> Linker<'e> {
    fn new(
        elf: &'e Elf,
        declared: &[(u32, crate::image::Map)],
        of_data: &[(usize, crate::image::Map)],
    ) -> Linker<'e> {
        let mut linker = Linker {
            elf,
            code: BTreeMap::new(),
            data: BTreeMap::new(),
            maps: (0..)
                .zip(declared)
                .map(|(at, (offset, _))| (*offset as usize, at))
                .collect(),
            arena: None,
            externs: BTreeMap::new(),
        };
        let first = declared.len() as u32;
        linker.data = (first..)
            .zip(of_data)
            .map(|(at, (section, _))| (*section, at))
            .collect();
        let arena = declared
            .iter()
            .position(|(_, map)| map.kind == crate::image::MapKind::Arena);
        let section = elf
            .sections
            .iter()
            .position(|section| section.name == ".addr_space.1");
        linker.arena = section.zip(arena.map(|at| at as u32));
        linker
    }

    fn section_named(&self, name: &str) -> Option<u32> {
        let mut all = self.code.iter();
        let named = all.find(|(section, _)| self.elf.name(**section) == name);
        named.map(|(_, start)| *start)
    }

    /// Reads all sections of code, one after another, and finds the functions in them.
    fn read_code(&mut self, image: &mut Image) {
        for (at, section) in self
            .elf
            .sections
            .iter()
            .enumerate()
            .filter(|(_, one)| one.code)
        {
            self.code.insert(at, image.code.len() as u32);
            image.code.extend(section.bytes.chunks_exact(8).map(insn));
        }
        for symbol in self.elf.symbols.iter().filter(|symbol| symbol.function) {
            let Some((section, base)) = symbol
                .section
                .and_then(|at| Some((at, self.code.get(&at)?)))
            else {
                continue;
            };
            let start = base + (symbol.value / 8) as u32;
            image.functions.push(Function {
                name: symbol.name.clone(),
                section: self.elf.name(section).to_owned(),
                start,
                end: start
                    .saturating_add((symbol.size / 8) as u32)
                    .min(image.code.len() as u32),
            });
        }
        image.functions.sort_by_key(|function| function.start);
        image
            .functions
            .retain(|function| function.start < function.end);
        image
            .functions
            .dedup_by(|one, other| one.start == other.start);
    }

    /// Externs: what `.ksyms` and `.kconfig` declare.
    fn find_externs(&mut self, btf: &Btf) -> Vec<Extern> {
        let declared = |section: &'static str| btf.section(section).iter().map(|(id, _, _)| *id);
        let options = declared(".kconfig").map(|id| {
            let Kind::Variable(of) = btf.get(id).kind else {
                return (id, ExternKind::Config(0));
            };
            (id, ExternKind::Config(of))
        });
        let symbols = declared(".ksyms").map(|id| match btf.get(id).kind {
            Kind::Function(prototype, _) => {
                let signature = btf.signature(prototype).unwrap_or_default();
                (id, ExternKind::Function(signature))
            }
            _ => (id, ExternKind::Variable),
        });
        let all = options
            .chain(symbols)
            .map(|(id, kind)| (btf.get(id).name.clone(), kind));
        let by_name: BTreeMap<String, ExternKind> = all.collect();
        let mut externs = Vec::new();
        for (at, symbol) in self.elf.symbols.iter().enumerate() {
            let (None, Some(kind)) = (symbol.section, by_name.get(&symbol.name)) else {
                continue;
            };
            self.externs.insert(at, externs.len());
            let (name, weak, kind) = (symbol.name.clone(), symbol.weak, kind.clone());
            externs.push(Extern { name, weak, kind });
        }
        externs
    }

    /// Says of every `ld_imm64` and call what it names; returns those that name externs.
    fn link(&self, image: &mut Image) -> Result<BTreeMap<u32, usize>, Unreadable> {
        plain(image);
        let mut uses = BTreeMap::new();
        for (section, base) in &self.code {
            for relocation in &self.elf.sections[*section].relocations {
                let at = relocation.offset / 8;
                let named = self.link_one(image, *base + at as u32, relocation.symbol);
                let unreadable = || Unreadable::Relocation {
                    section: self.elf.name(*section).to_owned(),
                    at,
                };
                if let Named::Extern(which) = named.ok_or_else(unreadable)? {
                    uses.insert(*base + at as u32, which);
                }
            }
        }
        Ok(uses)
    }

    fn link_one(&self, image: &mut Image, at: u32, symbol: usize) -> Option<Named> {
        let insn = *image.code.get(at as usize)?;
        let is_call = insn.code == 0x85;
        if !is_call && insn.code != 0x18 {
            return None;
        }
        if let Some(which) = self.externs.get(&symbol) {
            return Some(Named::Extern(*which));
        }
        let symbol = self.elf.symbols.get(symbol)?;
        let to = self.target(image, symbol, insn, is_call)?;
        image.code.get_mut(at as usize)?.to = to;
        Some(Named::Own)
    }

    fn target(&self, image: &Image, symbol: &Symbol, insn: Insn, is_call: bool) -> Option<To> {
        let section = symbol.section?;
        if let Some(base) = self.code.get(&section) {
            // A call counts instructions from the next one, an address bytes from the symbol.
            let more = if is_call {
                i64::from(insn.imm) + 1
            } else {
                i64::from(insn.imm) / 8
            };
            let start = i64::from(*base) + symbol.value as i64 / 8 + more;
            return Some(To::Function(function_from(image, start)?));
        }
        let offset = u32::try_from(symbol.value as i64 + i64::from(insn.imm)).ok()?;
        if let Some(map) = self.data.get(&section) {
            return Some(To::MapValue(*map, offset));
        }
        if let Some((_, map)) = self.arena.filter(|(arena, _)| *arena == section) {
            return Some(To::MapValue(map, offset));
        }
        (self.elf.name(section) == ".maps").then_some(())?;
        self.maps.get(&(offset as usize)).map(|map| To::Map(*map))
    }

    /// Variables by their names: map, offset, type.
    fn variables(&self, btf: &Btf) -> Variables {
        let mut variables = Variables::default();
        let symbols = self.elf.symbols.iter().filter(|symbol| !symbol.function);
        for symbol in symbols {
            let Some(section) = symbol.section else {
                continue;
            };
            let arena = self
                .arena
                .filter(|(arena, _)| *arena == section)
                .map(|(_, map)| map);
            let map = self.data.get(&section).copied().or(arena);
            let declared = btf.section(self.elf.name(section)).iter();
            let mut named = declared
                .map(|(id, _, _)| *id)
                .filter(|id| btf.get(*id).name == symbol.name);
            if let (Some(map), Some(id)) = (map, named.next()) {
                variables.insert(symbol.name.clone(), map, symbol.value as u64, id);
            }
        }
        variables
    }
}

/// What a relocation names.
enum Named {
    Own,
    Extern(usize),
}

fn insn(bytes: &[u8]) -> Insn {
    Insn {
        code: bytes[0],
        dst: bytes[1] & 15,
        src: bytes[1] >> 4,
        off: i16::from_le_bytes([bytes[2], bytes[3]]),
        imm: u32_at(bytes, 4).unwrap_or_default() as i32,
        to: To::Nothing,
    }
}

/// The function that begins at an instruction.
fn function_from(image: &Image, start: i64) -> Option<u32> {
    let start = u32::try_from(start).ok()?;
    let found = image
        .functions
        .binary_search_by_key(&start, |function| function.start);
    found.ok().map(|at| at as u32)
}

/// What needs no relocation: constants of 64 bits, helpers, calls within a section.
fn plain(image: &mut Image) {
    for at in 0..image.code.len() {
        let insn = image.code[at];
        let high = image.code.get(at + 1).map_or(0, |high| high.imm as u32);
        let to = match (insn.code, insn.src) {
            (0x18, 0) => To::Number(u64::from(high) << 32 | u64::from(insn.imm as u32)),
            (0x85, 0) => To::Helper(insn.imm as u32),
            (0x85, 1) => {
                let function = function_from(image, at as i64 + 1 + i64::from(insn.imm));
                function.map_or(To::Nothing, To::Function)
            }
            _ => To::Nothing,
        };
        image.code[at].to = to;
    }
}

/// Who can be called from outside, by the names of their sections.
fn programs(elf: &Elf, image: &Image) -> Vec<Program> {
    let entries = (0..)
        .zip(&image.functions)
        .filter(|(_, function)| function.section != ".text");
    let is_symbol = |name: &str| {
        elf.symbols
            .iter()
            .any(|symbol| symbol.name == name && symbol.function)
    };
    let entries = entries.filter(|(_, function)| is_symbol(&function.name));
    let programs = entries.map(|(at, function)| {
        let optional = function.section.starts_with('?');
        let (kind, sleepable) = kind(&function.section);
        Program {
            optional,
            name: function.name.clone(),
            function: at,
            kind,
            sleepable,
        }
    });
    programs.collect()
}

fn kind(section: &str) -> (ProgramKind, bool) {
    let section = section.strip_prefix('?').unwrap_or(section);
    let (of, to) = section.split_once('/').unwrap_or((section, ""));
    let to = to.to_owned();
    let (of, sleepable) = match of.strip_suffix(".s") {
        Some(of) => (of, true),
        None => (of, of == "syscall"),
    };
    let kind = match of {
        "struct_ops" => ProgramKind::StructOps,
        "syscall" => ProgramKind::Syscall,
        "tp_btf" => ProgramKind::Tracepoint(to),
        "fentry" => ProgramKind::Fentry(to),
        "fexit" => ProgramKind::Fexit(to),
        "fmod_ret" => ProgramKind::ModifyReturn(to),
        _ => ProgramKind::Other(section.to_owned()),
    };
    (kind, sleepable)
}
