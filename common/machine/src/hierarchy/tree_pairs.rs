//! How level 1 and 2 take a line in, in a straight line, where every CPU has them to itself, both with
//! tree-PLRU, and nothing is observed.
//!
//! Server processors are such machines, and what a scheduler for hundreds of CPUs reads has mostly
//! been written elsewhere since: nearly every access ends with this. The general code decides the
//! state of the new line and which caches give it up.

use super::build::Shape;
use super::{Hierarchy, Request};
use crate::cache::{Cache, Caches, Extent, LineState, Taken};

/// Lets level 2, if there is a state for it, and then level 1 take in the line.
pub(super) type FillPair = fn(&mut Hierarchy, Request, Option<LineState>, LineState);

/// The level 1 and 2 of a CPU.
#[derive(Clone, Copy)]
pub(super) struct TreePair {
    near: usize,
    far: usize,
    near_extent: Extent,
    far_extent: Extent,
    group: usize,
    /// Whether level 2 includes level 1.
    inclusive: bool,
    /// All farther levels are victim caches, or there are none.
    pub(super) only_victims_behind: bool,
}

impl TreePair {
    /// The pairs of all CPUs, and the code for their numbers of ways; nothing if some CPU has no such
    /// pair, or there is no code for it.
    pub(super) fn all(shape: &Shape, caches: &[Cache]) -> Option<(Vec<TreePair>, FillPair)> {
        let pairs: Option<Vec<TreePair>> =
            shape.paths.iter().map(|path| pair(shape, path)).collect();
        let pairs = pairs?;
        let fits = |near, far| {
            pairs
                .iter()
                .all(|pair| caches[pair.near].is_plru_of(near) && caches[pair.far].is_plru_of(far))
        };
        let code: [((usize, usize), FillPair); 4] = [
            ((4, 8), Hierarchy::fill_trees::<4, 8>),
            ((8, 4), Hierarchy::fill_trees::<8, 4>),
            ((8, 8), Hierarchy::fill_trees::<8, 8>),
            ((8, 16), Hierarchy::fill_trees::<8, 16>),
        ];
        let (_, fill) = *code.iter().find(|((near, far), _)| fits(*near, *far))?;
        Some((pairs, fill))
    }

    /// To be called when the caches have got their places.
    pub(super) fn settle(&mut self, caches: &Caches) {
        self.near_extent = caches.extent(self.near);
        self.far_extent = caches.extent(self.far);
    }
}

fn pair(shape: &Shape, path: &[usize]) -> Option<TreePair> {
    let &[near, far, ..] = path else {
        return None;
    };
    let place = &shape.caches[far];
    let one_group = place.leaf && shape.caches[near].group == place.group;
    (one_group && !place.victim).then_some(TreePair {
        near,
        far,
        near_extent: Extent::default(),
        far_extent: Extent::default(),
        group: place.group,
        inclusive: place.inclusive,
        only_victims_behind: path[2..].iter().all(|cache| shape.caches[*cache].victim),
    })
}

impl Hierarchy {
    fn fill_trees<const NEAR: usize, const FAR: usize>(
        &mut self,
        request: Request,
        far_state: Option<LineState>,
        near_state: LineState,
    ) {
        let pair = self.pairs[request.cpu];
        if let Some(state) = far_state {
            self.presence.set(request.line, pair.group);
            let far = self.caches.plru::<FAR>(pair.far, pair.far_extent);
            if let Some(Taken { line, state }) = far.insert(request.line, state) {
                self.victim_left(pair.far, line, state, request);
            }
        }
        let near = self.caches.plru::<NEAR>(pair.near, pair.near_extent);
        let Some(Taken { line, state }) = near.insert(request.line, near_state) else {
            return;
        };
        if pair.inclusive && state != LineState::Modified {
            return; // level 2 has the line, and needs not know
        }
        self.victim_left(pair.near, line, state, request);
    }
}
