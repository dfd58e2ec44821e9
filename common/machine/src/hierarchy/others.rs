//! What an access does to the caches that are not on its path.

use super::tree_pairs::TreeCode;
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

/// Others hold the line, shared as far as is known.
pub(super) const SOMEBODY: Others = Others {
    any: true,
    ..NOBODY
};

impl Others {
    /// A cache of `group` had the line in `state`.
    #[inline(always)]
    pub(super) fn note(&mut self, group: usize, state: LineState) {
        self.owned |= state > LineState::Shared;
        if state == LineState::Modified {
            self.modified = Some(group);
        }
    }
}

impl Hierarchy {
    /// Of the groups that the last search found.
    pub(super) fn farthest_holder(&self, cpu: usize) -> Reach {
        self.shape.farthest(cpu, &self.holders)
    }

    /// Finds the groups at or under group `among` (`None`: all) that hold the line, off the path of
    /// the CPU.
    #[inline]
    fn find_others(&mut self, request: Request, among: Option<usize>) {
        let own = &self.shape.own_groups[request.cpu];
        if let Some(snoop) = self.snoop {
            let bits = u64::from(snoop(self, request.line)) & !own.lowest_word();
            return self.holders.set_word(bits);
        }
        let among = match among {
            Some(group) => &self.shape.groups[group].under_set,
            None => &self.shape.all_groups,
        };
        self.presence
            .other_holders(request.line, among, own, &mut self.holders);
    }

    /// Finds all groups that hold the line.
    pub(super) fn find_all(&mut self, line: Line) {
        match self.snoop {
            Some(snoop) => self.holders.set_word(u64::from(snoop(self, line))),
            None => self.presence.holders(line, &mut self.holders),
        }
    }

    /// The same as `make_others_share`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn make_others_under_share(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return NOBODY;
        }
        self.make_others_share(request, Some(place.group))
    }

    /// The same as `invalidate_others`, among the caches under `cache`, which is on the path.
    #[inline]
    pub(super) fn invalidate_others_under(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return NOBODY;
        }
        self.invalidate_others(request, Some(place.group))
    }

    pub(super) fn make_others_share(&mut self, request: Request, among: Option<usize>) -> Others {
        self.find_others(request, among);
        let Some((first, last)) = self.holders.ends() else {
            return NOBODY;
        };
        let mut others = SOMEBODY;
        if self.shape.roots[first] != self.shape.roots[last] {
            return others; // holders under two roots: none holds it exclusively
        }
        self.holders.for_each(|group| {
            for cache in self.shape.chain(group) {
                let Some(slot) = self.caches.find(*cache as usize, request.line) else {
                    continue;
                };
                let state = self.caches.state_at(slot);
                others.note(group, state);
                self.caches.set_state_at(slot, LineState::Shared);
            }
        });
        others
    }

    pub(super) fn invalidate_others(&mut self, request: Request, among: Option<usize>) -> Others {
        self.find_others(request, among);
        self.invalidate_found(request.line)
    }

    /// For another CPU's write, or a device's: the groups that the last search found give up
    /// `line`.
    pub(super) fn invalidate_found(&mut self, line: Line) -> Others {
        if self.holders.is_empty() {
            return NOBODY;
        }
        let others = match self.trees {
            Some(TreeCode { invalidate, .. }) => invalidate(self, line),
            None => {
                self.look_ahead(line);
                self.invalidate_chains(line)
            }
        };
        self.presence.clear_all(line, &self.holders);
        others
    }

    fn invalidate_chains(&mut self, line: Line) -> Others {
        let mut others = SOMEBODY;
        self.holders.for_each(|group| {
            for cache in self.shape.chain(group) {
                let cache = *cache as usize;
                let Some(state) = self.caches.remove(cache, line) else {
                    continue;
                };
                others.note(group, state);
                if !self.shadows.is_empty() {
                    self.shadows[cache].remove(line, true);
                }
            }
        });
        others
    }

    /// Reads a word of each set that is about to be changed. The sets lie far apart in the host's
    /// memory; without a decision between them, the host fetches many at once.
    #[inline]
    fn look_ahead(&self, line: Line) {
        let mut all = 0;
        self.holders.for_each(|group| {
            for cache in self.shape.chain(group) {
                all ^= self.caches.first_word(*cache as usize, line);
            }
        });
        std::hint::black_box(all);
    }
}
