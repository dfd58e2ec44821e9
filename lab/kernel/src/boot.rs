//! Switching a machine on: settings, the workload's first tasks, sockets and memory.

use std::fmt;

use warmq_machine::{Fragmentation, MachineDescription, OutOfMemory, PhysicalMemory};
use warmq_machine::{Hierarchy, Options};
use warmq_trace::{Observer, Record};
use warmq_units::{Bytes, CpuId, Duration, Instant, Seed, TaskId};

use crate::costs::{Costs, Times, UnknownCost};
use crate::figures::RunnableClock;
use crate::kernel::{Core, Event, Kernel};
use crate::memory::Memory;
use crate::network::{Backlog, Card, Endpoint, OutsideLife, Peer};
use crate::operation::{Condition, Listener, Mm, Mutex, Nic, Outside, Region, Socket};
use crate::program::{BoxedProgram, Mailbox, OutsideTask, Program, Running, Task};
use crate::scheduler::{Attach, Scheduler, Why};
use crate::sync::{ConditionState, MutexState};
use crate::task::{Life, State, TaskSpec};

/// How the kernel is configured, apart from its scheduler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From one timer tick to the next: 1 / HZ.
    pub tick: Duration,
    /// Sleeps end at multiples of this (a jiffy in 2.4).
    pub timer_resolution: Duration,
    /// Kernel stack and task structure of one task.
    pub block: Bytes,
    /// The receive buffer of a socket.
    pub socket_buffer: Bytes,
    /// How long a runnable task may wait for its first chance before the run is said to stall.
    pub patience: Duration,
    /// Whether memory accesses go through the machine's caches; without, they are free.
    pub caches: bool,
    /// What the caches count besides hits and misses.
    pub counting: Options,
    /// How worn the page allocator is.
    pub fragmentation: Fragmentation,
    /// What makes this run differ from another.
    pub seed: Seed,
}

impl Settings {
    /// Linux 6 on x86 as Debian builds it: HZ 250, and sleeps that end on a clock of their own, to
    /// a microsecond here. Where memory lies is as in [`Settings::linux24`], so that schedulers
    /// compare.
    pub fn linux6(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(4),
            timer_resolution: Duration::from_us(1),
            ..Settings::linux24(seed)
        }
    }

    /// Linux 2.4 on x86: HZ 100, 8 KB blocks, 64 KB socket buffers, a machine that has been up for
    /// long.
    pub fn linux24(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(10),
            timer_resolution: Duration::from_ms(10),
            block: Bytes::from_kb(8),
            socket_buffer: Bytes::from_kb(64),
            patience: Duration::from_s(120),
            caches: true,
            counting: Options::default(),
            fragmentation: Fragmentation::Worn {
                cluster: 8,
                used_percent: 50,
            },
            seed,
        }
    }
}

/// What is started on a machine. Knows no scheduler.
pub trait Workload {
    /// Creates the first tasks, and all that they work with.
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory>;
}

impl<F: Fn(&mut Boot<'_>) -> Result<(), OutOfMemory>> Workload for F {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        self(boot)
    }
}

/// Why a machine could not be switched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootError {
    /// A cost is missing in the machine's table.
    Cost(UnknownCost),
    /// The workload needs more memory than the machine has.
    Memory(OutOfMemory),
}

impl fmt::Display for BootError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootError::Cost(cost) => cost.fmt(formatter),
            BootError::Memory(memory) => {
                write!(
                    formatter,
                    "the workload does not fit into the machine: {memory}"
                )
            }
        }
    }
}

impl std::error::Error for BootError {}

impl From<UnknownCost> for BootError {
    fn from(cost: UnknownCost) -> BootError {
        BootError::Cost(cost)
    }
}

impl From<OutOfMemory> for BootError {
    fn from(memory: OutOfMemory) -> BootError {
        BootError::Memory(memory)
    }
}

/// What a workload may do before time starts.
pub struct Boot<'a> {
    kernel: &'a mut dyn Bootable,
}

impl Boot<'_> {
    /// The machine's CPUs.
    pub fn cpus(&self) -> u16 {
        self.kernel.cpus()
    }

    /// The size of a cache line in bytes.
    pub fn line(&self) -> u64 {
        self.kernel.line()
    }

    /// The seed of this run.
    pub fn seed(&self) -> Seed {
        self.kernel.seed()
    }

    /// A new address space.
    pub fn mm(&mut self) -> Mm {
        self.kernel.mm()
    }

    /// Memory of `bytes`, rounded up to pages.
    pub fn region(&mut self, bytes: Bytes) -> Result<Region, OutOfMemory> {
        self.kernel.region(bytes)
    }

    /// A task that is runnable when time starts.
    pub fn task(
        &mut self,
        spec: TaskSpec,
        program: impl Program + 'static,
    ) -> Result<TaskId, OutOfMemory> {
        self.kernel.task(spec, Box::new(program))
    }

    /// Two connected sockets, each with a receive buffer of `capacity`.
    pub fn socket_pair(&mut self, capacity: Bytes) -> Result<(Socket, Socket), OutOfMemory> {
        self.kernel.socket_pair(capacity)
    }

    /// A listening socket.
    pub fn listener(&mut self) -> Listener {
        self.kernel.listener()
    }

    /// A network card with a link of `bits_per_second` and a delay of `delay` each way.
    pub fn nic(&mut self, bits_per_second: u64, delay: Duration) -> Nic {
        self.kernel.nic(bits_per_second, delay)
    }

    /// Somebody beyond the network.
    pub fn outside<F, R>(&mut self, program: F) -> Outside
    where
        F: FnOnce(OutsideTask) -> R,
        R: Future<Output = ()> + 'static,
    {
        let id = self.kernel.next_outside();
        let mailbox = Mailbox::new();
        let running: Running = Box::pin(program(OutsideTask::new(id, mailbox.clone())));
        self.kernel.outside(OutsideLife::new(mailbox, running));
        id
    }

    /// A mutex that nobody has.
    pub fn mutex(&mut self) -> Mutex {
        self.kernel.mutex()
    }

    /// A condition that nobody waits for.
    pub fn condition(&mut self) -> Condition {
        self.kernel.condition()
    }
}

/// What [`Boot`] needs of a kernel, whoever observes it.
trait Bootable {
    fn cpus(&self) -> u16;
    fn line(&self) -> u64;
    fn seed(&self) -> Seed;
    fn mm(&mut self) -> Mm;
    fn region(&mut self, bytes: Bytes) -> Result<Region, OutOfMemory>;
    fn task(&mut self, spec: TaskSpec, program: BoxedProgram) -> Result<TaskId, OutOfMemory>;
    fn socket_pair(&mut self, capacity: Bytes) -> Result<(Socket, Socket), OutOfMemory>;
    fn listener(&mut self) -> Listener;
    fn nic(&mut self, bits_per_second: u64, delay: Duration) -> Nic;
    fn next_outside(&self) -> Outside;
    fn outside(&mut self, life: OutsideLife);
    fn mutex(&mut self) -> Mutex;
    fn condition(&mut self) -> Condition;
}

impl<O: Observer> Kernel<O> {
    /// Switches `machine` on under `scheduler`, starts `workload`, and stops before time starts.
    ///
    /// # Errors
    /// When the machine's table lacks a cost, or its memory does not hold the workload.
    pub fn boot(
        machine: &MachineDescription,
        costs: &Costs,
        settings: Settings,
        scheduler: Box<dyn Scheduler>,
        workload: &dyn Workload,
        observer: O,
    ) -> Result<Kernel<O>, BootError> {
        let times = Times::new(costs, machine.clock)?;
        let mut kernel = Kernel::bare(machine, settings, times, scheduler, observer);
        kernel.scheduler.attach(&mut Attach {
            core: &mut kernel.core,
            costs,
        })?;
        workload.start(&mut Boot {
            kernel: &mut kernel,
        })?;
        kernel.start_time();
        match kernel.core.memory_full {
            Some(full) => Err(BootError::Memory(full)),
            None => Ok(kernel),
        }
    }

    fn bare(
        machine: &MachineDescription,
        settings: Settings,
        times: Times,
        scheduler: Box<dyn Scheduler>,
        observer: O,
    ) -> Kernel<O> {
        let hierarchy = settings
            .caches
            .then(|| Hierarchy::new(machine, settings.counting));
        let pages = settings.seed.stream("pages");
        let physical = PhysicalMemory::new(&machine.memory, settings.fragmentation, pages);
        let line = machine.caches[0].line;
        let page = machine.memory.page;
        let memory = Memory::new(hierarchy, physical, page, line, machine.miss_overlap);
        let cpus = machine.cpus.len() as u16;
        let mut core = Core::new(machine.clock, cpus, memory, page);
        core.send_interrupt_cost = times.reschedule_interrupt;
        core.places = machine.cpus.clone();
        core.way_sizes = way_sizes(machine);
        Kernel {
            core,
            scheduler,
            observer,
            settings,
            times,
            endpoints: Vec::new(),
            free_endpoints: Vec::new(),
            backlogs: Vec::new(),
            cards: Vec::new(),
            outsides: Vec::new(),
            mutexes: Vec::new(),
            conditions: Vec::new(),
            mms: 0,
            ending: None,
            alive: 0,
            measured_from: Instant::START,
            events: 0,
            runnable: RunnableClock::default(),
        }
    }

    /// A new task without a program, made on CPU `on`.
    pub(crate) fn try_create(
        &mut self,
        spec: &TaskSpec,
        on: Option<CpuId>,
    ) -> Result<TaskId, OutOfMemory> {
        let block = self.core.memory.block(self.settings.block)?;
        let id = TaskId(self.core.lives.len() as u32);
        let cpus = self.core.cpus.len() as u32;
        let allowed = spec
            .allowed
            .as_ref()
            .and_then(|allowed| self.existing(allowed));
        let may = |cpu: &CpuId| allowed.as_ref().is_none_or(|allowed| allowed.contains(cpu));
        let first = allowed.as_ref().map(|allowed| allowed[0]);
        let placed = on.filter(may).or(first);
        let placed = placed.unwrap_or(CpuId((id.0 % cpus) as u16));
        self.core.lives.push(Life {
            comm: spec.comm,
            mm: spec.mm,
            block,
            nice: spec.nice.clamp(-20, 19),
            policy: spec.policy,
            allowed,
            fragment: None,
            state: State::New,
            queued: false,
            runnable_since: self.now(),
            on_cpu: None,
            last_cpu: placed,
            switched_in: self.now(),
            ran: Duration::ZERO,
            voluntary_switches: 0,
            involuntary_switches: 0,
            stack: Vec::new(),
            mailbox: Mailbox::new(),
            program: None,
        });
        self.alive += 1;
        Ok(id)
    }

    /// Those of `cpus` that the machine has; `None` when it has none of them, and no affinity can
    /// be made of that (EINVAL).
    pub(crate) fn existing(&self, cpus: &[CpuId]) -> Option<Vec<CpuId>> {
        let exists = |cpu: &CpuId| cpu.index() < self.core.cpus.len();
        let existing: Vec<CpuId> = cpus.iter().copied().filter(exists).collect();
        (!existing.is_empty()).then_some(existing)
    }

    pub(crate) fn give_program(&mut self, task: TaskId, program: BoxedProgram) {
        let life = self.life(task);
        let running = program.start(Task::new(task, life.mailbox.clone()));
        life.program = Some(running);
    }

    /// The first tasks join the run queue, clocks start, and every CPU picks. What the scheduler
    /// does before that costs nothing, and the caches are cold: the machine has been up for long,
    /// and these tasks slept.
    fn start_time(&mut self) {
        let cpus = self.core.cpus.len() as u64;
        for index in 0..self.core.lives.len() {
            let task = TaskId(index as u32);
            let life = self.life(task);
            life.state = State::Runnable;
            life.queued = true;
            self.runnable.joins(Instant::START);
            let life = self.life(task);
            let (cpu, comm) = (life.last_cpu, life.comm);
            self.record(
                Instant::START,
                Record::Fork {
                    parent: None,
                    child: task,
                    comm,
                },
            );
            self.record(
                Instant::START,
                Record::Wakeup {
                    waker: cpu,
                    task,
                    target: cpu,
                },
            );
            self.call(cpu, |scheduler, context| {
                scheduler.fork(context, None, task);
                scheduler.enqueue(context, task, cpu, Why::Fork);
            });
        }
        self.core.memory.switch_caches_on();
        for index in 0..self.outsides.len() {
            self.core
                .schedule(Instant::START, Event::Outside(Outside(index as u32)));
        }
        self.core
            .schedule(Instant::START + self.settings.patience, Event::Watch);
        for index in 0..cpus {
            let first = Instant(self.settings.tick.0 * (index + 1) / cpus);
            let cpu = CpuId(index as u16);
            self.cpu(cpu).next_tick = first;
            self.core.schedule(first, Event::Tick(cpu));
        }
        for index in 0..cpus {
            let cpu = CpuId(index as u16);
            self.cpu(cpu).need_resched = true;
            self.advance(cpu);
        }
    }
}

/// Size over associativity of the caches that CPU 0 uses, nearest first.
fn way_sizes(machine: &MachineDescription) -> Vec<u64> {
    let mut caches: Vec<_> = machine
        .caches
        .iter()
        .filter(|cache| cache.cpus.contains(&CpuId(0)))
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
        .iter()
        .map(|cache| cache.size.0 / u64::from(cache.ways))
        .collect()
}

impl<O: Observer> Bootable for Kernel<O> {
    fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    fn line(&self) -> u64 {
        self.core.memory.line()
    }

    fn seed(&self) -> Seed {
        self.settings.seed
    }

    fn mm(&mut self) -> Mm {
        self.mms += 1;
        Mm(self.mms - 1)
    }

    fn region(&mut self, bytes: Bytes) -> Result<Region, OutOfMemory> {
        self.core.memory.region(bytes)
    }

    fn task(&mut self, spec: TaskSpec, program: BoxedProgram) -> Result<TaskId, OutOfMemory> {
        let task = self.try_create(&spec, None)?;
        self.give_program(task, program);
        Ok(task)
    }

    fn socket_pair(&mut self, capacity: Bytes) -> Result<(Socket, Socket), OutOfMemory> {
        let first = Socket(self.endpoints.len() as u32);
        let second = Socket(first.0 + 1);
        for peer in [second, first] {
            let buffer = self.core.memory.region(capacity)?;
            self.endpoints
                .push(Endpoint::new(Peer::Local(peer), buffer, capacity));
        }
        Ok((first, second))
    }

    fn listener(&mut self) -> Listener {
        self.backlogs.push(Backlog::default());
        Listener(self.backlogs.len() as u32 - 1)
    }

    fn nic(&mut self, bits_per_second: u64, delay: Duration) -> Nic {
        let first_cpu = self.cards.len() as u16;
        self.cards
            .push(Card::new(bits_per_second, delay, first_cpu));
        Nic(self.cards.len() as u32 - 1)
    }

    fn next_outside(&self) -> Outside {
        Outside(self.outsides.len() as u32)
    }

    fn outside(&mut self, life: OutsideLife) {
        self.outsides.push(life);
    }

    fn mutex(&mut self) -> Mutex {
        self.mutexes.push(MutexState::default());
        Mutex(self.mutexes.len() as u32 - 1)
    }

    fn condition(&mut self) -> Condition {
        self.conditions.push(ConditionState::default());
        Condition(self.conditions.len() as u32 - 1)
    }
}
