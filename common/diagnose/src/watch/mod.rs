//! One pass over the records of a trace: sums for each task, each CPU and each group.

mod cpu;
mod groups;
mod idle;
mod task;

use std::collections::BTreeMap;

use warmq_trace::{Cause, Context, Observer, Record, State, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use self::cpu::Cpu;
use self::groups::Groups;
use self::idle::Idle;
use self::task::{Life, Wait};
pub(crate) use self::task::{Longest, Tally, Task};

/// A wakeup that gives a CPU at once to the task that it wakes, and takes it from another, comes no
/// later than this after it: some times what an interrupt to another CPU and a switch take.
const AT_ONCE: Duration = Duration::from_us(500);

/// Watches records, and keeps sums.
///
/// Its memory grows with the number of tasks, and not with that of records.
#[derive(Debug)]
pub struct Watcher {
    pub(crate) tasks: Table<TaskId, Task>,
    pub(crate) groups: Groups,
    cpus: BTreeMap<CpuId, Cpu>,
    idle: Idle,
    /// Under which last-level cache each CPU is; empty if unknown.
    llcs: Vec<u16>,
    /// The measurement begins here; what was before only says who runs and who waits.
    from: Instant,
    until: Instant,
    began: bool,
    last: Instant,
    /// Orders those who wait.
    waits: u64,
    pub(crate) records: u64,
    pub(crate) lost: u64,
    pub(crate) interrupts_seen: bool,
}

impl Watcher {
    /// Watches what happens from `from` to `until` on CPUs of these last-level caches, which may be
    /// unknown.
    pub fn new(llcs: Vec<u16>, from: Instant, until: Instant) -> Watcher {
        let mut idle = Idle::default();
        let all = (0..llcs.len() as u16).map(CpuId);
        // A CPU that never has anything to do has no record.
        all.for_each(|cpu| idle.set(Instant::START, cpu, true));
        Watcher {
            tasks: Table::default(),
            groups: Groups::default(),
            cpus: BTreeMap::new(),
            idle,
            llcs,
            from,
            until,
            began: from == Instant::START,
            last: Instant::START,
            waits: 0,
            records: 0,
            lost: 0,
            interrupts_seen: false,
        }
    }

    /// How many CPUs ran anything or are known to be there.
    pub(crate) fn cpu_count(&self) -> usize {
        self.cpus.len().max(self.llcs.len())
    }

    /// For how long interrupts, and of that softirqs, had each CPU.
    pub(crate) fn interrupts(&self) -> impl Iterator<Item = (CpuId, Duration, Duration)> {
        let all = self.cpus.iter();
        all.map(|(cpu, it)| (*cpu, it.interrupted.all, it.interrupted.softirqs))
    }

    /// Closes what is still going on, and returns the time that was measured.
    pub(crate) fn close(&mut self) -> (Instant, Instant) {
        let end = self.last.min(self.until).max(self.from);
        self.begin(end);
        let cpus: Vec<CpuId> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.leave_cpu(end, cpu);
        }
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            self.end_wait(end, id);
            self.release(end, id);
        }
        (self.from, end)
    }

    /// Forgets the sums of what was before the measurement.
    fn begin(&mut self, at: Instant) {
        if self.began || at < self.from {
            return;
        }
        self.began = true;
        let from = self.from;
        self.idle.restart(from);
        self.groups.restart();
        for cpu in self.cpus.values_mut() {
            cpu.restart(from);
        }
        for task in self.tasks.values_mut() {
            task.restart(from);
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        self.cpus.entry(cpu).or_default()
    }

    fn llc(&self, cpu: CpuId) -> Option<u16> {
        self.llcs.get(cpu.index()).copied()
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, bool)>,
        next: Option<TaskId>,
    ) {
        self.leave_cpu(at, cpu);
        let inferred = self.cpu(cpu).inferred.take() == Some(at);
        let preempted = prev.is_some_and(|(_, runnable)| runnable);
        if let Some((task, runnable)) = prev.filter(|(task, _)| Some(*task) != next) {
            match inferred {
                true => self.tasks.touch(task).vanishes(),
                false => self.put_prev(at, cpu, task, runnable),
            }
        }
        if let Some(task) = next {
            self.run(at, cpu, task, preempted);
        }
        self.idle.set(at, cpu, next.is_none());
    }

    fn put_prev(&mut self, at: Instant, cpu: CpuId, id: TaskId, runnable: bool) {
        let task = self.tasks.touch(id);
        // Kernels differ in whether a throttled task leaves as a runnable one.
        match (std::mem::take(&mut task.throttles), runnable) {
            (true, _) => {
                task.life = Life::Asleep;
                task.held_since = Some(at);
            }
            (false, true) => self.begin_wait(at, cpu, id, false),
            (false, false) => task.life = Life::Asleep,
        }
    }

    /// `id` runs on `cpu` from now on; `preempts` if another task had to leave it.
    fn run(&mut self, at: Instant, cpu: CpuId, id: TaskId, preempts: bool) {
        self.release(at, id);
        self.end_wait(at, id);
        let llc = self.llc(cpu);
        let task = self.tasks.touch(id);
        let at_once = |woken| at.since(woken) <= AT_ONCE;
        if preempts && task.woken.take().is_some_and(at_once) {
            task.tally.took_at_wakeup += 1;
        }
        task.woken = None;
        task.comes_to(cpu, llc);
        task.life = Life::Running;
        self.cpu(cpu).begins(at, id);
    }

    /// Whoever runs on `cpu` has run until now, and those who wait there waited beside it.
    fn leave_cpu(&mut self, at: Instant, cpu: CpuId) {
        let state = self.cpus.entry(cpu).or_default();
        let Some(stretch) = state.ends(at) else {
            return;
        };
        let ran = self.tasks.touch(stretch.task);
        ran.tally.ran += stretch.span;
        ran.tally.interrupted += stretch.interrupted;
        ran.tally.on(cpu).ran += stretch.span;
        for waiter in state.first_waiting() {
            let task = self.tasks.touch(waiter);
            if let Life::Waits(wait) = &task.life {
                let span = at.since(stretch.from.max(wait.part_from));
                task.tally.beside(stretch.task, span);
            }
        }
    }

    fn begin_wait(&mut self, at: Instant, cpu: CpuId, id: TaskId, woken: bool) {
        self.end_wait(at, id);
        self.waits += 1;
        let place = self.waits;
        let state = self.cpus.entry(cpu).or_default();
        let interrupted = state.interrupted_until(at);
        state.queue(place, id);
        let task = self.tasks.touch(id);
        let (inside, outside) = self.idle.beside(at, &task.who.cpus);
        task.woken = woken.then_some(at);
        task.life = Life::Waits(Wait {
            cpu,
            place,
            since: at,
            part_from: at,
            inside,
            outside,
            interrupted,
        });
    }

    /// `id` waits no more where it waited; what it waited is counted.
    fn end_wait(&mut self, at: Instant, id: TaskId) {
        let Some(wait) = self.take_wait(id) else {
            return;
        };
        let state = self.cpus.entry(wait.cpu).or_default();
        state.unqueue(wait.place);
        let running = state.running(at);
        let interrupted = state.interrupted_until(at);
        let task = self.tasks.touch(id);
        let (inside, outside) = self.idle.beside(at, &task.who.cpus);
        let span = at.since(wait.part_from);
        // The stretch that is still going on would be counted when it ends.
        if let Some((other, since)) = running.filter(|(other, _)| *other != id) {
            let beside = at.since(since.max(wait.part_from));
            task.tally.beside(other, beside);
        }
        let tally = &mut task.tally;
        tally.waited += span;
        tally.on(wait.cpu).waited += span;
        tally.idle_inside += inside.saturating_sub(wait.inside);
        tally.idle_outside += outside.saturating_sub(wait.outside);
        tally.interrupted += interrupted.saturating_sub(wait.interrupted);
        if at.since(wait.since) > tally.longest.span() {
            tally.longest = Longest {
                from: wait.since,
                to: at,
            };
        }
        task.life = Life::Asleep;
    }

    fn take_wait(&self, id: TaskId) -> Option<Wait> {
        match self.tasks.get(id)?.life {
            Life::Waits(wait) => Some(wait),
            Life::Unknown | Life::Running | Life::Asleep => None,
        }
    }

    /// Somebody is about to wake `id`. If it waits since it was woken before, it must have run and
    /// slept in between: in some virtual machines the kernel does not tell what some tasks do. Nobody
    /// knows when the wait ended, so it does not count.
    fn doubt(&mut self, id: TaskId) {
        let Some(wait) = self.take_wait(id) else {
            return;
        };
        let task = self.tasks.touch(id);
        if task.woken.take().is_some() {
            task.life = Life::Asleep;
            task.tally.doubts += 1;
            self.cpu(wait.cpu).unqueue(wait.place);
        }
    }

    /// A quota holds `id` back: at once if it waits, else when it leaves its CPU.
    fn throttle(&mut self, at: Instant, id: TaskId) {
        let waits = self.take_wait(id).is_some();
        self.end_wait(at, id);
        let task = self.tasks.touch(id);
        match waits {
            true => task.held_since = Some(at),
            false => task.throttles = true,
        }
    }

    /// A quota that held `id` back does so no more.
    fn release(&mut self, at: Instant, id: TaskId) {
        let task = self.tasks.touch(id);
        if let Some(since) = task.held_since.take() {
            task.tally.held.throttled += at.since(since);
        }
    }

    fn migrate(&mut self, at: Instant, id: TaskId, to: CpuId) {
        let Some(wait) = self.take_wait(id).filter(|wait| wait.cpu != to) else {
            return;
        };
        let woken = self.tasks.touch(id).woken;
        self.end_wait(at, id);
        self.begin_wait(at, to, id, false);
        let task = self.tasks.touch(id);
        task.woken = woken;
        if let Life::Waits(now) = &mut task.life {
            now.since = wait.since;
        }
    }

    fn wakeup(&mut self, at: Instant, waker: CpuId, id: TaskId, target: CpuId) {
        let running = self.cpus.get(&waker).and_then(|it| it.running(at));
        self.cpu(target).inferred = None;
        self.release(at, id);
        let task = self.tasks.touch(id);
        let by = task.wakes.take();
        let by = by.unwrap_or((running.map(|(task, _)| task), Context::Unknown));
        if matches!(task.life, Life::Unknown | Life::Asleep) {
            task.tally.wakeups += 1;
            task.tally.on(target).wakeups += 1;
            task.tally.wakers.count(by);
            self.begin_wait(at, target, id, true);
        }
    }

    fn exit(&mut self, at: Instant, id: TaskId) {
        self.end_wait(at, id);
        self.release(at, id);
        self.tasks.touch(id).died = Some(at);
    }

    fn fork(&mut self, at: Instant, parent: Option<TaskId>, child: TaskId) {
        let inherited = parent.and_then(|parent| self.tasks.get(parent));
        let who = inherited.map(|parent| parent.who.inherited());
        let task = self.tasks.touch(child);
        *task = Task::born(at, who.unwrap_or_default());
    }

    /// What is said of tasks and groups, and not done by them.
    fn learn(&mut self, record: &Record) {
        match *record {
            Record::Cgroup {
                group,
                parent,
                weight,
                name,
            } => self.groups.learn(group, parent, weight, name),
            Record::Throttled { group, span } => self.groups.throttle(group, span),
            Record::Role { task, .. }
            | Record::Renamed { task, .. }
            | Record::Ids { task, .. }
            | Record::Nice { task, .. }
            | Record::Policy { task, .. }
            | Record::Group { task, .. }
            | Record::KernelThread { task }
            | Record::Affinity { task, .. } => self.tasks.touch(task).who.learn(record),
            _ => {}
        }
    }

    /// Affinity changes what a wait stands beside.
    fn bind(&mut self, at: Instant, id: TaskId, record: &Record) {
        match self.take_wait(id) {
            Some(wait) => {
                self.end_wait(at, id);
                self.learn(record);
                self.begin_wait(at, wait.cpu, id, false);
                if let Life::Waits(now) = &mut self.tasks.touch(id).life {
                    now.since = wait.since;
                }
            }
            None => self.learn(record),
        }
    }
}

impl Observer for Watcher {
    const DETAIL: bool = true;

    fn see(&mut self, at: Instant, record: &Record) {
        if at > self.until {
            return;
        }
        self.begin(at);
        self.records += 1;
        self.last = self.last.max(at);
        match *record {
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => self.switch(at, cpu, prev.map(|task| (task, prev_runnable)), next),
            Record::Waking {
                task,
                waker,
                context,
                ..
            } => {
                self.doubt(task);
                self.tasks.touch(task).wakes = Some((waker, context));
            }
            Record::Wakeup {
                waker,
                task,
                target,
            } => self.wakeup(at, waker, task, target),
            Record::Migrate { task, to, .. } => self.migrate(at, task, to),
            Record::Fork {
                parent,
                child,
                comm,
            } => {
                self.fork(at, parent, child);
                self.tasks.touch(child).who.comm = comm;
            }
            Record::Exit { task, .. } => self.exit(at, task),
            Record::Block {
                task,
                cause: Cause::Quota,
                state: State::Runnable,
                ..
            } => self.throttle(at, task),
            Record::InterruptEnter { cpu, interrupt } => {
                self.interrupts_seen = true;
                self.cpu(cpu).enters(at, interrupt);
            }
            Record::InterruptExit { cpu, interrupt } => self.cpu(cpu).exits(at, interrupt),
            Record::Hotplug { cpu, online: false } => self.idle.set(at, cpu, false),
            // A recorder says so before a switch or a wakeup that must have happened and was not told.
            Record::Lost { cpu, events: 1 } => {
                self.cpu(cpu).inferred = Some(at);
            }
            Record::Lost { events, .. } => self.lost += events.max(1),
            Record::Affinity { task, .. } => self.bind(at, task, record),
            _ => self.learn(record),
        }
    }
}

#[cfg(test)]
mod tests;
