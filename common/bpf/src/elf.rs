//! The parts of an ELF file that a BPF object has.

use object::elf::EM_BPF;
use object::read::elf::ElfFile64;
use object::{
    Architecture, Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget,
    SectionKind, SymbolKind,
};

/// Sections, symbols and relocations, copied out of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elf {
    /// By their indexes.
    pub(crate) sections: Vec<Section>,
    /// By their indexes.
    pub(crate) symbols: Vec<Symbol>,
}

impl Elf {
    /// The name of a section; none, if it is not there.
    pub(crate) fn name(&self, section: usize) -> &str {
        self.sections
            .get(section)
            .map_or("", |section| &section.name)
    }

    /// Where a symbol is in the section of a name.
    pub(crate) fn offset(&self, section: &str, symbol: &str) -> Option<u32> {
        let within = |one: &&Symbol| {
            let of = one.section.and_then(|at| self.sections.get(at));
            one.name == symbol && of.is_some_and(|of| of.name == section)
        };
        let found = self.symbols.iter().find(within)?;
        u32::try_from(found.value).ok()
    }
}

/// A section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) code: bool,
    /// Zeros for `.bss`.
    pub(crate) bytes: Vec<u8>,
    /// In the order of their offsets.
    pub(crate) relocations: Vec<Relocation>,
}

/// A place in a section that names a symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub(crate) offset: usize,
    pub(crate) symbol: usize,
}

/// A symbol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) name: String,
    pub(crate) value: usize,
    pub(crate) size: usize,
    /// `None`: it is extern.
    pub(crate) section: Option<usize>,
    pub(crate) weak: bool,
    pub(crate) function: bool,
}

/// More zeros than this have no place in an object.
const MOST_ZEROS: u64 = 1 << 28;

/// Where a BPF object begins in `bytes`: at 0, or within a program that has one inside. The first
/// with a struct of callbacks is taken, or else the first.
pub(crate) fn find(bytes: &[u8]) -> Option<Elf> {
    const BEGINS: [u8; 7] = [0x7f, b'E', b'L', b'F', 2, 1, 1];
    let mut first = None;
    let mut at = 0;
    while let Some(found) = bytes.get(at..).and_then(|rest| position(rest, &BEGINS)) {
        at += found;
        let machine = crate::bytes::u16_at(bytes, at + 18);
        if machine == Some(EM_BPF.0)
            && let Some(elf) = read(&bytes[at..])
        {
            if elf
                .sections
                .iter()
                .any(|section| section.name.starts_with(".struct_ops"))
            {
                return Some(elf);
            }
            first = first.or(Some(elf));
        }
        at += 1;
    }
    first
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += bytes
            .get(at..)?
            .iter()
            .position(|byte| *byte == wanted[0])?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}

fn read(bytes: &[u8]) -> Option<Elf> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    if file.architecture() != Architecture::Bpf {
        return None;
    }
    let mut elf = Elf::default();
    for section in file.sections() {
        let at = section.index().0;
        elf.sections
            .resize_with(elf.sections.len().max(at + 1), Section::default);
        elf.sections[at] = read_section(&section)?;
    }
    for symbol in file.symbols() {
        let at = symbol.index().0;
        elf.symbols
            .resize_with(elf.symbols.len().max(at + 1), Symbol::default);
        elf.symbols[at] = Symbol {
            name: symbol.name().unwrap_or_default().to_owned(),
            value: usize::try_from(symbol.address()).ok()?,
            size: usize::try_from(symbol.size()).ok()?,
            section: symbol.section_index().map(|index| index.0),
            weak: symbol.is_weak(),
            function: symbol.kind() == SymbolKind::Text,
        };
    }
    Some(elf)
}

fn read_section<'d>(section: &impl object::ObjectSection<'d>) -> Option<Section> {
    let zeros = section.kind() == SectionKind::UninitializedData;
    let bytes = match zeros {
        true if section.size() > MOST_ZEROS => return None,
        true => vec![0; section.size() as usize],
        false => section.data().ok()?.to_vec(),
    };
    let relocations = section.relocations().filter_map(|(offset, relocation)| {
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            return None;
        };
        let offset = usize::try_from(offset).ok()?;
        Some(Relocation {
            offset,
            symbol: symbol.0,
        })
    });
    let mut relocations: Vec<Relocation> = relocations.collect();
    relocations.sort_by_key(|relocation| relocation.offset);
    Some(Section {
        name: section.name().unwrap_or_default().to_owned(),
        code: section.kind() == SectionKind::Text && section.size() > 0,
        bytes,
        relocations,
    })
}
