//! Where every CPU has a level 1 and 2 to itself: lines that other CPUs hold too.

use super::private::Lane;
use super::{Access, Hierarchy, Outcome, Request, Served, Ways};
use crate::cache::{LineState, Lru};
use crate::coherence::Reach;
use crate::counts::Transaction;

/// What the invalidation of a line elsewhere came upon.
struct Invalidated {
    modified: Option<usize>,
    farthest: Reach,
}

impl<const NEAR: usize, const FAR: usize> Ways<NEAR, FAR> {
    /// Neither level has the line, but the groups in `others` (a bit for each, not zero) do.
    #[inline(never)]
    pub(super) fn share(caches: &mut Hierarchy, request: Request, others: u32) -> Outcome {
        let lane = caches.lanes[request.cpu];
        let (outcome, far, near) = match request.access {
            Access::Read => {
                let outcome = Self::read_shared(caches, request, others);
                (outcome, LineState::Shared, LineState::Shared)
            }
            Access::Write => {
                let outcome = Self::take_over(caches, request, others);
                (outcome, LineState::Exclusive, LineState::Modified)
            }
        };
        Self::fill_far(caches, request, lane, far);
        Self::fill_near(caches, request, lane, near);
        outcome
    }

    #[inline(always)]
    fn read_shared(caches: &mut Hierarchy, request: Request, others: u32) -> Outcome {
        // If there are two, none holds it exclusively.
        let alone = others
            .is_power_of_two()
            .then(|| others.trailing_zeros() as usize);
        let supplier = alone.filter(|holder| Self::make_shared(caches, request, *holder));
        let Some(supplier) = supplier else {
            return Outcome {
                takes: caches.fetch_from_memory(request, Transaction::ReadLine),
                served: Served::Memory,
            };
        };
        let takes = caches.fetch_from_cache(request, supplier, Transaction::ReadLine);
        let socket = usize::from(caches.shape.groups[supplier].at.socket);
        caches
            .links
            .implicit_write_back(socket, request.now, &mut caches.counts.bus);
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    #[inline(always)]
    fn holder<const WAYS: usize>(caches: &mut Hierarchy, cache: usize) -> Lru<'_, WAYS> {
        let extent = caches.caches.extent(cache);
        caches.caches.lru(extent)
    }

    /// `holder` may no longer write the line. Whether it was modified there.
    #[inline(always)]
    fn make_shared(caches: &mut Hierarchy, request: Request, holder: usize) -> bool {
        let groups = caches.shape.groups.len();
        let near = Self::holder::<NEAR>(caches, holder).find(request.line);
        let in_near = near.is_some_and(|word| word.share() == LineState::Modified);
        let far = Self::holder::<FAR>(caches, groups + holder).find(request.line);
        let in_far = far.is_some_and(|word| word.share() == LineState::Modified);
        in_near | in_far
    }

    /// A write to a line that only `others` have.
    #[inline(always)]
    fn take_over(caches: &mut Hierarchy, request: Request, others: u32) -> Outcome {
        let found = Self::invalidate_in(caches, request, others);
        if let Some(supplier) = found.modified {
            return Outcome {
                takes: caches.fetch_from_cache(request, supplier, Transaction::ReadForOwnership),
                served: Served::Cache,
            };
        }
        let takes = caches.fetch_from_memory(request, Transaction::ReadForOwnership);
        Outcome {
            takes: takes.max(caches.invalidated(request, found.farthest)),
            served: Served::Memory,
        }
    }

    #[inline(always)]
    fn invalidate_in(caches: &mut Hierarchy, request: Request, mut others: u32) -> Invalidated {
        let groups = caches.shape.groups.len();
        let (mut modified, mut farthest) = (None, Reach::SameDomain);
        while others != 0 {
            let holder = others.trailing_zeros() as usize;
            others &= others - 1;
            let near = Self::holder::<NEAR>(caches, holder).remove(request.line);
            let far = Self::holder::<FAR>(caches, groups + holder).remove(request.line);
            if near.max(far) == Some(LineState::Modified) {
                modified = Some(holder);
            }
            farthest = farthest.max(caches.shape.reach(request.cpu, holder));
        }
        Invalidated { modified, farthest }
    }

    /// A write to a line that level 1 has used and has shared.
    #[inline(never)]
    pub(super) fn claim(caches: &mut Hierarchy, request: Request) -> Outcome {
        let lane = caches.lanes[request.cpu];
        let far = caches.caches.lru::<FAR>(lane.far_extent).find(request.line);
        let settled = |state| state > LineState::Shared;
        if caches.snoop.is_none() || far.as_ref().is_some_and(|word| settled(word.state())) {
            return caches.write(request, 0);
        }
        if let Some(far) = far {
            far.own();
        }
        if let Some(near) = caches
            .caches
            .lru::<NEAR>(lane.near_extent)
            .find(request.line)
        {
            near.modify_if(true);
        }
        let latency = caches.nearest[request.cpu].latency;
        Outcome {
            takes: latency + Self::claim_elsewhere(caches, request, lane),
            served: Served::Level(1),
        }
    }

    /// A write to a line that level 2 has used and has shared, and level 1 does not have.
    #[inline(never)]
    pub(super) fn claim_in(caches: &mut Hierarchy, request: Request) -> Outcome {
        if caches.snoop.is_none() {
            return caches.write(request, 1);
        }
        let lane = caches.lanes[request.cpu];
        if let Some(far) = caches.caches.lru::<FAR>(lane.far_extent).find(request.line) {
            far.own();
        }
        let takes = lane.latency + Self::claim_elsewhere(caches, request, lane);
        Self::fill_near(caches, request, lane, LineState::Modified);
        Outcome {
            takes,
            served: Served::Level(2),
        }
    }

    /// Invalidates the line in the other caches; returns how long that takes.
    #[inline(always)]
    fn claim_elsewhere(
        caches: &mut Hierarchy,
        request: Request,
        lane: Lane,
    ) -> warmq_units::Duration {
        let others = Self::snoop(caches, request.line) & !(1 << lane.group);
        let found = Self::invalidate_in(caches, request, others);
        debug_assert!(found.modified.is_none(), "shared here and modified there");
        caches.counts.note(Transaction::Upgrade, request.address);
        caches.upgraded(request, found.farthest)
    }
}
