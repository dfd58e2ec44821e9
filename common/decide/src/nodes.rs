//! Memory nodes: which domains are tried first, and when work goes to another node.

#![allow(unsafe_code, reason = "as in vruntime.rs")]

use crate::Policy;

/// How far a CPU or a domain is from another (`enum warmq_reach`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The same domain.
    SameCache = 0,
    /// Another domain of the same node.
    SameNode = 1,
    /// Another node.
    OtherNode = 2,
}

unsafe extern "C" {
    safe fn decide_nearness(domain: u32, other: u32, domains: u32, distance: u32) -> u64;

    /// Whether an idle CPU takes one of so many tasks that wait at a place of another node, which
    /// has `cpus`; a CPU has idled beside them for `lasted` ns.
    #[link_name = "decide_crosses_node"]
    pub safe fn crosses_node(policy: &Policy, waiting: u64, cpus: u64, lasted: u64) -> bool;

    /// Whether a new group lives at a place of another node with a load of `far`, where the best of
    /// its own has one of `near`.
    #[link_name = "decide_founds_far"]
    pub safe fn founds_far(
        policy: &Policy,
        near: u64,
        near_cpus: u64,
        far: u64,
        far_cpus: u64,
    ) -> bool;
}

/// All domains, in the order in which a CPU of `domain` tries them: its own, and then the nearest
/// first. `distance` is that of another one: 0 for a part of the same cache, else that of their
/// nodes.
pub fn nearest_first(domain: u32, domains: u32, distance: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut others: Vec<u32> = (0..domains).filter(|other| *other != domain).collect();
    others.sort_by_key(|other| decide_nearness(domain, *other, domains, distance(*other)));
    std::iter::once(domain).chain(others).collect()
}
