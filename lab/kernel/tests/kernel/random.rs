//! Laws over random workloads under round robin; those under real schedulers are in lab/sched.

#[path = "../../../sched/tests/stories/scripts.rs"]
mod scripts;

use proptest::prelude::*;

use warmq_kernel::*;
use warmq_units::{Bytes, Seed};

use crate::support::*;
use scripts::{Script, scripts};

fn play(script: &Script, cpus: u16, caches: bool, seed: u64, pick_ns: u64) -> Story {
    let mut stage = stage(cpus)
        .under(round_robin(pick_ns))
        .costs(some_costs())
        .until_ms(300);
    stage.settings.caches = caches;
    stage.settings.seed = Seed(seed);
    stage.plays(script.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_run_keeps_the_laws_and_comes_out_the_same_twice(
        script in scripts(),
        cpus in 1u16..5,
        caches: bool,
        seed: u64,
        pick_ns in 0u64..20_000,
    ) {
        let story = play(&script, cpus, caches, seed, pick_ns);
        prop_assert!(
            matches!(story.ending, Ending::WorkDone | Ending::TimeUp),
            "{}", story.ending
        );
        let again = play(&script, cpus, caches, seed, pick_ns);
        prop_assert_eq!(&story.kernel.observer().digest, &again.kernel.observer().digest);
        prop_assert_eq!(story.ending, again.ending);
        prop_assert_eq!(story.kernel.spent_by_cpu(), again.kernel.spent_by_cpu());
    }
}

#[test]
fn another_seed_makes_another_run() {
    let digest = |seed| {
        let mut stage = stage(2).with_caches().costs(some_costs()).until_ms(100);
        // A way of 16 KB, so that it matters which pages the walkers' 16 KB are made of.
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
