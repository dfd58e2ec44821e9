//! The same answers as `requests` and `writes`, in a straight line, for machines where every CPU
//! has a level 1 and a level 2 to itself, both with LRU, and nothing is observed.
//!
//! Most of what a scheduler touches misses level 1 there: this is the path that simulations wait
//! for. What is rare goes the general way; tests compare both ways with the same slow model.

use super::build::Shape;
use super::private_alone::Alone;
use super::{Access, Hierarchy, Outcome, Request, Served, Ways};
use crate::cache::{Cache, Caches, Extent, Line, LineState, Taken};
use crate::counts::Transaction;
use warmq_units::Duration;

/// What answers an access that level 1 has counted and does not have.
pub(super) type Miss = fn(&mut Hierarchy, Request) -> Outcome;

/// The level 1 and 2 of a CPU.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    near: usize,
    far: usize,
    pub(super) near_extent: Extent,
    pub(super) far_extent: Extent,
    pub(super) group: usize,
    /// Of a hit in level 2.
    pub(super) latency: Duration,
    /// Whether level 2 includes level 1.
    inclusive: bool,
}

/// Which groups hold a line: a bit for each.
pub(super) type Snoop = fn(&Hierarchy, Line) -> u32;

/// The most pairs that are searched one by one for a line. With more, presence is recorded.
const MOST_SNOOPED: usize = 16;

/// The lanes of all CPUs, with the code for their numbers of ways.
pub(super) struct Pairs {
    pub(super) lanes: Vec<Lane>,
    pub(super) miss: Miss,
    /// If there is one CPU.
    pub(super) alone: Option<Alone>,
    /// What answers a write to a line that level 1 has, but shared.
    pub(super) claim: Miss,
    /// If the caches of a level are few and alike. The ones of level 1 are then the first of the
    /// machine and the ones of level 2 follow, both in the order of the groups.
    pub(super) snoop: Option<Snoop>,
}

impl Pairs {
    /// Nothing if the machine is not made of such pairs, or there is no code for them.
    pub(super) fn new(shape: &Shape, caches: &[Cache]) -> Option<Pairs> {
        let lanes: Option<Vec<Lane>> = shape.paths.iter().map(|path| lane(shape, path)).collect();
        let lanes = lanes?;
        let fits = |lane: &Lane, (near, far): (usize, usize)| {
            caches[lane.near].is_lru_of(near) && caches[lane.far].is_lru_of(far)
        };
        let code: [Code; 8] = [
            Ways::<2, 4>::code(),
            Ways::<2, 8>::code(),
            Ways::<4, 4>::code(),
            Ways::<4, 8>::code(),
            Ways::<4, 16>::code(),
            Ways::<8, 4>::code(),
            Ways::<8, 8>::code(),
            Ways::<8, 16>::code(),
        ];
        let all_fit = |ways| lanes.iter().all(|lane| fits(lane, ways));
        let (_, miss, claim, snoop) = *code.iter().find(|(ways, ..)| all_fit(*ways))?;
        let groups = shape.groups.len();
        let alike = |lane: &Lane| {
            (lane.near, lane.far) == (lane.group, groups + lane.group)
                && caches[lane.near].is_like(&caches[0])
                && caches[lane.far].is_like(&caches[groups])
        };
        let snooped = groups <= MOST_SNOOPED && lanes.iter().all(alike);
        let (code, seen) = (miss, [0; 2]);
        let alone = Alone { code, seen };
        Some(Pairs {
            snoop: snooped.then_some(snoop),
            miss: miss[0],
            alone: (snooped && lanes.len() == 1).then_some(alone),
            claim,
            lanes,
        })
    }
}

impl Lane {
    /// What level 2 gave up with `word` for `line`, if anything is to be done for that on a machine
    /// of one CPU.
    #[inline(always)]
    pub(super) fn matters(&self, word: u32, line: Line) -> Option<Taken> {
        let modified = word & 3 == LineState::Modified as u32;
        (modified | self.inclusive & (word != 0)).then(|| self.far_extent.taken(word, line))
    }

    /// To be called when the caches have got their places.
    pub(super) fn settle(&mut self, caches: &Caches) {
        self.near_extent = caches.extent(self.near);
        self.far_extent = caches.extent(self.far);
    }
}

/// For numbers of ways. Of misses, that of all machines, and that of those with one CPU whose level
/// 2 often misses.
type Code = ((usize, usize), [Miss; 2], Miss, Snoop);

fn lane(shape: &Shape, path: &[usize]) -> Option<Lane> {
    let &[near, far] = path else {
        return None;
    };
    let place = &shape.caches[far];
    let one_group = place.leaf && shape.caches[near].group == place.group;
    (one_group && !place.victim).then_some(Lane {
        near,
        far,
        near_extent: Extent::default(),
        far_extent: Extent::default(),
        group: place.group,
        latency: place.latency,
        inclusive: place.inclusive,
    })
}

impl<const NEAR: usize, const FAR: usize> Ways<NEAR, FAR> {
    fn code() -> Code {
        let any: Miss = Self::miss_private;
        let miss = [any, Self::miss_unforeseen];
        ((NEAR, FAR), miss, Self::claim, Self::snoop)
    }

    fn miss_private(caches: &mut Hierarchy, request: Request) -> Outcome {
        let Request {
            cpu, line, access, ..
        } = request;
        let lane = caches.lanes[cpu];
        caches.counts.note_miss(cpu, 0, access);
        caches.counts.note_access(cpu, 1, access);
        let Some(word) = caches.caches.lru::<FAR>(lane.far_extent).hit(line) else {
            caches.counts.note_miss(cpu, 1, access);
            return Self::miss_both(caches, request);
        };
        let shared = word.state() == LineState::Shared;
        let write = access == Access::Write;
        if write & shared {
            return Self::claim_in(caches, request);
        }
        let (for_write, for_read) = (
            LineState::Modified,
            [LineState::Exclusive, LineState::Shared],
        );
        let state = if write {
            for_write
        } else {
            for_read[usize::from(shared)]
        };
        Self::fill_near(caches, request, lane, state);
        Outcome {
            takes: lane.latency,
            served: Served::Level(2),
        }
    }

    #[inline(always)]
    pub(super) fn snoop(caches: &Hierarchy, line: Line) -> u32 {
        let groups = caches.shape.groups.len();
        let (near, far) = (caches.caches.extent(0), caches.caches.extent(groups));
        caches.caches.snoop::<NEAR>(near, line) | caches.caches.snoop::<FAR>(far, line)
    }

    /// Neither level has the line, and both have counted that.
    #[inline(never)]
    fn miss_both(caches: &mut Hierarchy, request: Request) -> Outcome {
        let lane = caches.lanes[request.cpu];
        let others = match caches.snoop {
            Some(_) if caches.lanes.len() == 1 => {
                caches.choose_code(caches.counts.far_misses(request.access));
                0
            }
            Some(_) => Self::snoop(caches, request.line),
            None => {
                let own = &caches.shape.own_groups[request.cpu];
                let alone = caches.presence.set_if_alone(request.line, lane.group, own);
                if !alone {
                    return caches.ask_outside(request);
                }
                0
            }
        };
        if others != 0 {
            return Self::share(caches, request, others);
        }
        let (kind, state) = match request.access {
            Access::Read => (Transaction::ReadLine, LineState::Exclusive),
            Access::Write => (Transaction::ReadForOwnership, LineState::Modified),
        };
        let takes = caches.fetch_from_memory(request, kind);
        Self::fill_far(caches, request, lane, LineState::Exclusive);
        Self::fill_near(caches, request, lane, state);
        Outcome {
            takes,
            served: Served::Memory,
        }
    }

    /// Level 2 takes the line in.
    #[inline(always)]
    pub(super) fn fill_far(caches: &mut Hierarchy, request: Request, lane: Lane, state: LineState) {
        let far = caches.caches.lru::<FAR>(lane.far_extent);
        if let Some(victim) = far.insert(request.line, state) {
            Self::left_far(caches, request, lane, victim);
        }
    }

    /// Level 1 takes the line in, which level 2 has.
    #[inline(always)]
    pub(super) fn fill_near(
        caches: &mut Hierarchy,
        request: Request,
        lane: Lane,
        state: LineState,
    ) {
        let near = caches.caches.lru::<NEAR>(lane.near_extent);
        let Some(victim) = near.insert(request.line, state) else {
            return;
        };
        // Clean lines are dropped; which caches still hold them matters only where presence is
        // recorded.
        if victim.state != LineState::Modified && caches.snoop.is_some() {
            return;
        }
        Self::left_near(caches, request, lane, victim);
    }

    /// Level 1 gave up a line.
    #[inline(always)]
    pub(super) fn left_near(caches: &mut Hierarchy, request: Request, lane: Lane, victim: Taken) {
        match caches.caches.lru::<FAR>(lane.far_extent).find(victim.line) {
            Some(word) => word.modify_if(victim.state == LineState::Modified),
            None => caches.victim_left(lane.near, victim.line, victim.state, request),
        }
    }

    /// Level 2 gave up a line.
    #[inline(always)]
    pub(super) fn left_far(caches: &mut Hierarchy, request: Request, lane: Lane, victim: Taken) {
        let Taken { line, state } = victim;
        let near = caches.caches.lru::<NEAR>(lane.near_extent);
        let (mut modified, mut kept) = (state == LineState::Modified, false);
        if lane.inclusive {
            modified |= near.remove(line) == Some(LineState::Modified);
        } else if caches.snoop.is_none() {
            kept = near.find(line).is_some();
        }
        if modified {
            caches.write_back(lane.far, line, request.now);
        }
        if !kept {
            caches.presence.clear(line, lane.group);
        }
    }
}
