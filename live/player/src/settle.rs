//! Waits until a guest that has just booted is quiet: its kernel still works for a while (deferred
//! initialisation), and timers are coarse until the clock is calibrated.

use std::fs;

use crate::notes::Notes;
use crate::sys::clock::{resolution_ns, sleep_ns};

/// How long one look takes: many ticks.
const LOOK_NS: u64 = 100_000_000;
/// Looks before a guest is taken as it is.
const LOOKS: u32 = 50;
/// A coarser clock than this means that timers fire at ticks.
const SHARP_NS: u64 = 1_000;

/// Waits until at most a twentieth of all CPU time is used, and timers are sharp.
pub fn settle(notes: &Notes) {
    let mut before = Used::now();
    for _ in 0..LOOKS {
        sleep_ns(LOOK_NS);
        let now = Used::now();
        if now.is_quiet_since(&before) && resolution_ns() <= SHARP_NS {
            return;
        }
        before = now;
    }
    if resolution_ns() > SHARP_NS {
        notes.say(
            "timers",
            "the kernel has no high-resolution timers: sleeps end at ticks",
        );
    } else {
        notes.say("the guest", "it is not idle before the run begins");
    }
}

/// Ticks of all CPUs since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    all: u64,
    idle: u64,
}

impl Used {
    fn now() -> Used {
        Used::of(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// From the text of `/proc/stat`: `cpu  USER NICE SYSTEM IDLE IOWAIT ...`.
    fn of(text: &str) -> Used {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        Used {
            all: ticks.iter().sum(),
            idle: ticks.iter().skip(3).take(2).sum(),
        }
    }

    fn is_quiet_since(&self, before: &Used) -> bool {
        let all = self.all.saturating_sub(before.all);
        let used = all.saturating_sub(self.idle.saturating_sub(before.idle));
        all > 0 && used * 20 <= all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_quiet_if_it_idles() {
        let before = Used::of("cpu  10 0 5 100 7 0 1 0 0 0\ncpu0 1 2 3\n");
        assert_eq!(
            before,
            Used {
                all: 123,
                idle: 107
            }
        );
        let after = |used, idle| Used {
            all: before.all + used + idle,
            idle: before.idle + idle,
        };
        assert!(after(1, 19).is_quiet_since(&before));
        assert!(!after(2, 19).is_quiet_since(&before));
        assert!(!before.is_quiet_since(&before), "nothing is known yet");
        assert_eq!(Used::of(""), Used::default());
    }
}
