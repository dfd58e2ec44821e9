//! Compiled schedulers by the names of their programs: on PATH, or missing.

use std::fs;

use super::support::{FAULTS, Folder};

/// One run of a scenario, on a machine that ships.
const RUN: &str =
    "run hog --machine small-4llc --set cpus=1 --time 20ms --warmup 0ms --seeds 1, --scheduler";

#[test]
fn a_program_on_path_is_known_by_its_name_alone() {
    let folder = Folder::new("programs-on-path");
    fs::copy(FAULTS, folder.0.join("scx_faults.bpf.o")).unwrap();
    let with_path = |arguments: &str| {
        let mut command = folder.command(arguments);
        command.env("PATH", &folder.0);
        command.output().unwrap()
    };
    let named = with_path(&format!("{RUN} scx_faults --json"));
    let rows = String::from_utf8_lossy(&named.stdout);
    assert!(
        named.status.success() && rows.contains("\"scx_faults\""),
        "{named:?}"
    );
    let described = with_path("schedulers scx_faults");
    let text = String::from_utf8_lossy(&described.stdout);
    assert!(text.starts_with("faults: a compiled scheduler"), "{text}");
    let elsewhere = folder.run(&format!("{RUN} scx_faults"));
    assert!(
        elsewhere.err.contains("no scheduler \"scx_faults\""),
        "{}",
        elsewhere.err
    );
}

#[test]
fn a_missing_program_is_left_out_and_the_others_are_played() {
    let folder = Folder::new("programs-missing");
    let ran = folder.run(&format!("{RUN} kernel,scx_nest"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let why = "scx_nest is neither beside warmq nor on PATH";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words(&ran.out).contains(&format!("Left out, 1 run: {why}")),
        "{}",
        ran.out
    );
    for line in [
        &format!("{RUN} scx_nest"),
        "laws nice --scheduler kernel,scx_nest",
    ] {
        let refused = folder.run(line);
        assert_ne!(refused.code, 0, "{line}");
        let mut said = refused.err.lines().filter(|line| line.contains(why));
        assert!(
            said.next().is_some() && said.next().is_none(),
            "{}",
            refused.err
        );
    }
}
