//! What a CPU's cache holds, by fragment.

use crate::model::FragmentId;

/// A cache of so many lines, and whose they are.
#[derive(Clone, Debug)]
pub struct Cache {
    lines: u64,
    // The least recently used first. Invariants: no fragment twice, none without lines; no more
    // dirty lines than lines; all lines together are at most `lines`.
    held: Vec<Held>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    fragment: FragmentId,
    lines: u64,
    dirty: u64,
}

/// What a switch moves between cache and memory, in lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch {
    /// Lines to fill.
    pub missing: u64,
    /// Dirty lines to write back, because they must leave.
    pub dirty: u64,
}

impl Cache {
    /// A cold cache.
    pub fn new(lines: u64) -> Cache {
        let held = Vec::new();
        Cache { lines, held }
    }

    /// Lets a run use all `lines` of `fragment`, which fit into the cache. What it needs and does
    /// not find takes the place of lines that were used the longest time ago; of a fragment's lines
    /// the dirty ones leave first.
    pub fn run(&mut self, fragment: FragmentId, lines: u64, writes: bool) -> Switch {
        assert!(lines <= self.lines, "a run's data fits into the cache");
        let place = self.held.iter().position(|held| held.fragment == fragment);
        let before = place.map(|place| self.held.remove(place));
        let (held, was_dirty) = before.map_or((0, 0), |held| (held.lines, held.dirty));
        let dirty = self.make_room(lines);
        let left_dirty = if writes { lines } else { was_dirty };
        self.held.push(Held {
            fragment,
            lines,
            dirty: left_dirty,
        });
        Switch {
            missing: lines - held,
            dirty,
        }
    }

    /// Writes back all that is dirty, and says how many lines that were.
    pub fn flush(&mut self) -> u64 {
        let dirty = self.held.iter().map(|held| held.dirty).sum();
        self.held.iter_mut().for_each(|held| held.dirty = 0);
        dirty
    }

    /// Evicts until `wanted` lines are free; returns how many of the evicted were dirty.
    fn make_room(&mut self, wanted: u64) -> u64 {
        let used: u64 = self.held.iter().map(|held| held.lines).sum();
        let mut missing = (used + wanted).saturating_sub(self.lines);
        let mut written = 0;
        for held in &mut self.held {
            let leaving = missing.min(held.lines);
            let dirty = leaving.min(held.dirty);
            held.lines -= leaving;
            held.dirty -= dirty;
            missing -= leaving;
            written += dirty;
        }
        self.held.retain(|held| held.lines > 0);
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: FragmentId = FragmentId(0);
    const B: FragmentId = FragmentId(1);
    const C: FragmentId = FragmentId(2);

    fn switch(missing: u64, dirty: u64) -> Switch {
        Switch { missing, dirty }
    }

    #[test]
    fn what_is_there_costs_nothing_and_dirty_lines_cost_when_they_leave() {
        let mut cache = Cache::new(4);
        assert_eq!(cache.run(A, 3, true), switch(3, 0));
        assert_eq!(cache.run(A, 3, false), switch(0, 0));
        assert_eq!(cache.run(B, 2, false), switch(2, 1));
        assert_eq!(cache.run(A, 3, false), switch(1, 0));
        assert_eq!(cache.flush(), 2);
        assert_eq!(cache.flush(), 0);
    }

    #[test]
    fn the_least_recently_used_lines_leave_first() {
        let mut cache = Cache::new(4);
        cache.run(A, 2, true);
        cache.run(B, 2, true);
        cache.run(A, 2, false);
        assert_eq!(cache.run(C, 2, false), switch(2, 2));
        assert_eq!(cache.run(A, 2, false), switch(0, 0));
        assert_eq!(cache.flush(), 2);
    }
}
