//! A scheduler that breaks a law which the kernel lets pass is caught by the checker.

use warmq_kernel::{Context, Pick, Scheduler, Why};
use warmq_units::{CpuId, LockId, TaskId};

use super::*;
use crate::{Experiment, Options};

/// Takes every task and never hands one back.
struct Hoarder {
    lock: LockId,
}

impl Scheduler for Hoarder {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }

    fn fork(&mut self, _: &mut Context<'_>, _: Option<TaskId>, _: TaskId) {}
    fn enqueue(&mut self, _: &mut Context<'_>, _: TaskId, _: CpuId, _: Why) {}
    fn wakeup_preempt(&mut self, _: &mut Context<'_>, _: TaskId, _: CpuId, _: Why) {}
    fn dequeue(&mut self, _: &mut Context<'_>, _: TaskId) {}
    fn pick_next(&mut self, _: &mut Context<'_>, _: Option<TaskId>) -> Pick {
        Pick::Idle
    }
    fn tick(&mut self, _: &mut Context<'_>, _: Option<TaskId>) {}
    fn exit(&mut self, _: &mut Context<'_>, _: TaskId) {}
}

/// A run of two tasks, longer than a CPU may idle under 2.4 beside a task that waits for it.
fn plan() -> Plan {
    let text = "title = \"t\"\nmachine = \"tiny-1cpu\"\nscheduler = \"linux24\"\n\
                workload = \"spin\"\n[settings]\ntasks = 2\n[run]\nwarmup = \"0ms\"\n\
                time = \"400ms\"\n[[measure]]\nmetric = \"walk_length\"";
    let experiment = Experiment::read("trial.toml", text, &Engine::default()).unwrap();
    experiment.jobs(&Options::default()).remove(0).plan
}

fn hoarded(engine: &Engine) -> Result<Measured, RunError> {
    let entry = warmq_sched::scheduler("linux24").unwrap();
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).unwrap();
    let make_scheduler: MakeScheduler = Box::new(|attach| {
        let lock = attach.lock("runqueue_lock");
        Ok(Box::new(Hoarder { lock }))
    });
    engine.run_under(make_scheduler, entry, &chosen, &plan(), ())
}

#[test]
fn a_task_that_waits_beside_an_idle_cpu_ends_the_run_as_an_error() {
    let error = hoarded(&Engine::default().checked()).unwrap_err();
    assert_eq!(error.cause, Cause::LawBroken);
    insta::assert_snapshot!(
        error,
        @"a law was broken at 400.000 ms (record 84): task0 on cpu0: the task has waited since 0 ps while the CPU, which could run it, was idle"
    );
}

#[test]
fn an_engine_that_does_not_check_takes_the_same_run_for_a_measurement() {
    let engine = Engine {
        host: None,
        checked: false,
    };
    assert_eq!(hoarded(&engine).unwrap().ending, "time up");
}
