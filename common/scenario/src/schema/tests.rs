//! The tables of keys say what the reader asks for.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::read::Verb;
use crate::scenario::Scenario;

/// A key that nothing is near, so that the reader names all that it knows.
const UNKNOWN: &str = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";
const HOG: &str = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";

/// The keys that the reader knows in the table where `text` has [`UNKNOWN`].
fn known(text: &str) -> BTreeSet<String> {
    let problems = Scenario::read("s.toml", text)
        .expect_err("a key is unknown")
        .list;
    let asked = problems
        .iter()
        .find(|problem| problem.key.ends_with(UNKNOWN))
        .unwrap_or_else(|| panic!("{text}"));
    let keys = asked.help.strip_prefix("use one of ").expect("a list");
    keys.split(", ").map(str::to_owned).collect()
}

fn names(keys: &[&[Key]]) -> BTreeSet<String> {
    let all = keys.iter().copied().flatten();
    all.map(|key| key.name.to_owned()).collect()
}

#[test]
fn the_reader_asks_for_the_keys_of_objects_and_tasks() {
    for class in Class::ALL {
        let text = format!("[{}.it]\n{UNKNOWN} = 1\n{HOG}", class.name());
        let keys = names(&[keys::MANY, keys::of_class(class)]);
        // `count` is not asked for where `for` is there, and the other way round: both are.
        assert_eq!(known(&text), keys, "{}", class.name());
    }
    let text = format!("{HOG}{UNKNOWN} = 1\n");
    assert_eq!(known(&text), names(&[keys::MANY, keys::TASK]));
    let text = format!("{HOG}[settings.n]\ndefault = 1\n{UNKNOWN} = 1\n");
    assert_eq!(known(&text), names(&[single::SETTING]));
    let text = format!("{HOG}[curve.c]\npoints = [[0, 0], [1, 1]]\n{UNKNOWN} = 1\n");
    assert_eq!(known(&text), names(&[single::CURVE]));
    let text = format!("{HOG}[[phase]]\n{UNKNOWN} = 1\n");
    assert_eq!(known(&text), names(&[keys::PHASE]));
}

#[test]
fn the_reader_asks_for_the_keys_of_a_scenario() {
    let mut keys = names(&[single::TOP]);
    keys.extend(["settings", "curve", "task", "change", "phase", "law"].map(str::to_owned));
    keys.extend(Class::ALL.map(|class| class.name().to_owned()));
    assert_eq!(known(&format!("{UNKNOWN} = 1\n{HOG}")), keys);
}

#[test]
fn the_reader_asks_for_the_keys_of_steps() {
    let objects: Vec<String> = Class::ALL
        .iter()
        .map(|class| format!("[{0}.{0}]\n", class.name()))
        .collect();
    for Verb {
        key: [key], keys, ..
    } in VERBS
    {
        let verb = key.name;
        let value = match key.kind {
            Kind::True => "true",
            _ => "\"none\"",
        };
        let step = format!("{{ {verb} = {value}, {UNKNOWN} = 1 }}");
        let text = format!("{}[task.t]\nbody = [{step}]\n", objects.concat());
        let mut wanted = names(&[keys, keys::WHEN]);
        wanted.insert(verb.to_owned());
        assert_eq!(known(&text), wanted, "{verb}");
    }
}

#[test]
fn the_reader_asks_for_the_keys_of_changes() {
    let named = "[group.g]\n[datagram.d]\n\
                 [source.s]\nto = \"d\"\nbytes = \"1B\"\nrate = \"1 per s\"\n";
    let all_targets = || keys::TARGETS.iter().map(|(target, _)| target.name);
    for (target, sets) in keys::TARGETS {
        let value = match target.name {
            "task" => "hog",
            "group" => "g",
            "source" => "s",
            _ => "cpu 1",
        };
        let change = format!("[[change]]\nat = \"1s\"\n{} = \"{value}\"\n", target.name);
        let text = format!("{named}{HOG}{change}set = {{ {UNKNOWN} = 1 }}\n");
        assert_eq!(known(&text), names(&[sets]), "{}", target.name);
        let text = format!("{named}{HOG}{change}{UNKNOWN} = 1\nset = {{}}\n");
        let mut wanted = names(&[single::AT]);
        wanted.extend(all_targets().map(str::to_owned));
        wanted.extend(["scheduler", "set"].map(str::to_owned));
        assert_eq!(known(&text), wanted);
    }
    let text = format!("{HOG}[[change]]\nat = \"1s\"\nscheduler = \"s\"\n{UNKNOWN} = 1\n");
    let mut wanted = names(&[single::AT, single::SCHEDULER]);
    wanted.extend(all_targets().map(str::to_owned));
    wanted.insert("set".to_owned());
    assert_eq!(known(&text), wanted);
}

#[test]
fn the_page_of_the_language_names_every_key() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let verbs = VERBS
        .iter()
        .flat_map(|verb| verb.key.iter().chain(verb.keys));
    let changes = keys::TARGETS
        .iter()
        .flat_map(|(key, keys)| std::iter::once(key).chain(*keys));
    let tables = [
        single::TOP,
        single::SETTING,
        single::CURVE,
        keys::MANY,
        keys::TASK,
        single::AT,
        single::SCHEDULER,
    ];
    let tables = tables
        .into_iter()
        .chain([keys::WHEN, keys::PHASE])
        .flatten();
    let objects = Class::ALL.into_iter().flat_map(keys::of_class);
    let all = verbs.chain(changes).chain(tables).chain(objects);
    let names = |key: &&Key| {
        let name = key.name;
        // `at`, `at = "1s"`, { for = { i = 2 } }, `lock`, `unlock` `= "MUTEX"`
        ![
            format!("`{name}`"),
            format!("`{name} ="),
            format!("\n{name} ="),
            format!("{{ {name} ="),
        ]
        .iter()
        .any(|text| page.contains(text))
    };
    let missing: Vec<&str> = all.filter(names).map(|key| key.name).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn the_file_in_the_repository_is_the_schema() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/scenario.schema.json");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(&file, schema()).expect("the file can be written");
    } else {
        assert!(text == schema(), "make it anew: INSTA_UPDATE=always");
    }
}
