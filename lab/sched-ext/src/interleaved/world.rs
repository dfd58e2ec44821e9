//! What all paths share: sched_ext's state, the machine, locks, and who may go on.

use std::task::Poll;

use warmq_kernel::{ByHand, Context};
use warmq_units::{CpuId, TaskId};

use crate::callbacks::SchedExt;
use crate::execution::Lock;
use crate::interleaved::locks::Locks;
use crate::run_queue::Machine;
use crate::state::{Held, Own};

/// After so many places where others may come in, they do, even if a path is not to be interrupted:
/// it may wait in a loop for what they do.
const PATIENCE: u64 = 20_000;

/// Where a path is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Before an instruction of the program, by its index in `Image::code`.
    Before(u32),
    /// In the kernel, which has given up a run queue's lock to take another one's.
    Unlocked,
}

/// Why a path does not go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Waits {
    /// It does.
    #[default]
    No,
    /// Others have locks that it needs.
    For(Vec<Lock>),
    /// It has kicked these CPUs with `SCX_KICK_WAIT`, which have not switched yet.
    Kicked(Vec<CpuId>),
    /// It is interrupted.
    Held(Place),
}

/// What a path does that can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It calls a function of the program, by its index in `Image::functions`.
    Begins(u32),
    /// That returns.
    Returns(u32),
    /// It is interrupted.
    Held(Place),
    /// It goes on.
    GoesOn,
    /// Its CPU runs a task from now on, or idles.
    Runs(Option<TaskId>),
    /// It is about to call a kfunc, by its index in `Image::kfuncs`, with these arguments.
    Calls(u32, [u64; 5]),
    /// It kicks a CPU.
    Kicks(CpuId),
    /// A task comes into a queue, by its number.
    Queued(TaskId, u64),
}

/// Something that a path did on its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The CPU.
    pub cpu: CpuId,
    /// What it did.
    pub what: What,
}

/// What is known of a path.
#[derive(Default)]
struct Known {
    cpu: CpuId,
    own: Own,
    waits: Waits,
    /// How many places it still passes before it is interrupted; `None`: it is not.
    passes: Option<u64>,
    /// How many it has passed since it was polled, and before.
    passed: u64,
    before: u64,
    /// Tasks that go to other CPUs' own queues once its locks are free, and with which flags.
    deferred: Vec<(TaskId, u64)>,
}

pub(super) struct World {
    pub(super) scheduler: SchedExt,
    pub(super) hand: ByHand,
    pub(super) locks: Locks,
    paths: Vec<Known>,
    /// Whether anything has happened since this was set to false.
    pub(super) moved: bool,
    /// What has happened, if somebody wants to know.
    pub(super) notes: Option<Vec<Note>>,
}

impl World {
    pub(super) fn new(scheduler: SchedExt, hand: ByHand) -> World {
        World {
            scheduler,
            hand,
            locks: Locks::default(),
            paths: Vec::new(),
            moved: false,
            notes: None,
        }
    }

    /// A new path, which is interrupted after so many places, if it is.
    pub(super) fn new_path(&mut self, cpu: CpuId, passes: Option<u64>) -> usize {
        self.paths.push(Known {
            cpu,
            passes,
            ..Known::default()
        });
        self.paths.len() - 1
    }

    /// Does something in one piece.
    pub(super) fn with<R>(
        &mut self,
        cpu: CpuId,
        act: impl FnOnce(&mut Machine, &mut Context<'_>) -> R,
    ) -> R {
        act(&mut self.scheduler.machine, &mut self.hand.context(cpu))
    }

    /// A path goes on, or ceases to: the state gets what the kernel knows of that one alone, or
    /// what it had before.
    pub(super) fn exchange(&mut self, path: usize) {
        let state = &mut self.scheduler.machine.state;
        std::mem::swap(&mut self.paths[path].own, &mut state.own);
    }

    /// Why the program was ejected.
    pub(super) fn ejected(&self) -> Option<&str> {
        self.scheduler.machine.state.ejected.as_deref()
    }

    pub(super) fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.hand.view(task).may_run_on(cpu)
    }

    /// A CPU has switched from one task to another. Those that wanted the one that left look again.
    pub(super) fn switched(&mut self, cpu: CpuId, left: Option<TaskId>, next: Option<TaskId>) {
        self.hand.picks(cpu);
        // The migration thread waits for the CPU.
        if next.is_some_and(|task| !self.may_run(task, cpu)) {
            self.hand.context(cpu).reschedule(cpu);
        }
        if let Some(task) = left.filter(|_| left != next) {
            let known = self.hand.view(task).on_cpu();
            if known == Some(cpu) {
                self.hand.set_on_cpu(task, None);
            }
        }
        if let Some(task) = next {
            self.hand.set_on_cpu(task, Some(cpu));
        }
        if let Some(task) = left {
            self.with(cpu, |machine, at| machine.has_left(at, task));
        }
    }

    /// Takes all of `locks` for a path, or lets it wait.
    pub(super) fn poll_locks(&mut self, path: usize, locks: &[Lock]) -> Poll<()> {
        if self.locks.try_all(path, locks) {
            self.moved = true;
            self.paths[path].waits = Waits::No;
            return Poll::Ready(());
        }
        self.paths[path].waits = Waits::For(locks.to_vec());
        Poll::Pending
    }

    /// A path is through, but for the CPUs that it has kicked and must wait for.
    pub(super) fn poll_kicked(&mut self, path: usize) -> Poll<()> {
        let cpu = self.paths[path].cpu;
        let machine = &mut self.scheduler.machine;
        let of = machine.state.awaited_now(cpu);
        if of.is_empty() || machine.state.ejected.is_some() {
            self.paths[path].waits = Waits::No;
            return Poll::Ready(());
        }
        machine.here(&mut self.hand.context(cpu)).keeps_waiting(cpu);
        self.paths[path].waits = Waits::Kicked(of);
        Poll::Pending
    }

    /// A path comes to a place where others may come in: whether it passes.
    pub(super) fn passes(&mut self, path: usize, place: Place) -> bool {
        self.moved = true;
        let known = &mut self.paths[path];
        known.passed += 1;
        match &mut known.passes {
            Some(0) => {
                known.passes = None;
                known.waits = Waits::Held(place);
                self.note(path, What::Held(place));
                false
            }
            Some(more) => {
                *more -= 1;
                true
            }
            None => known.passed < PATIENCE,
        }
    }

    /// A path is interrupted no longer, nor later.
    pub(super) fn release(&mut self, path: usize) {
        let known = &mut self.paths[path];
        known.passes = None;
        if let Waits::Held(_) = known.waits {
            known.waits = Waits::No;
            self.note(path, What::GoesOn);
        }
    }

    /// A path is about to go on, if it may.
    pub(super) fn may_go_on(&mut self, path: usize) -> bool {
        let known = &mut self.paths[path];
        known.before += std::mem::take(&mut known.passed);
        !matches!(known.waits, Waits::Held(_))
    }

    /// A task goes to another CPU's own queue once the locks of this path are free; it is not the
    /// program's.
    pub(super) fn defer(&mut self, path: usize, task: TaskId, flags: u64) {
        self.scheduler.machine.state.task_mut(task).held = Held::Kernel;
        self.paths[path].deferred.push((task, flags));
    }

    pub(super) fn next_deferred(&mut self, path: usize) -> Option<(TaskId, u64)> {
        self.paths[path].deferred.pop()
    }

    /// How many places a path has come to where others may come in.
    pub(super) fn places(&self, path: usize) -> u64 {
        let known = &self.paths[path];
        known.before + known.passed
    }

    pub(super) fn waits(&self, path: usize) -> &Waits {
        &self.paths[path].waits
    }

    /// Notes what a path does, if somebody wants to know.
    pub(super) fn note(&mut self, path: usize, what: What) {
        let cpu = self.paths[path].cpu;
        if let Some(notes) = &mut self.notes {
            notes.push(Note { cpu, what });
        }
    }
}
