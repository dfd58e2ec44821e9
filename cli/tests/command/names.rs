//! Names that other people chose: none of them reaches a terminal as it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::ffi::OsStrExt;

use warmq_trace::file::Writer;
use warmq_trace::{Comm, Header, Observer, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::support::{Folder, Ran};

/// Clears the screen, and fakes a line.
const NASTY: &str = "\u{1b}[2J\r\nwarmq: ok";
/// As it is shown.
const SHOWN: &str = r"\u001b[2J\r\nwarmq: ok";

/// Nothing of it directs a terminal, and none of its lines is one that a name made.
fn is_clean(what: &str, text: &str) {
    let odd = text
        .chars()
        .find(|letter| *letter != '\n' && !warmq_units::is_printable(*letter));
    assert_eq!(odd, None, "{what}: {text:?}");
    let faked = text.lines().any(|line| line.starts_with("warmq: ok"));
    assert!(!faked, "{what}: {text}");
}

fn clean(what: &str, ran: Ran) -> Ran {
    is_clean(what, &ran.out);
    is_clean(what, &ran.err);
    ran
}

/// One nasty task keeps the CPU for 900 ms, for which another one waits.
fn recording(folder: &Folder) {
    let header = Header {
        world: "host".to_owned(),
        machine: "evil\u{1b}]0;title\u{7}".to_owned(),
        kernel: "6.18\u{202e}".to_owned(),
        ..Header::default()
    };
    let file = File::create(folder.0.join("it.warmq")).unwrap();
    let mut writer = Writer::new(BufWriter::new(file), &header);
    let ms = |ms| Instant::START + Duration::from_ms(ms);
    let comm = Comm::new(NASTY);
    for child in [TaskId(1), TaskId(2)] {
        let parent = None;
        writer.see(
            ms(0),
            &Record::Fork {
                parent,
                child,
                comm,
            },
        );
        let (task, tid) = (child, child.0 + 100);
        writer.see(
            ms(0),
            &Record::Ids {
                task,
                tid,
                tgid: tid,
            },
        );
        let (group, parent, weight, name) = (child.0, 0, 100, comm);
        let what = Record::Cgroup {
            group,
            parent,
            weight,
            name,
        };
        writer.see(ms(0), &what);
        writer.see(ms(0), &Record::Group { task, group });
    }
    let cpu = CpuId(0);
    let switch = |prev, prev_runnable, next| Record::Switch {
        cpu,
        prev,
        prev_runnable,
        next,
    };
    writer.see(ms(1), &switch(None, false, Some(TaskId(1))));
    let woken = Record::Wakeup {
        waker: cpu,
        task: TaskId(2),
        target: cpu,
    };
    writer.see(ms(2), &woken);
    writer.see(ms(902), &switch(Some(TaskId(1)), true, Some(TaskId(2))));
    writer.see(ms(903), &switch(Some(TaskId(2)), false, Some(TaskId(1))));
    writer.see(ms(999), &switch(Some(TaskId(1)), false, None));
    writer.finish().unwrap();
}

#[test]
fn a_recording_may_name_its_tasks_and_its_machine_as_it_likes() {
    let folder = Folder::new("names-recording");
    recording(&folder);
    let commands = [
        "diagnose it.warmq --out page",
        "diagnose it.warmq --json",
        "replay it.warmq --out it.toml",
        "replay it.warmq --json",
    ];
    for command in commands {
        let ran = clean(command, folder.run(command));
        assert!(ran.code == 0, "{command}: {}", ran.err);
    }
    clean("a comparison", folder.run("compare it.warmq it.warmq"));
    let printed = folder.run("diagnose it.warmq").fine();
    assert!(
        printed.contains(SHOWN) && printed.contains(r"evil\u001b]0;title\u0007, 6.18\u202e"),
        "{printed}"
    );
    is_clean("the page", &folder.text("page/diagnosis.html"));
    is_clean("its data", &folder.text("page/diagnosis.json"));
    is_clean("the scenario", &folder.text("it.toml"));
}

#[test]
fn a_scenario_may_have_any_title_and_any_mistake() {
    let escaped = r"\u001b[2J\r\nwarmq: ok";
    let fine = format!("title = \"{escaped}\"\n[task.hog]\nbody = [{{ run = \"1ms\" }}]\n");
    let wrong =
        format!("{fine}\"{escaped}\" = \"\u{202e}{escaped}\"\n# \u{202e}\u{9b}\n[\u{9b}]\n");
    let typo = format!("{fine}\"{escaped}\" = \"\u{202e}\"\n");
    let folder = Folder::new("names-scenario")
        .with("fine.toml", &fine)
        .with("typo.toml", &typo)
        .with("wrong.toml", &wrong);
    let run = "run fine.toml --machine tiny-1cpu --time 10ms --warmup 0ms";
    for command in [
        "check fine.toml",
        run,
        &format!("{run} --json"),
        &format!("{run} --out page"),
    ] {
        let ran = clean(command, folder.run(command));
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
    }
    let printed = folder.run(run).fine();
    assert!(printed.contains(SHOWN), "{printed}");
    is_clean("the page", &folder.text("page/report.html"));
    is_clean("the rows", &folder.text("page/rows.csv"));
    for command in [
        "check typo.toml",
        "run typo.toml",
        "check wrong.toml",
        "run wrong.toml",
    ] {
        assert_eq!(clean(command, folder.run(command)).code, 2, "{command}");
        let json = folder.command(command).env("WARMQ_ERRORS", "json").output();
        let json = clean(command, Ran::of(json.unwrap()));
        let read: serde_json::Value = serde_json::from_str(&json.err).unwrap();
        assert_eq!(read["code"], 2, "{}", json.err);
    }
}

#[test]
fn files_and_options_may_be_called_anything() {
    let folder = Folder::new("names-files");
    let name = OsStr::from_bytes(b"\x1b[2J\r\nwarmq: ok \xff.warmq");
    let missing = Ran::of(folder.command("diagnose").arg(name).output().unwrap());
    let missing = clean("a missing file", missing);
    assert!(
        missing.code == 2 && missing.err.contains(&format!(r"{SHOWN} \xff.warmq: ")),
        "{}",
        missing.err
    );
    fs::write(folder.0.join(name), "no trace").unwrap();
    for command in [
        "diagnose", "replay", "run", "check", "laws", "--for", "metrics",
    ] {
        let ran = Ran::of(folder.command(command).arg(name).output().unwrap());
        let ran = clean(command, ran);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
    }
}
