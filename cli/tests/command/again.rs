//! Each line that repeats a run does so, whatever the names of files are: a shell runs what was
//! printed.

use std::process::Command;

use serde_json::Value;

use super::support::{Folder, Ran, TRIAL};

const LAW: &str = r#"
title = "Two hogs share a CPU"

[law]
family = "shares"
because = "both weigh the same"
cpus = 1
time = "100ms"

[[law.bound]]
figure = "hog_share_least"
at_least = 60

[task.hog]
count = 2
body = [{ run = "1ms" }]
"#;

/// A name that a shell would take apart, in a folder whose name is no better.
const LAW_FILE: &str = "of mine/it's $HOME; a law.toml";

/// Runs `line` as typed into a shell in `folder`, where `warmq` is on PATH, with more options at
/// its end.
fn typed(folder: &Folder, line: &str, more: &str) -> Ran {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_warmq"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{line} {more}")])
        .current_dir(&folder.0)
        .env("PATH", path)
        .env("NO_COLOR", "1");
    Ran::of(shell.output().unwrap())
}

fn with_law(name: &str) -> Folder {
    let folder = Folder::new(name);
    std::fs::create_dir(folder.0.join("of mine")).unwrap();
    folder.with(LAW_FILE, LAW)
}

/// The first cell of what `--json` printed.
fn cell(ran: &Ran) -> Value {
    let line = ran
        .out
        .lines()
        .next()
        .unwrap_or_else(|| panic!("{}", ran.err));
    serde_json::from_str(line).unwrap()
}

#[test]
fn a_law_in_a_file_of_ones_own_is_judged_again() {
    let folder = with_law("again-law");
    let scheduler = "eevdf-6.18:base_slice=2ms;place_lag=false";
    let mut command = folder.command("laws --json --scheduler");
    command.args([scheduler, LAW_FILE]);
    let first = Ran::of(command.output().unwrap());
    assert_eq!(first.code, 1, "{}", first.err);
    let again = cell(&first)["again"].as_str().unwrap().to_owned();
    let second = typed(&folder, &again, "--json");
    assert_eq!((second.code, cell(&second)), (1, cell(&first)));

    // As people see it: below the matrix, and on the page.
    let shown = typed(&folder, &again, "--out there");
    let line = shown
        .out
        .lines()
        .find_map(|line| line.trim().strip_prefix("again: "));
    assert_eq!(line, Some(again.as_str()));
    let page = unescaped(&folder.text("there/laws.html"));
    assert!(page.contains(&again));
}

#[test]
fn a_scenario_that_is_compared_is_played_again() {
    let folder = with_law("again-compared");
    let scenario = "[task.hog]\nbody = [{ run = \"1ms\" }, { count = \"work\" }]\n";
    let folder = folder.with("of mine/a b.toml", scenario);
    let mut command = folder.command("laws --alike --json --repetitions 1");
    command.arg("of mine/a b.toml");
    let first = Ran::of(command.output().unwrap());
    let again = cell(&first)["again"].as_str().unwrap().to_owned();
    let second = typed(&folder, &again, "--json --repetitions 1");
    assert_eq!((second.code, cell(&second)), (first.code, cell(&first)));
}

#[test]
fn a_run_without_a_measurement_is_run_again_and_leaves_its_trace() {
    // Two tasks that take two mutexes in unlike orders wait for each other.
    let task = |name: &str, first: &str, second: &str| {
        format!("[mutex.{first}]
[task.{name}]
body = [{{ lock = \"{first}\" }}, {{ sleep = \"20ms\" }}, {{ lock = \"{second}\" }}, {{ unlock = \"{second}\" }}, {{ unlock = \"{first}\" }}]
")
    };
    let text = &(task("one", "a", "b") + &task("other", "b", "a"));
    let folder = Folder::new("again-run").with("-a 'lock'.toml", text);
    let mut command = folder.command("run --machine tiny-1cpu --scheduler linux24 --json --");
    let ran = Ran::of(command.args(["-a 'lock'.toml"]).output().unwrap());
    assert_ne!(ran.code, 0, "{}", ran.out);
    let printed = ran.err.lines();
    let again = printed.last().unwrap_or_default().split("again: ").nth(1);
    let again = again.unwrap_or_else(|| panic!("{}", ran.err));
    let second = typed(&folder, again, "");
    assert_eq!(second.code, ran.code, "{again}\n{}", second.err);
    assert!(folder.names().contains(&"failed.perfetto".to_owned()));
}

#[test]
fn a_page_names_the_command_that_makes_it_again() {
    let name = "two  blanks & \"quotes\".toml";
    let folder = Folder::new("again-page").with(name, TRIAL);
    let mut command = folder.command("run --quick --out there --point tasks=2");
    let first = Ran::of(command.arg(name).output().unwrap());
    assert_eq!(first.code, 0, "{}", first.err);
    let page = folder.text("there/report.html");
    let commands: Vec<String> = page
        .split("<code>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</code>"))
        .map(|(code, _)| unescaped(&code.replace("<span>", "").replace("</span>", "")))
        .filter(|code| code.starts_with("warmq run"))
        .collect();
    assert!(!commands.is_empty(), "{page}");
    for line in commands {
        let second = typed(&folder, &line, "");
        // What follows says how long it took, and where the page is.
        let rows = |ran: &Ran| ran.out.split_once("1 run in").unwrap().0.to_owned();
        assert_eq!(second.code, 0, "{line}");
        assert_eq!(rows(&second), rows(&first), "{line}");
    }
}

#[test]
fn what_is_said_of_a_trace_diagnoses_it() {
    let folder =
        Folder::new("again-trace").with("a hog.toml", "[task.hog]\nbody = [{ run = \"1ms\" }]\n");
    let mut command = folder.command("run --machine tiny-1cpu --time 10ms --trace");
    let ran = Ran::of(command.args(["its trace", "a hog.toml"]).output().unwrap());
    let line = ran
        .out
        .lines()
        .find(|line| line.contains("see `"))
        .unwrap_or_else(|| panic!("{}", ran.err));
    let diagnose = line.split('`').nth(1).unwrap();
    assert!(diagnose.starts_with("warmq diagnose"), "{diagnose}");
    typed(&folder, diagnose, "").fine();
}

/// Names that a shell or the command would take for something else.
#[test]
fn files_of_any_name_are_found_again_as_arguments_and_as_options() {
    let machine = include_str!("../../../machines/tiny-1cpu.toml");
    let hog = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";
    let (on, trace) = ("-mine 'ä'.toml", "-a \"trace\" $HOME.warmq");
    let folder = Folder::new("again-names")
        .with("hog.toml", hog)
        .with(on, machine);
    let run = |more: String| {
        let mut command = folder.command("run hog.toml --time 10ms --seeds 1");
        Ran::of(
            command
                .args([format!("--machine={on}"), more])
                .output()
                .unwrap(),
        )
    };
    run("--out=there".to_owned()).fine();
    let page = unescaped(
        &folder
            .text("there/report.html")
            .replace("<span>", "")
            .replace("</span>", ""),
    );
    let again = page
        .split("<code>")
        .find(|code| code.starts_with("warmq run"));
    let again = again.and_then(|code| code.split_once("</code>")).unwrap().0;
    assert!(again.contains("--machine="), "{again}");
    typed(&folder, again, "").fine();

    run(format!("--trace={trace}")).fine();
    let mut command = folder.command("run --");
    let refused = Ran::of(command.arg(trace).output().unwrap()).err;
    let (_, replay) = refused.split_once("play it again: ").unwrap();
    let (replay, diagnose) = replay.split_once("; or look at it: ").unwrap();
    typed(&folder, replay, "").fine();
    typed(&folder, diagnose.trim_end(), "").fine();
    let mut command = folder.command("run --");
    let refused = Ran::of(command.arg(on).output().unwrap()).err;
    let (_, on_it) = refused.split_once("run something on it: ").unwrap();
    let small = "--set rooms=1 --set users=2 --time 1ms --warmup 0ms --seeds 1";
    typed(&folder, on_it.trim_end(), small).fine();
}

fn unescaped(html: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    entities
        .iter()
        .fold(html.to_owned(), |text, (entity, letter)| {
            text.replace(entity, letter)
        })
}
