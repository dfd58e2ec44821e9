//! The guards: whether a task may be moved between two caches, by how full they are, and whether
//! tasks are too many for a cache. Numbers alone; no task and no machine.

use super::knobs::Knobs;

/// How full a cache's CPUs are: what of them is used and what there is, in 1024ths of a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) util: u64,
    pub(super) capacity: u64,
}

/// What is said of a move between two caches (`enum llc_mig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not in ordinary balancing either.
    Forbidden,
    /// It is to be made for the cache's sake.
    Drawn,
    /// As ordinary balancing decides.
    Free,
}

impl Knobs {
    /// Whether a cache is no fuller than it may be in any case (`fits_llc_capacity()`).
    fn fits(&self, fill: Fill) -> bool {
        let pct = match self.threads {
            1 => self.overaggr_pct * 3 / 2,
            _ => self.overaggr_pct,
        };
        fill.util * 100 < fill.capacity * pct
    }

    /// Whether `more` is noticeably more than `less` (`util_greater()`).
    fn is_greater(&self, more: u64, less: u64) -> bool {
        more * 100 > less * (100 + self.imb_pct)
    }

    /// Whether a task that uses `util` may move `from` a cache `to` another, one of which it
    /// prefers (`can_migrate_llc()`). Both are judged as they would be after the move.
    ///
    /// To the preferred cache a task is drawn unless that makes it both too full and noticeably
    /// fuller than the other. Away from it a task goes only if it stays too full and noticeably
    /// fuller. Where both are too full, caches do not count.
    pub(super) fn verdict(&self, from: Fill, to: Fill, util: u64, to_preferred: bool) -> Verdict {
        let from = Fill {
            util: from.util.saturating_sub(util),
            ..from
        };
        let to = Fill {
            util: to.util + util,
            ..to
        };
        let (from_fits, to_fits) = (self.fits(from), self.fits(to));
        if !from_fits && !to_fits {
            return Verdict::Free;
        }
        let forbidden = match to_preferred {
            true => !to_fits && self.is_greater(to.util, from.util),
            false => from_fits || !self.is_greater(from.util, to.util),
        };
        match forbidden {
            true => Verdict::Forbidden,
            false => Verdict::Drawn,
        }
    }

    /// Whether tasks that are busy on `running` CPUs at a time are too many for a cache of `cpus`,
    /// as they would use more than 80 % of its cores (`invalid_llc_nr()`).
    pub(super) fn are_too_many(&self, running: u64, cpus: u64) -> bool {
        let tolerated = self.aggr_tolerance;
        tolerated < 100 && running * self.threads * 5 >= tolerated * cpus * 4
    }

    /// The mean of how many CPUs are busy, with the last `sample` (`update_avg_scale()`). The
    /// division rounds towards the mean, which so stays below a constant sample by up to a divisor
    /// less one.
    pub(super) fn mean_running(mean: u64, sample: u64, cpus: u64) -> u64 {
        let divisor = (cpus / 4).clamp(2, 8) as i64;
        let change = (sample as i64 - mean as i64) / divisor;
        mean.saturating_add_signed(change)
    }
}
