//! Iterators over cgroups (`bpf_iter_css_...`). A cgroup's own css begins it, so both have one
//! address.

use std::collections::VecDeque;

use super::{Answer, Args};
use crate::state::Here;
use crate::words::EINVAL;

/// `enum bpf_cgroup_iter_order`.
const PRE: u64 = 2;
const POST: u64 = 3;
const UP: u64 = 4;

/// `bpf_iter_css_new(iterator, start, flags)`: from the outermost on, the other way round, or from
/// `start` to the root.
pub(super) fn new(here: &mut Here<'_, '_>, [walk, start, flags, ..]: Args) -> Answer {
    let flags = u64::from(flags as u32);
    let mut found = VecDeque::new();
    match flags {
        PRE | POST => here.descend(start, flags == POST, &mut found),
        UP => found.extend(here.ancestors(start)),
        _ => return Ok(EINVAL),
    }
    here.state.own.css_walks.insert(walk, found);
    Ok(0)
}

pub(super) fn next(here: &mut Here<'_, '_>, [walk, ..]: Args) -> Answer {
    let left = here.state.own.css_walks.get_mut(&walk);
    Ok(left.and_then(VecDeque::pop_front).unwrap_or(0))
}

pub(super) fn destroy(here: &mut Here<'_, '_>, [walk, ..]: Args) -> Answer {
    here.state.own.css_walks.remove(&walk);
    Ok(0)
}

impl Here<'_, '_> {
    fn parent(&self, cgroup: u64) -> u64 {
        self.state.layouts.cgroup.parent.get(self.guest, cgroup)
    }

    /// A cgroup and all below it, in the order in which they came.
    fn descend(&self, from: u64, last: bool, found: &mut VecDeque<u64>) {
        if !last {
            found.push_back(from);
        }
        let all = self.state.groups.values().map(|group| group.address);
        for child in all.filter(|group| self.parent(*group) == from) {
            self.descend(child, last, found);
        }
        if last {
            found.push_back(from);
        }
    }

    /// A cgroup and those that it is in.
    fn ancestors(&self, from: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(from), |group| Some(self.parent(*group)))
            .take_while(|group| *group != 0)
    }
}
