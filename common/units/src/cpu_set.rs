//! Sets of CPUs, as bitmaps.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::CpuId;

/// A set of CPUs: one bit a CPU, as `cpumask_t` is.
///
/// Invariant: the last word is not zero, so that equal sets have equal words.
///
/// ```
/// use warmq_units::{CpuId, CpuSet};
///
/// let set: CpuSet = [CpuId(0), CpuId(2), CpuId(3)].into_iter().collect();
/// assert!(set.contains(CpuId(2)) && !set.contains(CpuId(1)));
/// assert_eq!(set.to_string(), "0,2-3");
/// assert_eq!("0,2-3".parse(), Ok(set));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CpuSet {
    words: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl CpuSet {
    /// The first `count` CPUs.
    pub fn first_cpus(count: u16) -> CpuSet {
        (0..count).map(CpuId).collect()
    }

    /// Whether `cpu` is in the set.
    #[inline]
    pub fn contains(&self, cpu: CpuId) -> bool {
        let word = self.words.get(cpu.index() / BITS);
        word.is_some_and(|word| word >> (cpu.index() % BITS) & 1 == 1)
    }

    /// Adds `cpu`.
    pub fn insert(&mut self, cpu: CpuId) {
        let word = cpu.index() / BITS;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (cpu.index() % BITS);
    }

    /// Takes `cpu` out; nothing where it is not in the set.
    pub fn remove(&mut self, cpu: CpuId) {
        if let Some(word) = self.words.get_mut(cpu.index() / BITS) {
            *word &= !(1 << (cpu.index() % BITS));
        }
        self.trim();
    }

    /// The CPUs that are in both sets.
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        let mut both = CpuSet {
            words: words.collect(),
        };
        both.trim();
        both
    }

    /// CPUs 64 `index` to 64 `index` + 63, as bits.
    pub fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// Whether no CPU is in the set.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// How many CPUs are in the set.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<CpuId> {
        self.iter().next()
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        let words = self.words.iter().enumerate();
        words.flat_map(|(index, word)| {
            let bits = (0..BITS).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| CpuId((index * BITS + bit) as u16))
        })
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<CpuId> for CpuSet {
    fn from_iter<I: IntoIterator<Item = CpuId>>(cpus: I) -> CpuSet {
        let mut set = CpuSet::default();
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

/// A list of CPUs as the kernel prints it; an empty text is the empty set.
impl FromStr for CpuSet {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<CpuSet, ParseIntError> {
        let mut cpus = CpuSet::default();
        for range in text.trim().split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let range = first.parse()?..=last.parse()?;
            range.map(CpuId).for_each(|cpu| cpus.insert(cpu));
        }
        Ok(cpus)
    }
}

/// As the kernel prints lists of CPUs: `0,2-3`.
impl fmt::Display for CpuSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| next.0 == last.0 + 1) {
                last = next;
            }
            write!(formatter, "{separator}{}", first.0)?;
            if last != first {
                write!(formatter, "-{}", last.0)?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_its_cpus() {
        let list = |text: &str| {
            let cpus: Option<CpuSet> = text.parse().ok();
            cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect())
        };
        assert_eq!(list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(list("5"), Some(vec![5]));
        assert_eq!(list("\n"), Some(vec![]));
        assert_eq!(list(""), Some(vec![]));
        assert_eq!(list("0-x"), None);
        assert_eq!(list("70000"), None);
    }
}
