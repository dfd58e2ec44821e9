//! The scenarios of this repository.

use std::fs;
use std::path::Path;

use warmq_config::{Chosen, Value};
use warmq_scenario::program::{Cpu, Cpus};
use warmq_scenario::{Bound, ObjectKind, Scenario, Site, TaskKindId, WorldKind};
use warmq_units::CpuId;

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
    assert_eq!(examples.len(), 12);
    for example in examples {
        Scenario::read("example.toml", example)
            .unwrap_or_else(|problems| panic!("{problems}\n{example}"));
    }
}

#[test]
fn each_world_says_what_it_does_otherwise() {
    let hog = scenario("hog");
    assert_eq!(hog.fidelity(WorldKind::Lab), []);
    let notes: Vec<String> = WorldKind::ALL
        .iter()
        .flat_map(|world| {
            scenario("simplex")
                .fidelity(*world)
                .into_iter()
                .map(move |note| (world, note))
        })
        .map(|(world, note)| format!("{world:?}, {}: {:?}", note.what, note.fidelity))
        .collect();
    insta::assert_snapshot!(notes.join("\n"));
}

/// The group `name` of a bound scenario, by its number: its weight, and the CPUs of a machine of
/// four that its tasks may use.
fn group(bound: &Bound, name: &str, number: u64) -> (u64, Vec<u16>) {
    let cpu = |id| Cpu {
        id: CpuId(id),
        llc: 0,
        node: 0,
        socket: 0,
        core: id.into(),
    };
    let machine: Cpus = (0..4).map(cpu).collect();
    let mut objects = bound.scenario().objects().iter();
    let object = objects.find(|object| object.name == name).expect(name);
    let ObjectKind::Group { weight, cpus, .. } = &object.kind else {
        panic!("{name} is no cgroup");
    };
    let weight = bound.eval(weight, &[number]).expect("a weight");
    let cpus = match cpus {
        Some(place) => machine.at(bound, place, &[number]).expect("CPUs"),
        None => machine.all(),
    };
    (weight, cpus.iter().map(|cpu| cpu.0).collect())
}

/// The weights of requests: those of KEP-2254, and those of runc from 1.3.2 on
/// (ConvertCPUSharesToCgroupV2Value()): 10^((L^2 + 125 L) / 612 - 7 / 34), rounded up.
#[test]
fn a_pod_of_kubernetes_weighs_what_the_kubelet_gives_it() {
    let kubernetes = scenario("kubernetes");
    for (millicpu, in_proportion, by_powers) in [
        (1, 1, 1),
        (100, 4, 17),
        (250, 10, 35),
        (500, 20, 59),
        (1_000, 39, 100),
        (2_000, 79, 174),
        (64_000, 2_500, 3_023),
        (1_000_000, 10_000, 10_000),
    ] {
        for (newer, expected) in [(false, in_proportion), (true, by_powers)] {
            let values = [
                ("guaranteed_request", Value::Integer(millicpu)),
                ("newer", Value::Bool(newer)),
            ];
            let bound = kubernetes.bind(&chosen(&kubernetes, &values), &Site::default());
            let (weight, _) = group(&bound.expect("it is sound"), "guaranteed", 0);
            assert_eq!(weight, expected, "{millicpu} millicpu, newer {newer}");
        }
    }
}

#[test]
fn exclusive_cpus_of_kubernetes_are_nobody_elses() {
    let kubernetes = scenario("kubernetes");
    for (exclusive, of_pods, others) in [
        (
            0,
            vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3]],
            vec![0, 1, 2, 3],
        ),
        (1, vec![vec![3], vec![2]], vec![0, 1]),
        (2, vec![vec![2, 3]], vec![0, 1]),
    ] {
        let values = [
            ("guaranteed_pods", Value::Integer(of_pods.len() as i64)),
            ("exclusive", Value::Integer(exclusive)),
        ];
        let bound = kubernetes.bind(&chosen(&kubernetes, &values), &Site::default());
        let bound = bound.expect("it is sound");
        let cpus = |name: &str, number| group(&bound, name, number).1;
        for (number, expected) in (0..).zip(of_pods) {
            assert_eq!(cpus("guaranteed_container", number), expected);
        }
        assert_eq!(cpus("burstable_container", 0), others);
        assert_eq!(cpus("besteffort_container", 0), others);
    }
}
