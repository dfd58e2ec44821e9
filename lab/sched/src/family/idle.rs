//! `reschedule_idle()` of Linux 2.4.4: who should make room for a task that wants to run.

use warmq_machine::Access;
use warmq_units::{CpuId, Instant, TaskId};

use super::goodness::Candidate;
use super::state::{Here, is_idle};

/// A CPU as the search sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// Idle since then.
    Idle(Instant),
    /// What the task would win there over the one that runs.
    Busy(i32),
}

/// What the search decides: which CPU, and whether it idles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Nobody,
    Idle(CpuId),
    Preempt(CpuId),
}

/// Asks the CPU that suits `task` best to reschedule: its last one if that idles; else the one
/// that has idled longest; else the one whose running task loses most against `task`.
///
/// An idle CPU that was asked already still counts as idle, so two wakeups may choose the same.
pub(crate) fn reschedule_idle(here: &mut Here<'_, '_>, task: TaskId) {
    here.context
        .touch(here.common.layout.hot(task), Access::Read);
    let last = here.context.task(task).last_cpu();
    here.context
        .touch(here.common.globals.cpu(last), Access::Read);
    if here.context.task(task).may_run_on(last) && is_idle(here.context, last) {
        return wake(here, last);
    }
    match choose(here, task) {
        Choice::Nobody => {}
        Choice::Idle(cpu) => wake(here, cpu),
        Choice::Preempt(cpu) => preempt(here, cpu),
    }
}

/// Looks at every CPU that `task` may use, in order. While no idle one was met, the running tasks
/// are weighed too.
fn choose(here: &mut Here<'_, '_>, task: TaskId) -> Choice {
    let mut best = Best::default();
    for cpu in (0..here.context.cpus()).map(CpuId) {
        if !here.context.task(task).may_run_on(cpu) {
            continue;
        }
        here.context
            .touch(here.common.globals.cpu(cpu), Access::Read);
        let seen = match here.context.running_on(cpu) {
            None => Seen::Idle(here.context.last_switch(cpu)),
            Some(_) if best.idle.is_some() => continue,
            Some(running) => Seen::Busy(gain(here, task, running, cpu)),
        };
        best.see(cpu, seen);
    }
    best.choice()
}

/// The search's best so far.
#[derive(Default)]
struct Best {
    idle: Option<(Instant, CpuId)>,
    preempt: Option<(i32, CpuId)>,
}

impl Best {
    /// The task must win by more than 1 (later kernels: more than 0); the first of equals stays.
    fn see(&mut self, cpu: CpuId, seen: Seen) {
        match seen {
            Seen::Idle(since) if self.idle.is_none_or(|(oldest, _)| since < oldest) => {
                self.idle = Some((since, cpu));
            }
            Seen::Busy(gain) if gain > self.preempt.map_or(1, |(most, _)| most) => {
                self.preempt = Some((gain, cpu));
            }
            Seen::Idle(_) | Seen::Busy(_) => {}
        }
    }

    fn choice(&self) -> Choice {
        match (self.idle, self.preempt) {
            (Some((_, cpu)), _) => Choice::Idle(cpu),
            (None, Some((_, cpu))) => Choice::Preempt(cpu),
            (None, None) => Choice::Nobody,
        }
    }
}

/// `preemption_goodness()`: how much better `task` is than `running` on `cpu`, both with the
/// address space that is loaded there.
pub(crate) fn gain(here: &mut Here<'_, '_>, task: TaskId, running: TaskId, cpu: CpuId) -> i32 {
    here.context
        .touch(here.common.layout.hot(running), Access::Read);
    here.context
        .touch(here.common.layout.links(running), Access::Read);
    let weigh = |task| here.common.candidate(here.context, task, cpu);
    difference(weigh(task), weigh(running))
}

fn difference(task: Candidate, running: Candidate) -> i32 {
    task.goodness() - running.goodness()
}

/// An interrupt goes to an idle CPU only if nobody asked it before.
pub(crate) fn wake(here: &mut Here<'_, '_>, cpu: CpuId) {
    here.context
        .touch(here.common.globals.idle_task(cpu, 0), Access::Write);
    if !here.context.will_reschedule(cpu) {
        here.context.reschedule(cpu);
    }
}

/// The task that runs on `cpu` is asked to give way.
pub(crate) fn preempt(here: &mut Here<'_, '_>, cpu: CpuId) {
    if let Some(running) = here.context.running_on(cpu) {
        here.context
            .touch(here.common.layout.state(running), Access::Write);
    }
    here.context.reschedule(cpu);
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_kernel::Policy;

    /// A running task ran there last and has the address space that is loaded; the woken has not.
    fn task(counter: i32, last_here: bool, same_mm: bool) -> Candidate {
        Candidate {
            policy: Policy::Other,
            nice: 0,
            counter,
            yielded: false,
            last_here,
            same_mm,
        }
    }

    /// What the search chooses for a task with 6 ticks that ran on CPU 0 last.
    fn chosen(running: &[i32]) -> Choice {
        let mut best = Best::default();
        for (cpu, counter) in running.iter().enumerate() {
            let gain = difference(task(6, cpu == 0, false), task(*counter, true, true));
            best.see(CpuId(cpu as u16), Seen::Busy(gain));
        }
        best.choice()
    }

    /// Decision case 6 of the coloring paper's specification.
    #[test]
    fn whom_a_woken_task_preempts() {
        let table: [(&[i32], Choice); 5] = [
            (&[4], Choice::Nobody),
            (&[3], Choice::Preempt(CpuId(0))),
            (&[6, 1], Choice::Nobody),
            (&[6, 0], Choice::Preempt(CpuId(1))),
            (&[3, 0], Choice::Preempt(CpuId(1))),
        ];
        for (running, expected) in table {
            assert_eq!(chosen(running), expected, "{running:?}");
        }
    }

    /// Decision case 7: of the idle CPUs the one that has idled longest, whoever else could be
    /// preempted.
    #[test]
    fn the_longest_idle_cpu_goes_before_all_others() {
        let mut best = Best::default();
        best.see(CpuId(1), Seen::Busy(20));
        best.see(CpuId(2), Seen::Idle(Instant(100)));
        best.see(CpuId(3), Seen::Idle(Instant(50)));
        best.see(CpuId(4), Seen::Idle(Instant(50)));
        assert_eq!(best.choice(), Choice::Idle(CpuId(3)));
    }
}
