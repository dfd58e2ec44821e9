//! `warmq judge` in the lab: planted regressions, the same bytes twice, what cannot be judged.

use serde_json::Value;

use super::support::Folder;

/// A small part of the set.
const PART: &str = "--scenario desktop --machine 2cpus --law nice --seeds 1,";

#[test]
fn planted_regressions_are_caught_and_explained() {
    let table = [
        (
            "loses-wakeups",
            "woken-beside-idle",
            "periodic",
            "audio_delay_max of periodic on 2cpus",
        ),
        ("ignores-weights", "nice", "periodic", "[law nice]"),
        (
            "no-balance",
            "real-time-hog",
            "desktop",
            "[law real-time-hog]",
        ),
    ];
    let folder = Folder::new("judge-planted");
    for (fault, law, scenario, said) in table {
        let ran = folder.run(&format!(
            "judge broken:fault={fault} --against broken --law {law} --scenario {scenario} --machine 2cpus \
             --seeds 3 --explain"
        ));
        assert_eq!(ran.code, 1, "{fault}: {}{}", ran.out, ran.err);
        let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let regressed = format!("breaks what the base keeps: {law}");
        for text in [
            regressed.as_str(),
            said,
            "waited longest",
            "Again: warmq laws",
        ] {
            assert!(words.contains(text), "{fault}: no {text} in {words}");
        }
    }
}

#[test]
fn a_line_of_json_has_all_and_the_same_bytes_twice() {
    let folder = Folder::new("judge-json");
    let line = format!("judge broken eevdf-7.1 --against eevdf-7.3 {PART} --json");
    let (once, twice) = (folder.run(&line), folder.run(&format!("{line} --jobs 1")));
    assert_eq!(once.out, twice.out);
    let lines: Vec<Value> = once
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let who: Vec<&Value> = lines.iter().map(|line| &line["scheduler"]).collect();
    assert_eq!(who, ["broken", "eevdf-7.1"]);
    for line in &lines {
        assert_eq!((&line["schema"], &line["set"]), (&1.into(), &1.into()));
        assert_eq!(line["verdict"], "no regression");
        assert_eq!(line["laws"]["holds"], 1);
        assert!(line["score"].as_f64().unwrap() > 0.0);
        assert_eq!(line["figures"].as_array().unwrap().len(), 5);
    }
    assert_eq!(once.code, 0);
}

#[test]
fn a_folder_gets_a_page_with_every_figure_and_the_lines_of_json() {
    let folder = Folder::new("judge-page");
    let line =
        format!("judge broken:fault=ignores-weights --against broken {PART} --explain --out page");
    let ran = folder.run(&line);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let page = folder.text("page/judge.html");
    for text in [
        "Judged against broken",
        "breaks what the base keeps: nice",
        "sound_p99",
        "[law nice]",
        "--seeds 1,",
        "left:",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let lines: Value = serde_json::from_str(&folder.text("page/judge.jsonl")).unwrap();
    assert_eq!(lines["verdict"], "regression");
    // A second look needs no flag, as both files are those of one judgement.
    assert_eq!(folder.run(&line).code, 1);
}

#[test]
fn the_table_says_who_regressed() {
    let folder = Folder::new("judge-table");
    let ran = folder.run(&format!(
        "judge broken:fault=ignores-weights,broken --against broken {PART} --all"
    ));
    assert_eq!(ran.code, 1, "{}", ran.err);
    insta::assert_snapshot!("judge_table", ran.out);
}

#[test]
fn a_scenario_that_it_has_not_seen_counts_as_it_is() {
    let text = "[task.audio]\nevery = \"10ms\"\nbody = [{ begin = \"sound\", due = true }, { run = \"2ms\" }, { end = \"sound\" }]\n";
    let folder = Folder::new("judge-file").with("mine.toml", text);
    let ran = folder.run("judge broken:fault=lifo --against broken --scenario mine.toml --machine tiny-2cpu --law none --seeds fresh --json");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line: Value = serde_json::from_str(ran.out.trim()).unwrap();
    let figures = line["figures"].as_array().unwrap();
    let names: Vec<&Value> = figures.iter().map(|figure| &figure["figure"]).collect();
    assert!(names.contains(&&Value::from("sound_p99")), "{names:?}");
    assert!(ran.err.contains("the same again: --seeds "), "{}", ran.err);
}

#[test]
fn who_fails_where_the_base_does_not_has_regressed() {
    let folder = Folder::new("judge-absent");
    let ran = folder.run(
        "judge broken:fault=loses-wakeups --against broken --scenario ping-pong --machine 2cpus --law none --seeds 1,",
    );
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("has no trip_p99 of ping-pong on 2cpus"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("0.00"), "{}", ran.out);
}

#[test]
fn settings_are_tried_and_what_breaks_a_law_is_not_recommended() {
    let folder = Folder::new("judge-tune");
    let faults =
        "none|ignores-weights|lifo|never-preempts|no-slices|woken-first|ignores-hints|stays";
    let ran = folder.run(&format!(
        "judge broken --against broken --tune fault={faults} {PART} --out page"
    ));
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let lines = || ran.out.lines();
    let broken = lines().find(|line| line.contains("ignores-weights"));
    assert!(
        broken.is_none_or(|line| line.ends_with("nice")),
        "{}",
        ran.out
    );
    let recommended = lines().find(|line| line.starts_with("Recommended: "));
    assert!(
        !recommended.unwrap().contains("ignores-weights"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.starts_with("8 combinations, of which 4"),
        "{}",
        ran.out
    );
    let page = folder.text("page/report.html");
    for text in [
        "Pareto front",
        "Recommended: fault=",
        "fault=none|ignores-weights|",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let rows = folder.text("page/rows.csv");
    for fault in faults.split('|') {
        assert!(rows.contains(&format!("tune,{fault},")), "{fault}: {rows}");
    }
}

#[test]
fn where_all_settings_break_a_law_nothing_is_recommended() {
    let folder = Folder::new("judge-tune-none");
    let ran = folder.run(&format!(
        "judge broken --against broken --tune fault=ignores-weights {PART}"
    ));
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("Nothing is recommended"), "{}", ran.out);
}

#[test]
fn what_cannot_be_judged_is_said_with_a_fix() {
    let text = "[task.hog]\nbody = [{ rum = \"10ms\" }]\n";
    let folder = Folder::new("judge-refused").with("wrong.toml", text);
    let table = [
        ("judge", "<SCHEDULER>"),
        ("judge nobody", "no scheduler \"nobody\""),
        ("judge broken:fault=nobody", "nobody"),
        ("judge broken:falt=lifo", "did you mean `fault`"),
        ("judge broken --against broken", "judged against itself"),
        (
            "judge eevdf-7.3 --against nobody",
            "no scheduler \"nobody\"",
        ),
        ("judge broken --machine moon", "the set has 2cpus, smt"),
        ("judge broken --scenario desktp", "did you mean `desktop`"),
        ("judge broken --scenario wrong.toml", "did you mean `run`"),
        ("judge broken --scenario none.toml", "cannot read it"),
        ("judge broken --law nic", "did you mean `nice`"),
        ("judge broken --law none,nice", "`none` stands alone"),
        ("judge broken --seeds 1..5", "write how many"),
        ("judge broken --world moon", "use lab, guest or host"),
        ("judge kernel --kernel 5.4", "6.6"),
        ("judge broken,", "empty"),
        ("judge broken --tune fault", "is no range"),
        ("judge broken --tune x=5..1", "that ascends"),
        (
            "judge broken --tune fault=lifo,fault=none",
            "`fault` of broken is set twice",
        ),
        (
            "judge broken:fault=lifo --tune fault=none|stays",
            "`fault` of broken is set twice",
        ),
        (
            "judge broken --tune a=1..99,b=1..99,c=1..99,d=1..99",
            "more than 256 combinations",
        ),
        (
            "judge broken,eevdf-7.1 --tune x=1..5",
            "about one scheduler",
        ),
        (
            "judge broken --tune nothing=1..5 --machine 2cpus",
            "has no setting `nothing`",
        ),
        (
            "judge broken --scenario periodic --machine smt,2cpus --law none --seeds 0",
            "needs a seed",
        ),
        (
            "judge kernel --kernel 6.12 --machine 12llc --scenario",
            "--scenario",
        ),
        ("judge scx_x --world host --machine smt", "leave it out"),
    ];
    for (line, said) in table {
        let ran = folder.run(line);
        assert_eq!(ran.code, 2, "{line}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
        assert_eq!(ran.out, "", "{line}");
    }
}
