//! Scenarios as simulated tasks.

use std::collections::BTreeMap;

use warmq_config::Chosen;
use warmq_kernel::{Boot, Ending, Kernel};
use warmq_play::{Counters, Entry, workloads};
use warmq_units::Bytes;

use crate::stage::*;
use crate::told::figures_on;

/// `text` as a workload called story.
pub fn story(text: &str) -> Entry {
    let entry = Entry::of_scenario("story", "story.toml", text);
    entry.unwrap_or_else(|problems| panic!("{problems}"))
}

/// `text` played on `cpus` CPUs for `ticks` ticks.
pub fn played(text: &str, cpus: u16, ticks: u64) -> (Ending, Kernel<Watch>, Counters) {
    play(&story(text), stage(cpus), ticks)
}

/// What is played without costs may work without end while time stands still; shipped scenarios
/// are played with them.
fn play(entry: &Entry, stage: Stage, ticks: u64) -> (Ending, Kernel<Watch>, Counters) {
    let stage = stage.altered(|machine| machine.memory.size = Bytes::from_mb(1_024));
    play_under("linux24", entry, stage, ticks)
}

pub fn play_under(
    name: &str,
    entry: &Entry,
    stage: Stage,
    ticks: u64,
) -> (Ending, Kernel<Watch>, Counters) {
    let counters = Counters::default();
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).expect("nothing is chosen");
    let workload = entry
        .build(&chosen, &stage.site(), &counters)
        .expect("its defaults are sound");
    let start = |boot: &mut Boot<'_>| workload.start(boot);
    let (ending, kernel) = stage.plays(scheduler(name, &[]), ticks * 10, start);
    (ending, kernel, counters)
}

pub fn chart(text: &str, cpus: u16, ticks: u64) -> Vec<String> {
    let (_, kernel, _) = played(text, cpus, ticks);
    let end = warmq_units::Instant::START + ms(ticks * 10);
    kernel.observer().0.0.lines_until(end)
}

/// A tick is 10 ms, and a letter stands for each.
#[test]
fn a_hog_runs_for_ever_and_a_periodic_task_by_its_period() {
    let text = r#"
        [task.hog]
        cpus = "cpu 0"
        body = [{ run = "10ms" }]

        [task.periodic]
        cpus = "cpu 1"
        every = "40ms"
        body = [{ run = "20ms" }]

        [task.late]
        cpus = "cpu 1"
        start = "60ms"
        times = 1
        body = [{ run = "1000000 cycles" }]
    "#;
    assert_eq!(chart(text, 2, 12), ["hhhhhhhhhhhh", "pp..ppl.pp.."]);
}

#[test]
fn a_loop_counts_its_rounds_and_leaves_out_what_it_is_told_to() {
    let text = r#"
        [settings]
        rounds = 4
        [task.t]
        for = { row = 3 }
        times = 2
        body = [
          { repeat = "rounds", as = "i", body = [{ count = "sum", by = "i * 10 + row" }] },
          { each = "other", of = "rounds", except = 3, body = [{ count = "others", by = "other" }] },
          { repeat = 0, body = [{ count = "never" }] },
        ]
    "#;
    let (ending, _, counters) = played(text, 1, 5);
    assert_eq!(ending, Ending::WorkDone);
    // Twice, for each row: 10 * (0 + 1 + 2 + 3) + 4 * row, and 0 + 1 + 2.
    assert_eq!(counters.get("sum"), 2 * (3 * 60 + 4 * (1 + 2)));
    assert_eq!(counters.get("others"), 2 * 3 * 3);
    assert_eq!((counters.get("never"), counters.get("rounds")), (0, 6));
}

#[test]
fn a_run_ends_without_tasks_in_the_background_unless_all_are() {
    let hog = "[task.hog]\nbackground = true\nbody = [{ run = \"1ms\" }]\n";
    let (ending, _, _) = played(hog, 1, 5);
    assert_eq!(ending, Ending::TimeUp);
    let worker = "[task.worker]\ntimes = 2\nbody = [{ sleep = \"20ms\" }]";
    let (ending, _, counters) = played(&format!("{hog}{worker}"), 1, 500);
    assert_eq!(ending, Ending::WorkDone);
    assert!(counters.get("rounds") > 2, "the hog ran, too");
}

#[test]
fn nothing_is_lost_in_queues_pipes_streams_and_at_barriers() {
    let text = r#"
        [queue.q]
        holds = 2
        [pipe.p]
        [stream.s]
        buffer = "100B"
        [barrier.b]
        tasks = 3
        [task.producer]
        count = 2
        times = 30
        body = [{ put = "q" }, { count = "put" }]
        [task.middle]
        times = 60
        body = [{ take = "q" }, { send = "p", bytes = "7B" }, { receive = "s.far", bytes = "70B" }, { count = "through" }]
        [task.end]
        times = 60
        body = [{ receive = "p", bytes = "7B" }, { send = "s.near", bytes = "70B" }]
        [task.walker]
        for = { pace = 3 }
        times = 5
        body = [{ run = "pace * 1ms + 1ms" }, { barrier = "b" }, { count = "steps" }]
    "#;
    let (ending, _, counters) = played(text, 2, 100);
    assert_eq!(ending, Ending::WorkDone);
    let counts = ["put", "through", "steps"].map(|name| counters.get(name));
    assert_eq!(counts, [60, 60, 15]);
}

#[test]
fn a_source_sends_so_many_datagrams_and_threads_and_processes_start_others() {
    let text = r#"
        [datagram.d]
        buffer = "64KB"
        [source.outside]
        to = "d"
        bytes = "64B"
        rate = "1000 per s"
        packets = 20
        [task.receiver]
        body = [{ receive = "d" }, { count = "received" }]
        [task.parent]
        times = 1
        body = [{ spawn = "thread" }, { fork = "process" }]
        [task.thread]
        spawned = true
        times = 1
        body = [{ run = "1ms" }, { count = "threads" }]
        [task.process]
        spawned = true
        times = 1
        body = [{ run = "1ms" }, { count = "processes" }]
    "#;
    let (_, _, counters) = played(text, 2, 20);
    let counts = ["received", "threads", "processes"].map(|name| counters.get(name));
    assert_eq!(counts, [20, 1, 1]);
}

#[test]
fn a_source_stops_continues_and_takes_another_rate() {
    let text = r#"
        [datagram.d]
        buffer = "64KB"
        [source.outside]
        for = { n = 2 }
        to = "d"
        bytes = "64B"
        every = "1ms"
        start = "n * 500ms"
        [task.receiver]
        body = [{ receive = "d" }, { count = "received" }]
        [[change]]
        at = "20ms"
        source = "outside[0]"
        set = { stop = true }
        [[change]]
        at = "50ms"
        source = "outside[0]"
        set = { continue = true }
        [[change]]
        every = "100ms"
        end = "150ms"
        source = "outside"
        set = { rate = "100 per s" }
    "#;
    // From 0 to 19 ms, from 50 to 99 ms, and each 10 ms from 110 to 190 ms; the second has not
    // started yet, and starts when it would have.
    assert_eq!(played(text, 2, 20).2.get("received"), 20 + 50 + 9);
    // The first goes on to 690 ms; the second sends at 500 ms first, and with the new rate.
    assert_eq!(played(text, 2, 70).2.get("received"), 20 + 50 + 59 + 20);
}

/// The reader looks at the first and the last round only.
#[test]
fn a_number_that_cannot_be_computed_ends_the_run_with_its_place() {
    let text = r#"
        [settings]
        hole = 2
        [task.t]
        times = 1
        body = [{ repeat = 5, as = "i", body = [{ run = "10ms / ((i - hole) * (i - hole))" }] }]
    "#;
    let (ending, ..) = played(text, 1, 100);
    let text = ending.to_string();
    let parts = ["story.toml:6", "task.t.body[0]", "divides by zero"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

/// Nothing is dropped in silence: what the machine cannot do ends the run at its start.
#[test]
fn what_the_machine_lacks_is_refused() {
    let change = r#"
        [task.t]
        body = [{ run = "1ms" }]
        [[change]]
        at = "10ms"
        cpu = "cpu 7"
        set = { online = false }
    "#;
    let (ending, ..) = played(change, 1, 100);
    let text = ending.to_string();
    assert!(
        text.contains("it has a change of CPUs that the machine lacks"),
        "{text}"
    );
    // Bound to no CPU at all, it would run anywhere.
    let (ending, ..) = played(
        "[task.t]\ncpus = \"cpu 7\"\nbody = [{ run = \"1ms\" }]",
        2,
        100,
    );
    let text = ending.to_string();
    assert!(
        text.contains("it has the task t, whose `cpus` the machine lacks"),
        "{text}"
    );
}

#[test]
fn every_shipped_scenario_does_its_work() {
    for entry in workloads() {
        // Most have done some after a second; some start thousands of tasks first.
        let done = [100, 400].into_iter().any(|ticks| {
            let (ending, _, counters) = play(entry, stage(4).real(), ticks);
            let fine = matches!(ending, Ending::TimeUp | Ending::WorkDone);
            assert!(fine, "{}: {ending}", entry.name);
            counters.get(&entry.work) > 0
        });
        assert!(done, "{}: no {}", entry.name, entry.work);
    }
}

/// A round of 50 ms of a timer of 20 ms: the one that is relative counts on from when it came too
/// late, the absolute one makes up for it.
#[test]
fn a_timer_that_was_missed_counts_on_from_now_or_makes_up_for_it() {
    let text = |mode: &str| {
        format!(
            r#"
            [timer.tick]
            mode = "{mode}"

            [task.late]
            cpus = "cpu 0"
            times = 1
            body = [
              {{ repeat = 2, body = [{{ run = "10ms" }}, {{ timer = "tick", period = "20ms" }}] }},
              {{ run = "30ms" }}, {{ timer = "tick", period = "20ms" }},
              {{ repeat = 3, body = [{{ run = "10ms" }}, {{ timer = "tick", period = "20ms" }}] }},
            ]
            "#
        )
    };
    assert_eq!(chart(&text("relative"), 1, 14), ["l.l.llll.l.l.."]);
    assert_eq!(chart(&text("absolute"), 1, 14), ["l.l.lllll.l..."]);
}

/// Each task has its own timers, or all wait for the next expiry of one.
#[test]
fn a_shared_timer_wakes_one_user_after_the_other() {
    let text = |shared: bool| {
        format!(
            "[timer.tick]\nshared = {shared}\n\
             [task.user]\ncount = 2\ncpus = \"cpu 0\"\n\
             body = [{{ timer = \"tick\", period = \"40ms\" }}, {{ run = \"10ms\" }}]\n"
        )
    };
    assert_eq!(chart(&text(false), 1, 12), ["....uu..uu.."]);
    assert_eq!(chart(&text(true), 1, 16), ["....u...u...u..."]);
}

/// Scripts of rt-app: two threads that wake each other, and one whose period stays though it is
/// delayed once.
#[test]
fn scripts_of_rt_app_are_played() {
    let scripted = |text: &str, ticks| {
        let entry = Entry::of_scenario("story", "story.json", text);
        let entry = entry.unwrap_or_else(|problems| panic!("{problems}"));
        let (_, kernel, _) = play(&entry, stage(1), ticks);
        let end = warmq_units::Instant::START + ms(ticks * 10);
        kernel.observer().0.0.lines_until(end)
    };
    let woken = r#"{ "tasks" : {
        "ann" : { "run" : 10000, "resume" : "bob", "suspend" : "ann", "sleep" : 10000 },
        "bob" : { "suspend", "run" : 20000, "resume" : "ann" },
    } }"#;
    assert_eq!(scripted(woken, 12), ["abb.abb.abb."]);
    let delayed = r#"{ "tasks" : {
        "timed" : { "run" : 10000, "timer" : { "ref" : "unique", "period" : 40000 } },
        "fast" : { "policy" : "SCHED_FIFO", "delay" : 70000, "loop" : 1, "run" : 20000 },
    }, "global" : { "duration" : 1 } }"#;
    assert_eq!(scripted(delayed, 16), ["t...t..fft..t..."]);
}

/// A script as those of Arm are: a task begins light on a little CPU, grows heavy, and is moved to
/// a big one, where it is done sooner; one that is held back stays.
#[test]
fn a_script_of_rt_app_migrates_a_heavy_task_up() {
    let text = |keys: &str| {
        format!(
            r#"{{ "tasks" : {{ "grows" : {{ {keys}
                "phases" : {{
                    "light" : {{ "cpus" : [0], "loop" : 10, "run" : 1000, "timer" : {{ "ref" : "unique", "period" : 16000 }} }},
                    "heavy" : {{ "cpus" : [0, 1, 2, 3], "loop" : 1, "run" : 400000 }}
                }} }} }}, "global" : {{ "duration" : 2 }} }}"#
        )
    };
    let busy_at_the_end = |keys: &str| {
        let entry = Entry::of_scenario("story", "story.json", &text(keys));
        let entry = entry.unwrap_or_else(|problems| panic!("{problems}"));
        let unlike = stage(4).sharing(2).altered(|machine| {
            machine.cpus.iter_mut().for_each(|place| place.socket = 0);
            machine.capacities = vec![446, 446, 1_024, 1_024];
            machine.memory.size = Bytes::from_mb(1_024);
        });
        let (_, kernel, _) = play_under("eevdf-7.3", &entry, unlike, 50);
        let end = warmq_units::Instant::START + ms(500);
        let lines = kernel.observer().0.0.lines_until(end);
        lines.iter().position(|line| line.ends_with('g'))
    };
    assert!(
        busy_at_the_end("").is_some_and(|cpu| cpu >= 2),
        "it needs a big one"
    );
    assert!(
        busy_at_the_end("\"util_max\" : 400,").is_some_and(|cpu| cpu < 2),
        "held back"
    );
}

/// What spins counts the time that others run, what runs does not.
#[test]
fn spinning_ends_with_the_time_and_not_with_the_work() {
    let text = |step: &str| {
        format!(
            r#"
            [task.busy]
            cpus = "cpu 0"
            policy = "fifo 10"
            times = 1
            start = "20ms"
            body = [{{ run = "20ms" }}]

            [task.spin]
            name = "spins"
            cpus = "cpu 0"
            times = 1
            body = [{{ {step} = "50ms" }}]
            "#
        )
    };
    assert_eq!(chart(&text("run"), 1, 8), ["ssbbsss."]);
    assert_eq!(chart(&text("spin"), 1, 8), ["ssbbs..."]);
}

#[test]
fn a_task_sets_its_own_cpus_and_policy() {
    let text = r#"
        [task.hog]
        cpus = "cpu 0"
        body = [{ run = "10ms" }]

        [task.moves]
        cpus = "cpu 1"
        times = 1
        body = [
          { run = "20ms" },
          { policy = "fifo 10" },
          { cpus = "cpu 0" },
          { run = "30ms" },
          { cpus = "cpu 1" },
          { run = "10ms" },
        ]
    "#;
    assert_eq!(chart(text, 2, 8), ["hhmmmhhh", "mm...m.."]);
}

/// Who raises a semaphore and lowers it at once overtakes those that are still being woken, unless
/// it is lowered for them.
#[test]
fn a_semaphore_that_is_handed_over_is_had_in_turn() {
    let text = "[semaphore.s]\ninitial = 1\n[task.a]\ncount = 4\n\
        body = [{ lower = \"s\" }, { run = \"1ms\" }, { raise = \"s\" }]";
    let shares = |hands_over| {
        let mut stage = stage(2);
        stage.settings.semaphores_hand_over = hands_over;
        let figures = figures_on(stage, "eevdf-6.18", text, 100);
        (figures["a_share_least"], figures["a_share_most"])
    };
    let (least, most) = shares(true);
    assert!(least > 24.0 && most < 26.0, "{least} {most}");
    let (least, most) = shares(false);
    assert!(least < 10.0 && most > 40.0, "{least} {most}");
}
