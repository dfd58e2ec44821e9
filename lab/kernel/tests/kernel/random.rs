//! Invariants over random workloads under round robin; those under real schedulers are in
//! lab/sched.

use proptest::prelude::*;

use warmq_kernel::*;
use warmq_random::{Configuration, Script, configurations, scripts};
use warmq_trace::Breach;
use warmq_units::{Bytes, CpuSet, Instant, Seed};

use crate::round_robin::*;
use crate::support::*;

struct Case {
    script: Script,
    configuration: Configuration,
    cpus: u16,
    caches: bool,
    seed: u64,
    pick_ns: u64,
}

fn play(case: &Case) -> Story {
    let Case {
        cpus,
        caches,
        seed,
        pick_ns,
        ..
    } = *case;
    let mut stage = stage(cpus)
        .under(round_robin(pick_ns))
        .costs(some_costs())
        .until_ms(300);
    stage.settings.caches = caches;
    stage.settings.seed = Seed(seed);
    case.configuration.apply(&mut stage.settings);
    stage.plays(case.script.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_run_keeps_the_laws_and_comes_out_the_same_twice(
        script in scripts(),
        configuration in configurations(),
        cpus in 1u16..5,
        caches: bool,
        seed: u64,
        pick_ns in 0u64..20_000,
    ) {
        let case = Case { script, configuration, cpus, caches, seed, pick_ns };
        let story = play(&case);
        prop_assert!(
            matches!(story.ending, Ending::WorkDone | Ending::TimeUp),
            "{}", story.ending
        );
        let again = play(&case);
        prop_assert_eq!(&story.kernel.observer().digest, &again.kernel.observer().digest);
        prop_assert_eq!(story.ending, again.ending);
        prop_assert_eq!(story.kernel.spent_by_cpu(), again.kernel.spent_by_cpu());
    }
}

#[test]
fn another_seed_makes_another_run() {
    let digest = |seed| {
        let mut stage = stage(2).with_caches().costs(some_costs()).until_ms(100);
        // A way of 16 KB, so that the misses depend on which pages the walkers' 16 KB consist of.
        for cache in &mut stage.machine.caches {
            (cache.size, cache.ways) = (Bytes::from_kb(16), 1);
        }
        stage.settings.fragmentation = Settings::linux24(Seed(0)).fragmentation;
        stage.settings.seed = Seed(seed);
        let story = stage.plays(Script::walkers(6));
        story.kernel.observer().digest.value()
    };
    assert_eq!(digest(1), digest(1));
    assert_ne!(
        digest(1),
        digest(2),
        "other pages, other conflicts in the caches"
    );
}

/// CPU 0 wakes a task of CPU 1 after 1 ms, and 50 ms later moves it to CPU 0 by its affinity.
fn wakes_a_task_elsewhere(boot: &mut Boot<'_>) -> Started {
    let (near, far) = boot.socket_pair(Bytes(100))?;
    let spec = called("woken").bound([cpu(1)]);
    let woken = boot.task(spec, move |task: Task| async move {
        task.receive(far, Bytes(1)).await;
        task.compute(us(1_000)).await;
    })?;
    let spec = called("waker").bound([cpu(0)]);
    boot.task(spec, move |task: Task| async move {
        task.compute(us(1_000)).await;
        task.send(near, Bytes(1)).await;
        task.compute(us(50_000)).await;
        task.change(Change::Affinity(woken, CpuSet::from_iter([cpu(0)])))
            .await;
        task.compute(us(50_000)).await;
    })?;
    Ok(())
}

#[test]
fn a_scheduler_that_leaves_cpus_idle_is_found_while_the_run_goes_on() {
    let stage = stage(2).under(forgetful()).until_ms(200);
    let story = stage.plays_badly(wakes_a_task_elsewhere);
    let violation = story.kernel.observer().checker.violation();
    let violation = violation.expect("CPU 1 idled while its task waited");
    assert!(matches!(violation.breach, Breach::LeftWaiting { .. }));
    assert_eq!(violation.cpu, Some(cpu(1)));
    assert_eq!((violation.at - Instant::START).as_us(), 51_000);
}
