//! Profiles of compiled schedulers: sums, tables, the picture.

use warmq_report::{Profile, Report, Section, Spot, Terminal, Work, write_html};
use warmq_units::Duration;

const PLAIN: Terminal = Terminal {
    width: 90,
    colors: false,
    all: false,
};

fn work(ns: u64, instructions: u64, call: Option<&str>) -> Work {
    Work {
        instructions,
        calls: call
            .map(|name| (name.to_owned(), 100))
            .into_iter()
            .collect(),
        lines: 300,
        found_in_level: [150, 20, 0],
        from_other_cpus: 7,
        time: Duration::from_ns(ns),
        locked: Duration::from_ns(ns / 2),
        ..Work::default()
    }
}

/// A scheduler of two callbacks, of which one calls a function that the other calls, too.
fn profile(name: &str) -> Profile {
    let mut profile = Profile {
        scheduler: name.to_owned(),
        switches: 100,
        cpu_time: Duration::from_ns(1_000_000),
        ..Profile::default()
    };
    let stop = ["stopping", "mine_stopping", "main.bpf.c:9"];
    let queue = ["enqueue", "mine_enqueue", "main.bpf.c:21"];
    profile.add(&stop, "t->ran = 0;", &work(1_000, 400, None));
    profile.add(
        &queue,
        "insert(p);",
        &work(9_000, 900, Some("scx_bpf_dsq_insert")),
    );
    for callback in ["stopping", "enqueue"] {
        let path = [callback, "place", "lib.bpf.h:3"];
        profile.add(&path, "if (late < early)", &work(2_000, 100, None));
        profile.began(&[callback], 100);
        profile.began(&[callback, "place"], 200);
    }
    profile.sort();
    profile
}

fn sum(spots: &[Spot]) -> Work {
    let mut sum = Work::default();
    spots.iter().for_each(|spot| sum += &spot.work);
    sum
}

#[test]
fn every_level_adds_up_to_the_whole() {
    let mut profile = profile("mine");
    profile.merge(&self::profile("mine"));
    assert_eq!(profile.work.time, Duration::from_ns(28_000));
    assert_eq!(profile.work.calls["scx_bpf_dsq_insert"], 200);
    assert_eq!(sum(&profile.callbacks), profile.work);
    for callback in &profile.callbacks {
        assert_eq!(sum(&callback.inside), callback.work);
        for function in &callback.inside {
            assert_eq!(sum(&function.inside), function.work);
        }
    }
    assert_eq!(sum(&profile.functions()), profile.work);
    let lines: Vec<Spot> = profile.lines().into_iter().map(|(_, line)| line).collect();
    assert_eq!(sum(&lines), profile.work);
}

#[test]
fn the_most_expensive_comes_first_and_functions_are_of_all_callbacks() {
    let profile = profile("mine");
    let names = |spots: &[Spot]| {
        spots
            .iter()
            .map(|spot| spot.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&profile.callbacks), ["enqueue", "stopping"]);
    let functions = profile.functions();
    assert_eq!(
        names(&functions),
        ["mine_enqueue", "place", "mine_stopping"]
    );
    assert_eq!(functions[1].times, Some(400));
}

#[test]
fn tables_of_two_side_by_side_and_of_one_without_a_program() {
    let without = Profile {
        scheduler: "kernel".to_owned(),
        ..Profile::default()
    };
    let mut other = profile("other");
    other.add(
        &["tick", "other_tick", "main.bpf.c:2"],
        "{",
        &work(3, 9, None),
    );
    insta::assert_snapshot!(PLAIN.profiles(&[without, profile("mine"), other]));
}

#[test]
fn no_line_of_a_table_is_wider_than_the_terminal() {
    let narrow = Terminal { width: 60, ..PLAIN };
    let text = narrow.profiles(&[profile("mine")]);
    let tables = text
        .split_once("each of 100 switches")
        .expect("tables")
        .1
        .lines();
    for line in tables {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

fn page(profiles: Vec<Profile>) -> String {
    let section = Section {
        profiles,
        ..Section::default()
    };
    let report = Report {
        sections: vec![section],
        ..Report::default()
    };
    let mut page = Vec::new();
    write_html(&report, &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("text")
}

#[test]
fn the_page_draws_callbacks_functions_and_lines() {
    let page = page(vec![profile("mine")]);
    let from = page.split_once("<h3>Profiles").expect("profiles").1;
    let until = from.split_once("<div class=\"again\">").expect("an end").0;
    insta::assert_snapshot!(until.replace("><", ">\n<"));
}

#[test]
fn words_of_a_profile_are_never_markup() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut profile = profile(evil);
    profile.point = evil.to_owned();
    profile.add(&[evil, evil, evil], evil, &work(90_000, 1, Some(evil)));
    let page = page(vec![profile]);
    assert!(!page.contains("<script>alert"));
}
