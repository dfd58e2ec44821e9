//! What tasks are expected to use of a CPU: an average forgets while a task sleeps, and falls while
//! it waits for its turn; what it came to when the task slept last does not (`util_est_update()`).

use warmq_units::CpuId;

use crate::fair::tree::EntityId;

use super::load::CAPACITY;
use super::state::State;

/// By how much less, in 1024ths of a CPU, a task must have used for its estimate to fall
/// (`UTIL_EST_MARGIN`).
const MARGIN: u64 = CAPACITY / 100;
/// An estimate that falls moves by a part in 2^2 (`UTIL_EST_WEIGHT_SHIFT`).
const WEIGHT_SHIFT: u32 = 2;

/// The estimate of a task that used `util` when it slept, was runnable for `runnable`, and was
/// expected to use `before`. It follows at once where that was too little; it does not fall where
/// the task had to wait. The kernel leaves it alone if the average is still that of the last time,
/// which is at most a ms ago; here it is then moved again.
fn renewed(before: u64, util: u64, runnable: u64) -> u64 {
    if before <= util {
        return util;
    }
    let fell = before - util;
    let waited = util + MARGIN < runnable;
    match fell < MARGIN || waited {
        true => before,
        false => before - (fell >> WEIGHT_SHIFT),
    }
}

impl State {
    /// A task is queued on `cpu` (`util_est_enqueue()`).
    pub(super) fn expect(&mut self, entity: EntityId, cpu: CpuId) {
        let estimate = self.entities[entity].estimate;
        self.cpu_mut(cpu).estimate += estimate;
    }

    /// A task is no longer (`util_est_dequeue()`). If it sleeps, its estimate is made anew.
    pub(super) fn expect_no_more(&mut self, entity: EntityId, cpu: CpuId, sleeps: bool) {
        let estimate = self.entities[entity].estimate;
        self.cpu_mut(cpu).estimate -= estimate;
        if sleeps {
            let state = &mut self.entities[entity];
            state.estimate = renewed(estimate, state.load.util, state.load.runnable());
        }
    }

    /// How much of `cpu` fair tasks use, or are expected to (`cpu_util_cfs()`).
    pub(super) fn util(&self, cpu: CpuId) -> u64 {
        self.at_least_expected(cpu, self.queues[self.cpu(cpu).root].load.util)
    }

    /// The same, where what waits counts as if it ran (`cpu_util_cfs_boost()`).
    pub(super) fn boosted_util(&self, cpu: CpuId) -> u64 {
        let load = &self.queues[self.cpu(cpu).root].load;
        self.at_least_expected(cpu, load.util.max(load.runnable))
    }

    fn at_least_expected(&self, cpu: CpuId, used: u64) -> u64 {
        let expected = match self.rules.util_est {
            true => self.cpu(cpu).estimate,
            false => 0,
        };
        used.max(expected).min(self.cpu(cpu).whole)
    }

    /// How much of a CPU `entity` uses, or is expected to (`task_util_est()`).
    pub(super) fn util_of(&self, entity: EntityId) -> u64 {
        let state = &self.entities[entity];
        let expected = match self.rules.util_est {
            true => state.estimate,
            false => 0,
        };
        state.load.util.max(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_rises_at_once_falls_by_quarters_and_not_for_a_wait() {
        for (case, before, util, runnable, expected) in [
            ("more", 100, 400, 400, 400),
            ("less", 400, 200, 200, 350),
            ("little less", 400, 391, 391, 400),
            ("less, having waited", 400, 200, 300, 400),
            ("less, having hardly waited", 400, 200, 210, 350),
        ] {
            assert_eq!(renewed(before, util, runnable), expected, "{case}");
        }
    }
}
