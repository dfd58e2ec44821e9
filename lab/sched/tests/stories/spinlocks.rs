//! Spin locks of scenarios, by what a task does that has looked in vain.

use warmq_kernel::Ending;

use crate::scenarios::played;

/// A holder that is preempted in the middle, and another task of the same CPU that wants the lock.
fn text(spinlock: &str) -> String {
    format!(
        r#"
        [spinlock.l]
        pause = "1us"
        {spinlock}

        [task.holder]
        times = 1
        body = [{{ lock = "l" }}, {{ run = "100ms" }}, {{ unlock = "l" }}, {{ run = "10ms" }}]

        [task.other]
        start = "5ms"
        times = 1
        body = [{{ lock = "l" }}, {{ run = "10ms" }}, {{ unlock = "l" }}]
        "#
    )
}

/// What was counted of the lock: taken, found held, microseconds of looks.
fn counted(spinlock: &str) -> (u64, u64, u64) {
    let (ending, _, counters) = played(&text(spinlock), 1, 100);
    assert_eq!(ending, Ending::WorkDone, "{spinlock}");
    let counted = ["l_taken", "l_contended", "l_spun"].map(|name| counters.get(name));
    (counted[0], counted[1], counted[2] / 1_000)
}

#[test]
fn who_only_spins_uses_the_cpu_that_the_holder_needs() {
    let (taken, contended, spun_us) = counted("");
    assert_eq!((taken, contended), (2, 1));
    // Under 2.4's scheduler each has its slice of 50 ms in turn.
    assert!(spun_us >= 45_000, "{spun_us}");
}

#[test]
fn after_so_many_looks_the_holder_goes_on() {
    // Who yields lets the holder have its whole slice; who sleeps is back after 1 ms.
    for (then, least) in [("yield", 1), ("sleep", 2), ("futex", 1)] {
        let (taken, contended, spun_us) = counted(&format!("then = \"{then}\"\nspins = 1000"));
        assert_eq!((taken, contended), (2, 1), "{then}");
        // A tick in the middle of a round leaves out a part of a look.
        let rounds = (spun_us + 10) / 1_000;
        assert!(rounds >= least, "{then}: {spun_us}");
        // It sleeps until it is woken.
        assert!(then != "futex" || rounds == 1, "{spun_us}");
    }
}

#[test]
fn a_free_lock_is_taken_without_a_look_in_vain() {
    let text = r#"
        [spinlock.l]
        for = { n = 3 }
        then = "futex"
        [task.t]
        for = { n = 3 }
        times = 5
        body = [{ lock = "l[n]" }, { run = "1ms" }, { unlock = "l[n]" }, { count = "done" }]
    "#;
    let (ending, _, counters) = played(text, 2, 10);
    assert_eq!(ending, Ending::WorkDone);
    let counted = ["l_taken", "l_contended", "l_spun", "done"].map(|name| counters.get(name));
    assert_eq!(counted, [15, 0, 0, 15]);
}

#[test]
fn tasks_of_different_cpus_share_no_lock_of_a_cpu() {
    let contended = |per_cpu: bool| {
        let tasks = [0, 1].map(|cpu| {
            format!(
                r#"
                [task.of{cpu}]
                cpus = "cpu {cpu}"
                times = 30
                body = [{{ lock = "l" }}, {{ run = "1ms" }}, {{ unlock = "l" }}, {{ run = "100us" }}]
                "#
            )
        });
        let text = format!("[spinlock.l]\nper_cpu = {per_cpu}\n{}", tasks.concat());
        let (ending, _, counters) = played(&text, 2, 20);
        assert_eq!(ending, Ending::WorkDone);
        assert_eq!(counters.get("l_taken"), 60);
        counters.get("l_contended") > 0
    };
    assert!(contended(false));
    assert!(!contended(true));
}

#[test]
fn who_unlocks_what_another_one_holds_ends_the_run() {
    let text = r#"
        [spinlock.l]
        [task.a]
        times = 1
        body = [{ lock = "l" }, { run = "50ms" }, { unlock = "l" }]
        [task.b]
        start = "5ms"
        times = 1
        body = [
          { repeat = 0, body = [{ lock = "l" }] },
          { unlock = "l" },
        ]
    "#;
    let (ending, ..) = played(text, 2, 10);
    assert!(matches!(ending, Ending::ProgramBroke { .. }), "{ending:?}");
}
