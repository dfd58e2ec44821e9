//! The state of the simulated system: everything but the scheduler and whoever observes.

use warmq_machine::{CpuPlace, OutOfMemory};
use warmq_trace::Record;
use warmq_units::{Address, Bytes, CpuId, Duration, Hertz, Instant, LockId, TaskId};

use crate::costs::Times;
use crate::cpu::Cpu;
use crate::ending::{Ending, Rule, Violation};
use crate::figures::{RunnableClock, Walks};
use crate::lock::SpinLock;
use crate::memory::Memory;
use crate::network::{Backlog, Card, Endpoint, Packet, RemoteState};
use crate::operation::{Nic, Remote, Socket};
use crate::settings::Settings;
use crate::sync::{ConditionState, MutexState};
use crate::task::{TaskStruct, View};
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
    /// Bytes reached a remote peer.
    Delivered {
        remote: Remote,
        socket: Socket,
        bytes: u64,
    },
    /// A remote peer goes on.
    Remote(Remote),
    /// Look for tasks that are runnable and never run.
    Watch,
}

impl Event {
    /// True for events that recur whatever the programs do.
    fn is_periodic(&self) -> bool {
        matches!(self, Event::Tick(_) | Event::Watch)
    }
}

/// The state of the simulated system. Schedulers reach it through their contexts, workloads through
/// `Boot`; it knows neither of them.
pub(crate) struct Core {
    // Set when the machine is switched on, and never after.
    pub(crate) clock: Hertz,
    pub(crate) settings: Settings,
    pub(crate) times: Times,
    /// Where each CPU sits.
    pub(crate) places: Vec<CpuPlace>,
    /// Size over associativity of the caches of CPU 0, nearest first.
    pub(crate) way_sizes: Vec<u64>,

    pub(crate) timeline: Timeline<Event>,
    /// Events that are pending and not periodic: when there are none and no CPU is busy, nothing
    /// can ever happen.
    pending: u64,
    /// Steps that ended without an event, since nothing else happened meanwhile.
    pub(crate) passed: u64,
    /// What happened since the run loop looked last; stays empty where nobody observes.
    pub(crate) records: Vec<(Instant, Record)>,
    pub(crate) listens: bool,
    pub(crate) ending: Option<Ending>,

    pub(crate) tasks: Vec<TaskStruct>,
    /// Tasks that have not exited; kernel threads do not count.
    pub(crate) alive: u64,
    pub(crate) address_spaces: u32,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) locks: Vec<SpinLock>,

    pub(crate) memory: Memory,
    kernel_page: Option<(Address, u64)>,
    /// Kernel data that found no memory; whoever let a callback ask for it looks here.
    pub(crate) memory_full: Option<OutOfMemory>,

    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) free_endpoints: Vec<Socket>,
    pub(crate) backlogs: Vec<Backlog>,
    pub(crate) cards: Vec<Card>,
    pub(crate) remotes: Vec<RemoteState>,
    pub(crate) mutexes: Vec<MutexState>,
    pub(crate) conditions: Vec<ConditionState>,

    // Figures, from `measured_from` on.
    pub(crate) measured_from: Instant,
    pub(crate) walks: Walks,
    pub(crate) switches: u64,
    pub(crate) migrations: u64,
    pub(crate) runnable: RunnableClock,
}

/// What of the machine's description the core keeps.
pub(crate) struct Hardware {
    pub(crate) clock: Hertz,
    pub(crate) places: Vec<CpuPlace>,
    pub(crate) way_sizes: Vec<u64>,
    pub(crate) memory: Memory,
}

impl Core {
    pub(crate) fn new(hardware: Hardware, settings: Settings, times: Times) -> Core {
        let Hardware {
            clock,
            places,
            way_sizes,
            memory,
        } = hardware;
        Core {
            clock,
            settings,
            times,
            cpus: places.iter().map(|_| Cpu::new()).collect(),
            places,
            way_sizes,
            timeline: Timeline::default(),
            pending: 0,
            passed: 0,
            records: Vec::new(),
            listens: false,
            ending: None,
            tasks: Vec::new(),
            alive: 0,
            address_spaces: 0,
            locks: Vec::new(),
            memory,
            kernel_page: None,
            memory_full: None,
            endpoints: Vec::new(),
            free_endpoints: Vec::new(),
            backlogs: Vec::new(),
            cards: Vec::new(),
            remotes: Vec::new(),
            mutexes: Vec::new(),
            conditions: Vec::new(),
            measured_from: Instant::START,
            walks: Walks::default(),
            switches: 0,
            migrations: 0,
            runnable: RunnableClock::default(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.timeline.now()
    }

    #[inline]
    pub(crate) fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &TaskStruct {
        &self.tasks[task.index()]
    }

    #[inline]
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut TaskStruct {
        &mut self.tasks[task.index()]
    }

    #[inline]
    pub(crate) fn view(&self, id: TaskId) -> View<'_> {
        let task = self.task(id);
        View { id, task }
    }

    /// `record` happened now.
    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        if self.listens {
            let now = self.now();
            self.records.push((now, record));
        }
    }

    /// The scheduler broke `rule` on `cpu`: the run is over.
    pub(crate) fn broke(&mut self, cpu: CpuId, rule: Rule) {
        let at = self.now();
        self.ending = Some(Ending::SchedulerBroke(Violation { at, cpu, rule }));
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, event: Event) {
        if !event.is_periodic() {
            self.pending += 1;
        }
        self.timeline.schedule(at, event);
    }

    /// The next event, unless it lies after `end`.
    #[inline]
    pub(crate) fn next_event(&mut self, end: Instant) -> Option<Event> {
        let event = self.timeline.pop_until(end)?;
        if !event.is_periodic() {
            self.pending -= 1;
        }
        Some(event)
    }

    /// True where no event but periodic ones is pending.
    pub(crate) fn only_periodic_events(&self) -> bool {
        self.pending == 0
    }

    /// Kernel data that is never freed, aligned on a cache line: from the current page while it
    /// lasts, from a block of its own when larger than a page. Where memory is full, `memory_full`
    /// says so.
    pub(crate) fn kernel_data(&mut self, bytes: Bytes) -> Address {
        let (line, page_size) = (self.memory.line(), self.memory.page().0);
        let size = bytes.0.next_multiple_of(line).max(line);
        if let Some((page, used)) = self.kernel_page
            && used + size <= page_size
        {
            self.kernel_page = Some((page, used + size));
            return page + used;
        }
        match self.memory.block(Bytes(size.max(page_size))) {
            Ok(block) if size <= page_size => {
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

    /// From here on nothing is counted that happened before.
    pub(crate) fn reset_figures(&mut self) {
        let now = self.now();
        self.measured_from = now;
        self.walks = Walks::default();
        self.switches = 0;
        self.migrations = 0;
        self.memory.reset_counts();
        self.runnable.reset(now);
        for lock in &mut self.locks {
            lock.reset_figures();
        }
        for cpu in &mut self.cpus {
            cpu.charge(now);
            cpu.spent = Default::default();
        }
    }

    /// The cost of sending a reschedule interrupt.
    pub(crate) fn send_interrupt_cost(&self) -> Duration {
        self.times.reschedule_interrupt
    }
}
