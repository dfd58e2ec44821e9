//! From a machine's description to the tree of its caches.

use std::ops::{Deref, Range};

use warmq_units::Duration;

use super::private::{Miss, Pairs};
use super::tree_pairs::TreePair;
use super::{FirstLevel, Hierarchy, Nearest, Options};
use crate::cache::{Cache, Caches, Extent, Marks};
use crate::coherence::{Groups, Links, Presence, Reach};
use crate::counts::Counts;
use crate::description::{CpuPlace, Inclusion, MachineDescription};
use crate::shadow::Shadow;

/// How the caches lie to each other.
///
/// Invariant: the caches form trees by `parent`; the path of a CPU follows it from level 1 to the
/// root. The groups (see [`Presence`]) are numbered in the order of a walk that visits a cache
/// before the nearer ones, so that the groups at or under a group are a range.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) caches: Vec<Place>,
    pub(super) groups: Vec<Group>,
    // The caches of all groups, those of a group nearest first, and where each group's begin.
    chained: Vec<u32>,
    chain_starts: Vec<u32>,
    /// For each CPU its caches.
    pub(super) paths: Vec<Path>,
    /// For each CPU the groups of its caches.
    pub(super) own_groups: Vec<Groups>,
    /// The groups whose first CPU sits in a socket, by socket; and under a last level, by that.
    in_socket: Vec<Groups>,
    in_domain: Vec<Groups>,
    pub(super) all_groups: Groups,
    /// For each group that of its root; and the same for each CPU.
    pub(super) roots: Vec<u32>,
    pub(super) root_of: Vec<u32>,
    pub(super) cpus: Vec<CpuPlace>,
}

/// The most levels that a machine may have.
const MOST_LEVELS: usize = 8;

/// The caches of a CPU, level 1 first; as a slice.
#[derive(Clone, Copy)]
pub(super) struct Path {
    caches: [usize; MOST_LEVELS],
    depth: usize,
}

/// Where a cache lies.
pub(super) struct Place {
    pub(super) latency: Duration,
    pub(super) inclusive: bool,
    /// It takes in what the next nearer caches evict, see [`Inclusion::Victim`].
    pub(super) victim: bool,
    pub(super) parent: Option<usize>,
    pub(super) group: usize,
    /// No cache under it belongs to another group: it is private to the CPUs of its group.
    pub(super) leaf: bool,
    /// Where the first of its CPUs sits.
    pub(super) at: CpuPlace,
}

/// A chain of caches that the same CPUs share.
pub(super) struct Group {
    /// This group and all under it.
    pub(super) under: Range<usize>,
    /// The same as a set.
    pub(super) under_set: Groups,
    /// The group of the root.
    root: usize,
    /// Where the first of its CPUs sits.
    pub(super) at: CpuPlace,
}

impl Deref for Path {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        &self.caches[..self.depth]
    }
}

impl Hierarchy {
    /// The caches of `machine`, all empty.
    ///
    /// # Panics
    /// When the description does not keep what [`MachineDescription`] promises.
    pub fn new(machine: &MachineDescription, options: Options) -> Hierarchy {
        let shape = Shape::new(machine);
        let caches: Vec<Cache> = machine.caches.iter().map(Cache::new).collect();
        let shadow = |cache: &Cache| Shadow::new(cache.capacity());
        let shadows = if options.classify_misses {
            caches.iter().map(shadow).collect()
        } else {
            vec![]
        };
        let plain = shadows.is_empty();
        let first_level = match plain {
            true => FirstLevel::new(&shape, &caches),
            false => FirstLevel::Any,
        };
        let mut pairs = Pairs::new(&shape, &caches).filter(|_| plain);
        let alone = pairs.as_mut().and_then(|pairs| pairs.alone.take());
        let snoop = pairs.as_ref().and_then(|pairs| pairs.snoop);
        let links = Links::new(machine);
        let (mut tree_pairs, trees) = match TreePair::all(&shape, &links, &caches) {
            Some((pairs, code)) if plain => (pairs, Some(code)),
            _ => (vec![], None),
        };
        let (mut lanes, miss, claim, interleaved) = match pairs {
            Some(Pairs {
                lanes, miss, claim, ..
            }) => {
                let groups = shape.groups.len();
                let interleaved = [0..groups, groups..2 * groups];
                (
                    lanes,
                    miss,
                    claim,
                    interleaved
                        .into_iter()
                        .filter(|_| snoop.is_some())
                        .collect(),
                )
            }
            None => {
                let claim: Miss = |caches, request| caches.write(request, 0);
                let miss = trees.map_or(Hierarchy::miss_nearest as Miss, |code| code.miss);
                (vec![], miss, claim, vec![])
            }
        };
        let line_limit = caches.iter().map(Cache::line_limit).min().unwrap_or(0);
        let mut trees_of_sets = Vec::new();
        let mark = |cache| Marks::new(cache, &mut trees_of_sets);
        let marks = machine.caches.iter().map(mark).collect();
        let caches = Caches::new(caches, marks, trees_of_sets, &interleaved);
        lanes.iter_mut().for_each(|lane| lane.settle(&caches));
        tree_pairs.iter_mut().for_each(|pair| pair.settle(&caches));
        let nearest = shape.paths.iter().map(|path| Nearest {
            cache: path[0] as u32,
            latency: shape.caches[path[0]].latency,
            extent: if first_level != FirstLevel::Any {
                caches.extent(path[0])
            } else {
                Extent::default()
            },
        });
        let depth = shape.paths.iter().map(|path| path.len()).max().unwrap_or(0);
        Hierarchy {
            nearest: nearest.collect(),
            first_level,
            lanes,
            miss,
            claim,
            pair_of_group: TreePair::places(&tree_pairs, shape.groups.len()),
            pairs: tree_pairs,
            trees,
            snoop,
            line_shift: machine.caches[0].line.0.trailing_zeros(),
            line_limit,
            dma_into_llc: machine.memory.dma_into_llc,
            presence: match snoop {
                Some(_) => Presence::none(),
                None => Presence::new(shape.groups.len()),
            },
            links,
            counts: Counts::new(machine.cpus.len(), depth, options.histogram),
            shadows,
            holders: Groups::none(shape.groups.len()),
            alone,
            caches,
            shape,
        }
    }
}

impl FirstLevel {
    fn new(shape: &Shape, caches: &[Cache]) -> FirstLevel {
        let all =
            |fits: &dyn Fn(&Cache) -> bool| shape.paths.iter().all(|path| fits(&caches[path[0]]));
        let lru = [
            (2, FirstLevel::Lru2),
            (4, FirstLevel::Lru4),
            (8, FirstLevel::Lru8),
        ];
        if all(&|cache| cache.is_plru_of(8)) {
            return FirstLevel::Plru8;
        }
        let mut lru = lru.iter();
        let fits = lru.find(|(ways, _)| all(&|cache| cache.is_lru_of(*ways)));
        fits.map_or(FirstLevel::Any, |(_, code)| *code)
    }
}

impl Shape {
    fn new(machine: &MachineDescription) -> Shape {
        let parents: Vec<Option<usize>> = (0..machine.caches.len())
            .map(|cache| parent(machine, cache))
            .collect();
        let mut shape = Shape {
            chain_starts: vec![0],
            paths: (0..machine.cpus.len())
                .map(|cpu| path(machine, &parents, cpu))
                .collect(),
            all_groups: Groups::none(0),
            cpus: machine.cpus.clone(),
            ..Shape::default()
        };
        let mut group_of = vec![0; parents.len()];
        for root in (0..parents.len()).filter(|cache| parents[*cache].is_none()) {
            shape.add_group(machine, &parents, root, None, &mut group_of);
        }
        shape.caches = (0..parents.len())
            .map(|cache| Place {
                latency: machine.clock.time_of(machine.caches[cache].latency),
                inclusive: machine.caches[cache].inclusion == Inclusion::Inclusive,
                victim: machine.caches[cache].inclusion == Inclusion::Victim,
                parent: parents[cache],
                group: group_of[cache],
                leaf: shape.groups[group_of[cache]].under.len() == 1,
                at: place(machine, cache),
            })
            .collect();
        let number = shape.groups.len();
        let own = |path: &Path| Groups::of(number, path.iter().map(|cache| group_of[*cache]));
        shape.own_groups = shape.paths.iter().map(own).collect();
        shape.in_socket = shape.groups_by(|place| place.socket);
        shape.in_domain = shape.groups_by(|place| place.llc);
        shape.all_groups = Groups::of(number, 0..number);
        shape.roots = shape.groups.iter().map(|group| group.root as u32).collect();
        let root_of = |path: &Path| shape.roots[group_of[path[0]]];
        shape.root_of = shape.paths.iter().map(root_of).collect();
        for group in &mut shape.groups {
            group.under_set = Groups::of(number, group.under.clone());
        }
        shape
    }

    /// The groups by a number of the place where they are.
    fn groups_by(&self, part: impl Fn(CpuPlace) -> u16) -> Vec<Groups> {
        let number = self.groups.len();
        let parts = self
            .cpus
            .iter()
            .map(|place| part(*place))
            .max()
            .unwrap_or(0);
        let mut sets = vec![Groups::none(number); usize::from(parts) + 1];
        for (index, group) in self.groups.iter().enumerate() {
            sets[usize::from(part(group.at))].insert(index);
        }
        sets
    }

    /// Adds the group whose farthest cache is `outermost`, and all under it.
    fn add_group(
        &mut self,
        machine: &MachineDescription,
        parents: &[Option<usize>],
        outermost: usize,
        root: Option<usize>,
        group_of: &mut [usize],
    ) {
        let number = self.groups.len();
        let root = root.unwrap_or(number);
        let at = place(machine, outermost);
        self.groups.push(Group {
            under: number..number,
            under_set: Groups::none(0),
            root,
            at,
        });
        let (mut chain, mut last) = (vec![], Some(outermost));
        let mut heads = vec![];
        while let Some(cache) = last.take() {
            chain.push(cache);
            group_of[cache] = number;
            for child in (0..parents.len()).filter(|child| parents[*child] == Some(cache)) {
                if machine.caches[child].cpus == machine.caches[cache].cpus {
                    last = Some(child);
                } else {
                    heads.push(child);
                }
            }
        }
        self.chained
            .extend(chain.iter().rev().map(|cache| *cache as u32));
        self.chain_starts.push(self.chained.len() as u32);
        for head in heads {
            self.add_group(machine, parents, head, Some(root), group_of);
        }
        self.groups[number].under.end = self.groups.len();
    }

    /// The groups of the caches of `cpu`, and all under its root.
    #[inline(always)]
    pub(super) fn own_and_root(&self, cpu: usize) -> (&Groups, &Groups) {
        let root = self.root_of[cpu] as usize;
        (&self.own_groups[cpu], &self.groups[root].under_set)
    }

    /// The caches of `group`, nearest first.
    #[inline]
    pub(super) fn chain(&self, group: usize) -> &[u32] {
        let (start, end) = (self.chain_starts[group], self.chain_starts[group + 1]);
        &self.chained[start as usize..end as usize]
    }

    /// How far the farthest of `groups` is from `cpu`.
    pub(super) fn farthest(&self, cpu: usize, groups: &Groups) -> Reach {
        let from = self.cpus[cpu];
        if groups.reaches_beyond(&self.in_socket[usize::from(from.socket)]) {
            Reach::OtherSocket
        } else if groups.reaches_beyond(&self.in_domain[usize::from(from.llc)]) {
            Reach::OtherDomain
        } else {
            Reach::SameDomain
        }
    }

    /// How far `group` is from `cpu`.
    pub(super) fn reach(&self, cpu: usize, group: usize) -> Reach {
        let (from, to) = (self.cpus[cpu], self.groups[group].at);
        if from.socket != to.socket {
            Reach::OtherSocket
        } else if from.llc != to.llc {
            Reach::OtherDomain
        } else {
            Reach::SameDomain
        }
    }
}

fn place(machine: &MachineDescription, cache: usize) -> CpuPlace {
    machine.cpus[machine.caches[cache].cpus[0].index()]
}

/// The next farther cache of the same CPUs.
fn parent(machine: &MachineDescription, cache: usize) -> Option<usize> {
    let inner = &machine.caches[cache];
    machine
        .caches
        .iter()
        .position(|outer| outer.level == inner.level + 1 && outer.cpus.contains(&inner.cpus[0]))
}

fn path(machine: &MachineDescription, parents: &[Option<usize>], cpu: usize) -> Path {
    let is_nearest = |cache: &&usize| {
        let cache = &machine.caches[**cache];
        cache.level == 1 && cache.cpus.iter().any(|member| member.index() == cpu)
    };
    let all: Vec<usize> = (0..parents.len()).collect();
    let nearest = all.iter().find(is_nearest).copied();
    assert!(nearest.is_some(), "cpu{cpu} has no level-1 cache");
    let mut path = Path {
        caches: [0; MOST_LEVELS],
        depth: 0,
    };
    for cache in std::iter::successors(nearest, |cache| parents[*cache]) {
        path.caches[path.depth] = cache;
        path.depth += 1;
    }
    path
}
