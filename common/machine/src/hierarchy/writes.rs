//! A write that level 1 cannot complete: what makes the line exclusive to the writer.

use super::requests::Fill;
use super::{Hierarchy, Outcome, Request, Served};
use crate::cache::{LineState, Slot};
use crate::coherence::Reach;
use crate::counts::Transaction;
use warmq_units::Duration;

impl Hierarchy {
    /// A write to a line that `level` has in `slot`, and no nearer one.
    pub(super) fn write_to_level(&mut self, request: Request, level: usize, slot: Slot) -> Outcome {
        if self.caches.state_at(slot) == LineState::Shared {
            return self.write(request, level);
        }
        // What this level owns, the ones behind it own too.
        let outcome = self.write_settled_by(request, level, level);
        self.hand_over(request, level);
        self.fill(request, level, Fill::TO_WRITE);
        outcome
    }

    /// A write that missed in all levels nearer than `level`, or that found the line shared in the
    /// nearest (`level` 0).
    pub(super) fn write(&mut self, request: Request, level: usize) -> Outcome {
        let depth = self.shape.paths[request.cpu].len();
        let settles = (level..depth).find(|level| {
            self.find_on_path(request, *level)
                .is_some_and(|slot| self.caches.state_at(slot) > LineState::Shared)
        });
        let outcome = match settles {
            Some(settles) => self.write_settled_by(request, level, settles),
            None if level < depth => self.upgrade(request, level),
            None => self.read_for_ownership(request),
        };
        self.own_path(request, level);
        self.hand_over(request, level);
        self.fill(request, level, Fill::TO_WRITE);
        if level == 0 && !self.shadows.is_empty() {
            self.shadows[self.shape.paths[request.cpu][0]].use_line(request.line);
        }
        outcome
    }

    /// The cache at level `settles` knows that no cache beyond it has the line.
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
        let others = self.invalidate_others(request, None);
        debug_assert!(others.modified.is_none(), "shared here and modified there");
        let reach = self.farthest_holder(request.cpu);
        self.counts.note(Transaction::Upgrade, request.address);
        let upgrade = self.upgraded(request, reach);
        let latency = self.shape.caches[self.shape.paths[request.cpu][level]].latency;
        Outcome {
            takes: latency + upgrade,
            served: Served::Level(level as u8 + 1),
        }
    }

    fn read_for_ownership(&mut self, request: Request) -> Outcome {
        let others = self.invalidate_others(request, None);
        if let Some(supplier) = others.modified {
            let takes = self.fetch_from_cache(request, supplier, Transaction::ReadForOwnership);
            return Outcome {
                takes,
                served: Served::Cache,
            };
        }
        if let Some(supplier) = self.neighbor(request.cpu) {
            return self.take_from_neighbor(request, supplier, others.owned);
        }
        let mut takes = self.fetch_from_memory(request, Transaction::ReadForOwnership);
        if others.any {
            takes = takes.max(self.invalidated(request, self.farthest_holder(request.cpu)));
        }
        Outcome {
            takes,
            served: Served::Memory,
        }
    }

    /// A cache under the same victim cache had the line, clean; unless one of them `owned` it, the
    /// caches elsewhere must be notified.
    fn take_from_neighbor(&mut self, request: Request, supplier: usize, owned: bool) -> Outcome {
        let mut takes = self.fetch_from_cache(request, supplier, Transaction::ReadForOwnership);
        if !owned {
            let reach = self.farthest_holder(request.cpu);
            self.counts.note(Transaction::Upgrade, request.address);
            let upgrade = self.upgraded(request, reach);
            takes = takes.max(upgrade);
        }
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    /// Invalidates the line in other caches, as far as `reach`; returns how long that takes.
    #[inline]
    pub(super) fn upgraded(&mut self, request: Request, reach: Reach) -> Duration {
        let socket = usize::from(self.shape.cpus[request.cpu].socket);
        self.links
            .upgrade(socket, reach, request.now, &mut self.counts.bus)
    }

    /// The same where the fetch of the line invalidates it in the caches that snoop it.
    #[inline]
    pub(super) fn invalidated(&mut self, request: Request, reach: Reach) -> Duration {
        let socket = usize::from(self.shape.cpus[request.cpu].socket);
        self.links
            .invalidation(socket, reach, request.now, &mut self.counts.bus)
    }

    /// Where `level` has the line, without using it.
    #[inline]
    fn find_on_path(&self, request: Request, level: usize) -> Option<Slot> {
        let cache = self.shape.paths[request.cpu][level];
        let group = self.shape.caches[cache].group;
        // Cheaper than to look for it in a far cache, see `hit`.
        let may_hold = self.presence.may_hold(request.line, group);
        may_hold.then(|| self.caches.find(cache, request.line))?
    }

    /// After all others were invalidated: the levels from `level` on that have the line own it.
    fn own_path(&mut self, request: Request, level: usize) {
        for index in level..self.shape.paths[request.cpu].len() {
            let Some(slot) = self.find_on_path(request, index) else {
                continue;
            };
            if index == 0 {
                self.caches.set_state_at(slot, LineState::Modified);
            } else if self.caches.state_at(slot) == LineState::Shared {
                self.caches.set_state_at(slot, LineState::Exclusive);
            }
        }
    }
}
