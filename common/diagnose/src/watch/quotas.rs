//! What kernels count of the quotas of groups.

use std::collections::BTreeMap;

use warmq_trace::{QuotaStat, Record};
use warmq_units::Duration;

/// By group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    /// For how long its tasks were held back.
    held: BTreeMap<u32, Duration>,
    now: BTreeMap<u32, QuotaStat>,
    /// What had been counted when the measurement began, or when a record first said so.
    before: BTreeMap<u32, QuotaStat>,
}

impl Quotas {
    pub fn learn(&mut self, record: &Record) {
        if let Record::Throttled { group, span } = *record {
            *self.held.entry(group).or_default() += span;
        }
        if let Some((group, stat)) = QuotaStat::said(record) {
            self.now.insert(group, stat);
            self.before.entry(group).or_insert(stat);
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
    pub fn of(&self, group: u32) -> Option<QuotaStat> {
        let stat = self.now.get(&group)?.since(*self.before.get(&group)?);
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
        let stat = QuotaStat {
            periods: 20,
            throttled: 1,
            span: Duration::from_ms(70),
        };
        assert_eq!(quotas.of(1), Some(stat));
        assert_eq!(quotas.of(2), None);
    }
}
