//! The checker catches a scheduler that breaks an invariant which the kernel does not enforce; a
//! program that breaks a rule is reported as such.

use warmq_kernel::{
    Boot, Context, Costs, Ending, Kernel, MakeScheduler, Pick, Scheduler, Task, TaskSpec, Why,
};
use warmq_play::Counters;
use warmq_units::{CpuId, LockId, TaskId};

use super::lab::{Made, run};
use super::*;
use crate::{Experiment, Options};

/// Queues every task and never picks one.
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

/// A run of two tasks, longer than a CPU of Linux 2.4 may idle beside a waiting task.
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
    let make: MakeScheduler = Box::new(|attach| {
        let lock = attach.lock("runqueue_lock");
        Ok(Box::new(Hoarder { lock }))
    });
    let made = Made {
        chosen,
        make,
        profiler: None,
        promise: entry.promise,
    };
    let plan = &plan();
    let (machine, set, workload) = engine.parts(plan)?;
    let play = Play {
        plan,
        machine: &machine,
        set: &set,
        workload: workload.entry(),
        programs: &engine.lab.programs,
    };
    engine.lab.run_under(made, entry, &play, ())
}

#[test]
fn a_task_that_waits_beside_an_idle_cpu_ends_the_run_as_an_error() {
    let error = hoarded(&Engine::default().checked()).unwrap_err();
    assert_eq!(error.cause, Cause::InvariantBroken);
    insta::assert_snapshot!(
        error,
        @"an invariant was broken at 400.000 ms (record 86): task0 on cpu0: the task has waited since 0 ps while the CPU, which could run it, was idle"
    );
}

#[test]
fn an_engine_that_does_not_check_takes_the_same_run_for_a_measurement() {
    let mut engine = Engine::default();
    engine.lab.checked = false;
    assert_eq!(hoarded(&engine).unwrap().ending, "time up");
}

#[test]
fn a_program_that_breaks_a_rule_is_the_cause_of_a_failed_run() {
    let plan = plan();
    let entry = warmq_sched::scheduler("linux24").unwrap();
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).unwrap();
    let machine = Engine::default().machine("tiny-1cpu").unwrap();
    let workload = |boot: &mut Boot<'_>| {
        let mutex = boot.mutex();
        let unlocks = move |task: Task| async move { task.unlock(mutex).await };
        boot.task(TaskSpec::new("thief", None), unlocks).map(drop)
    };
    let mut kernel = Kernel::boot(
        &machine,
        &Costs::new(machines::costs(&machine, entry.kernel)),
        entry.kernel_settings(plan.seed),
        entry.build(chosen),
        &workload,
        (),
    )
    .unwrap();
    let error = run(&mut kernel, &plan, &Counters::default(), |_, _| {})
        .1
        .unwrap_err();
    assert_eq!(error.cause, Cause::ProgramBroke);
    assert!(error.what.contains("thief"), "{error}");
}

/// Machines that describe no kernel of 2.6 keep the costs that they had for its schedulers.
#[test]
fn costs_are_those_of_the_kernel_or_of_2_4() {
    let engine = Engine::default();
    let (old, new) = (
        engine.machine("tiny-1cpu").unwrap(),
        engine.machine("p4").unwrap(),
    );
    let send = |machine, kernel| machines::costs(machine, kernel)["socket_send"].cycles;
    assert_eq!(send(&old, "linux-2.6.16"), send(&old, "linux-2.4"));
    let of_p4 = |kernel: &str| new.costs[kernel]["socket_receive"].source.clone();
    let source = |kernel| {
        machines::costs(&new, kernel)["socket_receive"]
            .source
            .clone()
    };
    assert_eq!(source("linux-2.6.16"), of_p4("linux-2.6.16"));
    assert_eq!(source("linux-2.6.24"), of_p4("linux-2.6.24"));
}

/// A receiver beside a program that computes, on machine C under O(1).
fn starving() -> Measured {
    let text = "title = \"t\"\nmachine = \"p4\"\nscheduler = \"o1\"\nworkload = \"starvation\"\n\
                [settings]\nkpps = 20\nseconds = 1\n[run]\nwarmup = \"0ms\"\ntime = \"3s\"\n\
                [[measure]]\nmetric = \"simplex_elapsed\"";
    let experiment = Experiment::read("trial.toml", text, &Engine::default()).unwrap();
    let plan = experiment.jobs(&Options::default()).remove(0).plan;
    Engine::default().simulate(&plan).unwrap()
}

#[test]
fn figures_of_tasks_are_those_of_time_and_of_the_scheduler() {
    let measured = starving();
    let figure = |name: &str| measured.figures[name];
    assert!((figure("simplex_user_exact") - 1.0).abs() < 0.001);
    assert!((figure("simplex_user") - 1.0).abs() < 0.1, "sampled");
    let elapsed = figure("simplex_elapsed");
    let sampled = figure("simplex_user") + figure("simplex_system");
    assert!((100.0 * sampled / elapsed - figure("simplex_cpu")).abs() < 0.001);
    assert!(figure("simplex_system_exact") < elapsed - 1.0);
    // Simplex has no bonus, and the receiver the greatest.
    assert_eq!(figure("simplex_priority"), 125.0);
    assert!(figure("receiver_priority") < 117.0);
    let all: f64 = figure("receiver_slices_used_up_per_second");
    let ended =
        figure("receiver_expirations_per_second") + figure("receiver_reinsertions_per_second");
    assert!(
        (all - ended).abs() < 1e-9,
        "{all} end in one of two arrays, {ended}"
    );
    let samples: f64 = measured.histograms["receiver_sleep_avg"]
        .iter()
        .map(|(_, seen)| seen)
        .sum();
    assert!(
        samples > 40.0 * elapsed && samples <= 50.0 * elapsed + 1.0,
        "{samples}"
    );
}

#[test]
fn every_figure_and_histogram_of_a_run_is_described() {
    let measured = starving();
    let used = Used {
        workloads: vec!["starvation"],
        schedulers: vec!["o1"],
    };
    let described = Engine::default().metrics(&used);
    for name in measured.figures.keys() {
        assert!(
            described.iter().any(|described| described.name == *name),
            "{name}"
        );
    }
    let described = Engine::default().histograms(&used);
    for name in measured.histograms.keys() {
        assert!(
            described.iter().any(|described| described.name == *name),
            "{name}"
        );
    }
}

/// What a run of the scenario `workload` measured; `run` is the rest of the experiment.
fn observed(workload: &str, run: &str, seed: u64) -> Result<Measured, RunError> {
    let text = format!(
        "title = \"t\"\nworkload = \"trial.toml\"\nseeds = [{seed}]\n{run}\n[[measure]]\nmetric = \"*\""
    );
    let engine = Engine::default().checked();
    engine.know("trial.toml", workload).unwrap();
    let experiment = Experiment::read("t.toml", &text, &engine);
    let experiment = experiment.unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let plan = experiment.jobs(&Options::default()).remove(0).plan;
    engine.simulate(&plan)
}

#[test]
fn a_task_has_at_most_its_cpu_whatever_was_before_the_measurement() {
    let hog = "[task.hog]\nbody = [{ run = \"10ms\" }]";
    for (warmup, time) in [(0, 300), (200, 1_000), (1_000, 200)] {
        let run = format!(
            "machine = \"small-4llc\"\nscheduler = \"eevdf-6.18\"\n[settings]\ncpus = 1\n[run]\n\
             warmup = \"{warmup}ms\"\ntime = \"{time}ms\""
        );
        let figures = observed(hog, &run, 1).unwrap().figures;
        let seconds = f64::from(time) / 1_000.0;
        assert!(figures["hog_cpu"] <= 100.0 + 1e-9, "{}", figures["hog_cpu"]);
        let exact = figures["hog_user_exact"] + figures["hog_system_exact"];
        assert!(
            exact <= seconds && exact > 0.9 * seconds,
            "{exact} of {seconds}"
        );
    }
}

#[test]
fn a_run_whose_work_is_over_before_the_measurement_has_no_figures() {
    let once = "[task.once]\ntimes = 1\nbody = [{ run = \"10ms\" }]";
    let run = |text: &str, warmup: &str| {
        let run = format!(
            "machine = \"tiny-1cpu\"\nscheduler = \"eevdf-6.18\"\n[run]\nwarmup = \"{warmup}\"\ntime = \"1s\""
        );
        observed(text, &run, 1)
    };
    let error = run(once, "200ms").unwrap_err();
    assert_eq!(error.cause, Cause::Setting);
    assert!(error.what.contains("nothing is left to measure"), "{error}");
    let ran = run(once, "0ms").unwrap();
    assert_eq!(ran.ending, Ending::WorkDone.to_string());
    // Without a task there is no work at all.
    let nobody = once.replace("times = 1", "count = 0");
    let error = run(&nobody, "0ms").unwrap_err();
    assert!(error.what.contains("no task has anything to do"), "{error}");
}

mod random {
    use proptest::prelude::*;

    use super::*;

    /// A table of tasks that run, sleep and yield, some pinned, some of another weight.
    fn task() -> impl Strategy<Value = String> {
        let step = prop_oneof![
            (1_u32..8_000).prop_map(|us| format!("{{ run = \"{us}us\" }}")),
            (200_u32..5_000).prop_map(|us| format!("{{ sleep = \"{us}us\" }}")),
            Just("{ yield = true }".to_owned()),
        ];
        let steps = prop::collection::vec(step, 0..4);
        (1_u32..4, -5_i32..10, any::<bool>(), 1_u32..5_000, steps).prop_map(
            |(count, nice, pinned, us, steps)| {
                let pin = if pinned { "cpus = \"cpu 0\"\n" } else { "" };
                let mut body = vec![format!("{{ run = \"{us}us\" }}")];
                body.extend(steps);
                format!(
                    "count = {count}\nnice = {nice}\n{pin}body = [{}]\n",
                    body.join(", ")
                )
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Shares are of tasks, with the interrupts that they suffer; idle time is without those
        /// that come meanwhile. Of CPU times alone, the checker of each run sees to it that they
        /// add up.
        #[test]
        fn shares_of_tasks_and_idle_time_are_the_cpus(
            tasks in prop::collection::vec(task(), 1..4),
            cpus in 1_u32..5,
            scheduler in prop::sample::select(vec!["eevdf-6.18", "eevdf-7.1", "o1", "cfs", "linux24"]),
            warmup in 0_u32..300,
            time in 50_u32..300,
            seed in 1_u64..1_000,
        ) {
            let names: Vec<String> = (0..tasks.len()).map(|number| format!("t{number}")).collect();
            let tables = names.iter().zip(&tasks).map(|(name, table)| format!("[task.{name}]\n{table}"));
            let scenario = tables.collect::<String>();
            let run = format!(
                "machine = \"small-4llc\"\nscheduler = \"{scheduler}\"\n[settings]\ncpus = {cpus}\n[run]\n\
                 warmup = \"{warmup}ms\"\ntime = \"{time}ms\""
            );
            let figures = observed(&scenario, &run, seed).unwrap().figures;
            let of = |name: &str| figures.get(name).copied().unwrap_or(0.0);
            for name in &names {
                let share = of(&format!("{name}_share"));
                let most = figures.get(&format!("{name}_share_most")).copied().unwrap_or(share);
                prop_assert!(most <= 100.0 + 1e-6, "{name}: {most}");
            }
            let ran: f64 = names.iter().map(|name| of(&format!("{name}_share"))).sum();
            let all = f64::from(cpus);
            let (idle, interrupts) = (all * of("cpu_idle_share"), all * of("cpu_interrupt_share"));
            let sum = ran + of("others_share") + idle;
            prop_assert!(sum <= 100.0 * all + 1e-6, "{ran} + {idle} of {all} CPUs");
            // The idle task's own picking and switching is neither.
            prop_assert!(sum + interrupts >= 90.0 * all, "{ran} + {idle} + {interrupts} of {all} CPUs");
        }
    }
}
