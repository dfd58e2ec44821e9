//! `warmq replay` on traces that `warmq run` wrote.

use super::support::{FAULTS, Folder};

const STARVING: &str = "run receiver --machine small-smt --scheduler eevdf-6.18 --set cpus=2 --set preempt=full \
                        --warmup 0ms --time 500ms --trace it.warmq --json";

#[test]
fn a_trace_is_replayed_and_its_scenario_is_one_like_any_other() {
    let folder = Folder::new("replay");
    folder.run(STARVING).fine();
    let line = folder.run("replay it.warmq --scheduler eevdf-7.1 --out it.toml --json");
    let read: serde_json::Value = serde_json::from_str(&line.fine()).unwrap();
    let lines = read["lines"].as_array().unwrap();
    let hog = lines.iter().find(|line| line["task"] == "hog").unwrap();
    assert!(hog["recorded"]["share"].as_u64().unwrap() < 1_000, "{hog}");
    assert!(hog["replayed"]["share"].as_u64().unwrap() > 4_000, "{hog}");
    folder.run("check it.toml").fine();
    let run = "run it.toml --machine small-smt --set cpus=2 --scheduler eevdf-7.1 --time 300ms";
    let printed = folder.run(run).fine();
    assert!(printed.contains("hog_share"), "{printed}");
    let text = folder
        .run("replay it.warmq --from 100ms --until 300ms")
        .fine();
    assert!(text.contains("in 200 ms"), "{text}");
}

#[test]
fn a_group_that_is_idle_is_replayed_as_one() {
    let text = "[group.low]\nidle = true\n[group.usual]\n[task.a]\ngroup = \"low\"\n\
        body = [{ run = \"10ms\" }]\n[task.b]\ngroup = \"usual\"\nbody = [{ run = \"10ms\" }]\n";
    let folder = Folder::new("replay-idle-group").with("s.toml", text);
    let run = "run s.toml --machine tiny-1cpu --time 1s --seeds 1 --trace it.warmq";
    folder.run(run).fine();
    folder.run("replay it.warmq --out it.toml").fine();
    let replayed = folder.text("it.toml");
    let of = |line: &str| replayed.matches(line).count();
    assert_eq!(
        (of("idle = true"), of("weight = 100")),
        (1, 1),
        "{replayed}"
    );
}

#[test]
fn a_trace_is_replayed_under_a_compiled_scheduler() {
    let folder = Folder::new("replay-compiled");
    folder.run(STARVING).fine();
    let line = folder.run(&format!("replay it.warmq --scheduler {FAULTS} --json"));
    let read: serde_json::Value = serde_json::from_str(&line.fine()).unwrap();
    let lines = read["lines"].as_array().unwrap();
    let hog = lines.iter().find(|line| line["task"] == "hog").unwrap();
    assert!(hog["replayed"]["share"].as_u64().unwrap() > 1_000, "{hog}");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_byte() {
    let folder = Folder::new("replay-refused").with("no.warmq", "no trace");
    folder.run(STARVING).fine();
    let whole = std::fs::read(folder.0.join("it.warmq")).unwrap();
    std::fs::write(folder.0.join("cut.warmq"), &whole[..whole.len() / 2]).unwrap();
    let commands = [
        "replay nothing.warmq",
        "replay no.warmq",
        "replay cut.warmq",
        "replay it.warmq --scheduler none-such",
        "replay it.warmq --machine none-such",
        "replay it.warmq --cpus 200",
        "replay it.warmq --from 900s",
        "replay it.warmq --set none-such=1",
    ];
    let mut refusals = String::new();
    for command in commands {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        refusals.push_str(&format!("$ warmq {command}\n{}\n", ran.err));
    }
    insta::assert_snapshot!("replay_refused", refusals);
}
