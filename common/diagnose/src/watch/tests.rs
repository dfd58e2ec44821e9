//! Sums of small stories.

use proptest::prelude::*;
use warmq_trace::{Account, Cause, Comm, Context, Interrupt, State};

use crate::{Diagnosis, Kind, Verdict};

use super::*;

mod groups;

const A: TaskId = TaskId(1);
const B: TaskId = TaskId(2);

fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

fn switch(cpu: u16, prev: Option<TaskId>, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu: CpuId(cpu),
        prev,
        prev_runnable: prev.is_some(),
        next,
    }
}

fn woken(task: TaskId, cpu: u16) -> Record {
    Record::Wakeup {
        waker: CpuId(0),
        task,
        target: CpuId(cpu),
    }
}

/// Of a recording of Linux' own scheduler on two CPUs with caches of their own.
fn two_cpus() -> Header {
    Header {
        scheduler: "kernel".to_owned(),
        clock: "monotonic".to_owned(),
        places: vec![(0, 0), (1, 1)],
        ..Header::default()
    }
}

fn watched(records: &[(u64, Record)], from: u64) -> Watcher {
    let mut watcher = Watcher::new(&two_cpus(), ms(from), Instant(u64::MAX));
    for (at, record) in records {
        watcher.see(ms(*at), record);
    }
    watcher.close();
    watcher
}

/// A runs, B is woken there at 10 ms, has the CPU from 30 to 40 ms, and waits again to the end.
fn story() -> Vec<(u64, Record)> {
    vec![
        (0, switch(0, None, Some(A))),
        (10, woken(B, 0)),
        (30, switch(0, Some(A), Some(B))),
        (40, switch(0, Some(B), Some(A))),
        (100, Record::Recalculate { cpu: CpuId(1) }),
    ]
}

#[test]
fn a_wait_counts_with_who_ran_instead_and_what_idled() {
    let watcher = watched(&story(), 0);
    let (a, b) = (watcher.tasks.get(A).unwrap(), watcher.tasks.get(B).unwrap());
    assert_eq!(
        (a.tally.ran, a.tally.waited),
        (Duration::from_ms(90), Duration::from_ms(10))
    );
    assert_eq!(
        (b.tally.ran, b.tally.waited),
        (Duration::from_ms(10), Duration::from_ms(80))
    );
    assert_eq!(b.tally.longest.span(), Duration::from_ms(60));
    assert_eq!(b.tally.beside, [(A, Duration::from_ms(80))]);
    assert_eq!(a.tally.beside, [(B, Duration::from_ms(10))]);
    // CPU 1 idled all the time, and B may use it.
    assert_eq!(b.tally.idle.inside, Duration::from_ms(80));
    assert_eq!(b.tally.wakeups, 1);
}

#[test]
fn only_what_is_within_the_window_counts() {
    let watcher = watched(&story(), 35);
    let b = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(
        (b.ran, b.waited),
        (Duration::from_ms(5), Duration::from_ms(60))
    );
    assert_eq!(b.wakeups, 0);
    assert_eq!(b.beside, [(A, Duration::from_ms(60))]);
}

#[test]
fn a_cpu_that_its_affinity_excludes_is_distinguished_from_one_that_it_may_use() {
    let bound = Record::Affinity {
        task: B,
        from: CpuId(0),
        cpus: 1,
    };
    let mut story = story();
    story.insert(2, (20, bound));
    let watcher = watched(&story, 0);
    let b = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(b.idle.inside, Duration::from_ms(10));
    assert_eq!(b.idle.outside, Duration::from_ms(70));
    assert_eq!(b.longest.span(), Duration::from_ms(60));
}

#[test]
fn interrupts_take_from_whoever_runs_and_whoever_waits() {
    let (cpu, interrupt) = (CpuId(0), Interrupt::NetworkSoftirq);
    let mut story = story();
    story.insert(2, (15, Record::InterruptEnter { cpu, interrupt }));
    story.insert(3, (22, Record::InterruptExit { cpu, interrupt }));
    let watcher = watched(&story, 0);
    for task in [A, B] {
        let tally = &watcher.tasks.get(task).unwrap().tally;
        assert_eq!(tally.interrupted, Duration::from_ms(7));
    }
    // Where no interrupt raised it, A receives what it sends, in its own turn.
    let line = Interrupt::Line(9);
    let [enter, exit] = [
        Record::InterruptEnter {
            cpu,
            interrupt: line,
        },
        Record::InterruptExit {
            cpu,
            interrupt: line,
        },
    ];
    story.splice(1..1, [(5, enter), (6, exit)]);
    let watcher = watched(&story, 0);
    let a = &watcher.tasks.get(A).unwrap().tally;
    assert_eq!(a.interrupted, Duration::from_ms(1));
    let b = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(b.interrupted, Duration::ZERO);
}

#[test]
fn what_ksoftirqd_runs_counts_once() {
    let (cpu, interrupt) = (CpuId(0), Interrupt::Softirq(9));
    let comm = Comm::new("ksoftirqd/0");
    let mut story = vec![(0, Record::Renamed { task: B, comm }), (0, woken(A, 0))];
    for turn in (0..1_000).step_by(10) {
        story.extend([
            (turn, switch(0, (turn > 0).then_some(A), Some(B))),
            (turn, Record::InterruptEnter { cpu, interrupt }),
            (turn + 6, Record::InterruptExit { cpu, interrupt }),
            (turn + 6, sleeps(0, B, A)),
            (turn + 10, woken(B, 0)),
        ]);
    }
    let diagnosis = diagnosed(&two_cpus(), &story, &[]);
    let [verdict] = &diagnosis.verdicts[..] else {
        panic!("{diagnosis:?}");
    };
    assert_eq!((verdict.kind, verdict.tasks.len()), (Kind::Interrupts, 1));
    let because = &verdict.because;
    assert!(
        because.starts_with("That is 60 % of the time; ksoftirqd had 600 ms of it."),
        "{because}"
    );
}

#[test]
fn what_helps_against_interrupts_depends_on_who_raises_them() {
    let cpu = CpuId(0);
    // A CPU of which an interrupt and the softirq after it have half.
    let story = |first: Interrupt, softirq: Interrupt, each: u64| {
        let mut story = vec![(0, switch(0, None, Some(A)))];
        for at in (10..1_000).step_by(each as usize) {
            let of = |at, interrupt, span| {
                let enter = Record::InterruptEnter { cpu, interrupt };
                [
                    (at, enter),
                    (at + span, Record::InterruptExit { cpu, interrupt }),
                ]
            };
            story.extend(of(at, first, 0));
            story.extend(of(at, softirq, each / 2));
        }
        diagnosed_lacking(&story, &[])
    };
    let (line, ipi) = (Interrupt::Line(9), Interrupt::Reschedule);
    let (network, rcu) = (Interrupt::NetworkSoftirq, Interrupt::Softirq(9));
    let cases = [
        (line, network, 4, "of the device"),
        (ipi, network, 4, "where RPS steers them"),
        (line, network, 40, "where RPS steers them"),
        (ipi, rcu, 4, "rcu_nocbs"),
    ];
    for (first, softirq, each, cure) in cases {
        let found = story(first, softirq, each);
        let verdict = &found.verdicts[0];
        assert_eq!(verdict.kind, Kind::Interrupts);
        assert!(verdict.cures[0].does.contains(cure), "{verdict:#?}");
    }
}

#[test]
fn a_throttled_task_does_not_wait() {
    let throttled = Record::Block {
        cpu: CpuId(0),
        task: A,
        cause: Cause::Quota,
        state: State::Runnable,
        object: None,
    };
    let records = [
        (0, switch(0, None, Some(A))),
        (10, throttled),
        (10, switch(0, Some(A), None)),
        (50, woken(A, 0)),
        (52, switch(0, None, Some(A))),
        (60, Record::Recalculate { cpu: CpuId(0) }),
    ];
    let watcher = watched(&records, 0);
    let tally = &watcher.tasks.get(A).unwrap().tally;
    assert_eq!(tally.throttled, Duration::from_ms(40));
    assert_eq!(tally.waited, Duration::from_ms(2));
    assert_eq!(tally.ran, Duration::from_ms(18));
    assert_eq!(tally.ran, Duration::from_ms(18));
    assert_eq!(tally.wakeups, 0, "the next period is no wakeup");
}

#[test]
fn a_task_that_is_woken_while_it_seems_to_wait_has_run_unseen() {
    let waking = Record::Waking {
        cpu: CpuId(0),
        waker: None,
        task: B,
        context: Context::Interrupt,
        synchronous: false,
    };
    let records = [
        (0, switch(0, None, Some(A))),
        (10, waking),
        (10, woken(B, 0)),
        (90, waking),
        (100, Record::Recalculate { cpu: CpuId(1) }),
    ];
    let watcher = watched(&records, 0);
    let tally = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!((tally.waited, tally.doubts), (Duration::ZERO, 1));
}

#[test]
fn who_left_a_cpu_unseen_is_not_taken_to_wait() {
    let lost = Record::Lost {
        cpu: CpuId(0),
        events: 1,
    };
    let records = [
        (0, switch(0, None, Some(B))),
        (5, lost),
        (5, switch(0, Some(B), Some(A))),
        (100, Record::Recalculate { cpu: CpuId(1) }),
    ];
    let watcher = watched(&records, 0);
    let tally = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(
        (tally.ran, tally.waited),
        (Duration::from_ms(5), Duration::ZERO)
    );
    assert_eq!(tally.doubts, 1);
}

/// A recorder says this before what it has inferred.
fn inferred(cpu: u16) -> Record {
    Record::Lost {
        cpu: CpuId(cpu),
        events: 1,
    }
}

/// Of CPU 1, where B seems to wait from 10 ms on though it has run unseen, `more` is recorded.
fn seems_to_wait(more: &[(u64, Record)]) -> (Duration, Duration) {
    let mut records = vec![(0, switch(1, Some(A), None)), (10, woken(B, 1))];
    records.extend_from_slice(more);
    records.push((2_800, Record::Recalculate { cpu: CpuId(0) }));
    let watcher = watched(&records, 0);
    let tally = &watcher.tasks.get(B).unwrap().tally;
    (tally.waited, tally.doubted)
}

#[test]
fn what_was_inferred_or_is_missing_makes_no_wait() {
    let nothing = (Duration::ZERO, Duration::from_ms(2_790));
    assert_eq!(
        seems_to_wait(&[]),
        nothing,
        "in the queue of a CPU that idles"
    );
    let busy = |ms| (ms, switch(1, None, Some(A)));
    assert_eq!(
        seems_to_wait(&[busy(11)]).0,
        Duration::from_ms(2_790),
        "all is recorded"
    );
    let found_running = [
        busy(11),
        (1_000, inferred(1)),
        (1_000, switch(1, Some(A), Some(TaskId(3)))),
    ];
    assert_eq!(
        seems_to_wait(&found_running),
        nothing,
        "a switch was not recorded"
    );
    let missing = Record::Lost {
        cpu: CpuId(0),
        events: 7,
    };
    let lost = [busy(11), (1_000, missing)];
    assert_eq!(
        seems_to_wait(&lost),
        (Duration::ZERO, Duration::from_ms(990))
    );
    // A wakeup of another task that was not recorded says nothing of who waits.
    let woken_unseen = [busy(11), (1_000, inferred(1)), (1_000, woken(TaskId(3), 1))];
    assert_eq!(seems_to_wait(&woken_unseen).0, Duration::from_ms(2_790));
}

/// B runs for 48 us, of which an interrupt has 17 us, and then seems to wait, until a switch shows
/// that it may have run unseen: what is certain of it is too little for a verdict.
#[test]
fn who_wanted_little_that_is_certain_has_no_verdict() {
    let at = |us: u64| Instant::START + Duration::from_us(us);
    let interrupt = Interrupt::Timer;
    let cpu = CpuId(1);
    let mut watcher = Watcher::new(&two_cpus(), Instant::START, Instant(u64::MAX));
    for (us, record) in [
        (0, switch(1, None, Some(B))),
        (10, Record::InterruptEnter { cpu, interrupt }),
        (27, Record::InterruptExit { cpu, interrupt }),
        (48, switch(1, Some(B), Some(A))),
        (900_000, inferred(1)),
        (900_000, switch(1, Some(A), Some(TaskId(3)))),
    ] {
        watcher.see(at(us), &record);
    }
    watcher.close();
    let tally = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(tally.ran, Duration::from_us(48));
    assert!(
        tally.doubted > Duration::from_ms(800),
        "{:?}",
        tally.doubted
    );
    let verdicts = Diagnosis::of(watcher).verdicts;
    assert!(verdicts.is_empty(), "{verdicts:?}");
}

#[test]
fn who_is_woken_while_events_of_a_cpu_are_missing_may_have_run_there() {
    let lost = Record::Lost {
        cpu: CpuId(0),
        events: 7,
    };
    let records = [
        (0, switch(0, None, Some(A))),
        (0, switch(1, None, Some(TaskId(3)))),
        (10, lost),
        (20, woken(B, 1)),
        (80, switch(1, Some(TaskId(3)), Some(B))),
        (90, switch(0, None, Some(A))),
        (100, Record::Recalculate { cpu: CpuId(1) }),
    ];
    let watcher = watched(&records, 0);
    let of = |task| {
        let tally = &watcher.tasks.get(task).unwrap().tally;
        (
            tally.ran.as_ns() / 1_000_000,
            tally.waited.as_ns() / 1_000_000,
        )
    };
    assert_eq!((of(B), of(A)), ((20, 0), (20, 0)));
    assert_eq!(
        of(TaskId(3)),
        (80, 0),
        "who leaves another CPU may run there"
    );
}

#[test]
fn a_cpu_of_which_a_switch_was_not_recorded_never_counts_as_idle() {
    let mut story = story();
    story.push((100, inferred(1)));
    story.push((100, switch(1, None, Some(TaskId(3)))));
    story.push((120, Record::Recalculate { cpu: CpuId(0) }));
    let watcher = watched(&story, 0);
    let b = &watcher.tasks.get(B).unwrap().tally;
    assert_eq!(
        (b.idle.inside, b.waited),
        (Duration::ZERO, Duration::from_ms(100))
    );
}

/// What a kernel counted of B, which waited for 80 ms by [`story`].
fn with_account(waited_ms: u64, pressure_ms: u64) -> Diagnosis {
    let account = Account {
        tid: 42,
        ran: Duration::ZERO,
        waited: Duration::from_ms(waited_ms),
        runnable: false,
    };
    let header = Header {
        accounts: vec![account],
        pressure: Some(Duration::from_ms(pressure_ms)),
        ..two_cpus()
    };
    let mut watcher = Watcher::new(&header, ms(0), Instant(u64::MAX));
    let ids = Record::Ids {
        task: B,
        tid: 42,
        tgid: 42,
    };
    watcher.see(ms(0), &ids);
    for (at, record) in story() {
        watcher.see(ms(at), &record);
    }
    Diagnosis::of(watcher)
}

#[test]
fn the_kernels_own_account_contradicts_a_wait_of_nothing() {
    let fine = with_account(80, 90);
    assert_eq!(fine.verdicts[0].kind, Kind::IdleBeside);
    let notes = |found: &Diagnosis, word: &str| {
        let notes = found.notes.iter().filter(|note| note.contains(word));
        notes.count()
    };
    assert_eq!(
        (notes(&fine, "schedstat"), notes(&fine, "pressure")),
        (0, 0)
    );
    let phantom = with_account(0, 0);
    let of_b = |verdict: &Verdict| verdict.tasks.iter().any(|task| task.task == B.0);
    assert!(!phantom.verdicts.iter().any(of_b), "{:?}", phantom.verdicts);
    assert_eq!(
        (notes(&phantom, "schedstat"), notes(&phantom, "pressure")),
        (1, 1)
    );
}

#[test]
fn a_recording_of_a_scenario_on_a_busy_machine_is_not_fit_to_judge_by() {
    let role = Record::Role {
        task: B,
        table: 0,
        number: 0,
    };
    let mut watcher = Watcher::new(&two_cpus(), ms(0), Instant(u64::MAX));
    watcher.see(ms(0), &role);
    for (at, record) in story() {
        watcher.see(ms(at), &record);
    }
    let steal = Record::Steal {
        cpu: CpuId(0),
        span: Duration::from_ms(30),
    };
    watcher.see(ms(100), &steal);
    let unfit = Diagnosis::of(watcher).unfit;
    assert_eq!(
        unfit,
        [
            "the hypervisor had 30 % of 2 CPUs",
            "other programs than those of the scenario had 90 % of 2 CPUs"
        ]
    );
    assert!(with_account(80, 90).unfit.is_empty());
}

#[test]
fn a_child_is_like_its_parent() {
    let group = Record::Group { task: A, group: 7 };
    let fork = Record::Fork {
        parent: Some(A),
        child: B,
        comm: Comm::new("b"),
    };
    let watcher = watched(&[(0, group), (1, fork)], 0);
    assert_eq!(watcher.tasks.get(B).unwrap().who.group, 7);
}

/// What a trace may say of few tasks and CPUs, however absurd.
fn record() -> impl Strategy<Value = Record> {
    let (cpu, task) = (|| (0u16..3).prop_map(CpuId), || (0u32..4).prop_map(TaskId));
    let maybe = move || prop::option::of((0u32..4).prop_map(TaskId));
    let interrupt = || Just(Interrupt::NetworkSoftirq);
    prop_oneof![
        (cpu(), maybe(), any::<bool>(), maybe()).prop_map(|(cpu, prev, prev_runnable, next)| {
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            }
        }),
        (cpu(), task(), cpu()).prop_map(|(waker, task, target)| Record::Wakeup {
            waker,
            task,
            target
        }),
        (task(), cpu(), cpu()).prop_map(|(task, from, to)| Record::Migrate { task, from, to }),
        (task(), any::<u64>()).prop_map(|(task, cpus)| Record::Affinity {
            task,
            from: CpuId(0),
            cpus
        }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptEnter { cpu, interrupt }),
        (cpu(), interrupt()).prop_map(|(cpu, interrupt)| Record::InterruptExit { cpu, interrupt }),
        (cpu(), task()).prop_map(|(cpu, task)| Record::Exit { cpu, task }),
        (0u32..3, 0u32..3).prop_map(|(group, parent)| Record::Cgroup {
            group,
            parent,
            weight: 0,
            name: Comm::default()
        }),
        (task(), 0u32..3).prop_map(|(task, group)| Record::Group { task, group }),
    ]
}

proptest! {
    /// Traces of damaged recordings contradict themselves, and are diagnosed all the same.
    #[test]
    fn whatever_a_trace_says_is_taken_in(
        records in prop::collection::vec((0u64..2_000, record()), 0..80),
        from in 0u64..1_000,
    ) {
        let mut watcher = Watcher::new(&Header::default(), ms(from), ms(1_500));
        let mut sorted = records;
        sorted.sort_by_key(|(at, _)| *at);
        for (at, record) in &sorted {
            watcher.see(ms(*at), record);
        }
        let diagnosis = crate::Diagnosis::of(watcher);
        let period = diagnosis.window.to_ns - diagnosis.window.from_ns;
        for task in &diagnosis.activity.waiting {
            prop_assert!(task.waited_ns <= period, "{task:?}");
        }
    }
}

/// B is woken 20 times a second on the CPU of A, runs for 1 ms, and each time waits for 9 ms.
fn late() -> Vec<(u64, Record)> {
    let mut story = vec![(0, switch(0, None, Some(A)))];
    (10..1_000)
        .step_by(50)
        .for_each(|at| story.extend(waits(at, 9)));
    story
}

/// B is woken, waits beside A, and runs for a ms.
fn waits(at: u64, span: u64) -> [(u64, Record); 3] {
    [
        (at, woken(B, 0)),
        (at + span, switch(0, Some(A), Some(B))),
        (at + span + 1, sleeps(0, B, A)),
    ]
}

/// `task` leaves a CPU to `next`, and sleeps.
fn sleeps(cpu: u16, task: TaskId, next: TaskId) -> Record {
    Record::Switch {
        cpu: CpuId(cpu),
        prev: Some(task),
        prev_runnable: false,
        next: Some(next),
    }
}

fn diagnosed_lacking(records: &[(u64, Record)], lacks: &[Need]) -> Diagnosis {
    let one_cpu = Header {
        places: vec![(0, 0)],
        ..two_cpus()
    };
    diagnosed(&one_cpu, records, lacks)
}

fn diagnosed(header: &Header, records: &[(u64, Record)], lacks: &[Need]) -> Diagnosis {
    let watcher = Watcher::new(header, ms(0), Instant(u64::MAX));
    let mut watcher = watcher.lacking(lacks.iter().copied());
    records
        .iter()
        .for_each(|(at, record)| watcher.see(ms(*at), record));
    Diagnosis::of(watcher)
}

#[test]
fn who_waits_for_longer_than_it_runs_at_each_wakeup_is_late() {
    let found = diagnosed_lacking(&late(), &[]);
    let verdict = found
        .verdicts
        .iter()
        .find(|verdict| verdict.kind == Kind::Latency);
    let verdict = verdict.expect("B is late");
    let says = "task 2 is woken 20 times a second, runs for 1.00 ms at a time, and waits for \
                9.00 ms at p99, 9.00 ms at most.";
    assert_eq!(verdict.says, says);
    let slice = verdict.cures[0].to_string();
    assert!(slice.contains("util-linux 2.41"), "{slice}");
    assert!(verdict.because.contains("task 1 had 100 % of the CPU"));
    assert!(verdict.because.contains("They are as good as it is"));
    // Its turns are as long as the waits of somebody who runs as long as it waits.
    let mut in_turn = late();
    for (at, record) in &mut in_turn {
        let is_end = matches!(record, Record::Switch { prev: Some(B), .. });
        *at += if is_end { 8 } else { 0 };
    }
    assert_eq!(diagnosed_lacking(&in_turn, &[]).verdicts, []);
}

#[test]
fn one_long_wait_among_many_short_ones_is_late_and_does_not_starve() {
    let kinds = |story: &[(u64, Record)]| {
        let found = diagnosed_lacking(story, &[]);
        let kinds = found.verdicts.iter().map(|verdict| verdict.kind);
        kinds.collect::<Vec<Kind>>()
    };
    let mut story = late();
    story.extend(waits(1_010, 120));
    assert_eq!(kinds(&story), [Kind::Latency]);
    // Where all waits are long, no turn of others explains them.
    let mut story = vec![(0, switch(0, None, Some(A)))];
    (0..10).for_each(|round| story.extend(waits(round * 200 + 10, 150)));
    assert_eq!(kinds(&story), [Kind::Unexplained]);
}

#[test]
fn no_verdict_rests_on_what_a_recording_lacks() {
    let found = diagnosed_lacking(&late(), &[Need::Wakeups]);
    assert_eq!(found.verdicts, []);
    let kinds = found.not_given.iter().map(|not| not.kind);
    assert!(kinds.clone().any(|kind| kind == Kind::Latency));
    assert!(kinds.clone().all(|kind| kind != Kind::Interrupts));
    assert!(found.notes[0].starts_with("The recording has no wakeups: these verdicts cannot"));
    // That it is late needs no groups; why it is, does.
    for lacks in [Need::Groups, Need::GroupWeights] {
        let found = diagnosed_lacking(&late(), &[lacks]);
        let because = &found.verdicts[0].because;
        assert!(
            because.ends_with("does not say by which rule they ran."),
            "{because}"
        );
    }
    // What is due to fair tasks follows from the weights of groups.
    let found = diagnosed_lacking(&late(), &[Need::GroupWeights]);
    let barred: Vec<Kind> = found.not_given.iter().map(|not| not.kind).collect();
    assert!(barred.contains(&Kind::Unexplained) && barred.contains(&Kind::LeastWeight));
    assert!(!barred.contains(&Kind::NiceWithoutEffect));
}

#[test]
fn a_hypervisor_that_takes_a_quarter_of_a_cpu_is_reported() {
    let stolen = |ms| Record::Steal {
        cpu: CpuId(0),
        span: Duration::from_ms(ms),
    };
    let story = |each| {
        let taken = (100..=1_000).step_by(100).map(|at| (at, stolen(each)));
        let begin = (0, switch(0, None, Some(A)));
        std::iter::once(begin).chain(taken).collect::<Vec<_>>()
    };
    let found = diagnosed_lacking(&story(30), &[]);
    let kinds: Vec<Kind> = found.verdicts.iter().map(|verdict| verdict.kind).collect();
    assert_eq!(kinds, [Kind::Steal]);
    let says = "task 1 wanted a CPU for 1.00 s, of which the hypervisor took 300 ms.";
    assert_eq!(found.verdicts[0].says, says);
    assert_eq!(diagnosed_lacking(&story(20), &[]).verdicts, []);
    assert_eq!(diagnosed_lacking(&story(30), &[Need::Steal]).verdicts, []);
}

/// B waits on CPU 1 from 10 ms on. What happened there is recorded from 700 ms on, when `prev`
/// leaves it.
fn recorded_late(prev: Option<TaskId>) -> Diagnosis {
    let fifo = Record::Policy {
        task: A,
        policy: warmq_trace::Policy::Fifo,
        priority: 50,
    };
    let mut story = vec![
        (0, fifo),
        (0, switch(0, None, Some(TaskId(3)))),
        (0, woken(TaskId(4), 0)),
        (10, woken(B, 1)),
        (700, switch(1, prev, Some(B))),
        (701, switch(1, Some(B), Some(A))),
        (995, switch(1, Some(A), Some(B))),
    ];
    story.push((1_000, Record::Recalculate { cpu: CpuId(0) }));
    diagnosed(&two_cpus(), &story, &[])
}

#[test]
fn what_a_cpu_did_before_its_first_record_is_not_known() {
    let waited = |diagnosis: &Diagnosis, task| {
        let mut all = diagnosis.activity.waiting.iter();
        let task = all.find(|waiting| waiting.about.task == task)?;
        Some((task.waited_ns / 1_000_000, task.idle_allowed_ns / 1_000_000))
    };
    let diagnosis = recorded_late(Some(A));
    assert_eq!(waited(&diagnosis, B.0), Some((294, 0)));
    // The other one waited all the time on a CPU that was recorded; whether this one idled is not
    // known.
    assert_eq!(waited(&diagnosis, 4), Some((1_000, 0)));
    let verdict = &diagnosis.verdicts[1];
    assert_eq!(verdict.kind, Kind::Realtime, "{verdict:?}");
    let because = &verdict.because;
    assert!(
        because.contains("real-time tasks had 98 % of CPU 1,"),
        "{because}"
    );
    // It idled until then.
    let idled = recorded_late(None);
    assert_eq!(waited(&idled, 4), Some((1_000, 699)));
}

#[test]
fn what_a_task_is_due_is_by_the_nice_value_of_each_moment() {
    // B has 2 of 20 ms at nice 19, and 10 of 20 ms at nice 0, for two seconds each.
    let nice = |nice| Record::Nice { task: B, nice };
    for (first, second) in [(19, 0), (0, 19)] {
        let mut story = vec![
            (0, nice(first)),
            (0, woken(A, 0)),
            (0, switch(0, None, Some(B))),
        ];
        for from in (0..4_000).step_by(20) {
            if from == 2_000 {
                story.push((from, nice(second)));
            }
            let now = if from < 2_000 { first } else { second };
            let ran = if now == 0 { 10 } else { 2 };
            story.push((from + ran, switch(0, Some(B), Some(A))));
            story.push((from + 20, switch(0, Some(A), Some(B))));
        }
        let diagnosis = diagnosed_lacking(&story, &[]);
        let mut all = diagnosis.activity.waiting.iter();
        let waiting = all.find(|waiting| waiting.about.task == B.0).unwrap();
        // 2 s of 15 in 1,039, and 2 s of a half.
        assert_eq!(waiting.due_ns / 10_000_000, 102, "{first} {waiting:?}");
    }
}

#[test]
fn a_real_time_task_is_due_what_others_of_its_kind_leave_and_no_fair_share() {
    let fifo = |task, priority| Record::Policy {
        task,
        policy: warmq_trace::Policy::Fifo,
        priority,
    };
    // A hog of SCHED_FIFO has 950 ms of a second, and a fair one the rest.
    let mut story = vec![
        (0, fifo(A, 50)),
        (0, woken(B, 0)),
        (0, switch(0, None, Some(A))),
        (950, switch(0, Some(A), Some(B))),
        (1_000, switch(0, Some(B), Some(A))),
    ];
    let of = |diagnosis: &Diagnosis, task: TaskId| {
        let mut all = diagnosis.activity.waiting.iter();
        let waiting = all.find(|waiting| waiting.about.task == task.0).unwrap();
        (waiting.due_ns / 1_000_000, waiting.instead[0].why.clone())
    };
    let diagnosis = diagnosed_lacking(&story, &[]);
    let left = "real-time tasks leave a part to others".to_owned();
    assert_eq!(of(&diagnosis, A), (1_000, left));
    assert_eq!(of(&diagnosis, B), (50, "real-time".to_owned()));
    // B is one of less priority.
    story.insert(0, (0, fifo(B, 1)));
    assert_eq!(of(&diagnosed_lacking(&story, &[]), B).0, 50);
}

#[test]
fn who_waits_beside_idle_cpus_is_reported_where_affinities_are_unknown() {
    let mut story = vec![
        (0, switch(1, None, Some(TaskId(3)))),
        (1, switch(1, Some(TaskId(3)), None)),
        (0, woken(B, 0)),
        (0, switch(0, None, Some(A))),
    ];
    for from in (0..2_000).step_by(20) {
        story.push((from + 10, switch(0, Some(A), Some(B))));
        story.push((from + 20, switch(0, Some(B), Some(A))));
    }
    let unknown = diagnosed(&two_cpus(), &story, &[Need::Affinities]);
    let beside = unknown.idle_beside.expect("CPU 1 idled");
    assert_eq!((&beside.cpus[..], beside.tasks.len()), (&[1][..], 2));
    assert!(beside.idle_ns > 900_000_000, "{beside:?}");
    let note = &unknown.notes[0];
    assert!(
        note.starts_with(
            "CPU 1 idled for 1.00 s of the 1.00 s for which task 1 waited; so did task 2."
        ),
        "{note}"
    );
    let known = diagnosed(&two_cpus(), &story, &[]);
    assert_eq!(known.idle_beside, None);
}

#[test]
fn a_wait_that_no_turn_explains_is_no_turn() {
    // A has all of two seconds, but for 20 ms of B.
    for (times, why) in [(1, "for no reason that is recorded"), (50, "its turn")] {
        let mut story = vec![(0, woken(B, 0)), (0, switch(0, None, Some(A)))];
        for turn in 1..=times {
            let from = turn * 2_000 / times - 20;
            story.push((from, switch(0, Some(A), Some(B))));
            story.push((from + 20, switch(0, Some(B), Some(A))));
        }
        let diagnosis = diagnosed_lacking(&story, &[Need::Groups]);
        let mut all = diagnosis.activity.waiting.iter();
        let waiting = all.find(|waiting| waiting.about.task == B.0).unwrap();
        assert_eq!(waiting.instead[0].why, why, "{waiting:?}");
    }
}

#[test]
fn who_waits_on_a_cpu_of_which_nothing_is_recorded_may_run_there() {
    // B is woken on CPU 1, and comes to CPU 0 after so many ms, or stays.
    let to = |at| {
        let (task, from, to) = (B, CpuId(1), CpuId(0));
        let moves = Record::Migrate { task, from, to };
        vec![(at, moves), (at, switch(0, Some(A), Some(B)))]
    };
    for (comes, waited, doubts) in [(to(505), 0, 1), (to(8), 3, 0), (vec![], 0, 1)] {
        let mut story = vec![(0, switch(0, None, Some(A))), (5, woken(B, 1))];
        story.extend(comes);
        story.push((900, Record::Recalculate { cpu: CpuId(0) }));
        let watcher = watched(&story, 0);
        let tally = &watcher.tasks.get(B).unwrap().tally;
        assert_eq!(tally.waited, Duration::from_ms(waited));
        assert_eq!(tally.doubts, doubts);
    }
}

/// B waits beside A from 10 ms to 990 ms, during which a switch was inferred. The kernel counted so
/// many ms of waiting.
fn doubted(counted_ms: u64) -> Diagnosis {
    let header = Header {
        accounts: vec![Account {
            tid: 42,
            ran: Duration::ZERO,
            waited: Duration::from_ms(counted_ms),
            runnable: false,
        }],
        ..two_cpus()
    };
    let (task, tid, tgid) = (B, 42, 42);
    let records = [
        (0, Record::Ids { task, tid, tgid }),
        (0, switch(0, None, Some(A))),
        (10, woken(B, 0)),
        (500, inferred(0)),
        (500, switch(0, Some(TaskId(3)), Some(A))),
        (990, switch(0, Some(A), Some(B))),
        (1_000, sleeps(0, B, A)),
        (1_001, Record::Recalculate { cpu: CpuId(1) }),
    ];
    diagnosed(&header, &records, &[])
}

#[test]
fn a_wait_with_a_switch_that_was_inferred_counts_if_the_kernel_counted_it() {
    let waited = |diagnosis: &Diagnosis| {
        let mut all = diagnosis.activity.waiting.iter();
        let b = all.find(|waiting| waiting.about.task == B.0);
        b.map(|b| (b.waited_ns / 1_000_000, b.longest_ns / 1_000_000))
    };
    assert_eq!(waited(&doubted(985)), Some((980, 980)));
    assert_eq!(waited(&doubted(300)), None);
}
