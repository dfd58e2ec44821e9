//! The same cache as `Cache`, seen by code that was compiled for its number of ways.

use super::ways::{
    close_up_fixed, move_to_front_fixed, position_fixed, push_front_fixed, use_or_push_fixed,
};
use super::{Cache, Caches, Line, LineState, Marks, TAG};

/// A view of a cache with LRU, `WAYS` ways and a power of two of sets.
pub(crate) struct Lru<'cache, const WAYS: usize> {
    sets: &'cache mut [[u32; WAYS]],
    extent: Extent,
}

/// Where the sets of a cache with a power of two of sets are, all in one piece.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    first: usize,
    stride: usize,
    last_set: usize,
    tag_shift: u32,
    /// Where the tree of set 0 is, if there are any.
    pub(super) trees: usize,
}

impl Extent {
    #[inline(always)]
    pub(super) fn key(self, line: Line) -> u32 {
        ((line.0 >> self.tag_shift) as u32 + 1) << 2
    }

    /// Where the ways of the set of `line` begin.
    #[inline(always)]
    pub(super) fn start(self, line: Line) -> usize {
        self.first + self.set(line) * self.stride
    }

    #[inline(always)]
    pub(super) fn set(self, line: Line) -> usize {
        line.0 as usize & self.last_set
    }

    /// Where the tree of the set of `line` is.
    #[inline(always)]
    pub(super) fn tree(self, line: Line) -> usize {
        self.trees + self.set(line)
    }

    /// The line that `word` stood for, of the same set as `neighbor`.
    #[inline(always)]
    pub(crate) fn taken(self, word: u32, neighbor: Line) -> Taken {
        let tag = u64::from((word >> 2) - 1) << self.tag_shift;
        Taken {
            line: Line(tag | neighbor.0 & self.last_set as u64),
            state: super::state_of(word),
        }
    }
}

/// A line that fell out.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) line: Line,
    pub(crate) state: LineState,
}

/// A way that holds a line.
pub(crate) struct Word<'cache>(&'cache mut u32);

impl Word<'_> {
    /// The state of the line.
    #[inline(always)]
    pub(crate) fn state(&self) -> LineState {
        super::state_of(*self.0)
    }

    /// Makes the line shared. What it was before.
    #[inline(always)]
    pub(crate) fn share(self) -> LineState {
        let before = self.state();
        *self.0 = *self.0 & TAG | LineState::Shared as u32;
        before
    }

    /// Makes the line exclusive, if it was shared.
    #[inline(always)]
    pub(crate) fn own(self) {
        if self.state() == LineState::Shared {
            *self.0 = *self.0 & TAG | LineState::Exclusive as u32;
        }
    }

    /// Makes the line modified if `modified`, without a branch on that.
    #[inline(always)]
    pub(crate) fn modify_if(self, modified: bool) {
        *self.0 |= u32::from(modified) * LineState::Modified as u32;
    }
}

impl Cache {
    /// Whether [`Caches::lru`] may be asked for a view of `ways` ways.
    pub(crate) fn is_lru_of(&self, ways: usize) -> bool {
        self.replacement == super::Replacement::Lru
            && self.ways as usize == ways
            && self.sets_are_power_of_two
    }

    /// Whether the other one has the same sets and ways.
    pub(crate) fn is_like(&self, other: &Cache) -> bool {
        self.sets == other.sets && self.ways == other.ways
    }
}

impl Caches {
    /// The cache at `extent`, which [`Cache::is_lru_of`] said has `WAYS` ways.
    #[inline(always)]
    pub(crate) fn lru<const WAYS: usize>(&mut self, extent: Extent) -> Lru<'_, WAYS> {
        Lru {
            sets: self.words.as_chunks_mut().0,
            extent,
        }
    }

    /// Where `cache` is, which has a power of two of sets.
    #[inline(always)]
    pub(crate) fn extent(&self, cache: usize) -> Extent {
        let trees = match &self.marks[cache] {
            Marks::Trees(trees) => trees.first(),
            Marks::Order | Marks::Ages(_) => 0,
        };
        let cache = &self.all[cache];
        debug_assert!(cache.sets_are_power_of_two, "no extent for such sets");
        Extent {
            first: cache.first,
            stride: cache.stride as usize,
            last_set: cache.sets as usize - 1,
            tag_shift: cache.tag_shift,
            trees,
        }
    }

    /// Of the caches interleaved with the one at `first`, which is the first of them, those that
    /// hold `line`: a bit for each. `WAYS` is the number of ways of each.
    #[inline(always)]
    pub(crate) fn snoop<const WAYS: usize>(&self, first: Extent, line: Line) -> u32 {
        let (start, key) = (first.start(line), first.key(line));
        let row = self.words[start..start + first.stride]
            .as_chunks::<WAYS>()
            .0;
        let has = |ways: &[u32; WAYS]| {
            ways.iter()
                .fold(false, |has, word| has | (word & TAG == key)) // no branch
        };
        let columns = row.iter().enumerate();
        columns.fold(0, |bits, (column, ways)| {
            bits | u32::from(has(ways)) << column
        })
    }
}

impl<'cache, const WAYS: usize> Lru<'cache, WAYS> {
    #[inline(always)]
    fn set_and_key(self, line: Line) -> (&'cache mut [u32; WAYS], u32) {
        let start = self.extent.start(line);
        (&mut self.sets[start / WAYS], self.extent.key(line))
    }

    /// Uses `line`: the word of its way, if it is here.
    #[inline(always)]
    pub(crate) fn hit(self, line: Line) -> Option<Word<'cache>> {
        let (set, key) = self.set_and_key(line);
        move_to_front_fixed(set, key).then_some(Word(&mut set[0]))
    }

    /// Finds `line` without using it.
    #[inline(always)]
    pub(crate) fn find(self, line: Line) -> Option<Word<'cache>> {
        let (set, key) = self.set_and_key(line);
        Some(Word(&mut set[position_fixed(set, key)? % WAYS]))
    }

    /// Takes in `line`, which is not held. If the set was full, the line that left is the answer.
    #[inline(always)]
    pub(crate) fn insert(self, line: Line, state: LineState) -> Option<Taken> {
        let extent = self.extent;
        let (set, key) = self.set_and_key(line);
        let left = push_front_fixed(set, key | state as u32);
        (left != 0).then(|| extent.taken(left, line))
    }

    /// Takes in `line`, which is not held: the line that left, if that was modified.
    #[inline(always)]
    pub(crate) fn insert_for_modified(self, line: Line, state: LineState) -> Option<Taken> {
        let extent = self.extent;
        let (set, key) = self.set_and_key(line);
        let left = push_front_fixed(set, key | state as u32);
        (left & !TAG == LineState::Modified as u32).then(|| extent.taken(left, line))
    }

    /// Uses `line`, or takes it in: all ones if it was not held, and the word that left then.
    #[inline(always)]
    pub(crate) fn use_or_insert(self, line: Line, state: LineState) -> (u64, u32) {
        let (set, key) = self.set_and_key(line);
        let (had, left) = use_or_push_fixed(set, key, key | state as u32);
        // The compiler must not know what it is made of: it would make branches of it again.
        let missed = std::hint::black_box(u64::from(had).wrapping_sub(1));
        (missed, left & missed as u32)
    }

    /// Gives up `line`: its state, if it was held.
    #[inline(always)]
    pub(crate) fn remove(self, line: Line) -> Option<LineState> {
        let (set, key) = self.set_and_key(line);
        let word = close_up_fixed(set, key);
        (word != 0).then(|| super::state_of(word))
    }
}
