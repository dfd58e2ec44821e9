//! BTF, the types of a program or a kernel (Documentation/bpf/btf.rst), from its bytes.

use crate::bytes::{text_at, u16_at, u32_at};

/// Types by their ids; 0 is `void`.
#[derive(Clone, Debug, Default)]
pub struct Btf {
    /// In the order of the file.
    pub types: Vec<Type>,
    pub(crate) strings: Vec<u8>,
}

/// A type and its name, which may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Type {
    /// Its own name, not that of a typedef of it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// Kinds of types. Numbers without a name are ids of types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `void`, and what is not there.
    #[default]
    Void,
    /// An integer, of so many bytes.
    Int {
        /// Bytes.
        size: u32,
        /// Whether it is.
        signed: bool,
    },
    /// A pointer.
    Ptr(u32),
    /// An array: of what, and how many.
    Array(u32, u32),
    /// A struct.
    Struct(Composite),
    /// A union.
    Union(Composite),
    /// An enum, of 32 or 64 bits.
    Enum {
        /// Bytes.
        size: u32,
        /// Names and values.
        values: Vec<(String, i64)>,
    },
    /// A struct or union that is only named.
    Forward,
    /// Another name.
    Typedef(u32),
    /// `const`, `volatile`, `restrict`.
    Modifier(u32),
    /// A pointer's or a type's tag, as `__kptr`.
    TypeTag(u32),
    /// A function: its prototype, and whether it is extern.
    Function(u32, bool),
    /// What a function returns, and its parameters' types.
    Prototype(u32, Vec<u32>),
    /// A variable.
    Variable(u32),
    /// A section: variable, offset and size.
    Section(Vec<(u32, u32, u32)>),
    /// A number with a fraction, of so many bytes.
    Float(u32),
    /// A tag of a declaration.
    DeclTag(u32),
}

/// A struct or a union.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Composite {
    /// Bytes.
    pub size: u32,
    /// In order.
    pub members: Vec<Member>,
}

/// A member of a struct or a union.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Empty, if it is an anonymous struct or union.
    pub name: String,
    /// Its type.
    pub of: u32,
    /// From the beginning.
    pub bits: u32,
    /// Of a bit field; 0 of all others.
    pub bit_size: u32,
}

/// How many typedefs, modifiers and levels are followed.
const DEPTH: usize = 32;

/// Reads numbers one after another.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    strings: &'b [u8],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<u32> {
        let value = u32_at(self.bytes, self.at)?;
        self.at += 4;
        Some(value)
    }

    fn name(&self, at: u32) -> Option<String> {
        text_at(self.strings, at as usize)
    }

    fn members(&mut self, count: u32, size: u32, fields: bool) -> Option<Composite> {
        let mut members = Vec::new();
        for _ in 0..count {
            let (name, of, place) = (self.next()?, self.next()?, self.next()?);
            let (bits, bit_size) = if fields {
                (place & 0xff_ffff, place >> 24)
            } else {
                (place, 0)
            };
            let name = self.name(name)?;
            members.push(Member {
                name,
                of,
                bits,
                bit_size,
            });
        }
        Some(Composite { size, members })
    }

    fn values(&mut self, count: u32, wide: bool, signed: bool) -> Option<Vec<(String, i64)>> {
        let mut values = Vec::new();
        for _ in 0..count {
            let (name, low) = (self.next()?, self.next()?);
            let value = match (wide, signed) {
                (true, _) => (i64::from(self.next()?) << 32) | i64::from(low),
                (false, true) => i64::from(low as i32),
                (false, false) => i64::from(low),
            };
            values.push((self.name(name)?, value));
        }
        Some(values)
    }

    fn prototype(&mut self, count: u32, returns: u32) -> Option<Kind> {
        let mut params = Vec::new();
        for _ in 0..count {
            self.next()?;
            params.push(self.next()?);
        }
        Some(Kind::Prototype(returns, params))
    }

    fn section(&mut self, count: u32) -> Option<Kind> {
        let mut variables = Vec::new();
        for _ in 0..count {
            variables.push((self.next()?, self.next()?, self.next()?));
        }
        Some(Kind::Section(variables))
    }

    fn one(&mut self) -> Option<Type> {
        let (name, info, size) = (self.next()?, self.next()?, self.next()?);
        let (count, flag) = (info & 0xffff, info >> 31 != 0);
        let kind = match (info >> 24) & 0x1f {
            1 => {
                let signed = (self.next()? >> 24) & 1 != 0;
                Kind::Int { size, signed }
            }
            2 => Kind::Ptr(size),
            3 => {
                let (of, _, count) = (self.next()?, self.next()?, self.next()?);
                Kind::Array(of, count)
            }
            4 => Kind::Struct(self.members(count, size, flag)?),
            5 => Kind::Union(self.members(count, size, flag)?),
            6 => Kind::Enum {
                size,
                values: self.values(count, false, flag)?,
            },
            7 => Kind::Forward,
            8 => Kind::Typedef(size),
            9..=11 => Kind::Modifier(size),
            12 => Kind::Function(size, count == 2),
            13 => self.prototype(count, size)?,
            14 => {
                self.next()?;
                Kind::Variable(size)
            }
            15 => self.section(count)?,
            16 => Kind::Float(size),
            17 => {
                self.next()?;
                Kind::DeclTag(size)
            }
            18 => Kind::TypeTag(size),
            19 => Kind::Enum {
                size,
                values: self.values(count, true, flag)?,
            },
            _ => return None,
        };
        Some(Type {
            name: self.name(name)?,
            kind,
        })
    }
}

impl Btf {
    /// Reads a section `.BTF`, or /sys/kernel/btf/vmlinux.
    pub fn read(bytes: &[u8]) -> Option<Btf> {
        if u16_at(bytes, 0)? != 0xeb9f {
            return None;
        }
        let header = u32_at(bytes, 4)? as usize;
        let part = |at: usize| {
            let (from, size) = (u32_at(bytes, at)? as usize, u32_at(bytes, at + 4)? as usize);
            let from = header.checked_add(from)?;
            bytes.get(from..from.checked_add(size)?)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut reader = Reader {
            bytes: types,
            at: 0,
            strings,
        };
        let mut read = vec![Type::default()];
        while reader.at < types.len() {
            read.push(reader.one()?);
        }
        Some(Btf {
            types: read,
            strings: strings.to_vec(),
        })
    }

    /// Says where the variables of sections are: the compiler leaves 0 there, and a symbol.
    pub(crate) fn place_variables(&mut self, offset: impl Fn(&str, &str) -> Option<u32>) {
        for at in 0..self.types.len() {
            let mut one = std::mem::take(&mut self.types[at]);
            if let Kind::Section(variables) = &mut one.kind {
                for (variable, place, _) in variables {
                    *place = offset(&one.name, &self.get(*variable).name).unwrap_or(*place);
                }
            }
            self.types[at] = one;
        }
    }

    pub(crate) fn string(&self, at: u32) -> String {
        text_at(&self.strings, at as usize).unwrap_or_default()
    }

    /// The type with an id; `void`, if there is none.
    pub fn get(&self, id: u32) -> &Type {
        &self.types[if (id as usize) < self.types.len() {
            id as usize
        } else {
            0
        }]
    }

    /// What is behind typedefs, modifiers and tags.
    pub fn resolve(&self, id: u32) -> u32 {
        let mut id = id;
        for _ in 0..DEPTH {
            match self.get(id).kind {
                Kind::Typedef(to) | Kind::Modifier(to) | Kind::TypeTag(to) => id = to,
                Kind::Variable(to) => id = to,
                _ => return id,
            }
        }
        0
    }

    /// The kind behind typedefs and modifiers.
    pub fn kind(&self, id: u32) -> &Kind {
        &self.get(self.resolve(id)).kind
    }

    /// Bytes that a value has.
    pub fn size(&self, id: u32) -> u64 {
        let (mut id, mut times) = (id, 1_u64);
        for _ in 0..DEPTH {
            match self.kind(id) {
                Kind::Array(of, count) => {
                    times = times.saturating_mul(u64::from(*count));
                    id = *of;
                }
                Kind::Struct(composite) | Kind::Union(composite) => {
                    return times.saturating_mul(composite.size.into());
                }
                Kind::Int { size, .. } | Kind::Enum { size, .. } | Kind::Float(size) => {
                    return times.saturating_mul(u64::from(*size));
                }
                Kind::Ptr(_) => return times.saturating_mul(8),
                _ => return 0,
            }
        }
        0
    }

    /// The struct or union behind typedefs and modifiers.
    pub fn composite(&self, id: u32) -> Option<&Composite> {
        match self.kind(id) {
            Kind::Struct(composite) | Kind::Union(composite) => Some(composite),
            _ => None,
        }
    }

    /// The variables of the section of a name: (variable's id, offset, size).
    pub fn section(&self, name: &str) -> &[(u32, u32, u32)] {
        let mut named = self.types.iter().filter(|one| one.name == name);
        let section = named.find_map(|one| match &one.kind {
            Kind::Section(variables) => Some(&variables[..]),
            _ => None,
        });
        section.unwrap_or_default()
    }

    /// What two prototypes must have in common for one to be called as the other: what a function
    /// returns, then its parameters, a letter each, a `p` before for each pointer (libbpf's
    /// `bpf_core_types_are_compat`).
    pub fn signature(&self, prototype: u32) -> Option<String> {
        let Kind::Prototype(returns, params) = self.kind(prototype) else {
            return None;
        };
        let letters = std::iter::once(returns)
            .chain(params)
            .map(|id| self.letters(*id));
        Some(letters.collect::<Vec<String>>().join(","))
    }

    fn letters(&self, id: u32) -> String {
        let (mut id, mut letters) = (id, String::new());
        for _ in 0..DEPTH {
            let letter = match self.kind(id) {
                Kind::Ptr(to) | Kind::Array(to, _) => {
                    letters.push('p');
                    id = *to;
                    continue;
                }
                Kind::Void => 'v',
                Kind::Int { .. } => 'i',
                Kind::Struct(_) => 's',
                Kind::Union(_) => 'u',
                Kind::Enum { .. } => 'e',
                Kind::Forward => 'w',
                Kind::Prototype(..) => 'f',
                _ => 'x',
            };
            letters.push(letter);
            break;
        }
        letters
    }
}

/// A name without what follows its last `___`, which only names a variant of the type.
pub fn essential(name: &str) -> &str {
    match name.rfind("___") {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}
