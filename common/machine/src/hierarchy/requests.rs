//! An access beyond the level-1 hit: how it is answered, and what it changes elsewhere.

use std::ops::Range;

use warmq_units::Duration;

use super::{Access, Hierarchy, Outcome, Request, Served};
use crate::cache::{Line, LineState, Slot};
use crate::coherence::Reach;
use crate::counts::Transaction;

/// The states in which the levels that missed take the line in.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    pub(super) nearest: LineState,
    pub(super) between: LineState,
    /// For the root, if it missed too and is not the nearest.
    pub(super) root: LineState,
}

/// What was found in the caches off the path.
#[derive(Clone, Copy)]
struct Others {
    any: bool,
    /// A group in which the line was modified.
    modified: Option<usize>,
}

impl Fill {
    fn all(state: LineState) -> Fill {
        Fill {
            nearest: state,
            between: state,
            root: state,
        }
    }

    const TO_WRITE: Fill = Fill {
        nearest: LineState::Modified,
        between: LineState::Exclusive,
        root: LineState::Exclusive,
    };
}

impl Hierarchy {
    /// The level 1, which has counted the access, does not have the line.
    pub(super) fn miss_nearest(&mut self, request: Request) -> Outcome {
        let depth = self.shape.paths[request.cpu].len();
        self.count_miss(request, 0);
        for level in 1..depth {
            if let Some(slot) = self.hit(request, level) {
                return match request.access {
                    Access::Read => self.read_from_level(request, level, slot),
                    Access::Write => self.write(request, level),
                };
            }
            self.count_miss(request, level);
        }
        match request.access {
            Access::Read => self.read_from_outside(request),
            Access::Write => self.write(request, depth),
        }
    }

    /// Asks `level`, which has not been asked yet.
    #[inline]
    fn hit(&mut self, request: Request, level: usize) -> Option<Slot> {
        let counts = self.counts.at(request.cpu, level);
        match request.access {
            Access::Read => counts.reads += 1,
            Access::Write => counts.writes += 1,
        }
        let cache = self.shape.paths[request.cpu][level];
        let slot = self.caches[cache].hit(request.line)?;
        if !self.shadows.is_empty() {
            self.shadows[cache].use_line(request.line);
        }
        Some(slot)
    }

    #[inline]
    fn count_miss(&mut self, request: Request, level: usize) {
        let counts = self.counts.at(request.cpu, level);
        match request.access {
            Access::Read => counts.read_misses += 1,
            Access::Write => counts.write_misses += 1,
        }
        if !self.shadows.is_empty() {
            let cache = self.shape.paths[request.cpu][level];
            counts
                .kinds
                .note(self.shadows[cache].why_missing(request.line));
        }
    }

    /// A read of a line that `level` has in `slot`, and no nearer one.
    fn read_from_level(&mut self, request: Request, level: usize, slot: Slot) -> Outcome {
        let cache = self.shape.paths[request.cpu][level];
        let latency = self.shape.caches[cache].latency;
        let mut outcome = Outcome {
            takes: latency,
            served: Served::Level(level as u8 + 1),
        };
        let mut state = LineState::Shared;
        if self.caches[cache].state_at(slot) > LineState::Shared {
            let others = self.make_others_under_share(request, cache);
            if !others.any {
                state = LineState::Exclusive;
            }
            if others.modified.is_some() {
                self.caches[cache].set_state_at(slot, LineState::Modified);
                self.counts.inner_supplies += 1;
                outcome = Outcome {
                    takes: self.links.inner(latency),
                    served: Served::Cache,
                };
            }
        }
        self.fill(request, level, Fill::all(state));
        outcome
    }

    /// A read of a line that no level has.
    fn read_from_outside(&mut self, request: Request) -> Outcome {
        let depth = self.shape.paths[request.cpu].len();
        let others = self.make_others_share(request, 0..self.shape.groups.len());
        let Some(supplier) = others.modified else {
            let takes = self.fetch_from_memory(request, Transaction::ReadLine);
            let state = if others.any {
                LineState::Shared
            } else {
                LineState::Exclusive
            };
            self.fill(request, depth, Fill::all(state));
            return Outcome {
                takes,
                served: Served::Memory,
            };
        };
        let takes = self.fetch_from_cache(request, supplier, Transaction::ReadLine);
        let mut fill = Fill::all(LineState::Shared);
        if self.root_of(request.cpu) == self.shape.groups[supplier].root {
            fill.root = LineState::Modified;
        } else {
            let socket = usize::from(self.shape.groups[supplier].at.socket);
            self.links
                .implicit_write_back(socket, request.now, &mut self.counts.bus);
        }
        self.fill(request, depth, fill);
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    /// A write that missed in all levels nearer than `level`, or that found the line shared in the
    /// nearest (`level` 0).
    pub(super) fn write(&mut self, request: Request, level: usize) -> Outcome {
        let depth = self.shape.paths[request.cpu].len();
        let settles = (level..depth).find(|level| {
            let cache = self.shape.paths[request.cpu][*level];
            self.caches[cache]
                .state(request.line)
                .is_some_and(|state| state > LineState::Shared)
        });
        let outcome = match settles {
            Some(settles) => self.write_settled_by(request, level, settles),
            None if level < depth => self.upgrade(request, level),
            None => self.read_for_ownership(request),
        };
        self.own_path(request, level);
        self.fill(request, level, Fill::TO_WRITE);
        if level == 0 && !self.shadows.is_empty() {
            self.shadows[self.shape.paths[request.cpu][0]].use_line(request.line);
        }
        outcome
    }

    /// The cache at level `settles` knows that nobody beyond it has the line.
    fn write_settled_by(&mut self, request: Request, level: usize, settles: usize) -> Outcome {
        let cache = self.shape.paths[request.cpu][settles];
        let latency = self.shape.caches[cache].latency;
        let others = self.invalidate_others_under(request, cache);
        let takes = if others.any {
            self.links.inner(latency)
        } else {
            latency
        };
        let served = match others.modified {
            Some(_) => Served::Cache,
            None => Served::Level(level as u8 + 1),
        };
        self.counts.inner_supplies += u64::from(others.modified.is_some());
        self.counts.inner_upgrades += u64::from(settles > level);
        Outcome { takes, served }
    }

    /// The line is here, but shared: a transaction without data makes it ours.
    fn upgrade(&mut self, request: Request, level: usize) -> Outcome {
        let others = self.invalidate_others(request, 0..self.shape.groups.len());
        debug_assert!(others.modified.is_none(), "shared here and modified there");
        let reach = self.farthest_holder(request.cpu);
        self.counts.note(Transaction::Upgrade, request.address);
        let upgrade = self.links.upgrade(reach, request.now, &mut self.counts.bus);
        let latency = self.shape.caches[self.shape.paths[request.cpu][level]].latency;
        Outcome {
            takes: latency + upgrade,
            served: Served::Level(level as u8 + 1),
        }
    }

    fn read_for_ownership(&mut self, request: Request) -> Outcome {
        let others = self.invalidate_others(request, 0..self.shape.groups.len());
        if let Some(supplier) = others.modified {
            let takes = self.fetch_from_cache(request, supplier, Transaction::ReadForOwnership);
            return Outcome {
                takes,
                served: Served::Cache,
            };
        }
        let mut takes = self.fetch_from_memory(request, Transaction::ReadForOwnership);
        if others.any {
            takes = takes.max(self.links.invalidation(self.farthest_holder(request.cpu)));
        }
        Outcome {
            takes,
            served: Served::Memory,
        }
    }

    fn fetch_from_memory(&mut self, request: Request, kind: Transaction) -> Duration {
        self.counts.note(kind, request.address);
        let socket = usize::from(self.shape.cpus[request.cpu].socket);
        self.links
            .from_memory(socket, request.now, &mut self.counts.bus)
    }

    /// A supplier under the same root answers without a transaction.
    fn fetch_from_cache(
        &mut self,
        request: Request,
        supplier: usize,
        kind: Transaction,
    ) -> Duration {
        let root = self.root_of(request.cpu);
        if root == self.shape.groups[supplier].root {
            self.counts.inner_supplies += 1;
            let Some(outermost) = self.shape.paths[request.cpu].last() else {
                unreachable!()
            };
            return self.links.inner(self.shape.caches[*outermost].latency);
        }
        self.counts.note(kind, request.address);
        let reach = self.shape.reach(request.cpu, supplier);
        self.links
            .from_cache(reach, request.now, &mut self.counts.bus)
    }

    fn root_of(&self, cpu: usize) -> usize {
        let group = self.shape.caches[self.shape.paths[cpu][0]].group;
        self.shape.groups[group].root
    }

    /// Of the groups that the last search found.
    fn farthest_holder(&self, cpu: usize) -> Reach {
        let reaches = self
            .holders
            .iter()
            .map(|group| self.shape.reach(cpu, usize::from(*group)));
        reaches.max().unwrap_or(Reach::SameDomain)
    }

    /// Finds the groups in `among` that hold the line, off the path of the CPU.
    fn find_others(&mut self, request: Request, among: Range<usize>) {
        let own = &self.shape.own_groups[request.cpu];
        self.presence
            .holders(request.line, among, own, &mut self.holders);
    }

    /// The same as `make_others_share`, among the caches under `cache`, which is on the path.
    #[inline]
    fn make_others_under_share(&mut self, request: Request, cache: usize) -> Others {
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
    fn invalidate_others_under(&mut self, request: Request, cache: usize) -> Others {
        let place = &self.shape.caches[cache];
        if place.leaf {
            return Others {
                any: false,
                modified: None,
            };
        }
        self.invalidate_others(request, self.shape.groups[place.group].under.clone())
    }

    fn make_others_share(&mut self, request: Request, among: Range<usize>) -> Others {
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
                let Some(slot) = self.caches[*cache].find(request.line) else {
                    continue;
                };
                if self.caches[*cache].state_at(slot) == LineState::Modified {
                    others.modified = Some(group);
                }
                self.caches[*cache].set_state_at(slot, LineState::Shared);
            }
        }
        others
    }

    fn invalidate_others(&mut self, request: Request, among: Range<usize>) -> Others {
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
            let Some(state) = self.caches[*cache].remove(line) else {
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

    /// After all others were invalidated: the levels from `level` on that have the line own it.
    fn own_path(&mut self, request: Request, level: usize) {
        for index in level..self.shape.paths[request.cpu].len() {
            let cache = &mut self.caches[self.shape.paths[request.cpu][index]];
            let Some(slot) = cache.find(request.line) else {
                continue;
            };
            if index == 0 {
                cache.set_state_at(slot, LineState::Modified);
            } else if cache.state_at(slot) == LineState::Shared {
                cache.set_state_at(slot, LineState::Exclusive);
            }
        }
    }
}
