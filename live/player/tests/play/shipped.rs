//! The scenarios of the repository are played, with settings that suit a small machine.

use std::path::Path;

use crate::support::play;

/// Settings that make a scenario small, and what must have been counted at its end, if it has one.
fn small(name: &str) -> (&'static str, Option<&'static str>) {
    match name {
        "chat" => (
            "--set rooms=2 --set users=4 --set messages=5",
            Some("messages"),
        ),
        "hackbench" => ("--set groups=2 --set fds=4 --set loops=5", Some("messages")),
        "fragments" => ("--set visits=40960 --set threads=4", Some("visits")),
        "service" => ("--set tenants=2 --set workers=2", Some("requests")),
        "schbench" => ("--set pause=50us", Some("requests")),
        "spin" => ("--set tasks=3 --set burst=100000", Some("bursts")),
        "simplex" => ("--set kpps=1", None),
        _ => ("", None),
    }
}

#[test]
fn every_shipped_scenario_is_played() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a text");
        let (settings, counter) = small(&name);
        let time = match name.as_str() {
            // They end by themselves, before that.
            "chat" | "hackbench" | "fragments" => "60s",
            // The others are played until the time is up.
            _ if counter.is_some() => "1s",
            _ => "50ms",
        };
        let played = play(&text, &format!("--warmup 0s --time {time} {settings}"));
        assert_eq!(played.code, Some(0), "{name}: {}", played.said);
        assert!(played.records.len() > 5, "{name}");
        assert!(
            counter.is_none_or(|counter| played.counted(counter) > 0),
            "{name}: nothing was counted"
        );
        names.push(name);
    }
    assert!(names.len() >= 9, "{names:?}");
}
