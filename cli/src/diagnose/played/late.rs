//! Who is woken and waits, and whose slices are long or short.

use super::*;

/// The example of the README.
const KEYS: &str = include_str!("../../../tests/verdicts/keys.toml");

#[test]
fn an_editor_beside_a_build_waits_for_longer_than_it_runs() {
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.2", "eevdf-7.3"] {
        let found = story_on("small-4llc", KEYS, kernel, "");
        only(&found, Kind::Latency, &["editor"]);
        if kernel == "eevdf-7.3" {
            let verdict = &found.verdicts[0];
            insta::assert_snapshot!(format!("{}\n{}", verdict.says, verdict.because));
        }
    }
    if let Some(fair) = fair() {
        let found = story_on("small-4llc", KEYS, fair, "");
        assert_eq!(verdicts(&found), BTreeMap::new());
    }
}

/// What the verdict names as its cures, tried: the editor waits for less than half as long in all.
#[test]
fn the_cures_of_latency_are_ones() {
    let of_editor = |key: &str| KEYS.replacen("every", &format!("{key}\nevery"), 1);
    let cured = [
        // A little more than it runs at a time. With less it is preempted as it runs.
        of_editor("slice = \"1200us\""),
        of_editor("nice = -5"),
        KEYS.replace("count", "policy = \"idle\"\ncount"),
    ];
    let waited = |found: &Diagnosis| {
        let mut all = found.activity.waiting.iter();
        let editor = all.find(|waiting| waiting.about.name == "editor");
        editor.map_or(0, |waiting| waiting.waited_ns)
    };
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let before = waited(&story_on("small-4llc", KEYS, kernel, ""));
        for text in &cured {
            let found = story_on("small-4llc", text, kernel, "");
            assert_eq!(verdicts(&found), BTreeMap::new(), "{kernel}: {text}");
            assert!(waited(&found) * 2 < before, "{kernel}: {text}: {before}");
        }
    }
}

/// Tasks of SCHED_IDLE with an old deadline go before who wakes, and on to the next tick.
#[test]
fn who_is_of_sched_idle_needs_not_be_made_so() {
    let text = "[task.n]\nevery = \"20ms\"\nbody = [{ run = \"500us\" }]\n\
                [task.h]\npolicy = \"idle\"\ncount = 5\nbody = [{ run = \"10ms\" }]\n";
    let found = story(text, "eevdf-6.18", "cpus = 1");
    let verdict = found
        .verdicts
        .iter()
        .find(|verdict| verdict.tasks[0].name == "n");
    let verdict = verdict.expect("a verdict on n");
    assert_eq!(verdict.kind, Kind::Latency);
    assert!(
        verdict.because.contains("They weigh no more"),
        "{verdict:?}"
    );
    let mut cures = verdict.cures.iter();
    let makes_idle = cures.any(|cure| cure.does.contains("SCHED_IDLE"));
    assert!(!makes_idle, "{verdict:?}");
    // They are due what n leaves: a fifth of that each.
    let hogs = found
        .verdicts
        .iter()
        .find(|verdict| verdict.kind == Kind::TooMany);
    let hogs = hogs.expect("a verdict on those of SCHED_IDLE");
    assert!(hogs.because.contains("about 19 % were due"), "{hogs:?}");
}

#[test]
fn slices_that_are_too_long_or_too_short_are_reported() {
    let kernels = ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"];
    let of_editor = |key: &str| KEYS.replacen("every", &format!("{key}\nevery"), 1);
    for kernel in kernels {
        for key in ["slice = \"100ms\"", "policy = \"batch\""] {
            let found = story_on("small-4llc", &of_editor(key), kernel, "");
            only(&found, Kind::SlicesLong, &["editor"]);
        }
        let short = "[task.hog]\nbody = [{ run = \"10ms\" }]\n[task.short]\nslice = \"100us\"\n\
                     body = [{ run = \"100us\" }, { sleep = \"200us\" }]\n";
        only(
            &story(short, kernel, "cpus = 1"),
            Kind::SlicesShort,
            &["hog"],
        );
        let longer = short.replace("200us", "2ms");
        assert_eq!(
            verdicts(&story(&longer, kernel, "cpus = 1")),
            BTreeMap::new(),
            "{kernel}"
        );
    }
}

/// What slices, weights and the preemption model do is the kernel's own scheduler's.
#[test]
fn the_kernels_cures_are_not_named_under_another_scheduler() {
    let text = "[task.k]\nevery = \"10ms\"\nbody = [{ run = \"500us\" }]\n[task.hog]\ncount = 6\n\
                body = [{ run = \"10ms\" }]\n";
    let faults = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../lab/sched-ext/tests/programs/faults.bpf.o"
    );
    let found = story(text, faults, "cpus = 2");
    let all = found.verdicts.iter();
    let late = all.filter(|verdict| verdict.kind == Kind::Latency);
    let late = late.flat_map(|verdict| &verdict.cures);
    let cures: Vec<&str> = late.map(|cure| cure.does).collect();
    assert!(!cures.is_empty(), "{found:?}");
    let of_kernels = ["chrt", "renice", "base_slice", "preempt="];
    let named = |cure: &&&str| of_kernels.iter().any(|name| cure.contains(name));
    assert_eq!(cures.iter().find(named), None);
}
