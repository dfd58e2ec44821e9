//! Events of the kernel into records.

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::{Cause, Comm, Interrupt, Policy, Record, State, Table};
use warmq_units::{CpuId, Instant, TaskId};

use crate::event::{Event, Item, Name, Said, Thread, What};
use crate::tasks::{Slot, Tasks, to_comm};

/// [`Interrupt::Line`]s from here on are no lines but vectors of the processor: the one for
/// calls of functions on other CPUs, say, is this + 0xfb on x86.
pub const VECTORS: u16 = 0x8000;

/// The weight of a group of which nobody says it.
const USUAL_WEIGHT: u32 = 100;
/// The priority of nice 0, as the kernel counts.
const NICE_0: i16 = 120;
/// The first priority that is not of a real-time task.
const FIRST_FAIR: i16 = 100;

/// The policy, and the real-time priority, of a task with this priority. Which of the two real-time
/// policies it has is not said.
fn policy_of(priority: i16) -> (Policy, u8) {
    match priority {
        i16::MIN..0 => (Policy::Deadline, 0),
        0..FIRST_FAIR => (Policy::Fifo, (FIRST_FAIR - 1 - priority).clamp(1, 99) as u8),
        _ => (Policy::Other, 0),
    }
}

/// What is known of a task that is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TaskState {
    #[default]
    Unknown,
    Running(CpuId),
    /// It waits for a CPU, and was last in the queue of this one.
    Runnable(CpuId),
    Asleep,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    state: TaskState,
    /// The CPU that is about to wake it.
    waker: Option<CpuId>,
    /// The CPU that it last ran or waited on, where nobody records that tasks change it.
    last: Option<CpuId>,
    /// Its priority, as an event last had it.
    priority: Option<i16>,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// The task that runs (`Some(None)` is the idle task), if known.
    current: Option<Option<Slot>>,
    /// The interrupts that it is serving, outermost first.
    open: Vec<Interrupt>,
    /// The thread that runs by the next event here, though no switch says so.
    expects: Option<u32>,
}

/// What a recording knows beside its events.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The process of each thread.
    pub processes: BTreeMap<u32, u32>,
    /// The interrupt lines of network cards.
    pub network_lines: Vec<u32>,
    /// Whether nothing but events says what tasks are like and where they are.
    pub events_only: bool,
}

/// Which kinds of events there were so far. What a recording never has is made of what it has.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    wakings: bool,
    /// Of tasks that are not new.
    wakeups: bool,
    migrations: bool,
}

/// The machine as its events show it, which turns them into records.
///
/// Events before the start only change its state. Records of that state come first.
#[derive(Default)]
pub struct Replay {
    known: Known,
    tasks: Tasks,
    seen: Seen,
    // Entry i is that of slot i; shorter where tasks were only just met.
    states: Vec<Task>,
    cpus: Table<CpuId, Cpu>,
    // The CPU that expects each thread.
    expected: BTreeMap<u32, CpuId>,
    start_ns: u64,
    started: bool,
    out: VecDeque<(Instant, Record)>,
}

impl Replay {
    /// A machine of which nothing is known yet; time 0 of the records is `start_ns`.
    pub fn new(known: Known, tasks: Tasks, start_ns: u64) -> Replay {
        Replay {
            known,
            tasks,
            start_ns,
            ..Replay::default()
        }
    }

    /// The records so far, the first one first; whoever takes them keeps the memory small.
    pub fn records(&mut self) -> &mut VecDeque<(Instant, Record)> {
        &mut self.out
    }

    /// The tasks that were met.
    pub fn into_tasks(self) -> Tasks {
        self.tasks
    }

    /// Takes in what a recording says.
    #[inline]
    pub fn take(&mut self, said: &Said) {
        match said.item {
            Item::Event(event) => self.see(said.ns, said.cpu, &event),
            Item::Lost(events) => self.lost(said.ns, said.cpu, events),
            Item::Runs(tid) => self.runs(said.ns, said.cpu, tid),
        }
    }

    /// Takes in `event`, which happened on `cpu` at `ns` of the recording's clock.
    fn see(&mut self, ns: u64, cpu: CpuId, event: &Event) {
        let at = self.at(ns);
        if let Some(tid) = self.cpus.touch(cpu).expects {
            self.arrives(at, cpu, tid);
        }
        match event.what {
            What::Switch { prev, state, next } => self.switch(at, cpu, prev, state, next),
            What::Waking(thread) => self.waking(at, cpu, event, thread),
            What::Wakeup {
                thread,
                target,
                first,
            } => {
                self.seen.wakeups |= !first;
                if event.lacks_context() && !self.seen.wakings {
                    // Otherwise whoever runs here would count as who woke it.
                    self.is_waking(at, cpu, event, thread);
                }
                self.wakeup(at, cpu, thread, CpuId(target));
            }
            What::Migrate { thread, from, to } => self.migrate(at, thread, CpuId(from), CpuId(to)),
            What::Process { thread, tgid } => self.is_of(at, thread, tgid),
            What::Grouped { tid, group } => self.grouped(at, tid, group),
            What::Group {
                group,
                parent,
                name,
            } => {
                let (weight, name) = (USUAL_WEIGHT, to_comm(name));
                let record = Record::Cgroup {
                    group,
                    parent,
                    weight,
                    name,
                };
                self.hand_out(at, record);
            }
            What::Other(_) => {}
            What::Fork { parent, child } => self.fork(at, parent, child),
            What::Exec { tid, old } => self.exec(at, cpu, tid, old),
            What::Renamed(thread) => self.renamed(at, thread),
            What::Enter(interrupt) => {
                let interrupt = self.named(interrupt);
                self.cpus.touch(cpu).open.push(interrupt);
                self.hand_out(at, Record::InterruptEnter { cpu, interrupt });
            }
            What::Leave(interrupt) => {
                let interrupt = self.named(interrupt);
                self.cpus.touch(cpu).open.pop();
                self.hand_out(at, Record::InterruptExit { cpu, interrupt });
            }
            What::RescheduleSent { to } => {
                let to = CpuId(to);
                self.hand_out(at, Record::RescheduleSent { from: cpu, to });
            }
            What::Idle(state) => self.hand_out(at, Record::Idle { cpu, state }),
            What::Poll { packets, budget } => self.hand_out(
                at,
                Record::Poll {
                    cpu,
                    packets,
                    budget,
                },
            ),
            What::Packet { bytes } => self.hand_out(at, Record::Packet { cpu, bytes }),
            What::Drop { reason } => self.hand_out(at, Record::Drop { cpu, reason }),
        }
    }

    /// From about `ns` on `cpu` runs `tid`, though no switch said so: from its wakeup on, if it
    /// sleeps or is not known yet, from when it leaves the CPU that it runs on, and by the next
    /// event of `cpu` at the latest.
    fn runs(&mut self, ns: u64, cpu: CpuId, tid: u32) {
        let at = self.at(ns);
        let free = match self.tasks.alive(tid) {
            Some(slot) => match self.task(slot).state {
                TaskState::Asleep => false,
                TaskState::Running(on) => on == cpu,
                TaskState::Unknown | TaskState::Runnable(_) => true,
            },
            None => tid == 0,
        };
        match free {
            true => self.arrives(at, cpu, tid),
            false => {
                self.cpus.touch(cpu).expects = Some(tid);
                self.expected.insert(tid, cpu);
            }
        }
    }

    /// Events of `cpu` are missing from `ns` on: whoever ran there, waited or slept may do
    /// something else now. Who runs on another CPU still does.
    pub fn lost(&mut self, ns: u64, cpu: CpuId, events: u64) {
        let at = self.at(ns);
        *self.cpus.touch(cpu) = Cpu::default();
        self.expected.retain(|_, on| *on != cpu);
        for task in &mut self.states {
            let state = match task.state {
                TaskState::Running(on) if on != cpu => task.state,
                _ => TaskState::Unknown,
            };
            *task = Task {
                state,
                waker: None,
                ..*task
            };
        }
        self.hand_out(at, Record::Lost { cpu, events });
    }

    /// Hands out a record of the recorder itself.
    pub fn add(&mut self, ns: u64, record: Record) {
        let at = self.at(ns);
        self.hand_out(at, record);
    }

    /// Nothing follows that was before `ns`: from the start on, records are handed out.
    pub fn reach(&mut self, ns: u64) {
        if !self.started && ns >= self.start_ns {
            self.started = true;
            self.hand_out_state();
        }
    }

    fn at(&mut self, ns: u64) -> Instant {
        self.tasks.reach(ns);
        self.reach(ns);
        let since = ns.saturating_sub(self.start_ns);
        Instant(since.saturating_mul(1_000))
    }

    fn hand_out(&mut self, at: Instant, record: Record) {
        if self.started {
            self.out.push_back((at, record));
        }
    }

    /// The state at the start: who runs, who waits, and the interrupts that are being served.
    fn hand_out_state(&mut self) {
        let at = Instant::START;
        let cpus = self.cpus.iter().map(|(cpu, state)| (cpu, state.clone()));
        let cpus: Vec<(CpuId, Cpu)> = cpus.collect();
        for (cpu, state) in &cpus {
            if let Some(current) = state.current {
                let next = current.map(|slot| self.introduce(at, slot));
                let (cpu, prev, prev_runnable) = (*cpu, None, false);
                let switch = Record::Switch {
                    cpu,
                    prev,
                    prev_runnable,
                    next,
                };
                self.hand_out(at, switch);
            }
        }
        for slot in 0..self.states.len() {
            if let TaskState::Runnable(target) = self.states[slot].state {
                let (task, waker) = (self.introduce(at, slot), target);
                self.hand_out(
                    at,
                    Record::Wakeup {
                        waker,
                        task,
                        target,
                    },
                );
            }
        }
        for (cpu, state) in cpus {
            for interrupt in state.open {
                self.hand_out(at, Record::InterruptEnter { cpu, interrupt });
            }
        }
    }

    /// The task of a thread; `None` for the idle task.
    fn meet(&mut self, at: Instant, thread: Thread) -> Option<(Slot, TaskId)> {
        if thread.tid == 0 {
            return None;
        }
        let slot = self.tasks.meet(thread.tid, thread.comm);
        let task = self.introduce(at, slot);
        if let Some(priority) = thread.priority
            && self.known.events_only
        {
            self.has_priority(at, slot, priority);
        }
        Some((slot, task))
    }

    /// `slot` has this priority from now on. One that never had another than nice 0 needs no record
    /// of it.
    fn has_priority(&mut self, at: Instant, slot: Slot, priority: i16) {
        let before = self.task(slot).priority.replace(priority);
        let before = before.unwrap_or(NICE_0);
        if before == priority {
            return;
        }
        let task = self.tasks.entry(slot).id;
        let (policy, real_time) = policy_of(priority);
        if (policy, real_time) != policy_of(before) {
            let priority = real_time;
            let record = Record::Policy {
                task,
                policy,
                priority,
            };
            self.hand_out(at, record);
        }
        if policy == Policy::Other {
            let nice = (priority - NICE_0).clamp(-20, 19) as i8;
            self.hand_out(at, Record::Nice { task, nice });
        }
    }

    /// A thread is of a process, as somebody knows who is no event.
    fn is_of(&mut self, at: Instant, thread: Thread, tgid: u32) {
        self.known.processes.insert(thread.tid, tgid);
        let Some((slot, _)) = self.meet(at, thread) else {
            return;
        };
        let entry = self.tasks.entry(slot);
        if entry.introduced && self.started {
            let (task, tid) = (entry.id, entry.tid);
            self.hand_out_ids(at, task, tid);
        }
    }

    fn grouped(&mut self, at: Instant, tid: u32, group: u32) {
        if let Some((_, task)) = self.meet(at, Thread::of(tid)) {
            self.hand_out(at, Record::Group { task, group });
        }
    }

    /// `slot` runs or waits on `cpu` from now on. Where nobody records that tasks change their CPU,
    /// this says so.
    fn is_on(&mut self, at: Instant, slot: Slot, cpu: CpuId) {
        let before = self.task(slot).last.replace(cpu);
        if let Some(from) = before
            && from != cpu
            && !self.seen.migrations
            && self.known.events_only
        {
            let (task, to) = (self.tasks.entry(slot).id, cpu);
            self.hand_out(at, Record::Migrate { task, from, to });
        }
    }

    /// Says who the task is, unless that was said before. The name of a task that was only met as a
    /// waker is not known yet.
    fn introduce(&mut self, at: Instant, slot: Slot) -> TaskId {
        let entry = self.tasks.entry(slot);
        let (task, tid, comm) = (entry.id, entry.tid, entry.comm);
        if !self.started || (entry.introduced && entry.named) {
            return task;
        }
        let introduces = !std::mem::replace(&mut entry.introduced, true);
        let names = !entry.named && comm != Comm::default();
        entry.named |= names;
        if introduces {
            self.hand_out_ids(at, task, tid);
        }
        if names {
            self.hand_out(at, Record::Renamed { task, comm });
        }
        task
    }

    fn hand_out_ids(&mut self, at: Instant, task: TaskId, tid: u32) {
        let tgid = self.known.processes.get(&tid).copied().unwrap_or(0);
        self.hand_out(at, Record::Ids { task, tid, tgid });
    }

    fn task(&mut self, slot: Slot) -> &mut Task {
        if slot >= self.states.len() {
            self.states.resize(slot + 1, Task::default());
        }
        &mut self.states[slot]
    }

    fn switch(&mut self, at: Instant, cpu: CpuId, prev: Thread, state: State, next: Thread) {
        let prev = self.meet(at, prev);
        let next = self.meet(at, next);
        if let Some((slot, task)) = prev {
            self.leaves(at, cpu, slot, task, state);
        }
        if let Some((slot, task)) = next {
            self.switches_in(at, cpu, slot, task);
        }
        self.cpus.touch(cpu).current = Some(next.map(|(slot, _)| slot));
        let id = |(_, task)| task;
        let record = Record::Switch {
            cpu,
            prev: prev.map(id),
            prev_runnable: prev.is_some() && state == State::Runnable,
            next: next.map(id),
        };
        self.hand_out(at, record);
        if let Some((slot, _)) = prev
            && state == State::Runnable
        {
            let tid = self.tasks.entry(slot).tid;
            self.may_run(at, tid);
        }
    }

    /// `tid` is free to run from now on, and may be expected somewhere.
    fn may_run(&mut self, at: Instant, tid: u32) {
        if let Some(cpu) = self.expected.get(&tid).copied() {
            self.arrives(at, cpu, tid);
        }
    }

    /// `cpu` runs this thread from `at` on; the event that said so is missing.
    fn arrives(&mut self, at: Instant, cpu: CpuId, tid: u32) {
        self.expected.remove(&tid);
        let next = self.meet(at, Thread::of(tid));
        let state = self.cpus.touch(cpu);
        state.expects = None;
        let prev = state.current.replace(next.map(|(slot, _)| slot)).flatten();
        if let Some(slot) = prev {
            // Nobody knows whether it sleeps.
            self.task(slot).state = TaskState::Unknown;
        }
        if let Some((slot, task)) = next {
            self.switches_in(at, cpu, slot, task);
        }
        let record = Record::Switch {
            cpu,
            prev: prev.map(|slot| self.introduce(at, slot)),
            prev_runnable: prev.is_some(),
            next: next.map(|(_, task)| task),
        };
        self.hand_out(at, Record::Lost { cpu, events: 1 });
        self.hand_out(at, record);
    }

    /// A task is about to run on `cpu`. It was woken before, and left the CPU that it ran on: if
    /// not, the event that said so is missing.
    fn switches_in(&mut self, at: Instant, cpu: CpuId, slot: Slot, task: TaskId) {
        match self.task(slot).state {
            TaskState::Asleep => {
                let waker = self.task(slot).waker.take().unwrap_or(cpu);
                if !self.known.events_only || self.seen.wakeups || self.seen.wakings {
                    self.hand_out(at, Record::Lost { cpu, events: 1 });
                }
                self.hand_out(
                    at,
                    Record::Wakeup {
                        waker,
                        task,
                        target: cpu,
                    },
                );
            }
            TaskState::Running(on) if on != cpu => self.switches_out_unseen(at, on, task),
            TaskState::Running(_) | TaskState::Runnable(_) | TaskState::Unknown => {}
        }
        self.is_on(at, slot, cpu);
        self.task(slot).state = TaskState::Running(cpu);
    }

    /// `task` no longer runs on `cpu`, where nobody knows who does.
    fn switches_out_unseen(&mut self, at: Instant, cpu: CpuId, task: TaskId) {
        self.cpus.touch(cpu).current = None;
        self.hand_out(at, Record::Lost { cpu, events: 1 });
        self.hand_out(
            at,
            Record::Switch {
                cpu,
                prev: Some(task),
                prev_runnable: true,
                next: None,
            },
        );
    }

    /// `task` is about to leave its CPU in `state`.
    fn leaves(&mut self, at: Instant, cpu: CpuId, slot: Slot, task: TaskId, state: State) {
        self.task(slot).state = match state {
            State::Runnable => TaskState::Runnable(cpu),
            State::Dead => TaskState::Unknown,
            _ => TaskState::Asleep,
        };
        match state {
            State::Runnable => {}
            State::Dead => {
                self.tasks.entry(slot).gone = true;
                self.hand_out(at, Record::Exit { cpu, task });
            }
            _ => self.hand_out(
                at,
                Record::Block {
                    cpu,
                    task,
                    cause: Cause::Unknown,
                    state,
                    object: None,
                },
            ),
        }
    }

    fn waking(&mut self, at: Instant, cpu: CpuId, event: &Event, thread: Thread) {
        let Some(slot) = self.is_waking(at, cpu, event, thread) else {
            return;
        };
        self.seen.wakings = true;
        self.task(slot).waker = Some(cpu);
        if !self.seen.wakeups && self.known.events_only {
            // Nobody records more of it.
            let target = self.task(slot).last.unwrap_or(cpu);
            self.wakeup(at, cpu, thread, target);
        }
    }

    /// Says who wakes a thread, as far as that is known.
    fn is_waking(
        &mut self,
        at: Instant,
        cpu: CpuId,
        event: &Event,
        thread: Thread,
    ) -> Option<Slot> {
        let (slot, task) = self.meet(at, thread)?;
        let waker = match event.tid {
            _ if event.lacks_context() => None,
            Some(tid) => self.meet(at, Thread::of(tid)).map(|(_, task)| task),
            None => self.runs_on(at, cpu),
        };
        let record = Record::Waking {
            cpu,
            waker,
            task,
            context: event.context,
            // No tracepoint says so.
            synchronous: false,
        };
        self.hand_out(at, record);
        Some(slot)
    }

    /// The task that runs on `cpu`, as far as known.
    fn runs_on(&mut self, at: Instant, cpu: CpuId) -> Option<TaskId> {
        let slot = self.cpus.touch(cpu).current.flatten()?;
        Some(self.introduce(at, slot))
    }

    /// A task that never stopped being runnable does not become so: it was about to sleep, and was
    /// woken before it left its CPU.
    fn wakeup(&mut self, at: Instant, cpu: CpuId, thread: Thread, target: CpuId) {
        let Some((slot, task)) = self.meet(at, thread) else {
            return;
        };
        let state = self.task(slot);
        // The event may be of the CPU that it will run on, which another CPU asked to wake it.
        let waker = state.waker.take().unwrap_or(cpu);
        if let TaskState::Running(_) | TaskState::Runnable(_) = state.state {
            return;
        }
        state.state = TaskState::Runnable(target);
        self.is_on(at, slot, target);
        self.hand_out(
            at,
            Record::Wakeup {
                waker,
                task,
                target,
            },
        );
        self.may_run(at, thread.tid);
    }

    fn migrate(&mut self, at: Instant, thread: Thread, from: CpuId, to: CpuId) {
        self.seen.migrations = true;
        let Some((slot, task)) = self.meet(at, thread) else {
            return;
        };
        let state = self.task(slot);
        state.last = Some(to);
        if let TaskState::Runnable(on) = &mut state.state {
            *on = to;
        }
        self.hand_out(at, Record::Migrate { task, from, to });
    }

    fn fork(&mut self, at: Instant, parent: Thread, child: Thread) {
        if child.tid == 0 {
            return;
        }
        let parent = self.meet(at, parent).map(|(_, task)| task);
        let slot = self.tasks.born(child.tid, child.comm);
        *self.task(slot) = Task {
            state: TaskState::Asleep,
            ..Task::default()
        };
        let entry = self.tasks.entry(slot);
        let (child, tid, comm) = (entry.id, entry.tid, entry.comm);
        if self.started && !entry.introduced {
            (entry.introduced, entry.named) = (true, true);
            self.hand_out(
                at,
                Record::Fork {
                    parent,
                    child,
                    comm,
                },
            );
            self.hand_out_ids(at, child, tid);
        }
    }

    /// A thread that executes a program becomes the leader of its process, and takes its id.
    fn exec(&mut self, at: Instant, cpu: CpuId, tid: u32, old: u32) {
        if tid == old || tid == 0 || old == 0 {
            return;
        }
        let slot = self.tasks.meet(old, Name::default());
        self.tasks.takes(slot, tid);
        self.cpus.touch(cpu).current = Some(Some(slot));
        let entry = self.tasks.entry(slot);
        let (task, said) = (entry.id, entry.introduced);
        if said {
            self.hand_out(
                at,
                Record::Ids {
                    task,
                    tid,
                    tgid: tid,
                },
            );
        }
    }

    fn renamed(&mut self, at: Instant, thread: Thread) {
        if thread.tid == 0 {
            return;
        }
        let slot = self.tasks.meet(thread.tid, Name::default());
        let comm = to_comm(thread.comm);
        let entry = self.tasks.entry(slot);
        entry.comm = comm;
        let (task, named) = (entry.id, entry.named);
        match named {
            true => self.hand_out(at, Record::Renamed { task, comm }),
            false => drop(self.introduce(at, slot)),
        }
    }

    fn named(&self, interrupt: Interrupt) -> Interrupt {
        match interrupt {
            Interrupt::Line(line) if self.known.network_lines.contains(&line.into()) => {
                Interrupt::Network
            }
            other => other,
        }
    }
}
