//! Compiled BPF objects: what is in them, and how they fit a kernel that is pretended.
//!
//! ```text
//! let mut object = Object::read(&bytes)?;              // an object, or a program that has one inside
//! object.set("slice_max", 20_000_000)?;                // variables, as user space does before loading
//! let kernel = KernelTable::of("7.3")?;                // what the kernel has, from its BTF
//! let image = object.fit(&kernel, &offer)?;            // CO-RE, weak symbols, maps; or all that is missing
//! ```
//!
//! An [`Image`] is plain data: decoded instructions whose calls and addresses are indexes into its
//! lists. Nothing here runs a program (lab/bpf-run does) or knows what a kfunc means (lab/sched-ext
//! does).

#![deny(clippy::float_arithmetic)]
#![warn(missing_docs)]

pub mod alu;
mod btf;
mod bytes;
mod core_relo;
mod counters;
mod elf;
mod ext;
mod fit;
mod fold;
mod image;
mod kernel;
mod loading;
mod maps;
mod missing;
mod object;
mod ops;
mod variables;

pub use btf::{Btf, Composite, Kind, Member, Type, essential};
pub use counters::Counter;
pub use image::{
    Function, Image, Insn, Line, Map, MapKind, Program, ProgramKind, Special, SpecialKind,
    StructOps, To,
};
pub use kernel::{BadTable, Element, Field, KernelTable, Layout};
pub use loading::{Entry, Loading, Package, Run, Write, is_object};
pub use missing::{Missing, Offer, What};
pub use object::{Object, Unreadable};
pub use variables::Place;
