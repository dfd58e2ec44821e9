//! One thread: visits its fragment again and again, and looks now and then where it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use warmq_units::{CpuId, Seed};

use crate::compare::{Limit, Placing};
use crate::error::BenchError;
use crate::thread;

use super::array::{Array, Mix};

/// Accesses between two looks at the CPU and the clock: some 20 us, far below a time slice, and far
/// above what the looks take.
const BETWEEN_LOOKS: u64 = 4096;

/// What one thread is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    pub thread: u32,
    pub fragment: u32,
    pub array: &'a Array,
    pub accesses: u64,
    pub write_share: u32,
    pub placing: &'a Placing,
    pub limit: &'a Limit,
    pub stop: &'a AtomicBool,
}

/// Where a thread was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    /// Accesses by the CPU on which they ended.
    pub accesses: BTreeMap<CpuId, u64>,
    /// Times that the thread was on another CPU than at the look before.
    pub moves: u64,
    last: Option<CpuId>,
}

impl Trail {
    pub(super) fn see(&mut self, cpu: CpuId, accesses: u64) {
        self.moves += u64::from(self.last.is_some_and(|last| last != cpu));
        self.last = Some(cpu);
        *self.accesses.entry(cpu).or_default() += accesses;
    }
}

impl Work<'_> {
    /// All of it, or `None` where it was told to stop.
    pub(super) fn run(self) -> Result<Option<Trail>, BenchError> {
        let placed = self.placing.enter(self.fragment);
        if placed.is_err() {
            self.stop.store(true, Ordering::Relaxed);
        }
        let _placed = placed?;
        let mut draws = Seed(u64::from(self.thread)).stream("accesses");
        let (mut mix, mut trail) = (Mix::new(self.write_share), Trail::default());
        let mut left = self.accesses;
        while left > 0 {
            if self.is_stopped() {
                return Ok(None);
            }
            let now = left.min(BETWEEN_LOOKS);
            self.array.visit(&mut draws, &mut mix, now);
            trail.see(thread::current_cpu().unwrap_or_default(), now);
            left -= now;
        }
        Ok(Some(trail))
    }

    fn is_stopped(&self) -> bool {
        if self.limit.is_over() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }
}
