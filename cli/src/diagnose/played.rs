//! Each verdict is provoked by a scenario that is played in the lab, and laws that are kept provoke
//! no others.

use std::collections::BTreeMap;

use warmq_config::Document;
use warmq_diagnose::{About, Diagnosis, Kind, Verdict, Watcher};
use warmq_experiment::laws::{Case, all_shipped, workload};
use warmq_experiment::{Engine, Experiment, LAB, Options, Plan, Simulator};
use warmq_law::Column;
use warmq_scenario::World;
use warmq_trace::{Header, Observer, Record};
use warmq_units::{CpuId, Instant};

use super::Found;
use crate::failure::Failure;
use crate::recording::Recording;
use crate::worlds;

/// Plays `plan`, and diagnoses it.
fn diagnosed(engine: &Engine, plan: &Plan) -> Diagnosis {
    let mut run = Watched {
        from: Instant::START + plan.warmup,
        about: None,
    };
    let played = engine.observe(plan, &mut run);
    played.unwrap_or_else(|error| panic!("{}: {error}", plan.workload.name));
    Diagnosis::of(run.about.expect("a run says what it is of"))
}

/// Watches a run from when it says what it is of.
struct Watched {
    from: Instant,
    about: Option<Watcher>,
}

impl Observer for Watched {
    fn about(&mut self, header: &Header) {
        self.about = Some(Watcher::new(header, self.from, Instant(u64::MAX)));
    }

    fn see(&mut self, at: Instant, record: &Record) {
        if let Some(watcher) = &mut self.about {
            watcher.see(at, record);
        }
    }
}

/// Plays the scenario `text` for two seconds on two CPUs with caches of their own; `settings` are
/// of the machine, the kernel and the scheduler.
fn story(text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    story_on("tiny-2cpu", text, scheduler, settings)
}

fn story_for(time: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    played_on("tiny-2cpu", time, text, scheduler, settings)
}

fn story_on(machine: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    played_on(machine, "2s", text, scheduler, settings)
}

fn played_on(machine: &str, time: &str, text: &str, scheduler: &str, settings: &str) -> Diagnosis {
    let engine = worlds::add(Engine::new(None));
    engine
        .know("story.toml", text)
        .unwrap_or_else(|error| panic!("{error}"));
    let experiment = format!(
        "title = \"a story\"\nmachine = {machine:?}\nscheduler = {scheduler:?}\n\
         workload = \"story.toml\"\n[settings]\n{settings}\n[run]\nwarmup = \"100ms\"\n\
         time = {time:?}\n[[measure]]\nmetric = \"*\"\n"
    );
    let document = Document::parse("story-experiment.toml", &experiment)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let experiment =
        Experiment::of(&document, &engine).unwrap_or_else(|problems| panic!("{problems}"));
    let options = Options {
        seeds: Some(vec![1]),
        ..Options::default()
    };
    let jobs = experiment.jobs(&options);
    diagnosed(&engine, &jobs[0].plan)
}

/// A trace of which nothing is known but one record.
fn one_record() -> (Header, Record) {
    (Header::default(), Record::Recalculate { cpu: CpuId(0) })
}

/// Of that trace.
fn nothing_found() -> Found {
    let (header, record) = one_record();
    let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
    watcher.see(Instant::START, &record);
    Found {
        diagnosis: Diagnosis::of(watcher),
        contents: None,
        header,
    }
}

/// The kinds of the verdicts, and of each whom it is about.
fn verdicts(diagnosis: &Diagnosis) -> BTreeMap<&'static str, Vec<String>> {
    let all = diagnosis.verdicts.iter();
    all.map(|verdict| (verdict.kind.name(), names(verdict)))
        .collect()
}

fn names(verdict: &Verdict) -> Vec<String> {
    verdict.tasks.iter().map(About::shown).collect()
}

/// That there is one verdict: of `kind`, about `tasks`.
fn only(diagnosis: &Diagnosis, kind: Kind, tasks: &[&str]) {
    let mut found = verdicts(diagnosis);
    for about in found.values_mut() {
        about.sort();
    }
    let tasks = tasks.iter().map(|task| (*task).to_owned()).collect();
    assert_eq!(
        found,
        BTreeMap::from([(kind.name(), tasks)]),
        "{diagnosis:#?}"
    );
}

/// That there is no verdict, unless `task`, which is woken all the time, is late.
fn late_at_most(diagnosis: &Diagnosis, task: &str) {
    let found = verdicts(diagnosis);
    let late = BTreeMap::from([(Kind::Latency.name(), vec![task.to_owned()])]);
    assert!(found.is_empty() || found == late, "{diagnosis:#?}");
}

const HOGS: &str = "[task.hog]\ncount = 2\nbody = [{ run = \"1ms\" }]\n";
/// The scheduler that is fair in all of this, where its program was built.
fn fair() -> Option<&'static str> {
    const FAIR: &str = "scx_warmq";
    let missing = worlds::add(Engine::new(None)).missing(LAB, FAIR);
    missing.iter().for_each(|why| eprintln!("SKIPPED: {why}"));
    missing.is_none().then_some(FAIR)
}

#[test]
fn nothing_starves_where_nothing_does() {
    for cpus in ["cpus = 1", "cpus = 2"] {
        if let Some(fair) = fair() {
            assert_eq!(verdicts(&story(HOGS, fair, cpus)), BTreeMap::new());
        }
    }
}

#[test]
fn a_session_beside_a_receiver_is_starved_by_its_group() {
    let receiver = include_str!("../../../scenarios/receiver.toml");
    let found = story(receiver, "eevdf-6.18", "preempt = \"full\"");
    only(&found, Kind::GroupStarved, &["hog"]);
    let text = super::text::of(&Found {
        contents: None,
        header: Header {
            world: "lab".to_owned(),
            scheduler: "eevdf-6.18".to_owned(),
            preemption: "full".to_owned(),
            ..Header::default()
        },
        diagnosis: found,
    });
    insta::assert_snapshot!(text);
    // Under lazy preemption, too, where the waker leaves the wakeup to a CPU with another cache.
    let lazy = |machine| {
        story_on(
            machine,
            receiver,
            "eevdf-6.18",
            "cpus = 2\npreempt = \"lazy\"",
        )
    };
    only(&lazy("tiny-2cpu"), Kind::GroupStarved, &["hog"]);
    late_at_most(&lazy("small-4llc"), "receiver");
    let others = [("eevdf-6.12", ""), ("eevdf-7.1", "preempt = \"full\"")];
    let fair = fair().map(|fair| (fair, ""));
    for (scheduler, settings) in others.into_iter().chain(fair) {
        let found = story(receiver, scheduler, settings);
        late_at_most(&found, "receiver");
    }
}

#[test]
fn a_hog_beside_frequent_sleepers_that_go_first_is_starved_by_them() {
    let law = include_str!("../../../laws/frequent-sleepers.toml");
    let scenario = without_law(law);
    let found = story(&scenario, "broken", "cpus = 1\nfault = \"woken-first\"");
    only(&found, Kind::SleeperPreempts, &["hog"]);
}

#[test]
fn a_kernel_that_forgets_what_sleepers_owe_lets_them_starve_a_hog() {
    let sleepers = include_str!("../../tests/verdicts/sleepers.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.2"] {
        let forgets = "cpus = 1\nplace_lag = false\ndelay_dequeue = false";
        let found = story(sleepers, kernel, forgets);
        only(&found, Kind::SleeperPreempts, &["hog"]);
        let kinds = verdicts(&story(sleepers, kernel, "cpus = 1"));
        let kinds: Vec<&str> = kinds.into_keys().collect();
        assert_eq!(kinds, [Kind::TooMany.name()], "{kernel}");
    }
}

/// A group whose own task elsewhere is runnable and hardly runs: it divides the group's weight all
/// the same.
#[test]
fn a_group_starves_another_whose_own_task_elsewhere_only_waits() {
    let text = include_str!("../../tests/verdicts/group-starves.toml");
    let found = story(text, "eevdf-6.18", "preempt = \"full\"");
    let found = verdicts(&found);
    assert_eq!(found[Kind::GroupStarved.name()], ["victim"], "{found:?}");
    assert!(!found.contains_key(Kind::Unexplained.name()), "{found:?}");
    // It is due what its group is on that CPU, and has it.
    assert_eq!(found[Kind::LeastWeight.name()], ["aside"]);
    let healthy = verdicts(&story(text, "eevdf-7.1", "preempt = \"full\""));
    assert!(
        !healthy.contains_key(Kind::GroupStarved.name()),
        "{healthy:?}"
    );
}

#[test]
fn a_burst_is_reported_with_its_time_whatever_the_mean_says() {
    let text = include_str!("../../tests/verdicts/burst.toml");
    let found = story_for("8s", text, "eevdf-6.18", "preempt = \"full\"");
    only(&found, Kind::GroupStarved, &["victim"]);
    let burst = &found.verdicts[0];
    let ms = |ns: u64| ns / 1_000_000;
    let (from, to) = (ms(burst.when_ns.0), ms(burst.when_ns.1));
    assert!(
        (4_000..4_500).contains(&from) && (5_200..5_900).contains(&to),
        "{from} to {to}"
    );
    assert_eq!((burst.bursts, burst.longest_ns), (1, burst.when_ns));
    assert!(burst.says.contains("from 4."), "{}", burst.says);
    let healthy = story_for("8s", text, "eevdf-7.1", "preempt = \"full\"");
    late_at_most(&healthy, "woken");
}

/// What is due is by the groups that the scheduler knows: with its weight alone in its session a
/// task is due as much as any other session, and with nobody beside it the whole CPU.
#[test]
fn the_least_weight_alone_in_its_session_is_due_what_its_session_is() {
    let text = "[group.a]\nautogroup = true\n[group.b]\nautogroup = true\n[task.nice]\nnice = 10\n\
                group = \"a\"\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n[task.hog]\ngroup = \"b\"\n\
                cpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n[task.alone]\nnice = 10\ngroup = \"b\"\n\
                cpus = \"cpu 1\"\nbody = [{ run = \"1ms\" }]\n";
    let due = |scheduler: &str, name: &str| {
        let found = story(text, scheduler, "");
        let mut all = found.activity.waiting.into_iter();
        let waiting = all.find(|task| task.about.name == name).expect("it waits");
        waiting.due_ns * 100 / (waiting.ran_ns + waiting.waited_ns)
    };
    assert!((45..=55).contains(&due("eevdf-7.1", "nice")));
    // Where sessions have no groups, it is due what its weight is worth: a tenth of the other's.
    assert!((8..=11).contains(&due("o1", "nice")));
}

#[test]
fn the_text_of_a_diagnosis_names_everybody_and_says_who_had_the_rest() {
    let many = "[task.hog]\ncount = 12\nbody = [{ run = \"1ms\" }]\n";
    let found = story(many, "eevdf-7.1", "");
    assert_eq!(found.activity.waiting.len(), 12);
    let header = Header::default();
    let text = super::text::of(&Found {
        header,
        contents: None,
        diagnosis: found.clone(),
    });
    assert!(text.contains("All of them: hog (12: "), "{text}");
    assert!(text.contains("hog (12 of them)"), "{text}");
    let json = serde_json::to_value(&found).unwrap();
    let first = &json["verdicts"][0]["tasks"][0];
    assert!(
        first["name"].as_str().unwrap().starts_with("hog "),
        "{first}"
    );
    assert!(first.as_object().unwrap().contains_key("pid"));
    // A real-time task that has the CPU for most of a wait, and another one that has the rest.
    let urgent = "[task.urgent]\npolicy = \"fifo 50\"\ncpus = \"cpu 0\"\nevery = \"10ms\"\n\
                  body = [{ run = \"8ms\" }]\n[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    let found = story(urgent, "eevdf-7.1", "");
    let because = &found.verdicts[0].because;
    assert!(
        because.contains("They had 8") && because.contains("; the rest: hog "),
        "{because}"
    );
    assert!(!because.contains("group 0"), "{because}");
}

#[test]
fn hogs_that_are_bound_to_one_cpu_beside_an_idle_one_have_too_narrow_an_affinity() {
    let bound = "[task.hog]\ncount = 2\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        let found = story(bound, scheduler, "");
        only(&found, Kind::Affinity, &["hog 0", "hog 1"]);
    }
}

/// No record says whom a scheduler holds back that keeps quotas by itself; that the group has used
/// up what it may is in the recording.
#[test]
fn a_quota_that_a_scheduler_keeps_by_itself_is_one() {
    let Some(fair) = fair() else {
        return;
    };
    let text = "[group.pod]\nquota = \"30ms\"\nperiod = \"100ms\"\n[task.hog]\ncount = 2\ngroup = \"pod\"\n\
                body = [{ run = \"1ms\" }]\n";
    only(&story(text, fair, ""), Kind::Quota, &["hog 0", "hog 1"]);
}

/// A quota that is not used up is no reason to wait beside an idle CPU.
#[test]
fn a_task_with_quota_left_that_is_left_beside_an_idle_cpu_is_reported() {
    let law = include_str!("../../../laws/affinity-widened.toml");
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
    let law = include_str!("../../../laws/affinity-widened.toml");
    let found = story(&without_law(law), "broken", "fault = \"no-balance\"");
    let hogs = ["hog 0", "hog 1", "hog 2", "hog 3"];
    only(&found, Kind::IdleBeside, &hogs);
}

#[test]
fn whoever_has_the_least_weight_waits_for_it() {
    let nice = "[task.hog]\nbody = [{ run = \"1ms\" }]\n[task.least]\nnice = 19\n\
                body = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        only(
            &story(nice, scheduler, "cpus = 1"),
            Kind::LeastWeight,
            &["least"],
        );
    }
    let idle = nice.replace("nice = 19", "policy = \"idle\"");
    only(
        &story(&idle, "eevdf-7.1", "cpus = 1"),
        Kind::LeastWeight,
        &["least"],
    );
    let group = "[group.heavy]\nweight = 1000\n[group.light]\nweight = 50\n[task.hog]\n\
                 group = \"heavy\"\nbody = [{ run = \"1ms\" }]\n[task.least]\ngroup = \"light\"\n\
                 body = [{ run = \"1ms\" }]\n";
    only(
        &story(group, "eevdf-7.1", "cpus = 1"),
        Kind::LeastWeight,
        &["least"],
    );
}

/// The example of the README.
const KEYS: &str = include_str!("../../tests/verdicts/keys.toml");

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

#[test]
fn a_service_beside_containers_of_much_weight_on_few_cpus_is_outweighed() {
    let text = include_str!("../../tests/verdicts/outweighed.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story(text, kernel, "cpus = 1");
        let found = verdicts(&found);
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            ["outweighed"],
            "{kernel}: {found:?}"
        );
    }
    // Eight CPUs of containers divide the weight that kubelet gives them for eight.
    let spread = text.replace(
        "cpus = \"cpu 0\"\nbody = [{ run = \"10ms\" }]",
        "count = 8\nbody = [{ run = \"10ms\" }]",
    );
    let spread = spread.replace("2500", "313");
    for kernel in ["eevdf-6.12", "eevdf-6.18"] {
        let found = verdicts(&story_on("small-4llc", &spread, kernel, ""));
        assert!(!found.contains_key("outweighed"), "{kernel}: {found:?}");
    }
}

#[test]
fn a_quota_that_other_cpus_hold_slices_of_is_reported_with_what_the_kernel_counts() {
    let text = include_str!("../../tests/verdicts/quota-stranded.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story(text, kernel, "");
        let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
        assert_eq!(kinds, [Kind::QuotaStranded.name()], "{kernel}: {found:#?}");
        let verdict = &found.verdicts[0];
        assert!(
            verdict.because.contains("nr_throttled"),
            "{}",
            verdict.because
        );
        // Its cures are ones.
        let of_slice = story(text, kernel, "bandwidth_slice = \"1ms\"");
        assert_eq!(verdicts(&of_slice), BTreeMap::new(), "{kernel}");
        let more = text.replace("6ms", "12ms");
        assert_eq!(
            verdicts(&story(&more, kernel, "")),
            BTreeMap::new(),
            "{kernel}"
        );
    }
}

#[test]
fn a_nice_value_that_has_no_effect_in_another_session_is_reported() {
    let text = include_str!("../../tests/verdicts/nice-in-session.toml");
    let one_session = text.replace("group = \"build\"\n", "group = \"desk\"\n");
    let weighted = text.replacen("[group.build]\n", "[group.build]\nnice = 19\n", 1);
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        only(
            &story(text, kernel, "cpus = 1"),
            Kind::NiceWithoutEffect,
            &["program"],
        );
        for cured in [&one_session, &weighted] {
            only(
                &story(cured, kernel, "cpus = 1"),
                Kind::LeastWeight,
                &["compiler"],
            );
        }
    }
    // O(1) knows no groups: nice has its effect.
    let found = verdicts(&story(text, "o1", "cpus = 1"));
    assert!(
        !found.contains_key(Kind::NiceWithoutEffect.name()),
        "{found:?}"
    );
}

/// Of many who run beside a task two dozen are listed by name, and all count.
#[test]
fn a_nice_value_is_no_reason_where_others_have_most_of_the_cpu() {
    let text = "[group.desk]\nautogroup = true\n[group.build]\nautogroup = true\n\
                [group.others]\nweight = 1000\n\
                [task.program]\ngroup = \"desk\"\nbody = [{ run = \"1ms\" }]\n\
                [task.compiler]\ncount = 12\nnice = 10\ngroup = \"build\"\nbody = [{ run = \"1ms\" }]\n\
                [task.other]\ncount = 40\nstart = \"300ms\"\ngroup = \"others\"\n\
                body = [{ run = \"1ms\" }, { sleep = \"60ms\" }]\n";
    let few = text.replace("count = 40", "count = 4");
    let has = |text: &str, kernel| {
        let found = story(text, kernel, "cpus = 1");
        verdicts(&found).contains_key(Kind::NiceWithoutEffect.name())
    };
    for kernel in ["eevdf-6.12", "eevdf-7.3"] {
        assert_eq!([has(text, kernel), has(&few, kernel)], [false, true]);
    }
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

#[test]
fn a_pair_that_moves_between_caches_is_reported() {
    let pair = "[pipe.there]\n[pipe.back]\n[task.ping]\n\
                body = [{ send = \"there\", bytes = \"1B\" }, { run = \"50us\" }, { receive = \"back\", bytes = \"1B\" }]\n\
                [task.pong]\n\
                body = [{ receive = \"there\", bytes = \"1B\" }, { run = \"50us\" }, { send = \"back\", bytes = \"1B\" }]\n\
                [task.hog]\ncount = 3\nbody = [{ run = \"3ms\" }, { sleep = \"500us\" }]\n";
    let found = story_on("small-4llc", pair, "mq", "");
    assert!(
        verdicts(&found).contains_key(Kind::Moves.name()),
        "{found:#?}"
    );
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story_on("small-4llc", pair, kernel, "");
        assert_eq!(verdicts(&found), BTreeMap::new(), "{kernel}");
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

#[test]
fn a_real_time_task_that_never_sleeps_is_reported() {
    let urgent = "[task.urgent]\npolicy = \"fifo 50\"\ncpus = \"cpu 0\"\nbody = [{ run = \"10ms\" }]\n\
                  [task.hog]\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    let found = story(urgent, "eevdf-6.18", "");
    only(&found, Kind::Realtime, &["hog"]);
    let because = &found.verdicts[0].because;
    assert!(
        because.contains("of CPU 0 in all, and left 5."),
        "{because}"
    );
}

#[test]
fn a_deadline_task_whose_runtime_is_used_up_is_reported() {
    let reserved =
        "[task.reserved]\npolicy = \"deadline 10ms 50ms\"\nbody = [{ run = \"10ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-6.18"]) {
        let found = story(reserved, scheduler, "");
        only(&found, Kind::Reservation, &["reserved"]);
    }
}

#[test]
fn interrupts_that_have_the_cpu_are_reported() {
    let flood = "[datagram.socket]\n[source.network]\nto = \"socket\"\nbytes = \"64B\"\n\
                 rate = \"400000 per s\"\n[task.receiver]\nbody = [{ receive = \"socket\" }]\n\
                 [task.hog]\nbody = [{ run = \"1ms\" }]\n";
    let Some(fair) = fair() else {
        return;
    };
    let found = story(flood, fair, "cpus = 1");
    let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
    assert_eq!(kinds, [Kind::Interrupts.name()], "{found:#?}");
}

#[test]
fn a_quota_that_holds_a_group_back_is_reported() {
    let limited = "[group.limited]\nquota = \"20ms\"\nperiod = \"100ms\"\n[task.hog]\ncount = 2\n\
                   group = \"limited\"\nbody = [{ run = \"1ms\" }]\n";
    // A compiled scheduler keeps quotas by itself, and nothing records whom it holds back.
    let found = story(limited, "eevdf-7.1", "");
    only(&found, Kind::Quota, &["hog 0", "hog 1"]);
}

#[test]
fn too_many_tasks_that_have_their_turns_are_reported() {
    let many = "[task.hog]\ncount = 12\nbody = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        let found = story(many, scheduler, "");
        let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
        assert_eq!(kinds, [Kind::TooMany.name()], "{found:#?}");
        assert_eq!(found.verdicts[0].tasks.len(), 12);
    }
}

#[test]
fn who_starves_for_no_known_reason_starves_all_the_same() {
    // Whoever became runnable last goes first: of three hogs of one weight one gets nothing.
    let three = "[task.hog]\ncount = 3\nbody = [{ run = \"1ms\" }]\n";
    let found = story(three, "broken", "cpus = 1\nfault = \"lifo\"");
    let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
    assert_eq!(kinds, [Kind::Unexplained.name()], "{found:#?}");
}

#[test]
fn a_diagnosis_and_its_page_are_written_beside_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let found = nothing_found();
    let page = super::page::page(&found, &[], std::path::Path::new("it.warmq"));
    assert!(
        page.contains(&super::text::nothing(&found.diagnosis)),
        "{page}"
    );
    let file = folder.path().join("it.warmq");
    let mut writer = warmq_trace::file::Writer::new(Vec::new(), &found.header);
    writer.see(Instant::START, &one_record().1);
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    let span = super::Span {
        from: Instant::START,
        until: Instant(u64::MAX),
    };
    let again = super::of_file(&file, span).unwrap();
    assert_eq!(again.diagnosis, found.diagnosis);
    let recording = Recording::open(&file).unwrap();
    super::write(&again, &recording, folder.path(), true).unwrap();
    assert!(folder.path().join("diagnosis.html").exists());
    let json = std::fs::read_to_string(folder.path().join("diagnosis.json")).unwrap();
    assert!(json.starts_with("{\"window\":"), "{json}");
}

#[test]
fn what_is_no_trace_or_cut_off_is_refused_with_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("it.warmq");
    let span = super::Span {
        from: Instant::START,
        until: Instant(u64::MAX),
    };
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        match super::of_file(&file, span) {
            Err(Failure::Usage(what, _)) => what,
            _ => panic!("{} bytes are not refused", bytes.len()),
        }
    };
    assert!(refused(b"no trace").contains("this is text"));
    let writer = warmq_trace::file::Writer::new(Vec::new(), &Header::default());
    let whole = writer.finish().unwrap();
    for end in 0..whole.len() {
        let said = refused(&whole[..end]);
        let expected = match end {
            0 => ": this is an empty file, and no recording that is read here".to_owned(),
            // Not all of what recordings begin with.
            1..8 => {
                ": this is data of no format that is known here, and no recording that is read here"
                    .to_owned()
            }
            _ => format!(
                ": the trace is cut off; copy it again, or record it again and let the run finish \
                 (byte {end}, after 0 whole records)"
            ),
        };
        assert_eq!(said, format!("{}{expected}", file.display()));
    }
}

/// The scenario of a law.
fn without_law(text: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line.starts_with("[law]") || line.starts_with("[[law.");
        }
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// What laws provoke that are kept, and why that is right.
const OF_LAWS: &[(&str, &[Kind])] = &[
    // They are about weights, and who has the least of them waits for four fifths of the time.
    ("nice-on-two-cpus", &[Kind::LeastWeight]),
    ("weights", &[Kind::LeastWeight]),
    ("unusable-weights", &[Kind::LeastWeight]),
    // Of a hundred tasks on one CPU one has the least weight.
    ("least-weight", &[Kind::LeastWeight, Kind::TooMany]),
    // They have four tasks and more for each CPU that these may use, which have their turns.
    ("nested", &[Kind::TooMany]),
    ("one-against-many", &[Kind::TooMany]),
    ("frequent-sleepers", &[Kind::TooMany]),
    ("behind-pinned", &[Kind::TooMany]),
    ("fork-storm", &[Kind::TooMany]),
    ("lying-hints", &[Kind::TooMany]),
    // Six hogs bind themselves to one of two CPUs and to the other all the time.
    ("changes", &[Kind::TooMany]),
    // They are about quotas.
    ("quota", &[Kind::Quota]),
    ("quota-sleepers", &[Kind::Quota]),
    // Three want a CPU each, and have a fifth of one; two have what a server leaves them.
    ("deadline", &[Kind::Realtime, Kind::Reservation]),
    // A server leaves the task beside the real-time one 5 %.
    ("real-time-hog-pinned", &[Kind::Realtime]),
    // Receivers that run for some us wait for a turn of a hog, or for some.
    ("receiver-beside-hog", &[Kind::Latency]),
    ("receiver-beside-hogs", &[Kind::Latency]),
    ("other-session", &[Kind::Latency]),
    ("other-cgroup", &[Kind::Latency]),
];

/// The same under the scheduler of 6.18.
fn of_laws_under_eevdf() -> Vec<(&'static str, &'static [Kind])> {
    let others = ["changes", "fork-storm", "nice-on-two-cpus"];
    let of_both = OF_LAWS.iter().filter(|(law, _)| !others.contains(law));
    let more: [(&str, &[Kind]); 5] = [
        // Its task that is woken by a timer waits for 12 ms, where 8 are the bound.
        ("timer-same-group", &[Kind::Latency, Kind::TooMany]),
        // Who is woken there runs for 20 to 60 us, and waits for a tick.
        ("timer", &[Kind::Latency]),
        ("wake-chain", &[Kind::Latency]),
        // Forkers run for a quarter of a millisecond between children, and wait for 4 ms.
        ("fork-storm", &[Kind::Latency]),
        // By their weights, four of the six hogs are on one of the two CPUs.
        ("nice-on-two-cpus", &[Kind::LeastWeight, Kind::TooMany]),
    ];
    of_both.copied().chain(more).collect()
}

/// The same under the compiled scx_warmq.
fn of_laws_under_a_compiled_one() -> Vec<(&'static str, &'static [Kind])> {
    // The parent waits for 9 ms between its children.
    let more: (&str, &[Kind]) = ("forks", &[Kind::Latency, Kind::TooMany]);
    OF_LAWS.iter().copied().chain([more]).collect()
}

#[test]
fn laws_that_are_kept_provoke_no_other_verdicts_than_they_are_made_for() {
    let Some(fair) = fair() else {
        return;
    };
    let wrong = falsely_judged(fair, None, &of_laws_under_a_compiled_one());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn laws_that_the_kernel_keeps_provoke_no_other_verdicts_under_it_either() {
    let wrong = falsely_judged("kernel", Some("6.18"), &of_laws_under_eevdf());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Plays all laws under a scheduler of the lab: a sentence for each whose verdicts are not those
/// that are expected.
fn falsely_judged(
    scheduler: &str,
    kernel: Option<&str>,
    expected_of: &[(&str, &[Kind])],
) -> Vec<String> {
    let laws = all_shipped().unwrap();
    let column = Column {
        world: World::Lab,
        kernel: kernel.map(str::to_owned),
        preempt: None,
        scheduler: scheduler.to_owned(),
        alike: false,
    };
    let mut wrong = Vec::new();
    for law_of in &laws {
        let law = &law_of.law;
        let engine = worlds::add(Engine::new(None));
        engine.know(&workload(law), &law_of.text).unwrap();
        let case = Case::new(law_of, &column, &engine, None, 1).unwrap();
        let expected = expected_of.iter().find(|(name, _)| *name == law.name);
        let expected: Vec<&str> = expected
            .into_iter()
            .flat_map(|(_, kinds)| kinds.iter().map(|kind| kind.name()))
            .collect();
        for job in case.jobs() {
            let found = diagnosed(&engine, &job.plan);
            let mut kinds: Vec<&str> = found
                .verdicts
                .iter()
                .map(|verdict| verdict.kind.name())
                .collect();
            kinds.sort_unstable();
            kinds.dedup();
            if kinds != expected {
                let says: Vec<&str> = found
                    .verdicts
                    .iter()
                    .map(|verdict| verdict.says.as_str())
                    .collect();
                wrong.push(format!("{}: {kinds:?}: {}", law.name, says.join(" | ")));
            }
        }
    }
    wrong
}
