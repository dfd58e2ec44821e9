//! One pass over the records of a trace.

use std::collections::BTreeMap;

use warmq_trace::{Cause, Comm, Context, Header, Observer, Policy, Record, State, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::cpu::{Cpus, Waker};
use crate::loops;
use crate::missing::Missing;
use crate::row::{Kind, Moment};
use crate::taken::Taken;
use crate::task::{Life, Task};

/// More moments than these are not kept, of all tasks together: some 400 MB.
const MOST: u64 = 16_000_000;

/// A group of tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub parent: u32,
    /// As `cpu.weight`.
    pub weight: u32,
    pub name: Comm,
}

/// Takes what a trace recorded.
#[derive(Debug)]
pub struct Taker {
    header: Header,
    tasks: Table<TaskId, Task>,
    cpus: Cpus,
    groups: BTreeMap<u32, Group>,
    missing: Missing,
    from: Instant,
    until: Instant,
    last: Instant,
    began: bool,
    moments: u64,
    full: Option<Instant>,
    /// A switch at this time, on this CPU, was not told and must have happened.
    inferred: Option<(Instant, CpuId)>,
}

impl Taker {
    /// Takes what happens from `from` to `until` in a trace of this header.
    pub fn new(header: &Header, from: Instant, until: Instant) -> Taker {
        Taker {
            header: header.clone(),
            tasks: Table::default(),
            cpus: Cpus::default(),
            groups: BTreeMap::new(),
            missing: Missing::default(),
            from,
            until,
            last: from,
            began: false,
            moments: 0,
            full: None,
            inferred: None,
        }
    }

    /// All that was taken.
    pub fn finish(mut self) -> Taken {
        let end = self
            .full
            .unwrap_or(self.last.min(self.until))
            .max(self.from);
        self.begin();
        for task in self.tasks.values_mut() {
            finish(task, self.from, end);
            // One whose name was told only after it had woken others stays, for they wait for it.
            if task.is_stopper() && !task.row.wakes_others() {
                self.missing.stoppers += 1;
                task.row.moments.clear();
            }
        }
        loops::close(&mut self.tasks);
        let cpus = self.cpus.count().max(self.header.places.len());
        self.missing.changes = self.tasks.iter().map(|(_, task)| task.who.changes).sum();
        Taken {
            header: self.header,
            tasks: self.tasks,
            groups: self.groups,
            missing: self.missing,
            cpus,
            from: self.from,
            until: end,
            full: self.full.is_some(),
        }
    }

    /// The time begins from which on is taken.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        let from = self.from;
        for task in self.tasks.values_mut() {
            task.row = Default::default();
            task.timer = Some(from);
            task.arrivals.clear();
            task.wants_since = Some(from);
            match &mut task.life {
                Life::Running(since) => *since = from,
                Life::Asleep(since, ..) => *since = (*since).max(from),
                Life::Gone(at) => *at = from,
                Life::Unknown | Life::New | Life::Runnable => {}
            }
        }
    }

    fn push(&mut self, at: Instant, task: TaskId, moment: Moment) {
        if !self.began {
            return;
        }
        self.moments += 1;
        if self.moments > MOST {
            self.full.get_or_insert(at);
        }
        let task = self.tasks.touch(task);
        task.advance(at);
        task.wants_since = Some(at);
        task.row.push(moment);
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, bool)>,
        next: Option<TaskId>,
    ) {
        let first = !self.cpus.get(cpu).switched;
        let inferred = self.inferred.take() == Some((at, cpu));
        if let Some((task, runnable)) = prev.filter(|(task, _)| Some(*task) != next) {
            self.leave(at, task, (runnable, inferred), first);
        }
        if let Some(task) = next {
            self.run(at, task);
        }
        self.cpus.get(cpu).switches(next);
    }

    fn run(&mut self, at: Instant, id: TaskId) {
        let task = self.tasks.touch(id);
        match task.life {
            Life::Running(_) => return,
            // Whoever runs was woken, though nobody told.
            Life::Asleep(since, ..) if self.began => {
                let slept = at.since(since.max(self.from));
                self.push(at, id, Moment::Sleep(slept));
            }
            Life::Unknown => {
                task.wants_since.get_or_insert(at);
            }
            _ => {}
        }
        self.tasks.touch(id).life = Life::Running(at);
    }

    /// `id` leaves its CPU; `first` if nobody saw when it began to run there.
    fn leave(&mut self, at: Instant, id: TaskId, (runnable, inferred): (bool, bool), first: bool) {
        let from = self.from;
        let task = self.tasks.touch(id);
        if first && task.life == Life::Unknown {
            task.life = Life::Running(from);
            task.wants_since = Some(from);
        }
        task.advance(at);
        let (cause, object) = task.cause.take().unwrap_or((Cause::Unknown, None));
        let held = std::mem::take(&mut task.throttles);
        task.life = match task.life {
            gone @ Life::Gone(_) => gone,
            // Of one that left unseen nobody knows whether it sleeps: as if it did until it runs again.
            _ if inferred => Life::Asleep(at, Cause::Unknown, None),
            _ if runnable || held => Life::Runnable,
            _ => Life::Asleep(at, cause, object),
        };
    }

    fn waking(&mut self, cpu: CpuId, task: TaskId, waker: Option<TaskId>, context: Context) {
        let by = self.cpus.get(cpu).waker(waker, context);
        self.tasks.touch(task).waking = Some((waker, context, by));
    }

    fn wakeup(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        // A wakeup that was not told is no switch.
        self.inferred = None;
        let here = self.cpus.get(cpu);
        let current = here.running;
        let now = here.waker(current, Context::Unknown);
        let task = self.tasks.touch(id);
        let by = task.waking.take().map_or(now, |(.., by)| by);
        let (since, cause) = match task.life {
            Life::Asleep(since, cause, object) => (since.max(self.from), (cause, object)),
            Life::Gone(at) => (at.max(self.from), (Cause::Unknown, None)),
            Life::Unknown => (self.from, (Cause::Unknown, None)),
            Life::New => {
                task.life = Life::Runnable;
                task.wants_since = Some(at);
                return;
            }
            Life::Running(_) | Life::Runnable => return,
        };
        task.life = Life::Runnable;
        if self.began {
            self.woken(at, id, (by, since, cause), cpu);
        }
    }

    /// `id` was woken, having slept since then for this cause.
    fn woken(
        &mut self,
        at: Instant,
        id: TaskId,
        (by, since, (cause, object)): (Waker, Instant, (Cause, Option<u32>)),
        cpu: CpuId,
    ) {
        if self.is_stopper(id) {
            return;
        }
        let slept = at.since(since);
        match by {
            Waker::Task(waker) if waker != id && !self.is_stopper(waker) => {
                let kind = Kind::of(cause, object);
                self.push(at, waker, Moment::Post(id, kind));
                self.push(at, id, Moment::Await(kind, Some(waker)));
            }
            Waker::Network => {
                self.cpus.get(cpu).packets.pop();
                self.push(at, id, Moment::Await(Kind::Outside, None));
                self.arrives(at, id, cpu);
            }
            Waker::Timer => self.expires(at, id, slept),
            _ if cause == Cause::Timer => self.expires(at, id, slept),
            Waker::Device => {
                self.missing.devices += 1;
                self.push(at, id, Moment::Sleep(slept));
            }
            Waker::Task(_) | Waker::Unknown => {
                self.missing.unknown += 1;
                self.push(at, id, Moment::Sleep(slept));
            }
        }
    }

    fn expires(&mut self, at: Instant, id: TaskId, slept: Duration) {
        let last = self.tasks.touch(id).timer.replace(at);
        let since = at.since(last.unwrap_or(self.from));
        self.push(at, id, Moment::Timer { slept, since });
    }

    /// A datagram came for `id` from outside.
    fn arrives(&mut self, at: Instant, id: TaskId, cpu: CpuId) {
        let task = self.tasks.touch(id);
        task.arrivals.push(at);
        let before = task.arrives_on.replace(cpu.index());
        task.arrives_everywhere |= before.is_some_and(|before| before != cpu.index());
    }

    fn is_stopper(&self, id: TaskId) -> bool {
        let task = self.tasks.get(id);
        task.is_some_and(Task::is_stopper)
    }

    /// A softirq ends: packets that woke nobody were for somebody who was awake.
    fn polled(&mut self, cpu: CpuId) {
        let packets = std::mem::take(&mut self.cpus.get(cpu).packets);
        if !self.began || packets.is_empty() {
            return;
        }
        let Some(receiver) = self.only_receiver() else {
            self.missing.packets += packets.len() as u64;
            return;
        };
        for at in packets {
            self.arrives(at, receiver, cpu);
            self.tasks.touch(receiver).row.more += 1;
        }
    }

    /// The task that receives from outside, if there is one only, and the trace is of a scenario: on a
    /// machine at large many a packet is for nobody.
    fn only_receiver(&self) -> Option<TaskId> {
        if self.header.names.tasks.is_empty() {
            return None;
        }
        let mut all = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.arrivals.is_empty());
        let (first, _) = all.next()?;
        all.next().is_none().then_some(first)
    }

    fn fork(&mut self, parent: Option<TaskId>, child: TaskId, comm: Comm) {
        let inherited = parent.and_then(|parent| self.tasks.get(parent));
        let who = inherited.map(|parent| parent.who.inherited());
        self.missing.forks += u64::from(self.began && parent.is_some());
        let from = self.from;
        let task = self.tasks.touch(child);
        task.who = who.unwrap_or_default();
        task.who.comm = comm;
        task.timer = Some(from);
        // The first tasks of a run are there from its beginning, and nobody wakes them.
        if parent.is_none() {
            task.life = Life::New;
        }
    }

    /// What is said of tasks and groups, and not done by them.
    fn learn(&mut self, record: &Record) {
        match *record {
            Record::Cgroup {
                group,
                parent,
                weight,
                name,
            } => {
                let known = Group {
                    parent,
                    weight,
                    name,
                };
                self.groups.insert(group, known);
            }
            Record::Throttled { span, .. } => self.missing.throttled += span,
            Record::Steal { span, .. } if self.began => self.missing.stolen += span,
            Record::Hotplug { .. } => self.missing.hotplug += 1,
            Record::Policy { task, policy, .. } => {
                self.missing.deadlines += u64::from(policy == Policy::Deadline);
                self.tasks.touch(task).who.learn(record);
            }
            Record::Role { task, .. }
            | Record::Renamed { task, .. }
            | Record::Ids { task, .. }
            | Record::Nice { task, .. }
            | Record::Slice { task, .. }
            | Record::Group { task, .. }
            | Record::Affinity { task, .. } => self.tasks.touch(task).who.learn(record),
            _ => {}
        }
    }

    /// What says how records beside it are to be understood.
    fn understand(&mut self, at: Instant, record: &Record) {
        match *record {
            Record::Block {
                task,
                cause: Cause::Quota,
                state: State::Runnable,
                ..
            } => {
                self.missing.holds += u64::from(self.began);
                let task = self.tasks.touch(task);
                // One that only waits for a CPU leaves none.
                task.throttles = matches!(task.life, Life::Running(_));
            }
            Record::Block {
                task,
                cause,
                object,
                ..
            } => self.tasks.touch(task).cause = Some((cause, object)),
            Record::InterruptEnter { cpu, interrupt } => self.cpus.get(cpu).enters(at, interrupt),
            Record::InterruptExit { cpu, interrupt } => {
                self.cpus.get(cpu).exits(at, interrupt);
                if interrupt.is_softirq() {
                    self.polled(cpu);
                }
            }
            Record::Packet { cpu, .. } => {
                let here = self.cpus.get(cpu);
                if here.receives_from_outside() {
                    here.packets.push(at);
                }
            }
            // A recorder says so before a switch or a wakeup that must have happened.
            Record::Lost { cpu, events: 1 } => {
                self.missing.untold += 1;
                self.inferred = Some((at, cpu));
            }
            Record::Lost { events, .. } => self.missing.lost += events.max(1),
            _ => self.learn(record),
        }
    }
}

impl Observer for Taker {
    fn see(&mut self, at: Instant, record: &Record) {
        if at > self.until || self.full.is_some() {
            return;
        }
        if at >= self.from {
            self.begin();
            self.last = self.last.max(at);
        }
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
            } => self.waking(cpu, task, waker, context),
            Record::Wakeup { waker, task, .. } => self.wakeup(at, waker, task),
            Record::Fork {
                parent,
                child,
                comm,
            } => self.fork(parent, child, comm),
            Record::Exit { task, .. } => {
                self.missing.exits += u64::from(self.began);
                let task = self.tasks.touch(task);
                task.advance(at);
                task.row.flush();
                task.life = Life::Gone(at);
            }
            _ => self.understand(at, record),
        }
    }
}

/// Ends the row of a task when the recording ends.
fn finish(task: &mut Task, from: Instant, end: Instant) {
    task.advance(end);
    task.rests = true;
    if let Life::Running(_) | Life::Runnable = task.life {
        // What it computes is not over: it may take as long as it has wanted a CPU.
        let since = task.wants_since.unwrap_or(from).max(from);
        task.row.unfinished(end.since(since));
        // Nobody repeats without end what takes no time.
        task.rests = !task.row.takes_time();
    }
    task.row.flush();
}
