//! Expressions: whole numbers computed from settings, indexes and the numbers of the machine.
//!
//! Key decision: arithmetic is on signed 64-bit integers, checked at each step; division and
//! remainder round down, so that `(room - 1) % rooms` is the neighbour of room 0, too.

mod curve;
mod eval;
mod parse;

use std::sync::Arc;

pub(crate) use curve::Curve;
pub use eval::Fault;
pub(crate) use parse::{Known, Lookup, Refusal, literal, parse};

use crate::quantity::Quantity;
use crate::site::Resource;

/// Where something stands in a scenario's file, for messages.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The key with the tables that lead to it: `task.audio.body[0].run`.
    pub key: String,
    pub(crate) place: warmq_config::Place,
}

/// Which setting of the scenario, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SettingId(pub u32);

/// An expression, parsed once: literals are in base units, names are resolved.
///
/// Invariant: its tree has at most 256 operators and curves, so that recursion over it is bounded.
#[derive(Clone, Debug)]
pub struct Expr {
    pub(crate) tree: Tree,
    /// What its value counts.
    pub quantity: Quantity,
    /// Where it stands.
    pub spot: Arc<Spot>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Literal(i64),
    Setting(SettingId),
    /// An index, by its slot in [`crate::Indexes`].
    Index(usize),
    /// How many of these the machine has.
    Machine(Resource),
    /// So many thousandths for each of these that the machine has, rounded down, but at least 1.
    Per(u64, Resource),
    Operation(Operator, Box<[Tree; 2]>),
    /// The value of a curve at a place.
    Curve(Arc<Curve>, Box<Tree>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Expr {
    /// The value of an expression that is one literal, in base units.
    pub fn literal(&self) -> Option<i64> {
        match self.tree {
            Tree::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// True if its value differs from task to task or from round to round.
    pub fn uses_indexes(&self) -> bool {
        self.tree.uses_indexes()
    }
}

impl Tree {
    fn uses_indexes(&self) -> bool {
        match self {
            Tree::Index(_) => true,
            Tree::Literal(_) | Tree::Setting(_) | Tree::Machine(_) | Tree::Per(..) => false,
            Tree::Curve(_, place) => place.uses_indexes(),
            Tree::Operation(_, operands) => operands.iter().any(Tree::uses_indexes),
        }
    }
}
