//! `warmq run --profile`.

use std::fs;

use serde_json::Value;

use super::support::{FAULTS, Folder, Ran};

/// A folder with two compiled schedulers in it, which are the same.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("profile-{name}"));
    for object in ["mine.bpf.o", "yours.bpf.o"] {
        fs::copy(FAULTS, folder.0.join(object)).unwrap();
    }
    folder
}

const RUN: &str = "run hog --world lab --machine tiny-2cpu --time 40ms --warmup 0ms --profile";
const TWO: &str = "./mine.bpf.o,./yours.bpf.o";

fn profiled(folder: &Folder, more: &str) -> Ran {
    folder.run(&format!("{RUN} {more}"))
}

#[test]
fn two_compiled_schedulers_stand_side_by_side() {
    let said = profiled(&folder("text"), &format!("--scheduler kernel,{TWO}")).fine();
    let profiles = said
        .split_once("kernel has no instructions")
        .expect("profiles")
        .1;
    let profiles = profiles.rsplit_once("──\n").expect("an end").0;
    insta::assert_snapshot!(profiles);
    let again = profiled(&folder("again"), &format!("--scheduler kernel,{TWO}")).fine();
    assert!(again.contains(profiles), "a second run differs");
}

fn ps(spot: &Value) -> u64 {
    let ns = spot["work"]["time_ns"].as_f64().expect("ns");
    (ns * 1e3).round() as u64
}

fn inside<'s>(spot: &'s Value, key: &str) -> &'s [Value] {
    spot[key].as_array().map_or(&[], |list| list.as_slice())
}

#[test]
fn json_has_all_of_it_and_lines_add_up_to_the_whole() {
    let said = profiled(&folder("json"), &format!("--json --scheduler {TWO}")).fine();
    let lines = said
        .lines()
        .map(|line| serde_json::from_str(line).expect("json"));
    let profiles: Vec<Value> = lines
        .filter(|line: &Value| !line["profile"].is_null())
        .collect();
    assert_eq!(profiles.len(), 2);
    for profile in &profiles {
        let profile = &profile["profile"];
        let mut sum = 0;
        for callback in inside(profile, "callbacks") {
            for function in inside(callback, "inside") {
                sum += inside(function, "inside").iter().map(ps).sum::<u64>();
            }
        }
        assert!(sum > 0, "{profile}");
        assert_eq!(sum, ps(profile));
    }
}

#[test]
fn the_page_draws_it_and_says_how_to_make_it_again() {
    let folder = folder("page");
    profiled(&folder, &format!("--out page --scheduler {TWO}")).fine();
    let page = folder.text("page/report.html");
    assert_eq!(page.matches("class=\"flames\"").count(), 2);
    assert!(page.contains("--profile"), "not reproduced");
}

#[test]
fn where_there_is_nothing_to_profile_it_is_refused() {
    let folder = folder("refused");
    for scheduler in ["kernel", "kernel,linux24"] {
        let refused = profiled(&folder, &format!("--scheduler {scheduler}"));
        assert_eq!(refused.code, 2, "{}", refused.err);
        assert!(
            refused.err.contains("--scheduler ./scx_mine.bpf.o"),
            "{}",
            refused.err
        );
    }
    let with_trace = profiled(&folder, &format!("--scheduler {TWO} --trace it.warmq"));
    assert!(with_trace.err.contains("--profile"), "{}", with_trace.err);
}
