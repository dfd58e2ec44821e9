//! Recordings of the machine that runs the tests. Where tracefs is refused, they say so and pass.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use warmq_record::{RecordError, Recorder, Recording, Tasks, Wanted};
use warmq_trace::{Checker, Comm, Observer, Promise, Record};
use warmq_units::{Instant, TaskId};

fn start(wanted: &Wanted) -> Option<Recorder> {
    match Recorder::start(wanted) {
        Ok(recorder) => Some(recorder),
        Err(refused @ RecordError::Refused { .. }) => {
            println!("skipped: {refused}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

fn records(recording: &Recording, tasks: &mut Tasks, start_ns: u64) -> Vec<(Instant, Record)> {
    let mut all = Vec::new();
    recording.records(tasks, start_ns, &mut |at, record| all.push((at, record)));
    all
}

/// This thread's id, and how often it left its CPU to wait, and otherwise.
fn this_thread() -> (u32, u64, u64) {
    let link = fs::read_link("/proc/thread-self").unwrap();
    let tid = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let count = |key| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse().unwrap()
    };
    (
        tid,
        count("voluntary_ctxt_switches:"),
        count("nonvoluntary_ctxt_switches:"),
    )
}

/// What a thread of a ping-pong counted, and when.
struct Counted {
    tid: u32,
    /// Between the two readings.
    inner_ns: Range<u64>,
    /// Before the first and after the second.
    outer_ns: Range<u64>,
    voluntary: u64,
    involuntary: u64,
}

/// Answers `rounds` messages.
fn play(rounds: u32, hears: &Receiver<()>, answers: &Sender<()>) -> Counted {
    let outer_ns = now_ns();
    let (tid, voluntary, involuntary) = this_thread();
    let inner_ns = now_ns();
    for _ in 0..rounds {
        hears.recv().unwrap();
        // The other may have left after its last round.
        let _ = answers.send(());
    }
    let inner_ns = inner_ns..now_ns();
    let (_, now_voluntary, now_involuntary) = this_thread();
    let outer_ns = outer_ns..now_ns();
    Counted {
        tid,
        inner_ns,
        outer_ns,
        voluntary: now_voluntary - voluntary,
        involuntary: now_involuntary - involuntary,
    }
}

/// Two threads that wake each other.
fn ping_pong(rounds: u32) -> [Counted; 2] {
    let (to_one, one_hears) = channel();
    let (to_other, other_hears) = channel();
    to_one.send(()).unwrap();
    let one = thread::Builder::new().name("ping".into());
    let one = one.spawn(move || play(rounds, &one_hears, &to_other));
    let other = thread::Builder::new().name("pong".into());
    let other = other.spawn(move || play(rounds, &other_hears, &to_one));
    [one, other].map(|thread| thread.unwrap().join().unwrap())
}

#[test]
fn the_switches_of_a_ping_pong_are_those_that_the_kernel_counted() {
    let Some(recorder) = start(&Wanted::default()) else {
        return;
    };
    let start_ns = now_ns();
    let counted = ping_pong(2_000);
    let recording = recorder.stop().unwrap();
    let mut tasks = Tasks::new();
    let all = records(&recording, &mut tasks, start_ns);
    // Where the kernel reports everything none is lost, and all counts must be equal.
    let lost = all.iter().filter_map(|(_, record)| match record {
        Record::Lost { events, .. } => Some(*events),
        _ => None,
    });
    let lost: u64 = lost.sum();
    let single = |record: &Record| !matches!(record, Record::Lost { events, .. } if *events != 1);
    assert!(
        all.iter().all(|(_, record)| single(record)),
        "the buffers were large enough"
    );
    let names: BTreeMap<TaskId, Comm> = tasks.iter().map(|(id, _, comm)| (id, comm)).collect();
    for (who, name) in counted.iter().zip(["ping", "pong"]) {
        let task = tasks.id(who.tid).unwrap();
        assert_eq!(names[&task].raw(), name);
        let of = |span: &Range<u64>, runnable| {
            let during = |at: &Instant| span.contains(&(start_ns + at.0 / 1_000));
            let left = |record: &Record| matches!(record, Record::Switch { prev, prev_runnable, .. } if *prev == Some(task) && *prev_runnable == runnable);
            let left = all.iter().filter(|(at, record)| during(at) && left(record));
            left.count() as u64
        };
        assert!(who.voluntary > 0, "they waited for each other");
        let recorded = of(&who.inner_ns, false);
        let close = (recorded..=recorded + lost).contains(&who.voluntary);
        assert!(close, "{name}: {recorded}, {lost} lost, {}", who.voluntary);
        let [least, most] = [&who.inner_ns, &who.outer_ns].map(|span| of(span, true));
        // One that was inferred counts as runnable.
        let close = (least.saturating_sub(lost)..=most + lost).contains(&who.involuntary);
        assert!(
            close,
            "{name}: {least}..={most}, {lost} lost, {}",
            who.involuntary
        );
        let during = |at: &Instant| who.inner_ns.contains(&(start_ns + at.0 / 1_000));
        let woken = all.iter().filter(|(at, record)| {
            during(at) && matches!(record, Record::Wakeup { task: woken, .. } if *woken == task)
        });
        assert!(woken.count() as u64 + 1 + lost >= who.voluntary, "{name}");
    }
}

#[test]
fn a_recording_of_a_real_machine_breaks_no_law() {
    let Some(recorder) = start(&Wanted::default()) else {
        return;
    };
    thread::sleep(Duration::from_millis(5));
    let start_ns = now_ns();
    ping_pong(500);
    fs::read_dir("/proc").unwrap().for_each(drop);
    std::process::Command::new("true").status().unwrap();
    let recording = recorder.stop().unwrap();
    // How soon a real machine must do something, nobody has promised.
    let mut checker = Checker::of_a_recording().promised(Promise {
        patience: warmq_units::Duration::from_s(100),
        ..Promise::default()
    });
    let mut last = Instant::START;
    recording.records(&mut Tasks::new(), start_ns, &mut |at, record| {
        checker.see(at, &record);
        last = at;
    });
    if let Err(violation) = checker.finish(last) {
        let all = records(&recording, &mut Tasks::new(), start_ns);
        let from = usize::try_from(violation.record)
            .unwrap()
            .saturating_sub(60);
        for (at, record) in all.iter().skip(from).take(64) {
            println!("{at:?} {record:?}");
        }
        panic!("{violation}");
    }
}

#[test]
fn a_recording_is_longer_than_the_buffers() {
    const KIB: u32 = 128;
    let wanted = Wanted {
        buffer_kb_per_cpu: KIB,
        ..Wanted::default()
    };
    let Some(recorder) = start(&wanted) else {
        return;
    };
    let start_ns = now_ns();
    ping_pong(10_000);
    let recording = recorder.stop().unwrap();
    // How much of it depends on how soon the reader got a CPU.
    let buffer = KIB as usize * 1024;
    assert!(recording.size() > 8 * buffer, "{}", recording.size());
    let (mut lost, mut gaps) = (0, 0);
    for (_, record) in records(&recording, &mut Tasks::new(), start_ns) {
        if let Record::Lost { events, .. } = record
            && events != 1
        {
            (lost, gaps) = (lost + events, gaps + 1);
        }
    }
    println!(
        "{} bytes, {lost} events lost in {gaps} gaps",
        recording.size()
    );
}
