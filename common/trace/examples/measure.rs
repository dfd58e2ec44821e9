//! Prints the cost of each observer in ns per record, and writes a trace to `FILE` if one is named.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the clock of the host is what it measures with"
)]

use std::io::BufWriter;
use std::time::Instant as Clock;

use warmq_trace::file::Writer;
use warmq_trace::{Checker, Comm, Digest, Header, Interrupt, Observer, Perfetto, Record};
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

/// Rounds of a made-up machine of four CPUs: each CPU wakes, switches, locks and is interrupted.
fn run(rounds: u64) -> Vec<(Instant, Record)> {
    let mut run = Vec::new();
    for task in (0..8).map(TaskId) {
        let comm = Comm::new(["walk", "chat"][task.index() % 2]);
        run.push((
            Instant::START,
            Record::Fork {
                parent: None,
                child: task,
                comm,
            },
        ));
    }
    for round in 0..rounds {
        let at = |later| Instant::START + Duration::from_us(round * 100 + later);
        for cpu in (0..4).map(CpuId) {
            let task = TaskId((round % 2) as u32 * 4 + u32::from(cpu.0));
            let (lock, timer) = (LockId(cpu.0 % 2), Interrupt::Timer);
            let (waited, held) = (Duration::from_us(round % 3), Duration::from_us(4));
            let switch = |prev, next| Record::Switch {
                cpu,
                prev,
                prev_runnable: false,
                next,
            };
            run.extend([
                (
                    at(0),
                    Record::InterruptEnter {
                        cpu,
                        interrupt: timer,
                    },
                ),
                (
                    at(1),
                    Record::Wakeup {
                        waker: cpu,
                        task,
                        target: cpu,
                    },
                ),
                (
                    at(2),
                    Record::InterruptExit {
                        cpu,
                        interrupt: timer,
                    },
                ),
                (at(3), switch(None, Some(task))),
                (
                    at(40),
                    Record::Lock {
                        cpu,
                        lock,
                        waited,
                        held,
                    },
                ),
                (at(80), switch(Some(task), None)),
            ]);
        }
    }
    run.sort_by_key(|(at, _)| *at);
    run
}

fn time(name: &str, run: &[(Instant, Record)], mut observer: impl Observer) {
    let start = Clock::now();
    run.iter()
        .for_each(|(at, record)| observer.see(*at, record));
    let ns = start.elapsed().as_nanos() / run.len() as u128;
    println!("{name:10} {ns:4} ns a record");
}

fn main() -> std::io::Result<()> {
    if let Some(path) = std::env::args().nth(1) {
        let mut perfetto = Perfetto::new(BufWriter::new(std::fs::File::create(path)?), "made up");
        run(100)
            .iter()
            .for_each(|(at, record)| perfetto.see(*at, record));
        perfetto.finish()?;
    }
    let run = run(100_000);
    time("digest", &run, Digest::new());
    time(
        "file",
        &run,
        Writer::new(std::io::sink(), &Header::default()),
    );
    time("perfetto", &run, Perfetto::new(std::io::sink(), "made up"));
    time("checker", &run, Checker::of_a_run());
    Ok(())
}
