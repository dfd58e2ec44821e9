//! CPUs by their place in a machine, not by number.

use crate::expr::Expr;

/// A set of CPUs, which the player resolves against its machine.
#[derive(Clone, Debug)]
pub enum Place {
    /// All CPUs.
    All,
    /// One CPU.
    Cpu(Expr),
    /// CPUs from the first to the last of each pair.
    Cpus(Vec<(Expr, Expr)>),
    /// The CPUs below one last-level cache.
    Llc(Expr),
    /// The CPUs of a memory node.
    Node(Expr),
    /// The CPUs of a socket.
    Socket(Expr),
    /// The threads of a core.
    Core(Expr),
    /// One of several equal parts of all CPUs, in their order.
    Part {
        /// Which part, from 0.
        part: Expr,
        /// Of how many.
        of: Expr,
    },
}

impl Place {
    /// Its expressions.
    pub(crate) fn expressions(&self) -> Vec<&Expr> {
        match self {
            Place::All => Vec::new(),
            Place::Cpus(ranges) => ranges.iter().flat_map(|(from, to)| [from, to]).collect(),
            Place::Cpu(number)
            | Place::Llc(number)
            | Place::Node(number)
            | Place::Socket(number) => vec![number],
            Place::Core(number) => vec![number],
            Place::Part { part, of } => vec![part, of],
        }
    }
}
