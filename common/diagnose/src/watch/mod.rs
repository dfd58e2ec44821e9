//! One pass over the records of a trace: sums for each task, each CPU and each group.
//!
//! The board says who ran, waited and slept when. A wait counts when it has ended, and only if all
//! that happened on its CPU meanwhile was recorded: no verdict rests on what a recorder has
//! inferred or lost.

mod cpu;
mod history;
mod idle;
mod quotas;
mod raised;
mod sums;
mod task;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use warmq_trace::{
    Board, Comm, Doing, Ended, Groups, Header, Interrupt, Observer, Record, Stretch, Table, Who,
    Work,
};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use self::cpu::{Cpu, LATE};
use self::history::History;
pub(crate) use self::history::{EndedWait, LONG_WAIT, Mark, Sums};
use self::idle::{Beside, Idle};
use self::quotas::Quotas;
use self::task::Wait;
pub(crate) use self::task::{Longest, Program, Tally, Task};
use crate::Need;
use crate::bursts::{self, Bursts};
use crate::doubt;

/// A wakeup that gives a CPU at once to the task that it wakes, and takes it from another, comes no
/// later than this after it: some times what an interrupt to another CPU and a switch take.
const AT_ONCE: Duration = Duration::from_us(500);
/// A CPU of Linux' own scheduler that idles for so long has nobody in its queue: whoever seems to
/// wait there has run unseen, or a quota or the hypervisor holds it.
const NOBODY_WAITS: Duration = Duration::from_ms(10);

/// Watches records, and keeps sums.
///
/// Its memory grows with the number of tasks, and not with that of records.
#[derive(Debug, Default)]
pub struct Watcher {
    pub(crate) header: Header,
    pub(crate) tasks: Table<TaskId, Task>,
    /// Those that are alive, or were at the last step: only their sums change.
    living: BTreeSet<TaskId>,
    /// The others, and from which step on each has been one of them, in the order of these.
    dead: Vec<(Instant, TaskId)>,
    pub(crate) groups: Groups,
    /// What kernels count of the groups' quotas.
    pub(crate) quotas: Quotas,
    pub(crate) bursts: Bursts,
    board: Board,
    /// What ended by the record that is looked at.
    ended: Vec<Ended>,
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
    /// When something of some CPU was first recorded.
    first: Option<Instant>,
    /// Orders those who wait.
    waits: u64,
    /// How many records were within the times that are looked at.
    pub(crate) records: u64,
    pub(crate) lost: u64,
    /// For how long a hypervisor had CPUs, all together.
    pub(crate) stolen: Duration,
    pub(crate) interrupts_seen: bool,
    /// What the recording is known to lack.
    pub(crate) lacks: BTreeSet<Need>,
}

impl Watcher {
    /// Watches what happens from `from` to `until` in a trace of this header.
    pub fn new(header: &Header, from: Instant, until: Instant) -> Watcher {
        let mut header = header.clone();
        header.accounts.sort_by_key(|account| account.tid);
        let llcs: Vec<u16> = header.places.iter().map(|(_, llc)| *llc).collect();
        let mut idle = Idle::of(&llcs, &header.nodes);
        let all = (0..llcs.len() as u16).map(CpuId);
        // A CPU that never has anything to do has no record.
        all.for_each(|cpu| idle.set(Instant::START, cpu, true));
        let lacks = llcs.is_empty().then_some(Need::Caches);
        Watcher {
            header,
            lacks: lacks.into_iter().collect(),
            board: Board::of_a_recording(),
            history: History::beginning(from),
            idle,
            llcs,
            from,
            until,
            began: from == Instant::START,
            ..Watcher::default()
        }
    }

    /// The recording lacks these, whatever its records are: no verdict rests on them.
    #[must_use]
    pub fn lacking(mut self, lacks: impl IntoIterator<Item = Need>) -> Watcher {
        self.lacks.extend(lacks);
        self
    }

    /// Whether a CPU never idles while somebody is in its queue: so it is with Linux' own
    /// scheduler. Of a simulated one that may be the very fault, and others have no queue of each
    /// CPU.
    fn serves_its_queues(&self) -> bool {
        self.header.clock != "simulated" && self.header.scheduler == "kernel"
    }

    /// How many CPUs ran anything or are known to be there.
    pub(crate) fn cpu_count(&self) -> usize {
        self.cpus.len().max(self.llcs.len())
    }

    /// How often a device interrupted those of the CPUs of which `is` is true, and for how long
    /// softirqs of the network had these.
    pub(crate) fn of_network(&self, is: impl Fn(CpuId) -> bool) -> (u64, Duration) {
        let those = self.cpus.iter().filter(|(cpu, _)| is(**cpu));
        those.fold((0, Duration::ZERO), |(devices, network), (_, cpu)| {
            (devices + cpu.devices, network + cpu.interrupted.network)
        })
    }

    /// The CPUs that have idled for so long by the end.
    pub(crate) fn idle_for(&self, span: Duration) -> impl Iterator<Item = u16> {
        let end = self.last.min(self.until);
        let idle = self.cpus.iter();
        let idle = idle.filter(move |(_, cpu)| cpu.idled_until(end) >= span);
        idle.map(|(cpu, _)| cpu.0)
    }

    /// How long was measured so far.
    pub(crate) fn measured(&self) -> Duration {
        self.last.min(self.until).since(self.from)
    }

    /// For how long interrupts, and of that softirqs, had each CPU.
    pub(crate) fn interrupts(&self) -> impl Iterator<Item = (CpuId, Duration, Duration)> {
        let all = self.cpus.iter();
        all.map(|(cpu, state)| (*cpu, state.interrupted.all, state.interrupted.softirqs))
    }

    /// Closes what is still going on, and returns the time that was measured.
    pub(crate) fn close(&mut self) -> (Instant, Instant) {
        let end = self.last.min(self.until).max(self.from);
        self.begin(end);
        let cpus: Vec<CpuId> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.count_until(end, cpu);
        }
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            // No record ends this wait.
            let wait = self.wait_of(id);
            if wait.is_some_and(|wait| self.cpu(wait.cpu).unsure) {
                self.forget_wait(end, id);
            }
            if let Some(wait) = self.wait_of(id).filter(|_| end == self.last) {
                self.tasks.touch(id).unfinished = end.since(wait.since);
            }
            self.end_wait(end, id);
            if self.board.doing(id) == Doing::Throttled {
                self.hold(id, end.since(self.board.since(id).max(self.from)));
            }
        }
        self.judge(end);
        // Accounts are of all the time.
        if self.from == Instant::START && end == self.last {
            for task in self.tasks.values_mut() {
                let account = task
                    .who
                    .tid
                    .and_then(|tid| doubt::account(&self.header, tid));
                if let Some(account) = account {
                    task.waited_by_account(account.waited);
                }
            }
        }
        (self.from, end)
    }

    /// What is certain of each task by now.
    pub(crate) fn sums(&mut self, at: Instant) -> Sums {
        let cpus: Vec<CpuId> = self.cpus.keys().copied().collect();
        for cpu in cpus {
            self.count_until(at, cpu);
        }
        let mut sums = Sums::default();
        for id in std::mem::take(&mut self.living) {
            self.end_part(at, id);
            let task = self.tasks.touch(id);
            sums.insert(id, task.so_far());
            // It may have run for a moment after its exit.
            match task
                .died
                .is_some_and(|died| at.since(died) >= history::STEP)
            {
                true => self.dead.push((at, id)),
                false => _ = self.living.insert(id),
            }
        }
        sums
    }

    /// The final sums of tasks that died after one step and before the step `to`, which does not
    /// have them any more.
    pub(crate) fn died_between(
        &self,
        (from, to): (Instant, Instant),
    ) -> impl Iterator<Item = (TaskId, &Arc<Tally>)> {
        let first = self.dead.partition_point(|(at, _)| *at <= from);
        let died = self.dead[first..]
            .iter()
            .take_while(move |(at, _)| *at < to);
        died.filter_map(|(_, id)| Some((*id, &self.tasks.get(*id)?.tally)))
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
        self.quotas.restart();
        self.records = 0;
        self.lost = 0;
        for (id, cpu) in &mut self.cpus {
            cpu.restart(from, *id, &self.board);
        }
        for task in self.tasks.values_mut() {
            task.restart(from, |cpu| interrupted(&self.cpus, &self.board, from, cpu));
        }
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        self.cpus.entry(cpu).or_default()
    }

    fn llc(&self, cpu: CpuId) -> Option<u16> {
        self.llcs.get(cpu.index()).copied()
    }

    /// No record shows a switch of `cpu`: who waits there may have run since, and where it seemed
    /// to idle it may have been busy.
    fn distrust(&mut self, at: Instant, cpu: CpuId) {
        let state = self.cpus.entry(cpu).or_default();
        let first = !std::mem::replace(&mut state.unsure, true);
        for id in state.all_waiting() {
            if let Some(wait) = &mut self.tasks.touch(id).wait {
                wait.doubtful = true;
            }
        }
        if first {
            self.idle.distrust(at, cpu);
            self.forget_idle(at);
        }
    }

    /// What `cpu` did before its first records nobody knows, unless one says that it idled: who
    /// waited there may have run, and it counted as idle for who waited elsewhere.
    fn begins(&mut self, at: Instant, record: &Record) {
        let (cpu, idled) = match *record {
            Record::Switch { cpu, prev, .. } => (cpu, Some(prev.is_none())),
            Record::Idle { cpu, .. } => (cpu, Some(true)),
            Record::InterruptEnter { cpu, .. } | Record::Waking { cpu, .. } => (cpu, None),
            _ => return,
        };
        let all = *self.first.get_or_insert(at);
        let state = self.cpus.entry(cpu).or_default();
        let begins = state.begins((all, at), idled);
        let Some(from) = begins.filter(|from| *from > Instant::START) else {
            return;
        };
        for id in state.all_waiting() {
            let wait = &mut self.tasks.touch(id).wait;
            if let Some(wait) = wait.as_mut().filter(|wait| wait.since < from) {
                wait.doubtful = true;
            }
        }
        self.idle.set(at, cpu, false);
        self.forget_idle(at);
    }

    /// For how long of that time `cpu` was recorded.
    pub(crate) fn recorded(&self, cpu: CpuId, (from, to): (Instant, Instant)) -> Duration {
        let recorded = self.cpus.get(&cpu).and_then(|cpu| cpu.recorded);
        to.since(recorded.map_or(from, |recorded| recorded.max(from)))
    }

    /// What idled until now is not known.
    fn forget_idle(&mut self, at: Instant) {
        for id in self.living.clone() {
            self.end_part(at, id);
            let task = self.tasks.touch(id);
            task.sums().idle = Beside::default();
            task.pending.idle = Beside::default();
        }
    }

    /// The wait of `id`, if it waits, does not count.
    fn forget_wait(&mut self, at: Instant, id: TaskId) {
        if self.leave_queue(at, id).is_some() {
            self.tasks.touch(id).forget_wait();
        }
    }

    /// Takes in what `record` ended.
    fn take(&mut self, record: &Record, ended: &Ended) {
        let at = ended.to;
        match ended.stretch {
            Stretch::Task { task, did, then } => {
                self.tasks.touch(task);
                if did != Doing::Exited || then != Doing::Exited {
                    self.living.insert(task);
                }
                self.stops(ended, task, (did, then));
                self.starts(at, record, task, (did, then));
            }
            Stretch::Cpu { cpu, then, .. } => {
                let idles = then == Work::Idle;
                self.idle.set(at, cpu, idles);
                self.cpu(cpu).idles(at, idles);
            }
            Stretch::Spent {
                cpu,
                interrupt: Some(interrupt),
                ..
            } => {
                let span = ended.since(self.from);
                self.cpu(cpu).interrupted.add(interrupt, span);
            }
            Stretch::Spent { .. } | Stretch::Gap => {}
        }
    }

    fn stops(&mut self, ended: &Ended, id: TaskId, (did, then): (Doing, Doing)) {
        match (did, then) {
            (Doing::Waits(_), Doing::Unknown) => self.forget_wait(ended.to, id),
            (Doing::Waits(_), _) => self.end_wait(ended.to, id),
            (Doing::Runs(_), Doing::Unknown) => self.tasks.touch(id).vanishes(),
            (Doing::Throttled, _) => self.hold(id, ended.since(self.from)),
            _ => {}
        }
    }

    fn starts(&mut self, at: Instant, record: &Record, id: TaskId, (did, then): (Doing, Doing)) {
        if let (Record::Wakeup { target, .. }, Doing::Unknown | Doing::Sleeps) = (record, did) {
            self.count_wakeup(id, *target);
        }
        match then {
            Doing::Waits(cpu) => self.queue(at, cpu, id),
            Doing::Runs(cpu) => self.run(at, cpu, id, record),
            Doing::Exited => self.tasks.touch(id).died = Some(at),
            Doing::Unknown | Doing::Sleeps | Doing::Throttled => {}
        }
    }

    fn count_wakeup(&mut self, id: TaskId, target: CpuId) {
        let waking = self.board.waking(id);
        let task = self.tasks.touch(id);
        let (weight, sums) = (task.weight(), task.sums());
        sums.wakeups += 1;
        sums.on(target, weight).wakeups += 1;
        if let Some(waking) = waking {
            sums.wakers.count((waking.waker, waking.context));
        }
    }

    /// A quota has held `id` back for `span`.
    fn hold(&mut self, id: TaskId, span: Duration) {
        self.tasks.touch(id).sums().throttled += span;
    }

    /// `id` runs on `cpu` from now on.
    fn run(&mut self, at: Instant, cpu: CpuId, id: TaskId, switch: &Record) {
        let preempts = matches!(
            switch,
            Record::Switch {
                prev: Some(_),
                prev_runnable: true,
                ..
            }
        );
        let woken = self.board.woken(id);
        let llc = self.llc(cpu);
        let task = self.tasks.touch(id);
        task.sums().turns += 1;
        if preempts && woken.is_some_and(|woken| at.since(woken) <= AT_ONCE) {
            task.sums().took_at_wakeup += 1;
        }
        task.comes_to(cpu, llc);
    }

    /// Counts who has run on `cpu` until now, and that those who wait there waited beside it.
    fn count_until(&mut self, at: Instant, cpu: CpuId) {
        let state = self.cpus.entry(cpu).or_default();
        let part = state.counts_until(at, cpu, &self.board);
        let Some(runs) = self.board.running(cpu) else {
            return;
        };
        let task = self.tasks.touch(runs);
        let (weight, ran) = (task.weight(), task.sums());
        ran.ran += part.span;
        ran.interrupted += part.interrupted;
        ran.stolen += part.stolen;
        ran.on(cpu, weight).ran += part.span;
        let program = self.tasks.touch(runs).program();
        for waiter in state.first_waiting() {
            let task = self.tasks.touch(waiter);
            if let Some(wait) = &task.wait {
                let span = at.since(part.from.max(wait.part_from));
                task.pending.beside(runs, program, span);
            }
        }
    }

    fn queue(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        self.waits += 1;
        let place = self.waits;
        let state = self.cpus.entry(cpu).or_default();
        let interrupted = state.interrupted_until(self.board.interrupted(at, cpu));
        let idled_here = state.idled_until(at);
        let stolen = state.stolen;
        state.queue(place, id);
        let task = self.tasks.touch(id);
        let idle = self.idle.beside(at, &task.who.cpus, cpu);
        task.wait = Some(Wait {
            cpu,
            place,
            since: at,
            part_from: at,
            idle,
            interrupted,
            stolen,
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
        let unseen =
            self.serves_its_queues() && idled >= NOBODY_WAITS || self.is_unrecorded(at, wait);
        // A wait that went on as the measurement began is not known from its beginning.
        let of_wakeup = self.board.woken(id) == Some(wait.since);
        let task = self.tasks.touch(id);
        let longest = Longest {
            from: wait.since,
            to: at,
        };
        if wait.doubtful || unseen {
            task.doubts_wait(longest);
            return;
        }
        let mut pending = std::mem::take(&mut task.pending);
        pending.longest = longest;
        if pending.longest.span() >= LONG_WAIT {
            pending.long_waits = pending.waited;
        }
        let unlisted = task.sums().add(&pending);
        if of_wakeup {
            task.waits.count(at.since(wait.since));
        }
        for (other, span) in unlisted {
            let program = self.tasks.touch(other).program();
            let task = self.tasks.touch(id);
            task.sums().beside_program(program, span);
        }
        self.history.ends(id, pending);
    }

    /// `id` leaves the queue in which it waited; what it waited is not counted yet.
    fn leave_queue(&mut self, at: Instant, id: TaskId) -> Option<Wait> {
        self.end_part(at, id);
        let wait = self.tasks.touch(id).wait.take()?;
        self.cpu(wait.cpu).unqueue(wait.place);
        Some(wait)
    }

    /// Takes down what `id` has waited so far, if it waits.
    fn end_part(&mut self, at: Instant, id: TaskId) {
        let Some(wait) = self.wait_of(id) else {
            return;
        };
        let running = self.board.running(wait.cpu);
        let counted = self.cpu(wait.cpu).counted();
        let interrupted = interrupted(&self.cpus, &self.board, at, wait.cpu);
        let stolen = self.cpu(wait.cpu).stolen;
        let program = running.map(|other| self.tasks.touch(other).program());
        let task = self.tasks.touch(id);
        let idle = self.idle.beside(at, &task.who.cpus, wait.cpu);
        let span = at.since(wait.part_from);
        let weight = task.weight();
        let pending = &mut task.pending;
        // The stretch that is still going on would be counted when it ends.
        if let Some(other) = running.filter(|other| *other != id) {
            let span = at.since(counted.max(wait.part_from));
            pending.beside(other, program.unwrap_or_default(), span);
        }
        pending.waited += span;
        pending.on(wait.cpu, weight).waited += span;
        pending.idle += idle.saturating_sub(wait.idle);
        pending.interrupted += interrupted.saturating_sub(wait.interrupted);
        pending.stolen += stolen.saturating_sub(wait.stolen);
        task.wait = Some(Wait {
            part_from: at,
            idle,
            interrupted,
            stolen,
            ..wait
        });
    }

    fn wait_of(&self, id: TaskId) -> Option<Wait> {
        self.tasks.get(id)?.wait
    }

    fn migrate(&mut self, at: Instant, id: TaskId, to: CpuId) {
        let Some(wait) = self.wait_of(id).filter(|wait| wait.cpu != to) else {
            return;
        };
        self.moves(at, id, to, wait);
    }

    /// Whether a task waits on a CPU of which nothing is recorded: nobody knows if it runs there.
    fn is_unrecorded(&self, at: Instant, wait: Wait) -> bool {
        let recorded = self.cpus.get(&wait.cpu).and_then(|cpu| cpu.recorded);
        recorded.is_none() && at.since(wait.since) >= LATE
    }

    /// `id`, which waits, waits on in the queue of `cpu`.
    fn moves(&mut self, at: Instant, id: TaskId, cpu: CpuId, wait: Wait) {
        let doubtful = wait.doubtful || self.is_unrecorded(at, wait);
        self.leave_queue(at, id);
        self.queue(at, cpu, id);
        if let Some(now) = &mut self.tasks.touch(id).wait {
            (now.since, now.doubtful) = (wait.since, doubtful);
        }
    }

    fn fork(&mut self, at: Instant, parent: Option<TaskId>, child: TaskId, comm: Comm) {
        let parent = parent.and_then(|parent| self.tasks.get(parent));
        let who = Who::of_child(parent.map(|parent| &parent.who), comm);
        *self.tasks.touch(child) = Task::born(at, who);
    }

    fn enter(&mut self, at: Instant, cpu: CpuId, interrupt: Interrupt) {
        let outermost = self.board.interrupts(cpu).is_empty();
        let running = self.board.running(cpu).filter(|_| outermost);
        let task = running.map(|id| self.tasks.touch(id).is_softirqd());
        let interrupted = self.board.interrupted(at, cpu);
        let state = self.cpu(cpu);
        state.devices += u64::from(matches!(interrupt, Interrupt::Network | Interrupt::Line(_)));
        match task {
            Some(true) if interrupt.is_softirq() => state.raised.is_run(interrupted),
            Some(_) => state.raised.enter(at, interrupted, interrupt),
            None => {}
        }
    }

    /// What is said of tasks and groups, and not done by them.
    fn learn(&mut self, record: &Record) {
        self.groups.learn(record);
        self.quotas.learn(record);
        if let Some(task) = Who::described(record) {
            self.tasks.touch(task).who.learn(record);
        }
    }

    /// What was counted until now counts by the weight that `id` had.
    fn reweigh(&mut self, at: Instant, id: TaskId, record: &Record) {
        match self.board.doing(id) {
            Doing::Runs(cpu) => self.count_until(at, cpu),
            _ => self.end_part(at, id),
        }
        self.learn(record);
    }

    /// Affinity changes what a wait stands beside.
    fn bind(&mut self, at: Instant, id: TaskId, record: &Record) {
        match self.wait_of(id) {
            Some(wait) => {
                self.end_part(at, id);
                self.learn(record);
                self.moves(at, id, wait.cpu, wait);
            }
            None => self.learn(record),
        }
    }
}

/// For how long interrupts have had `cpu` until `at`, but for what the tasks that ran raised.
fn interrupted(cpus: &BTreeMap<CpuId, Cpu>, board: &Board, at: Instant, cpu: CpuId) -> Duration {
    let all = board.interrupted(at, cpu);
    cpus.get(&cpu)
        .map_or(all, |state| state.interrupted_until(all))
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
            Record::Switch { cpu, .. } => self.count_until(at, cpu),
            Record::Fork {
                parent,
                child,
                comm,
            } => self.fork(at, parent, child, comm),
            Record::InterruptEnter { cpu, interrupt } => {
                self.interrupts_seen = true;
                self.enter(at, cpu, interrupt);
            }
            Record::InterruptExit { cpu, interrupt } => {
                let interrupted = self.board.interrupted(at, cpu);
                self.cpu(cpu).raised.exit(at, interrupted, interrupt);
            }
            // One that is inferred hides nothing.
            Record::Lost { events: 1, .. } => {}
            Record::Lost { cpu, events } => {
                self.lost += events.max(1);
                self.count_until(at, cpu);
            }
            Record::Steal { cpu, span } => {
                self.stolen += span;
                self.cpu(cpu).stolen += span;
            }
            Record::Affinity { task, .. } => self.bind(at, task, record),
            Record::Nice { task, .. } | Record::Policy { task, .. } => {
                self.reweigh(at, task, record);
            }
            _ => self.learn(record),
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.extend_from_slice(self.board.see(at, record));
        if let Record::Switch { cpu, .. } = *record
            && self.board.infers()
        {
            self.distrust(at, cpu);
        } else {
            self.begins(at, record);
        }
        ended.drain(..).for_each(|ended| self.take(record, &ended));
        self.ended = ended;
        if let Record::Migrate { task, to, .. } = *record {
            self.migrate(at, task, to);
        }
    }
}

#[cfg(test)]
mod tests;
