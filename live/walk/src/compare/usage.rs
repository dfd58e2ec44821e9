//! CPU time and switches of this process.

use std::ops::{Add, Sub};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// CPU time and switches of a process with all its threads, also those that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time in the program in ns.
    pub user_ns: u64,
    /// Time in the kernel in ns.
    pub system_ns: u64,
    /// Switches because a thread waited.
    pub voluntary: u64,
    /// Switches because another task took the CPU.
    pub involuntary: u64,
}

impl Usage {
    /// Of this process up to now.
    ///
    /// # Errors
    /// [`BenchError::System`] where the kernel does not tell.
    pub fn now() -> Result<Usage, BenchError> {
        Usage::of(UsageWho::RUSAGE_SELF)
    }

    /// Of this process, and of those that it started and that have ended.
    pub(crate) fn with_children() -> Result<Usage, BenchError> {
        Ok(Usage::now()? + Usage::of(UsageWho::RUSAGE_CHILDREN)?)
    }

    fn of(who: UsageWho) -> Result<Usage, BenchError> {
        let usage = getrusage(who).map_err(|errno| {
            BenchError::system("ask for the CPU time", errno, "try as another user")
        })?;
        let ns = |time: nix::sys::time::TimeVal| time.num_nanoseconds() as u64;
        Ok(Usage {
            user_ns: ns(usage.user_time()),
            system_ns: ns(usage.system_time()),
            voluntary: usage.voluntary_context_switches() as u64,
            involuntary: usage.involuntary_context_switches() as u64,
        })
    }

    /// CPU time in all, in ns.
    pub fn cpu_ns(self) -> u64 {
        self.user_ns + self.system_ns
    }

    fn with(self, other: Usage, combine: impl Fn(u64, u64) -> u64) -> Usage {
        Usage {
            user_ns: combine(self.user_ns, other.user_ns),
            system_ns: combine(self.system_ns, other.system_ns),
            voluntary: combine(self.voluntary, other.voluntary),
            involuntary: combine(self.involuntary, other.involuntary),
        }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(self, other: Usage) -> Usage {
        self.with(other, u64::saturating_add)
    }
}

impl Sub for Usage {
    type Output = Usage;

    /// What was used since `earlier`. The kernel splits CPU time into user and system time by
    /// samples and may correct itself, so that a part can seem to fall: then it is 0.
    fn sub(self, earlier: Usage) -> Usage {
        self.with(earlier, u64::saturating_sub)
    }
}
