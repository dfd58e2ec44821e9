//! Sources that are answered, that arrive on certain CPUs, and that are changed.

use warmq_trace::Record;
use warmq_units::Duration;

use crate::support::{ms, play, play_ms};

const ECHO: &str = "
    [datagram.d]
    buffer = \"200KB\"
    [source.s]
    for = { n = 2 }
    to = \"d\"
    bytes = \"64B\"
    rate = \"1000 per s\"
    packets = 10
    echo = true
    span = \"trip\"
    [task.server]
    times = 20
    body = [{ receive = \"d\" }, { run = \"10us\" }, { reply = \"d\", bytes = \"32B\" }, { count = \"replied\" }]";

#[test]
fn an_answer_ends_the_span_that_its_datagram_began() {
    // The server ends with its last answer: without somebody who stays the run would end with it.
    let text = format!("{ECHO}\n[task.stays]\nbody = [{{ sleep = \"10ms\" }}]");
    let played = play_ms(&text, 1_000);
    assert_eq!(played.counted("replied"), 20);
    let spans = played.spans("trip");
    assert_eq!(spans.len(), 20, "{}", played.said);
    let long = |(begin, end): &(warmq_units::Instant, _)| {
        let end: &warmq_units::Instant = end;
        end.since(*begin) > Duration::from_us(1)
    };
    assert!(spans.iter().all(long), "{spans:?}");
    // It belongs to the thread that sends, which has an id and no role.
    let senders: std::collections::BTreeSet<_> = played
        .all()
        .filter_map(|record| match record {
            Record::SpanBegin { task, .. } | Record::SpanEnd { task, .. } => Some(*task),
            _ => None,
        })
        .collect();
    assert_eq!(senders.len(), 1);
    let sender = *senders.first().expect("one");
    assert_ne!(played.ids(sender), played.ids(played.tasks("server")[0]));
    let role = |record: &Record| matches!(record, Record::Role { task, .. } if *task == sender);
    assert!(!played.all().any(role));
}

#[test]
fn datagrams_of_tasks_and_of_sources_without_echo_end_no_span() {
    let text = "
        [datagram.d]
        [datagram.e]
        [source.asks]
        to = \"d\"
        bytes = \"16B\"
        rate = \"1000 per s\"
        packets = 3
        echo = true
        span = \"trip\"
        [source.quiet]
        to = \"d\"
        bytes = \"1B\"
        rate = \"1000 per s\"
        packets = 3
        [task.other]
        times = 3
        body = [{ send = \"d\", bytes = \"5B\" }]
        [task.server]
        times = 9
        body = [{ receive = \"d\" }, { reply = \"d\", bytes = \"64B\" }, { reply = \"d\", bytes = \"16B\" }, { count = \"replied\" }]
        [task.stays]
        body = [{ sleep = \"10ms\" }]";
    let played = play_ms(text, 1_000);
    assert_eq!(played.counted("replied"), 9);
    let ends = played
        .all()
        .filter(|record| matches!(record, Record::SpanEnd { .. }));
    assert_eq!(ends.count(), 3, "each is answered twice, and ends once");
}

#[test]
fn the_answer_is_to_the_last_datagram_of_each_socket() {
    // The task takes from both sockets before it answers either.
    let text = "
        [datagram.d]
        for = { n = 2 }
        [source.s]
        for = { n = 2 }
        to = \"d[n]\"
        bytes = \"100B\"
        rate = \"1000 per s\"
        packets = 5
        echo = true
        span = \"trip\"
        [task.server]
        times = 5
        body = [
          { receive = \"d[0]\" }, { receive = \"d[1]\" },
          { each = \"n\", of = 2, body = [{ reply = \"d[n]\", bytes = \"16B\" }] },
        ]
        [task.stays]
        body = [{ sleep = \"10ms\" }]";
    assert_eq!(play_ms(text, 1_000).spans("trip").len(), 10);
}

#[test]
fn a_source_arrives_on_the_cpus_that_it_names() {
    let text = "
        [datagram.d]
        [source.s]
        to = \"d\"
        bytes = \"20B\"
        rate = \"1000 per s\"
        packets = 5
        cpu = \"cpu 0\"
        [task.one]
        times = 5
        body = [{ receive = \"d\" }]";
    let said = play_ms(text, 20_000).said;
    assert!(
        said.contains("note: sources: sent over loopback from CPUs 0"),
        "{said}"
    );
    let lacking = play(&text.replace("cpu 0", "cpu 4000"), "");
    assert_eq!(lacking.code, Some(4));
    assert!(
        lacking
            .said
            .contains("source `s` arrive on CPUs that this machine lacks"),
        "{}",
        lacking.said
    );
}

#[test]
fn a_stopped_source_sends_nothing_until_it_continues() {
    let text = "
        [datagram.d]
        buffer = \"200KB\"
        [source.s]
        to = \"d\"
        bytes = \"20B\"
        rate = \"2000 per s\"
        echo = true
        span = \"trip\"
        [task.one]
        body = [{ receive = \"d\" }, { reply = \"d\", bytes = \"16B\" }]
        [[change]]
        at = \"20ms\"
        source = \"s\"
        set = { stop = true }
        [[phase]]
        name = \"stopped\"
        at = \"21ms\"
        [[change]]
        at = \"200ms\"
        source = \"s\"
        set = { continue = true }";
    let played = play_ms(text, 400);
    let phase = |entry: &&(_, Record)| matches!(entry.1, Record::Phase { .. });
    let stopped = played.records.iter().find(phase).expect("a phase").0;
    let begins = |from, to| {
        let begin = |entry: &&(warmq_units::Instant, Record)| {
            matches!(entry.1, Record::SpanBegin { .. }) && entry.0 > from && entry.0 < to
        };
        played.records.iter().filter(begin).count()
    };
    assert!(begins(ms(0), stopped) > 0);
    assert_eq!(begins(stopped, ms(200)), 0);
    assert!(begins(ms(200), ms(400)) > 0, "it sends again");
}

#[test]
fn a_new_rate_does_not_wait_for_what_was_due_before() {
    // By the first rate the second datagram is due after 1,000 s.
    let text = "
        [datagram.d]
        buffer = \"200KB\"
        [source.s]
        for = { n = 2 }
        to = \"d\"
        bytes = \"20B\"
        every = \"1000s\"
        packets = 30
        [task.one]
        times = 31
        body = [{ receive = \"d\" }, { begin = \"got\" }, { end = \"got\" }]
        [[change]]
        at = \"30ms\"
        source = \"s[1]\"
        set = { rate = \"1000 per s\", cpu = \"cpu 0\" }";
    let played = play_ms(text, 20_000);
    let spans = played.spans("got");
    assert_eq!(
        spans.len(),
        31,
        "one of the first source, all of the second"
    );
    assert!(spans[2].0 >= ms(31), "{:?}", spans[2]);
    assert!(spans[30].0 >= ms(30 + 29), "{:?}", spans[30]);
}
