//! Events out of what is printed of them: as the kernel prints them, or as trace-cmd's and perf's
//! plugins do, or field by field (`trace-cmd report -R`).
//!
//! ```text
//!     prev_comm=a b prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c next_pid=2 next_prio=120
//!     a b:1 [120] S ==> c:2 [120]
//!     prev_comm=a b prev_pid=1 prev_prio=120 prev_state=1 next_comm=c next_pid=2 next_prio=120
//! ```

use warmq_trace::{Interrupt, State};

use super::values::Values;
use crate::convert::VECTORS;
use crate::decode::{States, state_of};
use crate::event::{Name, Other, Thread, What, edge};

/// An event that is read.
pub(super) enum Known<'a> {
    /// As all others.
    Event(What),
    /// A thread is in the group at this path.
    Grouped { tid: u32, path: &'a str },
}

/// What happened by event `name`, of which `values` are printed, while `here` runs; `None` if it
/// says nothing of scheduling, or cannot be read.
pub(super) fn of<'a>(name: &str, text: &'a str, here: Option<u32>) -> Option<Known<'a>> {
    let values = Values(text);
    let what = match name {
        "sched_switch" => switch(text)?,
        "sched_waking" => What::Waking(thread(text)?.0),
        "sched_wakeup" | "sched_wakeup_new" => {
            let (thread, rest) = thread(text)?;
            What::Wakeup {
                thread,
                target: target(rest)?,
                first: name.ends_with("_new"),
            }
        }
        "sched_migrate_task" => What::Migrate {
            thread: thread(text)?.0,
            from: values.number("orig_cpu")?,
            to: values.number("dest_cpu")?,
        },
        "sched_process_fork" => What::Fork {
            parent: of_keys(values, OWN).or_else(|| of_keys(values, PARENT))?,
            child: of_keys(values, CHILD)?,
        },
        "sched_process_exec" => What::Exec {
            tid: values.number("pid")?,
            old: values.number("old_pid")?,
        },
        "task_rename" => What::Renamed(Thread {
            comm: Name::new(values.between("newcomm", "oom_score_adj")?.as_bytes()),
            ..Thread::of(values.number("pid").or(here)?)
        }),
        "cgroup_attach_task" => {
            let (tid, path) = (values.number("pid")?, values.word("dst_path")?);
            return Some(Known::Grouped { tid, path });
        }
        "ipi_send_cpu" => match values.word("callback")?.trim_start_matches("0x") {
            zero if zero.bytes().all(|byte| byte == b'0') => What::RescheduleSent {
                to: values.number("cpu")?,
            },
            _ => return None,
        },
        "cpu_idle" => What::idle(values.number("state")?),
        "netif_receive_skb" => What::Packet {
            bytes: values.number("len")?,
        },
        "sched_process_exit" => What::Other(Other::Exit),
        "sched_stat_runtime" => What::Other(Other::Runtime),
        "irq_disable" | "irq_enable" => What::Other(Other::InterruptsOff),
        _ => interrupt(name, values)?,
    };
    Some(Known::Event(what))
}

fn interrupt(name: &str, values: Values<'_>) -> Option<What> {
    let (name, happens) = edge(name)?;
    let interrupt = match name {
        "irq_handler" => Interrupt::Line(values.number("irq")?),
        "softirq" => Interrupt::softirq(values.number("vec")?),
        "local_timer" => Interrupt::Timer,
        "reschedule" => Interrupt::Reschedule,
        "call_function"
        | "call_function_single"
        | "irq_work"
        | "thermal_apic"
        | "x86_platform_ipi" => {
            Interrupt::Line(VECTORS | values.number::<u8>("vector").map_or(0, u16::from))
        }
        _ => return None,
    };
    Some(happens(interrupt))
}

/// A switch, printed in any of these ways. Names may have anything: the arrow is the last one.
fn switch(text: &str) -> Option<What> {
    let (prev, state, next) = match (text.starts_with("prev_comm="), text.rsplit_once(" ==> ")) {
        (true, Some((prev, next))) => {
            let (before, after) = (Values(prev), Values(next));
            let state = state_from(before.word("prev_state")?)?;
            (of_keys(before, PREV)?, state, of_keys(after, NEXT)?)
        }
        (true, None) => {
            let fields = Values(text);
            let state = States::usual().state(fields.number("prev_state")?);
            (of_keys(fields, PREV)?, state, of_keys(fields, NEXT)?)
        }
        (false, arrow) => {
            let (prev, next) = arrow?;
            let (prev, state) = of_plugin(prev)?;
            let state = state_from(state.split(' ').next()?)?;
            (prev, state, of_plugin(next)?.0)
        }
    };
    Some(What::Switch { prev, state, next })
}

/// `S`, `D|K`, `R+`, `R`.
fn state_from(text: &str) -> Option<State> {
    match text.get(..1)? {
        "R" => Some(State::Runnable),
        letter => Some(state_of(letter)),
    }
}

/// A thread, printed in either way, and what follows it.
fn thread(text: &str) -> Option<(Thread, &str)> {
    match text.starts_with("comm=") {
        true => Some((of_keys(Values(text), OWN)?, text)),
        false => of_plugin(text),
    }
}

/// The keys of a thread: its name, id and priority.
struct Keys(&'static str, &'static str, &'static str);

const OWN: Keys = Keys("comm", "pid", "prio");
const PREV: Keys = Keys("prev_comm", "prev_pid", "prev_prio");
const NEXT: Keys = Keys("next_comm", "next_pid", "next_prio");
const PARENT: Keys = Keys("parent_comm", "parent_pid", "parent_prio");
const CHILD: Keys = Keys("child_comm", "child_pid", "child_prio");

/// `comm=a b pid=1 prio=120`, by these keys.
fn of_keys(values: Values<'_>, Keys(comm, pid, priority): Keys) -> Option<Thread> {
    Some(Thread {
        comm: Name::new(values.between(comm, pid)?.as_bytes()),
        tid: values.number(pid)?,
        priority: values.number(priority),
    })
}

/// `a b:1 [120] rest`.
fn of_plugin(text: &str) -> Option<(Thread, &str)> {
    // What follows the priority has no bracket but that of `<CPU:001>` and the like.
    let open = text.rfind(" [")?;
    let (named, rest) = (&text[..open], &text[open + 2..]);
    let (priority, rest) = rest.split_once(']')?;
    let (comm, tid) = named.rsplit_once(':')?;
    let thread = Thread {
        tid: tid.parse().ok()?,
        comm: Name::new(comm.as_bytes()),
        priority: priority.parse().ok(),
    };
    Some((thread, rest.trim_start()))
}

/// `target_cpu=001`, `CPU:001` or `<CPU:001>`.
fn target(text: &str) -> Option<u16> {
    if let Some(cpu) = Values(text).number("target_cpu") {
        return Some(cpu);
    }
    let (_, cpu) = text.rsplit_once("CPU:")?;
    cpu.trim_end_matches('>').trim().parse().ok()
}
