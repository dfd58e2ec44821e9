//! The CPUs that a task may use, as records of its affinity say.

use std::collections::BTreeMap;
use std::sync::Arc;

use warmq_units::CpuId;

const WORD: usize = u64::BITS as usize;

/// A set of CPUs, of which each record has 64 ([`Record::Affinity`](crate::Record::Affinity)); all
/// CPUs that no record has are in it.
///
/// Only recorded words take memory, and a child shares those of its parent until either
/// changes: a trace can name CPU 65,535, and have a million tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allowed {
    /// By number: bit n of word m is CPU 64 m + n.
    words: Option<Arc<BTreeMap<usize, u64>>>,
}

impl Allowed {
    /// The 64 CPUs from `from` on are those of `cpus`; returns what they were if that is known.
    pub fn set(&mut self, from: CpuId, cpus: u64) -> Option<u64> {
        let words = self.words.get_or_insert_default();
        let word = from.index() / WORD;
        match words.get(&word) {
            // Nothing changes, so that it stays shared.
            Some(known) if *known == cpus => Some(cpus),
            _ => Arc::make_mut(words).insert(word, cpus),
        }
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn has(&self, cpu: CpuId) -> bool {
        let words = self.words.as_ref();
        let word = words.and_then(|words| words.get(&(cpu.index() / WORD)));
        word.is_none_or(|word| word >> (cpu.index() % WORD) & 1 == 1)
    }

    /// Whether all CPUs are in the set.
    pub fn is_all(&self) -> bool {
        let mut words = self.words.iter().flat_map(|words| words.values());
        words.all(|word| *word == u64::MAX)
    }

    /// Those in the set, up to the last of which a record is known.
    pub fn known(&self) -> impl Iterator<Item = CpuId> {
        let last = self.words.iter().filter_map(|words| words.keys().last());
        let end = last.map(|word| (word + 1) * WORD).max().unwrap_or(0);
        let cpus = (0..end).filter_map(|cpu| u16::try_from(cpu).ok().map(CpuId));
        cpus.filter(|cpu| self.has(*cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_that_no_record_has_are_allowed() {
        let mut allowed = Allowed::default();
        assert!(allowed.is_all() && allowed.has(CpuId(7)));
        assert_eq!(allowed.set(CpuId(64), 0b101), None);
        assert!(!allowed.is_all());
        assert!(allowed.has(CpuId(64)) && !allowed.has(CpuId(65)) && allowed.has(CpuId(66)));
        assert!(allowed.has(CpuId(0)) && allowed.has(CpuId(u16::MAX)));
        assert_eq!(allowed.known().count(), 66);
        assert_eq!(allowed.set(CpuId(64), u64::MAX), Some(0b101));
        assert!(allowed.is_all());
    }

    #[test]
    fn a_high_cpu_takes_one_word_and_children_share_it() {
        let mut parent = Allowed::default();
        parent.set(CpuId(65_472), 1);
        let words = |allowed: &Allowed| allowed.words.clone().unwrap();
        assert_eq!(words(&parent).len(), 1);
        let mut child = parent.clone();
        child.set(CpuId(65_472), 1);
        assert!(Arc::ptr_eq(&words(&parent), &words(&child)));
        child.set(CpuId(0), 1);
        assert!(!Arc::ptr_eq(&words(&parent), &words(&child)));
        assert!(parent.has(CpuId(1)) && !child.has(CpuId(1)));
    }
}
