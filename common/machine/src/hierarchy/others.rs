//! What an access does to the caches that are not on its path.

use std::ops::Range;

use super::{Hierarchy, Request};
use crate::cache::{Line, LineState};
use crate::coherence::Reach;

/// What was found in the caches off the path.
#[derive(Clone, Copy)]
pub(super) struct Others {
    pub(super) any: bool,
    /// A group in which the line was modified.
    pub(super) modified: Option<usize>,
}

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
            let mut bits = snoop(self, request.line) & !u32::from(own[0]);
            self.holders.clear();
            while bits != 0 {
                self.holders.push(bits.trailing_zeros() as u16);
                bits &= bits - 1;
            }
            return;
        }
        self.presence
            .holders(request.line, among, own, &mut self.holders);
    }

    /// The same as `make_others_share`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn make_others_under_share(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return Others {
                any: false,
                modified: None,
            };
        }
        self.make_others_share(request, self.shape.groups[place.group].under.clone())
    }

    /// The same as `invalidate_others`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn invalidate_others_under(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return Others {
                any: false,
                modified: None,
            };
        }
        self.invalidate_others(request, self.shape.groups[place.group].under.clone())
    }

    pub(super) fn make_others_share(&mut self, request: Request, among: Range<usize>) -> Others {
        self.find_others(request, among);
        let mut others = Others {
            any: !self.holders.is_empty(),
            modified: None,
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
                if self.caches.state_at(slot) == LineState::Modified {
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
            modified: None,
        };
        for index in 0..self.holders.len() {
            let group = usize::from(self.holders[index]);
            if self.invalidate(group, request.line) {
                others.modified = Some(group);
            }
        }
        others
    }

    /// For another CPU's write. Whether the line was modified in the group.
    fn invalidate(&mut self, group: usize, line: Line) -> bool {
        let mut modified = false;
        for cache in &self.shape.groups[group].caches {
            let Some(state) = self.caches.remove(*cache, line) else {
                continue;
            };
            modified |= state == LineState::Modified;
            if !self.shadows.is_empty() {
                self.shadows[*cache].remove(line, true);
            }
        }
        self.presence.clear(line, group);
        modified
    }
}
