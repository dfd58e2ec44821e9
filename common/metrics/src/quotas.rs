//! What kernels count of the quotas of groups.

use std::collections::BTreeMap;

use warmq_trace::{Comm, Record};
use warmq_units::Duration;

/// What `cpu.stat` says of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    pub(crate) span: Duration,
}

/// By group.
pub(crate) type Counted = BTreeMap<u32, Quota>;

/// The groups of a scenario that have a quota, and what was counted of them until now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas {
    /// The names of tables, as records cut them.
    tables: Vec<Comm>,
    /// The table of each group.
    of: BTreeMap<u32, usize>,
    now: Counted,
}

impl Quotas {
    pub(crate) fn new(tables: &[String]) -> Quotas {
        Quotas {
            tables: tables.iter().map(|name| Comm::new(name)).collect(),
            ..Quotas::default()
        }
    }

    /// True if `record` is of a quota, and other counts hold from now on.
    pub(crate) fn see(&mut self, record: &Record) -> bool {
        match *record {
            Record::Cgroup { group, name, .. } => {
                let table = self.tables.iter().position(|table| *table == name);
                self.of.extend(table.map(|table| (group, table)));
                false
            }
            Record::Quota {
                group,
                periods,
                throttled,
                span,
            } => {
                let quota = Quota {
                    periods,
                    throttled,
                    span,
                };
                self.now.insert(group, quota);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn now(&self) -> &Counted {
        &self.now
    }

    /// What was counted of all groups of `table` since `before`; none if nothing was counted at
    /// all.
    pub(crate) fn since(&self, before: &Counted, table: usize) -> Option<Quota> {
        let groups = self.now.iter();
        let mut of_table = groups
            .filter(|(group, _)| self.of.get(group) == Some(&table))
            .peekable();
        of_table.peek()?;
        Some(of_table.fold(Quota::default(), |sum, (group, now)| {
            let before = before.get(group).copied().unwrap_or_default();
            Quota {
                periods: sum.periods + now.periods.saturating_sub(before.periods),
                throttled: sum.throttled + now.throttled.saturating_sub(before.throttled),
                span: sum.span + now.span.saturating_sub(before.span),
            }
        }))
    }
}
