//! `warmq diagnose` on traces that `warmq run` wrote, and what `warmq watch` refuses.

use std::fs;
use std::process::{Command, Stdio};

use super::support::{Folder, Ran};

const STARVING: &str = "run receiver --machine tiny-2cpu --scheduler eevdf-6.18 --set preempt=full \
                        --time 1s --trace it.warmq --json";

#[test]
fn a_trace_of_the_lab_is_diagnosed_in_words_as_json_and_on_a_page() {
    let folder = Folder::new("diagnose");
    folder.run(STARVING).fine();
    let text = folder.run("diagnose it.warmq").fine();
    assert!(text.contains("[group-starved]"), "{text}");
    assert!(text.contains("6.13 to 7.0"), "{text}");
    let line = folder.run("diagnose it.warmq --json --out page").fine();
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(read["verdicts"][0]["kind"], "group-starved");
    assert_eq!(read["verdicts"][0]["tasks"][0]["name"], "hog");
    let page = folder.text("page/diagnosis.html");
    assert!(
        page.contains("<svg") && page.contains("hog waits"),
        "{page}"
    );
    assert_eq!(page.matches("<script").count(), 1, "only our own: {page}");
}

#[test]
fn a_part_of_a_trace_can_be_looked_at() {
    let folder = Folder::new("diagnose-part");
    folder.run(STARVING).fine();
    let line = folder.run("diagnose it.warmq --json --from 0.5s --until 600ms");
    let read: serde_json::Value = serde_json::from_str(&line.fine()).unwrap();
    assert_eq!(read["window"]["from_ns"], 500_000_000);
    assert!(read["window"]["to_ns"].as_u64().unwrap() <= 600_000_000);
}

#[test]
fn what_cannot_be_diagnosed_or_watched_is_refused() {
    let folder = Folder::new("diagnose-refused").with("it.warmq", "no trace");
    let commands = [
        "diagnose nothing.warmq",
        "diagnose it.warmq",
        "diagnose it.warmq --from 2s --until 1s",
        "watch --out it.perfetto",
        "watch --only-record",
        "watch --for never",
        "watch --for 0s",
        "watch --for 1s --from 2s",
    ];
    let mut refusals = String::new();
    for command in commands {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        refusals.push_str(&format!("$ warmq {command}\n{}\n", ran.err));
    }
    insta::assert_snapshot!("diagnose_refused", refusals);
}

#[test]
fn a_time_without_records_is_refused_and_a_folder_is_tried_first() {
    let folder = Folder::new("diagnose-nothing").with("file", "no folder");
    folder.run(STARVING).fine();
    let ran = folder.run("diagnose it.warmq --from 10s");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("the trace ends at 1."), "{}", ran.err);
    let ran = folder.run("diagnose it.warmq --out file/page");
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (6, ""),
        "nothing is printed before: {}",
        ran.err
    );
}

/// Where this machine can be recorded, a command's status is the recorder's.
#[test]
fn a_watched_command_gives_its_status() {
    let folder = Folder::new("watch-status");
    for (command, code) in [("false", 1), ("true", 0)] {
        let ran = folder.run(&format!("watch --only-record --out it.warmq -- {command}"));
        assert!(ran.code == code || ran.code == 6, "{command}: {}", ran.err);
    }
    let ran = folder.run("watch --out none/it.warmq -- touch ran");
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(
        !folder.0.join("ran").exists(),
        "the file is tried before the command runs"
    );
}

/// Only root may record, and not everywhere: who may not gets a status of its own.
#[test]
fn this_machine_is_watched_or_says_what_it_lacks() {
    let ran = Folder::new("watch").run("watch --for 200ms --json");
    match ran.code {
        6 => assert!(ran.err.contains("root"), "{}", ran.err),
        code => {
            assert_eq!(code, 0, "{}", ran.err);
            assert!(ran.err.contains("warmq: recorded 0.2"), "{}", ran.err);
            let read: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
            assert!(read["records"].as_u64().unwrap() > 0);
        }
    }
}

/// Waits until the folder has a file, the beginning of a recording.
fn begun(folder: &Folder) -> bool {
    (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !folder.names().is_empty()
    })
}

#[test]
fn a_recording_that_is_interrupted_is_kept_and_can_be_diagnosed() {
    if Folder::new("watch-rights")
        .run("watch --for 10ms --json")
        .code
        == 6
    {
        println!("skipped: this machine cannot be recorded here");
        return;
    }
    for signal in ["INT", "TERM"] {
        let folder = Folder::new(&format!("watch-{signal}"));
        let mut command = folder.command("watch --only-record --for 600s --out it.warmq");
        let watch = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(begun(&folder));
        // The recorder begins after its file.
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        let pid = watch.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let ran = Ran::of(watch.wait_with_output().unwrap());
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert_eq!(folder.names(), ["it.warmq"]);
        folder.run("diagnose it.warmq").fine();
    }
}

/// `warmq watch --recorder bpf` of a warmq that has this program as `warmq-record` beside it, or
/// none.
fn watched_by(name: &str, program: Option<&str>) -> Ran {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new(name);
    let warmq = folder.0.join("warmq");
    fs::hard_link(env!("CARGO_BIN_EXE_warmq"), &warmq).unwrap();
    if let Some(text) = program {
        let path = folder.0.join("warmq-record");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(warmq);
    command
        .args("watch --recorder bpf --for 1ms --only-record --out it.warmq".split(' '))
        .current_dir(&folder.0)
        .env("PATH", "/usr/bin:/bin")
        .env("NO_COLOR", "1");
    let ran = Ran::of(command.output().unwrap());
    assert!(!folder.0.join("it.warmq").exists());
    ran
}

#[test]
fn a_recorder_by_bpf_that_is_not_there_or_does_not_work_is_reported() {
    let programs = [
        ("absent", None),
        (
            "refused",
            Some("echo 'warmq-record: this process may not use BPF; run as root' >&2; exit 6"),
        ),
        ("talkative", Some("echo hello >&2")),
        ("dead", Some("echo 'warmq-record: ready' >&2; kill -9 $$")),
        (
            "failing",
            Some(
                "echo 'warmq-record: ready' >&2; read it; echo 'warmq-record: no room; free some' >&2",
            ),
        ),
        (
            "damaged",
            Some(
                "echo 'warmq-record: ready' >&2; read it; echo x; echo 'warmq-record: stopped: full=0' >&2",
            ),
        ),
    ];
    let mut refusals = String::new();
    for (name, program) in programs {
        let ran = watched_by(&format!("watch-{name}"), program);
        assert_eq!(ran.code, 6, "{name}: {}", ran.err);
        let folder = env!("CARGO_TARGET_TMPDIR");
        refusals.push_str(&format!("{name}: {}", ran.err.replace(folder, "...")));
    }
    insta::assert_snapshot!("watch_by_bpf_refused", refusals);
}
