//! Cache lines that CPUs take from each other.

use std::fmt;
use std::ops::AddAssign;

/// How often a CPU touched a line of 64 bytes that another had changed since, or changed one that
/// others had, by what is in it (`lines.h`), in caches that never lose one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// `cpus` of the program, which is what it knows of each CPU.
    pub cpus: u64,
    /// `domains`: the sums of what shares a last-level cache.
    pub domains: u64,
    /// `places`, where groups live.
    pub places: u64,
    /// `entities`: the sums of what a CPU chooses between.
    pub entities: u64,
    /// `groups`.
    pub groups: u64,
    /// `cgroups`.
    pub cgroups: u64,
    /// What the program keeps of tasks.
    pub tasks: u64,
    /// sched_ext's dispatch queues, without the tasks in them.
    pub queues: u64,
    /// The kernel's mask of idle CPUs.
    pub idle: u64,
    /// Locked operations, whatever they change.
    pub locked: u64,
}

impl Lines {
    /// All lines.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.by_kind().iter().map(|(_, lines)| lines).sum()
    }

    fn by_kind(&self) -> [(&'static str, u64); 9] {
        [
            ("tasks", self.tasks),
            ("domains", self.domains),
            ("entities", self.entities),
            ("cgroups", self.cgroups),
            ("CPUs", self.cpus),
            ("queues", self.queues),
            ("idle mask", self.idle),
            ("places", self.places),
            ("groups", self.groups),
        ]
    }

    /// What they are for each of `times`.
    #[must_use]
    pub fn each(&self, times: u64) -> Each<'_> {
        Each { lines: self, times }
    }
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Lines) {
        self.cpus += other.cpus;
        self.domains += other.domains;
        self.places += other.places;
        self.entities += other.entities;
        self.groups += other.groups;
        self.cgroups += other.cgroups;
        self.tasks += other.tasks;
        self.queues += other.queues;
        self.idle += other.idle;
        self.locked += other.locked;
    }
}

/// Lines for each of several events, as they are shown.
pub struct Each<'a> {
    lines: &'a Lines,
    times: u64,
}

impl Each<'_> {
    fn part(&self, count: u64) -> f64 {
        count as f64 / self.times.max(1) as f64
    }
}

impl fmt::Display for Each<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5.2} lines", self.part(self.lines.all()))?;
        for (kind, lines) in self.lines.by_kind() {
            write!(f, ", {kind} {:.2}", self.part(lines))?;
        }
        write!(f, "; {:.1} locked operations", self.part(self.lines.locked))
    }
}
