//! The scenarios of this repository.

use std::fs;
use std::path::Path;

use warmq_config::{Chosen, Value};
use warmq_scenario::{Scenario, Site, TaskKindId, World};

fn shipped() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    let read = |file: &Path| fs::read_to_string(file).expect("a text");
    let name = |file: &Path| {
        file.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    files.iter().map(|file| (name(file), read(file))).collect()
}

fn scenario(name: &str) -> Scenario {
    let (_, text) = shipped()
        .into_iter()
        .find(|(file, _)| *file == format!("{name}.toml"))
        .expect(name);
    Scenario::read(name, &text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn chosen(scenario: &Scenario, values: &[(&str, Value)]) -> Chosen {
    let values = values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Chosen::new(scenario.settings(), values.collect()).expect("values that are allowed")
}

#[test]
fn every_shipped_scenario_is_sound_and_says_what_can_be_set() {
    let files = shipped();
    assert!(files.len() >= 9);
    for (name, text) in files {
        let scenario = Scenario::read(&name, &text).unwrap_or_else(|problems| panic!("{problems}"));
        for setting in scenario.settings() {
            assert!(
                !setting.what.is_empty() && !setting.source.is_empty(),
                "{name}: {}",
                setting.name
            );
        }
        for setting in scenario.settings() {
            let values = [(setting.name.as_str(), setting.default.clone())];
            assert!(
                scenario
                    .bind(&chosen(&scenario, &values), &Site::default())
                    .is_ok()
            );
        }
    }
}

#[test]
fn chat_has_the_settings_of_the_program_that_it_describes() {
    let settings = scenario("chat").settings();
    let listed: Vec<String> = settings
        .iter()
        .map(|setting| {
            format!(
                "{} = {} {}: {}",
                setting.name,
                setting.default,
                setting.unit,
                setting.kind.allowed()
            )
        })
        .collect();
    insta::assert_snapshot!(listed.join("\n"));
}

#[test]
fn settings_say_how_many_tasks_there_are_and_which() {
    let chat = scenario("chat");
    let values = [("rooms", Value::Integer(2)), ("users", Value::Integer(3))];
    let bound = chat
        .bind(&chosen(&chat, &values), &Site::default())
        .expect("a small chat");
    assert_eq!(chat.tasks().len(), 4);
    let tasks: Vec<_> = (0..bound.tasks(TaskKindId(0)))
        .map(|number| bound.indexes_of_task(TaskKindId(0), number))
        .collect();
    assert_eq!(tasks, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
}

#[test]
fn a_setting_that_makes_too_many_tasks_is_refused_at_the_table() {
    let chat = scenario("chat");
    let problems = chat
        .bind(
            &chosen(&chat, &[("rooms", Value::Integer(9_999))]),
            &Site::default(),
        )
        .unwrap_err();
    insta::assert_snapshot!(problems);
}

#[test]
fn the_examples_of_the_documentation_are_sound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = |name| fs::read_to_string(root.join(name)).expect("the page");
    let pages = page("docs/scenarios.md") + &page("README.md");
    let examples = pages
        .split("```toml\n")
        .skip(1)
        .filter_map(|example| example.split("```").next());
    let examples: Vec<&str> = examples.collect();
    assert_eq!(examples.len(), 11);
    for example in examples {
        Scenario::read("example.toml", example)
            .unwrap_or_else(|problems| panic!("{problems}\n{example}"));
    }
}

#[test]
fn each_world_says_what_it_does_otherwise() {
    let hog = scenario("hog");
    assert_eq!(hog.fidelity(World::Lab), []);
    let told: Vec<String> = [World::Lab, World::Guest, World::Host]
        .iter()
        .flat_map(|world| {
            scenario("simplex")
                .fidelity(*world)
                .into_iter()
                .map(move |note| (world, note))
        })
        .map(|(world, note)| format!("{world:?}, {}: {:?}", note.what, note.fidelity))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}
