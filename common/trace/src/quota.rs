//! What kernels count of the quotas of groups.

use warmq_units::Duration;

use crate::Record;

/// What `cpu.stat` says of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::Add, derive_more::Sum)]
pub struct QuotaStat {
    /// Periods that have ended (`nr_periods`).
    pub periods: u64,
    /// Those in which it was throttled on some CPU (`nr_throttled`).
    pub throttled: u64,
    /// For how long, summed over CPUs.
    pub span: Duration,
}

impl QuotaStat {
    /// What `record` says, if it says so, and of which group.
    pub fn said(record: &Record) -> Option<(u32, QuotaStat)> {
        let Record::Quota {
            group,
            periods,
            throttled,
            span,
        } = *record
        else {
            return None;
        };
        let stat = QuotaStat {
            periods,
            throttled,
            span,
        };
        Some((group, stat))
    }

    /// What was counted since it was `before`.
    #[must_use]
    pub fn since(self, before: QuotaStat) -> QuotaStat {
        QuotaStat {
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            span: self.span.saturating_sub(before.span),
        }
    }
}
