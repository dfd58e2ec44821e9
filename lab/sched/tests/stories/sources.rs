//! Sources of scenarios that are answered, and whose interrupts go to certain CPUs.

use std::collections::BTreeMap;

use warmq_config::Chosen;
use warmq_kernel::{Boot, Ending, Stall};
use warmq_metrics::PlayMeter;
use warmq_play::Counters;
use warmq_scenario::ObjectId;
use warmq_trace::{Checker, Interrupt, Observer, Record};
use warmq_units::{Duration, Instant};

use crate::scenarios::{played, story};
use crate::stage::*;

/// Keeps what happens, and measures it as the rows of an experiment are measured.
struct Heard {
    records: Vec<(Instant, Record)>,
    meter: PlayMeter,
    checker: Checker,
}

impl Observer for Heard {
    fn see(&mut self, at: Instant, record: &Record) {
        self.records.push((at, *record));
        self.meter.see(at, record);
        self.checker.see(at, record);
    }
}

/// A run that is over.
struct Run {
    heard: Heard,
    counters: Counters,
    end: Instant,
}

/// `text` played for `ms` on `stage`, where every invariant holds.
fn heard(text: &str, stage: Stage, ms: u64) -> Run {
    let (entry, counters) = (story(text), Counters::default());
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).expect("nothing is chosen");
    let workload = entry.build(&chosen, &stage.site(), &counters);
    let workload = workload.expect("its defaults are sound");
    let start = |boot: &mut Boot<'_>| workload.start(boot);
    let names = entry.scenario().expect("it is one").names();
    let watch = Heard {
        records: Vec::new(),
        meter: PlayMeter::starting_at(names, Instant::START),
        checker: Checker::of_a_run(),
    };
    let (ending, kernel) = stage.plays_before(watch, scheduler("linux24", &[]), ms, start);
    // Tasks that receive wait for ever when all sources have ended.
    let fine = matches!(
        ending,
        Ending::TimeUp | Ending::WorkDone | Ending::Stalled(Stall::WaitsForEver { .. })
    );
    assert!(fine, "{ending}");
    assert_eq!(kernel.check_times(), Ok(()));
    let end = kernel.now();
    let heard = kernel.into_observer();
    assert_eq!(heard.checker.clone().finish(end), Ok(()));
    Run {
        heard,
        counters,
        end,
    }
}

impl Run {
    /// The numbers of the spans that began, and how long those took that ended, in their order.
    fn trips(&self) -> (Vec<u64>, Vec<(u64, Duration)>) {
        let (mut begun, mut took) = (Vec::new(), Vec::new());
        let mut since = BTreeMap::new();
        for (at, record) in &self.heard.records {
            match *record {
                Record::SpanBegin { number, .. } => {
                    begun.push(number);
                    since.insert(number, *at);
                }
                Record::SpanEnd { number, .. } => took.push((number, *at - since[&number])),
                _ => {}
            }
        }
        (begun, took)
    }

    /// The CPUs that took interrupts of cards from `from` to `to` in ms, in order.
    fn interrupted(&self, from: u64, to: u64) -> Vec<u16> {
        let within = Instant::START + ms(from)..Instant::START + ms(to);
        let taken = self
            .heard
            .records
            .iter()
            .filter_map(|(at, record)| match record {
                Record::InterruptEnter {
                    cpu,
                    interrupt: Interrupt::Network,
                } if within.contains(at) => Some(cpu.0),
                _ => None,
            });
        taken.collect()
    }
}

/// On a link of 1 Gbit/s, with 90 bytes around a datagram.
fn wire_ns(bytes: u64) -> u64 {
    (bytes + 90) * 8
}

/// By hand. The costs are powers of two, so that none can stand in for others.
#[test]
fn a_round_trip_is_the_sum_of_all_on_its_way() {
    let text = r#"
        [datagram.d]
        [source.s]
        to = "d"
        bytes = "64B"
        rate = "2000 per s"
        start = "1ms"
        packets = 10
        echo = true
        span = "trip"
        [task.server]
        body = [{ receive = "d" }, { run = "100us" }, { reply = "d", bytes = "200B" }]
    "#;
    let parts = [
        ("interrupt_entry", 1),
        ("network_packet", 2),
        ("wakeup", 4),
        ("interrupt_exit", 8),
        ("context_switch", 16),
        ("socket_receive", 32),
        ("system_call", 64),
        ("socket_send", 128),
    ];
    let stage = Stage {
        costs: costs(&parts),
        ..stage(1)
    };
    let run = heard(text, stage, 9);
    let (begun, took) = run.trips();
    assert_eq!((begun.len(), took.len()), (10, 10));
    let there = 50_000 + wire_ns(64);
    // Each part once, but a packet is handled when it comes and again when its answer goes.
    let kernel = 1_000 * (1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 2);
    let back = wire_ns(200) + 50_000;
    let wanted = Duration::from_ns(there + kernel + 100_000 + back);
    for (number, took) in took {
        assert_eq!(took, wanted, "of datagram {number}");
    }
    let figures = run.heard.meter.figures(run.end);
    let wanted_ns = [wanted.as_ns(); 3];
    let ns = |name: &str| (figures[name] * 1_000.0).round() as u64;
    assert_eq!(["trip_mean", "trip_p50", "trip_p99"].map(ns), wanted_ns);
}

#[test]
fn spans_have_the_numbers_of_their_sources_and_datagrams() {
    let text = r#"
        [datagram.d]
        buffer = "200KB"
        [source.s]
        for = { n = 2 }
        to = "d"
        bytes = "64B"
        rate = "1000 per s"
        burst = 2
        packets = 3
        echo = true
        span = "trip"
        [task.server]
        count = 2
        body = [{ receive = "d" }, { reply = "d", bytes = "32B" }]
    "#;
    let run = heard(text, stage(2), 20);
    let (mut begun, took) = run.trips();
    begun.sort_unstable();
    let entry = story(text);
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).expect("nothing is chosen");
    let scenario = entry.scenario().expect("it is one");
    let bound = scenario.bind(&chosen, &stage(2).site()).expect("sound");
    let numbers = (0..2).flat_map(|source| (0..3).map(move |datagram| (source, datagram)));
    let wanted = numbers.map(|(source, sent)| bound.echo_number(ObjectId(1), source, sent));
    assert_eq!(begun, wanted.collect::<Vec<_>>());
    assert_eq!(took.len(), 6);
}

#[test]
fn only_the_first_answer_to_a_datagram_of_a_source_that_measures_ends_a_span() {
    let text = r#"
        [datagram.d]
        buffer = "200KB"
        [datagram.e]
        [source.asks]
        to = "d"
        bytes = "16B"
        rate = "1000 per s"
        packets = 3
        echo = true
        span = "trip"
        [source.quiet]
        to = "d"
        bytes = "1B"
        rate = "1000 per s"
        packets = 3
        [source.never]
        to = "e"
        bytes = "1B"
        every = "100s"
        start = "50s"
        [task.other]
        times = 3
        body = [{ send = "d", bytes = "5B" }]
        [task.server]
        times = 9
        body = [{ receive = "d" }, { reply = "d", bytes = "64B" }, { reply = "d", bytes = "16B" }, { count = "replied" }]
        [task.stays]
        times = 1
        setup = [{ repeat = 0, body = [{ receive = "e" }] }]
        body = [{ reply = "e", bytes = "16B" }, { sleep = "20ms" }]
    "#;
    let run = heard(text, stage(2), 30);
    let (begun, took) = run.trips();
    assert_eq!((begun.len(), took.len()), (3, 3));
    assert_eq!(run.counters.get("replied"), 9);
}

#[test]
fn the_answer_is_to_the_last_datagram_of_each_socket() {
    // It takes from both sockets before it answers either, and of the first socket two.
    let text = r#"
        [datagram.d]
        for = { n = 2 }
        [source.s]
        for = { n = 2 }
        to = "d[n]"
        bytes = "100B"
        rate = "1000 per s"
        packets = "2 - n"
        echo = true
        span = "trip"
        [task.server]
        times = 1
        body = [
          { receive = "d[0]" }, { receive = "d[0]" }, { receive = "d[1]" },
          { each = "n", of = 2, body = [{ reply = "d[n]", bytes = "16B" }] },
          { sleep = "10ms" },
        ]
    "#;
    let run = heard(text, stage(1), 40);
    let (begun, took) = run.trips();
    assert_eq!(begun.len(), 3);
    let answered: Vec<u64> = took.iter().map(|(number, _)| number & 0xff).collect();
    assert_eq!(answered, [1, 0], "the second of the first source");
}

#[test]
fn what_is_lost_leaves_a_span_that_never_ends() {
    let text = r#"
        [datagram.d]
        buffer = "2KB"
        [source.s]
        to = "d"
        bytes = "64B"
        rate = "1000 per s"
        burst = 10
        packets = 40
        echo = true
        span = "trip"
        [task.server]
        body = [{ receive = "d" }, { run = "1ms" }, { reply = "d", bytes = "64B" }, { count = "replied" }]
    "#;
    let run = heard(text, stage(1), 200);
    let (begun, took) = run.trips();
    assert_eq!(begun.len(), 40);
    let replied = run.counters.get("replied") as usize;
    assert!((8..40).contains(&replied), "some were dropped: {replied}");
    assert_eq!(took.len(), replied);
}

const TWO: &str = r#"
    [datagram.d]
    buffer = "200KB"
    [source.steered]
    for = { n = 2 }
    to = "d"
    bytes = "64B"
    rate = "1000 per s"
    packets = 4
    start = "n * 10ms"
    cpu = "cpus 1,3"
    [source.other]
    to = "d"
    bytes = "64B"
    rate = "1000 per s"
    packets = 5
    start = "20ms"
    [task.receiver]
    cpus = "cpu 0"
    body = [{ receive = "d" }]
"#;

#[test]
fn the_cpus_of_a_source_take_its_interrupts_in_turn() {
    let run = heard(TWO, stage(4), 30);
    // Both share a card: the second goes on where the first left off.
    assert_eq!(run.interrupted(0, 10), [1, 3, 1, 3]);
    assert_eq!(run.interrupted(10, 20), [1, 3, 1, 3]);
    // Those that name no CPUs are interrupted as if there were no others.
    assert_eq!(run.interrupted(20, 30), [0, 1, 2, 3, 0]);
}

#[test]
fn a_change_moves_the_interrupts_of_a_source_and_of_no_other() {
    let text = format!(
        r#"
        {TWO}
        [[change]]
        at = "12ms"
        source = "steered[1]"
        set = {{ cpu = "cpu 2" }}
    "#
    );
    let run = heard(&text, stage(4), 30);
    assert_eq!(run.interrupted(0, 10), [1, 3, 1, 3]);
    // Those of 10 and 11 ms are there before it, that of 12 ms is sent after it.
    assert_eq!(run.interrupted(10, 20), [1, 3, 2, 2]);
    assert_eq!(run.interrupted(20, 30), [0, 1, 2, 3, 0]);
}

#[test]
fn a_cpu_of_a_source_that_is_offline_is_skipped() {
    let text = format!(
        r#"
        {TWO}
        [[change]]
        at = "5ms"
        cpu = "cpu 1"
        set = {{ online = false }}
    "#
    );
    let run = heard(&text, stage(4), 20);
    assert_eq!(run.interrupted(0, 5), [1, 3, 1, 3]);
    assert_eq!(run.interrupted(10, 20), [3; 4]);
}

#[test]
fn a_source_on_cpus_that_the_machine_lacks_is_refused() {
    let wanted = "it has a source whose `cpu` the machine lacks";
    let told = played(TWO, 1, 10).0.to_string();
    assert!(told.contains(wanted), "{told}");
    let moved =
        format!("{TWO}\n[[change]]\nat = \"1ms\"\nsource = \"other\"\nset = {{ cpu = \"cpu 9\" }}");
    let told = played(&moved, 4, 10).0.to_string();
    assert!(told.contains(wanted), "{told}");
}
