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
use super::{Access, Hierarchy, Outcome, Request, Served, Ways};
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
            Ways::<4, 8>::trees(),
            Ways::<8, 4>::trees(),
            Ways::<8, 8>::trees(),
            Ways::<8, 16>::trees(),
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

impl<const NEAR: usize, const FAR: usize> Ways<NEAR, FAR> {
    fn trees() -> ((usize, usize), TreeCode) {
        let code = TreeCode {
            miss: Self::miss_trees,
            fill: Self::fill_trees,
            invalidate: Self::invalidate_trees,
        };
        ((NEAR, FAR), code)
    }

    fn miss_trees(caches: &mut Hierarchy, request: Request) -> Outcome {
        let Request {
            cpu, line, access, ..
        } = request;
        caches.counts.note_miss(cpu, 0, access);
        let pair = &caches.pairs[cpu];
        // Level 2 is asked first, because its set is needed in any case: of what it has, nothing
        // else is read from the host's memory.
        if let Some(slot) = caches.caches.plru::<FAR>(pair.place.far).hit(line) {
            caches.counts.note_access(cpu, 1, access);
            return Self::take_from_far(caches, request, slot);
        }
        let row = caches.presence.row(line);
        let (own, root) = caches.shape.own_and_root(cpu);
        let held = Held::of(row, own, root);
        if held.own {
            return caches.ask_levels(request);
        }
        let depth = caches.shape.paths[cpu].len();
        caches.counts.note_misses_behind(cpu, depth, access);
        match pair.neighbor {
            // Caches under several roots have it: nobody exclusively.
            Some(takes) if held.within & held.beyond & (access == Access::Read) => {
                row[pair.group / WORD] |= 1 << (pair.group % WORD);
                caches.counts.inner_supplies += 1;
                Self::fill_level_2(caches, request, LineState::Shared);
                Self::fill_level_1(caches, request, LineState::Shared);
                Outcome {
                    takes,
                    served: Served::Cache,
                }
            }
            _ => caches.ask_outside(request),
        }
    }

    /// Level 2 has the line in `slot`, and level 1 does not have it.
    #[inline(always)]
    fn take_from_far(caches: &mut Hierarchy, request: Request, slot: Slot) -> Outcome {
        let takes = caches.pairs[request.cpu].latency;
        let shared = caches.caches.state_at(slot) == LineState::Shared;
        let state = match request.access {
            Access::Write if shared => return caches.write(request, 1),
            Access::Write => LineState::Modified,
            Access::Read if shared => LineState::Shared,
            Access::Read => LineState::Exclusive,
        };
        Self::fill_level_1(caches, request, state);
        Outcome {
            takes,
            served: Served::Level(2),
        }
    }

    fn fill_trees(
        caches: &mut Hierarchy,
        request: Request,
        far_state: Option<LineState>,
        near_state: LineState,
    ) {
        if let Some(state) = far_state {
            let group = caches.pairs[request.cpu].group;
            caches.presence.set(request.line, group);
            Self::fill_level_2(caches, request, state);
        }
        Self::fill_level_1(caches, request, near_state);
    }

    /// Level 2 takes in the line.
    #[inline(always)]
    fn fill_level_2(caches: &mut Hierarchy, request: Request, state: LineState) {
        let pair = &caches.pairs[request.cpu];
        let far = caches.caches.plru::<FAR>(pair.place.far);
        if let Some(Taken { line, state }) = far.insert(request.line, state) {
            caches.victim_left(pair.far, line, state, request);
        }
    }

    /// Level 1 takes in the line, which level 2 has.
    #[inline(always)]
    fn fill_level_1(caches: &mut Hierarchy, request: Request, state: LineState) {
        let pair = &caches.pairs[request.cpu];
        let near = caches.caches.plru::<NEAR>(pair.place.near);
        let Some(Taken { line, state }) = near.insert(request.line, state) else {
            return;
        };
        if pair.inclusive && state != LineState::Modified {
            return; // level 2 has the line, and needs not know
        }
        match caches.caches.plru::<FAR>(pair.place.far).find(line) {
            Some(slot) => caches.caches.modify_if(slot, state == LineState::Modified),
            None => caches.victim_left(pair.near, line, state, request),
        }
    }

    fn invalidate_trees(caches: &mut Hierarchy, line: Line) -> Others {
        let mut others = SOMEBODY;
        let mut ahead = 0;
        caches.holders.for_each(|group| {
            if let Some(PairPlace { near, far }) = caches.pair_of_group[group] {
                ahead ^= caches.caches.look_ahead(near, line) ^ caches.caches.look_ahead(far, line);
            }
        });
        std::hint::black_box(ahead);
        caches.holders.for_each(|group| {
            let Some(place) = caches.pair_of_group[group] else {
                for cache in caches.shape.chain(group) {
                    let state = caches.caches.remove(*cache as usize, line);
                    state
                        .into_iter()
                        .for_each(|state| others.note(group, state));
                }
                return;
            };
            let near = caches.caches.remove_plru::<NEAR>(place.near, line);
            let far = caches.caches.remove_plru::<FAR>(place.far, line);
            if let Some(state) = near.max(far) {
                others.note(group, state);
            }
        });
        others
    }
}
