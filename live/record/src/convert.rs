//! Events of the kernel into records.

use std::collections::HashMap;

use warmq_trace::{Cause, Comm, Interrupt, Record, State, Table};
use warmq_units::{CpuId, Instant, TaskId};

use crate::decode::{Event, Thread, What};
use crate::tasks::{Slot, Tasks, to_comm};

/// [`Interrupt::Line`]s from here on are no lines but vectors of the processor: the one for
/// calls of functions on other CPUs, say, is this + 0xfb on x86.
pub const VECTORS: u16 = 0x8000;

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
pub(crate) struct Known<'a> {
    /// The process of each thread.
    pub processes: &'a HashMap<u32, u32>,
    /// The interrupt lines of network cards.
    pub network_lines: &'a [u16],
}

/// The machine as its events show it, which turns them into records.
///
/// Events before the start only change its state. Records of that state come first.
pub(crate) struct Replay<'a> {
    known: Known<'a>,
    tasks: &'a mut Tasks,
    // Entry i is that of slot i; shorter where tasks were only just met.
    states: Vec<Task>,
    cpus: Table<CpuId, Cpu>,
    // The CPU that expects each thread.
    expected: HashMap<u32, CpuId>,
    start_ns: u64,
    started: bool,
    out: &'a mut dyn FnMut(Instant, Record),
}

impl<'a> Replay<'a> {
    /// A machine of which nothing is known yet.
    pub fn new(
        known: Known<'a>,
        tasks: &'a mut Tasks,
        start_ns: u64,
        out: &'a mut dyn FnMut(Instant, Record),
    ) -> Replay<'a> {
        Replay {
            known,
            tasks,
            states: Vec::new(),
            cpus: Table::default(),
            expected: HashMap::new(),
            start_ns,
            started: false,
            out,
        }
    }

    /// Takes in `event`, which happened on `cpu` at `ns` of the monotonic clock.
    pub fn see(&mut self, ns: u64, cpu: CpuId, event: &Event<'_>) {
        let at = self.at(ns);
        if let Some(tid) = self.cpus.touch(cpu).expects {
            self.arrives(at, cpu, tid);
        }
        match event.what {
            What::Switch { prev, state, next } => self.switch(at, cpu, prev, state, next),
            What::Waking(thread) => self.waking(at, cpu, event, thread),
            What::Wakeup { thread, target } => self.wakeup(at, cpu, thread, CpuId(target)),
            What::Migrate { thread, from, to } => self.migrate(at, thread, CpuId(from), CpuId(to)),
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
    pub fn runs(&mut self, ns: u64, cpu: CpuId, tid: u32) {
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
            *task = Task { state, waker: None };
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
        self.reach(ns);
        let since = ns.saturating_sub(self.start_ns);
        Instant(since.saturating_mul(1_000))
    }

    fn hand_out(&mut self, at: Instant, record: Record) {
        if self.started {
            (self.out)(at, record);
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
    fn meet(&mut self, at: Instant, thread: Thread<'_>) -> Option<(Slot, TaskId)> {
        if thread.tid == 0 {
            return None;
        }
        let slot = self.tasks.meet(thread.tid, thread.comm);
        Some((slot, self.introduce(at, slot)))
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

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Thread<'_>,
        state: State,
        next: Thread<'_>,
    ) {
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
        let next = self.meet(at, Thread { tid, comm: &[] });
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
                self.hand_out(at, Record::Lost { cpu, events: 1 });
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

    fn waking(&mut self, at: Instant, cpu: CpuId, event: &Event<'_>, thread: Thread<'_>) {
        let Some((slot, task)) = self.meet(at, thread) else {
            return;
        };
        self.task(slot).waker = Some(cpu);
        let waker = Thread {
            tid: event.tid,
            comm: &[],
        };
        let record = Record::Waking {
            cpu,
            waker: self.meet(at, waker).map(|(_, task)| task),
            task,
            context: event.context,
            // No tracepoint says so.
            synchronous: false,
        };
        self.hand_out(at, record);
    }

    /// A task that never stopped being runnable does not become so: it was about to sleep, and was
    /// woken before it left its CPU.
    fn wakeup(&mut self, at: Instant, cpu: CpuId, thread: Thread<'_>, target: CpuId) {
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

    fn migrate(&mut self, at: Instant, thread: Thread<'_>, from: CpuId, to: CpuId) {
        let Some((slot, task)) = self.meet(at, thread) else {
            return;
        };
        if let TaskState::Runnable(on) = &mut self.task(slot).state {
            *on = to;
        }
        self.hand_out(at, Record::Migrate { task, from, to });
    }

    fn fork(&mut self, at: Instant, parent: Thread<'_>, child: Thread<'_>) {
        if child.tid == 0 {
            return;
        }
        let parent = self.meet(at, parent).map(|(_, task)| task);
        let slot = self.tasks.born(child.tid, child.comm);
        *self.task(slot) = Task {
            state: TaskState::Asleep,
            waker: None,
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
        let slot = self.tasks.meet(old, &[]);
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

    fn renamed(&mut self, at: Instant, thread: Thread<'_>) {
        if thread.tid == 0 {
            return;
        }
        let slot = self.tasks.meet(thread.tid, &[]);
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
            Interrupt::Line(line) if self.known.network_lines.contains(&line) => Interrupt::Network,
            other => other,
        }
    }
}
