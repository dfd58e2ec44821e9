//! Outputs, and what may be where they go: docs/outputs.md.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use warmq_output::{Access, Output};

use super::support::{Folder, Ran, TRIAL};

/// Writes a trace of some KiB in no time.
const TRACED: &str = "run trial.toml --quick --json --trace it.warmq";

fn scene(name: &str) -> Folder {
    Folder::new(name).with("trial.toml", TRIAL)
}

/// `command`, run by a shell that first does `first`.
fn after(first: &str, command: &Command, folder: &Folder) -> Ran {
    let arguments = command
        .get_args()
        .map(|argument| argument.to_str().unwrap());
    let script = format!("{first} exec \"$@\"");
    let shell = Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_warmq")])
        .args(arguments)
        .current_dir(&folder.0)
        .env("NO_COLOR", "1")
        .output();
    Ran::of(shell.unwrap())
}

#[test]
fn what_a_command_reads_is_not_written_over() {
    let folder = scene("outputs-inputs");
    folder.run(TRACED).fine();
    for (command, file) in [
        ("run trial.toml --quick --trace trial.toml", "trial.toml"),
        ("replay it.warmq --out ./it.warmq", "it.warmq"),
    ] {
        let before = fs::read(folder.0.join(file)).unwrap();
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("write to another file"), "{}", ran.err);
        assert_eq!(fs::read(folder.0.join(file)).unwrap(), before);
    }
}

#[test]
fn a_pipe_and_an_open_descriptor_are_written_into_and_a_link_stays() {
    let folder = scene("outputs-streams");
    folder.run(TRACED).fine();
    let whole = fs::read(folder.0.join("it.warmq")).unwrap();
    let pipe = folder.0.join("pipe.warmq");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    folder.run(&TRACED.replace("it.warmq", "pipe.warmq")).fine();
    assert_eq!(reader.join().unwrap(), whole);
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

    symlink("far.warmq", folder.0.join("link.warmq")).unwrap();
    folder.run(&TRACED.replace("it.warmq", "link.warmq")).fine();
    assert_eq!(fs::read(folder.0.join("far.warmq")).unwrap(), whole);
    assert_eq!(
        fs::read_link(folder.0.join("link.warmq")).unwrap(),
        Path::new("far.warmq")
    );

    fs::write(folder.0.join("log"), "earlier\n").unwrap();
    let command = folder.command(&TRACED.replace("it.warmq", "/dev/stdout"));
    after("exec >> log;", &command, &folder).fine();
    let log = fs::read(folder.0.join("log")).unwrap();
    assert!(
        log.starts_with(b"earlier\n") && log.windows(whole.len()).any(|window| window == whole)
    );
    let before = [
        "far.warmq",
        "it.warmq",
        "link.warmq",
        "log",
        "pipe.warmq",
        "trial.toml",
    ];
    assert_eq!(folder.names(), before);
}

#[test]
fn a_second_writer_learns_who_the_first_is() {
    let folder = scene("outputs-two").with("it.warmq", "earlier");
    let path = folder.0.join("it.warmq");
    let (first, _file) = Output::begin(&path, Access::Usual).unwrap();
    let second = folder.run(TRACED);
    let first_is = format!("cannot write it.warmq: process {} (", std::process::id());
    assert!(
        second.code == 6 && second.err.contains(&first_is),
        "{}",
        second.err
    );
    drop(first);
    assert_eq!(folder.text("it.warmq"), "earlier");

    let taken = warmq_output::Folder::take(&folder.0.join("there")).unwrap();
    let commands = [
        "run trial.toml --quick --out there",
        "laws nice --scheduler linux24 --out there",
        "man there",
    ];
    for command in commands {
        let ran = folder.run(command);
        let said = "cannot write into the folder there: process ";
        assert!(
            ran.code == 6 && ran.err.contains(said),
            "{command}: {}",
            ran.err
        );
    }
    drop(taken);
    assert!(Folder(folder.0.join("there")).names().is_empty());
    folder.run("man there").fine();
    assert!(
        Folder(folder.0.join("there"))
            .names()
            .contains(&"warmq-vm-run.1".to_owned())
    );
}

#[test]
fn a_matrix_is_cut_only_when_that_is_asked_for() {
    let folder = Folder::new("outputs-laws");
    let laws = "laws nice --scheduler linux24 --out there";
    let first = folder.run(laws);
    let lines = folder.text("there/laws.jsonl");
    let again = folder.run(laws);
    assert_eq!(again.code, 2, "{}", again.err);
    assert!(
        again.err.contains("--resume") && again.err.contains("--anew"),
        "{}",
        again.err
    );
    assert_eq!(folder.text("there/laws.jsonl"), lines);
    let anew = folder.run(&format!("{laws} --anew"));
    assert_eq!((anew.code, &anew.out), (first.code, &first.out));
    assert_eq!(
        folder.text("there/laws.jsonl").lines().count(),
        lines.lines().count()
    );
}

#[test]
fn a_disk_that_is_full_leaves_what_was_there() {
    let folder = scene("outputs-full").with("it.warmq", "earlier");
    // A file may have no byte: as on a full disk, but for the error's number.
    let full = after(
        "trap '' XFSZ; ulimit -f 0;",
        &folder.command(TRACED),
        &folder,
    );
    assert!(
        full.code == 6 && full.err.contains("cannot write it.warmq: "),
        "{}",
        full.err
    );
    assert_eq!(
        (folder.text("it.warmq"), folder.names()),
        ("earlier".to_owned(), names(&["it.warmq"]))
    );
    let device = folder.run(&TRACED.replace("it.warmq", "/dev/full"));
    assert!(
        device.code == 6 && device.err.contains("cannot write /dev/full: "),
        "{}",
        device.err
    );
    assert!(
        fs::symlink_metadata("/dev/full")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

fn names(more: &[&str]) -> Vec<String> {
    more.iter()
        .chain(&["trial.toml"])
        .map(|name| (*name).to_owned())
        .collect()
}

/// A run that is writing its trace, and goes on for long.
fn begun(folder: &Folder) -> Child {
    let mut command = folder.command("run long.toml --trace it.warmq");
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !folder
        .names()
        .iter()
        .any(|name| name.ends_with(".unfinished"))
    {
        assert_eq!(child.try_wait().unwrap(), None, "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn a_run_that_is_ended_leaves_what_was_there() {
    let long = TRIAL.replace("time = \"500ms\"", "time = \"100000s\"");
    let folder = scene("outputs-killed")
        .with("it.warmq", "earlier")
        .with("long.toml", &long);
    let before = names(&["it.warmq", "long.toml"]);
    let mut interrupted = begun(&folder);
    let pid = interrupted.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(interrupted.wait().unwrap().code(), Some(130));
    assert_eq!(
        (folder.text("it.warmq"), folder.names()),
        ("earlier".to_owned(), before.clone())
    );

    let mut killed = begun(&folder);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(folder.text("it.warmq"), "earlier");
    let left = folder.names();
    assert_eq!(left.len(), 5, "its lock and its half: {left:?}");
    let half = left
        .iter()
        .find(|name| name.ends_with(".unfinished"))
        .unwrap();
    let mode = fs::metadata(folder.0.join(half))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    // The next one removes what a dead one left.
    folder.run(TRACED).fine();
    assert_eq!(folder.names(), before);
}

#[test]
fn what_is_planted_under_the_old_preliminary_name_is_left_alone() {
    let folder = scene("outputs-planted").with("victim", "precious");
    for name in [
        "it.warmq.unfinished",
        "report.html.unfinished",
        "rows.csv.unfinished",
    ] {
        symlink("victim", folder.0.join(name)).unwrap();
    }
    folder.run(TRACED).fine();
    folder.run("run trial.toml --quick --json --out .").fine();
    assert_eq!(folder.text("victim"), "precious");
}

#[test]
fn a_trace_is_not_written_as_rows_of_json() {
    let folder = Folder::new("outputs-ndjson").with("trial.toml", TRIAL);
    let ran = folder.run("run trial.toml --trace x.ndjson");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("warmq convert"), "{}", ran.err);
    assert_eq!(folder.names(), ["trial.toml"]);
}
