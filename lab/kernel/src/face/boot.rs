//! What a workload does before time starts: it creates its first tasks, and what they use.

use std::rc::Rc;

use warmq_machine::{CardModel, CpuPlace, OutOfMemory};
use warmq_units::{Bytes, CpuId, CpuSet, Duration, Instant, Seed, TaskId};

use crate::core::{
    Backlog, BarrierState, Card, ConditionState, Core, DEFAULT_RING, Endpoint, Link, Measured,
    MutexState, PAGE, Peer, RemoteState, SEM, SpinlockState,
};
use crate::face::{Attach, Scheduler};
use crate::words::{
    Barrier, Condition, Group, GroupId, Limits, Listener, Mailbox, Mm, Mutex, Nic, Object,
    Operator, Part, Program, Region, Remote, RemotePeer, Running, Semaphore, Socket, Spinlock,
    TaskSpec, UnknownCost, group_weight_of_nice,
};

/// What is started on a machine. It knows nothing of schedulers.
pub trait Workload {
    /// Creates the first tasks and the objects that they use.
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory>;
}

impl<F: Fn(&mut Boot<'_>) -> Result<(), OutOfMemory>> Workload for F {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        self(boot)
    }
}

/// Makes a scheduler for the machine that it is attached to. Fails if the machine's table lacks a
/// cost that the scheduler needs, or for a reason of the scheduler's own.
pub type MakeScheduler = Box<dyn FnOnce(&mut Attach<'_>) -> Result<Box<dyn Scheduler>, BootError>>;

/// Why a machine could not be switched on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A cost is missing in the machine's table.
    #[error(transparent)]
    Cost(#[from] UnknownCost),
    /// The workload needs more memory than the machine has.
    #[error("the workload does not fit into the machine: {0}")]
    Memory(#[from] OutOfMemory),
    /// The scheduler cannot be attached, for this reason.
    #[error("{0}")]
    Scheduler(String),
}

/// What a workload may do before time starts.
pub struct Boot<'a> {
    core: &'a mut Core,
}

impl Boot<'_> {
    pub(crate) fn new(core: &mut Core) -> Boot<'_> {
        Boot { core }
    }

    /// The machine's CPUs.
    pub fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    /// Where `cpu` is in the machine.
    pub fn place(&self, cpu: CpuId) -> CpuPlace {
        self.core.hardware.places[cpu.index()]
    }

    /// The memory node of `cpu`, or its socket, also on a bus.
    pub fn socket_or_node(&self, cpu: CpuId) -> u16 {
        self.core.hardware.sockets_or_nodes[cpu.index()]
    }

    /// The receive buffer that the kernel gives each end of a stream by itself.
    pub fn stream_buffer(&self) -> Bytes {
        self.core.settings.stream_buffer
    }

    /// The receive buffer that the kernel gives a datagram socket by itself; the send buffer of a
    /// Unix socket is as large (`wmem_default`).
    pub fn datagram_buffer(&self) -> Bytes {
        self.core.settings.datagram_buffer
    }

    /// The size of a cache line in bytes.
    pub fn line(&self) -> u64 {
        self.core.memory.line()
    }

    /// The seed of this run.
    pub fn seed(&self) -> Seed {
        self.core.settings.seed
    }

    /// A new address space.
    pub fn mm(&mut self) -> Mm {
        self.core.new_mm()
    }

    /// Memory of `bytes`, rounded up to pages.
    pub fn region(&mut self, bytes: Bytes) -> Result<Region, OutOfMemory> {
        self.core.memory.region(bytes)
    }

    /// A task that is runnable when time starts.
    pub fn task(
        &mut self,
        spec: TaskSpec,
        program: impl Program + 'static,
    ) -> Result<TaskId, OutOfMemory> {
        let task = self.core.create_task(&spec, None)?;
        self.core.give_program(task, Box::new(program));
        Ok(task)
    }

    /// Two connected sockets with `TCP_NODELAY`, each with a receive buffer of `capacity` and the
    /// kernel's send buffer.
    pub fn socket_pair(&mut self, capacity: Bytes) -> Result<(Socket, Socket), OutOfMemory> {
        self.stream(capacity, false)
    }

    /// Two connected sockets, each with a receive buffer of `capacity` and the kernel's send
    /// buffer. With `nagle` an end keeps what is sent while a short segment is not acknowledged
    /// (`tcp_nagle_check()`).
    pub fn stream(
        &mut self,
        capacity: Bytes,
        nagle: bool,
    ) -> Result<(Socket, Socket), OutOfMemory> {
        let loopback = self.core.settings.loopback;
        let send_buffer = loopback.send_buffer;
        // Without send buffers the receive buffer is memory of its own; with them, it is what
        // happens to wait.
        let memory = match send_buffer.0 {
            0 => capacity,
            _ => Bytes(1),
        };
        self.ends(|boot, peer| {
            let buffer = boot.core.memory.region(memory)?;
            Ok(Endpoint {
                send_buffer: send_buffer.0,
                congestion_window: loopback.congestion_window,
                quick_acknowledgements: loopback.quick_acknowledgements(capacity.0),
                nagle,
                state: boot.core.socket_state(),
                segments: boot.core.segments(capacity),
                ..Endpoint::new(peer, buffer, capacity)
            })
        })
    }

    /// The two ends of a pipe of `capacity`: as [`Boot::socket_pair`], and at the same cost, but a
    /// writer wakes the reader itself (`pipe_write()`), where on a socket the softirq of the
    /// loopback device does. One with a mutex has whole pages
    /// (`round_pipe_size()`).
    pub fn pipe(&mut self, capacity: Bytes) -> Result<(Socket, Socket), OutOfMemory> {
        self.ends(|boot, peer| {
            let buffer = boot.core.memory.region(capacity)?;
            let (state, mutex) = boot.core.pipe_state();
            let pages = Bytes(capacity.0.max(PAGE).next_power_of_two());
            let capacity = mutex.map_or(capacity, |_| pages);
            Ok(Endpoint {
                link: Link::Pipe,
                state,
                mutex,
                ..Endpoint::new(peer, buffer, capacity)
            })
        })
    }

    /// A pair of Unix stream sockets, whose ends may have messages on their way that are charged
    /// with `send_buffer`. None of their memory is taken before something is sent.
    pub fn unix_pair(&mut self, send_buffer: Bytes) -> Result<(Socket, Socket), OutOfMemory> {
        self.ends(|boot, peer| {
            let buffer = boot.core.memory.empty_region();
            Ok(Endpoint {
                link: Link::Unix,
                ..Endpoint::new(peer, buffer, send_buffer)
            })
        })
    }

    /// Two connected ends, each made by `end` for its peer.
    fn ends(
        &mut self,
        end: impl Fn(&mut Self, Peer) -> Result<Endpoint, OutOfMemory>,
    ) -> Result<(Socket, Socket), OutOfMemory> {
        let first = self.core.net.endpoints.next();
        let second = Socket(first.0 + 1);
        for peer in [second, first] {
            let end = end(self, Peer::Local(peer))?;
            self.core.net.endpoints.add(end);
        }
        Ok((first, second))
    }

    /// A datagram socket that queues datagrams until their true sizes reach `capacity`.
    pub fn datagram_socket(&mut self, capacity: Bytes) -> Result<Socket, OutOfMemory> {
        let buffer = self.core.memory.region(capacity)?;
        let socket = Endpoint::datagram(buffer, capacity);
        Ok(self.core.net.endpoints.add(socket))
    }

    /// A task group within `parent`, of `weight` (1 to 10,000, as `cpu.weight`) among its siblings.
    pub fn group(&mut self, parent: GroupId, name: &str, weight: u32) -> GroupId {
        self.create_group(Group::new(name, Some(parent), weight))
    }

    /// The group of a session (autogroup), of the weight of `nice`.
    pub fn autogroup(&mut self, name: &str, nice: i8) -> GroupId {
        self.create_group(Group {
            autogroup: true,
            ..Group::new(name, Some(GroupId::ROOT), group_weight_of_nice(nice))
        })
    }

    fn create_group(&mut self, group: Group) -> GroupId {
        let group = self.core.groups.create(group);
        self.core.record_cgroup(group);
        group
    }

    /// Gives `group` at most so much CPU time in each period (`cpu.max`).
    pub fn bandwidth(&mut self, group: GroupId, limits: Limits) {
        self.core.set_bandwidth(group, limits);
    }

    /// Makes `group` idle (`cpu.idle`).
    pub fn idle(&mut self, group: GroupId) {
        self.core.groups.set_idle(group, true);
        self.core.record_cgroup(group);
    }

    /// Lets the tasks of `group` use no other CPUs than `cpus` (`cpuset.cpus`). Those that the
    /// machine lacks are ignored; if none is left, nothing changes.
    pub fn cpuset(&mut self, group: GroupId, cpus: &CpuSet) {
        if let Some(cpus) = self.core.existing(cpus) {
            self.core.groups.set_cpus(group, cpus);
        }
    }

    /// A listening socket.
    pub fn listener(&mut self) -> Listener {
        self.core.net.backlogs.add(Backlog::default())
    }

    /// A network card with a link of `bits_per_second`, a delay of `delay` each way and a receive
    /// ring of 256 packets.
    pub fn nic(&mut self, bits_per_second: u64, delay: Duration) -> Nic {
        self.nic_with_ring(bits_per_second, delay, DEFAULT_RING)
    }

    /// The same with a receive ring of `ring` packets; packets that arrive while it is full are
    /// dropped.
    pub fn nic_with_ring(&mut self, bits_per_second: u64, delay: Duration, ring: usize) -> Nic {
        let first_cpu = self.core.net.cards.len() as u16;
        let card = Card::new(bits_per_second, delay, ring, first_cpu);
        self.core.net.cards.add(card)
    }

    /// The model of the machine's network card, if it is known.
    pub fn card(&self) -> Option<CardModel> {
        self.core.hardware.card
    }

    /// A network card of a model, with a delay of `delay` each way.
    pub fn nic_of(&mut self, model: &CardModel, delay: Duration) -> Nic {
        let first = self.core.net.cards.next();
        let cpus = self.core.cpus.len() as u16;
        let queues = if model.queue_per_cpu { cpus } else { 1 };
        for queue in 0..queues {
            let mut card = Card::of_model(model, delay, first.0 as u16, queues);
            if queues > 1 {
                card.steer(&[CpuId(queue)].into_iter().collect());
            }
            self.core.net.cards.add(card);
        }
        first
    }

    /// A peer on another machine.
    pub fn remote<F, R>(&mut self, program: F) -> Remote
    where
        F: FnOnce(RemotePeer) -> R,
        R: Future<Output = ()> + 'static,
    {
        let mailbox = Rc::<Mailbox<_>>::default();
        let running: Running = Box::pin(program(RemotePeer::new(mailbox.clone())));
        self.core
            .net
            .remotes
            .add(RemoteState::new(mailbox, running))
    }

    /// A peer on another machine that measures round trips: each datagram that it numbers begins a
    /// span called `span` (by its number in the trace's header), and the first answer that is back
    /// ends it. See [`RemotePeer::send_measured`].
    pub fn measuring_remote<F, R>(&mut self, span: u32, program: F) -> Remote
    where
        F: FnOnce(RemotePeer) -> R,
        R: Future<Output = ()> + 'static,
    {
        let remote = self.remote(program);
        self.core.net.remotes[remote].measured = Some(Measured::new(span));
        remote
    }

    /// Has `nic` interrupt the CPUs in `cpus`, in turn, instead of all. CPUs that the machine lacks
    /// are ignored; if none is left, nothing changes. A CPU that is offline is skipped; if all of
    /// them are, the first CPU that is online is interrupted.
    pub fn steer(&mut self, nic: Nic, cpus: &CpuSet) {
        self.core.steer(nic, cpus);
    }

    /// A new, unlocked mutex.
    pub fn mutex(&mut self) -> Mutex {
        self.core.sync.mutexes.add(MutexState::default())
    }

    /// A new spin lock of user space, in a line of its own.
    pub fn spinlock(&mut self) -> Result<Spinlock, OutOfMemory> {
        let line = self.core.kernel_data(Bytes(self.core.memory.line()));
        if let Some(full) = self.core.memory_full() {
            return Err(full);
        }
        Ok(self.core.sync.spinlocks.add(SpinlockState {
            line,
            ..SpinlockState::default()
        }))
    }

    /// A new condition variable, or a futex.
    pub fn condition(&mut self) -> Condition {
        self.core.sync.conditions.add(ConditionState::default())
    }

    /// A new barrier that opens for `tasks` at a time.
    pub fn barrier(&mut self, tasks: u64) -> Barrier {
        let waiters = Vec::new();
        self.core.sync.barriers.add(BarrierState { tasks, waiters })
    }

    /// Says what `part` is part of; [`Record::Block`](warmq_trace::Record::Block) names that
    /// for those who wait for `part`.
    pub fn part_of(&mut self, part: Part, object: Object) {
        self.core.recorder.part_of(part, object);
    }

    /// A set of `count` semaphores, each of value `initial`.
    pub fn semaphores(&mut self, count: u32, initial: u64) -> Result<Vec<Semaphore>, OutOfMemory> {
        let core = &mut *self.core;
        let line = core.memory.line();
        let address = core.kernel_data(Bytes(line + u64::from(count) * SEM));
        let lock = core.lock_of_new_set(address);
        if let Some(full) = core.memory_full() {
            return Err(full);
        }
        Ok(core.sync.semaphores.create((lock, address), count, initial))
    }

    /// An operator that begins at `at`. Of those that act at the same time, the one that was
    /// created first acts first.
    pub fn operator<F, R>(&mut self, at: Instant, program: F)
    where
        F: FnOnce(Operator) -> R,
        R: Future<Output = ()> + 'static,
    {
        let mailbox = Rc::<Mailbox<_>>::default();
        let handle = Operator::new(mailbox.clone());
        let program: Running = Box::pin(program(handle));
        self.core.operators.add(mailbox, program, at);
    }
}
