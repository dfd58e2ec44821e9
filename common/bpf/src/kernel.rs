//! What the kernel has that is pretended: a table of text, made of its BTF by the example
//! `kernel_table`.
//!
//! ```text
//! kernel 7.3.4
//! config CONFIG_HZ 250
//! kfunc scx_bpf_kick_cpu v,i,i
//! variable runqueues 3456
//! enum scx_kick_flags
//!  SCX_KICK_IDLE 1
//! struct task_struct 9792
//!  pid 1640 i4
//!  comm 2144 16 i1                 an array of 16
//!  scx 800 sched_ext_entity        a struct of the table
//! absent pcpu_hot                a struct that programs ask for and this kernel does not have
//! ```
//!
//! Members of anonymous structs and unions stand in the struct around them, as C has it.

use std::collections::{BTreeMap, BTreeSet};

/// A kernel, as far as programs ask for it.
#[derive(Clone, Debug, Default)]
pub struct KernelTable {
    /// `7.3.4`.
    pub version: String,
    /// Options of its configuration that programs read.
    pub config: BTreeMap<String, String>,
    /// Kfuncs and their signatures ([`crate::Btf::signature`]).
    pub kfuncs: BTreeMap<String, String>,
    /// Variables that each CPU has, and their bytes.
    pub variables: BTreeMap<String, u64>,
    /// Enums by their names.
    pub enums: BTreeMap<String, BTreeMap<String, i64>>,
    /// Structs and unions by their names.
    pub structs: BTreeMap<String, Layout>,
    /// Structs that it does not have. Of all others the table knows nothing.
    pub absent: BTreeSet<String>,
}

/// A struct or union of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes.
    pub size: u64,
    /// By their names.
    pub fields: BTreeMap<String, Field>,
}

/// A field of a struct of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// From the struct's beginning.
    pub offset: u64,
    /// Lengths of an array, the outermost first; none, if it is no array.
    pub lengths: Vec<u64>,
    /// What it is, or what the array is of.
    pub of: Element,
}

/// What a field is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Element {
    /// A number.
    Number {
        /// Bytes.
        size: u64,
        /// Whether it is.
        signed: bool,
    },
    /// A pointer.
    #[default]
    Pointer,
    /// A struct of the table.
    Struct(String),
}

/// A line of a table that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the kernel's table, `{text}`, is not as common/bpf/src/kernel.rs says")]
pub struct BadTable {
    /// From 1.
    pub line: usize,
    /// The line.
    pub text: String,
}

/// The kernels that are known, and their tables.
const KNOWN: &[(&str, &str)] = &[
    ("7.3", include_str!("kernel/7.3.txt")),
    ("6.18", include_str!("kernel/6.18.txt")),
];

impl KernelTable {
    /// The kernel of a series: `7.3` or `6.18`.
    pub fn of(series: &str) -> Option<KernelTable> {
        let (_, text) = KNOWN.iter().find(|(known, _)| *known == series)?;
        KernelTable::read(text).ok()
    }

    /// The series that [`Self::of`] knows.
    pub fn known() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(series, _)| *series)
    }

    /// Reads a table.
    ///
    /// # Errors
    /// The first line that it does not understand.
    pub fn read(text: &str) -> Result<KernelTable, BadTable> {
        let mut table = KernelTable::default();
        let mut within = Within::Nothing;
        for (at, line) in text.lines().enumerate() {
            let read = table.read_line(line, &mut within);
            read.ok_or_else(|| BadTable {
                line: at + 1,
                text: line.to_owned(),
            })?;
        }
        Ok(table)
    }

    fn read_line(&mut self, line: &str, within: &mut Within) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match (&words[..], &within) {
            (["", name, value], Within::Enum(of)) => {
                let values = self.enums.get_mut(of)?;
                values.insert((*name).to_owned(), value.parse().ok()?);
            }
            (["", name, offset, rest @ ..], Within::Struct(of)) => {
                let field = field(offset, rest)?;
                self.structs
                    .get_mut(of)?
                    .fields
                    .insert((*name).to_owned(), field);
            }
            (["absent", name], _) => drop(self.absent.insert((*name).to_owned())),
            (["kernel", version], _) => self.version = (*version).to_owned(),
            (["config", name, value], _) => {
                self.config.insert((*name).to_owned(), (*value).to_owned());
            }
            (["kfunc", name, signature], _) => {
                self.kfuncs
                    .insert((*name).to_owned(), (*signature).to_owned());
            }
            (["variable", name, size], _) => {
                self.variables
                    .insert((*name).to_owned(), size.parse().ok()?);
            }
            (["enum", name], _) => {
                self.enums.entry((*name).to_owned()).or_default();
                *within = Within::Enum((*name).to_owned());
            }
            (["struct", name, size], _) => {
                let layout = Layout {
                    size: size.parse().ok()?,
                    fields: BTreeMap::new(),
                };
                self.structs.insert((*name).to_owned(), layout);
                *within = Within::Struct((*name).to_owned());
            }
            (["#", ..] | [""], _) => {}
            _ => return None,
        }
        Some(())
    }

    /// `LINUX_KERNEL_VERSION`: of 7.3.4, 7 << 16 | 3 << 8 | 4.
    pub fn version_code(&self) -> u64 {
        let mut parts = self
            .version
            .split('.')
            .map(|part| part.parse().unwrap_or(0_u64));
        let mut part = || parts.next().unwrap_or(0).min(255);
        part() << 16 | part() << 8 | part()
    }

    /// A value of whatever enum has it.
    pub fn enum_value(&self, name: &str) -> Option<i64> {
        self.enums
            .values()
            .find_map(|values| values.get(name))
            .copied()
    }

    /// The name of a helper in `enum bpf_func_id`, as `bpf_map_lookup_elem`.
    pub fn helper_name(&self, number: u32) -> Option<String> {
        let helpers = self.enums.get("bpf_func_id")?;
        let (name, _) = helpers
            .iter()
            .find(|(_, value)| **value == i64::from(number))?;
        Some(name.replacen("BPF_FUNC_", "bpf_", 1))
    }

    /// Where a field is, by the path of its names and indexes: `scx.dsq_vtime`, `comm`,
    /// `cpus_mask.bits[1]`; and how many bytes it has.
    pub fn field(&self, of: &str, path: &str) -> Option<(u64, u64)> {
        let (mut layout, mut offset, mut size) = (of.to_owned(), 0, 0);
        for part in path.split('.') {
            let (name, indexes) = part.split_once('[').unwrap_or((part, ""));
            let field = self.structs.get(&layout)?.fields.get(name)?;
            let mut indexes = indexes
                .split(['[', ']'])
                .filter_map(|index| index.parse().ok());
            offset += field.offset;
            size = self.size(field);
            for length in &field.lengths {
                let Some(index) = indexes.next() else { break };
                size = size.checked_div(*length).unwrap_or(0);
                offset += size * std::cmp::min::<u64>(index, u32::MAX.into());
            }
            if let Element::Struct(name) = &field.of {
                layout.clone_from(name);
            }
        }
        Some((offset, size))
    }

    /// Bytes of a field, with all that an array has.
    pub fn size(&self, field: &Field) -> u64 {
        field.lengths.iter().product::<u64>() * self.element_size(&field.of)
    }

    /// Bytes of one of what an array has.
    pub fn element_size(&self, element: &Element) -> u64 {
        match element {
            Element::Number { size, .. } => *size,
            Element::Pointer => 8,
            Element::Struct(name) => self.structs.get(name).map_or(0, |layout| layout.size),
        }
    }
}

/// What indented lines are of.
enum Within {
    Nothing,
    Enum(String),
    Struct(String),
}

fn field(offset: &str, rest: &[&str]) -> Option<Field> {
    let (of, lengths) = rest.split_last()?;
    let lengths: Option<Vec<u64>> = lengths.iter().map(|length| length.parse().ok()).collect();
    let number = |signed| {
        Some(Element::Number {
            size: of[1..].parse().ok()?,
            signed,
        })
    };
    let of = match of.as_bytes() {
        b"p" => Element::Pointer,
        [b'u', b'0'..=b'9', ..] => number(false)?,
        [b'i', b'0'..=b'9', ..] => number(true)?,
        _ => Element::Struct((*of).to_owned()),
    };
    Some(Field {
        offset: offset.parse().ok()?,
        lengths: lengths?,
        of,
    })
}
