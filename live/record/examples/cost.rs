//! What recording costs a switch: two threads on one CPU that wake each other, with and without a
//! recording in turn: `cost [ROUNDS] [REPETITIONS]`. Medians are printed, and their ratio. What is
//! measured is the CPU time of both, which contains the switches and not the time of others.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rustix::time::{ClockId, clock_gettime};
use warmq_record::{Recorder, Tasks, Wanted};
use warmq_trace::Record;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual| {
        arguments
            .next()
            .map_or(Ok(usual), |text| text.parse::<u32>())
    };
    let (rounds, repetitions) = (number(20_000)?, number(11)?);
    let scheduling = Wanted {
        // No page is read while the threads play.
        buffer_kb_per_cpu: rounds.max(4096),
        interrupts: false,
        network: false,
        idle: false,
        locks: false,
    };
    let all = Wanted {
        interrupts: true,
        network: true,
        idle: true,
        ..scheduling
    };
    let (mut without, mut some, mut every) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..repetitions {
        without.push(ping_pong(rounds));
        some.push(recorded(&scheduling, rounds)?);
        every.push(recorded(&all, rounds)?);
    }
    let [without, some, every] = [without, some, every].map(median);
    println!("a switch, not recorded:              {without:>6} ns");
    for (what, with) in [("scheduling", some), ("everything", every)] {
        let ratio = with as f64 / without as f64;
        let more = with.saturating_sub(without);
        println!("a switch, {what} recorded:     {with:>6} ns: {ratio:.2} times, {more} ns more");
    }
    Ok(())
}

fn recorded(wanted: &Wanted, rounds: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let recorder = Recorder::start(wanted)?;
    let took = ping_pong(rounds);
    let recording = recorder.stop()?;
    let mut switches = 0;
    recording.records(&mut Tasks::new(), 0, &mut |_, record| {
        switches += u32::from(matches!(record, Record::Switch { .. }));
    });
    assert!(
        switches >= 2 * rounds,
        "{switches} switches of {rounds} rounds"
    );
    Ok(took)
}

/// ns of CPU time a switch.
fn ping_pong(rounds: u32) -> u64 {
    // Both inherit it.
    let here = rustix::thread::sched_getaffinity(None).expect("this thread has CPUs");
    let mut first = rustix::thread::CpuSet::new();
    first.set((0..1024).find(|cpu| here.is_set(*cpu)).unwrap_or(0));
    rustix::thread::sched_setaffinity(None, &first).expect("it may run there");
    let (to_one, one_hears) = channel();
    let (to_other, other_hears) = channel();
    // One message is on its way at any time, so every one costs a switch.
    to_one.send(()).expect("its receiver is here");
    let one = thread::spawn(move || play(rounds, &one_hears, &to_other));
    let other = thread::spawn(move || play(rounds, &other_hears, &to_one));
    let took: u64 = [one, other]
        .map(|thread| thread.join().unwrap_or(0))
        .iter()
        .sum();
    rustix::thread::sched_setaffinity(None, &here).expect("it did before");
    took / u64::from(2 * rounds)
}

/// Answers messages; the CPU time in ns.
fn play(rounds: u32, hears: &Receiver<()>, answers: &Sender<()>) -> u64 {
    for _ in 0..rounds {
        let _ = hears.recv();
        let _ = answers.send(());
    }
    // A thread's clock starts with it.
    let ran = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(ran.tv_sec * 1_000_000_000 + ran.tv_nsec).unwrap_or(u64::MAX)
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all[all.len() / 2]
}
