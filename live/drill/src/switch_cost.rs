//! The cost of a switch between two tasks, in units of a write and a read of a pipe without a
//! switch.
//!
//! Meant for a guest whose clock counts instructions (`warmq vm run --instructions`), on one CPU:
//! repeatable to 1 %. The clock's unit may change when a scheduler is loaded, so both are
//! measured in the same run.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::thread;
use std::time::{Duration, Instant};

/// So few that they end within a tick (4 ms at 250 Hz): the least of many measurements then has no
/// timer interrupt in it.
const ROUNDS: u32 = 100;
const REPETITIONS: u32 = 90;

fn pass(reader: &mut PipeReader, writer: &mut PipeWriter) -> std::io::Result<()> {
    let mut byte = [0];
    writer.write_all(&byte)?;
    reader.read_exact(&mut byte)
}

/// A write and a read by one task, without a switch.
fn alone() -> std::io::Result<Duration> {
    let (mut reader, mut writer) = pipe()?;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        pass(&mut reader, &mut writer)?;
    }
    Ok(begin.elapsed() / ROUNDS)
}

/// The same with a partner: a round is two writes, two reads and two switches.
fn in_turn() -> std::io::Result<Duration> {
    let ((mut reader, mut to_partner), (mut from_us, mut writer)) = {
        let (there, back) = (pipe()?, pipe()?);
        ((back.0, there.1), (there.0, back.1))
    };
    let partner = thread::spawn(move || {
        let mut byte = [0];
        while from_us.read_exact(&mut byte).is_ok() && writer.write_all(&byte).is_ok() {}
    });
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        pass(&mut reader, &mut to_partner)?;
    }
    let round = begin.elapsed() / ROUNDS;
    drop(to_partner);
    let _ = partner.join();
    Ok(round / 2)
}

/// The least of several measurements, because anything else that the kernel does only adds to it.
fn least(measure: fn() -> std::io::Result<Duration>) -> std::io::Result<Duration> {
    (1..REPETITIONS).try_fold(measure()?, |least, _| Ok(least.min(measure()?)))
}

/// Prints the cost and what it is computed from.
pub fn print() -> std::io::Result<()> {
    // In this order: a process that has made a thread pays more for each call of libc, and both are
    // to pay that.
    let (in_turn, alone) = (least(in_turn)?, least(alone)?);
    let ratio = in_turn.as_secs_f64() / alone.as_secs_f64();
    println!(
        "switch cost {ratio:.3} (with a switch {in_turn:?}, without {alone:?}, scheduler {})",
        name()
    );
    Ok(())
}

fn name() -> String {
    let name = std::fs::read_to_string("/sys/kernel/sched_ext/root/ops");
    name.map_or_else(
        |_| "of the kernel".to_owned(),
        |name| name.trim().to_owned(),
    )
}
