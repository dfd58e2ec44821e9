//! The clocks: the one of the trace, and the monotonic one.

use rustix::time::{ClockId, clock_gettime};

use crate::RecordError;
use crate::tracefs::Folder;

/// Clocks of a trace, the best first.
const CLOCKS: [&str; 3] = ["mono", "boot", "global"];

/// The CPU time of this process so far, all threads together, in ns.
pub fn cpu_time_ns() -> u64 {
    ns(ClockId::ProcessCPUTime)
}

/// The monotonic clock, in ns, by which recordings are timed.
pub fn monotonic_ns() -> u64 {
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + rest
}

/// Chooses the best clock that the kernel offers.
///
/// # Errors
/// The system's answer.
pub(crate) fn choose(instance: &Folder) -> Result<&'static str, RecordError> {
    let offered = instance.read("trace_clock")?;
    let offers = |name: &str| {
        let mut all = offered.split_whitespace();
        all.any(|word| word.trim_matches(['[', ']']) == name)
    };
    let clock = CLOCKS.into_iter().find(|name| offers(name));
    let clock = clock.unwrap_or(CLOCKS[2]);
    instance.write("trace_clock", clock)?;
    Ok(clock)
}

/// How far `clock` is ahead of the monotonic clock, in ns.
///
/// # Errors
/// The system's answer.
pub(crate) fn ahead_ns(clock: &str, instance: &Folder) -> Result<i64, RecordError> {
    let now = |clock: &str| -> Result<u64, RecordError> {
        Ok(match clock {
            "mono" => ns(ClockId::Monotonic),
            "boot" => ns(ClockId::Boottime),
            _ => now_in(&instance.read("per_cpu/cpu0/stats")?).unwrap_or(0),
        })
    };
    // The monotonic clock at the moment of the reading is between the two around it.
    let (before, there, after) = (monotonic_ns(), now(clock)?, monotonic_ns());
    if clock == "mono" {
        return Ok(0);
    }
    let here = before.midpoint(after);
    Ok(there.cast_signed().wrapping_sub(here.cast_signed()))
}

/// `now ts:  1144.496059`, in ns.
fn now_in(stats: &str) -> Option<u64> {
    let mut lines = stats.lines();
    let (seconds, micros) = lines
        .find_map(|line| line.strip_prefix("now ts:"))?
        .trim()
        .split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    let micros: u64 = micros.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(micros.checked_mul(1_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_trace_is_read_in_microseconds() {
        let stats = "entries: 0\noldest event ts:     0.000000\nnow ts:  1144.096059\n";
        assert_eq!(now_in(stats), Some(1_144_096_059_000));
        for odd in [
            "",
            "now ts: x.y",
            "now ts: 5",
            "now ts: 99999999999999999999.1",
        ] {
            assert_eq!(now_in(odd), None, "{odd}");
        }
    }
}
