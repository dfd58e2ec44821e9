//! Who runs, who waits and who sleeps on a machine, as its records show.
//!
//! A [`Board`] is fed records, one at a time, and answers each with the stretches that end by it
//! ([`Ended`]): a task ran, waited or slept, a CPU ran a task or idled, nobody knows. Meters,
//! pictures, verdicts, replays and checks are folds of these stretches.
//!
//! ```text
//!     records --> Board --> task ran, waited, slept, was throttled, unknown       Stretch::Task
//!                           CPU ran a task, idled, was offline, unknown           Stretch::Cpu
//!                           CPU was in an interrupt, or in none                   Stretch::Spent
//!                           events of some CPU were missing                       Stretch::Gap
//! ```
//!
//! Three rules hold for every fold:
//!
//! - **Windows.** A stretch counts in a window with the part of it that lies inside
//!   ([`Ended::since`]). What goes on as the window ends is cut off there ([`Board::open`]).
//! - **Lost events.** Where events of a CPU are missing ([`Record::Lost`]), that CPU is unknown
//!   until its next switch, and so is meanwhile every task but those that run on other CPUs or have
//!   exited: it may have run there. A single missing event is one that a recorder knows to have
//!   happened, and that follows at the same time: it hides nothing. Of a task that leaves its CPU
//!   by such a switch nobody knows whether it waits or sleeps. Nor is it known what a task did that
//!   is about to be woken though it waits since it was woken before: in some virtual machines the
//!   kernel does not record what some tasks do.
//! - **Throttled tasks.** A task whose group is out of quota is runnable, and yet it waits for no
//!   CPU. It leaves its queue at once, or its CPU at the next switch, whether the switch calls it
//!   runnable or not: kernels differ in that.

mod cpu;
mod ended;
mod task;

use std::collections::BTreeSet;

use warmq_units::{CpuId, Duration, Instant, TaskId};

pub use self::cpu::Work;
pub use self::ended::{Ended, Stretch};
pub use self::task::{Block, Doing, Waking};

use self::cpu::Cpu;
use self::task::Task;
use crate::{Context, Record, State, Table};

/// The state of a machine as its records show it.
///
/// Invariant: if a task runs on a CPU, that CPU runs the task, as long as the records are those of
/// a real machine.
#[derive(Clone, Debug, Default)]
pub struct Board {
    tasks: Table<TaskId, Task>,
    cpus: Table<CpuId, Cpu>,
    /// What a CPU does before the first record of it.
    at_first: Work,
    /// A switch or wakeup at this time, on this CPU, must have happened and was not recorded.
    inferred: Option<(Instant, CpuId)>,
    /// Whether the last record is such a switch.
    infers: bool,
    /// The CPUs whose events are missing, and since when there have been any.
    gaps: BTreeSet<CpuId>,
    gaps_since: Instant,
    /// What ended by the last record.
    ended: Vec<Ended>,
}

impl Board {
    /// That of a recording: what a CPU does is unknown until its first switch.
    pub fn of_a_recording() -> Board {
        Board::default()
    }

    /// That of a run whose records begin when the machine starts: each CPU idles until its first
    /// switch.
    pub fn of_a_run() -> Board {
        Board {
            at_first: Work::Idle,
            ..Board::default()
        }
    }

    /// `cpu` is there, even if no record names it.
    pub fn has(&mut self, cpu: CpuId) {
        self.cpu(cpu);
    }

    /// Takes in `record`, which happened at `at`, and returns what ended by it: of a switch first
    /// what the task did that leaves, then what the one did that comes, then what the CPU did.
    #[inline]
    pub fn see(&mut self, at: Instant, record: &Record) -> &[Ended] {
        self.ended.clear();
        self.infers = false;
        match *record {
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => self.switch(at, cpu, prev.map(|task| (task, prev_runnable)), next),
            Record::Waking {
                cpu,
                waker,
                task,
                context,
                ..
            } => {
                let waking = Waking {
                    at,
                    cpu,
                    waker,
                    context,
                };
                self.announce(at, task, waking);
            }
            Record::Wakeup {
                waker,
                task,
                target,
            } => self.wake(at, waker, task, target),
            Record::Block {
                task,
                cause,
                state,
                object,
                ..
            } => {
                let block = Block {
                    cause,
                    state,
                    object,
                };
                self.leaves_for(at, task, block);
            }
            Record::Fork { child, .. } => self.becomes(at, child, self.surely(Doing::Sleeps)),
            Record::Exit { task, .. } => self.becomes(at, task, Doing::Exited),
            Record::Migrate { task, to, .. } => self.tasks.touch(task).moves(at, to),
            Record::InterruptEnter { cpu, interrupt } => {
                self.spend(at, cpu).open.push(interrupt);
            }
            Record::InterruptExit { cpu, .. } => drop(self.spend(at, cpu).open.pop()),
            Record::Hotplug { cpu, online } => self.plug(at, cpu, online),
            // What must have happened follows, at the same time.
            Record::Lost { cpu, events: 1 } => self.inferred = Some((at, cpu)),
            Record::Lost { cpu, .. } => self.lose(at, cpu),
            _ => {}
        }
        &self.ended
    }

    /// What ended by the last record.
    pub fn ended(&self) -> &[Ended] {
        &self.ended
    }

    /// What goes on at `at`, as if it ended then.
    pub fn open(&self, at: Instant) -> impl Iterator<Item = Ended> {
        let tasks = self.tasks.iter().map(move |(id, task)| task.until(at, id));
        let cpus = self.cpus.iter();
        let cpus = cpus.flat_map(move |(id, cpu)| [cpu.until(at, id), cpu.spent(at, id)]);
        let gap = (!self.is_certain()).then(|| self.gap(at));
        tasks.chain(cpus).chain(gap)
    }

    /// For how long events of some CPU have been missing at `end`, from `from` on.
    pub fn missing_since(&self, from: Instant, end: Instant) -> Duration {
        match self.is_certain() {
            true => Duration::ZERO,
            false => self.gap(end).since(from),
        }
    }

    fn gap(&self, at: Instant) -> Ended {
        Ended {
            from: self.gaps_since,
            to: at,
            stretch: Stretch::Gap,
        }
    }

    /// What `task` is doing, and what it has done since, as if that ended at `at`.
    pub fn open_of(&self, at: Instant, task: TaskId) -> Option<Ended> {
        self.tasks.get(task).map(|known| known.until(at, task))
    }

    /// What `task` does.
    #[inline]
    pub fn doing(&self, task: TaskId) -> Doing {
        let known = self.tasks.get(task);
        known.map_or(Doing::Unknown, |known| known.doing)
    }

    /// Since when `task` does what it does.
    pub fn since(&self, task: TaskId) -> Instant {
        let known = self.tasks.get(task);
        known.map_or(Instant::START, |known| known.since)
    }

    /// Since when `task`, which waits, has been in the queue of its CPU.
    pub fn queued(&self, task: TaskId) -> Instant {
        let known = self.tasks.get(task);
        known.map_or(Instant::START, |known| known.queued)
    }

    /// Why `task` sleeps, or is about to leave its CPU or its queue, if a record said so.
    pub fn block(&self, task: TaskId) -> Option<Block> {
        self.tasks.get(task)?.block
    }

    /// Who woke `task` last, or is about to.
    pub fn waking(&self, task: TaskId) -> Option<Waking> {
        self.tasks.get(task)?.waking
    }

    /// When `task` was woken, if that is why it waits or runs. The next period of its group is no
    /// wakeup: kernels put a throttled task back without one.
    pub fn woken(&self, task: TaskId) -> Option<Instant> {
        self.tasks.get(task)?.woken
    }

    /// Who gets a CPU by the last record after a wakeup, and when it was woken.
    pub fn served(&self) -> Option<(TaskId, Instant)> {
        let served = self.ended.iter().find_map(|ended| match ended.stretch {
            Stretch::Task {
                task,
                then: Doing::Runs(_),
                ..
            } => Some(task),
            _ => None,
        });
        let task = served?;
        Some((task, self.woken(task)?))
    }

    /// Whether the last record is a switch that was not recorded and must have happened.
    pub fn infers(&self) -> bool {
        self.infers
    }

    /// Every task that a record named.
    pub fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().map(|(task, _)| task)
    }

    /// Every CPU that a record named.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> {
        self.cpus.iter().map(|(cpu, _)| cpu)
    }

    /// What `cpu` does, interrupts aside.
    #[inline]
    pub fn work(&self, cpu: CpuId) -> Work {
        self.cpus.get(cpu).map_or(self.at_first, |cpu| cpu.work)
    }

    /// Since when `cpu` does it.
    pub fn work_since(&self, cpu: CpuId) -> Instant {
        self.cpus.get(cpu).map_or(Instant::START, |cpu| cpu.since)
    }

    /// The task that runs on `cpu`, if one is known to.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        match self.work(cpu) {
            Work::Runs(task) => Some(task),
            Work::Unknown | Work::Idle | Work::Offline => None,
        }
    }

    /// The interrupts that `cpu` is serving, outermost first.
    pub fn interrupts(&self, cpu: CpuId) -> &[crate::Interrupt] {
        self.cpus.get(cpu).map_or(&[], |cpu| cpu.open.as_slice())
    }

    /// For how long interrupts have had `cpu` until `at`.
    pub fn interrupted(&self, at: Instant, cpu: CpuId) -> Duration {
        let cpu = self.cpus.get(cpu);
        cpu.map_or(Duration::ZERO, |cpu| cpu.interrupted(at))
    }

    /// True unless events of some CPU are missing now.
    pub fn is_certain(&self) -> bool {
        self.gaps.is_empty()
    }

    /// `doing`, if no CPU's events are missing; else a task that does not run may do anything.
    fn surely(&self, doing: Doing) -> Doing {
        match self.is_certain() {
            true => doing,
            false => Doing::Unknown,
        }
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, bool)>,
        next: Option<TaskId>,
    ) {
        self.find(at, cpu);
        let inferred = self.inferred.take() == Some((at, cpu));
        self.infers = inferred;
        let prev = prev.filter(|(task, _)| Some(*task) != next);
        if let Some((task, runnable)) = prev {
            self.leave(at, cpu, task, (runnable, inferred));
        }
        // Its own leaving was missed.
        let unseen = self.running(cpu);
        if let Some(task) = unseen.filter(|task| self.doing(*task) == Doing::Runs(cpu))
            && next != unseen
        {
            self.becomes(at, task, Doing::Unknown);
        }
        if let Some(task) = next
            && self.doing(task) != Doing::Runs(cpu)
        {
            self.becomes(at, task, Doing::Runs(cpu));
        }
        self.works(at, cpu, next.map_or(Work::Idle, Work::Runs));
    }

    /// `task` leaves `cpu`. One that is known to run elsewhere has left it before.
    fn leave(&mut self, at: Instant, cpu: CpuId, id: TaskId, (runnable, inferred): (bool, bool)) {
        let task = self.tasks.touch(id);
        let throttled = std::mem::take(&mut task.throttles);
        let then = match (task.doing, throttled, runnable) {
            (Doing::Exited, ..) => return,
            (Doing::Runs(other), ..) if other != cpu => return,
            _ if inferred => Doing::Unknown,
            (_, true, _) => Doing::Throttled,
            (_, false, true) => Doing::Waits(cpu),
            (_, false, false) => Doing::Sleeps,
        };
        task.woken = None;
        if runnable {
            task.block = None;
        }
        self.becomes(at, id, self.surely(then));
    }

    /// Somebody is about to wake `id`. If it waits since it was woken before, it has run and slept
    /// unseen.
    fn announce(&mut self, at: Instant, id: TaskId, waking: Waking) {
        let task = self.tasks.touch(id);
        task.announce(waking);
        if let (Doing::Waits(_), Some(_)) = (task.doing, task.woken) {
            self.becomes(at, id, Doing::Unknown);
        }
    }

    fn wake(&mut self, at: Instant, waker: CpuId, id: TaskId, target: CpuId) {
        // It is the wakeup that was inferred, and not a switch.
        self.inferred = None;
        let now = self.waking_on(at, waker);
        let task = self.tasks.touch(id);
        task.is_woken(now);
        // If it was about to sleep, it stays.
        if let Doing::Unknown | Doing::Runs(_) = task.doing {
            task.block = None;
        }
        if let Doing::Unknown | Doing::Sleeps = task.doing {
            task.woken = Some(at);
        }
        if let Doing::Unknown | Doing::Sleeps | Doing::Throttled = task.doing {
            self.becomes(at, id, self.surely(Doing::Waits(target)));
        }
    }

    /// Who wakes a task on `cpu`, where no record says so.
    fn waking_on(&self, at: Instant, cpu: CpuId) -> Waking {
        let innermost = self.interrupts(cpu).last();
        Waking {
            at,
            cpu,
            waker: self.running(cpu),
            context: match innermost.map(|interrupt| interrupt.is_softirq()) {
                None => Context::Unknown,
                Some(true) => Context::Softirq,
                Some(false) => Context::Interrupt,
            },
        }
    }

    /// `id` is about to leave its CPU, or leaves its queue.
    fn leaves_for(&mut self, at: Instant, id: TaskId, block: Block) {
        let task = self.tasks.touch(id);
        task.block = Some(block);
        match (block.state, task.doing) {
            (State::Runnable, Doing::Runs(_)) => task.throttles = true,
            (State::Runnable, Doing::Waits(_)) => {
                self.becomes(at, id, Doing::Throttled);
            }
            _ => {}
        }
    }

    /// Events of `silent` are missing from here on.
    fn lose(&mut self, at: Instant, silent: CpuId) {
        if self.is_certain() {
            self.gaps_since = at;
        }
        self.gaps.insert(silent);
        let known = |doing| match doing {
            Doing::Runs(cpu) => cpu != silent,
            Doing::Exited => true,
            _ => false,
        };
        let all = self.tasks.iter();
        let lost = all.filter(|(_, task)| task.doing != Doing::Unknown && !known(task.doing));
        let lost: Vec<TaskId> = lost.map(|(task, _)| task).collect();
        for task in lost {
            self.tasks.touch(task).block = None;
            self.becomes(at, task, Doing::Unknown);
        }
        self.works(at, silent, Work::Unknown);
        self.cpu(silent).open.clear();
    }

    /// What `cpu` does is known again.
    fn find(&mut self, at: Instant, cpu: CpuId) {
        if !self.gaps.is_empty() && self.gaps.remove(&cpu) && self.gaps.is_empty() {
            self.ended.push(self.gap(at));
        }
    }

    fn becomes(&mut self, at: Instant, id: TaskId, doing: Doing) {
        let task = self.tasks.touch(id);
        self.ended.push(task.becomes(at, id, doing));
    }

    /// One that comes online has not idled before, whether a record said that it was offline or
    /// not.
    fn plug(&mut self, at: Instant, id: CpuId, online: bool) {
        let cpu = self.spend(at, id);
        cpu.offline = !online;
        if let Work::Idle | Work::Offline = cpu.work {
            let work = match online {
                true => Work::Idle,
                false => Work::Offline,
            };
            let ended = cpu.works(at, id, work);
            self.ended.push(ended);
        }
    }

    /// `id` does `work` from now on. Where it would idle while it is offline, it is offline.
    fn works(&mut self, at: Instant, id: CpuId, work: Work) {
        let cpu = self.spend(at, id);
        let work = match (work, cpu.offline) {
            (Work::Idle, true) => Work::Offline,
            _ => work,
        };
        if cpu.work != work {
            let ended = cpu.works(at, id, work);
            self.ended.push(ended);
        }
    }

    /// What `id` spends its time on changes.
    fn spend(&mut self, at: Instant, id: CpuId) -> &mut Cpu {
        let at_first = self.at_first;
        let cpu = self.cpus.touch_or(id, || Cpu::at_first(at_first));
        self.ended.extend(cpu.spend(at, id));
        cpu
    }

    fn cpu(&mut self, id: CpuId) -> &mut Cpu {
        let at_first = self.at_first;
        self.cpus.touch_or(id, || Cpu::at_first(at_first))
    }
}

#[cfg(test)]
mod tests;
