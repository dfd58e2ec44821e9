//! Where the CPUs are of the machine that plays a scenario.

use std::collections::BTreeSet;

use warmq_units::{CpuId, CpuSet};

use crate::bind::{Bound, EvalError};
use crate::expr::Expr;
use crate::place::Place;
use crate::site::Site;

/// A CPU that a run may use, and the numbers of what it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Its own number.
    pub id: CpuId,
    /// Its last-level cache.
    pub llc: u64,
    /// Its memory node.
    pub node: u64,
    /// Its socket.
    pub socket: u64,
    /// Its core.
    pub core: u64,
}

/// The CPUs that a run may use, in their order.
#[derive(Clone, Debug, Default)]
pub struct Cpus(Vec<Cpu>);

impl FromIterator<Cpu> for Cpus {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Cpus {
        Cpus(cpus.into_iter().collect())
    }
}

impl Cpus {
    /// How many there are of what.
    pub fn site(&self) -> Site {
        let distinct = |of: fn(&Cpu) -> u64| {
            let all: BTreeSet<u64> = self.0.iter().map(of).collect();
            all.len().max(1) as u64
        };
        Site {
            cpus: self.0.len().max(1) as u64,
            llcs: distinct(|cpu| cpu.llc),
            nodes: distinct(|cpu| cpu.node),
            sockets: distinct(|cpu| cpu.socket),
            cores: distinct(|cpu| cpu.core),
        }
    }

    /// All of them.
    pub fn all(&self) -> CpuSet {
        self.0.iter().map(|cpu| cpu.id).collect()
    }

    /// The CPUs at `place`; none where the machine lacks it.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn at(&self, bound: &Bound, place: &Place, indexes: &[u64]) -> Result<CpuSet, EvalError> {
        let number = |expr| bound.eval(expr, indexes);
        Ok(match place {
            Place::All => self.all(),
            Place::Cpu(cpu) => self.those(number(cpu)?, |_, cpu| cpu.id.0.into()),
            Place::Cpus(ranges) => {
                let ranges = ranges.iter();
                let ranges = ranges.map(|(from, to)| Ok(number(from)?..=number(to)?));
                let ranges = ranges.collect::<Result<Vec<_>, EvalError>>()?;
                let within = |cpu| ranges.iter().any(|range| range.contains(&cpu));
                self.those(1, |_, cpu| within(cpu.id.0.into()).into())
            }
            Place::Llc(llc) => self.those(number(llc)?, |_, cpu| cpu.llc),
            Place::Node(node) => self.those(number(node)?, |_, cpu| cpu.node),
            Place::Socket(socket) => self.those(number(socket)?, |_, cpu| cpu.socket),
            Place::Core(core) => self.those(number(core)?, |_, cpu| cpu.core),
            Place::Part { part, of } => {
                let (part, of) = (number(part)?, number(of)?.max(1));
                let all = self.0.len().max(1) as u64;
                self.those(part, |index, _| index * of / all)
            }
        })
    }

    /// The CPUs at `place`, whatever the indexes are that it may depend on.
    pub fn reach(&self, bound: &Bound, place: &Place) -> CpuSet {
        match place.expressions().into_iter().any(Expr::uses_indexes) {
            true => self.all(),
            false => self.at(bound, place, &[]).unwrap_or_else(|_| self.all()),
        }
    }

    fn those(&self, wanted: u64, what: impl Fn(u64, &Cpu) -> u64) -> CpuSet {
        let cpus = (0..).zip(&self.0);
        let those = cpus.filter(|(index, cpu)| what(*index, cpu) == wanted);
        those.map(|(_, cpu)| cpu.id).collect()
    }
}
