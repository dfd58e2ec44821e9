//! Quotas of groups as kernels hand them to each CPU's queue, and the other limits that groups
//! have. A tick is 1 ms, and periods begin at multiples of their length.

use std::collections::BTreeMap;

use warmq_kernel::Throttling::{self, Groups, Pool, Tasks};

use warmq_units::Seed;

use crate::stage::*;
use crate::told::figures_on;

/// The figures of `text` on `cpus` CPUs after 3 s, under the scheduler of a kernel that throttles
/// so.
fn figures(throttling: Throttling, cpus: u16, text: &str) -> BTreeMap<String, f64> {
    let mut stage = stage(cpus).tick_of(1);
    stage.settings.throttling = throttling;
    stage.settings.nohz = true;
    let name = match throttling {
        Groups => "eevdf-6.12",
        Tasks | Pool | Throttling::Scheduler => "eevdf-6.18",
    };
    figures_on(stage, name, text, 300)
}

/// Workers that are all in a group, bound to a CPU each, and work for `run` at 28 ms of each period
/// of 100 ms.
fn workers(number: u16, run: &str, limits: &str) -> String {
    format!(
        r#"
        [group.pod]
        {limits}

        [task.worker]
        for = {{ number = {number} }}
        group = "pod"
        cpus = "cpu number"
        start = "28ms"
        every = "100ms"
        body = [{{ begin = "request" }}, {{ run = "{run}" }}, {{ end = "request" }}]
        "#
    )
}

const SIX: &str = "quota = \"6ms\"\nperiod = \"100ms\"";

/// A real 6.18.44 throttled such a group in 30 of 32 periods.
#[test]
fn two_threads_that_use_less_than_the_quota_are_throttled_all_the_same() {
    for throttling in [Groups, Tasks] {
        let figures = figures(throttling, 2, &workers(2, "2500us", SIX));
        let (periods, throttled) = (figures["pod_nr_periods"], figures["pod_nr_throttled"]);
        assert!(periods >= 29.0, "{figures:?}");
        assert!(
            throttled >= 0.9 * periods,
            "{throttling:?}: {throttled} of {periods}"
        );
        // One of the two waits for the next period, 72 ms.
        assert!(
            (70_000.0..76_000.0).contains(&figures["request_max"]),
            "{figures:?}"
        );
        let mean = figures["request_mean"];
        assert!(
            (30_000.0..40_000.0).contains(&mean),
            "{throttling:?}: {mean}"
        );
        assert!(
            figures["pod_throttled_time"] > 27.0 * 68_000.0,
            "{figures:?}"
        );
    }
}

/// A real 6.18.44 throttled them in 10 to 30 of 31 periods, by the moment at which they began.
#[test]
fn whether_two_threads_are_throttled_depends_on_where_the_ticks_fall() {
    let at = |seed| {
        let mut stage = stage(2).tick_of(4);
        stage.settings.throttling = Tasks;
        stage.settings.drawn_ticks = true;
        stage.settings.seed = Seed(seed);
        let figures = figures_on(stage, "eevdf-6.18", &workers(2, "2500us", SIX), 300);
        figures["request_max"]
    };
    let drawn: Vec<f64> = (1..=16).map(at).collect();
    let at_once = drawn.iter().filter(|&&longest| longest < 3_000.0).count();
    let a_period_later = drawn.iter().filter(|&&longest| longest > 70_000.0).count();
    assert!(at_once >= 4 && a_period_later >= 4, "{drawn:?}");
}

#[test]
fn one_thread_within_the_quota_is_never_throttled() {
    for throttling in [Groups, Tasks, Pool] {
        let figures = figures(throttling, 2, &workers(1, "5500us", SIX));
        assert_eq!(figures["pod_nr_throttled"], 0.0, "{throttling:?}");
        assert!(
            figures["request_max"] < 5_600.0,
            "{throttling:?} {figures:?}"
        );
        assert!(figures["pod_nr_periods"] >= 29.0, "{throttling:?}");
    }
}

#[test]
fn where_all_draw_from_one_pool_two_threads_are_not_throttled() {
    let figures = figures(Pool, 2, &workers(2, "2500us", SIX));
    assert_eq!(figures["pod_nr_throttled"], 0.0);
    assert!(figures["request_max"] < 2_600.0, "{figures:?}");
}

#[test]
fn many_cpus_with_little_each_wait_for_what_others_have_left_of_their_slices() {
    // Eight times 1.2 ms are 9.6 of 20, but four slices are all. Those who wait have what the
    // others return after the slack period, 5 ms, and no period ends with one who waits.
    let text = workers(8, "1200us", "quota = \"20ms\"\nperiod = \"100ms\"");
    for throttling in [Groups, Tasks] {
        let late = figures(throttling, 8, &text);
        assert!(
            (6_000.0..8_000.0).contains(&late["request_max"]),
            "{late:?}"
        );
        assert!(late["pod_throttled_time"] > 4.0 * 5_000.0, "{late:?}");
        assert_eq!(late["pod_nr_throttled"], 0.0, "{throttling:?}");
    }
    assert_eq!(figures(Pool, 8, &text)["pod_throttled_time"], 0.0);
}

#[test]
fn each_group_around_a_task_is_charged() {
    let text = |inner: u32, outer: u32| {
        format!(
            r#"
            [group.outer]
            quota = "{outer}ms"
            period = "100ms"
            [group.inner]
            parent = "outer"
            quota = "{inner}ms"
            period = "20ms"
            [task.hog]
            group = "inner"
            body = [{{ run = "1ms" }}]
            "#
        )
    };
    for throttling in [Groups, Tasks, Pool] {
        for (inner, outer, share) in [(10, 30, 30.0), (4, 90, 20.0)] {
            let figures = figures(throttling, 2, &text(inner, outer));
            let hog = figures["hog_share"];
            assert!(
                (hog - share).abs() < 2.5,
                "{throttling:?}: {hog} for {share}"
            );
        }
    }
}

#[test]
fn burst_serves_what_needs_more_than_a_quota_now_and_then() {
    let text = |more: &str| {
        format!(
            r#"
            [group.pod]
            quota = "6ms"
            period = "100ms"
            {more}
            [task.worker]
            group = "pod"
            start = "210ms"
            every = "300ms"
            body = [{{ begin = "request" }}, {{ run = "9ms" }}, {{ end = "request" }}]
            "#
        )
    };
    for throttling in [Groups, Tasks] {
        let without = figures(throttling, 1, &text(""));
        assert!(
            without["request_max"] > 80_000.0,
            "{throttling:?} {without:?}"
        );
        // Refills go on while a group is active, and one more: 6 ms and 4 are there by then.
        let with = figures(throttling, 1, &text("burst = \"4ms\""));
        assert!(with["request_max"] < 10_000.0, "{throttling:?} {with:?}");
        assert_eq!(with["pod_nr_throttled"], 0.0, "{throttling:?}");
    }
}

/// A hog in a group that is throttled after 10 ms of each second, `more` of it, and what is changed
/// at 500 ms.
fn throttled_hog(more: &str, change: &str) -> String {
    format!(
        r#"
        [group.pod]
        quota = "10ms"
        period = "1s"
        [group.other]
        [task.hog]
        group = "pod"
        body = [{{ run = "1ms" }}]
        {more}
        [[change]]
        at = "500ms"
        {change}
        [[phase]]
        name = "before"
        at = "100ms"
        [[phase]]
        name = "after"
        at = "500ms"
        [[phase]]
        name = "later"
        at = "900ms"
        "#
    )
}

#[test]
fn who_is_throttled_runs_when_the_quota_the_group_or_the_policy_changes() {
    for throttling in [Groups, Tasks, Pool] {
        for (change, share) in [
            ("group = \"pod\"\nset = { quota = \"600ms\" }", 100.0),
            ("task = \"hog\"\nset = { group = \"other\" }", 100.0),
            ("task = \"hog\"\nset = { policy = \"fifo 50\" }", 100.0),
            ("group = \"pod\"\nset = { weight = 50 }", 0.0),
        ] {
            let figures = figures(throttling, 1, &throttled_hog("", change));
            assert_eq!(figures["before.hog_share"], 0.0, "{throttling:?} {change}");
            let after = figures["after.hog_share"];
            assert!(
                (after - share).abs() < 1.0,
                "{throttling:?} {change}: {after}"
            );
        }
    }
}

#[test]
fn a_task_that_may_not_use_its_throttled_cpu_any_more_runs_where_there_is_time() {
    let more = r#"
        cpus = "cpu 0"
        [task.idler]
        group = "pod"
        cpus = "cpu 1"
        body = [{ run = "1ms" }, { sleep = "10s" }]
    "#;
    let text = throttled_hog(more, "task = \"hog\"\nset = { cpus = \"cpu 1\" }");
    // The idler's CPU keeps 1 ms of its slice.
    for throttling in [Groups, Tasks] {
        let figures = figures(throttling, 2, &text);
        assert_eq!(figures["before.hog_share"], 0.0, "{throttling:?}");
        let after = figures["after.hog_share"];
        assert!((0.2..1.0).contains(&after), "{throttling:?}: {after}");
    }
}

#[test]
fn an_idle_group_has_what_others_leave_and_is_preempted_by_all() {
    let text = |idle: &str| {
        format!(
            r#"
            [group.quiet]
            {idle}
            [task.quiet]
            group = "quiet"
            body = [{{ run = "1ms" }}]
            [task.beat]
            start = "500us"
            every = "20ms"
            body = [{{ run = "10ms" }}]
            "#
        )
    };
    for throttling in [Groups, Tasks] {
        let idle = figures(throttling, 1, &text("idle = true"));
        assert!((49.0..51.0).contains(&idle["beat_share"]), "{idle:?}");
        assert!(idle["beat_wait_max"] < 1_100.0, "{throttling:?} {idle:?}");
        let usual = figures(throttling, 1, &text(""));
        assert!(
            usual["quiet_share"] > idle["quiet_share"] - 1.0,
            "{usual:?}"
        );
        let both_hogs = text("idle = true").replace("every = \"20ms\"", "");
        let hogs = figures(throttling, 1, &both_hogs);
        assert!(hogs["quiet_share"] < 1.0, "{throttling:?} {hogs:?}");
    }
}

#[test]
fn a_group_that_is_idle_no_more_has_the_default_weight() {
    let text = r#"
        [group.quiet]
        idle = true
        [task.quiet]
        group = "quiet"
        body = [{ run = "1ms" }]
        [task.hog]
        body = [{ run = "1ms" }]
        [[change]]
        at = "1s"
        group = "quiet"
        set = { idle = false }
        [[phase]]
        name = "before"
        at = "0ms"
        [[phase]]
        name = "after"
        at = "1s"
    "#;
    for throttling in [Groups, Tasks] {
        let figures = figures(throttling, 1, text);
        assert!(figures["before.quiet_share"] < 1.5, "{figures:?}");
        let after = figures["after.quiet_share"];
        assert!((48.0..52.0).contains(&after), "{throttling:?}: {after}");
    }
}

#[test]
fn tasks_use_no_cpus_but_those_of_their_groups() {
    let text = r#"
        [group.outer]
        cpus = "cpus 1-2"
        [group.inner]
        parent = "outer"
        cpus = "cpus 2-3"
        [task.in]
        count = 2
        group = "inner"
        body = [{ run = "1ms" }]
        [task.asks]
        group = "outer"
        cpus = "cpus 0-1"
        body = [{ run = "1ms" }]
        [task.stays]
        cpus = "cpu 3"
        body = [{ run = "1ms" }]
        [[change]]
        at = "1s"
        group = "outer"
        set = { cpus = "cpu 3" }
        [[phase]]
        name = "before"
        at = "100ms"
        [[phase]]
        name = "while"
        at = "1s"
        [[phase]]
        name = "after"
        at = "1100ms"
    "#;
    for throttling in [Groups, Tasks] {
        let figures = figures(throttling, 4, text);
        let share = |name: &str| figures[name].round();
        // CPU 2 is all that both groups have; who asks for CPUs 0 and 1 gets the one that its group
        // has.
        assert_eq!(
            (share("before.in_share"), share("before.asks_share")),
            (100.0, 100.0)
        );
        assert_eq!(share("before.stays_share"), 100.0);
        // Both groups have CPU 3 now, and none of those that `asks` wants: half of it is for who
        // was there.
        let moved = figures["after.in_share"] + figures["after.asks_share"];
        assert!((45.0..55.0).contains(&moved), "{throttling:?} {figures:?}");
        assert_eq!((moved + figures["after.stays_share"]).round(), 100.0);
    }
}
