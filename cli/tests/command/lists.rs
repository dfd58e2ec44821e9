//! Lists of what there is, and descriptions of one of them.

use serde_json::Value;
use warmq_machine::builtin_names;

use super::support::{FAULTS, Folder};

fn run(arguments: &str) -> String {
    let name: String = arguments
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .collect();
    Folder::new(&format!("lists-{name}")).run(arguments).fine()
}

#[test]
fn each_list_names_what_there_is_and_says_what_it_is() {
    insta::assert_snapshot!("list_machines", run("machines"));
    insta::assert_snapshot!("list_schedulers", run("schedulers"));
    insta::assert_snapshot!("list_workloads", run("workloads"));
    insta::assert_snapshot!("list_metrics", run("metrics"));
}

#[test]
fn a_machine_is_described_with_units_and_sources() {
    insta::assert_snapshot!("machine_tiny_2cpu", run("machines tiny-2cpu"));
}

/// Without what a table does to a text: line breaks and columns.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_setting_of_a_scheduler_or_workload_is_shown_with_default_and_range() {
    let schedulers = warmq_sched::SCHEDULERS.iter();
    let schedulers = schedulers.map(|scheduler| {
        (
            format!("schedulers {}", scheduler.name),
            scheduler.settings(),
        )
    });
    let workloads = warmq_play::workloads().iter();
    let workloads =
        workloads.map(|workload| (format!("workloads {}", workload.name), workload.settings()));
    for (command, settings) in schedulers.chain(workloads) {
        let text = words(&run(&command));
        for setting in settings {
            assert!(
                text.contains(&format!("{} = ", setting.name)),
                "{command}: {}",
                setting.name
            );
            assert!(
                text.contains(&setting.kind.allowed()),
                "{command}: {}",
                setting.name
            );
            assert!(
                !setting.what.is_empty(),
                "{command}: {} says nothing",
                setting.name
            );
        }
    }
}

#[test]
fn a_compiled_scheduler_is_described_by_its_file() {
    let said = run(&format!("schedulers {FAULTS}"));
    assert!(said.starts_with("faults: a compiled scheduler"), "{said}");
    assert!(
        said.contains("The lab can run it as on Linux 7.3."),
        "{said}"
    );
    assert!(said.contains("fault = "), "{said}");
    let folder = Folder::new("lists-no-object").with("mine.o", "no object");
    let refused = folder.run("schedulers ./mine.o");
    assert!(!refused.err.is_empty() && refused.code != 0);
    assert!(
        refused.err.contains("there is no compiled BPF program"),
        "{}",
        refused.err
    );
    let missing = folder.run("schedulers ./other.o");
    assert!(
        missing.err.contains("./other.o: cannot read it"),
        "{}",
        missing.err
    );
}

#[test]
fn a_compiled_scheduler_plays_by_its_file() {
    let folder = Folder::new("lists-compiled");
    let played = folder.run(&format!(
        "run hog --world lab --time 20ms --warmup 0ms --scheduler {FAULTS}"
    ));
    assert!(played.fine().contains("hog_share"));
}

#[test]
fn every_machine_is_an_object_of_json_with_units_in_its_keys() {
    let lines = run("machines --json");
    let machines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<&str> = machines
        .iter()
        .map(|machine| machine["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, builtin_names().collect::<Vec<_>>());
    for machine in &machines {
        let name = &machine["name"];
        assert!(machine["clock_hz"].as_f64().unwrap() > 0.0, "{name}");
        assert!(
            machine["memory"]["latency_ns"].as_f64().unwrap() > 0.0,
            "{name}"
        );
        let caches = machine["caches"].as_array().unwrap();
        assert!(
            caches
                .iter()
                .all(|cache| cache["size_bytes"].as_u64().unwrap() > 0),
            "{name}"
        );
        assert!(!machine["cpus"].as_array().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn a_machine_can_be_brought_as_toml_or_as_hwloc_xml() {
    let xml = include_str!("../../../common/machine/tests/hwloc/xeon-2cpu-v2.xml");
    let toml = warmq_machine::builtin("tiny-1cpu").unwrap();
    let folder = Folder::new("lists-brought")
        .with("mine.xml", xml)
        .with("mine.toml", toml);
    for file in ["mine.xml", "mine.toml"] {
        let described = folder.run(&format!("machines {file}")).fine();
        assert!(
            described.contains("1 x L2") || described.contains("2 x L2"),
            "{described}"
        );
    }
}
