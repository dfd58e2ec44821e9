//! What a line takes from the cache of one CPU to another CPU.
//!
//! A thread writes some lines, another one on another CPU reads them then, each load after the one
//! before, as the address of a line is in the line before it. They take turns.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use warmq_units::{CpuId, Seed};

use crate::error::WalkError;
use crate::thread::Pinned;

/// Lines of a turn. They fit into any cache of level 1.
const LINES: usize = 64;
/// Turns: few of them are disturbed.
const TURNS: usize = 400;
/// The turn of a thread that could not begin.
const NEVER: usize = usize::MAX;

/// A line, and which is read next: so far from the others that no processor fetches one with
/// another.
#[repr(align(256))]
struct Line(AtomicUsize);

/// Lines in a ring without pattern, and whose turn it is: odd ones are the reader's.
struct Ring {
    lines: Vec<Line>,
    turn: Line,
}

impl Ring {
    fn new() -> Ring {
        let mut order: Vec<usize> = (0..LINES).collect();
        Seed(1).stream("transfer").shuffle(&mut order);
        let lines: Vec<Line> = (0..LINES).map(|_| Line(AtomicUsize::new(0))).collect();
        for (place, line) in order.iter().enumerate() {
            lines[*line].0.store(order[(place + 1) % LINES], Relaxed);
        }
        let turn = Line(AtomicUsize::new(0));
        Ring { lines, turn }
    }

    /// Does `what` on `cpu`. Where this program may not run there, the other thread ends, too.
    fn on<T>(&self, cpu: CpuId, what: impl Fn(&Ring) -> T) -> Result<T, WalkError> {
        let pinned = Pinned::to(Some(cpu));
        if pinned.is_err() {
            self.turn.0.store(NEVER, Release);
        }
        pinned.map(|_pinned| what(self))
    }

    /// Waits for turn `wanted`; false if it never comes.
    fn wait_for(&self, wanted: usize) -> bool {
        loop {
            match self.turn.0.load(Acquire) {
                NEVER => return false,
                turn if turn == wanted => return true,
                _ => std::hint::spin_loop(),
            }
        }
    }

    /// Writes all lines, each time that it is its turn.
    fn write(&self) {
        for turn in 0..TURNS {
            if !self.wait_for(2 * turn) {
                return;
            }
            for line in &self.lines {
                line.0.store(line.0.load(Relaxed), Relaxed);
            }
            self.turn.0.store(2 * turn + 1, Release);
        }
    }

    /// Reads all lines, each time that it is its turn. Returns the ns of a line, for each turn.
    fn read(&self) -> Vec<f64> {
        let mut times = Vec::with_capacity(TURNS);
        for turn in 0..TURNS {
            if !self.wait_for(2 * turn + 1) {
                return times;
            }
            let (began, mut at) = (Instant::now(), 0);
            for _ in 0..LINES {
                at = self.lines[at].0.load(Relaxed);
            }
            std::hint::black_box(at);
            times.push(began.elapsed().as_nanos() as f64 / LINES as f64);
            self.turn.0.store(2 * turn + 2, Release);
        }
        times
    }
}

/// The ns that a load takes on `reader` of a line that `writer` wrote last, in the median turn.
///
/// # Errors
/// A CPU on which this program may not run.
pub fn transfer_ns(writer: CpuId, reader: CpuId) -> Result<f64, WalkError> {
    let ring = Ring::new();
    // Each in a thread of its own: threads inherit the affinity of those that start them.
    let (wrote, read) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| ring.on(writer, Ring::write));
        let reader = scope.spawn(|| ring.on(reader, Ring::read));
        (writer.join(), reader.join())
    });
    let (Ok(wrote), Ok(read)) = (wrote, read) else {
        return Ok(0.0);
    };
    wrote?;
    let mut times = read?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::allowed_cpus;

    #[test]
    fn the_ring_has_every_line_once() {
        let ring = Ring::new();
        let mut seen = [false; LINES];
        let mut at = 0;
        for _ in 0..LINES {
            assert!(!std::mem::replace(&mut seen[at], true));
            at = ring.lines[at].0.load(Relaxed);
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn a_line_takes_some_time_and_a_cpu_that_is_not_there_is_an_error() {
        let cpus = allowed_cpus().expect("some CPUs");
        if let [one, other, ..] = cpus[..] {
            let ns = transfer_ns(one, other).expect("measured");
            assert!(ns > 0.0 && ns < 1e6, "{ns}");
        }
        let missing = CpuId(1023);
        assert!(transfer_ns(missing, cpus[0]).is_err());
        assert!(transfer_ns(cpus[0], missing).is_err());
    }
}
