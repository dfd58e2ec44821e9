//! How the simulated kernel is configured, apart from its scheduler.

use warmq_machine::{Fragmentation, Options};
use warmq_units::{Bytes, Duration, Seed};

warmq_units::named! {
    /// Where the kernel itself can be preempted (`kernel/Kconfig.preempt`), by its name on the
    /// kernel's command line (`preempt=`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Preemption {
        /// Nowhere: a task is preempted only on its way back to user mode.
        None = "none",
        /// Also where kernel code says that it might sleep: at the start of a system call and
        /// between copied lines.
        Voluntary = "voluntary",
        /// Everywhere except under spin locks, in interrupts and in softirqs.
        Full = "full",
        /// As `Full`, but a lazy request waits for the way back to user mode or for the next tick
        /// (`TIF_NEED_RESCHED_LAZY`, since Linux 6.13).
        Lazy = "lazy",
    }
}

/// How an idle CPU notices that it should reschedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleLoop {
    /// It halts, and is woken by an interrupt.
    Halt,
    /// It looks at `need_resched` (`idle=poll`, and `mwait`, which sets `TIF_POLLING_NRFLAG`):
    /// no interrupt is sent, and the cost `idle_poll` passes until it notices.
    Poll,
}

/// When a run of the receive softirq ends for the time that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollTime {
    /// At the first packet that begins so long after the run did.
    After(Duration),
    /// At the first poll that begins when the jiffies have changed so often since the run began: a
    /// run that begins just before a tick is short. 1 or more.
    Jiffies(u32),
}

impl PollTime {
    /// The same in a kernel whose jiffy is `to` instead of `from`: as many jiffies.
    fn in_jiffies_of(self, from: Duration, to: Duration) -> PollTime {
        match self {
            PollTime::After(span) => PollTime::After(to * (span.0 / from.0.max(1))),
            PollTime::Jiffies(_) => self,
        }
    }
}

/// The limits of softirqs (`kernel/softirq.c`, `net/core/dev.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftirqLimits {
    /// Rounds over the raised softirqs before the remaining ones are deferred
    /// (`MAX_SOFTIRQ_RESTART`).
    pub rounds: u32,
    /// Time after which the remaining softirqs are deferred (`MAX_SOFTIRQ_TIME`).
    pub time: Duration,
    /// Packets that one run of the receive softirq handles (`netdev_budget`).
    pub packets: u32,
    /// Time after which a run of the receive softirq ends (`netdev_budget_usecs`).
    pub packets_time: PollTime,
    /// Whether a poll takes its whole weight when the run's packets end within it, as since 2.6.24;
    /// else it takes what the run may still handle.
    pub whole_polls: bool,
    /// Packets of one card before the next one's turn (`dev_rx_weight`).
    pub weight: u32,
    /// The nice value of `ksoftirqd`, to which softirqs are deferred. `None` if the kernel has no
    /// such thread: then they run before the CPU returns to user mode.
    pub ksoftirqd: Option<i8>,
    /// Whether a task that should run ends the series after a round, so that the remaining softirqs
    /// are deferred (`need_resched()` in `__do_softirq()`, since Linux 3.9).
    pub ends_for_tasks: bool,
}

impl SoftirqLimits {
    /// Linux 2.4.4: no `ksoftirqd` (it came with 2.4.7), at most 300 packets or a jiffy in
    /// `net_rx_action()`; softirqs raised meanwhile wait for the next exit from the kernel.
    pub const LINUX_2_4: SoftirqLimits = SoftirqLimits {
        rounds: 1,
        time: Duration::from_ms(10),
        packets: 300,
        packets_time: PollTime::After(Duration::from_ms(10)),
        whole_polls: false,
        weight: 300,
        ksoftirqd: None,
        ends_for_tasks: false,
    };

    /// Linux 2.6.16: ten rounds whatever they take, 300 packets or until two jiffies have changed
    /// (`jiffies - start_time > 1` in `net_rx_action()`), weight 64, and `ksoftirqd` at nice 19.
    pub const LINUX_2_6_16: SoftirqLimits = SoftirqLimits {
        rounds: 10,
        time: Duration(u64::MAX),
        packets: 300,
        packets_time: PollTime::Jiffies(2),
        whole_polls: false,
        weight: 64,
        ksoftirqd: Some(19),
        ends_for_tasks: false,
    };

    /// Linux 2.6.24 at HZ 250: ten rounds however long they take (`MAX_SOFTIRQ_TIME` came with
    /// 3.9), 300 packets or until a jiffy has changed (`jiffies != start_time`), weight 64, and
    /// `ksoftirqd` at the nice value of `kthreadd`, -5.
    pub const LINUX_2_6_24: SoftirqLimits = SoftirqLimits {
        rounds: 10,
        time: Duration::from_s(1_000),
        packets: 300,
        packets_time: PollTime::Jiffies(1),
        whole_polls: true,
        weight: 64,
        ksoftirqd: Some(-5),
        ends_for_tasks: false,
    };

    /// Linux 6: ten rounds or 2 ms, 300 packets or 8 ms (two jiffies at HZ 250), weight 64, and
    /// `ksoftirqd` at nice 0. Here a poll takes no more than the run may still handle; Linux 6 lets
    /// it take its whole weight.
    pub const LINUX_6: SoftirqLimits = SoftirqLimits {
        rounds: 10,
        time: Duration::from_ms(2),
        packets: 300,
        packets_time: PollTime::After(Duration::from_ms(8)),
        whole_polls: false,
        weight: 64,
        ksoftirqd: Some(0),
        ends_for_tasks: true,
    };
}

/// Which spin lock guards a set of SysV semaphores (`ipc_lock()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SemaphoreLocks {
    /// One for all sets of the system, as in Linux 2.4.
    OneForAll,
    /// Its own, as since 2.6.
    OneForEachSet,
}

/// When a receive buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveCharge {
    /// When the datagrams that wait exceed it (`__udp_enqueue_schedule_skb()` of Linux 6).
    Before,
    /// When those that wait and the one that comes would reach it (`sock_queue_rcv_skb()` of 2.6).
    With {
        /// The size of a `struct sk_buff`, which each datagram is charged with.
        sk_buff: Bytes,
    },
}

/// How TCP streams over the loopback device work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback {
    /// What the sender's end keeps when the receive buffer is full; 0: no send buffer is modelled,
    /// and the receive buffer stands for both.
    pub send_buffer: Bytes,
    /// The longest segment, without headers.
    pub segment: Bytes,
    /// How many short segments of a new stream may be unacknowledged (`TCP_INIT_CWND`); `u64::MAX`:
    /// any number, not modelled.
    pub congestion_window: u64,
    /// How many short segments of a new stream are acknowledged at once, at most
    /// (`TCP_MAX_QUICKACKS`).
    pub quick_acknowledgements: u64,
    /// After what time short segments are acknowledged that were not read (`TCP_DELACK_MIN`);
    /// `None`: never, not modelled.
    pub delayed_acknowledgement: Option<Duration>,
    /// The most acknowledgements, which are one packet more each, that a receiver sends which has
    /// emptied its buffer: one that opens the window at once, and another one when it reads the
    /// first of several segments that then come, as they are more than one that is not acknowledged
    /// (`tcp_cleanup_rbuf()`). 0: they are in what a packet costs.
    pub acknowledgements: u64,
    /// How much of what a packet takes is the receiving side's, in a softirq, in thousandths; 0: it
    /// is one with the sending side's.
    pub arrival_permille: u64,
    /// How many of a socket's cache lines a call writes with which no packet comes or goes, and
    /// how many of these wait for one another.
    pub call_lines: (u32, u32),
    /// The memory that a segment has besides its bytes; 0: not modelled.
    pub segment_memory: Bytes,
    /// Whether a send or a receive owns its end of the stream until it is over, so that another
    /// task's waits, also where the owner is preempted (`lock_sock()`).
    pub owned: bool,
}

impl Loopback {
    /// In how many segments `bytes` come to an end with a receive buffer of `window`: each is at
    /// most half of that (`tcp_bound_to_half_wnd()`), where there is a send buffer.
    pub(crate) fn segments(&self, bytes: u64, window: u64) -> u64 {
        bytes.div_ceil(self.longest_segment(window))
    }

    pub(crate) fn longest_segment(&self, window: u64) -> u64 {
        match self.send_buffer.0 {
            0 => self.segment.0,
            _ => self.segment.0.min((window / 2).max(1)),
        }
    }

    /// How many short segments are acknowledged at once that come to a new end with a receive
    /// buffer of `window`: one for two segments of which it holds the bytes, two at least
    /// (`tcp_incr_quickack()`).
    pub(crate) fn quick_acknowledgements(&self, window: u64) -> u64 {
        self.quick_acknowledgements
            .min((window / (2 * SHORT)).max(2))
    }

    /// As the figures of the papers were calibrated: the buffers of both ends are one, segments are
    /// as long as on Ethernet, and a packet's cost has its acknowledgement in it.
    pub const BEFORE_LINUX_6: Loopback = Loopback {
        send_buffer: Bytes(0),
        segment: Bytes(SEGMENT),
        congestion_window: u64::MAX,
        quick_acknowledgements: 0,
        delayed_acknowledgement: None,
        acknowledgements: 0,
        arrival_permille: 0,
        call_lines: (0, 0),
        segment_memory: Bytes(0),
        owned: false,
    };

    /// Linux 2.6.4. The device has an MTU of 16,436 bytes (`loopback.c`). The send buffer is what
    /// that of a connection becomes when it is full for the first time: 8 times a segment
    /// (`tcp_new_space()`), and at most `tcp_wmem[2]`. Table 1 of the affinity paper was calibrated
    /// with one acknowledgement.
    pub const LINUX_2_6_4: Loopback = Loopback {
        send_buffer: Bytes::from_kb(128),
        segment: Bytes(16_384),
        acknowledgements: 1,
        call_lines: (u32::MAX, u32::MAX),
        owned: true,
        ..Loopback::BEFORE_LINUX_6
    };

    /// Linux 6, where the device has an MTU of 64 KB. The send buffer is what that of a connection
    /// has become when it is full: `SO_SNDBUF` under 6.18.44. It begins at 2,626,560
    /// (`tcp_sndbuf_expand()`, ten segments) and may grow to 4 MB (`tcp_wmem`). Acknowledgements
    /// were seen in guests of 6.12, 6.18 and 7.2; those that a stream delays because it answers
    /// (`inet_csk_in_pingpong_mode()`) are not modelled. Arrivals: a CPU of measured/host16 that
    /// plays experiments/costs/stream.toml is in softirqs for 23.9 % of its time, 0.13 ms a round.
    ///
    /// A send that stays with its end writes nine lines, by the layout of 6.18.44 (its BTF): four
    /// of `tcp_sock` (lock and memory charged; `write_seq`; `tcp_mstamp`; `app_limited`), three of
    /// the last `sk_buff` (`cb`, `len`, `truesize`), and two of its `skb_shared_info` (`nr_frags`,
    /// the fragment). It waits for four: the lock, then the other fields, then the `sk_buff` and
    /// its `skb_shared_info`, each found by a pointer in the one before.
    ///
    /// A segment has two `sk_buff` in one piece (`skbuff_fclone_cache`), and a head of 704 bytes
    /// (`skb_small_head_cache`).
    pub const LINUX_6: Loopback = Loopback {
        send_buffer: Bytes(3_939_840),
        segment: Bytes(65_483),
        congestion_window: 10,
        quick_acknowledgements: 16,
        delayed_acknowledgement: Some(Duration::from_ms(40)),
        acknowledgements: 2,
        arrival_permille: 370,
        call_lines: (9, 4),
        segment_memory: Bytes(1_216),
        owned: true,
    };
}

/// irqbalance's interval (`SLEEP_INTERVAL`).
const IRQ_BALANCE: Duration = Duration::from_s(10);

/// `sizeof(struct sk_buff)` of 2.6.16 on i386 as Fedora configures it, computed from its fields.
const SK_BUFF_I386: Bytes = Bytes(164);

/// What happens to the tasks of a group that has used up its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// All CPUs draw from one pool without slices, and each task leaves on its way to user mode.
    /// Who is woken waits for the next period. Kernels before 3.2 have no quotas, and are played as
    /// if they had these.
    Pool,
    /// Nothing does: the scheduler knows the limits, and keeps them or not (sched_ext).
    Scheduler,
    /// The group leaves the queue of a CPU with all that is in it there, and who is woken there
    /// waits for the next period (`throttle_cfs_rq()` before Linux 6.18).
    Groups,
    /// Each task leaves on its way to user mode, also one that is woken there, which runs that far
    /// first (`throttle_cfs_rq_work()`, since 6.18).
    Tasks,
}

/// When the driver `e100` stops polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastPoll {
    /// After a poll that found nothing (`e100_poll()` up to 2.6.23).
    Empty,
    /// After a poll that found less than its weight (since 2.6.24).
    BelowWeight,
}

/// How the kernel is configured, apart from its scheduler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The period of the tick: 1 / HZ.
    pub tick: Duration,
    /// Whether the CPUs tick one after another, evenly spread over the period, as 2.4 sets its
    /// APICs up (`setup_APIC_timer()`). Else all tick at the same time, as Linux 6 does without
    /// `skew_tick=1` (`tick_setup_sched_timer()`), on machines of which something takes CPUs away
    /// now and then; on others they are spread in any case, since without anything random they
    /// would stay in step to the nanosecond, which no machine does: a CPU that balances at its tick
    /// would find each other one in the middle of a switch.
    pub skewed_ticks: bool,
    /// Whether the seed says where in a period of the ticks the work begins, as a real start may be
    /// anywhere: who is charged, throttled or preempted first depends on it. Else it begins as a
    /// period does, so that recordings of kernels can be compared switch by switch.
    pub drawn_ticks: bool,
    /// Sleeps end at multiples of this (a jiffy in 2.4).
    pub timer_resolution: Duration,
    /// Whether a tick that hits an interrupt or a softirq is charged, whole, to the running task's
    /// system time (`account_system_time()` of 2.6), so that what runs on top of a task counts as
    /// its own; else no task is charged. What `time` and `top` show then is no measure of a task's
    /// progress under network load.
    pub tick_charges_interrupts: bool,
    /// Where the kernel itself can be preempted.
    pub preemption: Preemption,
    /// How an idle CPU notices that it should reschedule.
    pub idle_loop: IdleLoop,
    /// Whether an idle CPU stops its tick (`CONFIG_NO_HZ_IDLE`).
    pub nohz: bool,
    /// Whether data that arrives on a socket wakes its reader with `WF_SYNC`
    /// (`sock_def_readable()`, since Linux 2.6.30).
    pub sync_socket_wakeups: bool,
    /// How often the interrupt of a card moves to the next CPU; none: each interrupt of it goes to
    /// the next one, as the I/O APIC of a P6 machine spreads them. Since 2.6 an interrupt stays
    /// where it is until irqbalance moves it, which may do so every 10 s.
    pub interrupts_move: Option<Duration>,
    /// The limits of softirqs.
    pub softirqs: SoftirqLimits,
    /// Kernel stack and task structure of one task.
    pub block: Bytes,
    /// The receive buffer of each end of a stream.
    pub stream_buffer: Bytes,
    /// The receive buffer of a datagram socket (`net.core.rmem_default`).
    pub datagram_buffer: Bytes,
    /// How streams to this machine work.
    pub loopback: Loopback,
    /// When a receive buffer is full.
    pub receive_charge: ReceiveCharge,
    /// When the driver `e100` stops polling.
    pub e100_last_poll: LastPoll,
    /// The cache lines of a socket that the protocols write when something is sent there, comes
    /// there, or is taken out of it, and when an acknowledgement comes; 0: what a socket keeps is
    /// not modelled. Only sockets of a stream to this machine have them.
    pub socket_lines: u32,
    /// The cache lines of a pipe that a write and a read write under its mutex, for which CPUs
    /// spin, and of a pair of Unix sockets those that a message in one direction writes; 0: not
    /// modelled.
    pub pipe_lines: u32,
    /// What happens to the tasks of a group that has used up its quota.
    pub throttling: Throttling,
    /// How much CPU time a group's queue takes from the group's pool at once
    /// (`/proc/sys/kernel/sched_cfs_bandwidth_slice_us`).
    pub bandwidth_slice: Duration,
    /// Whether each group's periods begin at a time that is drawn (`init_cfs_bandwidth()`, since
    /// Linux 6.4); else all begin at multiples of their length, and so at a tick.
    pub staggered_periods: bool,
    /// Which spin lock guards a set of SysV semaphores.
    pub semaphore_locks: SemaphoreLocks,
    /// Whether who raises a semaphore lowers it for the first that waits (`update_queue()` from
    /// 2.6.16 on), which then need not try again, and is not overtaken.
    pub semaphores_hand_over: bool,
    /// How spin locks work.
    pub locks: LockKind,
    /// How long a runnable task may wait without running before the run is reported as stalled.
    pub patience: Duration,
    /// Whether memory accesses go through the machine's caches; without, they are free.
    pub caches: bool,
    /// What the caches count besides hits and misses.
    pub counting: Options,
    /// How fragmented free memory is when the run starts.
    pub fragmentation: Fragmentation,
    /// The seed of all randomness in the run.
    pub seed: Seed,
}

impl Settings {
    /// Linux 6 on x86 as Debian builds it: HZ 250, queued spin locks, lazy preemption (its default
    /// since 6.18), idle CPUs without a tick in `mwait`, and high-resolution sleep timers, to a
    /// microsecond here. Memory is laid out as in [`Settings::linux24`], so that schedulers can be
    /// compared.
    ///
    /// A packet writes some 15 lines of a socket: nine of a `tcp_sock` in the groups of
    /// `Documentation/networking/net_cachelines/tcp_sock.rst` that are written, and those of
    /// `struct sock` with its lock, its queues, what its memory comes to, and whom it wakes. A pipe
    /// has three (`struct pipe_inode_info`: mutex, wait queues, head and tail) and the one of the
    /// `struct pipe_buffer` in use; a Unix socket three of the receiver (the lock of `struct
    /// unix_sock`, the queue with its lock, the wait queue) and the sender's `sk_wmem_alloc`.
    pub fn linux6(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(4),
            skewed_ticks: false,
            drawn_ticks: false,
            timer_resolution: Duration::from_us(1),
            preemption: Preemption::Lazy,
            idle_loop: IdleLoop::Poll,
            nohz: true,
            sync_socket_wakeups: true,
            interrupts_move: Some(IRQ_BALANCE),
            datagram_buffer: Bytes(212_992),
            loopback: Loopback::LINUX_6,
            socket_lines: 15,
            pipe_lines: 4,
            throttling: Throttling::Tasks,
            staggered_periods: true,
            softirqs: SoftirqLimits::LINUX_6,
            locks: LockKind::Queued,
            semaphore_locks: SemaphoreLocks::OneForEachSet,
            semaphores_hand_over: true,
            ..Settings::linux24(seed)
        }
    }

    /// Linux 2.6.16 on x86 as Fedora Core 5 builds it: HZ 250, sleeps in whole jiffies, voluntary
    /// preemption, the tick never stops, idle CPUs in `mwait`, and the default receive buffer of
    /// its sockets. Locks and memory as in [`Settings::linux24`].
    pub fn linux2616(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(4),
            timer_resolution: Duration::from_ms(4),
            tick_charges_interrupts: true,
            receive_charge: ReceiveCharge::With {
                sk_buff: SK_BUFF_I386,
            },
            e100_last_poll: LastPoll::Empty,
            preemption: Preemption::Voluntary,
            idle_loop: IdleLoop::Poll,
            interrupts_move: Some(IRQ_BALANCE),
            softirqs: SoftirqLimits::LINUX_2_6_16,
            semaphore_locks: SemaphoreLocks::OneForEachSet,
            semaphores_hand_over: true,
            stream_buffer: Bytes(107_520),
            datagram_buffer: Bytes(107_520),
            ..Settings::linux24(seed)
        }
    }

    /// Linux 2.6.4 on x86: HZ 1000 and no preemption in the kernel, else as
    /// [`Settings::linux2616`]. Who waits for a semaphore tries again. That its softirqs have the
    /// limits of 2.6.16, and that it was built without preemption: assumed. The lines of a socket
    /// are calibrated on the seconds of table 1 of the affinity paper; a `tcp_sock` has some 15
    /// lines of 64 bytes, and they stand for all that a packet passes: buffers, routes, wait
    /// queues.
    pub fn linux264(seed: Seed) -> Settings {
        Settings {
            preemption: Preemption::None,
            loopback: Loopback::LINUX_2_6_4,
            semaphores_hand_over: false,
            socket_lines: 30,
            ..Settings::linux2616(seed).at_hz(1_000)
        }
    }

    /// Linux 2.6.24 on x86 as Fedora builds it: HZ 250, voluntary preemption, high-resolution sleep
    /// timers, to a microsecond here, spin locks of one byte, a tick also on idle CPUs, which halt,
    /// and the receive buffer of 2.6.16. Memory is laid out as in [`Settings::linux24`].
    pub fn linux2624(seed: Seed) -> Settings {
        let older = Settings::linux24(seed);
        Settings {
            timer_resolution: Duration::from_us(1),
            e100_last_poll: older.e100_last_poll,
            idle_loop: older.idle_loop,
            softirqs: SoftirqLimits::LINUX_2_6_24,
            ..Settings::linux2616(seed)
        }
    }

    /// The same at another `hz`. A kernel that counts the ends of sleeps and the time of the
    /// receive softirq in jiffies goes on doing so: both stay as many of them.
    pub fn at_hz(self, hz: u64) -> Settings {
        let tick = Duration::from_s(1) / hz.max(1);
        let jiffies = |span: Duration| match span < self.tick {
            true => span,
            false => tick * (span.0 / self.tick.0.max(1)),
        };
        Settings {
            tick,
            timer_resolution: jiffies(self.timer_resolution),
            softirqs: SoftirqLimits {
                packets_time: self.softirqs.packets_time.in_jiffies_of(self.tick, tick),
                ..self.softirqs
            },
            ..self
        }
    }

    /// Linux 2.4 on x86: HZ 100, spin locks of one byte, 8 KB blocks, 64 KB socket buffers, a
    /// machine that has been up for a long time.
    pub fn linux24(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(10),
            skewed_ticks: true,
            drawn_ticks: false,
            timer_resolution: Duration::from_ms(10),
            tick_charges_interrupts: false,
            preemption: Preemption::None,
            idle_loop: IdleLoop::Halt,
            nohz: false,
            sync_socket_wakeups: false,
            interrupts_move: None,
            softirqs: SoftirqLimits::LINUX_2_4,
            block: Bytes::from_kb(8),
            stream_buffer: Bytes::from_kb(64),
            datagram_buffer: Bytes::from_kb(64),
            loopback: Loopback::BEFORE_LINUX_6,
            receive_charge: ReceiveCharge::Before,
            e100_last_poll: LastPoll::BelowWeight,
            socket_lines: 0,
            pipe_lines: 0,
            throttling: Throttling::Pool,
            bandwidth_slice: Duration::from_ms(5),
            staggered_periods: false,
            semaphore_locks: SemaphoreLocks::OneForAll,
            semaphores_hand_over: false,
            locks: LockKind::TestAndSet,
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

warmq_units::named! {
    /// How a kernel's spin locks work.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum LockKind {
        /// `lock decb` until it finds the lock free (Linux on x86 up to 2.6.24). Unfair: of the
        /// CPUs that spin, the one that the bus serves first wins.
        #[default]
        TestAndSet = "test-and-set",
        /// Each CPU waits on a line of its own, only the first in the queue on the lock's word
        /// (since 4.2). First come, first served.
        Queued = "queued",
    }
}

/// The longest segment that is not acknowledged when it comes, as the receiver takes it for less
/// than a whole one (`TCP_MIN_RCVMSS`, `__tcp_ack_snd_check()`), in bytes.
pub(crate) const SHORT: u64 = 536;

/// A full segment on Ethernet with TCP time stamps.
pub(crate) const SEGMENT: u64 = 1_448;
