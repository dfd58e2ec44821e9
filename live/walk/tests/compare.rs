//! Modes beside each other: what a sample, a summary and a folder of the kernel say.

use std::fs;

use warmq_bench::compare::{Limit, Mode, Sample, Usage, Verdict, compared, scheduler_below};

#[derive(Clone, Copy)]
struct Run(Sample);

impl AsRef<Sample> for Run {
    fn as_ref(&self) -> &Sample {
        &self.0
    }
}

fn run(elapsed_ms: u64) -> Run {
    Run(Sample {
        elapsed_ns: elapsed_ms * 1_000_000,
        work: 1000,
        usage: Usage {
            user_ns: 1_000_000,
            system_ns: 500_000,
            voluntary: 3,
            involuntary: elapsed_ms,
        },
    })
}

#[test]
fn ratios_are_taken_within_a_round() {
    // The machine becomes slower from round to round; within a round, bound takes half the time.
    let rounds: Vec<Vec<Run>> = (1..=6).map(|it| vec![run(40 * it), run(20 * it)]).collect();
    let modes = compared(&[Mode::Plain, Mode::Bound], &rounds);
    let [(plain, of_plain), (bound, _)] = modes.as_slice() else {
        panic!("two modes")
    };
    assert_eq!((plain.mode, of_plain.len()), (Mode::Plain, 6));
    assert_eq!(plain.against_plain, None);
    let against = bound.against_plain.as_ref().unwrap();
    assert_eq!((against.speed.min, against.speed.max), (2.0, 2.0));
    assert_eq!(against.verdict, Verdict::Pays);
}

#[test]
fn a_summary_has_the_median_of_all_that_was_measured() {
    let rounds = vec![vec![run(10)], vec![run(40)], vec![run(20)]];
    let (hinted, _) = compared(&[Mode::Hinted], &rounds).remove(0);
    let summary = hinted.summary;
    assert_eq!(summary.repetitions, 3);
    let medians = [
        summary.elapsed_s.median,
        summary.work_per_s.median,
        summary.cpu_s.median,
        summary.system_s.median,
        summary.voluntary_switches.median,
        summary.involuntary_switches.median,
    ];
    assert_eq!(medians, [0.02, 50_000.0, 0.0015, 0.0005, 3.0, 20.0]);
    assert_eq!(hinted.against_plain, None, "plain was not run");
    assert!(compared::<Run>(&Mode::ALL, &[]).is_empty());
}

#[test]
fn what_was_used_is_what_came_since() {
    let (before, work) = (Usage::now().unwrap(), (0..100_000_u64).sum::<u64>());
    std::hint::black_box(work);
    let since = Usage::now().unwrap() - before;
    let sum = since + before;
    assert!(sum.cpu_ns() >= before.cpu_ns());
    assert_eq!(
        before - sum,
        Usage::default(),
        "a part that seems to fall is 0"
    );
}

#[test]
fn a_scheduler_is_named_only_where_one_is_enabled() {
    let root = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("compare-schedulers");
    let folder = root.join("sys/kernel/sched_ext");
    let _ = fs::remove_dir_all(&root);
    assert_eq!(scheduler_below(&root), None, "a kernel that cannot");
    fs::create_dir_all(folder.join("root")).unwrap();
    fs::write(folder.join("state"), "disabled\n").unwrap();
    assert_eq!(scheduler_below(&root), None);
    fs::write(folder.join("state"), "enabled\n").unwrap();
    fs::write(folder.join("root/ops"), "warmq\n").unwrap();
    assert_eq!(scheduler_below(&root).as_deref(), Some("warmq"));
}

#[test]
fn a_limit_is_over_when_nothing_is_left() {
    let limit = Limit::after(std::time::Duration::ZERO);
    assert!(limit.is_over() && limit.left().is_zero());
    assert!(!Limit::after(std::time::Duration::from_secs(3600)).is_over());
}

#[test]
fn modes_are_read_as_they_are_shown() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert!("Plain".parse::<Mode>().is_err());
}

#[test]
fn a_hint_that_nobody_heard_neither_pays_nor_fails_to() {
    let rounds = vec![vec![run(40), run(20), run(20)]; 6];
    for (mode, compared) in Mode::ALL.into_iter().zip(compared(&Mode::ALL, &rounds)) {
        let verdict = |heard| {
            let against = compared.0.clone().with_hints(heard).against_plain;
            against.map(|against| against.verdict)
        };
        let (unheard, heard) = match mode {
            Mode::Plain => (None, None),
            Mode::Bound => (Some(Verdict::Pays), Some(Verdict::Pays)),
            Mode::Hinted => (Some(Verdict::NotHeard), Some(Verdict::Pays)),
        };
        assert_eq!((verdict(0), verdict(1)), (unheard, heard), "{mode}");
    }
}
