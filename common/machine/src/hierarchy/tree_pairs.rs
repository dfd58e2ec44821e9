//! The same answers as `requests` and `others`, in a straight line, where every CPU has a level 1 and
//! a level 2 to itself or with its siblings, both with tree-PLRU, and nothing is observed.
//!
//! Server processors are such machines, and what a scheduler for hundreds of CPUs reads has mostly
//! been written elsewhere since: nearly every access misses level 1, and every copy that is made is
//! invalidated again. What is rare goes the general way; tests compare both with the same slow model.

use super::build::Shape;
use super::others::{Others, SOMEBODY};
use super::private::Miss;
use super::{Access, Hierarchy, Outcome, Request, Served};
use crate::cache::{Cache, Caches, Extent, Line, LineState, Slot, Taken};
use crate::counts::Transaction;

use warmq_units::Duration;

/// Lets level 2, if there is a state for it, and then level 1 take in the line.
pub(super) type FillPair = fn(&mut Hierarchy, Request, Option<LineState>, LineState);

/// The code for the numbers of ways of level 1 and 2.
#[derive(Clone, Copy)]
pub(super) struct TreeCode {
    /// What answers an access that level 1 has counted and does not have.
    pub(super) miss: Miss,
    pub(super) fill: FillPair,
    /// The groups that the last search found, at least one, give up a line.
    pub(super) invalidate: fn(&mut Hierarchy, Line) -> Others,
}

/// The level 1 and 2 of a CPU.
#[derive(Clone, Copy)]
pub(super) struct TreePair {
    near: usize,
    far: usize,
    place: PairPlace,
    /// No other cache is of this group.
    group: usize,
    /// Of a hit in level 2.
    latency: Duration,
    /// Whether level 2 includes level 1.
    inclusive: bool,
    /// All farther levels are victim caches, or there are none.
    pub(super) only_victims_behind: bool,
    /// The root is one of them.
    victim_behind: bool,
}

/// Where the level 1 and 2 of a group are.
#[derive(Clone, Copy, Default)]
pub(super) struct PairPlace {
    near: Extent,
    far: Extent,
}

impl TreePair {
    /// The pairs of all CPUs, and the code for their numbers of ways; nothing if some CPU has no such
    /// pair, or there is no code for it.
    pub(super) fn all(shape: &Shape, caches: &[Cache]) -> Option<(Vec<TreePair>, TreeCode)> {
        let pairs: Option<Vec<TreePair>> =
            shape.paths.iter().map(|path| pair(shape, path)).collect();
        let pairs = pairs?;
        let fits = |near, far| {
            pairs
                .iter()
                .all(|pair| caches[pair.near].is_plru_of(near) && caches[pair.far].is_plru_of(far))
        };
        let all: [((usize, usize), TreeCode); 4] = [
            code::<4, 8>(),
            code::<8, 4>(),
            code::<8, 8>(),
            code::<8, 16>(),
        ];
        let (_, code) = *all.iter().find(|((near, far), _)| fits(*near, *far))?;
        Some((pairs, code))
    }

    /// To be called when the caches have got their places.
    pub(super) fn settle(&mut self, caches: &Caches) {
        self.place = PairPlace {
            near: caches.extent(self.near),
            far: caches.extent(self.far),
        };
    }

    /// Of each of `groups` groups where its pair of caches is, if it is one of `pairs`.
    pub(super) fn places(pairs: &[TreePair], groups: usize) -> Vec<Option<PairPlace>> {
        let mut places = vec![None; groups];
        for pair in pairs {
            places[pair.group] = Some(pair.place);
        }
        places
    }
}

fn code<const NEAR: usize, const FAR: usize>() -> ((usize, usize), TreeCode) {
    let code = TreeCode {
        miss: Hierarchy::miss_trees::<NEAR, FAR>,
        fill: Hierarchy::fill_trees::<NEAR, FAR>,
        invalidate: Hierarchy::invalidate_trees::<NEAR, FAR>,
    };
    ((NEAR, FAR), code)
}

fn pair(shape: &Shape, path: &[usize]) -> Option<TreePair> {
    let &[near, far, ..] = path else {
        return None;
    };
    let place = &shape.caches[far];
    let alone = shape.chain(place.group).len() == 2 && shape.caches[near].group == place.group;
    let behind = &path[2..];
    (alone && place.leaf && !place.victim).then_some(TreePair {
        near,
        far,
        place: PairPlace::default(),
        group: place.group,
        latency: place.latency,
        inclusive: place.inclusive,
        only_victims_behind: behind.iter().all(|cache| shape.caches[*cache].victim),
        victim_behind: behind
            .last()
            .is_some_and(|cache| shape.caches[*cache].victim),
    })
}

impl Hierarchy {
    fn miss_trees<const NEAR: usize, const FAR: usize>(&mut self, request: Request) -> Outcome {
        let Request {
            cpu, line, access, ..
        } = request;
        self.counts.note_miss(cpu, 0, access);
        let held = self.held(request);
        let pair = self.pairs[cpu];
        if held.own {
            // Level 2 has what the two of them have and level 1 does not.
            if !self.presence.may_hold(line, pair.group) {
                return self.ask_levels(request);
            }
            self.counts.note_access(cpu, 1, access);
            let far = self.caches.plru::<FAR>(pair.far, pair.place.far);
            return match far.hit(line) {
                Some(slot) => self.take_from_far::<NEAR, FAR>(request, &pair, slot),
                None => unreachable!("{line:?} is in no cache of a group that has it"),
            };
        }
        let depth = self.shape.paths[cpu].len();
        self.counts.note_misses_behind(cpu, depth, access);
        let clean = held.within & held.beyond;
        if clean & pair.victim_behind & pair.only_victims_behind & (access == Access::Read) {
            return self.read_from_neighbor::<NEAR, FAR>(request);
        }
        self.ask_outside(request)
    }

    /// Level 2 has the line in `slot`, and used it.
    #[inline(always)]
    fn take_from_far<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        pair: &TreePair,
        slot: Slot,
    ) -> Outcome {
        let shared = self.caches.state_at(slot) == LineState::Shared;
        let state = match request.access {
            Access::Write if shared => return self.write(request, 1),
            Access::Write => LineState::Modified,
            Access::Read if shared => LineState::Shared,
            Access::Read => LineState::Exclusive,
        };
        self.fill_level_1::<NEAR>(request, pair, state);
        Outcome {
            takes: pair.latency,
            served: Served::Level(2),
        }
    }

    /// A read of a line that no level has, but caches under the same root and caches under others:
    /// nobody has it exclusively, and a neighbor supplies it.
    #[inline(always)]
    fn read_from_neighbor<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
    ) -> Outcome {
        let root = self.root_of(request.cpu);
        let takes = self.fetch_from_cache(request, root, Transaction::ReadLine);
        self.fill_trees::<NEAR, FAR>(request, Some(LineState::Shared), LineState::Shared);
        Outcome {
            takes,
            served: Served::Cache,
        }
    }

    #[inline(always)]
    fn fill_trees<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        far_state: Option<LineState>,
        near_state: LineState,
    ) {
        let pair = self.pairs[request.cpu];
        if let Some(state) = far_state {
            self.presence.set(request.line, pair.group);
            let far = self.caches.plru::<FAR>(pair.far, pair.place.far);
            if let Some(Taken { line, state }) = far.insert(request.line, state) {
                self.victim_left(pair.far, line, state, request);
            }
        }
        self.fill_level_1::<NEAR>(request, &pair, near_state);
    }

    /// Level 1 takes in the line, which level 2 has.
    #[inline(always)]
    fn fill_level_1<const NEAR: usize>(
        &mut self,
        request: Request,
        pair: &TreePair,
        state: LineState,
    ) {
        let near = self.caches.plru::<NEAR>(pair.near, pair.place.near);
        let Some(Taken { line, state }) = near.insert(request.line, state) else {
            return;
        };
        if pair.inclusive && state != LineState::Modified {
            return; // level 2 has the line, and needs not know
        }
        self.victim_left(pair.near, line, state, request);
    }

    fn invalidate_trees<const NEAR: usize, const FAR: usize>(&mut self, line: Line) -> Others {
        let mut others = SOMEBODY;
        self.look_ahead(line);
        self.holders.for_each(|group| {
            let Some(place) = self.pair_of_group[group] else {
                for cache in self.shape.chain(group) {
                    let state = self.caches.remove(*cache as usize, line);
                    state
                        .into_iter()
                        .for_each(|state| others.note(group, state));
                }
                return;
            };
            let near = self.caches.remove_plru::<NEAR>(place.near, line);
            let far = self.caches.remove_plru::<FAR>(place.far, line);
            if let Some(state) = near.max(far) {
                others.note(group, state);
            }
        });
        others
    }
}
