//! CPUs that are taken away for a while.

use proptest::prelude::*;
use warmq_kernel::*;
use warmq_machine::Steal;
use warmq_trace::Record;
use warmq_units::{Duration, Seed};

use crate::support::*;

/// CPUs of which `percent` of the time is taken, 200 us at a time in the mean.
fn taken(cpus: u16, percent: u64, seed: u64) -> Stage {
    let mut on = stage(cpus).costs(some_costs());
    on.settings.seed = Seed(seed);
    on.machine.steals = vec![Steal {
        every: Duration::from_us(20_000 / percent),
        span: Duration::from_us(200),
    }];
    on
}

/// A task on each CPU that computes for `ms`, and one on CPU 0 that sleeps and computes by turns.
fn crew(cpus: u16, ms: u64) -> impl Workload {
    move |boot: &mut Boot<'_>| -> Started {
        bound_hogs(boot, cpus, ms)?;
        let napper = called("napper").bound([cpu(0)]).background(true);
        boot.task(napper, |task: Task| async move {
            loop {
                task.sleep(Duration::from_ms(10)).await;
                task.compute(us(50)).await;
            }
        })?;
        Ok(())
    }
}

/// When CPU `on` was taken away, from and to, in picoseconds.
fn away(story: &Story, on: u16) -> Vec<(u64, u64)> {
    let records = story.records().iter();
    let steals = records.filter_map(|(at, record)| match record {
        Record::Steal { cpu, span } if cpu.0 == on => Some((at.0 - span.0, at.0)),
        _ => None,
    });
    steals.collect()
}

#[test]
fn a_task_takes_as_much_longer_as_its_cpu_was_taken() {
    let mut on = taken(1, 20, 1);
    on.costs = Costs::free();
    let story = on.plays(|boot: &mut Boot<'_>| bound_hogs(boot, 1, 1_000));
    let stolen: u64 = away(&story, 0).iter().map(|(from, to)| to - from).sum();
    let took = story.exit_us(0);
    assert_eq!(took, 1_000_000 + stolen / 1_000_000);
    // A fifth of the time; the mean of some 1,250 spans is within a tenth of its own.
    assert!((1_200_000..1_310_000).contains(&took), "{took}");
}

#[test]
fn cpus_are_taken_at_times_of_their_own() {
    let story = taken(2, 10, 1).plays(crew(2, 100));
    let (first, second) = (away(&story, 0), away(&story, 1));
    assert!(first.len() > 20 && second.len() > 20);
    assert!(first.iter().all(|time| !second.contains(time)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_happens_on_a_cpu_that_is_away(cpus in 1_u16..4, percent in 1_u64..40, seed: u64) {
        let story = taken(cpus, percent, seed).plays(crew(cpus, 60));
        for number in 0..cpus {
            let away = away(&story, number);
            prop_assert!(!away.is_empty());
            for (at, record) in story.records() {
                let acts = matches!(
                    record,
                    Record::Switch { cpu, .. }
                    | Record::InterruptEnter { cpu, .. }
                    | Record::InterruptExit { cpu, .. }
                    | Record::Block { cpu, .. } if cpu.0 == number
                );
                let within = away.iter().any(|(from, to)| *from < at.0 && at.0 < *to);
                prop_assert!(!(acts && within), "{at:?} {record:?}");
            }
        }
    }

    #[test]
    fn a_seed_takes_cpus_at_the_same_times(seed: u64) {
        let digest = |seed| {
            let story = taken(2, 10, seed).plays(crew(2, 30));
            story.kernel.observer().digest.value()
        };
        prop_assert_eq!(digest(seed), digest(seed));
        prop_assert_ne!(digest(seed), digest(seed ^ 1));
    }
}
