//! The same answers as `requests` and `others`, in a straight line, where every CPU has a level 1
//! and a level 2 to itself or with its siblings, both with tree-PLRU, and nothing is observed.
//!
//! Server processors are such machines, and what a scheduler for hundreds of CPUs reads has mostly
//! been written elsewhere since: nearly every access misses level 1, and every copy that is made is
//! invalidated again. What is rare goes the general way; tests compare both with the same slow
//! model.

use super::build::Shape;
use super::others::{Others, SOMEBODY};
use super::private::Miss;
use super::{Access, Hierarchy, Outcome, Request, Served};
use crate::cache::{Cache, Caches, Extent, Line, LineState, Slot, Taken};
use crate::coherence::{Held, Links};

use warmq_units::Duration;

/// Bits in a word of presence.
const WORD: usize = 64;

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
    /// How long a cache under the same root takes to supply a line that caches under others have
    /// too, where these victim caches are such that it does.
    neighbor: Option<Duration>,
}

/// Where the level 1 and 2 of a group are.
#[derive(Clone, Copy, Default)]
pub(super) struct PairPlace {
    near: Extent,
    far: Extent,
}

impl TreePair {
    /// The pairs of all CPUs, and the code for their numbers of ways; nothing if some CPU has no
    /// such pair, or there is no code for it.
    pub(super) fn all(
        shape: &Shape,
        links: &Links,
        caches: &[Cache],
    ) -> Option<(Vec<TreePair>, TreeCode)> {
        let pairs: Option<Vec<TreePair>> = shape
            .paths
            .iter()
            .map(|path| pair(shape, links, path))
            .collect();
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

fn pair(shape: &Shape, links: &Links, path: &[usize]) -> Option<TreePair> {
    let &[near, far, ref behind @ ..] = path else {
        return None;
    };
    let place = &shape.caches[far];
    let alone = shape.chain(place.group).len() == 2 && shape.caches[near].group == place.group;
    let only_victims_behind = behind.iter().all(|cache| shape.caches[*cache].victim);
    let root = behind.last().filter(|_| only_victims_behind);
    (alone && place.leaf && !place.victim).then_some(TreePair {
        near,
        far,
        place: PairPlace::default(),
        group: place.group,
        latency: place.latency,
        inclusive: place.inclusive,
        only_victims_behind,
        neighbor: root.map(|root| links.inner(shape.caches[*root].latency)),
    })
}

impl Hierarchy {
    fn miss_trees<const NEAR: usize, const FAR: usize>(&mut self, request: Request) -> Outcome {
        let Request {
            cpu, line, access, ..
        } = request;
        self.counts.note_miss(cpu, 0, access);
        let pair = &self.pairs[cpu];
        // Level 2 is asked first, because its set is needed in any case: of what it has, nothing
        // else is read from the host's memory.
        if let Some(slot) = self.caches.plru::<FAR>(pair.place.far).hit(line) {
            self.counts.note_access(cpu, 1, access);
            return self.take_from_far::<NEAR, FAR>(request, slot);
        }
        let row = self.presence.row(line);
        let (own, root) = self.shape.own_and_root(cpu);
        let held = Held::of(row, own, root);
        if held.own {
            return self.ask_levels(request);
        }
        let depth = self.shape.paths[cpu].len();
        self.counts.note_misses_behind(cpu, depth, access);
        match pair.neighbor {
            // Caches under several roots have it: nobody exclusively.
            Some(takes) if held.within & held.beyond & (access == Access::Read) => {
                row[pair.group / WORD] |= 1 << (pair.group % WORD);
                self.counts.inner_supplies += 1;
                self.fill_level_2::<FAR>(request, LineState::Shared);
                self.fill_level_1::<NEAR, FAR>(request, LineState::Shared);
                Outcome {
                    takes,
                    served: Served::Cache,
                }
            }
            _ => self.ask_outside(request),
        }
    }

    /// Level 2 has the line in `slot`, and level 1 does not have it.
    #[inline(always)]
    fn take_from_far<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        slot: Slot,
    ) -> Outcome {
        let takes = self.pairs[request.cpu].latency;
        let shared = self.caches.state_at(slot) == LineState::Shared;
        let state = match request.access {
            Access::Write if shared => return self.write(request, 1),
            Access::Write => LineState::Modified,
            Access::Read if shared => LineState::Shared,
            Access::Read => LineState::Exclusive,
        };
        self.fill_level_1::<NEAR, FAR>(request, state);
        Outcome {
            takes,
            served: Served::Level(2),
        }
    }

    fn fill_trees<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        far_state: Option<LineState>,
        near_state: LineState,
    ) {
        if let Some(state) = far_state {
            let group = self.pairs[request.cpu].group;
            self.presence.set(request.line, group);
            self.fill_level_2::<FAR>(request, state);
        }
        self.fill_level_1::<NEAR, FAR>(request, near_state);
    }

    /// Level 2 takes in the line.
    #[inline(always)]
    fn fill_level_2<const FAR: usize>(&mut self, request: Request, state: LineState) {
        let pair = &self.pairs[request.cpu];
        let far = self.caches.plru::<FAR>(pair.place.far);
        if let Some(Taken { line, state }) = far.insert(request.line, state) {
            self.victim_left(pair.far, line, state, request);
        }
    }

    /// Level 1 takes in the line, which level 2 has.
    #[inline(always)]
    fn fill_level_1<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        state: LineState,
    ) {
        let pair = &self.pairs[request.cpu];
        let near = self.caches.plru::<NEAR>(pair.place.near);
        let Some(Taken { line, state }) = near.insert(request.line, state) else {
            return;
        };
        if pair.inclusive && state != LineState::Modified {
            return; // level 2 has the line, and needs not know
        }
        match self.caches.plru::<FAR>(pair.place.far).find(line) {
            Some(slot) => self.caches.modify_if(slot, state == LineState::Modified),
            None => self.victim_left(pair.near, line, state, request),
        }
    }

    fn invalidate_trees<const NEAR: usize, const FAR: usize>(&mut self, line: Line) -> Others {
        let mut others = SOMEBODY;
        let mut ahead = 0;
        self.holders.for_each(|group| {
            if let Some(PairPlace { near, far }) = self.pair_of_group[group] {
                ahead ^= self.caches.look_ahead(near, line) ^ self.caches.look_ahead(far, line);
            }
        });
        std::hint::black_box(ahead);
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
