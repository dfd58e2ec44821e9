//! Tasks that are in a queue and go back to the program: `scx_bpf_dsq_reenq()`, and those that were
//! to run at once (`SCX_ENQ_IMMED`) and cannot.

use warmq_units::{CpuId, TaskId};

use crate::queue::Dsq;
use crate::state::Here;
use crate::words::{dsq, ops};

/// Which queue is looked through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) queue: Dsq,
    /// All tasks of it (`SCX_REENQ_ANY`), and not only those that were to run at once.
    pub(crate) all: bool,
}

/// How often a task goes back to the program without running (`SCX_REENQ_MAX_REPEAT`).
const MOST_REPEATS: u32 = 256;

/// Whether a task in a CPU's own queue goes back (`local_task_should_reenq()`). One that was to run
/// at once stays only if it is the first and the CPU is open for it.
fn goes_back(immediate: bool, first: bool, open: bool, all: bool) -> bool {
    immediate && !(first && open) || all
}

/// What a CPU does, as `rq_is_open()` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It idles, and nothing has come onto its run queue.
    Idle,
    /// It looks for its next task (`SCX_RQ_IN_DISPATCH`).
    Dispatch,
    /// It runs a task, or is on the way to one.
    Task,
}

/// Whether a CPU can run a task at once (`rq_is_open()`); `preempts` is whether the task comes with
/// `SCX_ENQ_PREEMPT`.
fn is_open(doing: Doing, preempts: bool) -> bool {
    match doing {
        Doing::Idle | Doing::Dispatch => true,
        Doing::Task => preempts,
    }
}

/// Flags of an insert, as they are taken (`scx_vet_enq_flags()`); `None` is an error of the
/// program's.
fn vetted(flags: u64, immediate: u64, local: bool, always: bool) -> Option<u64> {
    match (flags & immediate != 0, local) {
        (true, false) => None,
        (false, true) if always => Some(flags | immediate),
        _ => Some(flags),
    }
}

impl Here<'_, '_> {
    /// The flags of an insert into a queue; ejects the program if they cannot be.
    pub(crate) fn vet(&mut self, id: u64, flags: u64) -> u64 {
        let local = id == dsq::LOCAL || dsq::on_cpu(id).is_some();
        let always = self.state.flags & ops::ALWAYS_ENQ_IMMED != 0;
        let vetted = vetted(flags, self.state.enq.immediate, local, always);
        vetted.unwrap_or_else(|| {
            self.eject(format!("SCX_ENQ_IMMED on a non-local DSQ {id:#x}"));
            flags & !self.state.enq.immediate
        })
    }

    fn doing(&self, cpu: CpuId) -> Doing {
        let picked = self.state.runs(cpu);
        let task = picked.or(self.context.running_on(cpu));
        match (self.state.own.finding == Some(cpu), task) {
            (true, _) => Doing::Dispatch,
            (_, None) => Doing::Idle,
            (_, Some(_)) => Doing::Task,
        }
    }

    /// A task has come into the own queue of a CPU: if it is to run at once, or was, and cannot,
    /// the queue is looked through (`dsq_inc_nr()`).
    pub(crate) fn note_immediate(&mut self, task: TaskId, cpu: CpuId, flags: u64) {
        if flags & self.state.enq.immediate != 0 {
            self.set_immediate(task, true);
        }
        let alone = self.state.cpu(cpu).local.len() < 2;
        let open = is_open(self.doing(cpu), flags & self.state.enq.preempt != 0);
        if self.state.task(task).immediate && !(alone && open) {
            self.look_through(Dsq::Local(cpu), false);
        }
    }

    pub(crate) fn set_immediate(&mut self, task: TaskId, immediate: bool) {
        let state = self.state.task_mut(task);
        if std::mem::replace(&mut state.immediate, immediate) != immediate {
            self.write_queued(task);
        }
    }

    /// A queue is to be looked through when the callback has returned.
    pub(crate) fn look_through(&mut self, queue: Dsq, all: bool) {
        let known = self
            .state
            .own
            .again
            .iter_mut()
            .find(|one| one.queue == queue);
        match known {
            Some(known) => known.all |= all,
            None => self.state.own.again.push(Again { queue, all }),
        }
    }

    /// A pick ends: what was let into the queue meanwhile is looked at again (`dispatch_one()`).
    pub(crate) fn settle_immediate(&mut self, cpu: CpuId) {
        let mut tasks = self.state.cpu(cpu).local.tasks.values();
        let several = tasks.len() > 1;
        if several && tasks.any(|task| self.state.task(*task).immediate) {
            self.look_through(Dsq::Local(cpu), false);
        }
    }

    /// Takes the tasks of a queue out of it that go back to the program.
    pub(crate) fn take_back(&mut self, again: Again) -> Vec<TaskId> {
        let open = match again.queue {
            Dsq::Local(cpu) => is_open(self.doing(cpu), false),
            _ => false,
        };
        let queue = self.state.queue(again.queue);
        let tasks = queue.map(|queue| queue.in_order(false)).unwrap_or_default();
        let back = (0..).zip(tasks).filter(|(at, task)| {
            let immediate = self.state.task(*task).immediate;
            goes_back(immediate, *at == 0, open, again.all)
        });
        let back: Vec<TaskId> = back.map(|(_, task)| task).collect();
        for task in &back {
            self.unlink(*task);
        }
        back
    }

    /// Whether a task has gone back too often without running; then the program is ejected.
    pub(crate) fn repeats_too_often(&mut self, task: TaskId) -> bool {
        let state = self.state.task_mut(task);
        state.repeats += 1;
        let repeats = state.repeats;
        if repeats > MOST_REPEATS {
            self.eject(format!("{task} reenqueued {repeats} times without running"));
        }
        repeats > MOST_REPEATS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_was_to_run_at_once_stays_only_as_the_first_of_an_open_cpu() {
        let (yes, no) = (true, false);
        let table = [
            // immediate, first, open, all: goes back
            ((yes, yes, yes, no), no),
            ((yes, yes, no, no), yes),
            ((yes, no, yes, no), yes),
            ((yes, no, no, no), yes),
            ((no, yes, no, no), no),
            ((no, no, yes, no), no),
            ((no, yes, yes, yes), yes),
            ((yes, yes, yes, yes), yes),
        ];
        for ((immediate, first, open, all), expected) in table {
            let back = goes_back(immediate, first, open, all);
            assert_eq!(back, expected, "{immediate} {first} {open} {all}");
        }
    }

    #[test]
    fn a_cpu_is_open_while_it_idles_or_looks_for_a_task_or_is_preempted() {
        let table = [
            (Doing::Idle, false, true),
            (Doing::Idle, true, true),
            (Doing::Dispatch, false, true),
            (Doing::Task, false, false),
            (Doing::Task, true, true),
        ];
        for (doing, preempts, expected) in table {
            assert_eq!(is_open(doing, preempts), expected, "{doing:?} {preempts}");
        }
    }

    #[test]
    fn immediate_inserts_are_local_ones() {
        let immed = 1 << 33;
        let table = [
            // flags, local, always: taken as
            (0, true, false, Some(0)),
            (0, true, true, Some(immed)),
            (0, false, true, Some(0)),
            (immed | 1, true, false, Some(immed | 1)),
            (immed, false, false, None),
            (immed, false, true, None),
        ];
        for (flags, local, always, expected) in table {
            let taken = vetted(flags, immed, local, always);
            assert_eq!(taken, expected, "{flags:#x} {local} {always}");
        }
        assert_eq!(vetted(1, 0, true, true), Some(1), "a kernel without it");
    }
}
