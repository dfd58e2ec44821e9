//! Who runs where and when.

use warmq_units::TaskId;

/// What every CPU does. Spans of a CPU are in order, not empty, and do not overlap; between them it
/// is idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The spans of each CPU.
    pub cpus: Vec<Vec<Span>>,
}

/// A stretch of time on a CPU, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first unit.
    pub from: u64,
    /// The first unit after it.
    pub to: u64,
    /// What is done.
    pub doing: Doing,
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It writes dirty lines back.
    WriteBack,
    /// It fills the lines that the next run needs.
    Fill,
    /// It runs a task.
    Run(TaskId),
}

impl Span {
    /// Its length.
    pub fn length(&self) -> u64 {
        self.to - self.from
    }
}

impl Schedule {
    /// The end of the last span: how long all of it takes. The last busy unit is the one before.
    pub fn end(&self) -> u64 {
        let ends = self.cpus.iter().filter_map(|spans| spans.last());
        ends.map(|span| span.to).max().unwrap_or(0)
    }

    /// The sum of all penalties: the time that goes into filling and writing back.
    pub fn penalty(&self) -> u64 {
        let spans = self.cpus.iter().flatten();
        let penalties = spans.filter(|span| !matches!(span.doing, Doing::Run(_)));
        penalties.map(Span::length).sum()
    }

    /// The tasks of a CPU, in the order in which they run there.
    pub fn order(&self, cpu: usize) -> impl Iterator<Item = TaskId> {
        self.cpus[cpu].iter().filter_map(|span| match span.doing {
            Doing::Run(task) => Some(task),
            Doing::WriteBack | Doing::Fill => None,
        })
    }
}
