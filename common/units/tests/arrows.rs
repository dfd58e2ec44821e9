//! The arrows between the crates (docs/architecture.md), read from the manifests.
//!
//! They are kept here, in the crate at the bottom, because it can be built and tested without any
//! other: a broken arrow shows even where the crate that it starts from does not build.
//!
//! Tests and benchmarks may look further than the code they test: dev-dependencies have a looser
//! rule, but the two walls hold for them, too.

#[path = "arrows/layers.rs"]
mod layers;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Wing and crate, and the crates of ours that it may use.
const MAY_USE: &[(&str, &str, &[&str])] = &[
    ("common", "units", &[]),
    ("common", "coloring", &[]),
    ("common", "decide", &[]),
    ("common", "bpf", &[]),
    ("common", "config", &["units"]),
    ("common", "affinity", &["units", "config"]),
    ("common", "scenario", &["units", "config", "trace"]),
    ("common", "trace", &["units"]),
    ("common", "machine", &["units", "config"]),
    ("common", "metrics", &["units", "trace"]),
    (
        "common",
        "law",
        &["units", "config", "scenario", "trace", "metrics"],
    ),
    ("common", "recordings", &["units", "trace", "machine"]),
    ("common", "diagnose", &["units", "trace"]),
    ("common", "replay", &["units", "trace", "metrics"]),
    ("common", "report", &["units"]),
    ("lab", "kernel", &["units", "trace", "machine"]),
    ("lab", "bpf-run", &["bpf"]),
    ("lab", "classes", &["units", "kernel"]),
    ("lab", "random", &["units", "machine", "kernel"]),
    (
        "lab",
        "sched",
        &[
            "units", "config", "affinity", "coloring", "trace", "machine", "decide", "kernel",
            "classes",
        ],
    ),
    (
        "lab",
        "sched-ext",
        &[
            "units", "config", "trace", "machine", "kernel", "bpf", "bpf-run", "classes",
        ],
    ),
    (
        "lab",
        "race",
        &["units", "machine", "kernel", "bpf", "sched-ext"],
    ),
    (
        "lab",
        "play",
        &["units", "config", "machine", "scenario", "trace", "kernel"],
    ),
    (
        "lab",
        "experiment",
        &[
            "units",
            "config",
            "affinity",
            "trace",
            "machine",
            "metrics",
            "law",
            "scenario",
            "report",
            "kernel",
            "sched",
            "sched-ext",
            "play",
        ],
    ),
    ("live", "host", &["units", "machine"]),
    ("live", "attach", &["bpf"]),
    ("live", "output", &["units"]),
    ("live", "record", &["units", "trace", "recordings"]),
    ("live", "record-bpf", &["units", "output", "record"]),
    (
        "live",
        "player",
        &[
            "units", "config", "trace", "scenario", "hint", "output", "record",
        ],
    ),
    (
        "live",
        "walk",
        &["units", "color", "coloring", "machine", "host"],
    ),
    ("live", "conflicts", &["units", "coloring", "machine"]),
    ("live", "hint", &[]),
    ("live", "color", &["coloring"]),
    ("live", "drill", &[]),
    ("live", "scx", &["units", "decide", "hint"]),
    ("live", "vm", &["config"]),
];

/// What only the live wing may link: it asks the host or speaks to its kernel.
const OF_THE_HOST: &[&str] = &[
    "libc",
    "nix",
    "rustix",
    "libbpf-rs",
    "libbpf-sys",
    "libbpf-cargo",
];

/// What a manifest asks for.
struct Manifest {
    wing: String,
    uses: BTreeSet<String>,
    tests_use: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names in the sections of `text` whose header ends in `section`, whatever the target.
fn names(text: &str, section: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            inside = header == section || header.ends_with(&format!(".{section}"));
            // [dependencies.NAME]
            let table = header.split_once(&format!("{section}."));
            names.extend(
                table
                    .filter(|(before, _)| before.is_empty() || before.ends_with('.'))
                    .map(|(_, name)| name.to_owned()),
            );
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            names.insert(name.trim_start_matches('#').to_owned());
        }
    }
    names.remove("");
    names
}

/// Every crate of the three wings, by the name of its folder.
fn manifests() -> BTreeMap<String, Manifest> {
    let mut manifests = BTreeMap::new();
    for wing in ["common", "lab", "live"] {
        for entry in fs::read_dir(root().join(wing)).expect("a wing") {
            let folder = entry.expect("an entry").path();
            let Ok(text) = fs::read_to_string(folder.join("Cargo.toml")) else {
                continue;
            };
            let name = folder
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let mut uses = names(&text, "dependencies");
            uses.extend(names(&text, "build-dependencies"));
            let manifest = Manifest {
                wing: wing.to_owned(),
                uses,
                tests_use: names(&text, "dev-dependencies"),
            };
            manifests.insert(name, manifest);
        }
    }
    manifests
}

fn ours(names: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    names.iter().filter_map(|name| name.strip_prefix("warmq-"))
}

/// Everything of ours that `name` links, directly or through others.
fn reach(manifests: &BTreeMap<String, Manifest>, first: Vec<String>) -> BTreeSet<String> {
    let (mut seen, mut left) = (BTreeSet::new(), first);
    while let Some(name) = left.pop() {
        if let Some(manifest) = manifests.get(&name)
            && seen.insert(name)
        {
            left.extend(ours(&manifest.uses).map(str::to_owned));
        }
    }
    seen
}

#[test]
fn every_arrow_is_one_of_the_house() {
    let manifests = manifests();
    assert!(manifests.len() >= 10, "the manifests are found");
    let mut broken = Vec::new();
    for (name, manifest) in &manifests {
        let known = MAY_USE
            .iter()
            .find(|(wing, known, _)| known == name && *wing == manifest.wing);
        let Some((_, _, allowed)) = known else {
            broken.push(format!(
                "{}/{name} is not in docs/architecture.md",
                manifest.wing
            ));
            continue;
        };
        let wrong = ours(&manifest.uses).filter(|used| !allowed.contains(used));
        broken.extend(wrong.map(|used| format!("{name} must not use {used}")));
    }
    assert_eq!(broken, Vec::<String>::new(), "see docs/architecture.md");
}

#[test]
fn every_arrow_that_is_allowed_is_used() {
    let manifests = manifests();
    let mut unused = Vec::new();
    for (wing, name, allowed) in MAY_USE {
        let Some(manifest) = manifests.get(*name) else {
            unused.push(format!("there is no {wing}/{name}"));
            continue;
        };
        let used: Vec<&str> = ours(&manifest.uses).collect();
        let idle = allowed.iter().filter(|arrow| !used.contains(arrow));
        unused.extend(idle.map(|arrow| format!("{name} does not use {arrow}")));
    }
    assert_eq!(unused, Vec::<String>::new(), "MAY_USE says too much");
}

#[test]
fn the_lab_never_asks_the_host() {
    let manifests = manifests();
    for (name, manifest) in manifests
        .iter()
        .filter(|(_, manifest)| manifest.wing != "live")
    {
        let all = manifest.uses.union(&manifest.tests_use).cloned().collect();
        let first: Vec<String> = ours(&all).map(str::to_owned).collect();
        for used in reach(&manifests, first) {
            assert_ne!(manifests[&used].wing, "live", "{name} reaches live/{used}");
        }
        for host in OF_THE_HOST {
            assert!(!manifest.uses.contains(*host), "{name} links {host}");
        }
    }
}

#[test]
fn no_simulated_fact_leaks_into_a_measurement() {
    let manifests = manifests();
    for (name, manifest) in manifests
        .iter()
        .filter(|(_, manifest)| manifest.wing == "live")
    {
        let all = manifest.uses.union(&manifest.tests_use).cloned().collect();
        let first: Vec<String> = ours(&all).map(str::to_owned).collect();
        for used in reach(&manifests, first) {
            assert_ne!(manifests[&used].wing, "lab", "{name} reaches lab/{used}");
        }
    }
}

#[test]
fn a_manifest_is_read_in_every_spelling() {
    let text = "
[package]
name = \"x\"
[dependencies]
warmq-units.workspace = true
libc = \"0.2\"
serde = { version = \"1\" }
[target.'cfg(unix)'.dependencies]
nix = \"1\"
[dependencies.rustix]
version = \"1\"
[dev-dependencies]
proptest.workspace = true
";
    let expected = ["libc", "nix", "rustix", "serde", "warmq-units"];
    assert!(names(text, "dependencies").iter().eq(expected));
    assert!(names(text, "dev-dependencies").iter().eq(["proptest"]));
}
