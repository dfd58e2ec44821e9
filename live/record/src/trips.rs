//! What CPU time it takes two threads of one CPU to answer each other: with and without a
//! recorder, the difference is what its events cost this machine.

use std::io::{self, Read, Write, pipe};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

use crate::wall::cpu_time_ns;

/// What is recorded of a round trip on one CPU: each way what announces a wakeup, the wakeup, and a
/// switch.
pub const EVENTS_A_TRIP: u64 = 6;
/// Round trips of a try; the shortest try counts, as others may be at work.
const TRIPS: u32 = 200;
const TRIES: u32 = 12;
/// No try is waited for longer.
const LONGEST: Duration = Duration::from_millis(100);

/// The least CPU time of a round trip, of both threads together, in ns.
///
/// # Errors
/// No pipe, no thread, or no CPU to be bound to.
pub fn trip_ns() -> io::Result<u64> {
    thread::scope(|scope| {
        let both = scope.spawn(shortest);
        both.join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    })
}

fn shortest() -> io::Result<u64> {
    let mut one = CpuSet::new();
    one.set(sched_getcpu());
    sched_setaffinity(None, &one)?;
    between(&one)
}

fn between(one: &CpuSet) -> io::Result<u64> {
    let (mut there, mut away) = pipe()?;
    let (mut here, mut back) = pipe()?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            let bound = sched_setaffinity(None, one).is_ok();
            while bound && matches!(there.read(&mut byte), Ok(1)) && back.write_all(&byte).is_ok() {
            }
        });
        let began = Instant::now();
        let mut least = u64::MAX;
        let mut byte = [0];
        for _ in 0..TRIES {
            let before = cpu_time_ns();
            for _ in 0..TRIPS {
                away.write_all(&byte)?;
                here.read_exact(&mut byte)?;
            }
            let ns = cpu_time_ns().saturating_sub(before) / u64::from(TRIPS);
            least = least.min(ns);
            if began.elapsed() > LONGEST {
                break;
            }
        }
        drop(away);
        Ok(least)
    })
}

#[cfg(test)]
mod tests {
    use rustix::thread::sched_getaffinity;

    use super::*;

    #[test]
    fn a_round_trip_takes_some_time_and_leaves_this_thread_where_it_may_run() {
        let before = sched_getaffinity(None).unwrap();
        let ns = trip_ns().unwrap();
        assert!(ns > 0 && ns < u64::MAX);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
