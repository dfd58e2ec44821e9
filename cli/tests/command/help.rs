//! What people read first.

use super::support::Folder;

/// The help of a command, as it stands in a snapshot of that name.
fn shown(name: &str, arguments: &str) {
    let help = Folder::new(&format!("help-{name}")).run(arguments).fine();
    insta::assert_snapshot!(format!("help_{name}"), help);
}

#[test]
fn the_help_explains_commands_with_examples_and_exit_codes() {
    shown("warmq", "--help");
}

#[test]
fn the_short_help_fits_a_screen() {
    shown("warmq_short", "-h");
}

#[test]
fn the_help_of_each_command_explains_its_options() {
    shown("run", "run --help");
    shown("plan", "plan --help");
    shown("reproduce", "reproduce --help");
    shown("compare", "compare --help");
    shown("diagnose", "diagnose --help");
    shown("replay", "replay --help");
    shown("watch", "watch --help");
    shown("race", "race --help");
    shown("judge", "judge --help");
    shown("bench_record", "bench record --help");
    shown("check", "check --help");
    shown("machines", "machines --help");
    shown("conflicts", "conflicts --help");
    shown("calibrate", "calibrate --help");
    shown("bench_walk", "bench walk --help");
    shown("bench_fibers", "bench fibers --help");
    shown("vm_run", "vm run --help");
    shown("vm_fetch", "vm fetch --help");
}

#[test]
fn without_arguments_the_help_is_shown_and_the_exit_code_is_2() {
    let ran = Folder::new("help-nothing").run("");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("Usage: warmq"));
}

#[test]
fn the_version_is_that_of_the_package() {
    let version = Folder::new("version").run("--version").fine();
    assert_eq!(version, format!("warmq {}\n", env!("CARGO_PKG_VERSION")));
}
