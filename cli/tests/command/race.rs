//! `warmq race`.

use std::fs;

use serde_json::Value;

use super::support::{Folder, RACES};

/// A folder with a compiled scheduler that has races.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("race-{name}"));
    fs::copy(RACES, folder.0.join("mine.bpf.o")).unwrap();
    folder
}

#[test]
fn a_fault_ends_with_1_and_the_line_that_plays_it_again() {
    let folder = folder("again");
    let ran = folder.run("race ./mine.bpf.o:counts_once=true --tasks 3 --runs 300");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.starts_with("./mine.bpf.o: cpu"), "{}", ran.out);
    let (_, again) = ran.out.trim().rsplit_once("again: warmq ").expect("a line");
    let same = folder.run(again);
    let story = |text: &str| text.split_once("\n\n").map(|(_, story)| story.to_owned());
    assert_eq!((same.code, story(&same.out)), (1, story(&ran.out)));
}

#[test]
fn without_a_fault_it_ends_with_0() {
    let cured = "race ./mine.bpf.o:counts_once=1;kicks_all=1 --tasks 3 --runs 50";
    let said = folder("cured").run(cured).fine();
    assert_eq!(said, "no fault in 50 schedules of 3 tasks on 2 CPUs\n");
}

#[test]
fn json_has_the_fault_and_its_seed() {
    let ran = folder("json").run("race ./mine.bpf.o:has_queue=0 --seed 7 --json");
    let line: Value = serde_json::from_str(&ran.out).expect("json");
    assert_eq!(ran.code, 1);
    let fault = "the scheduler is thrown out: non-existent DSQ 0x7";
    assert_eq!((&line["fault"], &line["seed"]), (&fault.into(), &7.into()));
}

#[test]
fn what_cannot_be_raced_is_refused() {
    let folder = folder("refused");
    let wrong = [
        "./none.bpf.o",
        "./mine.bpf.o:slice=1",
        "./mine.bpf.o:kicks_all",
        "kernel",
    ];
    for scheduler in wrong {
        let ran = folder.run(&format!("race {scheduler}"));
        assert_eq!(ran.code, 2, "{scheduler}: {}", ran.err);
    }
    let refused = folder.run("race ./mine.bpf.o --only dance").err;
    assert!(
        refused.contains("possible values: wake, sleep"),
        "{refused}"
    );
}
