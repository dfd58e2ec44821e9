//! Who starves: beside a group, beside sleepers, for a time, for no known reason.

use super::*;
use crate::diagnose::{Found, text};

/// That there is no verdict, unless `task`, which is woken all the time, is late.
fn late_at_most(diagnosis: &Diagnosis, task: &str) {
    let found = verdicts(diagnosis);
    let late = BTreeMap::from([(Kind::Latency.name(), vec![task.to_owned()])]);
    assert!(found.is_empty() || found == late, "{diagnosis:#?}");
}

const HOGS: &str = "[task.hog]\ncount = 2\nbody = [{ run = \"1ms\" }]\n";

#[test]
fn nothing_starves_where_nothing_does() {
    for cpus in ["cpus = 1", "cpus = 2"] {
        if let Some(fair) = fair() {
            assert_eq!(verdicts(&story(HOGS, fair, cpus)), BTreeMap::new());
        }
    }
}

#[test]
fn a_session_beside_a_receiver_is_starved_by_its_group() {
    let receiver = include_str!("../../../../scenarios/receiver.toml");
    let found = story(receiver, "eevdf-6.18", "preempt = \"full\"");
    only(&found, Kind::GroupStarved, &["hog"]);
    let text = text::of(&Found {
        contents: None,
        header: Header {
            world: "lab".to_owned(),
            scheduler: "eevdf-6.18".to_owned(),
            preemption: "full".to_owned(),
            ..Header::default()
        },
        diagnosis: found,
    });
    insta::assert_snapshot!(text);
    // Under lazy preemption, too, where the waker leaves the wakeup to a CPU with another cache.
    let lazy = |machine| {
        story_on(
            machine,
            receiver,
            "eevdf-6.18",
            "cpus = 2\npreempt = \"lazy\"",
        )
    };
    only(&lazy("tiny-2cpu"), Kind::GroupStarved, &["hog"]);
    late_at_most(&lazy("small-4llc"), "receiver");
    let others = [("eevdf-6.12", ""), ("eevdf-7.1", "preempt = \"full\"")];
    let fair = fair().map(|fair| (fair, ""));
    for (scheduler, settings) in others.into_iter().chain(fair) {
        let found = story(receiver, scheduler, settings);
        late_at_most(&found, "receiver");
    }
}

#[test]
fn a_hog_beside_frequent_sleepers_that_go_first_is_starved_by_them() {
    let law = include_str!("../../../../laws/frequent-sleepers.toml");
    let scenario = without_law(law);
    let found = story(&scenario, "broken", "cpus = 1\nfault = \"woken-first\"");
    only(&found, Kind::SleeperPreempts, &["hog"]);
}

#[test]
fn a_kernel_that_forgets_what_sleepers_owe_lets_them_starve_a_hog() {
    let sleepers = include_str!("../../../tests/verdicts/sleepers.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.2"] {
        let forgets = "cpus = 1\nplace_lag = false\ndelay_dequeue = false";
        let found = story(sleepers, kernel, forgets);
        only(&found, Kind::SleeperPreempts, &["hog"]);
        let kinds = verdicts(&story(sleepers, kernel, "cpus = 1"));
        let kinds: Vec<&str> = kinds.into_keys().collect();
        assert_eq!(kinds, [Kind::TooMany.name()], "{kernel}");
    }
}

/// A group whose own task elsewhere is runnable and hardly runs: it divides the group's weight all
/// the same.
#[test]
fn a_group_starves_another_whose_own_task_elsewhere_only_waits() {
    let text = include_str!("../../../tests/verdicts/group-starves.toml");
    let found = story(text, "eevdf-6.18", "preempt = \"full\"");
    let found = verdicts(&found);
    assert_eq!(found[Kind::GroupStarved.name()], ["victim"], "{found:?}");
    assert!(!found.contains_key(Kind::Unexplained.name()), "{found:?}");
    // It is due what its group is on that CPU, and has it.
    assert_eq!(found[Kind::LeastWeight.name()], ["aside"]);
    let healthy = verdicts(&story(text, "eevdf-7.1", "preempt = \"full\""));
    assert!(
        !healthy.contains_key(Kind::GroupStarved.name()),
        "{healthy:?}"
    );
}

#[test]
fn a_burst_is_reported_with_its_time_whatever_the_mean_says() {
    let text = include_str!("../../../tests/verdicts/burst.toml");
    let found = story_for("8s", text, "eevdf-6.18", "preempt = \"full\"");
    only(&found, Kind::GroupStarved, &["victim"]);
    let burst = &found.verdicts[0];
    let ms = |ns: u64| ns / 1_000_000;
    let (from, to) = (ms(burst.when_ns.0), ms(burst.when_ns.1));
    assert!(
        (4_000..4_500).contains(&from) && (5_200..5_900).contains(&to),
        "{from} to {to}"
    );
    assert_eq!((burst.bursts, burst.longest_ns), (1, burst.when_ns));
    assert!(burst.says.contains("from 4."), "{}", burst.says);
    let healthy = story_for("8s", text, "eevdf-7.1", "preempt = \"full\"");
    late_at_most(&healthy, "woken");
}

#[test]
fn who_starves_for_no_known_reason_starves_all_the_same() {
    // Whoever became runnable last goes first: of three hogs of one weight one gets nothing.
    let three = "[task.hog]\ncount = 3\nbody = [{ run = \"1ms\" }]\n";
    let found = story(three, "broken", "cpus = 1\nfault = \"lifo\"");
    let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
    assert_eq!(kinds, [Kind::Unexplained.name()], "{found:#?}");
}
