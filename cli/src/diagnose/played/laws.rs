//! What laws that are kept provoke.

use warmq_experiment::laws::{Case, all_shipped, workload};
use warmq_law::Column;
use warmq_scenario::WorldKind;

use super::*;

/// What laws provoke that are kept, and why that is right.
const OF_LAWS: &[(&str, &[Kind])] = &[
    // They are about weights, and who has the least of them waits for four fifths of the time.
    ("nice-on-two-cpus", &[Kind::LeastWeight]),
    ("weights", &[Kind::LeastWeight]),
    ("unusable-weights", &[Kind::LeastWeight]),
    // Of a hundred tasks on one CPU one has the least weight.
    ("least-weight", &[Kind::LeastWeight, Kind::TooMany]),
    // They have four tasks and more for each CPU that these may use, which have their turns.
    ("nested", &[Kind::TooMany]),
    ("one-against-many", &[Kind::TooMany]),
    ("frequent-sleepers", &[Kind::TooMany]),
    ("behind-pinned", &[Kind::TooMany]),
    ("fork-storm", &[Kind::TooMany]),
    ("lying-hints", &[Kind::TooMany]),
    // Six hogs bind themselves to one of two CPUs and to the other all the time.
    ("changes", &[Kind::TooMany]),
    // They are about quotas.
    ("quota", &[Kind::Quota]),
    ("quota-sleepers", &[Kind::Quota]),
    // Three want a CPU each, and have a fifth of one; two have what a server leaves them.
    ("deadline", &[Kind::Realtime, Kind::Reservation]),
    // A server leaves the task beside the real-time one 5 %.
    ("real-time-hog-pinned", &[Kind::Realtime]),
    // Receivers that run for some us wait for a turn of a hog, or for some.
    ("receiver-beside-hog", &[Kind::Latency]),
    ("receiver-beside-hogs", &[Kind::Latency]),
    ("other-session", &[Kind::Latency]),
    ("other-cgroup", &[Kind::Latency]),
];

/// The same under the scheduler of 6.18.
fn of_laws_under_eevdf() -> Vec<(&'static str, &'static [Kind])> {
    let others = ["changes", "fork-storm"];
    let of_both = OF_LAWS.iter().filter(|(law, _)| !others.contains(law));
    let more: [(&str, &[Kind]); 3] = [
        // Its task that is woken by a timer waits for 12 ms, where 8 are the bound.
        ("timer-same-group", &[Kind::Latency, Kind::TooMany]),
        // Who is woken there runs for 20 to 60 us, and waits for a tick.
        ("timer", &[Kind::Latency]),
        // Forkers run for a quarter of a millisecond between children, and wait for 4 ms.
        ("fork-storm", &[Kind::Latency]),
    ];
    of_both.copied().chain(more).collect()
}

/// The same under the compiled scx_warmq.
fn of_laws_under_a_compiled_one() -> Vec<(&'static str, &'static [Kind])> {
    let more: [(&str, &[Kind]); 4] = [
        // The parent waits for 9 ms between its children.
        ("forks", &[Kind::Latency, Kind::TooMany]),
        // Who is woken there waits for its patience, 3 ms, at p99.
        ("timer", &[Kind::Latency]),
        ("timer-same-group", &[Kind::Latency]),
        ("timer-other-group", &[Kind::Latency]),
    ];
    OF_LAWS.iter().copied().chain(more).collect()
}

#[test]
fn laws_that_are_kept_provoke_no_other_verdicts_than_they_are_made_for() {
    let Some(fair) = fair() else {
        return;
    };
    let wrong = falsely_judged(fair, None, &of_laws_under_a_compiled_one());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn laws_that_the_kernel_keeps_provoke_no_other_verdicts_under_it_either() {
    let wrong = falsely_judged("kernel", Some("6.18"), &of_laws_under_eevdf());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Plays all laws under a scheduler of the lab: a sentence for each whose verdicts are not those
/// that are expected.
fn falsely_judged(
    scheduler: &str,
    kernel: Option<&str>,
    expected_of: &[(&str, &[Kind])],
) -> Vec<String> {
    let laws = all_shipped().unwrap();
    let column = Column {
        world: WorldKind::Lab,
        kernel: kernel.map(str::to_owned),
        preempt: None,
        scheduler: scheduler.to_owned(),
        alike: false,
    };
    let mut wrong = Vec::new();
    for law_of in &laws {
        let law = &law_of.law;
        let engine = worlds::add(Engine::new(None));
        engine.know(&workload(law), &law_of.text).unwrap();
        let case = Case::new(law_of, &column, &engine, None, 1).unwrap();
        let expected = expected_of.iter().find(|(name, _)| *name == law.name);
        let expected: Vec<&str> = expected
            .into_iter()
            .flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.name()))
            .collect();
        for job in case.jobs() {
            let found = diagnosed(&engine, &job.plan);
            let mut kinds: Vec<&str> = found
                .verdicts
                .iter()
                .map(|verdict| verdict.kind.name())
                .collect();
            kinds.sort_unstable();
            kinds.dedup();
            if kinds != expected {
                let says: Vec<&str> = found
                    .verdicts
                    .iter()
                    .map(|verdict| verdict.says.as_str())
                    .collect();
                wrong.push(format!("{}: {kinds:?}: {}", law.name, says.join(" | ")));
            }
        }
    }
    wrong
}
