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
    let remarks: Vec<String> = scenario
        .remarks()
        .iter()
        .map(|remark| remark.to_string())
        .collect();
    remarks.join("\n")
}

#[test]
fn the_scripts_here_use_every_event() {
    let all: Vec<String> = SCRIPTS.iter().map(|name| script(name)).collect();
    let all = all.concat();
    for (name, _) in VERBS {
        let first = verb(name).map(|(first, _)| *first);
        assert_eq!(first, Some(*name), "another verb hides `{name}`");
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

/// The body of the task of a script, and its other keys but the first two.
fn played(inside: &str) -> String {
    let text = format!("{{ \"tasks\" : {{ \"t\" : {{ {inside} }} }} }}");
    Scenario::read_rt_app("s.json", &text).unwrap_or_else(|problems| panic!("{problems}"));
    let toml = toml(&translated(&text));
    let (_, keys) = toml.split_once("process = \"rt-app\"\n").expect("a task");
    keys.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// rt-app checks no number: a negative time or count is one without a sign there, which lasts for
/// ever, but for `runtime`, which compares with the sign.
#[test]
fn numbers_below_zero_are_what_they_are_in_rt_app() {
    let endless = |step: &str| {
        format!(
            "body = [{{ repeat = {}, body = [{{ {step} }}] }}]",
            i64::MAX
        )
    };
    let for_ever = "2147483647us";
    let run = endless(&format!("run = \"{for_ever}\""));
    let sleep = endless(&format!("sleep = \"{for_ever}\""));
    assert_eq!(played("\"run\" : -1"), run);
    assert_eq!(played("\"run\" : -7"), run);
    assert_eq!(played("\"sleep\" : -1"), sleep);
    assert_eq!(
        played("\"timer\" : { \"ref\" : \"t\", \"period\" : -1 }"),
        sleep
    );
    assert_eq!(played("\"runtime\" : -1"), "body = [{ run = \"32us\" }]");
    assert!(played("\"mem\" : -1").contains(&i64::MAX.to_string()));
    assert!(played("\"iorun\" : -1").contains(&i64::MAX.to_string()));
    let late = played("\"delay\" : -1, \"run\" : 5");
    assert!(late.starts_with(&sleep[..sleep.len() - 1]), "{late}");
    let once = "\"run\" : 5";
    for loops in ["-1", "-2", "0"] {
        let phase = played(&format!(
            "\"phases\" : {{ \"p\" : {{ \"loop\" : {loops}, {once} }} }}"
        ));
        assert_eq!(phase, endless("run = \"5us\""), "{loops}");
    }
    assert_eq!(
        played(&format!("\"loop\" : -2, {once}")),
        "body = [{ run = \"5us\" }]"
    );
    assert_eq!(
        played(&format!("\"loop\" : 0, {once}")),
        "times = 0 body = [{ run = \"5us\" }]"
    );
}

/// As rt-app has them: the period is the runtime where there is none, and the deadline the period.
#[test]
fn deadlines_have_the_times_that_rt_app_gives_them() {
    let policy = |keys: &str| {
        let played = played(&format!(
            "\"policy\" : \"SCHED_DEADLINE\", {keys}, \"run\" : 5"
        ));
        let policy = played
            .split_once(" body")
            .map(|(policy, _)| policy.to_owned());
        policy.unwrap_or_default()
    };
    let of = |times: &str| format!("policy = \"deadline {times}\"");
    assert_eq!(policy("\"dl-runtime\" : 900"), of("900us 900us 900us"));
    assert_eq!(
        policy("\"dl-runtime\" : 900, \"dl-period\" : 5000"),
        of("900us 5000us 5000us")
    );
    let older = policy("\"dl-runtime\" : 900, \"period\" : 5000, \"deadline\" : 2000");
    assert_eq!(older, of("900us 2000us 5000us"));
    assert_eq!(
        policy("\"dl-period\" : 5000"),
        "",
        "a kernel refuses a runtime of 0"
    );
}

#[test]
fn a_deadline_is_read() {
    let read = |policy: &str| {
        let text = format!("[task.t]\npolicy = \"{policy}\"\nbody = [{{ run = \"1ms\" }}]");
        Scenario::read("s.toml", &text)
    };
    let scenario = read("deadline 1ms 2ms 5ms").unwrap_or_else(|problems| panic!("{problems}"));
    let crate::Policy::Deadline(times) = &scenario.tasks()[0].policy else {
        panic!("{:?}", scenario.tasks()[0].policy);
    };
    let all = [times.runtime, times.deadline, times.period].map(warmq_units::Duration::as_ns);
    assert_eq!(all, [1_000_000, 2_000_000, 5_000_000]);
    for wrong in [
        "deadline 1ms",
        "deadline 5ms 1ms",
        "deadline 1us 1ms",
        "deadline 1ms 5ms 2ms",
        "deadline 50us 99us",
        "deadline 1ms 5s",
        "deadline",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_duration_of_zero_or_less_is_no_end() {
    let ends = |duration: i64| {
        let text = format!(
            "{{ \"global\" : {{ \"duration\" : {duration} }}, \"tasks\" : {{ \"t\" : {{ \"run\" : 5 }} }} }}"
        );
        toml(&translated(&text)).contains("end =")
    };
    assert_eq!([-5, -1, 0, 1].map(ends), [false, false, false, true]);
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
