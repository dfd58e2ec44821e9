//! What a program has counted, wherever it counts.

use warmq_kernel::*;
use warmq_sched_ext::Profile;
use warmq_units::CpuId;

use crate::stage::*;

const COUNTING: &[u8] = include_bytes!("../programs/counting.bpf.o");

const HEAD: &str = "name = \"counting\"\nsource = \"ours\"\n";

/// What a task on each of two CPUs makes it count that computes for 1 ms and sleeps for 2 ms, ten
/// times. The first time it is new, and not woken.
fn counted(profile: &str) -> Vec<(String, u64)> {
    let profile = Profile::read(&format!("{HEAD}{profile}")).expect("a profile");
    let workload = |boot: &mut Boot<'_>| -> Started {
        for cpu in [0, 1] {
            boot.task(called("a").bound([CpuId(cpu)]), |task: Task| async move {
                loop {
                    task.compute_for(ms(1)).await;
                    task.sleep(ms(2)).await;
                }
            })?;
        }
        Ok(())
    };
    let loaded = load_with(COUNTING, "7.3", profile, &[]);
    play(loaded, 2, 28, &workload).counted.into_iter().collect()
}

#[test]
fn counters_are_found_in_the_code_and_added_up_over_cpus() {
    let mut counted = counted("");
    // The greatest time: only a profile can say that this element is no count.
    counted.retain(|(name, _)| name != "cpus.steps.3");
    let text = counted
        .iter()
        .map(|(name, count)| format!("{name} {count}"));
    let text = text.collect::<Vec<_>>().join(", ");
    assert_eq!(
        text,
        "by_cpu 20, by_kind.0 2, by_kind.1 18, by_kind.2 0, cpus.steps.0 20, cpus.steps.1 20, \
         cpus.steps.2 20, nr_enqueued 20, nr_ran 20, own.stops 20, stats.0 2, stats.1 18, \
         totals.inner.runs 140"
    );
}

#[test]
fn a_profile_says_what_its_counters_are_called_and_which_are_none() {
    let profile = r#"
[[counters]]
of = "cpus[cpu].steps"
names = "step"
without = ["longest"]
"#;
    let counted = counted(profile);
    let names = [("enqueued", 20), ("ran", 20), ("stopped", 20)];
    assert_eq!(counted, names.map(|(name, count)| (name.to_owned(), count)));
}
