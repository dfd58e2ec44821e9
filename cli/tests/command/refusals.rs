//! Bad input: each kind is refused with its place, a fix, and an exit code.

use super::support::{Folder, TRIAL};

/// What was typed, the exit code, and what was said.
fn refused(folder: &Folder, arguments: &str) -> String {
    let ran = folder.run(arguments);
    assert_eq!(ran.out, "", "{arguments}: a refusal is no result");
    format!(
        "$ warmq {arguments}\n(exit code {})\n{}\n",
        ran.code,
        ran.err.trim_end()
    )
}

fn all(folder: &Folder, commands: &[&str]) -> String {
    commands
        .iter()
        .map(|arguments| refused(folder, arguments))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_mistake_in_an_experiment_is_shown_in_its_text_with_the_fix() {
    let folder = Folder::new("refusals-experiment")
        .with(
            "key.toml",
            &TRIAL.replace("[sweep]\ntasks", "[sweep]\ntaks"),
        )
        .with("machine.toml", &TRIAL.replace("tiny-1cpu", "tiny-9cpu"))
        .with("scheduler.toml", &TRIAL.replace("linux24", "linux23"))
        .with("workload.toml", &TRIAL.replace("spin", "spun"))
        .with("type.toml", &TRIAL.replace("[2, 4]", "[2, \"four\"]"))
        .with("bounds.toml", &TRIAL.replace("[2, 4]", "[2, -4]"))
        .with(
            "metric.toml",
            &TRIAL.replace("\"walk_length\"]", "\"walk_lenght\"]"),
        )
        .with("text.toml", "title = \n")
        .with(
            "both.toml",
            &TRIAL.replace("title", "titel").replace("seeds", "sedes"),
        );
    let files = [
        "key",
        "machine",
        "scheduler",
        "workload",
        "type",
        "bounds",
        "metric",
        "text",
    ];
    let checks = files.map(|file| format!("check {file}.toml"));
    let mut commands: Vec<&str> = checks.iter().map(String::as_str).collect();
    commands.extend(["check both.toml key.toml", "run key.toml --json"]);
    insta::assert_snapshot!("refusals_experiment", all(&folder, &commands));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let folder = Folder::new("refusals-names").with("trial.toml", TRIAL);
    let commands = [
        "check nothing.toml",
        "run nothing.toml",
        "run tabel1-chat",
        "run fork-storm",
        "run small-4llc",
        "plan oracle-gap",
        "run oracle-gap --machine small-4llc",
        "run oracle-gap --chart 1ms",
        "machines nothing",
        "machines nothing.toml",
        "schedulers nothing",
        "workloads nothing",
        "reproduce nothing",
        "run trial.toml --machine nothing",
        "run trial.toml trial.toml",
        "run trial.toml --trace it --point colors=1",
        "run trial.toml --trace it --point tasks=3",
        "run trial.toml --point tasks=3",
        "run trial.toml table2-miss-ratio --point tasks=2",
        "run trial.toml table2-miss-ratio --trace it",
        "run trial.toml --set nothing=1",
        "run trial.toml --set burst=never",
        "run trial.toml --set tasks=3",
    ];
    insta::assert_snapshot!("refusals_names", all(&folder, &commands));
    assert_eq!(folder.names(), ["trial.toml"], "a refusal leaves no file");
}

#[test]
fn an_option_that_cannot_be_meant_is_refused() {
    let folder = Folder::new("refusals-options").with("trial.toml", TRIAL);
    let commands = [
        "run",
        "run trial.toml --jobs 0",
        "run trial.toml --jobs many",
        "run trial.toml --seeds none",
        "run trial.toml --seeds 0",
        "run trial.toml --seeds 3,3",
        "run trial.toml --sets 3",
        "run trial.toml --set colors",
        "run trial.toml --point tasks=2 --only 0",
        "run trial.toml --trace it --out there",
        "reproduce --quick --full",
        "bench",
        "bench walk --block-size big",
        "bench walk --min-time 4",
        "vm",
        "vm run",
        "vm run --cpus 8 --llcs 3 -- true",
        "vm run --cpus 0 -- true",
        "vm run --instructions=3 -- true",
        "vm run --memory 10 -- true",
        "vm run --timeout 0 -- true",
        "vm run --file nothing:/x -- true",
        "vm run --env NO_SUCH_VARIABLE -- true",
        "vm run --config x -- true",
        "vm run --kernel x --release 6.18 -- true",
        "laws nice --scheduler broken:fault",
        "laws nice --scheduler broken:faul=lifo",
        "laws nice --scheduler broken:fault=fifo",
        "completions dos",
        "measure",
    ];
    insta::assert_snapshot!("refusals_options", all(&folder, &commands));
}

#[test]
fn a_nonsensical_machine_is_shown_in_its_text_with_the_fix() {
    let toml = warmq_machine::builtin("tiny-1cpu").unwrap();
    let folder = Folder::new("refusals-machine")
        .with("ways.toml", &toml.replacen("ways = ", "ways = 3 # ", 1))
        .with("key.toml", &toml.replacen("clock = ", "clok = ", 1))
        .with("text.toml", "name = ")
        .with("not.xml", "<topology version=\"2.0\"><object/></topology>")
        .with("broken.xml", "<topology>")
        .with("trial.toml", TRIAL);
    let commands = [
        "machines ways.toml",
        "machines key.toml",
        "machines text.toml",
        "machines not.xml",
        "machines broken.xml",
        "run trial.toml --machine ways.toml",
    ];
    insta::assert_snapshot!("refusals_machine", all(&folder, &commands));
}

#[test]
fn what_has_no_conflicts_to_be_found_is_refused_with_a_fix() {
    let folder = Folder::new("refusals-conflicts").with("words.txt", "1000\nmain\n");
    let commands = [
        "conflicts 4194305",
        "conflicts --blocks 0x1000,0,8",
        "conflicts --blocks 0x1000,4KB,0",
        "conflicts --blocks 0x1000,4KB",
        "conflicts --symbol slots,4KB",
        "conflicts --symbol slots,0",
        "conflicts --samples words.txt",
        "conflicts --samples missing.txt",
        "conflicts --samples /dev/zero",
        "conflicts --after 10s -- true",
        "conflicts -- no-such-program",
        "conflicts --after 1s 1",
        "conflicts --json",
    ];
    insta::assert_snapshot!("refusals_conflicts", all(&folder, &commands));
}
