//! What the kernel says a thread has used.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;

/// CPU time and context switches of a thread, as getrusage(2) counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// CPU time in user space.
    pub user_us: u64,
    /// CPU time in the kernel.
    pub system_us: u64,
    /// How often the thread went to sleep.
    pub voluntary_switches: u64,
    /// How often the CPU was taken from it.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Of the calling thread, since it began.
    pub fn of_this_thread() -> Usage {
        // The kernel refuses this only for a selector that it does not know.
        let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
            return Usage::default();
        };
        Usage {
            user_us: micros(usage.user_time()),
            system_us: micros(usage.system_time()),
            voluntary_switches: usage.voluntary_context_switches() as u64,
            involuntary_switches: usage.involuntary_context_switches() as u64,
        }
    }

    /// What came after `earlier`.
    pub fn since(self, earlier: Usage) -> Usage {
        Usage {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }

    /// All CPU time, in microseconds.
    pub fn cpu_us(self) -> u64 {
        self.user_us + self.system_us
    }
}

fn micros(time: TimeVal) -> u64 {
    time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64
}
