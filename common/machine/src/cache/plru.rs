//! The same cache as `Cache`, seen by code that was compiled for its number of ways, under
//! tree-PLRU.

use super::lru::{Extent, Taken};
use super::tree::{use_way, victim_of};
use super::ways::{empty_fixed, position_fixed};
use super::{Cache, Caches, EMPTY, Line, LineState, TAG};

/// A view of a cache with tree-PLRU, `WAYS` ways (16 at most) and a power of two of sets.
pub(crate) struct Plru<'cache, const WAYS: usize> {
    sets: &'cache mut [[u32; WAYS]],
    trees: &'cache mut [u16],
    extent: Extent,
}

impl Cache {
    /// Whether [`Caches::plru`] may be asked for a view of `ways` ways.
    pub(crate) fn is_plru_of(&self, ways: usize) -> bool {
        self.replacement == super::Replacement::TreePlru
            && self.ways as usize == ways
            && self.sets_are_power_of_two
    }
}

impl Caches {
    /// The cache at `extent`, which [`Cache::is_plru_of`] said has `WAYS` ways.
    #[inline(always)]
    pub(crate) fn plru<const WAYS: usize>(&mut self, extent: Extent) -> Plru<'_, WAYS> {
        Plru {
            sets: self.words.as_chunks_mut().0,
            trees: &mut self.trees,
            extent,
        }
    }

    /// A word of the set of `line` in the cache at `extent`.
    #[inline(always)]
    pub(crate) fn look_ahead(&self, extent: Extent, line: Line) -> u32 {
        self.words[extent.start(line)]
    }

    /// The cache at `extent`, which [`Cache::is_plru_of`] said has `WAYS` ways, gives up `line`:
    /// its state, if it was held. An empty way is taken before the tree is asked, so that the tree
    /// stays.
    #[inline(always)]
    pub(crate) fn remove_plru<const WAYS: usize>(
        &mut self,
        extent: Extent,
        line: Line,
    ) -> Option<LineState> {
        let (start, key) = (extent.start(line), extent.key(line));
        let set: &mut [u32; WAYS] = &mut self.words.as_chunks_mut().0[start / WAYS];
        let mut found = EMPTY;
        // No branch on where it is.
        for word in set {
            let here = u32::from(*word & TAG == key).wrapping_neg();
            found |= *word & here;
            *word &= !here;
        }
        (found != EMPTY).then(|| super::state_of(found))
    }
}

impl<const WAYS: usize> Plru<'_, WAYS> {
    /// The place of the way of `line`, if it is here.
    #[inline(always)]
    pub(crate) fn find(&self, line: Line) -> Option<super::Slot> {
        let start = self.extent.start(line);
        let way = position_fixed(&self.sets[start / WAYS], self.extent.key(line))?;
        Some(super::Slot(start + way))
    }

    /// Uses `line`: the place of its way, if it is here.
    #[inline(always)]
    pub(crate) fn hit(self, line: Line) -> Option<super::Slot> {
        let slot = self.find(line)?;
        use_way::<WAYS>(&mut self.trees[self.extent.tree(line)], slot.0 % WAYS);
        Some(slot)
    }

    /// Takes in `line`, which is not held. If the set was full, the line that left is the answer.
    #[inline(always)]
    pub(crate) fn insert(self, line: Line, state: LineState) -> Option<Taken> {
        let start = self.extent.start(line);
        let tree = &mut self.trees[self.extent.tree(line)];
        let set = &mut self.sets[start / WAYS];
        let empty = empty_fixed(set);
        let way = empty.unwrap_or_else(|| victim_of::<WAYS>(*tree));
        use_way::<WAYS>(tree, way);
        let word = self.extent.key(line) | state as u32;
        let left = std::mem::replace(&mut set[way % WAYS], word);
        (left != EMPTY).then(|| self.extent.taken(left, line))
    }
}
