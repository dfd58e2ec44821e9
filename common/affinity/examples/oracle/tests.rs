//! Shipped and drawn instances, as text and as JSON, and what is refused.

use clap::Parser;
use serde_json::Value;

use super::*;

/// What `arguments` print.
fn ran(arguments: &[&str]) -> Result<String, String> {
    let all = std::iter::once("oracle").chain(arguments.iter().copied());
    let parsed = Arguments::try_parse_from(all).map_err(|error| error.to_string())?;
    shown(&parsed)
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn json(line: &str) -> Value {
    let text = ran(&[&words(line)[..], &["--json"]].concat()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_file_in_the_folder_of_instances_is_shipped_and_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../instances");
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    let mut shipped: Vec<_> = INSTANCES.iter().map(|(name, _)| name).collect();
    shipped.sort();
    let named = shipped.iter().map(|name| format!("{name}.toml").into());
    assert_eq!(files, named.collect::<Vec<std::ffi::OsString>>());
    let drawn = INSTANCES.iter().map(|(name, _)| ran(&[name]).unwrap());
    let drawn: Vec<String> = drawn.collect();
    insta::assert_snapshot!("shipped", drawn.join("\n\n"));
}

#[test]
fn the_worked_example_is_an_object_with_the_figures_of_the_paper() {
    let read = json("example");
    let orders = read["orders"].as_array().unwrap();
    let last = |order: &Value| order["schedule"]["last_busy_unit"].as_u64();
    assert_eq!(last(&orders[0]), Some(22));
    assert_eq!(last(&orders[1]), Some(14));
    assert_eq!(last(&read["online"]), Some(14));
    assert_eq!(last(&read["optimum"]), Some(14));
    assert_eq!(read["optimum"]["exact"], true);
}

#[test]
fn instances_are_drawn_alike_from_one_seed_and_the_worst_can_be_shown() {
    let line = "--random 200 --seed 5";
    let text = ran(&words(line)).unwrap();
    insta::assert_snapshot!("random", text);
    let read = json(line);
    let gaps = read["gaps"].as_array().unwrap();
    assert_eq!(gaps.len(), 200);
    for gap in gaps {
        assert!(gap["online"].as_u64() >= gap["optimum"].as_u64(), "{gap}");
    }
    let command = read["worst_command"].as_str().unwrap();
    assert!(text.contains(command), "{command}");
    let worst = json(command);
    assert_eq!(worst["online"]["schedule"]["end"], read["worst"]["online"]);
    assert_eq!(worst["optimum"]["end"], read["worst"]["optimum"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_reason() {
    for (line, why) in [
        ("", "required"),
        ("nothing", "cannot read it"),
        ("example --random 3", "cannot be used with"),
        ("example --cpus 3", "cannot be used with"),
        ("--random 0", "1..=1000000"),
        ("--random 3 --cpus 9", "1..=4"),
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let error = ran(&words).unwrap_err();
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[test]
fn what_is_too_large_for_the_optimum_is_shown_without_it() {
    let task = |number: u64| {
        let run = 1 + 6 * number * number;
        format!("t{number} = {{ fragment = \"A\", run = {run} }}\n")
    };
    let tasks: String = (0..40).map(task).collect();
    let text = format!(
        "title = \"Mine\"\ncpus = 5\ncache = {{ lines = 2, fill = 1, write_back = 1 }}\n\
         fragment.A = 1\n[task]\n{tasks}"
    );
    let shown = text::answer(&answer(Plan::read("mine.toml", &text).unwrap()));
    assert!(
        shown.contains("optimum: not known; it is too large"),
        "{shown}"
    );
    assert!(shown.contains("online algorithm: "), "{shown}");
}
