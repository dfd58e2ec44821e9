//! Who a task is.

use warmq_trace::{Comm, Policy, Record};
use warmq_units::{CpuId, Duration};

const WORD: usize = u64::BITS as usize;

/// What a task is like: as a trace said last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Who {
    pub comm: Comm,
    /// Its table and number in the scenario.
    pub role: Option<(u32, u32)>,
    pub tid: Option<u32>,
    /// Its process; none if unknown.
    pub tgid: Option<u32>,
    pub group: u32,
    pub nice: i8,
    pub policy: Option<Policy>,
    /// Of a real-time policy, from 1 to 99.
    pub priority: u8,
    pub slice: Duration,
    /// Bit n of word m is CPU 64 m + n; empty: all CPUs.
    pub cpus: Vec<u64>,
    /// How often something was set that had been set before.
    pub changes: u64,
}

impl Who {
    /// What a child has of its parent.
    pub fn inherited(&self) -> Who {
        Who {
            role: None,
            tid: None,
            changes: 0,
            ..self.clone()
        }
    }

    /// Takes in what a record says of the task.
    pub fn learn(&mut self, record: &Record) {
        match *record {
            Record::Role { table, number, .. } => self.role = Some((table, number)),
            Record::Renamed { comm, .. } => self.comm = comm,
            Record::Ids { tid, tgid, .. } => {
                self.tid = Some(tid);
                self.tgid = (tgid != 0).then_some(tgid);
            }
            Record::Nice { nice, .. } => {
                self.changes += u64::from(self.nice != 0 && self.nice != nice);
                self.nice = nice;
            }
            Record::Policy {
                policy, priority, ..
            } => {
                let other = self.policy.is_some_and(|known| known != policy);
                self.changes += u64::from(other);
                (self.policy, self.priority) = (Some(policy), priority);
            }
            Record::Slice { slice, .. } => self.slice = slice,
            Record::Group { group, .. } => {
                self.changes += u64::from(self.group != 0 && self.group != group);
                self.group = group;
            }
            Record::Affinity { from, cpus, .. } => self.allow(from, cpus),
            _ => {}
        }
    }

    /// The CPUs from `from` on are those of `cpus`.
    fn allow(&mut self, from: CpuId, cpus: u64) {
        let word = from.index() / WORD;
        if self.cpus.len() <= word {
            self.cpus.resize(word + 1, u64::MAX);
        } else {
            self.changes += u64::from(self.cpus[word] != cpus);
        }
        self.cpus[word] = cpus;
    }

    /// Of the first `count` CPUs, those that it may use; none: all.
    pub fn allowed(&self, count: usize) -> Option<Vec<usize>> {
        let may = |cpu: &usize| {
            let word = self.cpus.get(cpu / WORD).copied();
            word.unwrap_or(u64::MAX) >> (cpu % WORD) & 1 == 1
        };
        let allowed: Vec<usize> = (0..count).filter(may).collect();
        (allowed.len() < count).then_some(allowed)
    }
}
