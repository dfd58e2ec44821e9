//! All caches of a machine, with their contents in one piece of memory.

use super::{Cache, Line, LineState, Marks, Slot, TAG, state_of};

/// Words in a line of the host, so that no set of up to 16 ways lies in two.
const HOST_LINE: usize = 16;

/// The caches of a machine, by number, and the words of them all.
///
/// Each cache has its words in a piece, set after set, unless it is *interleaved* with others of
/// the same shape: then set 0 of the first is followed by set 0 of the second, and so on, and
/// looking up a line in all of them touches one place of memory.
pub(crate) struct Caches {
    pub(super) all: Vec<Cache>,
    pub(super) words: Vec<u32>,
    // By cache. Apart from the caches, so that many of those fit into a line of the host.
    pub(super) marks: Vec<Marks>,
    // The trees of all caches that have any, see `Trees`.
    pub(super) trees: Vec<u16>,
}

impl Caches {
    /// The caches, empty; those of each range in `interleaved`, which have one shape, interleaved.
    pub(crate) fn new(
        mut all: Vec<Cache>,
        marks: Vec<Marks>,
        trees: Vec<u16>,
        interleaved: &[std::ops::Range<usize>],
    ) -> Caches {
        let (mut end, mut cache) = (0, 0);
        while cache < all.len() {
            let here = interleaved.iter().find(|range| range.start == cache);
            let together = here.cloned().unwrap_or(cache..cache + 1);
            let stride: u32 = all[together.clone()].iter().map(|cache| cache.ways).sum();
            cache = together.end;
            let mut column = end;
            for cache in &mut all[together] {
                (cache.first, cache.stride) = (column, stride);
                column += cache.ways as usize;
            }
            end += stride as usize * all[cache - 1].sets as usize;
            // One line more than a power of two: else the same set of all caches of a level would
            // lie in one set of the host's own caches.
            end = end.next_multiple_of(HOST_LINE) + HOST_LINE;
        }
        let words = vec![0; end];
        Caches {
            all,
            words,
            marks,
            trees,
        }
    }

    /// Uses `line`: finds it in `cache` and makes it the newest of its set.
    #[inline]
    pub(crate) fn hit(&mut self, cache: usize, line: Line) -> Option<Slot> {
        self.all[cache].hit(
            &mut self.words,
            &mut self.marks[cache],
            &mut self.trees,
            line,
        )
    }

    /// Finds `line` in `cache` without using it.
    #[inline]
    pub(crate) fn find(&self, cache: usize, line: Line) -> Option<Slot> {
        self.all[cache].find(&self.words, line)
    }

    /// The word of the first way of the set of `line` in `cache`.
    #[inline]
    pub(crate) fn first_word(&self, cache: usize, line: Line) -> u32 {
        let cache = &self.all[cache];
        self.words[cache.start_of(cache.set_of(line))]
    }

    /// The state of `line` in `cache`, if held.
    #[inline]
    pub(crate) fn state(&self, cache: usize, line: Line) -> Option<LineState> {
        self.find(cache, line).map(|slot| self.state_at(slot))
    }

    /// The state of the line in `slot`.
    #[inline]
    pub(crate) fn state_at(&self, slot: Slot) -> LineState {
        state_of(self.words[slot.0])
    }

    /// Changes the state of the line in `slot`.
    #[inline]
    pub(crate) fn set_state_at(&mut self, slot: Slot, state: LineState) {
        let word = &mut self.words[slot.0];
        *word = *word & TAG | state as u32;
    }

    /// Makes the line in `slot` modified if `modified`, without a branch on that.
    #[inline]
    pub(crate) fn modify_if(&mut self, slot: Slot, modified: bool) {
        self.words[slot.0] |= u32::from(modified) * LineState::Modified as u32;
    }

    /// `cache` takes in `line`, which it does not hold, as the newest of its set. If the set was
    /// full, the line that left is the answer.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        cache: usize,
        line: Line,
        state: LineState,
    ) -> Option<(Line, LineState)> {
        self.all[cache].insert(
            &mut self.words,
            &mut self.marks[cache],
            &mut self.trees,
            line,
            state,
        )
    }

    /// `cache` gives up `line`, if held.
    #[inline]
    pub(crate) fn remove(&mut self, cache: usize, line: Line) -> Option<LineState> {
        self.all[cache].remove(&mut self.words, &mut self.marks[cache], line)
    }

    /// Every line that some cache holds, with the cache and its state there.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (Line, usize, LineState)> + '_ {
        self.all.iter().enumerate().flat_map(|(number, cache)| {
            let lines = cache.lines(&self.words);
            lines.map(move |(line, state)| (line, number, state))
        })
    }
}
