//! What runs give: rows, pages, traces, and exit codes.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::support::{Folder, TRIAL};

const KEYS: [&str; 10] = [
    "schema",
    "experiment",
    "point",
    "metric",
    "value",
    "unit",
    "low",
    "high",
    "published",
    "calibration",
];

fn rows(lines: &str) -> Vec<Map<String, Value>> {
    let object = |line: &str| match serde_json::from_str(line) {
        Ok(Value::Object(object)) => object,
        other => panic!("{line}: {other:?}"),
    };
    lines.lines().map(object).collect()
}

fn trial(name: &str) -> Folder {
    Folder::new(&format!("results-{name}")).with("trial.toml", TRIAL)
}

#[test]
fn every_line_of_json_is_a_row_with_exactly_these_keys() {
    let ran = trial("json").run("run trial.toml --json");
    assert!(!ran.err.contains("panicked"));
    let rows = rows(&ran.fine());
    // Two measures at two points.
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let keys: BTreeSet<&str> = row.keys().map(String::as_str).collect();
        assert_eq!(keys, BTreeSet::from(KEYS));
        assert_eq!(
            (&row["schema"], &row["experiment"]),
            (&1.into(), &"trial".into())
        );
        let point = row["point"].as_object().unwrap();
        assert_eq!(point.keys().collect::<Vec<_>>(), ["tasks"]);
        let figure = |key: &str| row[key].as_f64().unwrap();
        assert!(figure("low") <= figure("value") && figure("value") <= figure("high"));
    }
    let published = |row: &&Map<String, Value>| row["published"] == 2.0;
    let published: Vec<_> = rows.iter().filter(published).collect();
    assert_eq!(published.len(), 1);
    assert_eq!(published[0]["calibration"], true);
}

#[test]
fn notes_stand_beside_lines_of_json() {
    let ran = trial("json-notes").run("run trial.toml --json --quick --machine host");
    assert!(
        ran.err.contains("note: Costs of this machine are"),
        "{}",
        ran.err
    );
    assert_eq!(rows(&ran.fine()).len(), 2);
}

#[test]
fn a_quick_run_is_a_part_of_the_full_one_and_seeds_can_be_chosen() {
    let folder = trial("quick");
    let quick = rows(&folder.run("run trial.toml --json --quick").fine());
    assert_eq!(quick.len(), 2);
    let one = folder.run("run trial.toml --json --seeds 1 --quick").fine();
    assert_eq!(rows(&one), quick);
}

#[test]
fn rows_do_not_depend_on_the_number_of_jobs() {
    let folder = trial("jobs");
    let rows = |jobs| {
        folder
            .run(&format!("run trial.toml --json --jobs {jobs}"))
            .fine()
    };
    assert_eq!(rows(1), rows(3));
}

#[test]
fn a_failed_claim_is_a_result_unless_it_is_to_be_an_error() {
    let folder = trial("strict");
    let ran = folder.run("run trial.toml");
    assert_eq!(ran.code, 0);
    assert!(
        ran.out.contains("✓") && ran.out.contains("✗"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("claims: 1 hold, 1 fail"), "{}", ran.out);
    let strict = folder.run("run trial.toml --strict");
    assert_eq!((strict.code, strict.out.contains("✗")), (1, true));
    assert!(strict.err.contains("1 claim failed"), "{}", strict.err);
}

#[test]
fn claims_that_a_quick_run_leaves_out_are_counted() {
    let text = TRIAL.replace("at_most = 10", "at_most = 10\nat = { tasks = 4 }");
    let folder = Folder::new("results-unchecked").with("trial.toml", &text);
    let out = folder.run("run trial.toml --quick").fine();
    assert!(
        out.contains("claims: 1 hold, 0 fail, 1 not checked"),
        "{out}"
    );
}

#[test]
fn a_folder_gets_a_page_and_the_rows() {
    let folder = trial("out");
    let out = folder.run("run trial.toml --out deep/folder").fine();
    assert!(
        out.trim_end().ends_with("page: deep/folder/report.html"),
        "{out}"
    );
    let names = Folder(folder.0.join("deep/folder")).names();
    assert_eq!(names, ["report.html", "rows.csv"]);
    assert_eq!(folder.text("deep/folder/rows.csv").lines().count(), 1 + 4);
    let page = folder.text("deep/folder/report.html");
    assert!(page.contains("A trial") && page.contains("<span>trial.toml</span>"));
}

#[test]
fn a_setting_and_the_machine_can_be_changed_for_all_runs() {
    let folder = trial("changed");
    let changed = "run trial.toml --quick --json --set scheduler.colors=4 --machine tiny-2cpu";
    let (changed, plain) = (
        folder.run(changed),
        folder.run("run trial.toml --quick --json"),
    );
    assert_ne!(rows(&changed.fine()), rows(&plain.fine()));
}

#[test]
fn twice_the_same_run_is_the_same() {
    let ran = trial("determinism").run("run trial.toml --check-determinism");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("deterministic: 4 runs"), "{}", ran.err);
}

#[test]
fn a_trace_is_of_one_point_and_whole() {
    let folder = trial("trace");
    let out = folder
        .run("run trial.toml --trace it.perfetto --point tasks=4 --json")
        .fine();
    assert!(rows(&out).iter().all(|row| row["point"]["tasks"] == 4));
    assert_eq!(folder.names(), ["it.perfetto", "trial.toml"]);
    assert!(folder.0.join("it.perfetto").metadata().unwrap().len() > 1000);
}

#[test]
fn points_that_are_named_are_run_alone() {
    let folder = trial("points");
    let figures = |options: &str| {
        let out = folder
            .run(&format!("run trial.toml --json{options}"))
            .fine();
        let tasks = |row: &Map<String, Value>| row["point"]["tasks"].as_i64().unwrap();
        rows(&out).iter().map(tasks).collect::<Vec<_>>()
    };
    assert_eq!(figures(" --point tasks=4"), [4, 4]);
    assert_eq!(figures(" --point tasks=4,tasks=2"), figures(""));
    let table = folder.run("run trial.toml --point tasks=4").fine();
    assert!(table.contains("1 hold"), "{table}");
}

#[test]
fn a_run_without_room_for_its_tasks_has_a_code_of_its_own() {
    let small = warmq_machine::builtin("tiny-1cpu").unwrap();
    let line = small
        .lines()
        .skip_while(|line| *line != "[memory]")
        .nth(1)
        .unwrap();
    let small = small.replace(line, "size = \"4MB\"");
    let text = TRIAL
        .replace("[2, 4]", "[2, 1000]")
        .replace("tiny-1cpu", "small.toml");
    let folder = Folder::new("results-full")
        .with("small.toml", &small)
        .with("trial.toml", &text);
    let ran = folder.run("run trial.toml --json");
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(
        ran.err
            .contains("no measurement from trial: tasks = 1000, seed 1"),
        "{}",
        ran.err
    );
    assert_eq!(rows(&ran.out).len(), 4, "the other point has its rows");
}

#[test]
fn what_the_system_refuses_has_a_code_of_its_own() {
    // A file stands where the folder should be.
    let ran = trial("refused").run("run trial.toml --quick --out trial.toml");
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(
        ran.err.contains("cannot make the folder trial.toml"),
        "{}",
        ran.err
    );
}

#[test]
fn every_shipped_experiment_is_fine_by_name_and_as_a_file() {
    let folder = Folder::new("results-shipped");
    let experiments = concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments");
    let mut files: Vec<String> = ["affinity", "coloring", "starvation"]
        .iter()
        .flat_map(|paper| std::fs::read_dir(format!("{experiments}/{paper}")).unwrap())
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    let stem = |file: &String| file.rsplit('/').next().unwrap().replace(".toml", "");
    let names: Vec<String> = files.iter().map(stem).collect();
    for list in [files, names] {
        let out = folder.run(&format!("check {}", list.join(" "))).fine();
        assert_eq!(out.lines().count(), list.len());
        assert!(out.lines().all(|line| line.contains(": fine; ")), "{out}");
    }
}
