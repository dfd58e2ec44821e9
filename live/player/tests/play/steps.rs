//! Steps that a task does by itself.

use warmq_trace::Record;
use warmq_units::{Duration, TaskId};

use crate::support::{Played, ms, play, play_ms};

/// How long a task has run at the end.
fn ran(played: &Played, wanted: TaskId) -> Duration {
    let ran = |record: &Record| match *record {
        Record::Ran { task, total } if task == wanted => Some(total),
        _ => None,
    };
    played
        .all()
        .filter_map(ran)
        .last()
        .expect("a task that has run")
}

#[test]
fn a_task_computes_for_the_time_that_it_says() {
    let played = play_ms("[task.one]\ntimes = 5\nbody = [{ run = \"2ms\" }]", 5_000);
    assert_eq!(played.counted("rounds"), 5);
    // The loop was calibrated at its fastest; a clock that is faster now saves less than half.
    assert!(
        ran(&played, TaskId(0)) >= Duration::from_ms(5),
        "{:?}",
        played.records
    );
}

#[test]
fn amounts_are_drawn_for_each_round_and_cycles_are_work_too() {
    let text = "
        [task.drawn]
        times = 20
        body = [
          { run = { uniform = [\"10us\", \"20us\"] } },
          { run = { exponential = \"5us\" } },
          { run = { pareto = \"1us\", shape = \"1.5\", stream = \"shared\" } },
          { run = { among = [\"1us\", \"2us\"], stream = \"shared\" } },
          { run = \"2000 cycles\" },
        ]";
    assert_eq!(play_ms(text, 5_000).counted("rounds"), 20);
}

#[test]
fn memory_is_touched_in_each_pattern() {
    let text = "
        [region.data]
        for = { n = 3 }
        bytes = \"10KB\"
        [task.one]
        times = 3
        body = [
          { touch = \"data[0]\" },
          { touch = \"data[1]\", lines = 1000, first = 7, pattern = \"stride 3\", write = \"50%\" },
          { repeat = 3, as = \"n\", body = [
            { touch = \"data[n]\", bytes = \"1KB\", pattern = \"random\", write = \"100%\" },
            { count = \"touched\" },
          ] },
        ]";
    assert_eq!(play_ms(text, 5_000).counted("touched"), 9);
}

#[test]
fn a_sleep_is_at_least_as_long_as_it_says() {
    let text = "
        [task.one]
        times = 3
        body = [{ begin = \"nap\" }, { sleep = \"3ms\" }, { end = \"nap\" }]";
    let played = play_ms(text, 5_000);
    let spans = played.spans("nap");
    assert_eq!(spans.len(), 3);
    assert!(
        spans
            .iter()
            .all(|(begin, end)| end.since(*begin) >= Duration::from_ms(3))
    );
}

#[test]
fn no_round_of_a_period_begins_before_its_time() {
    let text = "
        [task.one]
        start = \"4ms\"
        every = \"5ms\"
        times = 4
        body = [{ begin = \"round\" }, { run = \"10us\" }, { end = \"round\" }]";
    let spans = play_ms(text, 5_000).spans("round");
    assert_eq!(spans.len(), 4);
    for (number, (begin, _)) in (0..).zip(spans) {
        assert!(begin >= ms(4 + 5 * number), "{number}: {begin:?}");
    }
}

#[test]
fn loops_count_and_leave_rounds_out() {
    let text = "
        [settings.n]
        default = 5
        [task.one]
        times = 2
        setup = [{ count = \"setups\" }]
        body = [
          { repeat = \"n\", as = \"i\", body = [
            { each = \"j\", of = \"i + 1\", except = \"i\", body = [{ count = \"pairs\", by = \"i * 10 + j\" }] },
            { repeat = 0, body = [{ count = \"never\" }] },
          ] },
        ]";
    let played = play_ms(text, 5_000);
    let once: u64 = (0..5).flat_map(|i| (0..i).map(move |j| i * 10 + j)).sum();
    assert_eq!(played.counted("pairs"), 2 * once);
    assert_eq!((played.counted("setups"), played.counted("never")), (1, 0));
    assert_eq!(played.counted("rounds"), 2);
}

#[test]
fn a_task_that_exits_does_no_more() {
    let text = "
        [task.one]
        body = [{ count = \"before\" }, { exit = true }, { count = \"after\" }]";
    let played = play_ms(text, 5_000);
    assert_eq!((played.counted("before"), played.counted("after")), (1, 0));
    assert!(played.all().any(|record| matches!(
        record,
        Record::Exit {
            task: TaskId(0),
            ..
        }
    )));
}

#[test]
fn a_task_stops_at_its_end() {
    let text = "[task.one]\nend = \"5ms\"\nbody = [{ run = \"100us\" }, { yield = true }]";
    let played = play_ms(text, 10_000);
    let (exit, _) = played
        .records
        .iter()
        .find(|(_, record)| matches!(record, Record::Exit { .. }))
        .expect("exit");
    assert!(*exit >= ms(5), "{exit:?}");
}

#[test]
fn nice_values_and_fragments_are_told() {
    let text = "
        [task.one]
        times = 1
        nice = 1
        fragment = 7
        body = [{ nice = 4 }, { fragment = 9 }, { fragment = \"none\" }]";
    let played = play_ms(text, 5_000);
    let nice = played.all().filter_map(|record| match record {
        Record::Nice { nice, .. } => Some(*nice),
        _ => None,
    });
    assert_eq!(nice.collect::<Vec<_>>(), [1, 4]);
    let fragments = played.all().filter_map(|record| match record {
        Record::Fragment { fragment, .. } => Some(*fragment),
        _ => None,
    });
    assert_eq!(
        fragments.collect::<Vec<_>>(),
        [Some((1, 7)), Some((1, 9)), None]
    );
}

#[test]
fn settings_choose_steps() {
    let text = "
        [settings.how]
        default = \"slowly\"
        choices = [\"slowly\", \"fast\"]
        [task.one]
        times = 1
        body = [{ count = \"slow\", when = \"how = slowly\" }, { count = \"fast\", when = \"how = fast\" }]";
    let played = play(text, "--warmup 0s --time 5s --set how=fast");
    assert_eq!((played.counted("slow"), played.counted("fast")), (0, 1));
}

#[test]
fn a_run_that_is_done_ends_and_the_first_and_last_samples_enclose_it() {
    let played = play_ms("[task.one]\ntimes = 3\nbody = [{ run = \"10us\" }]", 60_000);
    let times: Vec<_> = played
        .records
        .iter()
        .filter(|(_, record)| matches!(record, Record::Count { .. }))
        .map(|(at, _)| *at)
        .collect();
    assert_eq!(times.len(), 2);
    assert!(times[0] <= times[1] && times[1] < ms(60_000));
    assert_eq!(played.counts("rounds")[1], 3);
    let last = played.records.last().expect("records").0;
    assert_eq!(
        last, times[1],
        "nothing is told of what comes after the end"
    );
}

#[test]
fn a_number_without_a_value_ends_the_run_at_its_place() {
    let text = "
        [task.one]
        body = [{ repeat = 9, as = \"i\", body = [{ run = \"1us\" }, { count = \"x\", by = \"7 / ((i - 4) * (i - 4))\" }] }]";
    let played = play(text, "--warmup 0s --time 5s");
    assert_eq!(played.code, Some(3), "{}", played.said);
    assert!(
        played.said.contains("task.one.body[0].body[1].by"),
        "{}",
        played.said
    );
    assert!(played.said.contains("divides by zero"), "{}", played.said);
    assert!(
        played.counted("x") > 0,
        "the trace has what happened until then"
    );
}
