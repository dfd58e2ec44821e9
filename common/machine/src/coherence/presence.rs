//! Which groups of caches hold a line.

use crate::cache::Line;
use crate::sparse::Sparse;

/// Bits in a word.
const WORD: usize = 64;

/// For each line a bit for each group of caches.
///
/// A *group* is a chain of caches, nearer to farther, that the same CPUs share: the level 1 and 2
/// of a core, say. Invariant: a bit is set exactly when some cache of the group holds the line.
/// Groups are numbered so that the ones under a cache follow each other.
///
/// A machine with 24 last levels over 192 cores takes 32 bytes a line that was ever touched.
pub(crate) struct Presence {
    table: Sparse<u64>,
    kept: bool,
}

/// A set of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups(Vec<u64>);

impl Groups {
    /// The empty set, with room for groups below `groups`.
    pub(crate) fn none(groups: usize) -> Groups {
        Groups(vec![0; groups.div_ceil(WORD)])
    }

    pub(crate) fn of(groups: usize, members: impl Iterator<Item = usize>) -> Groups {
        let mut set = Groups::none(groups);
        members.for_each(|group| set.insert(group));
        set
    }

    #[inline]
    pub(crate) fn insert(&mut self, group: usize) {
        self.0[group / WORD] |= 1 << (group % WORD);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The first group and the last.
    #[inline]
    pub(crate) fn ends(&self) -> Option<(usize, usize)> {
        let first = self.0.iter().position(|word| *word != 0)?;
        let last = self.0.iter().rposition(|word| *word != 0)?;
        Some((
            first * WORD + self.0[first].trailing_zeros() as usize,
            last * WORD + self.0[last].ilog2() as usize,
        ))
    }

    /// The first group of this set that is in `other` too.
    #[inline]
    pub(crate) fn first_in(&self, other: &Groups) -> Option<usize> {
        let mut both = self.0.iter().zip(&other.0).map(|(one, other)| one & other);
        let (index, word) = both.by_ref().enumerate().find(|(_, word)| *word != 0)?;
        Some(index * WORD + word.trailing_zeros() as usize)
    }

    /// Whether a group of this set is not in `other`.
    #[inline]
    pub(crate) fn reaches_beyond(&self, other: &Groups) -> bool {
        let beyond = self.0.iter().zip(&other.0).map(|(one, other)| one & !other);
        beyond.fold(0, |all, word| all | word) != 0
    }

    /// Calls `visit` for each group, ascending.
    #[inline(always)]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize)) {
        for (index, word) in self.0.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                visit(index * WORD + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.fill(0);
    }

    /// Becomes the set whose lowest members are the bits of `word`.
    pub(crate) fn set_word(&mut self, word: u64) {
        self.clear();
        self.0[0] = word;
    }

    /// Bits of the 64 lowest groups.
    #[inline]
    pub(crate) fn lowest_word(&self) -> u64 {
        self.0[0]
    }
}

/// Where a line is held, seen from some groups of a part of the machine.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    /// In one of these groups.
    pub(crate) own: bool,
    /// In another group of the part.
    pub(crate) within: bool,
    /// Outside the part.
    pub(crate) beyond: bool,
}

impl Held {
    /// What `row`, a bit for each group, says of the `own` groups, which are `inside` a part.
    #[inline(always)]
    pub(crate) fn of(row: &[u64], own: &Groups, inside: &Groups) -> Held {
        // The largest machines that are common have four words; a length that is known needs no
        // loop.
        match (
            row.try_into(),
            own.0[..].try_into(),
            inside.0[..].try_into(),
        ) {
            (Ok(row), Ok(own), Ok(inside)) => Held::of_words::<4>(row, own, inside),
            _ => Held::of_any(row, &own.0, &inside.0),
        }
    }

    #[inline(always)]
    fn of_words<const WORDS: usize>(
        row: &[u64; WORDS],
        own: &[u64; WORDS],
        inside: &[u64; WORDS],
    ) -> Held {
        Held::of_any(row, own, inside)
    }

    #[inline(always)]
    fn of_any(row: &[u64], own: &[u64], inside: &[u64]) -> Held {
        let (mut here, mut within, mut beyond) = (0, 0, 0);
        for (word, (own, inside)) in row.iter().zip(own.iter().zip(inside)) {
            here |= word & own;
            within |= word & inside & !own;
            beyond |= word & !inside;
        }
        Held {
            own: here != 0,
            within: within != 0,
            beyond: beyond != 0,
        }
    }
}

impl Presence {
    pub(crate) fn new(groups: usize) -> Presence {
        Presence {
            table: Sparse::new(groups.div_ceil(WORD)),
            kept: true,
        }
    }

    /// Records nothing: the caches themselves are searched for holders.
    pub(crate) fn none() -> Presence {
        Presence {
            table: Sparse::new(1),
            kept: false,
        }
    }

    /// Returns false if no cache of `group` holds `line`; true if one does, or nothing is noted.
    #[inline]
    pub(crate) fn may_hold(&self, line: Line, group: usize) -> bool {
        let word = self.table.get(line).get(group / WORD);
        !self.kept || word.is_some_and(|word| word >> (group % WORD) & 1 == 1)
    }

    #[inline]
    pub(crate) fn set(&mut self, line: Line, group: usize) {
        if self.kept {
            self.table.get_mut(line)[group / WORD] |= 1 << (group % WORD);
        }
    }

    /// Notes that `group` holds `line` if no group outside `own` does. Whether it did.
    #[inline]
    pub(crate) fn set_if_alone(&mut self, line: Line, group: usize, own: &Groups) -> bool {
        let words = self.table.get_mut(line);
        let others = words.iter().zip(&own.0).map(|(word, own)| word & !own);
        let alone = others.fold(0, |all, word| all | word) == 0;
        if alone {
            words[group / WORD] |= 1 << (group % WORD);
        }
        alone
    }

    #[inline]
    pub(crate) fn clear(&mut self, line: Line, group: usize) {
        if self.kept {
            self.table.get_mut(line)[group / WORD] &= !(1 << (group % WORD));
        }
    }

    /// None of `groups` holds `line` any more.
    #[inline]
    pub(crate) fn clear_all(&mut self, line: Line, groups: &Groups) {
        if self.kept {
            let words = self.table.get_mut(line).iter_mut().zip(&groups.0);
            words.for_each(|(word, groups)| *word &= !groups);
        }
    }

    /// Writes into `found` the groups that hold `line`.
    #[inline]
    pub(crate) fn holders(&self, line: Line, found: &mut Groups) {
        match self.table.get(line) {
            [] => found.clear(),
            words => found.0.copy_from_slice(words),
        }
    }

    /// Whether a group of `groups` holds `line`; true if nothing is noted.
    #[inline]
    pub(crate) fn may_hold_in(&self, line: Line, groups: &Groups) -> bool {
        let words = self.table.get(line).iter().zip(&groups.0);
        !self.kept || words.fold(0, |all, (word, groups)| all | word & groups) != 0
    }

    /// Where `line` is held, seen from `own` groups, which are `inside` a part; nowhere if nothing
    /// is noted.
    #[inline]
    pub(crate) fn held(&self, line: Line, own: &Groups, inside: &Groups) -> Held {
        Held::of(self.table.get(line), own, inside)
    }

    /// The groups that hold `line`, a bit for each; for who knows that this is noted.
    #[inline(always)]
    pub(crate) fn row(&mut self, line: Line) -> &mut [u64] {
        self.table.get_mut(line)
    }

    /// Writes into `found` the groups that hold `line`, of those that are in `among`, but not in
    /// `except`.
    #[inline]
    pub(crate) fn other_holders(
        &self,
        line: Line,
        among: &Groups,
        except: &Groups,
        found: &mut Groups,
    ) {
        let words = self.table.get(line);
        if words.is_empty() {
            return found.clear();
        }
        let masks = among.0.iter().zip(&except.0);
        let found = found.0.iter_mut().zip(words);
        for ((found, word), (among, except)) in found.zip(masks) {
            *found = word & among & !except;
        }
    }

    /// Every line that some group holds, with its groups, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Line, Vec<u16>)> {
        let held = self
            .table
            .iter()
            .filter(|(_, words)| words.iter().any(|word| *word != 0));
        held.map(|(line, words)| {
            let mut groups = Vec::new();
            Groups(words.to_vec()).for_each(|group| groups.push(group as u16));
            (line, groups)
        })
    }
}
