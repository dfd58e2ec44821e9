//! The figures of a small story, in the whole measurement and in its phases.

use warmq_units::CpuId;

use super::*;

const CPU: CpuId = CpuId(0);
const A: TaskId = TaskId(0);
const B: TaskId = TaskId(1);

fn names() -> Names {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Names {
        tasks: list(&["hog", "audio"]),
        spans: list(&["trip"]),
        counters: list(&["rounds", "latch_taken", "latch_contended", "latch_spun"]),
        phases: list(&["calm", "storm"]),
        groups: list(&["pod"]),
        spinlocks: list(&["latch"]),
        work: "rounds".to_owned(),
    }
}

#[test]
fn quotas_are_counted_from_the_measurement_on_and_in_each_phase() {
    let counted = |periods, throttled, us| Record::Quota {
        group: 7,
        periods,
        throttled,
        span: Duration::from_us(us),
    };
    let pod = Record::Cgroup {
        group: 7,
        parent: 0,
        weight: 100,
        name: warmq_trace::Comm::new("pod"),
    };
    let mut meter = PlayMeter::starting_at(names(), ms(100));
    meter.see(ms(0), &pod);
    assert!(!meter.figures(ms(50)).contains_key("pod_nr_periods"));
    meter.see(ms(100), &counted(1, 1, 70));
    meter.see(ms(200), &counted(2, 1, 70));
    meter.see(ms(250), &Record::Phase { phase: 1 });
    meter.see(ms(300), &counted(3, 2, 170));
    let figures = meter.figures(ms(300));
    let of = |name: &str| figures[name];
    assert_eq!((of("pod_nr_periods"), of("pod_nr_throttled")), (2.0, 1.0));
    assert_eq!(of("pod_throttled_time"), 100.0);
    assert_eq!(of("storm.pod_nr_periods"), 1.0);

    let mut meter = PlayMeter::starting_at(names(), ms(100));
    meter.see(ms(0), &pod);
    meter.see(ms(50), &Record::Phase { phase: 0 });
    meter.see(ms(100), &counted(1, 1, 70));
    meter.see(ms(200), &counted(2, 1, 70));
    let figures = meter.figures(ms(300));
    assert_eq!(figures["calm.pod_nr_periods"], 1.0, "not of the warm-up");
}

#[test]
fn looks_at_a_spin_lock_are_those_of_the_measurement() {
    let mut meter = PlayMeter::starting_at(names(), ms(100));
    let mut count = |at, totals: [u64; 3]| {
        for (counter, total) in (1..).zip(totals) {
            meter.see(ms(at), &Record::Count { counter, total });
        }
    };
    count(100, [10, 5, 1_000_000]);
    count(1_100, [110, 30, 251_000_000]);
    let figures = meter.figures(ms(1_100));
    let of = |name: &str| figures[name];
    assert_eq!(
        (of("latch_taken_per_second"), of("latch_contention")),
        (100.0, 25.0)
    );
    assert_eq!(of("latch_spin_share"), 25.0);
    assert!(
        !figures.contains_key("latch_spun_per_second"),
        "it counts time"
    );
    let described = described(&names());
    for name in figures.keys().filter(|name| name.starts_with("latch")) {
        assert!(described.iter().any(|known| known.name == *name), "{name}");
    }
}

fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

fn role(task: TaskId, table: u32) -> Record {
    Record::Role {
        task,
        table,
        number: 0,
    }
}

fn switch(prev: Option<TaskId>, prev_runnable: bool, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu: CPU,
        prev,
        prev_runnable,
        next,
    }
}

fn woken(task: TaskId) -> Record {
    Record::Wakeup {
        waker: CPU,
        task,
        target: CPU,
    }
}

/// The hog runs; audio is woken every 10 ms, waits 1 ms (3 ms in the storm, which begins at 100)
/// and runs 2 ms; its span reaches from the wakeup to the end. It counts its rounds.
fn story(from: Instant) -> PlayMeter {
    let mut meter = PlayMeter::starting_at(names(), from);
    meter.see(ms(0), &role(A, 0));
    meter.see(ms(0), &role(B, 1));
    meter.see(ms(0), &switch(None, false, Some(A)));
    meter.see(ms(0), &Record::Phase { phase: 0 });
    let (span, number) = (0, 1);
    for round in 0..20 {
        let at = 10 * round;
        let total = round;
        meter.see(ms(at), &Record::Count { counter: 0, total });
        if round == 10 {
            meter.see(ms(at), &Record::Phase { phase: 1 });
        }
        let wait = if round < 10 { 1 } else { 3 };
        meter.see(ms(at), &woken(B));
        let begin = Record::SpanBegin {
            task: B,
            span,
            number,
        };
        meter.see(ms(at), &begin);
        meter.see(ms(at + wait), &switch(Some(A), true, Some(B)));
        let end = Record::SpanEnd {
            task: B,
            span,
            number,
        };
        meter.see(ms(at + wait + 2), &end);
        meter.see(ms(at + wait + 2), &switch(Some(B), false, Some(A)));
    }
    meter.see(
        ms(200),
        &Record::Count {
            counter: 0,
            total: 20,
        },
    );
    meter
}

fn is(figures: &BTreeMap<String, f64>, name: &str, wanted: f64) {
    let found = figures.get(name).copied().unwrap_or(f64::NAN);
    assert!((found - wanted).abs() <= wanted * 1e-3, "{name}: {found}");
}

#[test]
fn a_span_that_began_before_it_was_said_is_longer_by_that() {
    let mut meter = PlayMeter::starting_at(names(), ms(0));
    let (task, span, number) = (B, 0, 1);
    let ago = Duration::from_ms(4);
    let began = Record::SpanBegan {
        task,
        span,
        number,
        ago,
    };
    meter.see(ms(0), &role(B, 1));
    meter.see(ms(10), &began);
    meter.see(ms(12), &Record::SpanEnd { task, span, number });
    is(&meter.figures(ms(20)), "trip_max", 6_000.0);
}

#[test]
fn shares_waits_spans_and_counts_are_those_of_their_window() {
    let figures = story(ms(0)).figures(ms(200));
    is(&figures, "work_per_second", 100.0);
    is(&figures, "audio_share", 20.0);
    is(&figures, "hog_share", 80.0);
    is(&figures, "hog_preemptions_per_second", 100.0);
    is(&figures, "calm.audio_wait_max", 1_000.0);
    is(&figures, "storm.audio_wait_mean", 3_000.0);
    is(&figures, "calm.trip_p99", 3_000.0);
    is(&figures, "storm.trip_p50", 5_000.0);
    is(&figures, "calm.hog_delay_max", 2_000.0);
    is(&figures, "storm.audio_delay_max", 3_000.0);
    is(&figures, "audio_wait_mean", 2_000.0);
    is(&figures, "storm.rounds_per_second", 100.0);
    is(&figures, "calm.hog_share", 80.0);
    is(&figures, "storm.trip_spans_per_second", 100.0);
    assert!(!figures.contains_key("hog_wait_p50"), "it was never woken");
}

#[test]
fn what_was_before_the_measurement_does_not_count() {
    let figures = story(ms(100)).figures(ms(200));
    is(&figures, "work_per_second", 100.0);
    is(&figures, "audio_share", 20.0);
    is(&figures, "audio_wait_mean", 3_000.0);
}

/// The measurement begins at 50 ms, in the phase `calm` that ends at 100 ms.
#[test]
fn of_a_phase_that_begins_in_the_warm_up_only_what_is_measured_counts() {
    let figures = story(ms(50)).figures(ms(200));
    is(&figures, "calm.audio_share", 20.0);
    is(&figures, "calm.hog_share", 80.0);
    is(&figures, "calm.hog_preemptions_per_second", 100.0);
    // A phase that is over by then has no figures.
    let later = story(ms(150)).figures(ms(200));
    assert!(
        !later.keys().any(|name| name.starts_with("calm.")),
        "{later:?}"
    );
    is(&later, "storm.hog_share", 80.0);
}

#[test]
fn without_switches_the_tasks_own_clocks_count() {
    let mut meter = PlayMeter::starting_at(names(), ms(100));
    meter.see(ms(0), &role(A, 0));
    let ran = |total| Record::Ran {
        task: A,
        total: Duration::from_ms(total),
    };
    meter.see(ms(100), &ran(60));
    meter.see(ms(300), &ran(160));
    is(&meter.figures(ms(300)), "hog_share", 50.0);
}

#[test]
fn every_figure_is_described() {
    let known: Vec<String> = described(&names())
        .into_iter()
        .map(|figure| figure.name)
        .collect();
    for name in story(ms(0)).figures(ms(200)).keys() {
        let plain = name.split_once('.').map_or(name.as_str(), |(_, name)| name);
        assert!(known.iter().any(|known| known == plain), "{name}");
    }
}

/// Where events are missing, a task's own clock says how long it ran.
#[test]
fn shares_do_not_come_from_switches_with_gaps() {
    let share = |events| {
        let mut meter = PlayMeter::starting_at(names(), ms(0));
        let hog = TaskId(0);
        let ran = |total| Record::Ran {
            task: hog,
            total: Duration::from_ms(total),
        };
        let switch = |prev, next| Record::Switch {
            cpu: CPU,
            prev,
            prev_runnable: false,
            next,
        };
        let role = Record::Role {
            task: hog,
            table: 0,
            number: 0,
        };
        let lost = Record::Lost { cpu: CPU, events };
        let story = [
            (0, role),
            (0, ran(10)),
            (0, switch(None, Some(hog))),
            (20, lost),
            (80, switch(Some(hog), None)),
            (100, ran(40)),
        ];
        for (at, record) in &story {
            meter.see(ms(*at), record);
        }
        let figures = meter.figures(ms(100));
        (figures["hog_share"], figures.get(MISSING).copied())
    };
    assert_eq!(share(1), (80.0, None));
    assert_eq!(share(9), (30.0, Some(60.0)));
}

#[test]
fn lost_events_are_counted() {
    let mut meter = PlayMeter::starting_at(names(), ms(0));
    let lost = |events| Record::Lost { cpu: CPU, events };
    meter.see(ms(1), &lost(0));
    meter.see(ms(2), &lost(4));
    is(&meter.figures(ms(3)), "lost_events", 5.0);
}
