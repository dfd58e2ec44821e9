//! Spin locks that tasks of several processes share.

use crate::support::{Played, play_ms};

/// The three counts of a lock: taken, found held, nanoseconds of looks.
fn counted(played: &Played) -> [u64; 3] {
    ["l_taken", "l_contended", "l_spun"].map(|name| played.counted(name))
}

const RULES: [&str; 4] = [
    "",
    "then = \"yield\"\nspins = 50",
    "then = \"sleep\"\nspins = 50\ndelay = \"20us\"\ndelay_most = \"1ms\"",
    "then = \"futex\"\nspins = 50",
];

#[test]
fn processes_take_turns_by_each_rule() {
    for rule in RULES
        .into_iter()
        .chain(["per_cpu = true\nthen = \"yield\""])
    {
        let text = format!(
            "
            [spinlock.l]
            {rule}
            [task.t]
            count = 4
            times = 100
            body = [{{ lock = \"l\" }}, {{ run = \"2us\" }}, {{ unlock = \"l\" }}, {{ run = \"1us\" }}]"
        );
        let [taken, contended, _] = counted(&play_ms(&text, 20_000));
        assert_eq!(taken, 400, "{rule}");
        assert!(contended <= taken, "{rule}");
    }
}

/// The holder sleeps with the lock held, and does so only when the other is about to take it.
#[test]
fn what_looks_in_vain_cost_is_counted() {
    for rule in RULES {
        let text = format!(
            "
            [spinlock.l]
            pause = \"1us\"
            {rule}
            [semaphore.held]
            [semaphore.comes]
            [task.holder]
            times = 1
            body = [
              {{ lock = \"l\" }}, {{ raise = \"held\" }}, {{ lower = \"comes\" }}, {{ sleep = \"300ms\" }},
              {{ unlock = \"l\" }},
            ]
            [task.other]
            times = 1
            body = [
              {{ lower = \"held\" }}, {{ raise = \"comes\" }}, {{ lock = \"l\" }}, {{ unlock = \"l\" }},
            ]"
        );
        let [taken, contended, spun_ns] = counted(&play_ms(&text, 20_000));
        assert_eq!((taken, contended), (2, 1), "{rule}");
        assert!(spun_ns >= 50_000, "{rule}: {spun_ns}");
        // One round of looks, after which it sleeps until it is woken.
        assert!(!rule.contains("futex") || spun_ns == 50_000, "{spun_ns}");
    }
}
