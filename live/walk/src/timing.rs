//! Times a walk of a ring on a CPU that others use too.

use super::arena::Ring;
use crate::thread;

/// How often a measurement is tried again when another task came in between.
const TRIES: u32 = 4;

/// What to read at each stop of a ring.
#[derive(Clone, Copy, Debug)]
pub struct Stops {
    /// Stops of the ring.
    pub count: u64,
    /// Lines read at each.
    pub lines: u32,
    /// Bytes of a line.
    pub line: u64,
}

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Timed {
    /// Time for a step in ns.
    pub ns_per_step: f64,
    /// Another task had the CPU in the meantime.
    pub disturbed: bool,
}

/// Walks `ring` round and round for at least `min_ns`, after rounds that warm the caches.
pub fn time(ring: &mut Ring<'_>, stops: Stops, min_ns: u64) -> Timed {
    // Caches that do not replace in strict order take a few rounds to settle.
    run(ring, stops, stops.count * 4);
    let probe = stops.count.max(4096);
    let estimate = run(ring, stops, probe).0.max(1);
    let rounds = (min_ns * probe)
        .div_ceil(estimate)
        .div_ceil(stops.count)
        .max(1);
    let mut best = None;
    for _ in 0..TRIES {
        let (ns, disturbed) = run(ring, stops, rounds * stops.count);
        let timed = Timed {
            ns_per_step: ns as f64 / (rounds * stops.count) as f64,
            disturbed,
        };
        if !disturbed {
            return timed;
        }
        best = best
            .filter(|b: &Timed| b.ns_per_step <= timed.ns_per_step)
            .or(Some(timed));
    }
    best.expect("at least one try")
}

/// CPU time of `steps` steps in ns, and whether another task came in between.
fn run(ring: &mut Ring<'_>, stops: Stops, steps: u64) -> (u64, bool) {
    let (switches, start) = (thread::preemptions(), thread::cpu_time_ns());
    match stops.lines {
        1 => ring.walk(steps),
        lines => ring.walk_lines(steps, lines, stops.line),
    }
    (
        thread::cpu_time_ns() - start,
        thread::preemptions() != switches,
    )
}
