//! Events of a bundle, in the order of time.

use std::collections::VecDeque;

use warmq_trace::perfetto::messages::{Bundle, Compact, Event as Ftrace, Number};
use warmq_trace::{Interrupt, State};
use warmq_units::CpuId;

use crate::decode::context;
use crate::event::{Event, Item, Name, Other, Said, Thread, What};
use crate::paths::{Paths, aside};

/// Bits of `common_flags`, and of `prev_state` (since Linux 4.14; before, the first bits meant the
/// same).
const HARDIRQ: u32 = 0x08;
const SOFTIRQ: u32 = 0x10;
const STATES: [(i64, State); 7] = [
    (0x30, State::Dead),
    (0x01, State::Interruptible),
    (0x02, State::Uninterruptible),
    (0x0c, State::Stopped),
    (0x80, State::IdleThread),
    (0x40, State::Other),
    // From here on bits say that it was preempted.
    (0, State::Runnable),
];

/// What runs on a CPU, as far as its switches said: columns do not say whom a switch is from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs(Option<Thread>);

/// What a bundle says, each with its time. `other` counts events that are not read.
pub(super) fn of(
    bundle: &Bundle,
    cpu: CpuId,
    runs: &mut Runs,
    paths: &mut Paths,
    others: &mut u64,
) -> VecDeque<(u64, Item)> {
    let mut all: Vec<(u64, Raw<'_>)> = Vec::new();
    if let Some(compact) = &bundle.compact {
        wakings(compact, &mut all);
    }
    for event in &bundle.events {
        all.push((event.timestamp.unwrap_or(0), Raw::Event(event)));
    }
    if let Some(compact) = &bundle.compact {
        switches(compact, &mut all);
    }
    all.sort_by_key(|(ns, _)| *ns);
    let mut said = VecDeque::with_capacity(all.len() + 1);
    if bundle.lost_events == Some(true) {
        *runs = Runs::default();
        let at = all.first().map_or(0, |(ns, _)| *ns);
        said.push_back((at, Item::Lost(0)));
    }
    for (ns, raw) in all {
        let mut groups = VecDeque::new();
        let event = raw.event((ns, cpu), runs, paths, &mut groups);
        said.extend(groups.into_iter().map(|said: Said| (said.ns, said.item)));
        match event {
            Some(event) => {
                if let What::Switch { next, .. } = event.what {
                    runs.0 = Some(next);
                }
                said.push_back((ns, Item::Event(event)));
            }
            None => *others += 1,
        }
    }
    said
}

/// An event of one of the three kinds in which a bundle has them.
#[derive(Clone, Copy)]
enum Raw<'a> {
    Event(&'a Ftrace),
    Switch { state: i64, next: Thread },
    Waking { thread: Thread, flags: u32 },
}

/// The times of a column of differences.
fn times(column: &[u64]) -> impl Iterator<Item = u64> {
    column.iter().scan(0_u64, |time, difference| {
        *time = time.wrapping_add(*difference);
        Some(*time)
    })
}

fn name(names: &[Vec<u8>], index: Option<&u32>) -> Name {
    let name = index.and_then(|index| names.get(*index as usize));
    Name::new(name.map_or(&[], Vec::as_slice))
}

fn switches<'a>(compact: &Compact, all: &mut Vec<(u64, Raw<'a>)>) {
    let pids = compact.switch_next_pid.iter();
    for (index, (ns, pid)) in times(&compact.switch_timestamp).zip(pids).enumerate() {
        let priority = compact.switch_next_prio.get(index);
        let next = Thread {
            tid: pid.cast_unsigned(),
            comm: name(&compact.names, compact.switch_next_name.get(index)),
            priority: priority.map(|priority| *priority as i16),
        };
        let state = compact.switch_prev_state.get(index).copied().unwrap_or(0);
        all.push((ns, Raw::Switch { state, next }));
    }
}

fn wakings<'a>(compact: &Compact, all: &mut Vec<(u64, Raw<'a>)>) {
    let pids = compact.waking_pid.iter();
    for (index, (ns, pid)) in times(&compact.waking_timestamp).zip(pids).enumerate() {
        let priority = compact.waking_prio.get(index);
        let thread = Thread {
            tid: pid.cast_unsigned(),
            comm: name(&compact.names, compact.waking_name.get(index)),
            priority: priority.map(|priority| *priority as i16),
        };
        let flags = compact.waking_flags.get(index).copied().unwrap_or(0);
        all.push((ns, Raw::Waking { thread, flags }));
    }
}

impl Raw<'_> {
    fn event(
        self,
        at: (u64, CpuId),
        runs: &Runs,
        paths: &mut Paths,
        groups: &mut VecDeque<Said>,
    ) -> Option<Event> {
        let (tid, flags, what) = match self {
            Raw::Event(event) => {
                let flags = event.common_flags.unwrap_or(0);
                (event.pid, flags, what(event, at, paths, groups)?)
            }
            Raw::Switch { state, next } => {
                let what = What::Switch {
                    prev: runs.0.unwrap_or_default(),
                    state: state_of(state),
                    next,
                };
                (runs.0.map(|thread| thread.tid), 0, what)
            }
            Raw::Waking { thread, flags } => {
                (runs.0.map(|thread| thread.tid), flags, What::Waking(thread))
            }
        };
        let has = |bit: u32| flags & bit != 0;
        Some(Event {
            tid,
            context: context(has(HARDIRQ), has(SOFTIRQ), tid.unwrap_or(0)),
            what,
        })
    }
}

fn state_of(bits: i64) -> State {
    let state = STATES.iter().find(|(bit, _)| *bit == 0 || bits & bit != 0);
    state.map_or(State::Runnable, |(_, state)| *state)
}

fn thread(pid: Option<i32>, comm: Option<&Vec<u8>>, priority: Option<i32>) -> Option<Thread> {
    Some(Thread {
        tid: pid?.cast_unsigned(),
        comm: Name::new(comm.map_or(&[], Vec::as_slice)),
        priority: priority.map(|priority| priority as i16),
    })
}

fn cpu_of(cpu: Option<i32>) -> Option<u16> {
    u16::try_from(cpu?).ok()
}

/// What happened by an event; `None` if it is not read.
fn what(
    event: &Ftrace,
    at: (u64, CpuId),
    paths: &mut Paths,
    groups: &mut VecDeque<Said>,
) -> Option<What> {
    if let Some(one) = &event.sched_switch {
        return Some(What::Switch {
            prev: thread(one.prev_pid, one.prev_comm.as_ref(), one.prev_prio)?,
            state: state_of(one.prev_state.unwrap_or(0)),
            next: thread(one.next_pid, one.next_comm.as_ref(), one.next_prio)?,
        });
    }
    if let Some(one) = &event.sched_waking {
        return thread(one.pid, one.comm.as_ref(), one.prio).map(What::Waking);
    }
    let woken = event.sched_wakeup.as_ref().map(|one| (one, false));
    if let Some((one, first)) = woken.or(event.sched_wakeup_new.as_ref().map(|one| (one, true))) {
        return Some(What::Wakeup {
            thread: thread(one.pid, one.comm.as_ref(), one.prio)?,
            target: cpu_of(one.target_cpu)?,
            first,
        });
    }
    if let Some(one) = &event.sched_migrate_task {
        return Some(What::Migrate {
            thread: thread(one.pid, one.comm.as_ref(), one.prio)?,
            from: cpu_of(one.orig_cpu)?,
            to: cpu_of(one.dest_cpu)?,
        });
    }
    of_tasks(event, at, paths, groups).or_else(|| of_interrupts(event))
}

fn of_tasks(
    event: &Ftrace,
    at: (u64, CpuId),
    paths: &mut Paths,
    groups: &mut VecDeque<Said>,
) -> Option<What> {
    if let Some(one) = &event.sched_process_fork {
        return Some(What::Fork {
            parent: thread(one.parent_pid, one.parent_comm.as_ref(), None)?,
            child: thread(one.child_pid, one.child_comm.as_ref(), None)?,
        });
    }
    if let Some(one) = &event.task_newtask {
        let child = thread(one.pid, one.comm.as_ref(), None)?;
        const CLONE_THREAD: u64 = 0x10000;
        let is_process = one.clone_flags.unwrap_or(0) & CLONE_THREAD == 0;
        if is_process {
            let (thread, tgid) = (child, child.tid);
            groups.push_back(aside(at, What::Process { thread, tgid }));
        }
        return Some(What::Fork {
            parent: Thread::of(event.pid?),
            child,
        });
    }
    if let Some(one) = &event.sched_process_exec {
        let (tid, old) = (one.pid?.cast_unsigned(), one.old_pid?.cast_unsigned());
        return Some(What::Exec { tid, old });
    }
    if let Some(one) = &event.task_rename {
        let pid = one.pid.or(event.pid.map(u32::cast_signed));
        return thread(pid, one.newcomm.as_ref(), None).map(What::Renamed);
    }
    if let Some(one) = &event.cgroup_attach_task {
        let group = paths.number(one.dst_path.as_deref()?, at, groups);
        let tid = one.pid?.cast_unsigned();
        return Some(What::Grouped { tid, group });
    }
    event.sched_process_exit.as_ref()?;
    Some(What::Other(Other::Exit))
}

fn of_interrupts(event: &Ftrace) -> Option<What> {
    let number = |one: &Option<Number>| Some(one.as_ref()?.number.unwrap_or(0));
    let line = |one| Some(Interrupt::Line(u16::try_from(number(one)?).ok()?));
    let softirq = |one| Some(Interrupt::softirq(u8::try_from(number(one)?).ok()?));
    let enters = softirq(&event.softirq_entry).or_else(|| line(&event.irq_handler_entry));
    let leaves = softirq(&event.softirq_exit).or_else(|| line(&event.irq_handler_exit));
    if let Some(what) = enters.map(What::Enter).or(leaves.map(What::Leave)) {
        return Some(what);
    }
    event.cpu_idle.as_ref()?.state.map(What::idle)
}
