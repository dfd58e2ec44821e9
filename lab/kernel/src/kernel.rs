//! The kernel: its state, its run loop, and what a run leaves behind.

use warmq_machine::{CpuPlace, OutOfMemory};
use warmq_trace::{Observer, Record};
use warmq_units::{Address, Bytes, CpuId, Duration, Hertz, Instant, LockId, TaskId};

use crate::boot::Settings;
use crate::costs::Times;
use crate::cpu::{Cpu, PendingInterrupt};
use crate::ending::{Ending, Rule, Stall, Violation};
use crate::figures::Walks;
use crate::lock::SpinLock;
use crate::memory::Memory;
use crate::network::{Backlog, Card, Endpoint, OutsideLife, Packet};
use crate::operation::{Nic, Outside, Socket};
use crate::scheduler::Scheduler;
use crate::step::Mode;
use crate::sync::{ConditionState, MutexState};
use crate::task::Life;
use crate::timeline::Timeline;

/// What can happen at a point of time.
pub(crate) enum Event {
    /// The step that `cpu` was busy with is over, unless its generation is.
    StepDone { cpu: CpuId, generation: u32 },
    /// The CPU's periodic timer.
    Tick(CpuId),
    /// A reschedule interrupt arrives.
    Reschedule { from: CpuId, to: CpuId },
    /// A lock that a callback tried is given back.
    Unlock { lock: LockId, cpu: CpuId },
    /// A sleep is over.
    Timer(TaskId),
    /// A packet reached a card's ring.
    Packet(Nic, Packet),
    /// Bytes reached somebody outside.
    Delivered {
        outside: Outside,
        socket: Socket,
        bytes: u64,
    },
    /// Somebody outside goes on.
    Outside(Outside),
    /// Look for tasks that are runnable and never run.
    Watch,
}

impl Event {
    /// True for events that recur whatever the programs do.
    fn is_periodic(&self) -> bool {
        matches!(self, Event::Tick(_) | Event::Watch)
    }
}

/// What schedulers may reach through their contexts: everything but the scheduler itself.
pub(crate) struct Core {
    pub(crate) clock: Hertz,
    pub(crate) timeline: Timeline<Event>,
    pub(crate) lives: Vec<Life>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) locks: Vec<SpinLock>,
    pub(crate) memory: Memory,
    pub(crate) walks: Walks,
    pub(crate) switches: u64,
    pub(crate) migrations: u64,
    pub(crate) send_interrupt_cost: Duration,
    /// Events that are pending and not periodic: when there are none and no CPU is busy, nothing
    /// can ever happen.
    pending: u64,
    /// Where each CPU sits.
    pub(crate) places: Vec<CpuPlace>,
    /// Size over associativity of the caches of CPU 0, nearest first.
    pub(crate) way_sizes: Vec<u64>,
    kernel_page: Option<(Address, u64)>,
    page: u64,
    /// Kernel data that found no memory; whoever let a callback ask for it looks here.
    pub(crate) memory_full: Option<OutOfMemory>,
}

impl Core {
    pub(crate) fn new(clock: Hertz, cpus: u16, memory: Memory, page: Bytes) -> Core {
        Core {
            clock,
            timeline: Timeline::default(),
            lives: Vec::new(),
            cpus: (0..cpus).map(|_| Cpu::new()).collect(),
            locks: Vec::new(),
            memory,
            walks: Walks::default(),
            switches: 0,
            migrations: 0,
            send_interrupt_cost: Duration::ZERO,
            pending: 0,
            places: Vec::new(),
            way_sizes: Vec::new(),
            kernel_page: None,
            page: page.0,
            memory_full: None,
        }
    }

    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        if !event.is_periodic() {
            self.pending += 1;
        }
        self.timeline.schedule(at, event);
    }

    fn next_event(&mut self, end: Instant) -> Option<Event> {
        let event = self.timeline.pop_until(end)?;
        if !event.is_periodic() {
            self.pending -= 1;
        }
        Some(event)
    }

    /// Kernel data that is never freed, aligned on a cache line: from the current page while it
    /// lasts, from a block of its own when larger than a page. Where memory is full, `memory_full`
    /// says so.
    pub(crate) fn kernel_data(&mut self, bytes: Bytes) -> Address {
        let size = bytes
            .0
            .next_multiple_of(self.memory.line())
            .max(self.memory.line());
        if let Some((page, used)) = self.kernel_page
            && used + size <= self.page
        {
            self.kernel_page = Some((page, used + size));
            return page + used;
        }
        match self.memory.block(Bytes(size.max(self.page))) {
            Ok(block) if size <= self.page => {
                self.kernel_page = Some((block, size));
                block
            }
            Ok(block) => block,
            Err(full) => {
                self.memory_full = Some(full);
                Address(0)
            }
        }
    }
}

/// A simulated machine with its kernel, its scheduler and its workload.
pub struct Kernel<O: Observer> {
    pub(crate) core: Core,
    pub(crate) scheduler: Box<dyn Scheduler>,
    pub(crate) observer: O,
    pub(crate) settings: Settings,
    pub(crate) times: Times,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) free_endpoints: Vec<Socket>,
    pub(crate) backlogs: Vec<Backlog>,
    pub(crate) cards: Vec<Card>,
    pub(crate) outsides: Vec<OutsideLife>,
    pub(crate) mutexes: Vec<MutexState>,
    pub(crate) conditions: Vec<ConditionState>,
    pub(crate) mms: u32,
    pub(crate) ending: Option<Ending>,
    pub(crate) alive: u64,
    pub(crate) measured_from: Instant,
    pub(crate) events: u64,
    pub(crate) runnable: crate::figures::RunnableClock,
}

impl<O: Observer> Kernel<O> {
    /// Simulated time.
    pub fn now(&self) -> Instant {
        self.core.timeline.now()
    }

    /// Who watched.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who watched, for good.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    pub(crate) fn record(&mut self, at: Instant, record: Record) {
        if O::LISTENS {
            self.observer.see(at, &record);
        }
    }

    pub(crate) fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.core.cpus[cpu.index()]
    }

    /// Lets time run until `end`, or until nothing can go on. Called again after
    /// [`Ending::TimeUp`], it goes on; any other ending stays.
    pub fn run_until(&mut self, end: Instant) -> Ending {
        if self.alive == 0 && self.ending.is_none() {
            self.ending = Some(Ending::WorkDone);
        }
        while self.ending.is_none() {
            let Some(event) = self.core.next_event(end) else {
                break;
            };
            self.events += 1;
            self.handle(event);
            if self.alive == 0 && self.ending.is_none() {
                self.ending = Some(Ending::WorkDone);
            }
        }
        let now = self.now();
        for cpu in &mut self.core.cpus {
            cpu.charge(now);
        }
        self.ending.clone().unwrap_or(Ending::TimeUp)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::StepDone { cpu, generation } => {
                if self.cpu(cpu).generation == generation {
                    self.advance(cpu);
                }
            }
            Event::Tick(cpu) => self.tick(cpu),
            Event::Reschedule { from, to } => {
                self.record(self.now(), Record::RescheduleSent { from, to });
                self.interrupt(to, PendingInterrupt::Reschedule);
            }
            Event::Unlock { lock, cpu } => self.release(lock, cpu),
            Event::Timer(task) => {
                let cpu = self.core.lives[task.index()].last_cpu;
                self.interrupt(cpu, PendingInterrupt::Timer(task));
            }
            Event::Packet(nic, packet) => self.packet_arrived(nic, packet),
            Event::Delivered {
                outside,
                socket,
                bytes,
            } => self.delivered(outside, socket, bytes),
            Event::Outside(outside) => self.resume_outside(outside, 0),
            Event::Watch => self.watch(),
        }
    }

    fn tick(&mut self, cpu: CpuId) {
        let next = self.now() + self.settings.tick;
        self.cpu(cpu).next_tick = next;
        self.core.schedule(next, Event::Tick(cpu));
        if self.nothing_can_happen() {
            self.ending = Some(Ending::Stalled(self.who_waits()));
            return;
        }
        self.interrupt(cpu, PendingInterrupt::Tick);
    }

    fn nothing_can_happen(&self) -> bool {
        let at_rest = |cpu: &Cpu| cpu.activity.mode == Mode::Idle && cpu.interrupts.is_empty();
        self.core.pending == 0
            && self.core.cpus.iter().all(at_rest)
            && !self.core.lives.iter().any(Life::is_runnable)
    }

    fn who_waits(&self) -> Stall {
        const SHOWN: usize = 5;
        let mut waiting = self
            .core
            .lives
            .iter()
            .enumerate()
            .filter_map(|(index, life)| {
                let crate::task::State::Sleeping(waiting) = life.state else {
                    return None;
                };
                Some((TaskId(index as u32), life.comm.as_str().to_owned(), waiting))
            });
        let who: Vec<_> = waiting.by_ref().take(SHOWN).collect();
        let tasks = who.len() + waiting.count();
        Stall::WaitsForEver {
            who,
            tasks,
            at: self.now(),
        }
    }

    /// Looks for a task that has been runnable, and not running, for longer than the settings'
    /// patience.
    fn watch(&mut self) {
        let now = self.now();
        let patience = self.settings.patience;
        self.core.schedule(now + patience / 4, Event::Watch);
        let starved = self.core.lives.iter().enumerate().find(|(_, life)| {
            life.is_runnable() && life.on_cpu.is_none() && now.since(life.runnable_since) > patience
        });
        if let Some((index, life)) = starved {
            self.ending = Some(Ending::Stalled(Stall::NeverRan {
                task: TaskId(index as u32),
                comm: life.comm.as_str().to_owned(),
                since: life.runnable_since,
                waited: now - life.runnable_since,
            }));
        }
    }

    pub(crate) fn broke(&mut self, cpu: CpuId, rule: Rule) {
        let at = self.now();
        self.ending = Some(Ending::SchedulerBroke(Violation { at, cpu, rule }));
    }
}
