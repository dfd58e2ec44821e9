//! What an object needs and the lab does not have.

use std::collections::BTreeSet;
use std::fmt;

use crate::image::MapKind;

/// What whoever runs an object has to offer it.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Names of kfuncs.
    pub kfuncs: BTreeSet<String>,
    /// Numbers of helpers, as in `enum bpf_func_id`.
    pub helpers: BTreeSet<u32>,
    /// Numbers of kinds of maps, as in `enum bpf_map_type`.
    pub maps: BTreeSet<u32>,
    /// Fields of the kernel's structs that are kept up to date: (struct, path of the field).
    /// `None`: all that the kernel has.
    pub fields: Option<BTreeSet<(String, String)>>,
    /// Variables of the kernel.
    pub variables: BTreeSet<String>,
    /// Callbacks of `sched_ext_ops` that are called. `None`: all.
    pub callbacks: Option<BTreeSet<String>>,
    /// Events at which programs are run, as [`crate::ProgramKind::event`] says them.
    pub events: BTreeSet<String>,
}

/// One thing that is needed and missing, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// What.
    pub what: What,
    /// The first place that needs it, as `main.bpf.c:12`; maps have none.
    pub place: Option<String>,
}

/// What can be missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A kfunc that is called.
    Kfunc(String),
    /// A helper that is called.
    Helper(String),
    /// A map, and its kind.
    Map(String, String),
    /// A field that is read or written.
    Field(String, String),
    /// A variable of the kernel.
    Variable(String),
    /// A type that is asked for, of which the kernel's table says nothing.
    Type(String),
    /// A value of an enum.
    EnumValue(String, String),
    /// An option of the kernel's configuration.
    Config(String),
    /// The size of a map or an array, which its loader gives it.
    Size(String),
    /// Whatever else cannot be relocated.
    Other(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Kfunc(name) | What::Helper(name) => write!(f, "calls {name}")?,
            What::Map(name, kind) => write!(f, "has map {name} of kind {kind}")?,
            What::Field(of, field) => write!(f, "uses {of}.{field}")?,
            What::Variable(name) => write!(f, "reads the kernel's variable {name}")?,
            What::Type(name) => write!(f, "asks for type {name}")?,
            What::EnumValue(of, value) => write!(f, "uses {value} of enum {of}")?,
            What::Config(name) => write!(f, "reads option {name} of the kernel")?,
            What::Size(name) => write!(
                f,
                "has {name}, whose size its loader sets: say it in [resize] of a profile"
            )?,
            What::Other(text) => write!(f, "{text}")?,
        }
        match &self.place {
            Some(place) => write!(f, " ({place})"),
            None => Ok(()),
        }
    }
}

/// A number of `enum bpf_map_type` and a kind.
const KINDS: &[(u32, MapKind)] = &[
    (1, MapKind::Hash),
    (2, MapKind::Array),
    (4, MapKind::PerfEventArray),
    (5, MapKind::PerCpuHash),
    (6, MapKind::PerCpuArray),
    (9, MapKind::LruHash),
    (12, MapKind::ArrayOfMaps),
    (13, MapKind::HashOfMaps),
    (22, MapKind::Queue),
    (23, MapKind::Stack),
    (27, MapKind::RingBuffer),
    (29, MapKind::TaskStorage),
    (31, MapKind::UserRingBuffer),
    (32, MapKind::CgroupStorage),
    (33, MapKind::Arena),
];

impl MapKind {
    /// The kind with a number of `enum bpf_map_type`.
    pub fn of(number: u32) -> MapKind {
        let known = KINDS.iter().find(|(one, _)| *one == number);
        known.map_or(MapKind::Other(number), |(_, kind)| *kind)
    }

    /// Whether a map of this kind needs a number of elements.
    pub(crate) fn has_size(self) -> bool {
        let none = [
            MapKind::TaskStorage,
            MapKind::CgroupStorage,
            MapKind::PerfEventArray,
        ];
        !none.contains(&self)
    }

    /// Its number in `enum bpf_map_type`.
    pub fn number(self) -> u32 {
        let known = KINDS.iter().find(|(_, kind)| *kind == self);
        match self {
            MapKind::Other(number) => number,
            _ => known.map_or(0, |(number, _)| *number),
        }
    }
}
