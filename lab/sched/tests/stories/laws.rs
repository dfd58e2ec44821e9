//! Laws of every run, whatever the scheduler, the machine and the workload.

use std::collections::BTreeMap;

use proptest::prelude::*;

use warmq_config::{Chosen, Value};
use warmq_kernel::{Ending, Kernel};
use warmq_sched::SCHEDULERS;
use warmq_trace::Digest;
use warmq_workload::{Counters, workload};

use crate::scripts::{Script, scripts};
use crate::stage::*;

fn play(name: &str, script: &Script, cpus: u16, real: bool, seed: u64) -> (Ending, Kernel<Watch>) {
    let stage = stage(cpus).seed(seed);
    let stage = if real { stage.real() } else { stage };
    // One or two CPUs under a cache; groups live on a CPU or under a cache.
    let stage = stage.sharing(1 + (seed / 3 % 2) as u16);
    let set = match name {
        "scx_warmq" => (
            "place",
            Value::Text(["llc", "cpu"][(seed % 2) as usize].into()),
        ),
        _ => ("colors", Value::Integer(1 << (seed % 3))),
    };
    stage.plays(scheduler(name, &[set]), 150, script.clone())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_run_keeps_the_laws_and_comes_out_the_same_twice(
        script in scripts(),
        cpus in 1u16..5,
        real: bool,
        seed: u64,
    ) {
        for entry in SCHEDULERS {
            let (ending, kernel) = play(entry.name, &script, cpus, real, seed);
            let good = matches!(ending, Ending::WorkDone | Ending::TimeUp);
            prop_assert!(good, "{}: {ending}", entry.name);
            let (_, again) = play(entry.name, &script, cpus, real, seed);
            prop_assert_eq!(&kernel.observer().1.1, &again.observer().1.1, "{}", entry.name);
        }
    }
}

/// A shipped workload, made small.
fn small(name: &str, set: &[(&str, Value)], scheduler_name: &str, cpus: u16) -> (u64, Digest) {
    let counters = Counters::default();
    let entry = workload(name).expect("a workload");
    let values: BTreeMap<String, Value> = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let chosen = Chosen::new(entry.settings(), values).expect("settings that it has");
    let workload = entry.build(&chosen, &counters);
    let start = |boot: &mut warmq_kernel::Boot<'_>| workload.start(boot);
    let stage = stage(cpus).real();
    let (ending, kernel) = stage.plays(scheduler(scheduler_name, &[]), 700, start);
    assert!(
        matches!(ending, Ending::WorkDone | Ending::TimeUp),
        "{ending}"
    );
    (counters.get(entry.work), kernel.observer().1.1.clone())
}

#[test]
fn every_workload_keeps_the_laws_under_every_scheduler() {
    let counts = |set: &[(&'static str, i64)]| -> Vec<(&str, Value)> {
        let count = |(name, count): &(&'static str, i64)| (*name, Value::Integer(*count));
        set.iter().map(count).collect()
    };
    let chat = counts(&[("rooms", 2), ("users", 4), ("messages", 5), ("work", 500)]);
    let fragments = ("fragments", Value::Text("room".into()));
    let named: Vec<_> = chat.iter().cloned().chain([fragments]).collect();
    let web = counts(&[
        ("processes", 12),
        ("clients", 16),
        ("request_cycles", 20_000),
    ]);
    let spin = counts(&[("tasks", 5)]);
    for entry in SCHEDULERS {
        for cpus in [1, 3] {
            for chat in [&chat, &named] {
                let (messages, _) = small("chat", chat, entry.name, cpus);
                let all = 2 * 4 * 4 * 5;
                assert_eq!(messages, all, "every message reaches each of its room");
            }
            let (requests, digest) = small("web", &web, entry.name, cpus);
            assert!(requests > 16, "{}: {requests} requests", entry.name);
            assert_eq!(small("web", &web, entry.name, cpus), (requests, digest));
            let (bursts, _) = small("spin", &spin, entry.name, cpus);
            // Half a million cycles of 10 ns each make 140 bursts in 700 ms and on each CPU, less what
            // the kernel takes.
            let most = 140 * u64::from(cpus);
            assert!(
                (most * 8 / 10..=most).contains(&bursts),
                "{}: {bursts}",
                entry.name
            );
        }
    }
}
