//! Two recordings on the command line: the same, another scheduler's, files that are none.

use std::fs;

use serde_json::Value;

use super::support::Folder;

const HOGS: &str = r#"
title = "Hogs of unlike nice beside a task with a timer"

[task.heavy]
body = [{ run = "10ms" }]

[task.light]
nice = 5
body = [{ run = "10ms" }]

[task.clock]
every = "7ms"
body = [{ run = "500us" }]
"#;

/// A folder with recordings of 6.18 (twice) and of 7.1.
fn recorded(name: &str) -> Folder {
    let folder = Folder::new(&format!("compare-{name}")).with("hogs.toml", HOGS);
    for (scheduler, file) in [
        ("eevdf-6.18", "a.trace"),
        ("eevdf-6.18", "again.trace"),
        ("eevdf-7.1", "b.trace"),
    ] {
        let run = format!(
            "run hogs.toml --machine tiny-1cpu --time 60ms --warmup 0ms --seeds 1 \
             --scheduler {scheduler} --trace {file}"
        );
        let said = folder.run(&run).fine();
        assert!(said.contains("warmq compare"), "{said}");
    }
    folder
}

#[test]
fn two_runs_of_one_seed_are_identical() {
    let folder = recorded("same");
    let ran = folder.run("compare a.trace again.trace --strict");
    assert!(ran.fine().contains("The recordings are identical"));
    let ran = folder.run("compare a.trace again.trace --json");
    let value: Value = serde_json::from_str(&ran.fine()).unwrap();
    assert_eq!(value["identical"], true);
    assert_eq!(value["first_difference"], Value::Null);
}

#[test]
fn another_scheduler_differs_at_a_switch_that_is_shown() {
    let folder = recorded("other");
    insta::assert_snapshot!("compare", folder.run("compare a.trace b.trace").fine());
    let ran = folder.run("compare a.trace b.trace --json --cpu 0 --from 10ms");
    let value: Value = serde_json::from_str(&ran.fine()).unwrap();
    assert_eq!(value["agrees"], false);
    assert!(value["first_difference"]["a"]["decision"]["at_ns"].as_u64() >= Some(10_000_000));
    // A difference is a result, unless one asks for agreement.
    assert_eq!(folder.run("compare a.trace b.trace --strict").code, 1);
}

#[test]
fn what_is_no_recording_is_refused_with_the_byte_and_a_fix() {
    let folder = recorded("refused")
        .with("empty.trace", "")
        .with("text.trace", "who ran when");
    let whole = fs::read(folder.0.join("a.trace")).unwrap();
    fs::write(folder.0.join("cut.trace"), &whole[..500]).unwrap();
    let commands = [
        "compare a.trace nothing.trace",
        "compare a.trace empty.trace",
        "compare text.trace a.trace",
        "compare a.trace cut.trace",
        "compare a.trace b.trace --cpu 3",
        "compare a.trace b.trace --from later",
        "compare a.trace b.trace --from 1s",
    ];
    let said: Vec<String> = commands
        .iter()
        .map(|arguments| {
            let ran = folder.run(arguments);
            assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments}");
            format!("$ warmq {arguments}\n{}", ran.err)
        })
        .collect();
    insta::assert_snapshot!("compare_refused", said.join("\n"));
}
