//! An access that misses level 1: what serves it.

use warmq_units::Duration;

use super::build::Place;
use super::{Access, Hierarchy, Outcome, Request, Served};
use crate::cache::{LineState, Slot};
use crate::counts::Transaction;

/// The states in which the levels that missed take the line in.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    pub(super) nearest: LineState,
    pub(super) between: LineState,
    /// For the root, if it missed too and is not the nearest.
    pub(super) root: LineState,
    /// A victim cache gave up modified data: the outermost of the others takes it in as modified.
    pub(super) handed_over_modified: bool,
}

impl Fill {
    pub(super) fn all(state: LineState) -> Fill {
        Fill {
            nearest: state,
            between: state,
            root: state,
            handed_over_modified: false,
        }
    }

    pub(super) const TO_WRITE: Fill = Fill {
        nearest: LineState::Modified,
        between: LineState::Exclusive,
        root: LineState::Exclusive,
        handed_over_modified: false,
    };
}

impl Hierarchy {
    /// The level 1, which has counted the access, does not have the line.
    pub(super) fn miss_nearest(&mut self, request: Request) -> Outcome {
        self.count_miss(request, 0);
        // One question instead of a search at each level.
        let own = &self.shape.own_groups[request.cpu];
        if self.shadows.is_empty() && !self.presence.may_hold_in(request.line, own) {
            let depth = self.shape.paths[request.cpu].len();
            self.counts
                .note_misses_behind(request.cpu, depth, request.access);
            return self.ask_outside(request);
        }
        self.ask_levels(request)
    }

    /// Asks the levels behind the nearest, one by one.
    pub(super) fn ask_levels(&mut self, request: Request) -> Outcome {
        for level in 1..self.shape.paths[request.cpu].len() {
            if let Some(slot) = self.hit(request, level) {
                return match request.access {
                    Access::Read => self.read_from_level(request, level, slot),
                    Access::Write => self.write_to_level(request, level, slot),
                };
            }
            self.count_miss(request, level);
        }
        self.ask_outside(request)
    }

    /// No level has the line, and all have counted that.
    pub(super) fn ask_outside(&mut self, request: Request) -> Outcome {
        match request.access {
            Access::Read => self.read_from_outside(request),
            Access::Write => self.write(request, self.shape.paths[request.cpu].len()),
        }
    }

    /// Asks `level`, which has not been asked yet.
    #[inline]
    fn hit(&mut self, request: Request, level: usize) -> Option<Slot> {
        self.counts.note_access(request.cpu, level, request.access);
        let cache = self.shape.paths[request.cpu][level];
        // Cheaper than to look for it, as the sets of far caches lie far away in the host's memory.
        if !self
            .presence
            .may_hold(request.line, self.shape.caches[cache].group)
        {
            return None;
        }
        let slot = self.caches.hit(cache, request.line)?;
        if !self.shadows.is_empty() {
            self.shadows[cache].use_line(request.line);
        }
        Some(slot)
    }

    #[inline]
    fn count_miss(&mut self, request: Request, level: usize) {
        self.counts.note_miss(request.cpu, level, request.access);
        if !self.shadows.is_empty() {
            let cache = self.shape.paths[request.cpu][level];
            let kind = self.shadows[cache].why_missing(request.line);
            self.counts.note_miss_kind(request.cpu, level, kind);
        }
    }

    /// A read of a line that `level` has in `slot`, and no nearer one.
    fn read_from_level(&mut self, request: Request, level: usize, slot: Slot) -> Outcome {
        let cache = self.shape.paths[request.cpu][level];
        let Place {
            latency, victim, ..
        } = self.shape.caches[cache];
        let mut outcome = Outcome {
            takes: latency,
            served: Served::Level(level as u8 + 1),
        };
        let mut fill = Fill::all(LineState::Shared);
        let owned = self.caches.state_at(slot) > LineState::Shared;
        if owned || victim {
            let others = self.make_others_under_share(request, cache);
            if owned && !others.any {
                fill = Fill::all(LineState::Exclusive);
            }
            if !others.any {
                let left = self.hand_over(request, level);
                fill.handed_over_modified = left == Some(LineState::Modified);
            }
            if others.modified.is_some() {
                self.caches.set_state_at(slot, LineState::Modified);
                self.counts.inner_supplies += 1;
                outcome = Outcome {
                    takes: self.links.inner(latency),
                    served: Served::Cache,
                };
            }
        }
        self.fill(request, level, fill);
        outcome
    }

    /// A read of a line that no level has.
    fn read_from_outside(&mut self, request: Request) -> Outcome {
        let depth = self.shape.paths[request.cpu].len();
        if self.is_shared_across_roots(request) {
            return self.read_shared_across_roots(request, depth);
        }
        let others = self.make_others_share(request, None);
        let clean = || self.neighbor(request.cpu);
        let Some(supplier) = others.modified.or_else(clean) else {
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
        if self.root_of(request.cpu) == self.shape.roots[supplier] as usize {
            if others.modified.is_some() {
                fill.root = LineState::Modified;
            }
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

    /// Whether caches under the CPU's own root, other than its own, and caches under other roots
    /// have the line: then none holds it exclusively.
    #[inline]
    fn is_shared_across_roots(&self, request: Request) -> bool {
        let (own, root) = self.shape.own_and_root(request.cpu);
        let held = self.presence.held(request.line, own, root);
        held.within && held.beyond
    }

    fn read_shared_across_roots(&mut self, request: Request, depth: usize) -> Outcome {
        let outermost = self.shape.paths[request.cpu][depth - 1];
        let root = self.root_of(request.cpu);
        let outcome = if self.shape.caches[outermost].victim {
            Outcome {
                takes: self.fetch_from_cache(request, root, Transaction::ReadLine),
                served: Served::Cache,
            }
        } else {
            Outcome {
                takes: self.fetch_from_memory(request, Transaction::ReadLine),
                served: Served::Memory,
            }
        };
        self.fill(request, depth, Fill::all(LineState::Shared));
        outcome
    }

    /// Of the groups that the last search found, one under the CPU's own root if that is a victim
    /// cache: it supplies a clean line too. Victim caches lack most lines that nearer caches have,
    /// so the hardware keeps the tags of those beside them.
    pub(super) fn neighbor(&self, cpu: usize) -> Option<usize> {
        let outermost = *self.shape.paths[cpu].last()?;
        if !self.shape.caches[outermost].victim {
            return None;
        }
        let root = &self.shape.groups[self.root_of(cpu)];
        self.holders.first_in(&root.under_set)
    }

    #[inline]
    pub(super) fn fetch_from_memory(&mut self, request: Request, kind: Transaction) -> Duration {
        self.counts.note(kind, request.address);
        let socket = usize::from(self.shape.cpus[request.cpu].socket);
        self.links
            .memory_answers(socket, request.now, &mut self.counts.bus)
    }

    /// A supplier under the same root answers without a transaction.
    #[inline]
    pub(super) fn fetch_from_cache(
        &mut self,
        request: Request,
        supplier: usize,
        kind: Transaction,
    ) -> Duration {
        let root = self.root_of(request.cpu);
        if root == self.shape.roots[supplier] as usize {
            self.counts.inner_supplies += 1;
            let Some(outermost) = self.shape.paths[request.cpu].last() else {
                unreachable!()
            };
            return self.links.inner(self.shape.caches[*outermost].latency);
        }
        self.counts.note(kind, request.address);
        let reach = self.shape.reach(request.cpu, supplier);
        let socket = usize::from(self.shape.cpus[request.cpu].socket);
        self.links
            .cache_answers(socket, reach, request.now, &mut self.counts.bus)
    }

    #[inline]
    pub(super) fn root_of(&self, cpu: usize) -> usize {
        self.shape.root_of[cpu] as usize
    }
}
