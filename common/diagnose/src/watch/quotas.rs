//! What kernels count of the quotas of groups.

use std::collections::BTreeMap;

use warmq_trace::Record;
use warmq_units::Duration;

/// What `cpu.stat` says of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Periods that have ended (`nr_periods`).
    pub periods: u64,
    /// Those in which it was throttled on some CPU (`nr_throttled`).
    pub throttled: u64,
    /// For how long, summed over CPUs.
    pub span: Duration,
}

/// By group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    /// For how long its tasks were held back.
    held: BTreeMap<u32, Duration>,
    now: BTreeMap<u32, Stat>,
    /// What had been counted when the measurement began, or when a record first said so.
    before: BTreeMap<u32, Stat>,
}

impl Quotas {
    pub fn learn(&mut self, record: &Record) {
        match *record {
            Record::Throttled { group, span } => *self.held.entry(group).or_default() += span,
            Record::Quota {
                group,
                periods,
                throttled,
                span,
            } => {
                let stat = Stat {
                    periods,
                    throttled,
                    span,
                };
                self.now.insert(group, stat);
                self.before.entry(group).or_insert(stat);
            }
            _ => {}
        }
    }

    /// The measurement begins.
    pub fn restart(&mut self) {
        self.held.clear();
        self.before.clone_from(&self.now);
    }

    /// For how long the quota of `group` held tasks back.
    pub fn held(&self, group: u32) -> Duration {
        self.held.get(&group).copied().unwrap_or_default()
    }

    /// What was counted of `group` meanwhile; none where nothing was.
    pub fn of(&self, group: u32) -> Option<Stat> {
        let (now, before) = (self.now.get(&group)?, self.before.get(&group)?);
        let stat = Stat {
            periods: now.periods.saturating_sub(before.periods),
            throttled: now.throttled.saturating_sub(before.throttled),
            span: now.span.saturating_sub(before.span),
        };
        (stat.periods > 0).then_some(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_counted_meanwhile_counts() {
        let counted = |periods, throttled, ms| Record::Quota {
            group: 1,
            periods,
            throttled,
            span: Duration::from_ms(ms),
        };
        let mut quotas = Quotas::default();
        quotas.learn(&counted(7, 4, 100));
        assert_eq!(quotas.of(1), None);
        quotas.learn(&counted(10, 4, 200));
        assert_eq!(quotas.of(1).map(|stat| stat.periods), Some(3));
        quotas.restart();
        assert_eq!(quotas.of(1), None);
        quotas.learn(&counted(30, 5, 270));
        let stat = Stat {
            periods: 20,
            throttled: 1,
            span: Duration::from_ms(70),
        };
        assert_eq!(quotas.of(1), Some(stat));
        assert_eq!(quotas.of(2), None);
    }
}
