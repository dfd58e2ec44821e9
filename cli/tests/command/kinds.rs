//! Every kind of file that a command reads: `check` reads it, and who plays something else says
//! which command reads it.

use std::fs;

use super::support::Folder;

const TOPOLOGY: &str = include_str!("../../../common/machine/tests/hwloc/xeon-2cpu-v2.xml");
const SMT: &str = include_str!("../../../machines/small-smt.toml");
const NICE: &str = include_str!("../../../laws/nice.toml");
const BINS: &str = include_str!("../../../instances/bins.toml");
const EXPERIMENT: &str = include_str!("../../../experiments/today/one-setting.toml");
const HOG: &str = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";
const RT_APP: &str = r#"{"tasks": {"hog": {"loop": -1, "run": 1000}}, "global": {"duration": 1}}"#;

/// A folder with a file of each kind.
fn of_each(name: &str) -> Folder {
    let folder = Folder::new(name)
        .with("topology.xml", TOPOLOGY)
        .with("smt.toml", SMT)
        .with("nice.toml", NICE)
        .with("bins.toml", BINS)
        .with("trial.toml", EXPERIMENT)
        .with("hog.toml", HOG)
        .with("hog.json", RT_APP)
        .with("events.txt", "# tracer: nop\n#\n");
    let short =
        "run hog.toml --machine tiny-1cpu --seeds 1 --time 5ms --warmup 0ms --trace hog.warmq";
    folder.run(short).fine();
    folder
}

#[test]
fn check_reads_every_kind_of_file() {
    let folder = of_each("kinds-check");
    for (file, what) in [
        ("topology.xml", "a machine of 2 CPUs: 1 socket,"),
        ("smt.toml", "a machine of 4 CPUs"),
        ("nice.toml", "a law of 2 tasks"),
        (
            "bins.toml",
            "an instance of the affinity model, of 5 tasks on 2 CPUs",
        ),
        ("hog.toml", "a scenario of 1 tasks"),
        ("hog.json", "a scenario of 1 tasks"),
        ("hog.warmq", "a recording of "),
        ("trial.toml", " points, "),
    ] {
        let said = folder.run(&format!("check {file}")).fine();
        assert!(
            said.starts_with(&format!("{file}: fine; ")) && said.contains(what),
            "{said}"
        );
    }
}

#[test]
fn check_finds_damage_and_refuses_what_no_command_reads() {
    let folder = of_each("kinds-damage");
    let whole = fs::read(folder.0.join("hog.warmq")).unwrap();
    fs::write(folder.0.join("cut.warmq"), &whole[..whole.len() - 3]).unwrap();
    fs::write(folder.0.join("cut.xml"), &TOPOLOGY[..TOPOLOGY.len() / 2]).unwrap();
    fs::write(folder.0.join("page.xml"), "<html></html>").unwrap();
    fs::write(folder.0.join("stream.ctf"), "/* CTF 1.8 */").unwrap();
    fs::write(
        folder.0.join("wrong.toml"),
        SMT.replace("threads_per_core", "threads_a_core"),
    )
    .unwrap();
    for (file, what) in [
        ("cut.warmq", "the trace is cut off"),
        ("cut.xml", "cut.xml:"),
        (
            "page.xml",
            "this is a page in HTML, as systrace writes one, and it has no",
        ),
        ("wrong.toml", "`topology.threads_a_core`: unknown key"),
        ("stream.ctf", "which warmq does not read"),
    ] {
        let ran = folder.run(&format!("check {file}"));
        assert_eq!(ran.code, 2, "{file}: {}", ran.err);
        assert!(ran.err.contains(what), "{file}: {}", ran.err);
    }
}

#[test]
fn what_is_played_otherwise_is_said_with_its_command() {
    let folder = of_each("kinds-elsewhere");
    for (file, help) in [
        ("topology.xml", "warmq run chat --machine topology.xml"),
        ("smt.toml", "warmq run chat --machine smt.toml"),
        ("bins.toml", "warmq check bins.toml"),
        ("hog.warmq", "warmq replay hog.warmq"),
        ("events.txt", "warmq replay events.txt"),
    ] {
        for command in ["run", "laws", "plan"] {
            let ran = folder.run(&format!("{command} {file}"));
            assert_eq!(ran.code, 2, "{command} {file}: {}", ran.err);
            assert!(ran.err.contains(help), "{command} {file}: {}", ran.err);
        }
    }
}
