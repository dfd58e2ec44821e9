//! What to measure: plain data, a reason on every field, checked before anything runs.

use std::time::Duration;

use warmq_units::Bytes;

use crate::compare::{
    Mode, check_list, check_modes, check_number, check_repetitions, check_time_limit,
};
use crate::error::BenchError;

/// The most memory that a measurement asks for: 4 GB.
const MOST_MEMORY: u64 = 4 << 30;

/// Bytes of a number.
const NUMBER: u64 = 4;

/// A measurement of fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentsSettings {
    /// Threads, 1 to 10000; each number is measured on its own. The paper has 8, 32 and 128.
    pub threads: Vec<u32>,
    /// Fragments, 1 to 65536; thread i works on fragment i modulo this. The paper has 4.
    pub fragments: u32,
    /// 32-bit numbers in a fragment; each size is measured on its own. The paper has 1000, 8000 and
    /// 20000.
    pub sizes: Vec<u32>,
    /// Accesses of each thread, at least 1. So few that a run is short, and so many that the start
    /// of a thread does not matter.
    pub iterations: u64,
    /// Accesses in a hundred that write.
    pub write_share: u32,
    /// How threads are placed; each mode at most once.
    pub modes: Vec<Mode>,
    /// Rounds, 1 to 1000, in each of which every mode is run; medians are reported.
    pub repetitions: u32,
    /// Time after which the measurement ends with the rounds that are complete.
    pub time_limit: Duration,
}

impl Default for FragmentsSettings {
    fn default() -> FragmentsSettings {
        FragmentsSettings {
            threads: vec![8, 32],
            fragments: 4,
            sizes: vec![1000, 8000, 20_000],
            iterations: 8_000_000,
            write_share: 100,
            modes: Mode::ALL.to_vec(),
            repetitions: 6,
            time_limit: Duration::from_secs(300),
        }
    }
}

/// One number of threads with one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub threads: u32,
    pub size: u32,
}

impl FragmentsSettings {
    /// Refuses settings that no measurement can be made of.
    ///
    /// # Errors
    /// [`BenchError::Setting`] with the field, its value, and what to write instead.
    pub fn check(&self) -> Result<(), BenchError> {
        check_list("threads", &self.threads, 1..=10_000, "threads")?;
        check_number("fragments", self.fragments.into(), 1..=65_536, "fragments")?;
        check_list("size", &self.sizes, 1..=1 << 30, "numbers in a fragment")?;
        let share = u64::from(self.write_share);
        check_number("write_share", share, 0..=100, "accesses in a hundred")?;
        check_number("iterations", self.iterations, 1..=1 << 40, "accesses")?;
        check_modes(&self.modes)?;
        check_repetitions(self.repetitions)?;
        check_time_limit(self.time_limit)?;
        self.check_memory()
    }

    /// Runs in all.
    pub fn runs(&self) -> usize {
        self.threads.len() * self.sizes.len() * self.modes.len() * self.repetitions as usize
    }

    fn check_memory(&self) -> Result<(), BenchError> {
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        let needed = u64::from(largest) * NUMBER * u64::from(self.fragments);
        if needed <= MOST_MEMORY {
            return Ok(());
        }
        let fragments = self.fragments;
        let problem = format!("{fragments} fragments of that size take {}", Bytes(needed));
        let most = MOST_MEMORY / NUMBER / u64::from(fragments);
        let fix = format!("write at most {most}, or fewer --fragments");
        Err(BenchError::setting("size", largest, problem, fix))
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let of = |threads: u32| self.sizes.iter().map(move |size| (threads, *size));
        let pairs = self.threads.iter().flat_map(|threads| of(*threads));
        pairs
            .map(|(threads, size)| Case { threads, size })
            .collect()
    }
}
