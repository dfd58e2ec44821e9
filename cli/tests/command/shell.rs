//! The command among others: pipes, interrupts, completions, the manual.

use std::io::Read;
use std::process::Stdio;

use super::support::{Folder, TRIAL};

const COMMANDS: [&str; 10] = [
    "run",
    "reproduce",
    "check",
    "machines",
    "schedulers",
    "workloads",
    "metrics",
    "bench",
    "completions",
    "man",
];

#[test]
fn completions_know_every_command() {
    let folder = Folder::new("shell-completions");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = folder.run(&format!("completions {shell}")).fine();
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = Folder::new("shell-man");
    let page = folder.run("man").fine();
    assert!(
        page.contains(".TH warmq 1") && page.contains("Exit codes"),
        "{page}"
    );
    folder.run("man pages").fine();
    let pages = Folder(folder.0.join("pages")).names();
    for command in COMMANDS {
        assert!(
            pages.contains(&format!("warmq-{command}.1")),
            "{command}: {pages:?}"
        );
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new("shell-pipe").with("trial.toml", TRIAL);
    for arguments in [
        "machines server-24llc --json",
        "run trial.toml --json",
        "--help",
    ] {
        let mut command = folder.command(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let code = child.wait().unwrap().code();
        let mut err = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        assert_eq!(code, Some(0), "{arguments}: {err}");
        assert!(!err.contains("panicked"), "{arguments}: {err}");
    }
}

/// Begins `command` in `folder`, and interrupts it once `begun` says so.
#[cfg(unix)]
fn interrupted(folder: &Folder, command: &str, begun: impl Fn() -> bool) {
    use std::process::Command;

    let mut command = folder.command(command);
    let quiet = command.stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = quiet.spawn().unwrap();
    while !begun() {
        let ended = child.try_wait().unwrap();
        assert_eq!(ended, None, "it ended before it began to write");
        std::thread::yield_now();
    }
    let kill = format!("kill -INT {}", child.id()); // the shell's own: the program is not everywhere
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[cfg(unix)]
#[test]
fn an_interrupted_command_leaves_no_half_of_a_file_and_no_lock() {
    // Longer than anybody waits.
    let text = TRIAL.replace("time = \"500ms\"", "time = \"100000s\"");
    let folder = Folder::new("shell-interrupt").with("trial.toml", &text);
    interrupted(&folder, "run trial.toml --trace it", || {
        folder.names().len() > 1
    });
    assert_eq!(folder.names(), ["trial.toml"]);
    let lock = folder.0.join("page/.warmq.lock");
    interrupted(&folder, "run trial.toml --out page", || lock.exists());
    assert!(lock.parent().unwrap().exists() && !lock.exists());
}
