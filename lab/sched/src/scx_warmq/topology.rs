//! Which CPUs share what: domains of a last-level cache, cores, memory nodes, and the places where
//! groups live.

use std::collections::BTreeSet;
use std::ops::Range;

use warmq_decide::{self as decide, Reach};
use warmq_kernel::{Attach, View};
use warmq_units::CpuId;

/// What a group's home is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceKind {
    /// A CPU.
    Cpu,
    /// The CPUs that share a last-level cache.
    Llc,
}

/// The machine as the scheduler sees it. A place is numbered as its CPU or its domain.
pub(super) struct Topology {
    kind: PlaceKind,
    domain_of: Vec<usize>,
    cpus_of: Vec<Vec<CpuId>>,
    /// By domain: its node, counted without gaps.
    node_of: Vec<usize>,
    /// By domain: all of them, nearest first.
    near: Vec<Vec<usize>>,
    /// The other CPUs of a CPU's core, from the next on in a ring.
    siblings: Vec<Vec<CpuId>>,
}

impl Topology {
    pub(super) fn new(attach: &Attach<'_>, kind: PlaceKind) -> Topology {
        let cpus = || (0..attach.cpus()).map(CpuId);
        let domain_of: Vec<usize> = cpus()
            .map(|cpu| usize::from(attach.place(cpu).llc))
            .collect();
        let domains = domain_of.iter().max().map_or(0, |last| last + 1);
        let mut cpus_of = vec![Vec::new(); domains];
        for cpu in cpus() {
            cpus_of[domain_of[cpu.index()]].push(cpu);
        }
        let numbers: Vec<u16> = cpus_of.iter().map(|cpus| attach.node(cpus[0])).collect();
        let nodes: BTreeSet<u16> = numbers.iter().copied().collect();
        let node_of: Vec<usize> = numbers.iter().map(|it| nodes.range(..it).count()).collect();
        let near = (0..domains).map(|it| nearest_first(&node_of, it)).collect();
        let core = |cpu| attach.place(cpu).core;
        let siblings = cpus()
            .map(|cpu| {
                let (below, above): (Vec<_>, Vec<_>) = cpus()
                    .filter(|other| *other != cpu && core(*other) == core(cpu))
                    .partition(|other| *other < cpu);
                above.into_iter().chain(below).collect()
            })
            .collect();
        Topology {
            kind,
            domain_of,
            cpus_of,
            node_of,
            near,
            siblings,
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.node_of.iter().max().map_or(1, |last| last + 1)
    }

    pub(super) fn reach(&self, domain: usize, other: usize) -> Reach {
        match (domain == other, self.node_of[domain] == self.node_of[other]) {
            (true, _) => Reach::SameCache,
            (_, true) => Reach::SameNode,
            (_, false) => Reach::OtherNode,
        }
    }

    /// Whether two places are of different nodes.
    pub(super) fn is_far(&self, place: usize, other: usize) -> bool {
        let (from, to) = (self.domain_of_place(place), self.domain_of_place(other));
        self.reach(from, to) == Reach::OtherNode
    }

    /// The node of a place.
    pub(super) fn node_of_place(&self, place: usize) -> usize {
        self.node_of[self.domain_of_place(place)]
    }

    /// All domains, nearest to `domain` first.
    pub(super) fn near(&self, domain: usize) -> &[usize] {
        &self.near[domain]
    }

    pub(super) fn domains(&self) -> Range<usize> {
        0..self.cpus_of.len()
    }

    pub(super) fn cpus(&self) -> Range<usize> {
        0..self.domain_of.len()
    }

    pub(super) fn places(&self) -> Range<usize> {
        match self.kind {
            PlaceKind::Cpu => self.cpus(),
            PlaceKind::Llc => self.domains(),
        }
    }

    pub(super) fn place_is_cpu(&self) -> bool {
        self.kind == PlaceKind::Cpu
    }

    pub(super) fn domain_of(&self, cpu: CpuId) -> usize {
        self.domain_of[cpu.index()]
    }

    pub(super) fn place_of(&self, cpu: CpuId) -> usize {
        match self.kind {
            PlaceKind::Cpu => cpu.index(),
            PlaceKind::Llc => self.domain_of(cpu),
        }
    }

    pub(super) fn domain_of_place(&self, place: usize) -> usize {
        match self.kind {
            PlaceKind::Cpu => self.domain_of[place],
            PlaceKind::Llc => place,
        }
    }

    pub(super) fn cpus_of_domain(&self, domain: usize) -> &[CpuId] {
        &self.cpus_of[domain]
    }

    pub(super) fn cpus_of_place(&self, place: usize) -> Vec<CpuId> {
        match self.kind {
            PlaceKind::Cpu => vec![CpuId(place as u16)],
            PlaceKind::Llc => self.cpus_of[place].clone(),
        }
    }

    pub(super) fn siblings(&self, cpu: CpuId) -> &[CpuId] {
        &self.siblings[cpu.index()]
    }

    /// The first CPU of the core of `cpu`.
    pub(super) fn first_of_core(&self, cpu: CpuId) -> CpuId {
        let siblings = self.siblings(cpu).iter().copied();
        siblings.fold(cpu, CpuId::min)
    }

    /// Whether a task may run on every CPU of a place.
    pub(super) fn fits(&self, view: View<'_>, place: usize) -> bool {
        match self.kind {
            PlaceKind::Cpu => view.may_run_on(CpuId(place as u16)),
            PlaceKind::Llc => self.cpus_of[place].iter().all(|cpu| view.may_run_on(*cpu)),
        }
    }

    /// The only CPU that a task's affinity allows (`nr_cpus_allowed == 1`), online or not, if there
    /// is but one and the machine has more.
    pub(super) fn only_cpu(&self, view: View<'_>) -> Option<CpuId> {
        let allowed = view.allowed()?;
        let only = allowed.len() == 1 && self.cpus().len() > 1;
        allowed.first().filter(|_| only)
    }

    /// The first CPU where a task may run.
    pub(super) fn first_cpu(&self, view: View<'_>) -> Option<CpuId> {
        self.cpus()
            .map(|cpu| CpuId(cpu as u16))
            .find(|cpu| view.may_run_on(*cpu))
    }
}

/// All domains, nearest to `domain` first. Nodes are equally far from each other.
fn nearest_first(node_of: &[usize], domain: usize) -> Vec<usize> {
    let distance = |other: u32| match node_of[other as usize] == node_of[domain] {
        true => 10,
        false => 20,
    };
    let order = decide::nearest_first(domain as u32, node_of.len() as u32, distance);
    order.into_iter().map(|it| it as usize).collect()
}
