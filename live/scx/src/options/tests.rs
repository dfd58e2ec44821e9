//! What is taken, what is refused and in which words, and that the defaults are decide.h's.

use super::*;
use crate::policy::policy;

fn read(line: &str) -> Result<Options, String> {
    let words = std::iter::once("scx_warmq").chain(line.split_whitespace());
    let options = Options::try_parse_from(words).map_err(|flaw| flaw.to_string())?;
    options.schedule.check()?;
    Ok(options)
}

fn refused(line: &str) -> String {
    let flaw = read(line)
        .err()
        .unwrap_or_else(|| panic!("`{line}` is taken"));
    flaw.split("\n\n")
        .next()
        .unwrap_or_default()
        .replace("\n", " ")
}

const STATE: &str = include_str!("../bpf/state.bpf.h");

/// The number after `before`.
fn number(text: &str, before: &str) -> u64 {
    let after = text
        .split_once(before)
        .unwrap_or_else(|| panic!("`{before}` is there"))
        .1;
    let digits = after
        .trim_start()
        .split(|byte: char| !byte.is_ascii_digit())
        .next();
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number follows")
}

#[test]
fn the_default_policy_is_that_of_decide() {
    let ours = policy(&read("").expect("nothing is right").schedule);
    let theirs = warmq_decide::Policy::default();
    assert_eq!(ours.period, theirs.period);
    assert_eq!(ours.slice_max, theirs.slice_max);
    assert_eq!(ours.slice_min, theirs.slice_min);
    assert_eq!(ours.wakeup_lag_max, theirs.wakeup_lag_max);
    assert_eq!(ours.lag_max, theirs.lag_max);
    assert_eq!(ours.alpha, theirs.alpha);
    assert_eq!(ours.preempt_interval, theirs.preempt_interval);
    assert_eq!(ours.min_sleep, theirs.min_sleep);
    assert_eq!(ours.batch_budget, theirs.batch_budget);
    assert_eq!(ours.imbalance, theirs.imbalance);
    assert_eq!(ours.patience, theirs.patience);
}

#[test]
fn scx_loader_may_start_it_in_each_mode() {
    let entry: toml::Table = include_str!("../../scx_loader.toml").parse().expect("TOML");
    let modes = entry["scheds"]["scx_warmq"].as_table().expect("a table");
    assert_eq!(modes.len(), 5);
    for (mode, options) in modes {
        let words = options.as_array().expect("a list").iter();
        let words: Vec<&str> = words.map(|word| word.as_str().expect("text")).collect();
        read(&words.join(" ")).unwrap_or_else(|flaw| panic!("{mode}: {flaw}"));
    }
}

#[test]
fn the_other_defaults_are_those_of_the_bpf_program() {
    let schedule = read("").expect("nothing is right").schedule;
    let set = |name: &str| number(STATE, &format!("{name} ="));
    assert_eq!(
        u64::from(schedule.groups.groups_per_process),
        set("u32 groups_per_process")
    );
    assert_eq!(
        u64::from(schedule.groups.groups_per_user),
        set("u32 groups_per_user")
    );
    assert_eq!(u64::from(schedule.groups.infer_size), set("u32 infer_size"));
    assert_eq!(
        schedule.groups.balance_interval.0 / 1_000,
        set("u64 balance_interval")
    );
}

/// By which the lab plays the compiled program.
const PROFILE: &str = include_str!("../../../../schedulers/warmq.toml");

/// Options that the profile has as names of one: `grouping`, `preempt_on_wakeup`.
const OTHERWISE: &[&str] = &[
    "no-groups",
    "group-by",
    "infer",
    "no-preempt",
    "no-granularity",
];
/// Options that say nothing of what is decided, or of what the lab does not have.
const NOT_THERE: &[&str] = &[
    "access-group",
    "ignore-quotas",
    "stats",
    "task-hint-map",
    "exit-after",
    "verbose",
];

fn written(option: &toml::Value, key: &str) -> Option<String> {
    match option.get(key)? {
        toml::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A bound, and what is just beyond it.
fn beyond(bound: &str, step: i64) -> Option<String> {
    if let Ok(number) = bound.parse::<i64>() {
        return Some((number + step).to_string());
    }
    let bound = time(bound)
        .expect("a time")
        .0
        .checked_add_signed(step * 1_000);
    bound.map(|time| Duration(time).exact())
}

#[test]
fn the_profile_of_the_lab_has_these_options() {
    let profile: toml::Table = PROFILE.parse().expect("TOML");
    let options = profile["option"].as_table().expect("a table");
    let command = Schedule::augment_args(clap::Command::new("scx_warmq"));
    let taken = |line: &str| {
        Options::try_parse_from(["scx_warmq", "--infer"].into_iter().chain(line.split(' '))).is_ok()
    };
    let mut ours = Vec::new();
    for argument in command.get_arguments() {
        let long = argument.get_long().expect("a long option");
        if OTHERWISE.contains(&long) || NOT_THERE.contains(&long) {
            continue;
        }
        let name = long.replace('-', "_");
        let option = &options[&name];
        ours.push(name);
        for (key, step) in [("least", -1), ("most", 1)] {
            let Some(bound) = written(option, key) else {
                continue;
            };
            assert!(taken(&format!("--{long} {bound}")), "{long} {key}");
            let beyond = beyond(&bound, step);
            let refused = beyond.is_none_or(|beyond| !taken(&format!("--{long}={beyond}")));
            assert!(refused, "{long} {key}");
        }
        let default = argument.get_default_values().first();
        if let (Some(ours), Some(lab)) = (default, written(option, "default")) {
            let ours = ours.to_str().expect("text");
            assert!(ours == lab || time(ours) == time(&lab), "{long}");
        }
    }
    let of_profile = options
        .keys()
        .filter(|name| !["grouping", "preempt_on_wakeup"].contains(&name.as_str()));
    let mut of_profile: Vec<String> = of_profile.cloned().collect();
    ours.sort();
    of_profile.sort();
    assert_eq!(ours, of_profile);
}

#[test]
fn every_dial_reaches_the_policy() {
    let all = "--slice 3ms --slice-min 1ms --period 30ms --wakeup-lag-max 5ms --lag-max 50ms --alpha 2us \
    --preempt-interval 2ms \
               --min-sleep 7us --batch-budget 9ms --imbalance 40 --patience 1s";
    let ours = policy(&read(all).expect("right options").schedule);
    let times = [
        ours.slice_max,
        ours.slice_min,
        ours.period,
        ours.wakeup_lag_max,
        ours.lag_max,
        ours.batch_budget,
        ours.patience,
    ];
    assert_eq!(times.map(|ns| ns / 1_000_000), [3, 1, 30, 5, 50, 9, 1_000]);
    assert_eq!(
        [
            ours.alpha,
            ours.preempt_interval,
            ours.min_sleep,
            ours.imbalance
        ],
        [2_000, 2_000_000, 7_000, 40]
    );
    assert_eq!(
        policy(&read("--no-granularity").expect("right").schedule).alpha,
        0
    );
}

#[test]
fn every_wrong_option_is_explained() {
    let lines = [
        "--slice 4",
        "--slice 1.5",
        "--slice 2s",
        "--slice-min 10ms",
        "--lag-max 2ms",
        "--wakeup-lag-max 50ms",
        "--preempt-interval x",
        "--imbalance 1001",
        "--groups 1024",
        "--groups 0",
        "--infer-size 8",
        "--alpha 1us --no-granularity",
        "--infer --no-groups",
        "--place numa",
        "--monitor 0",
        "--monitor 1 --slice 4ms",
        "--stats-json soon",
        "label 7",
        "label --tid 4",
        "label --tid 4 --name x 7",
        "label --name [ 7",
        "label --all 7",
        "label --list --tid 4",
        "label --list --follow",
        "label --remove",
        "label --remove --tid 4 7",
    ];
    let all: Vec<String> = lines
        .iter()
        .map(|line| format!("{line}\n  {}", refused(line)))
        .collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_people_write_is_taken() {
    let lines = [
        "--min-sleep 0",
        "--preempt-interval 0",
        "--lag-max 4ms",
        "--infer --infer-size 8",
        "--groups 1023 --groups-per-process 1",
        "--scope user --place llc -v",
        "--exit-after 60",
        "--monitor 0.5",
        "--stats-json",
        "--stats-json 2",
        "label --name db-* 7",
        "label --cgroup a.slice 7 --app 2 --follow",
        "label --tid 4 --tid 5 7",
        "label --remove --all",
        "label --remove --pid 4",
        "label --list --json",
        "unpin",
        "man",
        "completions bash",
    ];
    for line in lines {
        assert!(read(line).is_ok(), "{line}: {:?}", read(line).err());
    }
}

#[test]
fn help_explains() {
    let mut command = Options::command().term_width(100);
    insta::assert_snapshot!(command.render_long_help().to_string());
    let label = command.find_subcommand_mut("label").expect("it is there");
    insta::assert_snapshot!(label.clone().term_width(100).render_long_help().to_string());
}
