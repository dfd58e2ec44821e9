//! Who waits beside an idle CPU, or moves between CPUs.

use super::*;

/// Its program is wrong about who runs where or next, in the way that is set.
const MISPLACES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/sched-ext/tests/programs/misplaces.bpf.o"
);

#[test]
fn hogs_that_are_bound_to_one_cpu_beside_an_idle_one_have_too_narrow_an_affinity() {
    let bound = "[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        let found = story(bound, scheduler, "");
        only(&found, Kind::Affinity, &["hog 0", "hog 1"]);
    }
}

/// A quota that is not used up is no reason to wait beside an idle CPU.
#[test]
fn a_task_with_quota_left_that_is_left_beside_an_idle_cpu_is_reported() {
    let law = include_str!("../../../../laws/affinity-widened.toml");
    let law = law.replace("count = 4\n", "count = 4\ngroup = \"pod\"\n");
    let text = format!(
        "{}\n[group.pod]\nquota = \"300ms\"\nperiod = \"100ms\"\n",
        without_law(&law)
    );
    let found = story(&text, "broken", "fault = \"no-balance\"");
    only(
        &found,
        Kind::IdleBeside,
        &["hog 0", "hog 1", "hog 2", "hog 3"],
    );
}

#[test]
fn a_task_that_is_left_beside_an_idle_cpu_is_reported() {
    // All begin bound to CPU 0; when they may use the other, nobody moves them.
    let law = include_str!("../../../../laws/affinity-widened.toml");
    let found = story(&without_law(law), "broken", "fault = \"no-balance\"");
    let hogs = ["hog 0", "hog 1", "hog 2", "hog 3"];
    only(&found, Kind::IdleBeside, &hogs);
}

#[test]
fn a_pair_that_moves_between_caches_is_reported() {
    let pair = include_str!("../../../tests/verdicts/pair.toml");
    only(
        &story(pair, MISPLACES, "way = 1"),
        Kind::Moves,
        &["ping", "pong"],
    );
    let hogs = "[task.hog]\ncount = 3\nbody = [{ run = \"3ms\" }, { sleep = \"500us\" }]\n";
    let pair = format!("{pair}{hogs}");
    let found = story_on("small-4llc", &pair, "mq", "");
    assert!(
        verdicts(&found).contains_key(Kind::Moves.name()),
        "{found:#?}"
    );
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story_on("small-4llc", &pair, kernel, "");
        assert_eq!(verdicts(&found), BTreeMap::new(), "{kernel}");
    }
}

/// As guests are played (scripts/verdicts.sh).
#[test]
fn what_a_scheduler_does_wrong_that_others_do_not_is_reported() {
    let hogs = include_str!("../../../tests/verdicts/three-hogs.toml");
    let beside = story(hogs, MISPLACES, "way = 0");
    only(&beside, Kind::IdleBeside, &["hog 0", "hog 1", "hog 2"]);
    let oldest_first = story(hogs, MISPLACES, "way = 2\ncpus = 1");
    only(&oldest_first, Kind::Unexplained, &["hog 2"]);
    for settings in ["", "cpus = 1"] {
        let found = story(hogs, "eevdf-6.18", settings);
        assert_eq!(verdicts(&found), BTreeMap::new(), "{settings}");
    }
}

#[test]
fn a_task_that_waits_where_only_cpus_under_another_cache_idle_is_reported_with_that() {
    let text = "[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n\
                [[change]]\nat = \"50ms\"\ntask = \"hog\"\nset = { cpus = \"all\" }\n";
    let far = "under the cache of its own CPU for 0 %";
    for (machine, why) in [
        ("tiny-2cpu", far),
        ("small-4llc", "balancing left it where it was"),
    ] {
        let settings = "cpus = 2\nfault = \"no-balance\"";
        let found = story_on(machine, text, "broken", settings);
        only(&found, Kind::IdleBeside, &["hog 0", "hog 1"]);
        let because = &found.verdicts[0].because;
        assert!(because.contains(why), "{because}");
    }
    let bound = "[task.bound]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    let text = format!("{bound}{}", text.replace("count = 2\n", ""));
    let found = story_on(
        "small-4llc",
        &text,
        "broken",
        "cpus = 2\nfault = \"no-balance\"",
    );
    let left = |verdict: &&Verdict| verdict.kind == Kind::IdleBeside;
    let because = &found.verdicts.iter().find(left).unwrap().because;
    assert!(
        because.contains(" may not use it, and balancing"),
        "{because}"
    );
}

#[test]
fn a_task_that_waits_where_only_cpus_of_another_memory_node_idle_is_reported_with_that() {
    // Each node has four cores of two threads: CPUs 0 to 3 and 8 to 11 are of the first one.
    let text = "[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n\
                [task.first]\nfor = { n = 3 }\ncpus = \"cpu (1 + n)\"\nbody = [{ run = \"1ms\" }]\n\
                [task.second]\nfor = { n = 4 }\ncpus = \"cpu (8 + n)\"\nbody = [{ run = \"1ms\" }]\n\
                [[change]]\nat = \"50ms\"\ntask = \"hog\"\nset = { cpus = \"all\" }\n";
    let of_node = "of the memory node of its own CPU for 0 %";
    // With a task less, a CPU of the own node idles.
    for (text, said) in [(text, true), (&text.replace("n = 4", "n = 3"), false)] {
        let found = story_on("two-nodes", text, "broken", "fault = \"no-balance\"");
        only(&found, Kind::IdleBeside, &["hog 0", "hog 1"]);
        let because = &found.verdicts[0].because;
        assert_eq!(because.contains(of_node), said, "{because}");
    }
}

/// CFS of 2.6.24 compares what the CPUs under each cache weigh: one nice -20 task weighs more than
/// three others, and the CPU beside it idles for good.
#[test]
fn a_task_that_balancing_by_load_leaves_beside_an_idle_cpu_is_reported_with_that() {
    let text = "[task.heavy]\nnice = -20\ncpus = \"cpu 0\"\nbody = [{ run = \"10ms\" }]\n\
                [task.light]\ncount = 3\ncpus = \"cpus 2-3\"\nbody = [{ run = \"10ms\" }]\n\
                [[change]]\nat = \"50ms\"\ntask = \"light\"\nset = { cpus = \"all\" }\n";
    let of = |text: &str, scheduler| story_on("small-4llc", text, scheduler, "cpus = 4");
    let found = of(text, "cfs");
    assert_eq!(
        verdicts(&found).into_keys().collect::<Vec<_>>(),
        ["idle-beside"]
    );
    let because = &found.verdicts[0].because;
    assert!(
        because.contains("under the cache of CPU 0, where tasks or groups of much weight run"),
        "{because}"
    );
    let alike = text.replace("nice = -20\n", "");
    for found in [
        of(&alike, "cfs"),
        of(text, "eevdf-6.12"),
        of(text, "eevdf-7.3"),
    ] {
        assert_eq!(verdicts(&found), BTreeMap::new());
    }
}

#[test]
fn a_task_that_its_cpuset_keeps_from_an_idle_cpu_is_reported_with_that() {
    let text = "[group.pod]\ncpus = \"cpu 0\"\n[task.hog]\ncount = 2\ngroup = \"pod\"\n\
                body = [{ run = \"1ms\" }]\n";
    let found = story(text, "eevdf-6.18", "");
    only(&found, Kind::Affinity, &["hog 0", "hog 1"]);
    let because = &found.verdicts[0].because;
    assert!(
        because.ends_with("All tasks of group pod are bound so: that is its cpuset."),
        "{because}"
    );
}
