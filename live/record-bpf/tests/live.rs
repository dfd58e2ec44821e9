//! Recordings by BPF of the machine that runs the tests. Where BPF is refused, they say so and
//! pass.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use warmq_record::{RecordError, Recorder, Recording, Tasks, Wanted, monotonic_ns};
use warmq_trace::{Checker, Context, Observer, Promise, Record};
use warmq_units::{CpuId, Instant, TaskId};

/// How `warmq-record` ends where this machine cannot do it.
const MACHINE_CANNOT: i32 = 6;

/// `warmq-record`, while it records.
struct Running {
    child: Child,
    said: BufReader<ChildStderr>,
}

/// What it left.
struct Left {
    status: ExitStatus,
    bytes: Vec<u8>,
    said: String,
}

impl Running {
    /// Starts it, and waits for its first line.
    fn start(change: impl FnOnce(&mut Command)) -> (Running, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warmq-record"));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        (Running { child, said }, first)
    }

    /// Starts it if it may record here.
    fn ready(options: &[&str]) -> Option<Running> {
        let (mut running, first) = Running::start(|command| {
            command.args(options);
        });
        if first == "warmq-record: ready\n" {
            return Some(running);
        }
        let status = running.child.wait().unwrap();
        assert_eq!(status.code(), Some(MACHINE_CANNOT), "{first}");
        println!("skipped: {first}");
        None
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes its standard input, if it was not stopped otherwise, and takes what it left.
    fn stop(mut self) -> Left {
        drop(self.child.stdin.take());
        self.ends()
    }

    fn ends(mut self) -> Left {
        let (mut bytes, mut said) = (Vec::new(), String::new());
        let mut out = self.child.stdout.take().unwrap();
        out.read_to_end(&mut bytes).unwrap();
        self.said.read_to_string(&mut said).unwrap();
        let status = self.child.wait().unwrap();
        Left {
            status,
            bytes,
            said,
        }
    }
}

impl Left {
    fn recording(&self) -> Recording {
        assert!(self.status.success(), "{}", self.said);
        assert!(
            self.said.starts_with("warmq-record: stopped: cpu_ns="),
            "{}",
            self.said
        );
        Recording::from_bytes(&self.bytes).unwrap()
    }
}

fn play(rounds: u32, hears: &Receiver<()>, answers: &Sender<()>) {
    for _ in 0..rounds {
        hears.recv().unwrap();
        // The other may have left after its last round.
        let _ = answers.send(());
    }
}

/// Two threads that wake each other.
fn ping_pong(rounds: u32) {
    let (to_one, one_hears) = channel();
    let (to_other, other_hears) = channel();
    to_one.send(()).unwrap();
    let one = thread::Builder::new().name("ping".into());
    let one = one.spawn(move || play(rounds, &one_hears, &to_other));
    let other = thread::Builder::new().name("pong".into());
    let other = other.spawn(move || play(rounds, &other_hears, &to_one));
    for thread in [one, other] {
        thread.unwrap().join().unwrap();
    }
}

/// Something of everything: threads, a process, packets over loopback.
fn load() {
    ping_pong(1_000);
    let status = Command::new("true").status();
    status.unwrap();
    let hears = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..50 {
        let to = hears.local_addr().unwrap();
        sender.send_to(b"here", to).unwrap();
        hears.recv(&mut [0; 8]).unwrap();
        thread::sleep(Duration::from_micros(300));
    }
}

fn obeys(recording: &Recording, start_ns: u64) {
    let mut checker = Checker::of_a_recording().promised(Promise {
        patience: warmq_units::Duration::from_s(100),
        ..Promise::default()
    });
    let mut last = Instant::START;
    recording.records(&mut Tasks::new(), start_ns, &mut |at, record| {
        checker.see(at, &record);
        last = at;
    });
    checker.finish(last).unwrap();
}

/// What a recording says between two moments.
#[derive(Default)]
struct Said {
    /// How many of each kind.
    kinds: BTreeMap<&'static str, u64>,
    /// The threads that each CPU switched to.
    switches: BTreeMap<CpuId, Vec<u32>>,
}

/// The kind of what was not recorded and had to be inferred.
const INFERRED: &str = "gaps";

/// The kinds that are compared; others depend on what a recorder met first. `name` is the name of a
/// task.
fn kind(record: &Record, name: impl Fn(TaskId) -> String) -> Option<&'static str> {
    Some(match record {
        Record::Switch { .. } => "switches",
        Record::Wakeup { .. } => "wakeups",
        // After its last softirq a CPU may wake it, which BPF takes for what was interrupted.
        Record::Waking { task, .. } if name(*task).starts_with("ksoftirqd/") => {
            "wakings of ksoftirqd"
        }
        Record::Waking { context, .. } => match context {
            Context::Task => "wakings by tasks",
            Context::Softirq => "wakings by softirqs",
            Context::Interrupt => "wakings by interrupts",
            Context::Unknown => "wakings by idle CPUs",
        },
        Record::Migrate { .. } => "migrations",
        Record::Fork { .. } => "forks",
        Record::Exit { .. } => "exits",
        Record::Block { .. } => "blocks",
        Record::InterruptEnter { .. } => "interrupts",
        Record::InterruptExit { .. } => "ends of interrupts",
        Record::RescheduleSent { .. } => "reschedules",
        Record::Idle { .. } => "idle states",
        Record::Packet { .. } => "packets",
        Record::Drop { .. } => "drops",
        Record::Poll { .. } => "polls",
        Record::Lost { .. } => INFERRED,
        _ => return None,
    })
}

impl Said {
    fn of(recording: &Recording, start_ns: u64, span_ns: u64) -> Said {
        let (mut said, mut tasks, mut all) = (Said::default(), Tasks::new(), Vec::new());
        recording.records(&mut tasks, start_ns, &mut |at, record| {
            all.push((at, record))
        });
        let threads: BTreeMap<TaskId, u32> = tasks.iter().map(|(id, tid, _)| (id, tid)).collect();
        let names: BTreeMap<TaskId, _> = tasks.iter().map(|(id, _, comm)| (id, comm)).collect();
        let name = |task| {
            names
                .get(&task)
                .map_or(String::new(), |comm| comm.to_string())
        };
        // Those at 0 are of the state at the start.
        let inside = |at: Instant| at > Instant::START && at.0 <= span_ns * 1_000;
        for (_, record) in all.iter().filter(|(at, _)| inside(*at)) {
            if let Some(kind) = kind(record, name) {
                *said.kinds.entry(kind).or_default() += 1;
            }
            if let Record::Switch { cpu, next, .. } = record {
                let thread = next.and_then(|task| threads.get(&task).copied());
                said.switches
                    .entry(*cpu)
                    .or_default()
                    .push(thread.unwrap_or(0));
            }
        }
        said
    }
}

/// The switches that both lists have in the same order, where one may begin or end a little later.
fn common(one: &[u32], other: &[u32]) -> usize {
    const EDGE: usize = 3;
    let same = |skip_one: usize, skip_other: usize| {
        let pairs = one.iter().skip(skip_one).zip(other.iter().skip(skip_other));
        pairs.take_while(|(one, other)| one == other).count()
    };
    let skips = (0..EDGE).flat_map(|one| (0..EDGE).map(move |other| (one, other)));
    skips
        .map(|(one, other)| same(one, other))
        .max()
        .unwrap_or(0)
}

#[test]
fn both_recorders_say_the_same() {
    let Some(by_bpf) = Running::ready(&[]) else {
        return;
    };
    let by_tracefs = match Recorder::start(&Wanted::default()) {
        Ok(recorder) => recorder,
        Err(refused @ RecordError::Refused { .. }) => {
            println!("skipped: there is nothing to compare with: {refused}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    thread::sleep(Duration::from_millis(20));
    let start_ns = monotonic_ns();
    load();
    let span_ns = monotonic_ns() - start_ns;
    thread::sleep(Duration::from_millis(5));
    let by_tracefs = by_tracefs.stop().unwrap();
    let by_bpf = by_bpf.stop().recording();
    let [one, other] =
        [&by_tracefs, &by_bpf].map(|recording| Said::of(recording, start_ns, span_ns));
    println!("not recorded by BPF: {:?}", by_bpf.missing());
    let of = |said: &Said, kind: &str| said.kinds.get(kind).copied().unwrap_or(0);
    // In some virtual machines tracefs does not report what idle CPUs do. BPF reports no less than
    // tracefs.
    let [inferred, inferred_by_bpf] = [&one, &other].map(|said| of(said, INFERRED));
    assert!(
        inferred_by_bpf <= inferred + 4,
        "{inferred_by_bpf} {inferred}"
    );
    if inferred > 0 {
        println!(
            "skipped: {inferred} switches and wakeups were not recorded by tracefs, \
             {inferred_by_bpf} by BPF"
        );
        return;
    }
    let kinds: BTreeSet<_> = one.kinds.keys().chain(other.kinds.keys()).collect();
    for kind in kinds {
        let [one, other] = [of(&one, kind), of(&other, kind)];
        println!("{kind}: {one} by tracefs, {other} by BPF");
        // An event takes its time a little later by BPF, and may so be beyond an edge.
        assert!(
            one.abs_diff(other) <= 4 + one / 100,
            "{kind}: {one} {other}"
        );
    }
    assert!(of(&other, "switches") > 1_000);
    for (cpu, switches) in &one.switches {
        let here = &other.switches[cpu];
        let least = switches.len().min(here.len());
        let same = common(switches, here);
        assert!(same + 6 >= least, "{cpu:?}: {same} of {least} are the same");
    }
}

#[test]
fn a_recording_by_bpf_breaks_no_law() {
    let Some(running) = Running::ready(&["--buffer=1024"]) else {
        return;
    };
    let start_ns = monotonic_ns();
    load();
    let left = running.stop();
    obeys(&left.recording(), start_ns);
}

#[test]
fn what_finds_no_room_is_recorded_as_lost() {
    let Some(running) = Running::ready(&["--buffer=64"]) else {
        return;
    };
    let start_ns = monotonic_ns();
    running.signal(Signal::STOP);
    ping_pong(3_000);
    running.signal(Signal::CONT);
    // The rings are emptied, and what comes then shows how much was lost before.
    thread::sleep(Duration::from_millis(50));
    ping_pong(100);
    let recording = running.stop().recording();
    let mut lost = 0;
    recording.records(&mut Tasks::new(), start_ns, &mut |_, record| {
        if let Record::Lost { events, .. } = record {
            lost += events;
        }
    });
    assert!(lost > 3_000, "{lost}");
    obeys(&recording, start_ns);
}

#[test]
fn a_signal_ends_it_like_the_end_of_its_input() {
    let Some(running) = Running::ready(&[]) else {
        return;
    };
    running.signal(Signal::TERM);
    let left = running.ends();
    assert!(left.recording().size() > 0);
}

#[test]
fn who_may_not_use_bpf_is_refused() {
    const NOBODY: u32 = 65_534;
    let (mut running, first) = Running::start(|command| {
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    });
    if first == "warmq-record: ready\n" {
        println!("skipped: everybody may use BPF here");
        return;
    }
    let status = running.child.wait().unwrap();
    assert_eq!(status.code(), Some(MACHINE_CANNOT));
    let reasons = [
        "may not use BPF",
        "run as root, or with CAP_BPF and CAP_PERFMON",
    ];
    // A kernel may lack more than the permission.
    let lacks = ["CONFIG_DEBUG_INFO_BTF", "on another kernel"];
    let all = |words: &[&str]| words.iter().all(|word| first.contains(word));
    assert!(
        all(&reasons) || lacks.iter().any(|lack| first.contains(lack)),
        "{first}"
    );
}
