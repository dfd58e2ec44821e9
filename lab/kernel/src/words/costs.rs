//! What the kernel's own work costs on a machine, in cycles, each with a source.

use std::collections::BTreeMap;

use warmq_machine::description::Cost;
use warmq_units::{Cycles, Duration, Hertz};

/// The cost table of one kernel on one machine.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    table: BTreeMap<String, Cost>,
}

/// A cost that the machine's table lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the machine gives no cost `{name}`: add `{name} = {{ cycles = N, source = \"...\" }}` to its \
     costs"
)]
pub struct UnknownCost {
    /// The name that was looked up.
    pub name: String,
}

impl Costs {
    /// The costs as a machine's description carries them.
    pub fn new(table: BTreeMap<String, Cost>) -> Costs {
        Costs { table }
    }

    /// A table in which every cost is zero, for tests of pure policy.
    pub fn free() -> Costs {
        let free = Cost {
            cycles: Cycles(0),
            source: "none: a test of policy".to_owned(),
        };
        let derived = |name: &str| DERIVED.iter().any(|(derived, _)| *derived == name);
        let names = OF_SCHEDULERS.iter().chain(OF_TIMES);
        let names = names.filter(|name| !derived(name));
        let table = names.map(|name| ((*name).to_owned(), free.clone()));
        Costs {
            table: table.collect(),
        }
    }

    /// The cost `name`.
    pub fn get(&self, name: &str) -> Result<Cycles, UnknownCost> {
        if let Some(cost) = self.table.get(name) {
            return Ok(cost.cycles);
        }
        match DERIVED.iter().find(|(derived, _)| *derived == name) {
            Some((_, Some(other))) => self.get(other),
            Some((_, None)) => Ok(Cycles(0)),
            None => Err(UnknownCost {
                name: name.to_owned(),
            }),
        }
    }

    /// All costs, by name.
    pub fn table(&self) -> &BTreeMap<String, Cost> {
        &self.table
    }
}

/// What schedulers look up:
///
/// - `schedule_fixed`: `schedule()`, without the walk over the run queue;
/// - `goodness`: one visit of the walk: tests and `goodness()`, without its misses;
/// - `recalculate_per_task`: a new time slice for one task;
/// - `wakeup`: `try_to_wake_up()`, without its misses;
/// - `hrtick_start`: arming the timer that ends a slice, by kernels that have one;
/// - `hundred_instructions`: 100 instructions of the kernel that are counted, besides memory;
/// - `current_colored`: the extra cost of computing `current` with colors.
const OF_SCHEDULERS: &[&str] = &[
    "schedule_fixed",
    "goodness",
    "recalculate_per_task",
    "wakeup",
    "hrtick_start",
    "hundred_instructions",
    "current_colored",
];

/// Costs that machines need not give, and the cost that stands for each: a message through a Unix
/// socket takes as much as a call of a stream does besides its packets (0.53 and 0.46 us were
/// measured on one machine); a call of a futex takes nothing besides `system_call`, what page
/// faults of a new process take is in `exit`, and all address spaces are loaded in the same time.
const DERIVED: [(&str, Option<&str>); 4] = [
    ("unix_message", Some("stream_call")),
    ("futex", None),
    ("mm_refill", None),
    ("fork_faults", None),
];

/// A cost that only machines have whose idle CPUs halt under any kernel, as those of hypervisors
/// without `mwait` do.
const HALT_EXIT: &str = "halt_exit";

/// Declares what the engine looks up: the cost of each row, as a time or in cycles.
macro_rules! times {
    (Cycles $cycles:expr, $clock:expr) => { $cycles };
    (Duration $cycles:expr, $clock:expr) => { $clock.time_of($cycles) };
    ($($(#[$doc:meta])* $cost:ident: $of:ident,)*) => {
        /// The kernel's costs as times, looked up once under the names of the fields.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Times {
            $($(#[$doc])* pub(crate) $cost: $of,)*
            /// From an interrupt of an idle CPU that halts to its first instruction. `None`: idle
            /// CPUs do as the kernel's settings say.
            pub(crate) halt_exit: Option<Duration>,
        }

        /// The names of these, but for `halt_exit`.
        const OF_TIMES: &[&str] = &[$(stringify!($cost)),*];

        impl Times {
            pub(crate) fn new(costs: &Costs, clock: Hertz) -> Result<Times, UnknownCost> {
                let halt_exit = costs.get(HALT_EXIT).ok();
                Ok(Times {
                    $($cost: times!($of costs.get(stringify!($cost))?, clock),)*
                    halt_exit: halt_exit.map(|cycles| clock.time_of(cycles)),
                })
            }
        }
    };
}

times! {
    /// What a program's access to memory takes besides the caches: an address is drawn, a counter
    /// goes up.
    access: Cycles,
    /// Entering and leaving the kernel.
    system_call: Duration,
    /// Switching registers and stacks, after the pick.
    context_switch: Duration,
    /// Loading another page table, and the TLB misses that follow.
    mm_switch: Duration,
    /// The same besides, where it is that of none of the last six address spaces of the CPU.
    mm_refill: Duration,
    /// From the interrupt to its handler.
    interrupt_entry: Duration,
    /// From the handler to where the kernel may switch to another task.
    interrupt_exit: Duration,
    /// From the kernel back to the user code that was interrupted, after any switch.
    interrupt_return: Duration,
    /// Programming the timer for the next expiry, after those that have expired.
    timer_program: Duration,
    /// The timer's handler, without the scheduler's part.
    timer_tick: Duration,
    /// Sending a reschedule interrupt to another CPU.
    reschedule_interrupt: Duration,
    /// Driver and protocol work on one packet.
    network_packet: Duration,
    /// Protocol work on one packet of a stream to this machine, out and in.
    stream_packet: Duration,
    /// A send or a receive on a stream to this machine besides socket_send or socket_receive: its
    /// lock, its queues.
    stream_call: Duration,
    /// A message through a Unix socket, its `sk_buff` allocated and queued, or taken out and freed:
    /// a send besides `socket_send`, a receive besides `socket_receive`.
    unix_message: Duration,
    /// A wait or a wakeup in a futex besides `system_call`: its bucket is found and locked.
    futex: Duration,
    /// Accepting a connection from a listening socket.
    accept: Duration,
    /// A send, without packets and copying.
    socket_send: Duration,
    /// A receive, without copying.
    socket_receive: Duration,
    /// Copying one cache line, without its misses.
    copy_per_line: Cycles,
    /// Creating a task.
    fork: Duration,
    /// Page faults of a new process as it begins.
    fork_faults: Duration,
    /// Ending a task.
    exit: Duration,
    /// Locking or unlocking an uncontended mutex.
    lock_uncontended: Duration,
    /// Until a CPU that polls in idle notices that it should reschedule.
    idle_poll: Duration,
    /// Restarting a stopped tick on the way out of idle.
    nohz_exit: Duration,
}
