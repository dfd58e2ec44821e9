//! What kernels count of the quotas of groups.

use std::collections::BTreeMap;

use warmq_trace::{Comm, QuotaStat, Record};

/// By group.
pub(crate) type Counted = BTreeMap<u32, QuotaStat>;

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
        if let Record::Cgroup { group, name, .. } = *record {
            let table = self.tables.iter().position(|table| *table == name);
            self.of.extend(table.map(|table| (group, table)));
        }
        let said = QuotaStat::said(record);
        self.now.extend(said);
        said.is_some()
    }

    pub(crate) fn now(&self) -> &Counted {
        &self.now
    }

    /// What was counted of all groups of `table` since `before`; none if nothing was counted at
    /// all.
    pub(crate) fn since(&self, before: &Counted, table: usize) -> Option<QuotaStat> {
        let groups = self.now.iter();
        let mut of_table = groups
            .filter(|(group, _)| self.of.get(group) == Some(&table))
            .peekable();
        of_table.peek()?;
        let counted = |(group, now): (&u32, &QuotaStat)| {
            now.since(before.get(group).copied().unwrap_or_default())
        };
        Some(of_table.map(counted).sum())
    }
}
