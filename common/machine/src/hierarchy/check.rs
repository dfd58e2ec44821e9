//! What must hold of all caches together, checked over every line.

use super::Hierarchy;
use crate::cache::{Line, LineState};

/// A line in a cache.
type Copy = (Line, usize, LineState);

impl Hierarchy {
    /// Checks all that must hold between caches; slow, for tests and checkers.
    ///
    /// # Errors
    /// A sentence that names the line and the caches, when a line that one cache holds exclusively
    /// is in another one that is not on its path, when an inclusive cache lacks a line of a nearer
    /// one, or when the record of which groups hold which lines is wrong.
    pub fn check_coherence(&self) -> Result<(), String> {
        let mut copies: Vec<Copy> = self.caches.lines().collect();
        copies.sort_unstable();
        for of_one_line in copies.chunk_by(|one, next| one.0 == next.0) {
            self.check_line(of_one_line)?;
        }
        self.check_presence(&copies)
    }

    fn check_line(&self, copies: &[Copy]) -> Result<(), String> {
        for (index, &(line, cache, state)) in copies.iter().enumerate() {
            for &(_, other, other_state) in &copies[index + 1..] {
                if other == cache {
                    return Err(format!("{line:?} is twice in cache {cache}"));
                }
                let (on_path, other_on_path) =
                    (self.is_behind(cache, other), self.is_behind(other, cache));
                let exclusive = state.max(other_state) > LineState::Shared;
                if exclusive && !on_path && !other_on_path {
                    return Err(format!(
                        "{line:?} is {state:?} in cache {cache} and {other_state:?} in {other}"
                    ));
                }
                let grants =
                    |behind, nearer| behind > LineState::Shared || nearer == LineState::Shared;
                if on_path && !grants(state, other_state)
                    || other_on_path && !grants(other_state, state)
                {
                    return Err(format!(
                        "{line:?}: {state:?} in cache {cache}, {other_state:?} in {other}, but the \
                         one behind must own what the nearer one owns"
                    ));
                }
            }
            self.check_inclusion(line, cache, copies)?;
        }
        Ok(())
    }

    fn check_inclusion(&self, line: Line, cache: usize, copies: &[Copy]) -> Result<(), String> {
        let mut behind = self.shape.caches[cache].parent;
        while let Some(outer) = behind {
            let holds = copies.iter().any(|(_, other, _)| *other == outer);
            if self.shape.caches[outer].inclusive && !holds {
                return Err(format!(
                    "cache {cache} holds {line:?}, its inclusive {outer} does not"
                ));
            }
            behind = self.shape.caches[outer].parent;
        }
        Ok(())
    }

    fn check_presence(&self, copies: &[Copy]) -> Result<(), String> {
        if self.snoop.is_some() {
            return Ok(()); // presence is not recorded on this machine
        }
        let held = copies.chunk_by(|one, next| one.0 == next.0).map(|copies| {
            let of = |copy: &Copy| self.shape.caches[copy.1].group as u16;
            let mut groups: Vec<u16> = copies.iter().map(of).collect();
            groups.sort_unstable();
            groups.dedup();
            (copies[0].0, groups)
        });
        let mut known = self.presence.iter();
        for held in held {
            let known = known.next();
            if known.as_ref() != Some(&held) {
                return Err(format!("held by groups: {held:?}; known: {known:?}"));
            }
        }
        known.next().map_or(Ok(()), |known| {
            Err(format!("known to be held, but is not: {known:?}"))
        })
    }

    /// Whether `outer` lies behind `inner` on the path of a CPU.
    fn is_behind(&self, outer: usize, inner: usize) -> bool {
        let up = std::iter::successors(Some(inner), |cache| self.shape.caches[*cache].parent);
        up.skip(1).any(|cache| cache == outer)
    }
}
