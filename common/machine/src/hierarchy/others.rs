//! What an access does to the caches that are not on its path.

use std::ops::Range;

use super::{Hierarchy, Request};
use crate::cache::{Line, LineState};
use crate::coherence::Reach;

/// What was found in the caches off the path.
#[derive(Clone, Copy)]
pub(super) struct Others {
    pub(super) any: bool,
    /// One of them had it exclusively, or modified.
    pub(super) owned: bool,
    /// A group in which the line was modified.
    pub(super) modified: Option<usize>,
}

const NOBODY: Others = Others {
    any: false,
    owned: false,
    modified: None,
};

impl Hierarchy {
    /// Of the groups that the last search found.
    pub(super) fn farthest_holder(&self, cpu: usize) -> Reach {
        let reaches = self
            .holders
            .iter()
            .map(|group| self.shape.reach(cpu, usize::from(*group)));
        reaches.max().unwrap_or(Reach::SameDomain)
    }

    /// Finds the groups in `among` that hold the line, off the path of the CPU.
    fn find_others(&mut self, request: Request, among: Range<usize>) {
        let own = &self.shape.own_groups[request.cpu];
        if let Some(snoop) = self.snoop {
            let bits = snoop(self, request.line) & !u32::from(own[0]);
            return self.note_holders(bits);
        }
        self.presence
            .holders(request.line, among, own, &mut self.holders);
    }

    /// Finds all groups that hold the line.
    pub(super) fn find_all(&mut self, line: Line) {
        if let Some(snoop) = self.snoop {
            return self.note_holders(snoop(self, line));
        }
        let all = 0..self.shape.groups.len();
        self.presence.holders(line, all, &[], &mut self.holders);
    }

    fn note_holders(&mut self, mut bits: u32) {
        self.holders.clear();
        while bits != 0 {
            self.holders.push(bits.trailing_zeros() as u16);
            bits &= bits - 1;
        }
    }

    /// The same as `make_others_share`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn make_others_under_share(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return NOBODY;
        }
        self.make_others_share(request, self.shape.groups[place.group].under.clone())
    }

    /// The same as `invalidate_others`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn invalidate_others_under(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return NOBODY;
        }
        self.invalidate_others(request, self.shape.groups[place.group].under.clone())
    }

    pub(super) fn make_others_share(&mut self, request: Request, among: Range<usize>) -> Others {
        self.find_others(request, among);
        let mut others = Others {
            any: !self.holders.is_empty(),
            ..NOBODY
        };
        let root = |group: &u16| self.shape.groups[usize::from(*group)].root;
        let (first, last) = (
            self.holders.first().map(root),
            self.holders.last().map(root),
        );
        if first != last {
            return others; // holders under two roots: nobody has it exclusively
        }
        for index in 0..self.holders.len() {
            let group = usize::from(self.holders[index]);
            for cache in &self.shape.groups[group].caches {
                let Some(slot) = self.caches.find(*cache, request.line) else {
                    continue;
                };
                let state = self.caches.state_at(slot);
                others.owned |= state > LineState::Shared;
                if state == LineState::Modified {
                    others.modified = Some(group);
                }
                self.caches.set_state_at(slot, LineState::Shared);
            }
        }
        others
    }

    pub(super) fn invalidate_others(&mut self, request: Request, among: Range<usize>) -> Others {
        self.find_others(request, among);
        let mut others = Others {
            any: !self.holders.is_empty(),
            ..NOBODY
        };
        for index in 0..self.holders.len() {
            let group = usize::from(self.holders[index]);
            let state = self.invalidate(group, request.line);
            others.owned |= state > Some(LineState::Shared);
            if state == Some(LineState::Modified) {
                others.modified = Some(group);
            }
        }
        others
    }

    /// For another CPU's write, or a device's. The strongest state that the group had the line in.
    pub(super) fn invalidate(&mut self, group: usize, line: Line) -> Option<LineState> {
        let mut strongest = None;
        for cache in &self.shape.groups[group].caches {
            let Some(state) = self.caches.remove(*cache, line) else {
                continue;
            };
            strongest = strongest.max(Some(state));
            if !self.shadows.is_empty() {
                self.shadows[*cache].remove(line, true);
            }
        }
        self.presence.clear(line, group);
        strongest
    }
}
