//! What was seen, as rules look at it.

use std::collections::BTreeSet;

use warmq_trace::{Comm, Header};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::due::Dues;
use crate::watch::{Task, Watcher};
use crate::words::{rate, thousandths};
use crate::{weight, words};

/// Everything that is known at the end of a trace.
pub(crate) struct Facts<'w> {
    pub watcher: &'w Watcher,
    pub header: &'w Header,
    from: Instant,
    to: Instant,
    /// How long was measured.
    pub period: Duration,
    pub dues: Dues,
    /// The tables of the scenario that have more than one task.
    several: BTreeSet<u32>,
}

/// Kernel threads by their names, for recordings that do not say who is one. Each is the beginning
/// of a name that programs do not have.
const OF_KERNEL: &[&str] = &[
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu_",
    "rcub/",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "irq/",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "kthreadd",
    "cpuhp/",
    "idle_inject/",
    "jbd2/",
    "sched_ext_",
    "scx_enable_",
    "ktimers/",
    "backlog_napi/",
    "napi/",
];
/// So many times a second a task must have taken a CPU at its wakeup to be told for it.
const LEAST_TAKES: u64 = 10;
/// The thread that runs softirqs where they are too many.
const SOFTIRQS: &str = "ksoftirqd/";

impl<'w> Facts<'w> {
    /// Of a watcher that was closed.
    pub fn new(
        watcher: &'w Watcher,
        header: &'w Header,
        (from, to): (Instant, Instant),
    ) -> Facts<'w> {
        let period = to.since(from);
        let roles = watcher.tasks.iter().filter_map(|(_, task)| task.who.role);
        let several = roles.filter(|(_, number)| *number > 0);
        Facts {
            watcher,
            header,
            from,
            to,
            period,
            dues: Dues::of(watcher, period),
            several: several.map(|(table, _)| table).collect(),
        }
    }

    /// The task; one that is not known is as if it had just been met.
    pub fn task(&self, id: TaskId) -> &Task {
        // Ids come from the watcher, so that each is known.
        self.watcher.tasks.get(id).expect("a task that was seen")
    }

    /// Whether CPUs take turns, as in a guest whose instructions are counted: while one does, the
    /// others seem to be in an interrupt.
    pub fn cpus_take_turns(&self) -> bool {
        self.header.clock == "instructions" && self.watcher.cpu_count() > 1
    }

    /// For how much of the time measured the task was there.
    pub fn lived(&self, task: &Task) -> Duration {
        let until = task.died.unwrap_or(self.to).min(self.to);
        until.since(task.born.unwrap_or(self.from).max(self.from))
    }

    /// What people call it.
    pub fn name(&self, id: TaskId) -> String {
        let who = &self.task(id).who;
        if let Some((table, number)) = who.role
            && let Some(name) = self.header.names.tasks.get(table as usize)
        {
            return match self.several.contains(&table) {
                true => format!("{name} {number}"),
                false => name.clone(),
            };
        }
        match (who.comm == Comm::default(), who.tid) {
            (false, Some(tid)) => format!("{} ({tid})", who.comm),
            (false, None) => who.comm.to_string(),
            (true, Some(tid)) => format!("thread {tid}"),
            (true, None) => format!("task {}", id.0),
        }
    }

    /// What people call a group.
    pub fn group_name(&self, group: u32) -> String {
        let name = self.watcher.groups.get(group).name;
        match (group, name == Comm::default()) {
            (0, _) => "the root group".to_owned(),
            (_, true) => format!("group {group}"),
            (_, false) => format!("group {group} ({name})"),
        }
    }

    pub fn is_kernel(&self, id: TaskId) -> bool {
        let who = &self.task(id).who;
        let name = who.comm.raw();
        who.kernel || who.role.is_none() && OF_KERNEL.iter().any(|it| name.starts_with(it))
    }

    pub fn is_softirqd(&self, id: TaskId) -> bool {
        self.task(id).who.comm.raw().starts_with(SOFTIRQS)
    }

    pub fn is_realtime(&self, id: TaskId) -> bool {
        self.task(id).who.is_realtime()
    }

    /// The outermost group that `of` lies in, or is, and `from` does not.
    pub fn outermost_own_group(&self, of: u32, from: u32) -> Option<u32> {
        let other = self.watcher.groups.upwards(from);
        let mut own = self.watcher.groups.upwards(of);
        own.reverse();
        own.into_iter().find(|group| !other.contains(group))
    }

    /// The tasks of a group and of those within it.
    pub fn members(&self, group: u32) -> impl Iterator<Item = (TaskId, &Task)> {
        self.watcher.tasks.iter().filter(move |(_, task)| {
            let of = task.who.group;
            of == group || self.watcher.groups.upwards(of).contains(&group)
        })
    }

    /// How often in a second `id` was woken on one of `cpus`.
    pub fn woken_on(&self, id: TaskId, cpus: &[CpuId]) -> u64 {
        let places = self.task(id).tally.places.iter();
        let there = places.filter(|it| cpus.contains(&it.cpu));
        rate(there.map(|it| it.wakeups).sum(), self.period)
    }

    /// What share of the time `id` ran on other CPUs than `cpus`, in thousandths.
    pub fn ran_elsewhere(&self, id: TaskId, cpus: &[CpuId]) -> u64 {
        let places = self.task(id).tally.places.iter();
        let elsewhere = places.filter(|it| !cpus.contains(&it.cpu));
        thousandths(elsewhere.map(|it| it.ran).sum(), self.period)
    }

    /// Of its wakeups, how many took the CPU from another task at once, in thousandths.
    pub fn takes_at_wakeup(&self, id: TaskId) -> u64 {
        let tally = &self.task(id).tally;
        tally.took_at_wakeup * 1_000 / tally.wakeups.max(1)
    }

    /// Its weight among tasks of its group.
    pub fn weight(&self, id: TaskId) -> u64 {
        let who = &self.task(id).who;
        weight::of_task(who.policy(), who.nice)
    }

    /// Why `id` could run where `waiter` waited, in some words.
    pub fn why_it_could(&self, id: TaskId, waiter: TaskId) -> String {
        let (own, other) = (&self.task(waiter).who, &self.task(id).who);
        if self.is_realtime(id) && !self.is_realtime(waiter) {
            return "real-time".to_owned();
        }
        if self.is_softirqd(id) {
            return "softirqs".to_owned();
        }
        if self.is_kernel(id) {
            return "a thread of the kernel".to_owned();
        }
        let mut why = Vec::new();
        if let Some(group) = self.outermost_own_group(other.group, own.group) {
            why.push(format!("of {}", self.group_name(group)));
        } else if self.weight(id) > self.weight(waiter) {
            let (more, less) = (self.weight(id), self.weight(waiter));
            why.push(format!(
                "weight {} against {}",
                words::count(more),
                words::count(less)
            ));
        }
        let often = rate(self.task(id).tally.took_at_wakeup, self.period);
        if self.takes_at_wakeup(id) >= 100 && often >= LEAST_TAKES {
            let often = words::count(often);
            why.push(format!("took the CPU at its wakeup {often} times a second"));
        }
        match why.is_empty() {
            true => "its turn".to_owned(),
            false => why.join(", "),
        }
    }
}
