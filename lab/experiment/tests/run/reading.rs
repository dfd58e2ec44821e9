//! What a file means, and the message of each rejection.

use std::fmt::Write;

use proptest::prelude::*;
use warmq_experiment::{Experiment, Options, Value};
use warmq_units::{Bytes, Duration};

use crate::fake::{self, file, problems, read, swept};

#[test]
fn a_sweep_is_every_combination_in_the_order_of_the_file() {
    let experiment = read(&file(
        "[sweep]\nl2 = [\"1024KB\", \"256KB\"]\ncolors = [32, 1]\n\
         [[measure]]\nmetric = \"made_up\"",
    ));
    let points: Vec<String> = experiment
        .points
        .iter()
        .map(|point| experiment.name_of(point))
        .collect();
    let expected = [
        "l2 = 256KB, colors = 1",
        "l2 = 256KB, colors = 32",
        "l2 = 1MB, colors = 1",
        "l2 = 1MB, colors = 32",
    ];
    assert_eq!(
        points, expected,
        "numbers ascend, whatever their order in the file"
    );
}

#[test]
fn several_blocks_are_swept_side_by_side_and_a_point_in_both_once() {
    let experiment = read(
        "title = \"t\"\nmachine = \"p3xeon-8way\"\nworkload = \"web\"\n\
         [[sweep]]\nscheduler = [\"mq\"]\ncolors = [1]\n\
         [[sweep]]\nscheduler = [\"linux24\", \"mq\"]\ncolors = [1, 32]\n\
         [[measure]]\nmetric = \"made_up\"",
    );
    assert_eq!(experiment.points.len(), 4);
    let first = experiment
        .parts
        .plan(&experiment.points[0], 1, &experiment.full);
    assert_eq!(
        (first.scheduler.name.as_str(), first.machine.name.as_str()),
        ("mq", "p3xeon-8way")
    );
}

#[test]
fn a_plan_has_every_setting_swept_set_or_default() {
    let experiment = read(&file(
        "[settings]\nprocesses = 1024\n[settings.scheduler]\nlayout = \"slab\"\n\
         [sweep]\nl2 = [\"512KB\"]\n[run]\nwarmup = \"10ms\"\n\
         [[measure]]\nmetric = \"made_up\"",
    ));
    let plan = experiment
        .parts
        .plan(&experiment.points[0], 7, &experiment.full);
    assert_eq!(plan.workload.settings["processes"], Value::Integer(1024));
    assert_eq!(
        plan.workload.settings["think"],
        Value::Duration(Duration::from_ms(1))
    );
    assert_eq!(plan.scheduler.settings["layout"], Value::from("slab"));
    assert_eq!(
        plan.machine.settings["l2"],
        Value::Bytes(Bytes::from_kb(512))
    );
    assert_eq!(
        (plan.warmup, plan.time),
        (Duration::from_ms(10), Duration::from_ms(500))
    );
    insta::assert_snapshot!(plan, @"web (processes = 1024, think = 1ms) under linux24 (colors = 1, first_bit = 0, layout = slab, prefetch = false) on p3xeon-8way (cpus = 8, l2 = 512KB), seed 7, 500ms after 10ms, in lab ()");
}

#[test]
fn a_scheduler_is_named_with_settings_of_its_own() {
    let experiment = read(
        "title = \"t\"\nmachine = \"p3xeon-8way\"\nworkload = \"web\"\n\
         [sweep]\nscheduler = [\"linux24\", \"pls:levels=3;layout=slab\", \"pls\"]\n\
         [[measure]]\nmetric = \"made_up\"",
    );
    let points = experiment.points.iter();
    let plans = points.map(|point| {
        let plan = experiment.parts.plan(point, 1, &experiment.full);
        let scheduler = plan.scheduler;
        let of = |name: &str| scheduler.settings.get(name).map(ToString::to_string);
        (
            experiment.name_of(point),
            scheduler.name.clone(),
            of("layout"),
            of("levels"),
        )
    });
    let row = |point: &str, name: &str, layout: &str, levels: Option<&str>| {
        let owned = |text: &str| text.to_owned();
        (
            format!("scheduler = {point}"),
            owned(name),
            Some(owned(layout)),
            levels.map(owned),
        )
    };
    assert_eq!(
        plans.collect::<Vec<_>>(),
        [
            row("linux24", "linux24", "block", None),
            row("pls:levels=3;layout=slab", "pls", "slab", Some("3")),
            row("pls", "pls", "block", Some("20")),
        ]
    );
}

#[test]
fn a_quick_run_is_a_part_of_the_full_one() {
    let experiment = read(&swept("[quick]\ntime = \"50ms\""));
    let (full, quick) = (
        Options::default(),
        Options {
            quick: true,
            ..Options::default()
        },
    );
    assert_eq!(experiment.jobs(&full).len(), 12);
    let jobs = experiment.jobs(&quick);
    assert_eq!(jobs.len(), 6);
    assert_eq!(jobs[0].plan.time, Duration::from_ms(50));
    assert!(
        jobs.iter()
            .all(|job| experiment.points.contains(&job.point))
    );
    let seeds = Options {
        quick: true,
        seeds: Some(vec![4, 5]),
        ..Options::default()
    };
    assert_eq!(experiment.jobs(&seeds).len(), 12);
}

#[test]
fn published_rows_name_their_cells_in_the_order_of_the_key() {
    let experiment = read(&swept(
        "[[published]]\nmetric = \"gain\"\nat = { colors = 32 }\nalong = \"cpus\"\n\
         over = [1, 8]\nvalues = [8.2, 23.3]\ncalibration = true\n\
         [[published]]\nmetric = \"made_up\"\nat = { cpus = 2, colors = 8 }\nvalue = 4",
    ));
    let cells: Vec<String> = experiment
        .published
        .iter()
        .map(|published| {
            format!(
                "{} {}: {} {}",
                published.metric, published.point, published.value, published.calibration
            )
        })
        .collect();
    let expected = [
        "gain colors = 32, cpus = 1: 8.2 true",
        "gain colors = 32, cpus = 8: 23.3 true",
        "made_up colors = 8, cpus = 2: 4 false",
    ];
    assert_eq!(cells, expected);
}

/// Mistakes that people make, each in its own file.
const MISTAKES: &[(&str, &str)] = &[
    ("not TOML", "title = \n"),
    ("nothing", ""),
    (
        "unknown machine",
        "title = \"t\"\nmachine = \"ppro-4wai\"\nscheduler = \"linux24\"\nworkload = \"web\"",
    ),
    (
        "broken machine",
        "title = \"t\"\nmachine = \"broken.toml\"\nscheduler = \"linux24\"\nworkload = \"web\"",
    ),
    (
        "part both named and swept",
        "+[sweep]\nscheduler = [\"mq\"]",
    ),
    (
        "unknown key at the top",
        "+machnie = \"x\"\n[[measure]]\nmetric = \"made_up\"",
    ),
    (
        "unknown key in a table",
        "+[run]\nwarm_up = \"1s\"\n[[measure]]\nmetric = \"made_up\"",
    ),
    ("unknown setting", "+[settings]\ncolours = 3"),
    (
        "unknown setting of a scheduler",
        "title = \"t\"\nmachine = \"ppro-4way\"\nworkload = \"web\"\nscheduler = \"pls:level=1\"",
    ),
    (
        "a setting of a scheduler out of range",
        "title = \"t\"\nmachine = \"ppro-4way\"\nworkload = \"web\"\n[sweep]\nscheduler = [\"mq:colors=0\"]",
    ),
    ("unlike any setting", "+[sweep]\ntemperature = [3]"),
    (
        "setting of one swept scheduler only",
        "title = \"t\"\nmachine = \"ppro-4way\"\nworkload = \"web\"\n[settings]\nlevels = 1\n[sweep]\nscheduler = [\"pls\", \"mq\"]",
    ),
    (
        "ambiguous setting",
        "title = \"t\"\nmachine = \"ppro-4way\"\nscheduler = \"pls\"\nworkload = \"chat\"\n[sweep]\nsize = [1]",
    ),
    ("out of range", "+[sweep]\ncpus = [1, 99]"),
    ("not a size", "+[settings]\nl2 = \"much\""),
    ("a size without quotes", "+[settings]\nl2 = 512"),
    ("not a choice", "+[settings]\nlayout = \"random\""),
    ("not a bool", "+[settings]\nprefetch = 1"),
    (
        "a number beyond 64 bits",
        "+[settings]\nprocesses = 99999999999999999999",
    ),
    ("no list", "+[sweep]\ncpus = 1"),
    ("empty list", "+[sweep]\ncpus = []"),
    ("twice in a list", "+[sweep]\nl2 = [\"1024KB\", \"1MB\"]"),
    (
        "set and swept",
        "+[settings]\ncolors = 1\n[sweep]\ncolors = [1, 2]",
    ),
    (
        "swept under two names",
        "+[sweep]\ncolors = [1]\nscheduler.colors = [2]",
    ),
    (
        "blocks of different keys",
        "+[[sweep]]\ncolors = [1]\n[[sweep]]\ncpus = [1]",
    ),
    ("no seeds", "+seeds = []\n[[measure]]\nmetric = \"made_up\""),
    (
        "equal seeds",
        "+seeds = [1, 1]\n[[measure]]\nmetric = \"made_up\"",
    ),
    (
        "no time",
        "+[run]\ntime = \"0ms\"\n[[measure]]\nmetric = \"made_up\"",
    ),
    (
        "a time without unit",
        "+[run]\ntime = 500\n[[measure]]\nmetric = \"made_up\"",
    ),
    (
        "quick value not swept",
        "+[sweep]\ncolors = [1, 32]\n[quick.sweep]\ncolors = [16]",
    ),
    (
        "quick key not swept",
        "+[sweep]\ncolors = [1, 32]\n[quick.sweep]\ncolor = [1]",
    ),
    ("nothing measured", "+[sweep]\ncolors = [1]"),
    (
        "unknown metric",
        "+[[measure]]\nmetric = \"walk_miss_ratio\"",
    ),
    ("misspelt measure", "+[[measure]]\nmetrc = \"made_up\""),
    (
        "measured twice",
        "+[[measure]]\nmetric = [\"made_up\", \"made_up\"]",
    ),
    (
        "derived of nothing",
        "*[[measure]]\nname = \"x\"\nof = \"gian\"\nalong = \"cpus\"\ntake = \"peak_at\"",
    ),
    (
        "derived without how",
        "*[[measure]]\nname = \"x\"\nof = \"gain\"",
    ),
    (
        "a metric's name",
        "*[[measure]]\nname = \"walk_length\"\nof = \"gain\"\nalong = \"cpus\"\ntake = \"largest\"",
    ),
    (
        "base not swept",
        "*[[measure]]\nname = \"x\"\nof = \"made_up\"\nrelative_to = { colors = 2 }",
    ),
    (
        "base not in the block",
        "title = \"t\"\nmachine = \"p3xeon-8way\"\nworkload = \"web\"\n[[sweep]]\nscheduler = [\"mq\"]\ncolors = [1, 8]\n[[sweep]]\nscheduler = [\"linux24\"]\ncolors = [1]\n[[measure]]\nmetric = \"made_up\"\n[[measure]]\nname = \"x\"\nof = \"made_up\"\nrelative_to = { scheduler = \"linux24\" }",
    ),
    (
        "take of nothing known",
        "*[[measure]]\nname = \"x\"\nof = \"gain\"\nalong = \"cpus\"\ntake = \"peak\"",
    ),
    (
        "share of no bins",
        "+[[measure]]\nname = \"x\"\nhistogram = \"bus_by_page_offset\"\ntake = \"share\"",
    ),
    (
        "bins of a peak",
        "+[[measure]]\nname = \"x\"\nhistogram = \"bus_by_page_offset\"\ntake = \"peak_at\"\nfrom = 1",
    ),
    (
        "share of a peak",
        "*[[measure]]\nname = \"x\"\nof = \"gain\"\nalong = \"cpus\"\ntake = \"peak_at\"\nshare = 9",
    ),
    (
        "key that the measure has lost",
        "*[[measure]]\nname = \"x\"\nof = \"gain\"\nalong = \"cpus\"\ntake = \"largest\"\n[[measure]]\nname = \"y\"\nof = \"x\"\nalong = \"cpus\"\ntake = \"largest\"",
    ),
    (
        "published nowhere",
        "*[[published]]\nmetric = \"gain\"\nat = { cpus = 1, colors = 1 }\nvalue = 3",
    ),
    (
        "published in several places",
        "*[[published]]\nmetric = \"gain\"\nat = { cpus = 1 }\nvalue = 3",
    ),
    (
        "published twice",
        "*[[published]]\nmetric = \"gain\"\nat = { cpus = 1, colors = 8 }\nvalue = 3\n[[published]]\nmetric = \"gain\"\nat = { cpus = 1, colors = 8 }\nvalue = 3",
    ),
    (
        "published without figure",
        "*[[published]]\nmetric = \"gain\"\nat = { cpus = 1, colors = 8 }",
    ),
    (
        "too few figures",
        "*[[published]]\nmetric = \"gain\"\nat = { colors = 8 }\nalong = \"cpus\"\nvalues = [1, 2]",
    ),
    (
        "published of nothing",
        "*[[published]]\nmetric = \"gains\"\nvalue = 1",
    ),
    (
        "claim without words",
        "*[[claim]]\nmetric = \"gain\"\nat_least = 1",
    ),
    (
        "claim without test",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nat_leest = 1",
    ),
    (
        "claim with two tests",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nat_least = 1\nnear = 3\nwithin_factor = 2",
    ),
    (
        "claim at no point",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nat = { colors = 1 }\nat_least = 1",
    ),
    (
        "claim near nothing published",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nnear = \"published\"\nwithin_factor = 2",
    ),
    (
        "near, but how near",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nnear = 3",
    ),
    (
        "bounds the wrong way",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nat_least = 3\nat_most = 2",
    ),
    (
        "trend along nothing",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\ntrend = \"rises\"",
    ),
    (
        "trend unknown",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nalong = \"cpus\"\ntrend = \"rise\"",
    ),
    (
        "trend to nowhere",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nalong = \"cpus\"\ntrend = \"rises\"\nto = 6",
    ),
    (
        "order of one",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\norder = [{ colors = 8 }]",
    ),
    (
        "order of different keys",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\norder = [{ colors = 8 }, { cpus = 1 }]",
    ),
    (
        "share beyond all",
        "*[[claim]]\nsays = \"s\"\nmetric = \"gain\"\nat_least = 1\nshare = 101",
    ),
    ("plot of nothing", "*[[plot]]\nx = \"cpus\""),
    ("plot over nothing", "*[[plot]]\ny = \"gain\""),
    (
        "plot over an unknown key",
        "*[[plot]]\ny = \"gain\"\nx = \"cpu\"",
    ),
    (
        "plot of an unknown kind",
        "*[[plot]]\ny = \"gain\"\nx = \"cpus\"\nkind = \"line\"",
    ),
    (
        "histogram unknown",
        "*[[plot]]\nkind = \"histogram\"\ny = \"bus\"",
    ),
    ("label of nothing", "*[labels.colors]\n3 = \"three\""),
    (
        "column not swept",
        "+columns = [\"cpus\"]\n[[measure]]\nmetric = \"made_up\"",
    ),
    (
        "tolerance of nothing",
        "*[tolerance]\ngain = { factor = 1 }\nwin = { points = 3 }",
    ),
    (
        "a date",
        "+notes = [1979-05-27]\n[[measure]]\nmetric = \"made_up\"",
    ),
];

/// `+`: after the head of [`file`]; `*`: after all of [`swept`]; else the whole file.
fn mistaken(text: &str) -> String {
    match text.split_at_checked(1) {
        Some(("+", rest)) => file(rest),
        Some(("*", rest)) => swept(rest),
        _ => text.to_owned(),
    }
}

#[test]
fn each_refusal_names_file_key_and_help() {
    let mut all = String::new();
    for (mistake, text) in MISTAKES {
        let problems = problems(&mistaken(text));
        assert_ne!(problems, "no problem", "{mistake}");
        writeln!(all, "{mistake}\n{problems}\n").expect("a string takes all");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_span_marks_what_is_meant() {
    let text = swept("[[claim]]\nsays = \"s\"\nmetric = \"gian\"\nat_least = 1");
    let problems = Experiment::read("trial.toml", &text, &fake::Fake::default()).unwrap_err();
    assert_eq!(problems.list.len(), 1);
    assert_eq!(&text[problems.list[0].span.clone()], "\"gian\"");
}

/// Lines of valid files, and others.
fn line() -> impl Strategy<Value = String> {
    let whole: Vec<String> = MISTAKES
        .iter()
        .flat_map(|(_, text)| {
            mistaken(text)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    prop_oneof![
        8 => prop::sample::select(whole),
        1 => "[a-z_]{1,12} = [0-9\"\\[\\]{}, a-z.]{0,12}",
        1 => "\\PC{0,20}",
    ]
}

proptest! {
    #[test]
    fn whatever_it_is_given_the_reader_answers(lines in prop::collection::vec(line(), 0..24)) {
        let text = lines.join("\n");
        if let Err(problems) = Experiment::read("trial.toml", &text, &fake::Fake::default()) {
            prop_assert!(!problems.list.is_empty());
            for problem in &problems.list {
                prop_assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
            }
        }
    }

    #[test]
    fn whatever_follows_a_good_head_the_reader_answers(
        lines in prop::collection::vec(line(), 0..8),
    ) {
        let _ = problems(&swept(&lines.join("\n")));
    }
}
