//! One pass over the records of a trace: sums for each task, each CPU and each group.
//!
//! A wait counts when it has ended, and only if all that happened on its CPU meanwhile was told: no
//! verdict rests on what a recorder has inferred or lost.

mod cpu;
mod groups;
mod history;
mod idle;
mod task;

use std::collections::BTreeMap;

use warmq_trace::{Cause, Context, Header, Observer, Record, State, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use self::cpu::Cpu;
use self::groups::Groups;
use self::history::History;
pub(crate) use self::history::{Ended, LONG_WAIT, Mark, Sums};
use self::idle::Idle;
use self::task::{Life, Wait};
pub(crate) use self::task::{Longest, Program, Tally, Task};
use crate::bursts::{self, Bursts};

/// A wakeup that gives a CPU at once to the task that it wakes, and takes it from another, comes no
/// later than this after it: some times what an interrupt to another CPU and a switch take.
const AT_ONCE: Duration = Duration::from_us(500);
/// A CPU of Linux' own scheduler that idles for so long has nobody in its queue: whoever seems to wait
/// there has run unseen, or a quota or the hypervisor holds it.
const NOBODY_WAITS: Duration = Duration::from_ms(10);

/// Watches records, and keeps sums.
///
/// Its memory grows with the number of tasks, and not with that of records.
#[derive(Debug)]
pub struct Watcher {
    pub(crate) header: Header,
    pub(crate) tasks: Table<TaskId, Task>,
    pub(crate) groups: Groups,
    pub(crate) bursts: Bursts,
    history: History,
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
    /// How many records were within the times that are looked at.
    pub(crate) records: u64,
    pub(crate) lost: u64,
    /// For how long a hypervisor had CPUs, all together.
    pub(crate) stolen: Duration,
    pub(crate) interrupts_seen: bool,
}

impl Watcher {
    /// Watches what happens from `from` to `until` in a trace of this header.
    pub fn new(header: &Header, from: Instant, until: Instant) -> Watcher {
        let mut header = header.clone();
        header.accounts.sort_by_key(|it| it.tid);
        let llcs: Vec<u16> = header.places.iter().map(|(_, llc)| *llc).collect();
        let mut idle = Idle::default();
        let all = (0..llcs.len() as u16).map(CpuId);
        // A CPU that never has anything to do has no record.
        all.for_each(|cpu| idle.set(Instant::START, cpu, true));
        Watcher {
            header,
            tasks: Table::default(),
            groups: Groups::default(),
            bursts: Bursts::default(),
            history: History::beginning(from),
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
            stolen: Duration::ZERO,
            interrupts_seen: false,
        }
    }

    /// Whether a CPU never idles while somebody is in its queue: so it is with Linux' own scheduler. Of a
    /// simulated one that may be the very fault, and others have no queue of each CPU.
    fn serves_its_queues(&self) -> bool {
        self.header.clock != "simulated" && self.header.scheduler == "kernel"
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
            // No record ends this wait.
            if self.take_wait(id).is_some_and(|it| self.cpu(it.cpu).unsure) {
                self.forget_wait(end, id);
            }
            if let Some(wait) = self.take_wait(id).filter(|_| end == self.last) {
                self.tasks.touch(id).unfinished = end.since(wait.since);
            }
            self.end_wait(end, id);
            self.release(end, id);
        }
        self.judge(end);
        (self.from, end)
    }

    /// What is certain of each task by now.
    pub(crate) fn sums(&mut self, at: Instant) -> Sums {
        let cpus: Vec<CpuId> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            if let Some((task, _)) = self.cpus[&cpu].running(at) {
                self.leave_cpu(at, cpu);
                self.cpu(cpu).begins(at, task);
            }
        }
        let mut sums = Sums::default();
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            self.end_part(at, id);
            *sums.touch(id) = self.tasks.touch(id).so_far();
        }
        sums
    }

    /// Judges what has happened lately by itself, so that no average hides it.
    fn judge(&mut self, at: Instant) {
        if !self.began || at <= self.from {
            return;
        }
        let mark = Mark {
            at,
            sums: self.sums(at),
        };
        let mut found = std::mem::take(&mut self.bursts);
        for (mark_before, ended) in self.history.ended_since() {
            bursts::of_waits(&mut found, self, (&mark_before, &mark), &ended);
        }
        if let Some(before) = self.history.window_before(at) {
            bursts::of_window(&mut found, self, (&before, &mark));
        }
        self.bursts = found;
        self.history.remember(mark);
    }

    /// Forgets the sums of what was before the measurement.
    fn begin(&mut self, at: Instant) {
        if self.began || at < self.from {
            return;
        }
        self.began = true;
        let from = self.from;
        self.history = History::beginning(from);
        self.idle.restart(from);
        self.groups.restart();
        self.records = 0;
        self.lost = 0;
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
        if inferred {
            self.distrust(at, cpu);
        }
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
        self.cpu(cpu).idles(at, next.is_none());
    }

    /// A switch of `cpu` was not told: who waits there may have run since, and where it seemed to idle it
    /// may have been busy.
    fn distrust(&mut self, at: Instant, cpu: CpuId) {
        let state = self.cpus.entry(cpu).or_default();
        let first = !std::mem::replace(&mut state.unsure, true);
        for id in state.all_waiting() {
            if let Life::Waits(wait) = &mut self.tasks.touch(id).life {
                wait.doubtful = true;
            }
        }
        if first {
            self.idle.distrust(at, cpu);
            self.forget_idle(at);
        }
    }

    /// What idled until now is not known.
    fn forget_idle(&mut self, at: Instant) {
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            self.end_part(at, id);
            let task = self.tasks.touch(id);
            let sums = task.sums();
            (sums.idle_inside, sums.idle_outside) = Default::default();
            (task.pending.idle_inside, task.pending.idle_outside) = Default::default();
        }
    }

    /// Events of `cpu` are missing from here to its next switch. Whoever waited anywhere may have run there.
    fn gap(&mut self, at: Instant, cpu: CpuId) {
        if let Some((task, _)) = self.cpu(cpu).running(at) {
            self.leave_cpu(at, cpu);
            self.tasks.touch(task).vanishes();
        }
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            self.forget_wait(at, id);
        }
        self.idle.set(at, cpu, false);
        self.cpu(cpu).idles(at, false);
    }

    /// The wait of `id`, if it waits, does not count.
    fn forget_wait(&mut self, at: Instant, id: TaskId) {
        if self.leave_queue(at, id).is_some() {
            self.tasks.touch(id).forget_wait();
        }
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
            task.sums().took_at_wakeup += 1;
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
        let ran = self.tasks.touch(stretch.task).sums();
        ran.ran += stretch.span;
        ran.interrupted += stretch.interrupted;
        ran.on(cpu).ran += stretch.span;
        let program = self.tasks.touch(stretch.task).program();
        for waiter in state.first_waiting() {
            let task = self.tasks.touch(waiter);
            if let Life::Waits(wait) = &task.life {
                let span = at.since(stretch.from.max(wait.part_from));
                task.pending.beside(stretch.task, program, span);
            }
        }
    }

    fn begin_wait(&mut self, at: Instant, cpu: CpuId, id: TaskId, woken: bool) {
        self.end_wait(at, id);
        self.queue(at, cpu, id);
        self.tasks.touch(id).woken = woken.then_some(at);
    }

    fn queue(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        self.waits += 1;
        let place = self.waits;
        let state = self.cpus.entry(cpu).or_default();
        let interrupted = state.interrupted_until(at);
        let idled_here = state.idled_until(at);
        state.queue(place, id);
        let task = self.tasks.touch(id);
        let (inside, outside) = self.idle.beside(at, &task.who.cpus);
        task.life = Life::Waits(Wait {
            cpu,
            place,
            since: at,
            part_from: at,
            inside,
            outside,
            interrupted,
            idled_here,
            doubtful: false,
        });
    }

    /// `id` waits no more. What it waited counts, if that is certain.
    fn end_wait(&mut self, at: Instant, id: TaskId) {
        let Some(wait) = self.leave_queue(at, id) else {
            return;
        };
        let idled = self.cpu(wait.cpu).idled_until(at);
        let idled = idled.saturating_sub(wait.idled_here);
        let unseen = self.serves_its_queues() && idled >= NOBODY_WAITS;
        let task = self.tasks.touch(id);
        if wait.doubtful || unseen {
            task.forget_wait();
            return;
        }
        let mut pending = std::mem::take(&mut task.pending);
        pending.longest = Longest {
            from: wait.since,
            to: at,
        };
        task.sums().add(&pending);
        task.life = Life::Asleep;
        self.history.ends(id, pending);
    }

    /// `id` leaves the queue in which it waited; what it waited is not counted yet.
    fn leave_queue(&mut self, at: Instant, id: TaskId) -> Option<Wait> {
        self.end_part(at, id);
        let wait = self.take_wait(id)?;
        self.cpu(wait.cpu).unqueue(wait.place);
        Some(wait)
    }

    /// Takes down what `id` has waited so far, if it waits.
    fn end_part(&mut self, at: Instant, id: TaskId) {
        let Some(wait) = self.take_wait(id) else {
            return;
        };
        let state = self.cpus.entry(wait.cpu).or_default();
        let running = state.running(at);
        let interrupted = state.interrupted_until(at);
        let program = running.map(|(other, _)| self.tasks.touch(other).program());
        let task = self.tasks.touch(id);
        let (inside, outside) = self.idle.beside(at, &task.who.cpus);
        let span = at.since(wait.part_from);
        let pending = &mut task.pending;
        // The stretch that is still going on would be counted when it ends.
        if let Some((other, since)) = running.filter(|(other, _)| *other != id) {
            let span = at.since(since.max(wait.part_from));
            pending.beside(other, program.unwrap_or_default(), span);
        }
        pending.waited += span;
        pending.on(wait.cpu).waited += span;
        pending.idle_inside += inside.saturating_sub(wait.inside);
        pending.idle_outside += outside.saturating_sub(wait.outside);
        pending.interrupted += interrupted.saturating_sub(wait.interrupted);
        task.life = Life::Waits(Wait {
            part_from: at,
            inside,
            outside,
            interrupted,
            ..wait
        });
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
    fn doubt(&mut self, at: Instant, id: TaskId) {
        let waits = self.take_wait(id).is_some();
        if waits && self.tasks.touch(id).woken.is_some() {
            self.forget_wait(at, id);
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
            let span = at.since(since);
            task.sums().held.throttled += span;
        }
    }

    fn migrate(&mut self, at: Instant, id: TaskId, to: CpuId) {
        let Some(wait) = self.take_wait(id).filter(|wait| wait.cpu != to) else {
            return;
        };
        self.moves(at, id, to, wait);
    }

    /// `id`, which waits, waits on in the queue of `cpu`.
    fn moves(&mut self, at: Instant, id: TaskId, cpu: CpuId, wait: Wait) {
        let woken = self.tasks.touch(id).woken;
        self.leave_queue(at, id);
        self.queue(at, cpu, id);
        let task = self.tasks.touch(id);
        task.woken = woken;
        if let Life::Waits(now) = &mut task.life {
            (now.since, now.doubtful) = (wait.since, wait.doubtful);
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
            let sums = task.sums();
            sums.wakeups += 1;
            sums.on(target).wakeups += 1;
            sums.wakers.count(by);
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
            | Record::Slice { task, .. }
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
                self.end_part(at, id);
                self.learn(record);
                self.moves(at, id, wait.cpu, wait);
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
        if let Some(due) = self.history.is_due(at) {
            self.judge(due);
        }
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
                self.doubt(at, task);
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
            Record::Lost { cpu, events } => {
                self.lost += events.max(1);
                self.gap(at, cpu);
            }
            Record::Steal { span, .. } => self.stolen += span,
            Record::Affinity { task, .. } => self.bind(at, task, record),
            _ => self.learn(record),
        }
    }
}

#[cfg(test)]
mod tests;
