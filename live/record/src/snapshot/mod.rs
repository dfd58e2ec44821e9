//! What /proc says of tasks that no event has: group, nice value, policy, affinity.

mod account;
mod groups;
mod namespace;
mod task;

use std::collections::BTreeMap;

use warmq_trace::{Account, Comm, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use self::account::Accounts;
use crate::proc;

use self::groups::{Group, Groups};
pub use self::groups::{QuotaStat, quota_in, throttled_in};
pub use self::namespace::see_all_groups;
use self::task::Alive;

/// The tasks that were there when somebody looked, and the groups that they were in.
///
/// Look once before a recording, now and then while it goes on, for tasks that were forked
/// meanwhile, and once after it.
#[derive(Debug, Default)]
pub struct Snapshot {
    tasks: BTreeMap<u32, Alive>,
    groups: Groups,
    accounts: Accounts,
    looked: bool,
}

impl Snapshot {
    /// Looks at every thread that is not known yet.
    pub fn look(&mut self) {
        let sessions = groups::sessions_have_groups();
        for (tid, tgid) in proc::processes() {
            if !self.tasks.contains_key(&tid)
                && let Some((alive, group)) = task::read(tgid, tid, sessions)
            {
                let group = self.groups.number(&group);
                self.tasks.insert(tid, Alive { group, ..alive });
                self.accounts.meet(tgid, tid, self.looked);
            }
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.accounts.begin();
        }
    }

    /// What the kernel itself has counted since the first look: of each thread that is still there,
    /// and for how long some task waited for a CPU.
    pub fn accounts(&self) -> (Vec<Account>, Option<Duration>) {
        (self.accounts.since(), self.accounts.pressure())
    }

    /// Hands on to `out`, at time 0, what the groups are.
    pub fn groups(&self, out: &mut dyn FnMut(Instant, Record)) {
        for (number, group) in self.groups.all() {
            let Group {
                parent,
                weight,
                ref name,
                limit: (quota, period),
                ..
            } = *group;
            let record = Record::Cgroup {
                group: number,
                parent,
                weight,
                name: Comm::new(name),
            };
            out(Instant::START, record);
            let limit = Record::Limit {
                group: number,
                quota,
                period,
            };
            out(Instant::START, limit);
            if group.is_counted() {
                out(Instant::START, quota_of(number, &QuotaStat::default()));
            }
        }
    }

    /// Hands on to `out` a record of a recording, and after the first one of a task what is known
    /// of it.
    pub fn told(&self, at: Instant, record: Record, out: &mut dyn FnMut(Instant, Record)) {
        out(at, record);
        let Record::Ids { task, tid, .. } = record else {
            return;
        };
        if let Some(alive) = self.tasks.get(&tid) {
            alive.records(task).for_each(|record| out(at, record));
        }
    }

    /// What was counted of quotas since the groups were first looked at, and for how long they held
    /// tasks back.
    pub fn throttled(&self, at: Instant, out: &mut dyn FnMut(Instant, Record)) {
        for (number, group) in self.groups.all() {
            let Some(stat) = group.counted_since().filter(|stat| stat.periods > 0) else {
                continue;
            };
            let (group, span) = (number, Duration::from_us(stat.throttled_us));
            if span > Duration::ZERO {
                out(at, Record::Throttled { group, span });
            }
            out(at, quota_of(number, &stat));
        }
    }
}

/// What was counted of the quota of `group`, as a record.
fn quota_of(group: u32, stat: &QuotaStat) -> Record {
    Record::Quota {
        group,
        periods: stat.periods,
        throttled: stat.throttled,
        span: Duration::from_us(stat.throttled_us),
    }
}

/// An affinity as records.
fn affinity(task: TaskId, words: &[u64]) -> impl Iterator<Item = Record> {
    (0..).zip(words).map(move |(word, cpus)| Record::Affinity {
        task,
        from: CpuId(64 * word),
        cpus: *cpus,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread_is_known_with_all_that_is_to_know() {
        let mut snapshot = Snapshot::default();
        snapshot.look();
        assert!(snapshot.tasks.len() > 1);
        let (tid, task) = (std::process::id(), TaskId(7));
        let mut records = Vec::new();
        let ids = Record::Ids {
            task,
            tid,
            tgid: tid,
        };
        snapshot.told(Instant(1), ids, &mut |_, record| records.push(record));
        assert_eq!(records.first(), Some(&ids));
        let has = |is: fn(&Record) -> bool| records.iter().any(is);
        assert!(has(|record| matches!(record, Record::Nice { .. })));
        assert!(has(|record| matches!(record, Record::Policy { .. })));
        assert!(has(|record| matches!(record, Record::Group { .. })));
        assert!(!has(|record| matches!(record, Record::KernelThread { .. })));
    }
}
