//! Recordings of other programs, as their tools wrote them.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use flate2::read::GzDecoder;
use std::io::Read;

use super::support::Folder;

/// Where they are.
fn recorded(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../common/recordings/tests/recorded").join(name);
    path.to_str().expect("it is text").to_owned()
}

/// The bytes of one.
fn bytes(name: &str) -> Vec<u8> {
    let file = fs::File::open(recorded(name)).expect("it is there");
    let mut bytes = Vec::new();
    GzDecoder::new(file)
        .read_to_end(&mut bytes)
        .expect("it is whole");
    bytes
}

/// Of one, whatever its name.
fn folder(name: &str, recording: &str) -> Folder {
    let folder = Folder::new(name);
    fs::write(folder.0.join("it"), bytes(recording)).expect("it is written");
    folder
}

#[test]
fn what_a_recording_has_and_lacks_stands_before_what_is_said_of_it() {
    let mut text = String::new();
    for name in [
        "perf.data.gz",
        "trace-v7.dat.gz",
        "ftrace.txt.gz",
        "script.txt.gz",
    ] {
        let folder = folder("recordings", name);
        let out = folder.run("diagnose it").fine();
        let end = out.find("Who was runnable").unwrap_or(out.len());
        let note = out
            .lines()
            .find(|line| line.starts_with("note: The recording has no"));
        text += &format!("# {name}\n{}{}\n\n", &out[..end], note.unwrap_or_default());
    }
    insta::assert_snapshot!("recordings_diagnosed", text);
}

#[test]
fn compressed_ones_and_standard_input_are_read_like_files() {
    let folder = folder("recordings-stdin", "trace-v6.dat.gz");
    let of_file = folder.run("diagnose it --json").fine();
    let of_gzip = folder.run(&format!("diagnose {} --json", recorded("trace-v6.dat.gz")));
    assert_eq!(of_gzip.fine(), of_file);
    let input = Stdio::from(fs::File::open(folder.0.join("it")).unwrap());
    let mut command = folder.command("diagnose - --json");
    let out = command.stdin(input).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), of_file.trim());
}

#[test]
fn check_reads_standard_input_and_no_folder_is_a_recording() {
    let folder = folder("recordings-check", "trace-v7.dat.gz");
    let input = Stdio::from(fs::File::open(folder.0.join("it")).unwrap());
    let mut command = folder.command("check -");
    let out = command.stdin(input).output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && text.starts_with("-: fine"),
        "{text}"
    );
    fs::create_dir(folder.0.join("threads")).expect("it is made");
    for (command, wanted) in [
        (
            "diagnose threads",
            "this is a folder; give a recording in a file",
        ),
        (
            "replay threads",
            "this is a folder; give a recording in a file",
        ),
    ] {
        let ran = folder.run(command);
        assert!(ran.code == 2 && ran.err.contains(wanted), "{}", ran.err);
    }
    fs::write(folder.0.join("threads/data"), "").expect("it is written");
    let ran = folder.run("diagnose threads");
    assert!(ran.err.contains("record without --threads"), "{}", ran.err);
}

#[test]
fn one_is_converted_into_every_form_and_judged_the_same() {
    let folder = folder("recordings-convert", "perf.data.gz");
    for form in ["it.warmq", "it.pftrace", "it.ndjson"] {
        let out = folder.run(&format!("convert it {form}")).fine();
        let whole = out.contains("everything that was read is in it");
        assert_eq!(whole, form == "it.warmq", "{out}");
    }
    let json = |file: &str| -> serde_json::Value {
        let line = folder.run(&format!("diagnose {file} --json")).fine();
        serde_json::from_str(&line).expect("it is JSON")
    };
    let (original, own, perfetto) = (json("it"), json("it.warmq"), json("it.pftrace"));
    assert_eq!(
        original["not_given"], own["not_given"],
        "what it lacks is kept"
    );
    assert_eq!(original["activity"], own["activity"]);
    assert_eq!(
        original["recording"]["format"],
        "perf.data, which `perf record` writes"
    );
    assert_eq!(own["recording"], serde_json::Value::Null);
    let switches = |json: &serde_json::Value| json["recording"]["events"]["sched_switch"].clone();
    assert_eq!(
        switches(&perfetto).as_u64().map(|all| all >= 90),
        Some(true)
    );
    let rows = folder.text("it.ndjson");
    let rows: Vec<serde_json::Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!(rows[0]["t"], "header");
    let switched: Vec<_> = rows.iter().filter(|row| row["t"] == "switch").collect();
    assert!(switched.len() >= 90);
    let times: Vec<f64> = rows[1..]
        .iter()
        .map(|row| row["ts"].as_f64().unwrap())
        .collect();
    assert!(times.is_sorted());
    let softirq = rows
        .iter()
        .find(|row| row["t"] == "softirq" && row["dur"].is_number());
    assert!(softirq.is_some());
}

#[test]
fn one_is_played_again_and_compared() {
    let folder = folder("recordings-replay", "trace-v6.dat.gz");
    let out = folder.run("replay it --machine tiny-2cpu").fine();
    assert!(
        out.contains("6.18.44"),
        "the kernel is that of the recording: {out}"
    );
    folder.run("compare it it --strict");
    let checked = folder.run("check it").fine();
    assert!(checked.contains("fine; a recording of"), "{checked}");
}

#[test]
fn one_that_is_cut_is_diagnosed_up_to_there_and_refused_at_the_end() {
    let folder = folder("recordings-cut", "perf-pipe.data.gz");
    let whole = bytes("perf-pipe.data.gz");
    fs::write(folder.0.join("cut"), &whole[..whole.len() - 5_000]).unwrap();
    for command in ["diagnose cut", "convert cut it.warmq", "check cut"] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{command}");
        assert!(ran.err.contains("cut: byte 18"), "{command}: {}", ran.err);
        assert!(ran.err.contains("was used"), "{command}: {}", ran.err);
    }
    assert!(
        folder
            .run("diagnose cut --out page")
            .out
            .contains("damaged")
    );
    let page = folder.text("page/diagnosis.html");
    assert!(
        page.contains("sched_switch") && page.contains("damaged"),
        "{page}"
    );
    folder.run("diagnose it.warmq").fine();
}

/// What stands before the damage is used, whatever it was packed into.
#[test]
fn a_packed_one_that_is_cut_is_used_up_to_there() {
    let folder = Folder::new("recordings-packed-cut");
    let packed = fs::read(recorded("ftrace.txt.gz")).unwrap();
    fs::write(folder.0.join("cut.gz"), &packed[..packed.len() - 900]).unwrap();
    for command in ["diagnose cut.gz", "check cut.gz"] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{command}");
        assert!(
            ran.err.contains("what gzip compressed is cut off"),
            "{command}: {}",
            ran.err
        );
    }
    assert!(folder.run("diagnose cut.gz").out.contains("sched_switch"));
}

/// One process, one CPU, one event in ten: nobody can be judged by it.
#[test]
fn of_a_part_of_what_happened_no_verdict_is_given() {
    let line = |cpu: u16, ms: u32, event: &str| format!(" a-1 [{cpu:03}] 1.{ms:03}000: {event}\n");
    let mut text = String::new();
    for turn in 0..400 {
        let switch = "sched_switch: a:1 [120] R ==> b:2 [0]";
        text += &line(0, 2 * turn, switch);
        text += &line(0, 2 * turn + 1, "sched_switch: b:2 [0] R ==> a:1 [120]");
    }
    text += &line(0, 900, "sched_wakeup: c:3 [120] CPU:001");
    let folder = Folder::new("recordings-part").with("it", &text);
    let out = folder.run("diagnose it").fine();
    assert!(out.contains("a part only"), "{out}");
    assert!(out.contains("CPUs that were not recorded: 1"), "{out}");
    assert!(!out.contains("\n["), "no verdict: {out}");
    let json: serde_json::Value =
        serde_json::from_str(&folder.run("diagnose it --json").fine()).unwrap();
    assert_eq!(json["verdicts"], serde_json::json!([]));
    assert_eq!(json["not_given"].as_array().map(Vec::len), Some(19));
}

#[test]
fn names_of_other_people_are_shown_and_not_sent() {
    let escape = "\u{1b}]0;owned\u{7}";
    let line = |tid: u32, next: u32, ms: u32| {
        format!(
            " x-{tid} [000] d..2. 1.{ms:03}000: sched_switch: prev_comm=a{escape} prev_pid={tid} prev_prio=120 \
             prev_state=R ==> next_comm=b{escape} next_pid={next} next_prio=120\n"
        )
    };
    let text: String = (0..200)
        .map(|turn| line(1 + turn % 2, 1 + (turn + 1) % 2, turn))
        .collect();
    let folder = Folder::new("recordings-names").with("it", &text);
    for command in [
        "diagnose it",
        "diagnose it --json",
        "diagnose it --out page",
        "replay it --machine tiny-1cpu",
    ] {
        let ran = folder.run(command);
        assert!(
            !ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'),
            "{command}"
        );
    }
    assert!(!folder.text("page/diagnosis.html").contains('\u{1b}'));
    assert!(!folder.text("page/diagnosis.json").contains('\u{1b}'));
    folder.run("convert it it.ndjson").fine();
    assert!(!folder.text("it.ndjson").contains('\u{1b}'));
}

/// systrace wrote the text of ftrace into a page, behind the scripts that show it.
#[test]
fn the_page_of_systrace_is_read() {
    let switch = "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> \
                  next_comm=b next_pid=2 next_prio=120";
    let scripts = "<script>var a = [1] 2.5: x;</script>\n".repeat(500);
    let page = format!(
        "<!DOCTYPE html>\n<html>\n{scripts}<script class=\"trace-data\" \
         type=\"application/text\">\n# tracer: nop\n#\na-1  (    1) [000] d..3 1.5: {switch}\n\
         b-2  (    2) [000] d..3 1.6: sched_waking: comm=a pid=1 prio=120 target_cpu=000\n\
         </script>\n</html>\n"
    );
    let folder = Folder::new("recordings-systrace").with("trace.html", &page);
    let shown = folder.run("diagnose trace.html").fine();
    for part in [
        "a page in HTML, as systrace writes one",
        "sched_switch 1, sched_waking 1",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
}

/// What is no recording, or none that is read, is named, and what helps.
#[test]
fn what_is_no_recording_is_named() {
    let folder = Folder::new("recordings-others")
        .with("json", "{\"traceEvents\": [{\"ph\": \"X\"}]}")
        .with("ctf", "/* CTF 1.8 */")
        .with("text", "hello")
        .with(
            "counts.txt",
            " bash-1 [000] d..2.  18446744: sched_waking: comm=a pid=1 prio=120 target_cpu=0\n",
        )
        .with("scenario.toml", "[task.a]\nbody = [{ run = \"1ms\" }]\n")
        .with("quiet.txt", " bash-1 [000] d..2.  1.5: sys_enter: NR 1\n")
        .with("empty", "");
    fs::write(folder.0.join("it.xz"), b"\xfd7zXZ\0").unwrap();
    let mut archive = vec![0; 512];
    archive[257..262].copy_from_slice(b"ustar");
    fs::write(folder.0.join("it.tar"), archive).unwrap();
    let page = [7_u64 << 30, 40, 8].map(u64::to_le_bytes).concat();
    fs::write(folder.0.join("cpu0.raw"), page).unwrap();
    fs::write(folder.0.join("it.gz"), b"\x1f\x8b\x08\0damaged").unwrap();
    fs::write(folder.0.join("perf.data"), b"PERFILE2h").unwrap();
    fs::write(folder.0.join("trace.dat"), b"\x17\x08\x44tracing5\0").unwrap();
    let mut text = String::new();
    for file in [
        "json",
        "ctf",
        "text",
        "counts.txt",
        "scenario.toml",
        "empty",
        "it.xz",
        "it.tar",
        "cpu0.raw",
        "it.gz",
        "perf.data",
        "trace.dat",
        "nothing",
    ] {
        let ran = folder.run(&format!("diagnose {file}"));
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{file}");
        text += &format!("$ warmq diagnose {file}\n{}\n", ran.err);
    }
    for command in [
        "convert text it.warmq",
        "convert text it.txt",
        "convert text",
        "convert counts.txt it.warmq",
        "check quiet.txt",
    ] {
        let ran = folder.run(command);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        text += &format!("$ warmq {command}\n{}\n", ran.err);
    }
    assert!(!folder.0.join("it.warmq").exists());
    insta::assert_snapshot!("recordings_refused", text);
}

#[test]
fn text_that_an_option_makes_unreadable_is_refused_with_how_to_switch_it_off() {
    let folder = Folder::new("recordings-options");
    for (line, says) in [
        (
            "sched_wakeup: comm=rt pid=7 prio=49 target_cpu=001",
            "echo context-info > /sys/kernel/tracing/trace_options",
        ),
        ("13377 1 2853865964931 type: 363", "echo noraw > "),
    ] {
        fs::write(folder.0.join("it"), format!("# tracer: nop\n{line}\n")).expect("it is written");
        let ran = folder.run("diagnose it");
        assert!(ran.code == 2 && ran.err.contains(says), "{}", ran.err);
    }
}

/// A trace of the lab knows no processes, and Perfetto's form needs one.
#[test]
fn tasks_of_no_known_process_are_in_none_when_perfettos_form_is_read() {
    let folder = Folder::new("recordings-processes");
    let run =
        "run receiver --machine tiny-2cpu --kernel 6.18 --preempt full --time 300ms --seeds 1";
    folder.run(&format!("{run} --trace it.warmq")).fine();
    folder.run("convert it.warmq it.pftrace").fine();
    let line = folder.run("diagnose it.pftrace --json").fine();
    let read: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    let waiting = read["activity"]["waiting"].as_array().expect("a list");
    assert!(waiting.iter().any(|task| task["name"] == "hog"), "{line}");
    assert!(!line.contains("4194304"), "{line}");
}
