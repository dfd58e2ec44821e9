//! The scheduling policy of a thread.
#![allow(
    unsafe_code,
    reason = "no library at hand wraps sched_setscheduler for a thread"
)]

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::BenchError;

/// How the kernel's own fair scheduler treats a thread; sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// `SCHED_OTHER`: its wakeup may take the CPU from whoever runs.
    Other,
    /// `SCHED_BATCH`: its wakeup takes the CPU from nobody.
    Batch,
}

impl Policy {
    /// Puts the calling thread under this policy; needs no privilege.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn apply(self) -> Result<(), BenchError> {
        let policy = match self {
            Policy::Other => libc::SCHED_OTHER,
            Policy::Batch => libc::SCHED_BATCH,
        };
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the kernel only reads `parameters`; 0 is the calling thread.
        let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        let failed = || {
            let fix = "leave the policy out of --policies";
            BenchError::last_system(format!("put the receiver under {self}"), fix)
        };
        if done == 0 { Ok(()) } else { Err(failed()) }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Other => "other",
            Policy::Batch => "batch",
        })
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        match text {
            "other" => Ok(Policy::Other),
            "batch" => Ok(Policy::Batch),
            _ => Err("write other, batch, or both: other,batch".to_owned()),
        }
    }
}
