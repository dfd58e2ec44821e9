//! Programs that the kernel runs at events of its own: tracepoints and functions.

use warmq_bpf::Image;
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::run_queue::Machine;
use crate::words::state;

/// What happens, and with which arguments a program at it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// `(preempt, prev, next, prev_state)`, of tasks or none: the idle one.
    Switch(Option<TaskId>, Option<TaskId>),
    /// `(task)`, before it has a CPU.
    Waking(TaskId),
    /// `(task)`, on a run queue.
    Wakeup(TaskId),
    /// `(task)`, of a new one.
    WakeupNew(TaskId),
    /// `(task, cpu)`.
    Migrate(TaskId, CpuId),
    /// `(parent, child)`.
    Fork(Option<TaskId>, TaskId),
    /// `(task, old_pid, bprm)`.
    Exec(TaskId),
    /// `(task, group_dead)`.
    Exit(TaskId),
    /// `(rq)`.
    Tick,
}

/// Events at which programs run here, as their sections name them.
const NAMES: [&str; 9] = [
    "tp_btf/sched_switch",
    "tp_btf/sched_waking",
    "tp_btf/sched_wakeup",
    "tp_btf/sched_wakeup_new",
    "tp_btf/sched_migrate_task",
    "tp_btf/sched_process_fork",
    "tp_btf/sched_process_exec",
    "tp_btf/sched_process_exit",
    "fentry/scx_tick",
];

/// The places of those in [`NAMES`] for which something is kept only if a program asks.
pub(crate) const MIGRATE: usize = 4;
pub(crate) const TICK: usize = 8;

/// The one by which tasks name their data, for those whose profile says so.
const PRCTL: &str = "fmod_ret/security_task_prctl";

/// Events of devices and of system calls that no task of the lab makes. A program at one of them
/// would not run in a kernel either, were it to do what the lab plays. `bpf_scx_reg` is called by
/// no scheduler: whoever attaches to it only finds out whether that can be done.
const NEVER: &[&str] = &[
    "fentry/bpf_scx_reg",
    "fentry/cpuset_write_resmask",
    "kprobe/generic",
    "kprobe/nvidia_",
    "tp_btf/irq_handler_",
    "tp_btf/task_rename",
    "tracepoint/syscalls/sys_enter_execve",
];

/// What the lab does with programs at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEvent {
    /// It runs them.
    Runs,
    /// It never happens here.
    Never,
    /// It happens, and they are not run.
    LeftOut,
}

impl AtEvent {
    /// Of an event, as the section of a program names it.
    pub fn of(event: &str) -> AtEvent {
        match event {
            _ if offered().any(|name| name == event) => AtEvent::Runs,
            _ if NEVER.iter().any(|name| event.starts_with(name)) => AtEvent::Never,
            _ => AtEvent::LeftOut,
        }
    }
}

/// All events at which programs run.
pub(crate) fn offered() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().chain([PRCTL])
}

/// The functions at each of [`NAMES`].
#[derive(Clone, Debug, Default)]
pub(crate) struct AtEvents {
    functions: [Vec<u32>; NAMES.len()],
}

impl AtEvents {
    pub(crate) fn of(image: &Image) -> AtEvents {
        let mut all = AtEvents::default();
        for program in image.programs.iter().filter(|program| !program.optional) {
            let event = program.kind.event();
            let at = NAMES
                .iter()
                .position(|name| Some(*name) == event.as_deref());
            if let Some(at) = at {
                all.functions[at].push(program.function);
            }
        }
        all
    }

    /// Whether a program wants to know of the event `at` of [`NAMES`].
    pub(crate) fn has(&self, at: usize) -> bool {
        !self.functions[at].is_empty()
    }
}

impl Event {
    /// Its place in [`NAMES`].
    fn index(self) -> usize {
        match self {
            Event::Switch(..) => 0,
            Event::Waking(_) => 1,
            Event::Wakeup(_) => 2,
            Event::WakeupNew(_) => 3,
            Event::Migrate(..) => MIGRATE,
            Event::Fork(..) => 5,
            Event::Exec(_) => 6,
            Event::Exit(_) => 7,
            Event::Tick => TICK,
        }
    }
}

impl Machine {
    /// Runs the programs at an event, on this CPU, after those at migrations before it.
    pub(crate) fn happens(&mut self, context: &mut Context<'_>, event: Event) {
        self.tell_migrations(context);
        let at = event.index();
        if self.events.functions[at].is_empty() {
            return;
        }
        let args = self.arguments(context, event);
        for which in 0..self.events.functions[at].len() {
            let function = self.events.functions[at][which];
            self.here(context).call(Some(function), &args);
        }
    }

    /// Programs at migrations learn which tasks have changed CPUs since the last time.
    pub(crate) fn tell_migrations(&mut self, context: &mut Context<'_>) {
        // Those of this call have been taken out: what a program does may move more.
        for (task, cpu) in std::mem::take(&mut self.state.migrated) {
            self.happens(context, Event::Migrate(task, cpu));
        }
    }

    fn arguments(&mut self, context: &mut Context<'_>, event: Event) -> Vec<u64> {
        let cpu = context.cpu();
        let address = |machine: &Machine, task: TaskId| machine.state.task(task).address;
        let or_idle = |machine: &Machine, task: Option<TaskId>| {
            let idle = machine.state.cpu(cpu).idle_task;
            task.map_or(idle, |task| address(machine, task))
        };
        match event {
            Event::Switch(prev, next) => {
                let runs = |task: TaskId| context.task(task).is_runnable();
                let runs = prev.is_none_or(runs);
                let number = match prev {
                    Some(task) if !runs && context.task(task).has_exited() => state::DEAD,
                    _ if runs => state::RUNNING,
                    _ => state::INTERRUPTIBLE,
                };
                let preempted = u64::from(runs && prev.is_some());
                vec![preempted, or_idle(self, prev), or_idle(self, next), number]
            }
            Event::Waking(task) | Event::Wakeup(task) | Event::WakeupNew(task) => {
                vec![address(self, task)]
            }
            Event::Migrate(task, to) => vec![address(self, task), to.0.into()],
            Event::Fork(parent, child) => vec![or_idle(self, parent), address(self, child)],
            Event::Exec(task) => vec![address(self, task), crate::tasks::pid_of(task), 0],
            Event::Exit(task) => vec![address(self, task), 1],
            Event::Tick => {
                let run_queue = self.guest.variable("runqueues").unwrap_or(0);
                vec![self.guest.per_cpu(run_queue, cpu.0.into()).unwrap_or(0)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_schedulers_is_run_never_happens_or_is_left_out() {
        let table = [
            ("tp_btf/sched_switch", AtEvent::Runs),
            ("tp_btf/sched_process_exec", AtEvent::Runs),
            ("fentry/scx_tick", AtEvent::Runs),
            ("fmod_ret/security_task_prctl", AtEvent::Runs),
            ("fentry/bpf_scx_reg", AtEvent::Never),
            ("tp_btf/irq_handler_entry", AtEvent::Never),
            ("kprobe/nvidia_open", AtEvent::Never),
            ("tp_btf/softirq_entry", AtEvent::LeftOut),
            ("tp_btf/cpu_idle", AtEvent::LeftOut),
            ("fexit/futex_wake", AtEvent::LeftOut),
        ];
        for (event, expected) in table {
            assert_eq!(AtEvent::of(event), expected, "{event}");
        }
    }
}
