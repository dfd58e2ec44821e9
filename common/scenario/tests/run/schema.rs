//! The JSON schema and the reader agree.

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;
use warmq_scenario::Scenario;

fn validator() -> Validator {
    let schema = fs::read_to_string(here("../../scenarios/scenario.schema.json")).expect("a text");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    assert!(jsonschema::meta::is_valid(&schema));
    jsonschema::validator_for(&schema).expect("a schema")
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// What the schema says against `text`: nothing where it is fine.
fn told(validator: &Validator, text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).expect("TOML");
    let errors = validator.iter_errors(&value);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn shipped_scenarios_laws_and_the_examples_of_the_documentation_fit_the_schema() {
    let validator = validator();
    let folders = ["../../scenarios", "../../laws"];
    let files = folders
        .iter()
        .flat_map(|folder| fs::read_dir(here(folder)).expect("the folder"));
    let files = files.map(|entry| entry.expect("an entry").path());
    let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "toml"));
    let mut texts: Vec<String> = files
        .map(|file| fs::read_to_string(file).expect("a text"))
        .collect();
    assert!(texts.len() >= 40);
    let page = |name| fs::read_to_string(here(name)).expect("the page");
    let pages = page("../../docs/scenarios.md") + &page("../../README.md");
    let examples = pages.split("```toml\n").skip(1);
    texts.extend(examples.filter_map(|example| example.split("```").next().map(str::to_owned)));
    for text in texts {
        assert_eq!(told(&validator, &text), Vec::<String>::new(), "{text}");
    }
}

/// Everything that the language has, as far as the shipped ones do not use it.
#[test]
fn what_the_reader_accepts_fits_the_schema() {
    let text = fs::read_to_string(here("tests/everything.toml")).expect("a text");
    Scenario::read("s.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(told(&validator(), &text), Vec::<String>::new());
}

/// What can be seen to be wrong without looking at the whole of a scenario.
#[test]
fn what_is_wrong_in_itself_fits_neither() {
    let validator = validator();
    let hog = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";
    let step = |step: &str| format!("[task.t]\nbody = [{{ run = \"1ms\" }}, {step}]\n");
    let beside = |table: &str| format!("{hog}{table}\n");
    let wrong = [
        "title = \"nothing\"".to_owned(),
        "[task.t]".to_owned(),
        format!("tittle = \"x\"\n{hog}"),
        format!("order = \"sorted\"\n{hog}"),
        format!("{hog}nise = 5"),
        format!("{hog}policy = \"fast\""),
        format!("{hog}every = 10"),
        format!("{hog}spawned = \"yes\""),
        format!("{hog}cpus = \"cup 1\""),
        step("{ rum = \"1ms\" }"),
        step("{ run = 5 }"),
        step("{ run = \"1ms\", times = 3 }"),
        step("{ run = { exponential = \"1ms\", among = [\"2ms\"] } }"),
        step("{ run = { pareto = \"1ms\" } }"),
        step("{ exit = false }"),
        step("{ wait = \"c\", timeout = 5 }"),
        step("{ send = \"s\" }"),
        step("{ touch = \"r\", write = 25 }"),
        step("{ touch = \"r\", pattern = \"backwards\" }"),
        step("{ run = \"1ms\", when = \"mode\" }"),
        step("{ repeat = 3 }"),
        step("{}"),
        beside("[region.r]"),
        beside("[region.\"a b\"]\nbytes = \"1KB\""),
        beside("[regoin.r]\nbytes = \"1KB\""),
        beside("[datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"1B\"\nrate = \"5000\""),
        beside("[timer.t]\nmode = \"late\""),
        beside("[settings]\nn = 1.5"),
        beside("[settings.n]\nmost = 4"),
        beside("[[change]]\nat = \"1s\"\nset = { nice = 5 }"),
        beside("[[change]]\nat = \"1s\"\ntask = \"hog\"\nset = { weight = 5 }"),
        beside("[[phase]]\nname = \"late\""),
    ];
    for text in wrong {
        assert!(Scenario::read("s.toml", &text).is_err(), "{text}");
        assert!(!told(&validator, &text).is_empty(), "{text}");
    }
}
