//! One set-associative cache: which lines it holds, in which state, and which it evicts next.

mod age;
mod all;
mod lru;
mod plru;
mod tree;
mod ways;

use crate::description::{CacheDescription, Replacement};
use age::Ages;
pub(crate) use all::Caches;
pub(crate) use lru::{Extent, Lru, Taken};
use tree::Trees;
use warmq_units::Bytes;
use ways::{close_up, move_to_front, position, push_front};

/// The state of a line that a cache holds. A line that is not held has no state.
///
/// States are relative to the caches that do not share with the holder: `Exclusive` and
/// `Modified` say that no cache outside the holder's own path (the caches nearer to its CPUs and
/// the ones behind it) has the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineState {
    /// Others may hold it as well; not to be written.
    Shared = 1,
    /// No other cache holds it; equal to the copy behind.
    Exclusive = 2,
    /// No other cache holds it; newer than the copy behind.
    Modified = 3,
}

/// The number of a line: its address divided by the size of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line(pub(crate) u64);

/// Bits of a word that hold the tag; the two lowest hold the state.
const TAG: u32 = !3;
/// What an empty way looks like to a search.
const EMPTY: u32 = 0;
/// Tags of 30 bits, and the tag of an empty way is none of them.
const TAGS: u64 = (1 << 30) - 1;

/// The most memory whose lines the cache can distinguish.
pub(crate) fn farthest_memory(description: &CacheDescription) -> Bytes {
    let sets = description.size.0 / (u64::from(description.ways) * description.line.0);
    let lines = u128::from(TAGS << sets.max(1).ilog2());
    let bytes = lines * u128::from(description.line.0);
    Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// One cache. Its words lie among those of all the others, see [`Caches`].
///
/// A way is one word: the line's tag plus one, shifted left by two, and its [`LineState`]; zero
/// when empty. Invariant: no set holds a line twice; under LRU the ways of a set are in the order
/// of use, newest first, with the empty ones last, so that the position *is* the age.
pub(crate) struct Cache {
    // Where the words of set 0 begin, and how far it is to those of the next set.
    first: usize,
    stride: u32,
    ways: u32,
    sets: u64,
    sets_are_power_of_two: bool,
    replacement: Replacement,
    // A tag is the line without its lowest `floor(log2(sets))` bits. Lines of equal tag are then
    // fewer than sets and lie next to each other, so that set and tag together name a line also
    // where the sets are no power of two.
    tag_shift: u32,
}

/// What a cache remembers of the use of its ways, where that is not their order.
pub(crate) enum Marks {
    /// Nothing.
    Order,
    Trees(Trees),
    Ages(Ages),
}

/// A way of a cache, valid until the cache changes.
#[derive(Clone, Copy)]
pub(crate) struct Slot(usize);

impl Cache {
    /// An empty cache.
    pub(crate) fn new(description: &CacheDescription) -> Cache {
        let ways = description.ways;
        let sets = description.size.0 / (u64::from(description.ways) * description.line.0);
        assert!(sets > 0 && ways > 0, "a cache without room for a line");
        Cache {
            first: 0,
            stride: ways,
            ways,
            sets,
            sets_are_power_of_two: sets.is_power_of_two(),
            replacement: description.replacement,
            tag_shift: sets.ilog2(),
        }
    }

    /// How many lines fit in.
    pub(crate) fn capacity(&self) -> usize {
        self.sets as usize * self.ways as usize
    }

    /// Lines from this number on cannot be distinguished from lower ones.
    pub(crate) fn line_limit(&self) -> u64 {
        TAGS << self.tag_shift
    }

    #[inline]
    fn set_of(&self, line: Line) -> usize {
        let set = if self.sets_are_power_of_two {
            line.0 & (self.sets - 1)
        } else if line.0 >> 32 == 0 {
            u64::from(line.0 as u32 % self.sets as u32)
        } else {
            line.0 % self.sets
        };
        set as usize
    }

    /// Where the ways of a set begin.
    #[inline]
    fn start_of(&self, set: usize) -> usize {
        self.first + set * self.stride as usize
    }

    #[inline]
    fn key(&self, line: Line) -> u32 {
        ((line.0 >> self.tag_shift) as u32 + 1) << 2
    }

    /// Uses `line`: finds it and makes it the newest of its set.
    #[inline]
    fn hit(
        &self,
        words: &mut [u32],
        marks: &mut Marks,
        bits: &mut [u16],
        line: Line,
    ) -> Option<Slot> {
        let (set, key) = (self.set_of(line), self.key(line));
        let first = self.start_of(set);
        let ways = &mut words[first..first + self.ways as usize];
        if self.replacement == Replacement::Lru {
            return move_to_front(ways, key).then_some(Slot(first));
        }
        let way = position(ways, key)?;
        marks.used(bits, set, way);
        Some(Slot(first + way))
    }

    /// Finds `line` without using it.
    #[inline]
    fn find(&self, words: &[u32], line: Line) -> Option<Slot> {
        let first = self.start_of(self.set_of(line));
        let way = position(&words[first..first + self.ways as usize], self.key(line))?;
        Some(Slot(first + way))
    }

    /// Takes in `line`, which is not held, as the newest of its set. If the set was full, the line
    /// that left is the answer.
    #[inline]
    fn insert(
        &self,
        words: &mut [u32],
        marks: &mut Marks,
        bits: &mut [u16],
        line: Line,
        state: LineState,
    ) -> Option<(Line, LineState)> {
        let (set, word) = (self.set_of(line), self.key(line) | state as u32);
        let first = self.start_of(set);
        let ways = &mut words[first..first + self.ways as usize];
        debug_assert!(
            position(ways, word & TAG).is_none(),
            "a line twice in a set"
        );
        let left = if self.replacement == Replacement::Lru {
            push_front(ways, word)
        } else {
            let way = position(ways, EMPTY).unwrap_or_else(|| marks.victim(bits, set));
            marks.taken_in(bits, set, way);
            std::mem::replace(&mut ways[way], word)
        };
        (left != 0).then(|| (self.line_of(left, set), state_of(left)))
    }

    /// Gives up `line`, if held.
    #[inline]
    fn remove(&self, words: &mut [u32], marks: &mut Marks, line: Line) -> Option<LineState> {
        let (set, key) = (self.set_of(line), self.key(line));
        let first = self.start_of(set);
        let ways = &mut words[first..first + self.ways as usize];
        let word = if self.replacement == Replacement::Lru {
            close_up(ways, key)
        } else {
            let way = position(ways, key)?;
            marks.emptied(set, way);
            std::mem::take(&mut ways[way])
        };
        (word != 0).then(|| state_of(word))
    }

    /// Every line held, with its state.
    fn lines<'a>(&'a self, words: &'a [u32]) -> impl Iterator<Item = (Line, LineState)> + 'a {
        (0..self.sets as usize).flat_map(move |set| {
            let ways = words[self.start_of(set)..][..self.ways as usize].iter();
            let held = ways.filter(|word| **word != 0);
            held.map(move |word| (self.line_of(*word, set), state_of(*word)))
        })
    }

    #[inline]
    fn line_of(&self, word: u32, set: usize) -> Line {
        let set = set as u64;
        let lowest = u64::from((word >> 2) - 1) << self.tag_shift;
        if self.sets_are_power_of_two {
            return Line(lowest | set);
        }
        Line(lowest + (set + self.sets - lowest % self.sets) % self.sets)
    }
}

impl Marks {
    /// What `description`'s cache remembers when it is empty; its trees come behind the other
    /// `trees`.
    pub(crate) fn new(description: &CacheDescription, trees: &mut Vec<u16>) -> Marks {
        let ways = description.ways as usize;
        let sets = description.size.0 / (u64::from(description.ways) * description.line.0);
        match description.replacement {
            Replacement::Lru => Marks::Order,
            Replacement::TreePlru => Marks::Trees(Trees::new(trees, sets as usize, ways)),
            Replacement::QuadAge => Marks::Ages(Ages::new(sets as usize, ways)),
        }
    }

    #[inline]
    fn used(&mut self, bits: &mut [u16], set: usize, way: usize) {
        match self {
            Marks::Order => {}
            Marks::Trees(trees) => trees.point_away(bits, set, way),
            Marks::Ages(ages) => ages.used(set, way),
        }
    }

    #[inline]
    fn taken_in(&mut self, bits: &mut [u16], set: usize, way: usize) {
        match self {
            Marks::Order => {}
            Marks::Trees(trees) => trees.point_away(bits, set, way),
            Marks::Ages(ages) => ages.taken_in(set, way),
        }
    }

    fn emptied(&mut self, set: usize, way: usize) {
        match self {
            // An empty way is taken before the tree is asked.
            Marks::Order | Marks::Trees(_) => {}
            Marks::Ages(ages) => ages.emptied(set, way),
        }
    }

    #[inline]
    fn victim(&self, bits: &[u16], set: usize) -> usize {
        match self {
            Marks::Order => 0,
            Marks::Trees(trees) => trees.victim(bits, set),
            Marks::Ages(ages) => ages.victim(set),
        }
    }
}

#[inline]
fn state_of(word: u32) -> LineState {
    match word & !TAG {
        3 => LineState::Modified,
        2 => LineState::Exclusive,
        _ => LineState::Shared,
    }
}
