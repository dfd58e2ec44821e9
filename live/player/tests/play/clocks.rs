//! Steps that look at the clock, files, and what tasks set of themselves.

use warmq_trace::{Policy, Record};
use warmq_units::{CpuId, Duration, TaskId};

use crate::support::{Played, ms, play, play_ms};

#[test]
fn a_spin_ends_when_its_time_has_passed() {
    let text = "
        [task.one]
        times = 5
        body = [{ begin = \"spin\" }, { spin = \"2ms\" }, { end = \"spin\" }, { spin = \"0ms\" }]";
    let spans = play_ms(text, 20_000).spans("spin");
    assert_eq!(spans.len(), 5);
    let long = |(begin, end): &(_, warmq_units::Instant)| end.since(*begin) >= Duration::from_ms(2);
    assert!(spans.iter().all(long), "{spans:?}");
}

#[test]
fn a_span_begins_when_its_round_or_timer_was_due_though_the_task_comes_later() {
    // A round takes three periods: the n-th is due after n of them, and begins after 3 n.
    let text = "
        [task.one]
        times = 4
        every = \"1ms\"
        body = [{ begin = \"key\", due = true }, { spin = \"3ms\" }, { end = \"key\" }]";
    let spans = play_ms(text, 20_000).spans("key");
    assert_eq!(spans.len(), 4);
    for (number, (begin, end)) in (0..).zip(&spans) {
        assert_eq!(begin.since(spans[0].0), Duration::from_ms(number));
        assert!(
            end.since(*begin) >= Duration::from_ms(3 + 2 * number),
            "{spans:?}"
        );
    }
    let text = "
        [timer.t]
        mode = \"absolute\"
        [task.one]
        times = 4
        body = [{ timer = \"t\", period = \"1ms\" }, { begin = \"key\", due = true }, { spin = \"3ms\" }, { end = \"key\" }]";
    let spans = play_ms(text, 20_000).spans("key");
    let begins = spans.iter().map(|(begin, _)| begin.since(spans[0].0));
    assert!(begins.eq((0..4).map(Duration::from_ms)), "{spans:?}");
}

/// When each round of `one` began, if a round waits for a timer of this kind.
fn rounds(timer: &str, body: &str) -> Vec<warmq_units::Instant> {
    let text = format!(
        "[timer.t]\n{timer}\n[task.one]\ntimes = 6\nsetup = [{{ sleep = \"3ms\" }}]\n
        body = [{{ begin = \"round\" }}, {body}, {{ timer = \"t\", period = \"5ms\" }}, {{ end = \"round\" }}]"
    );
    let spans = play_ms(&text, 20_000).spans("round");
    assert_eq!(spans.len(), 6);
    spans.into_iter().map(|(begin, _)| begin).collect()
}

#[test]
fn an_absolute_timer_keeps_its_times_and_a_relative_one_at_least_its_distance() {
    let busy = "{ run = \"10us\" }";
    for timer in ["mode = \"absolute\"", "mode = \"absolute\"\nshared = true"] {
        let begins = rounds(timer, busy);
        for (number, begin) in (0..).zip(&begins) {
            assert!(*begin >= ms(3 + 5 * number), "{timer}: {begins:?}");
        }
    }
    for timer in ["", "shared = true"] {
        let begins = rounds(timer, busy);
        let distances = begins.windows(2).map(|pair| pair[1].since(pair[0]));
        // The end of one period and the begin of the next round are not read at the same time.
        let all = distances.clone().sum::<Duration>();
        assert!(all >= Duration::from_ms(24), "{timer}: {begins:?}");
    }
}

#[test]
fn who_comes_too_late_for_a_timer_does_not_sleep() {
    // Each round takes three periods: an absolute timer falls behind and never sleeps.
    let text = "
        [timer.t]
        mode = \"absolute\"
        [task.one]
        times = 4
        body = [
          { sleep = \"3ms\" },
          { begin = \"wait\" }, { timer = \"t\", period = \"1ms\" }, { end = \"wait\" },
          { count = \"rounds-done\" },
        ]";
    assert_eq!(play_ms(text, 20_000).counted("rounds-done"), 4);
}

#[test]
fn all_users_of_a_shared_timer_take_turns() {
    // Three tasks use one timer of 4 ms: each of the 12 uses takes a period of its own.
    let text = "
        [timer.t]
        shared = true
        mode = \"absolute\"
        [task.one]
        count = 3
        times = 4
        body = [{ timer = \"t\", period = \"4ms\" }, { begin = \"used\" }, { end = \"used\" }]";
    let spans = play_ms(text, 20_000).spans("used");
    assert_eq!(spans.len(), 12);
    let mut begins: Vec<_> = spans.into_iter().map(|(begin, _)| begin).collect();
    begins.sort_unstable();
    for (number, begin) in (1..).zip(&begins) {
        assert!(*begin >= ms(4 * number), "{number}: {begins:?}");
    }
}

#[test]
fn what_is_written_to_a_file_is_appended_and_a_new_file_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    std::fs::write(&old, "before").expect("written");
    let text = format!(
        "[file.old]\npath = {old:?}\n[file.new]\npath = {new:?}\n[file.null]\npath = \"/dev/null\"\n
        [task.one]\ncount = 2\ntimes = 3\nbody = [
          {{ write = \"old\", bytes = \"100KB\" }}, {{ write = \"new\", bytes = \"10B\" }},
          {{ write = \"null\", bytes = \"1MB\" }},
        ]"
    );
    let played = play_ms(&text, 20_000);
    assert_eq!(played.counted("rounds"), 6);
    let text = std::fs::read(&old).expect("a file");
    assert_eq!(text.len(), 6 + 6 * (100 << 10));
    assert_eq!(&text[..6], b"before");
    assert!(!new.exists(), "the run has made it");
}

#[test]
fn a_file_that_cannot_be_written_is_refused_with_its_name() {
    for (path, why) in [
        ("/nowhere/x", "No such file"),
        ("/proc", "directory"),
        ("/proc/self/nothing", "`log` cannot be opened"),
    ] {
        let text = format!(
            "[file.log]\npath = \"{path}\"\n[task.one]\nbody = [{{ write = \"log\", bytes = \"1B\" }}]"
        );
        let played = play(&text, "");
        assert_eq!(played.code, Some(4), "{path}: {}", played.said);
        let said = &played.said;
        assert!(
            said.contains("`log` cannot be opened") && said.contains(why),
            "{said}"
        );
    }
}

#[test]
fn a_full_device_ends_the_run_with_a_reason() {
    let text = "[file.full]\npath = \"/dev/full\"\n[task.one]\nbody = [{ write = \"full\", bytes = \"1B\" }]";
    let played = play(text, "--warmup 0s --time 5s");
    assert_eq!(played.code, Some(3));
    assert!(
        played
            .said
            .contains("`one`, at `task.one.body[0].write`: `full` fails"),
        "{}",
        played.said
    );
}

fn has(played: &Played, wanted: Record) {
    assert!(played.all().any(|record| *record == wanted), "{wanted:?}");
}

/// A kernel that clamps no utilization is named by what it lacks, whoever asks for it.
#[test]
fn utilization_is_clamped_or_the_kernel_lacks_that() {
    let kind = "[task.one]\nuclamp_min = 100\ntimes = 1\nbody = [{ run = \"1us\" }]";
    let step = "[task.one]\ntimes = 1\nbody = [{ uclamp_max = 600 }, { run = \"1us\" }]";
    let change = "[task.one]\ntimes = 1\nbody = [{ sleep = \"100ms\" }]\n
        [[change]]\nat = \"10ms\"\ntask = \"one\"\nset = { uclamp_min = 50, uclamp_max = 700 }";
    for text in [kind, step, change] {
        let played = play(text, "--warmup 0s --time 5s");
        let clamps = played.code == Some(0);
        let refused = played.code == Some(4) && played.said.contains("CONFIG_UCLAMP_TASK");
        assert!(clamps || refused, "{text}: {}", played.said);
    }
}

#[test]
fn what_tasks_set_of_themselves_is_told() {
    let text = "
        [task.one]
        times = 1
        body = [
          { cpus = \"cpu 0\" }, { policy = \"batch\" }, { slice = \"3ms\" }, { nice = 4 },
          { run = \"1us\" }, { cpus = \"all\" },
        ]";
    let played = play_ms(text, 20_000);
    let task = TaskId(0);
    let from = CpuId(0);
    has(
        &played,
        Record::Affinity {
            task,
            from,
            cpus: 1,
        },
    );
    let (policy, priority) = (Policy::Batch, 0);
    has(
        &played,
        Record::Policy {
            task,
            policy,
            priority,
        },
    );
    let slice = Duration::from_ms(3);
    has(&played, Record::Slice { task, slice });
    has(&played, Record::Nice { task, nice: 4 });
    let masks = played
        .all()
        .filter(|record| matches!(record, Record::Affinity { .. }));
    assert!(masks.count() >= 2, "at its beginning it may use all CPUs");
}

#[test]
fn a_task_that_binds_itself_to_cpus_that_are_not_there_is_named() {
    let text = "[task.one]\nbody = [{ cpus = \"cpu 4000\" }, { run = \"1us\" }]";
    let played = play(text, "--warmup 0s --time 5s");
    assert_eq!(played.code, Some(4), "{}", played.said);
    assert!(
        played.said.contains("`one` does not get `cpus`"),
        "{}",
        played.said
    );
}

#[test]
fn a_task_moves_itself_into_a_group() {
    let text = "
        [group.g]
        for = { n = 2 }
        [task.one]
        times = 1
        body = [{ group = \"g[1]\" }, { run = \"1us\" }]";
    let played = play(text, "--warmup 0s --time 5s");
    if played.code == Some(4) {
        println!("skipped: {}", played.said);
        return;
    }
    let (task, group) = (TaskId(0), 2);
    has(&played, Record::Group { task, group });
}
