//! Scripts that use every construct, and the scenarios that they become.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use warmq_config::{Document, Entry, Node, NodeKind};

use super::events::{VERBS, verb};
use super::*;

const SCRIPTS: [&str; 5] = ["locks", "time", "scheduling", "memory", "forks"];

fn script(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rt_app");
    fs::read_to_string(folder.join(format!("{name}.json"))).expect("a script")
}

/// A value as TOML.
fn value(node: &Node) -> String {
    let listed = |values: Vec<String>| values.join(", ");
    match &node.kind {
        NodeKind::Table(entries) => {
            let pair = |entry: &Entry| format!("{} = {}", entry.key, value(&entry.node));
            format!("{{ {} }}", listed(entries.iter().map(pair).collect()))
        }
        NodeKind::List(nodes) => format!("[{}]", listed(nodes.iter().map(value).collect())),
        _ => node.describe(),
    }
}

/// A document as TOML, with a line for each step.
fn toml(root: &Node) -> String {
    let mut text = String::new();
    for entry in entries(root) {
        let NodeKind::Table(tables) = &entry.node.kind else {
            writeln!(text, "{} = {}", entry.key, value(&entry.node)).expect("a string grows");
            continue;
        };
        for table in tables {
            writeln!(text, "\n[{}.{}]", entry.key, table.key).expect("a string grows");
            for entry in entries(&table.node) {
                let value = value(&entry.node).replace("}, {", "},\n        {");
                writeln!(text, "{} = {value}", entry.key).expect("a string grows");
            }
        }
    }
    text
}

fn entries(node: &Node) -> &[Entry] {
    match &node.kind {
        NodeKind::Table(entries) => entries,
        _ => panic!("{}", node.describe()),
    }
}

fn translated(text: &str) -> Node {
    let root = json::parse("s.json", text).unwrap_or_else(|problems| panic!("{problems}"));
    let place = root.place.clone();
    let document = Document::of_tree("s.json", text, root);
    let read = document.read(|fields| translate("s.json", &place, fields, &Remarks::default()));
    read.unwrap_or_else(|problems| panic!("{problems}"))
}

fn remarks(scenario: &Scenario) -> String {
    let remarks: Vec<String> = scenario.remarks().iter().map(|it| it.to_string()).collect();
    remarks.join("\n")
}

#[test]
fn the_scripts_here_use_every_event() {
    let all: Vec<String> = SCRIPTS.iter().map(|name| script(name)).collect();
    let all = all.concat();
    for (name, verb_of_name) in VERBS {
        assert_eq!(
            verb(name),
            Some(*verb_of_name),
            "another verb hides `{name}`"
        );
        assert!(all.contains(&format!("\"{name}")), "{name}");
    }
}

#[test]
fn scripts_become_scenarios() {
    for name in SCRIPTS {
        let text = script(name);
        let scenario = Scenario::read_rt_app("s.json", &text);
        let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
        let toml = toml(&translated(&text));
        insta::assert_snapshot!(name, format!("{toml}\n# Remarks\n{}", remarks(&scenario)));
        // What is shown is what is played.
        let again = Scenario::read("s.toml", &toml).unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(scenario.tasks().len(), again.tasks().len());
        assert_eq!(scenario.objects().len(), again.objects().len());
    }
}

#[test]
fn a_file_is_read_by_what_is_in_it() {
    let json = script("forks");
    assert!(Scenario::read_any("forks.json", &json).is_ok());
    assert!(Scenario::read_any("forks", &format!("\n// first\n{json}")).is_ok());
    assert!(Scenario::read_any("hog.toml", "[task.hog]\nbody = [{ run = \"1ms\" }]").is_ok());
    assert!(Scenario::read_any("hog.json", "[task.hog]\nbody = [{ run = \"1ms\" }]").is_err());
}

#[test]
fn what_rt_app_cannot_do_is_refused_at_its_place() {
    let task = |inside: &str| format!("{{\n\"tasks\" : {{ \"t\" : {{ {inside} }} }} }}");
    let texts = [
        "[]".to_owned(),
        "{ \"tasks\" : [] }".to_owned(),
        "{ \"global\" : { \"default_policy\" : \"SCHED_OTHERS\" }, \"tasks\" : {} }".to_owned(),
        "{ \"tasks\" : {} }".to_owned(),
        task("\"loop\" : 1"),
        task("\"phases\" : { \"p\" : { \"loop\" : 2 } }"),
        task("\"run\" : -1"),
        task("\"run\" : 1.5"),
        task("\"run\" : \"1ms\""),
        task("\"run\" : 99999999999"),
        task("\"run\" : 1, \"cpus\" : []"),
        task("\"run\" : 1, \"cpus\" : [70000]"),
        task("\"run\" : 1, \"taskgroup\" : \"tg\""),
        task("\"run\" : 1, \"taskgroup\" : \"/tg\", \"policy\" : \"SCHED_FIFO\""),
        task("\"run\" : 1, \"policy\" : \"SCHED_FIFO\", \"priority\" : 0"),
        task("\"run\" : 1, \"lock\" : 5"),
        task("\"run\" : 1, \"unlock\" : \"m\""),
        task("\"run\" : 1, \"wait\" : { \"ref\" : \"c\", \"mutex\" : \"m\" }"),
        task("\"run\" : 1, \"suspend\" : \"t\""),
        task("\"run\" : 1, \"sem_wait\" : \"s\""),
        task("\"run\" : 1, \"fork\" : \"tt\""),
        task("\"run\" : 1, \"fork\" : \"t\""),
        task("\"resume\" : \"t\""),
        task("\"run\" : 1, \"barrier\" : \"b\", \"barrier2\" : \"b\""),
        task("\"timer\" : 5"),
        task("\"timer\" : { \"ref\" : 5 }"),
        task("\"memrun\" : { \"type\" : \"reed\", \"size\" : 5, \"count\" : 5 }"),
        task("\"memrun\" : { \"type\" : \"read\" }"),
        task("\"memrun\" : { \"type\" : \"chase\", \"size\" : 100, \"count\" : 5 }"),
        task(
            "\"memrun\" : { \"type\" : \"read\", \"size\" : 100, \"count\" : 5, \"ref\" : \"r\" },
             \"memrun2\" : { \"type\" : \"read\", \"size\" : 200, \"count\" : 5, \"ref\" : \"r\" }",
        ),
    ];
    let mut told = String::new();
    for text in &texts {
        let problems = match Scenario::read_rt_app("s.json", text) {
            Ok(_) => panic!("this is accepted:\n{text}"),
            Err(problems) => problems,
        };
        let shown = text.replace('\n', " ");
        writeln!(told, "{shown}\n=> {problems}").expect("a string grows");
    }
    insta::assert_snapshot!(told);
}
