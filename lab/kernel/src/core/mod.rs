//! The state of the simulated system: everything except the scheduler and the observer.

mod address_spaces;
mod arrivals;
mod cpu;
mod creation;
mod detail;
mod figures;
mod groups;
mod hold;
mod hotplug;
mod interrupt;
mod memory;
mod net;
mod net_rx;
mod operator;
mod quota;
mod recorder;
mod round_trip;
mod semaphore;
mod speed;
mod spinlock;
mod statistic;
mod steal;
mod stream;
mod sync;
mod task;
mod tick;
mod time;

pub(crate) use self::{
    address_spaces::Load, figures::*, groups::*, interrupt::*, operator::*, recorder::*, speed::*,
    steal::*,
};
pub use self::{cpu::*, memory::*, net::*, statistic::*, sync::*, task::*, time::*};

use warmq_machine::{CardModel, CpuPlace, OutOfMemory};
use warmq_trace::Record;
use warmq_units::{Address, Bytes, CpuId, CpuSet, Hertz, Instant, LockId, TaskId};

use crate::words::{
    Ending, LockKind, Misuse, Mm, Nic, Origin, Remote, Rule, Settings, Socket, Stall, Timer, Times,
    Violation,
};

/// What can happen at a point in time.
pub(crate) enum Event {
    /// The current step of `cpu` is complete. Void if `generation` is no longer the CPU's.
    StepDone { cpu: CpuId, generation: u32 },
    /// The CPU's periodic timer.
    Tick(CpuId),
    /// A reschedule interrupt arrives.
    Reschedule { from: CpuId, to: CpuId },
    /// A lock that a callback took by `try_lock` is released.
    Unlock { lock: LockId, cpu: CpuId },
    /// A task's sleep timer expires.
    Timer(Timer),
    /// A timer of the scheduler expires.
    SchedulerTimer(Timer),
    /// A CPU that polls in idle reads `need_resched`.
    IdlePoll(CpuId),
    /// A CPU that halted in idle runs again, as it was interrupted.
    OutOfHalt(CpuId),
    /// A card with a model may have packets to report.
    Card(Nic),
    /// A packet reached a card's ring.
    Packet(Nic, Packet),
    /// An answer to a datagram is back at its sender.
    Answered(Origin),
    /// Bytes reached a remote peer.
    Delivered {
        remote: Remote,
        socket: Socket,
        bytes: u64,
    },
    /// Segments that were received on a socket, and that nobody has read, may now be old enough to
    /// be acknowledged.
    DelayedAcknowledgement(Socket),
    /// A remote peer continues.
    Remote(Remote),
    /// An operator acts.
    Operator(usize),
    /// A CPU performs what operators asked for.
    Changes,
    /// A CPU is taken away.
    Steal(usize),
    /// Look for runnable tasks that never run.
    Watch,
}

impl Event {
    /// True for events that recur regardless of what programs do, or that wake nobody.
    fn is_periodic(&self) -> bool {
        matches!(
            self,
            Event::Tick(_)
                | Event::SchedulerTimer(_)
                | Event::Steal(_)
                | Event::Watch
                | Event::DelayedAcknowledgement(_)
        )
    }
}

/// The state of the simulated system. Schedulers access it through their contexts, workloads
/// through `Boot`; it knows nothing of either.
pub(crate) struct Core {
    // Set when the machine is switched on, and never after.
    pub(crate) hardware: Hardware,
    pub(crate) settings: Settings,
    pub(crate) times: Times,

    timeline: Timeline<Event>,
    /// The number of pending events that are not periodic: when it is 0 and no CPU is busy, nothing
    /// can happen any more.
    pending: u64,
    /// Steps that ended without an event, because nothing else happened meanwhile.
    passed: u64,
    pub(crate) recorder: Recorder,
    ending: Option<Ending>,

    pub(crate) tasks: Vec<TaskStruct>,
    /// Tasks that have not exited; kernel threads do not count.
    awaited: u64,
    address_spaces: u32,
    pub(crate) groups: Groups,
    /// False as long as no task was ever stopped, frozen, made to name data or in a group with a
    /// quota: then nobody need look for that.
    holds: bool,
    /// False as long as no group ever had a quota.
    bandwidth: bool,
    timers: Timers,
    pub(crate) cpus: Vec<Cpu>,
    /// The CPUs that are offline; `None` if there are none.
    offline: Option<CpuSet>,
    /// The `ksoftirqd` of each CPU; empty if the kernel has none.
    ksoftirqds: Vec<TaskId>,
    pub(crate) locks: SpinLocks,

    /// What takes CPUs away.
    stealing: Vec<Stealing>,
    pub(crate) memory: Memory,
    kernel_page: Option<(Address, u64)>,
    /// Set when an allocation of kernel data failed; checked after every callback that may
    /// allocate.
    memory_full: Option<OutOfMemory>,

    pub(crate) net: Net,
    /// The task that stands for remote peers in the records of what they measure, if any does.
    outside: Option<TaskId>,
    pub(crate) operators: Operators,
    pub(crate) sync: SyncState,

    pub(crate) figures: Figures,
}

/// The parts of the machine's description that the core keeps.
pub(crate) struct Hardware {
    pub(crate) clock: Hertz,
    /// Where each CPU sits.
    pub(crate) places: Vec<CpuPlace>,
    /// The memory node of each CPU.
    pub(crate) nodes: Vec<u16>,
    /// The same, or its socket, also where all memory is on one bus.
    pub(crate) sockets_or_nodes: Vec<u16>,
    /// The distances of nodes from one another, by the nodes.
    pub(crate) distances: Vec<Vec<u64>>,
    /// The first of the CPUs that each shares its level-2 cache with.
    pub(crate) clusters: Vec<CpuId>,
    /// The priority of each CPU.
    pub(crate) priorities: Vec<u16>,
    /// The network card, if its model is known.
    pub(crate) card: Option<CardModel>,
    /// Size divided by associativity of the caches of CPU 0, innermost first.
    pub(crate) way_sizes: Vec<u64>,
    pub(crate) speeds: Option<Speeds>,
    /// What kernels know of how fast each CPU works, in 1024ths of the fastest.
    pub(crate) capacities: Vec<u64>,
}

impl Core {
    pub(crate) fn new(
        (hardware, memory): (Hardware, Memory),
        settings: Settings,
        times: Times,
        recorder: Recorder,
    ) -> Core {
        let locks = SpinLocks::new(settings.locks, Vec::new());
        let mut core = Core {
            cpus: hardware.places.iter().map(|_| Cpu::new()).collect(),
            hardware,
            settings,
            times,
            timeline: Timeline::default(),
            pending: 0,
            passed: 0,
            recorder,
            ending: None,
            tasks: Vec::new(),
            awaited: 0,
            address_spaces: 0,
            groups: Groups::new(),
            holds: false,
            bandwidth: false,
            timers: Timers::default(),
            offline: None,
            ksoftirqds: Vec::new(),
            locks,
            stealing: Vec::new(),
            memory,
            kernel_page: None,
            memory_full: None,
            net: Net::default(),
            outside: None,
            operators: Operators::default(),
            sync: SyncState::default(),
            figures: Figures::default(),
        };
        core.make_lock_nodes();
        core
    }

    /// Allocates the lines on which CPUs wait for queued locks, one per CPU.
    fn make_lock_nodes(&mut self) {
        if self.settings.locks == LockKind::Queued {
            let line = Bytes(self.memory.line());
            let nodes = (0..self.cpus.len()).map(|_| self.kernel_data(line));
            let nodes = nodes.collect();
            self.locks = SpinLocks::new(LockKind::Queued, nodes);
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.timeline.now()
    }

    /// A lock as it is taken and released.
    pub(crate) fn word(&mut self, lock: LockId) -> Word<'_> {
        self.locks.word(lock, &mut self.memory)
    }

    #[inline]
    pub(crate) fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        &mut self.cpus[cpu.index()]
    }

    /// The task that runs on `cpu`: system calls come from tasks.
    #[inline]
    pub(crate) fn current(&self, cpu: CpuId) -> TaskId {
        self.cpus[cpu.index()].current.expect("a task runs")
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
        let offline = self.offline.as_ref();
        View { id, task, offline }
    }

    /// `cpu`, or the first online CPU if `cpu` is offline.
    pub(crate) fn online_or_first(&self, cpu: CpuId) -> CpuId {
        if self.cpus[cpu.index()].online {
            return cpu;
        }
        let first = self.cpus.iter().position(|cpu| cpu.online);
        first.map_or(cpu, |index| CpuId(index as u16))
    }

    /// Records that `record` happened now.
    #[inline]
    pub(crate) fn record(&mut self, record: Record) {
        let now = self.now();
        self.recorder.record(now, record);
    }

    /// The run is over.
    pub(crate) fn end(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ending.is_some()
    }

    pub(crate) fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Whether every task has exited that the run waits for.
    #[inline]
    pub(crate) fn work_is_done(&self) -> bool {
        self.awaited == 0
    }

    /// `task` has exited.
    pub(crate) fn task_exited(&mut self, id: TaskId) {
        let task = self.task_mut(id);
        task.state = State::Dead;
        task.program = None;
        self.awaited -= u64::from(self.task(id).awaited);
    }

    /// A new address space.
    pub(crate) fn new_mm(&mut self) -> Mm {
        self.address_spaces += 1;
        Mm(self.address_spaces - 1)
    }

    /// All CPUs, in order.
    pub(crate) fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.cpus.len() as u16).map(CpuId)
    }

    /// Ends the run: `task`, or another one called `comm`, works without end while no time passes.
    pub(crate) fn no_progress(&mut self, task: Option<TaskId>, comm: String) {
        let at = self.now();
        self.end(Ending::Stalled(Stall::NoProgress { task, comm, at }));
    }

    /// The allocation of kernel data that failed, if any did.
    pub(crate) fn memory_full(&self) -> Option<OutOfMemory> {
        self.memory_full
    }

    /// Lets time go on to `until` if nothing happens before. True if it does.
    #[inline]
    pub(crate) fn pass_until(&mut self, until: Instant) -> bool {
        let passes = self.timeline.pass_until(until);
        self.passed += u64::from(passes);
        passes
    }

    /// Steps that ended without an event, because nothing else happened meanwhile.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether more is to happen than can be kept.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.timeline.has_overflowed()
    }

    /// The scheduler broke `rule` on `cpu`: the run is over.
    pub(crate) fn broke(&mut self, cpu: CpuId, rule: Rule) {
        let at = self.now();
        self.end(Ending::SchedulerBroke(Violation { at, cpu, rule }));
    }

    /// No memory is left for what the machine is asked to do: the run is over.
    pub(crate) fn run_out_of_memory(&mut self) {
        self.end(Ending::MemoryFull { at: self.now() });
    }

    /// A program broke a rule: the run is over.
    pub(crate) fn program_broke(&mut self, task: TaskId, misuse: Misuse) {
        self.end(Ending::ProgramBroke {
            task,
            comm: self.task(task).comm.to_string(),
            misuse,
            at: self.now(),
        });
    }

    /// Writes the data of a packet to its socket's buffer by DMA.
    pub(crate) fn receive_by_dma(&mut self, packet: Packet) {
        let (Packet::Data { socket, bytes } | Packet::Datagram { socket, bytes, .. }) = packet
        else {
            return;
        };
        let endpoint = &mut self.net.endpoints[socket];
        let (buffer, first) = (endpoint.buffer, endpoint.arrived);
        endpoint.arrived += bytes.0;
        let now = self.timeline.now();
        self.memory.dma_write(buffer, first, bytes.0, now);
    }

    /// Queues `datagram` at `socket`, or drops it; false if it was dropped.
    pub(crate) fn queue_datagram(
        &mut self,
        cpu: CpuId,
        socket: Socket,
        datagram: Datagram,
    ) -> bool {
        let rule = self.settings.receive_charge;
        let queued = self.net.endpoints[socket].queue_datagram(datagram, rule);
        if !queued {
            self.record_drop(cpu);
        }
        queued
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

    /// True if no event other than periodic ones is pending.
    pub(crate) fn only_periodic_events(&self) -> bool {
        self.pending == 0
    }

    /// Allocates kernel data that is never freed, aligned on a cache line: from the current page
    /// while that has room, or from a block of its own if larger than a page. Sets `memory_full` on
    /// failure.
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

    /// Discards all counts and starts counting anew.
    pub(crate) fn reset_figures(&mut self) {
        let now = self.now();
        self.figures.restart(now);
        self.memory.reset_counts();
        for cpu in self.cpu_ids() {
            self.charge_current(cpu);
            let here = self.cpu(cpu);
            here.spent = Default::default();
            here.spent_before = Default::default();
            here.idle_task = Default::default();
        }
        for task in &mut self.tasks {
            task.cpu_time = Default::default();
            task.sampled = Default::default();
        }
        for endpoint in self.net.endpoints.iter_mut() {
            endpoint.datagrams = Default::default();
        }
    }

    /// Adds what the current task of `cpu` has spent since it was switched in to its CPU time.
    pub(crate) fn charge_current(&mut self, cpu: CpuId) {
        let now = self.now();
        let here = self.cpu(cpu);
        here.charge(now);
        let (current, time) = (here.current, here.of_current());
        here.spent_before = here.spent;
        match current {
            Some(task) => self.task_mut(task).cpu_time += time,
            None => here.idle_task += time,
        }
    }
}
