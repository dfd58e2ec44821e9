//! What the kernel's own work costs on a machine, in cycles, each with a source.

use std::collections::BTreeMap;
use std::fmt;

use warmq_machine::description::Cost;
use warmq_units::{Cycles, Duration, Hertz};

/// The cost table of one kernel on one machine.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    table: BTreeMap<String, Cost>,
}

/// A cost that the machine's table lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCost {
    /// The name that was looked up.
    pub name: String,
}

impl fmt::Display for UnknownCost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the machine gives no cost `{}`: ", self.name)?;
        write!(
            formatter,
            "add `{} = {{ cycles = N, source = \"...\" }}` to its costs",
            self.name
        )
    }
}

impl std::error::Error for UnknownCost {}

impl Costs {
    /// The costs as a machine's description carries them.
    pub fn new(table: BTreeMap<String, Cost>) -> Costs {
        Costs { table }
    }

    /// A table in which every cost is zero, for tests of pure policy.
    pub fn free() -> Costs {
        let cost = || Cost {
            cycles: Cycles(0),
            source: "none: a test of policy".to_owned(),
        };
        let names = KERNEL_COSTS.iter().chain(SCHEDULER_COSTS);
        Costs {
            table: names
                .map(|(name, _)| ((*name).to_owned(), cost()))
                .collect(),
        }
    }

    /// The cost `name`.
    pub fn get(&self, name: &str) -> Result<Cycles, UnknownCost> {
        let unknown = || UnknownCost {
            name: name.to_owned(),
        };
        self.table
            .get(name)
            .map(|cost| cost.cycles)
            .ok_or_else(unknown)
    }

    /// All costs, by name.
    pub fn table(&self) -> &BTreeMap<String, Cost> {
        &self.table
    }
}

/// The costs that the kernel itself looks up, and what each covers.
pub const KERNEL_COSTS: &[(&str, &str)] = &[
    (
        "access",
        "what a program's access to memory takes besides the caches: an address is drawn, a counter goes up",
    ),
    ("system_call", "entering and leaving the kernel"),
    (
        "context_switch",
        "switching registers and stacks, after the pick",
    ),
    (
        "mm_switch",
        "loading another page table, and the TLB misses that follow",
    ),
    ("interrupt_entry", "from the interrupt to its handler"),
    (
        "interrupt_exit",
        "from the handler to where the kernel may switch to another task",
    ),
    (
        "interrupt_return",
        "from the kernel back to the user code that was interrupted, after any switch",
    ),
    (
        "timer_program",
        "programming the timer for the next expiry, after those that have expired",
    ),
    (
        "timer_tick",
        "the timer's handler, without the scheduler's part",
    ),
    (
        "reschedule_interrupt",
        "sending a reschedule interrupt to another CPU",
    ),
    ("network_packet", "driver and protocol work on one packet"),
    ("accept", "accepting a connection from a listening socket"),
    (
        "stream_packet",
        "protocol work on one packet of a stream to this machine, out and in",
    ),
    (
        "stream_call",
        "a send or a receive on a stream to this machine besides socket_send or socket_receive: its lock, its queues",
    ),
    ("socket_send", "a send, without packets and copying"),
    ("socket_receive", "a receive, without copying"),
    (
        "copy_per_line",
        "copying one cache line, without its misses",
    ),
    ("fork", "creating a task"),
    ("exit", "ending a task"),
    (
        "lock_uncontended",
        "locking or unlocking an uncontended mutex",
    ),
    (
        "idle_poll",
        "until a CPU that polls in idle notices that it should reschedule",
    ),
    (
        "nohz_exit",
        "restarting a stopped tick on the way out of idle",
    ),
];

/// The costs that schedulers look up.
pub const SCHEDULER_COSTS: &[(&str, &str)] = &[
    (
        "schedule_fixed",
        "schedule(), without the walk over the run queue",
    ),
    (
        "goodness",
        "one visit of the walk: tests and goodness(), without its misses",
    ),
    ("recalculate_per_task", "a new time slice for one task"),
    ("wakeup", "try_to_wake_up(), without its misses"),
    (
        "hrtick_start",
        "arming the timer that ends a slice, by kernels that have one",
    ),
    (
        "current_colored",
        "the extra cost of computing `current` with colors",
    ),
];

/// The kernel's costs as times, looked up once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) access: Cycles,
    pub(crate) system_call: Duration,
    pub(crate) context_switch: Duration,
    pub(crate) mm_switch: Duration,
    pub(crate) interrupt_entry: Duration,
    pub(crate) interrupt_exit: Duration,
    pub(crate) interrupt_return: Duration,
    pub(crate) timer_program: Duration,
    pub(crate) timer_tick: Duration,
    pub(crate) reschedule_interrupt: Duration,
    pub(crate) network_packet: Duration,
    pub(crate) stream_packet: Duration,
    pub(crate) stream_call: Duration,
    pub(crate) accept: Duration,
    pub(crate) socket_send: Duration,
    pub(crate) socket_receive: Duration,
    pub(crate) copy_per_line: Cycles,
    pub(crate) fork: Duration,
    pub(crate) exit: Duration,
    pub(crate) lock_uncontended: Duration,
    pub(crate) idle_poll: Duration,
    pub(crate) nohz_exit: Duration,
}

impl Times {
    pub(crate) fn new(costs: &Costs, clock: Hertz) -> Result<Times, UnknownCost> {
        let time = |name| costs.get(name).map(|cycles| clock.time_of(cycles));
        Ok(Times {
            access: costs.get("access")?,
            system_call: time("system_call")?,
            context_switch: time("context_switch")?,
            mm_switch: time("mm_switch")?,
            interrupt_entry: time("interrupt_entry")?,
            interrupt_exit: time("interrupt_exit")?,
            interrupt_return: time("interrupt_return")?,
            timer_program: time("timer_program")?,
            timer_tick: time("timer_tick")?,
            reschedule_interrupt: time("reschedule_interrupt")?,
            network_packet: time("network_packet")?,
            stream_packet: time("stream_packet")?,
            stream_call: time("stream_call")?,
            accept: time("accept")?,
            socket_send: time("socket_send")?,
            socket_receive: time("socket_receive")?,
            copy_per_line: costs.get("copy_per_line")?,
            fork: time("fork")?,
            exit: time("exit")?,
            lock_uncontended: time("lock_uncontended")?,
            idle_poll: time("idle_poll")?,
            nohz_exit: time("nohz_exit")?,
        })
    }
}
