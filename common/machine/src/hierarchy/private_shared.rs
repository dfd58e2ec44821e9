//! Where every CPU has a level 1 and 2 to itself: lines that other CPUs hold too.

use super::private::Lane;
use super::{Access, Hierarchy, Outcome, Request, Served};
use crate::cache::{LineState, Lru};
use crate::coherence::Reach;
use crate::counts::Transaction;

/// What the invalidation of a line elsewhere came upon.
struct Invalidated {
    modified: Option<usize>,
    farthest: Reach,
}

impl Hierarchy {
    /// Neither level has the line, but the groups in `others` (a bit for each, not zero) do.
    #[inline(never)]
    pub(super) fn share<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        others: u32,
    ) -> Outcome {
        let lane = self.lanes[request.cpu];
        let (outcome, far, near) = match request.access {
            Access::Read => {
                let outcome = self.read_shared::<NEAR, FAR>(request, others);
                (outcome, LineState::Shared, LineState::Shared)
            }
            Access::Write => {
                let outcome = self.take_over::<NEAR, FAR>(request, others);
                (outcome, LineState::Exclusive, LineState::Modified)
            }
        };
        self.fill_far::<NEAR, FAR>(request, lane, far);
        self.fill_near::<NEAR, FAR>(request, lane, near);
        outcome
    }

    #[inline(always)]
    fn read_shared<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        others: u32,
    ) -> Outcome {
        // If there are two, none holds it exclusively.
        let alone = others
            .is_power_of_two()
            .then(|| others.trailing_zeros() as usize);
        let supplier = alone.filter(|holder| self.make_shared::<NEAR, FAR>(request, *holder));
        let Some(supplier) = supplier else {
            return Outcome {
                takes: self.fetch_from_memory(request, Transaction::ReadLine),
                served: Served::Memory,
            };
        };
        let takes = self.fetch_from_cache(request, supplier, Transaction::ReadLine);
        let socket = usize::from(self.shape.groups[supplier].at.socket);
        self.links
            .implicit_write_back(socket, request.now, &mut self.counts.bus);
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    #[inline(always)]
    fn holder<const WAYS: usize>(&mut self, cache: usize) -> Lru<'_, WAYS> {
        let extent = self.caches.extent(cache);
        self.caches.lru(extent)
    }

    /// `holder` may no longer write the line. Whether it was modified there.
    #[inline(always)]
    fn make_shared<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        holder: usize,
    ) -> bool {
        let groups = self.shape.groups.len();
        let near = self.holder::<NEAR>(holder).find(request.line);
        let in_near = near.is_some_and(|word| word.share() == LineState::Modified);
        let far = self.holder::<FAR>(groups + holder).find(request.line);
        let in_far = far.is_some_and(|word| word.share() == LineState::Modified);
        in_near | in_far
    }

    /// A write to a line that only `others` have.
    #[inline(always)]
    fn take_over<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        others: u32,
    ) -> Outcome {
        let found = self.invalidate_in::<NEAR, FAR>(request, others);
        if let Some(supplier) = found.modified {
            return Outcome {
                takes: self.fetch_from_cache(request, supplier, Transaction::ReadForOwnership),
                served: Served::Cache,
            };
        }
        let takes = self.fetch_from_memory(request, Transaction::ReadForOwnership);
        Outcome {
            takes: takes.max(self.invalidated(request, found.farthest)),
            served: Served::Memory,
        }
    }

    #[inline(always)]
    fn invalidate_in<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        mut others: u32,
    ) -> Invalidated {
        let groups = self.shape.groups.len();
        let (mut modified, mut farthest) = (None, Reach::SameDomain);
        while others != 0 {
            let holder = others.trailing_zeros() as usize;
            others &= others - 1;
            let near = self.holder::<NEAR>(holder).remove(request.line);
            let far = self.holder::<FAR>(groups + holder).remove(request.line);
            if near.max(far) == Some(LineState::Modified) {
                modified = Some(holder);
            }
            farthest = farthest.max(self.shape.reach(request.cpu, holder));
        }
        Invalidated { modified, farthest }
    }

    /// A write to a line that level 1 has used and has shared.
    #[inline(never)]
    pub(super) fn claim<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
    ) -> Outcome {
        let lane = self.lanes[request.cpu];
        let far = self.caches.lru::<FAR>(lane.far_extent).find(request.line);
        let settled = |state| state > LineState::Shared;
        if self.snoop.is_none() || far.as_ref().is_some_and(|word| settled(word.state())) {
            return self.write(request, 0);
        }
        if let Some(far) = far {
            far.own();
        }
        if let Some(near) = self.caches.lru::<NEAR>(lane.near_extent).find(request.line) {
            near.modify_if(true);
        }
        let latency = self.nearest[request.cpu].latency;
        Outcome {
            takes: latency + self.claim_elsewhere::<NEAR, FAR>(request, lane),
            served: Served::Level(1),
        }
    }

    /// A write to a line that level 2 has used and has shared, and level 1 does not have.
    #[inline(never)]
    pub(super) fn claim_in<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
    ) -> Outcome {
        if self.snoop.is_none() {
            return self.write(request, 1);
        }
        let lane = self.lanes[request.cpu];
        if let Some(far) = self.caches.lru::<FAR>(lane.far_extent).find(request.line) {
            far.own();
        }
        let takes = lane.latency + self.claim_elsewhere::<NEAR, FAR>(request, lane);
        self.fill_near::<NEAR, FAR>(request, lane, LineState::Modified);
        Outcome {
            takes,
            served: Served::Level(2),
        }
    }

    /// Invalidates the line in the other caches; returns how long that takes.
    #[inline(always)]
    fn claim_elsewhere<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        lane: Lane,
    ) -> warmq_units::Duration {
        let others = self.snoop::<NEAR, FAR>(request.line) & !(1 << lane.group);
        let found = self.invalidate_in::<NEAR, FAR>(request, others);
        debug_assert!(found.modified.is_none(), "shared here and modified there");
        self.counts.note(Transaction::Upgrade, request.address);
        self.upgraded(request, found.farthest)
    }
}
