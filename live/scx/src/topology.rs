//! The machine as the BPF program needs it: which CPUs share a last-level cache, which a core, what
//! is near what, and which CPUs are fast.

mod sys;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use warmq_decide::nearest_first;
use warmq_hint::abi::{MAX_CPUS, MAX_DOMAINS};

pub use self::sys::Distances;
use crate::options::Place;

/// Where an online CPU is. The numbers only say whether two CPUs share something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// The system's number.
    pub cpu: usize,
    /// Its core.
    pub core: usize,
    /// Its last-level cache.
    pub cache: usize,
    /// Its memory node.
    pub node: usize,
    /// How fast it is, in any unit.
    pub capacity: u64,
}

/// The layout that is written into the BPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The highest number that a CPU may have, plus 1.
    pub cpu_ids: usize,
    /// The CPUs of each domain.
    pub domains: Vec<Vec<usize>>,
    /// A domain is a memory node, because there are more caches than the BPF program has room for.
    pub by_node: bool,
    /// By CPU: its domain, or MAX_DOMAINS.
    pub domain_of: Vec<u32>,
    /// By CPU: the next CPU of its core, in a ring.
    pub sibling_of: Vec<u32>,
    /// By domain: its memory node, counted without gaps.
    pub node_of: Vec<u32>,
    /// By domain: all of them, nearest first.
    pub near: Vec<Vec<u32>>,
    /// By CPU: it has a high capacity for its domain.
    pub fast: Vec<bool>,
}

/// A machine that is too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// It may get CPUs with higher numbers than the BPF program has room for.
    #[error(
        "the kernel allows CPU numbers up to {highest}, and scx_warmq has room for {MAX_CPUS} CPUs; if \
         the machine has fewer, boot with possible_cpus={MAX_CPUS}"
    )]
    TooManyCpus {
        /// The highest number.
        highest: usize,
    },
    /// There are too many memory nodes.
    #[error(
        "the machine has {nodes} memory nodes, and scx_warmq has room for {MAX_DOMAINS} domains"
    )]
    TooManyDomains {
        /// Of them.
        nodes: usize,
    },
    /// /sys cannot be read.
    #[error("the topology of the machine cannot be read from /sys/devices/system: {0}")]
    Unreadable(String),
}

/// Reads the machine that this runs on.
pub fn read() -> Result<Layout, TopologyError> {
    let machine = scx_utils::Topology::new();
    let machine = machine.map_err(|error| TopologyError::Unreadable(format!("{error:#}")))?;
    let root = Path::new("/");
    let online: Vec<usize> = machine.all_cpus.values().map(|cpu| cpu.id).collect();
    let capacities = sys::capacities(root, &online);
    let cpus = machine.all_cpus.values().zip(capacities);
    let cpus = cpus.map(|(cpu, capacity)| CpuPlace {
        cpu: cpu.id,
        core: cpu.core_id,
        cache: cpu.llc_id,
        node: cpu.node_id,
        capacity,
    });
    let cpus: Vec<CpuPlace> = cpus.collect();
    Layout::new(*scx_utils::NR_CPU_IDS, &cpus, &Distances::read(root))
}

impl Layout {
    /// The layout of a machine with these CPUs online, and numbers below `cpu_ids`.
    pub fn new(
        cpu_ids: usize,
        online: &[CpuPlace],
        distances: &Distances,
    ) -> Result<Layout, TopologyError> {
        if cpu_ids > MAX_CPUS as usize {
            return Err(TopologyError::TooManyCpus {
                highest: cpu_ids - 1,
            });
        }
        let caches = together(online, |cpu| (cpu.node, cpu.cache));
        let by_node = caches.len() > MAX_DOMAINS as usize;
        let domains = if by_node {
            together(online, |cpu| (cpu.node, 0))
        } else {
            caches
        };
        let shards = sharded(&domains, online);
        let domains = match by_node || shards.len() > MAX_DOMAINS as usize {
            true => domains,
            false => shards,
        };
        if domains.len() > MAX_DOMAINS as usize {
            return Err(TopologyError::TooManyDomains {
                nodes: domains.len(),
            });
        }
        let cores = together(online, |cpu| (cpu.cache, cpu.core));
        let firsts = first_of_each(&domains, online);
        Ok(Layout {
            cpu_ids,
            domain_of: domains_by_cpu(cpu_ids, &domains),
            sibling_of: rings(cpu_ids, &cores),
            node_of: nodes_by_domain(&firsts),
            near: nearest_by_domain(&firsts, distances),
            fast: fast_cpus(cpu_ids, &domains, online),
            domains,
            by_node,
        })
    }

    /// How many memory nodes have CPUs that are online.
    pub fn nodes(&self) -> usize {
        self.node_of
            .iter()
            .max()
            .map_or(1, |last| *last as usize + 1)
    }

    /// Whether CPUs of one domain differ in capacity.
    pub fn has_unlike_cpus(&self) -> bool {
        let mut online = self.domains.iter().flatten();
        online.any(|cpu| !self.fast[*cpu])
    }

    /// Whether there are cores of several CPUs.
    pub fn has_smt(&self) -> bool {
        (0..).zip(&self.sibling_of).any(|(cpu, next)| cpu != *next)
    }

    /// How many CPUs are online.
    pub fn online(&self) -> usize {
        self.domains.iter().map(Vec::len).sum()
    }

    /// The default home of a group.
    pub fn natural_place(&self) -> Place {
        if self.domains.len() > 1 {
            Place::Llc
        } else {
            Place::Cpu
        }
    }

    /// How many places there are.
    pub fn places(&self, place: Place) -> usize {
        match place {
            Place::Cpu => self.cpu_ids,
            Place::Llc => self.domains.len(),
        }
    }
}

/// From how many CPUs on a domain is divided, and how many a part has at most. The sums of a domain
/// are written at each wakeup and each tick of its CPUs, and one lock guards its queue.
const TOO_MANY_TOGETHER: usize = 64;
const SHARD: usize = 32;

/// Domains of less than [`TOO_MANY_TOGETHER`] CPUs as they are, others in parts; cores stay whole.
fn sharded(domains: &[Vec<usize>], online: &[CpuPlace]) -> Vec<Vec<usize>> {
    let shards = |domain: &Vec<usize>| -> Vec<Vec<usize>> {
        if domain.len() < TOO_MANY_TOGETHER {
            return vec![domain.clone()];
        }
        let here: Vec<CpuPlace> = online
            .iter()
            .filter(|place| domain.contains(&place.cpu))
            .copied()
            .collect();
        let cores = together(&here, |cpu| (cpu.cache, cpu.core));
        let parts = domain.len().div_ceil(SHARD);
        let parts = cores.chunks(cores.len().div_ceil(parts));
        parts.map(|cores| sorted(cores.concat())).collect()
    };
    domains.iter().flat_map(shards).collect()
}

fn sorted(mut cpus: Vec<usize>) -> Vec<usize> {
    cpus.sort_unstable();
    cpus
}

/// CPUs with the same key, in the order of their first CPU.
fn together(online: &[CpuPlace], key: impl Fn(&CpuPlace) -> (usize, usize)) -> Vec<Vec<usize>> {
    let mut sets: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for cpu in online {
        sets.entry(key(cpu)).or_default().push(cpu.cpu);
    }
    let mut sets: Vec<Vec<usize>> = sets.into_values().collect();
    sets.iter_mut().for_each(|set| set.sort_unstable());
    sets.sort_unstable();
    sets
}

fn domains_by_cpu(cpu_ids: usize, domains: &[Vec<usize>]) -> Vec<u32> {
    let mut domain_of = vec![MAX_DOMAINS; cpu_ids];
    for (domain, cpus) in domains.iter().enumerate() {
        cpus.iter().for_each(|cpu| domain_of[*cpu] = domain as u32);
    }
    domain_of
}

/// A CPU of each domain.
fn first_of_each(domains: &[Vec<usize>], online: &[CpuPlace]) -> Vec<CpuPlace> {
    let first = |cpus: &Vec<usize>| online.iter().find(|place| cpus.contains(&place.cpu));
    domains.iter().filter_map(first).copied().collect()
}

fn nodes_by_domain(firsts: &[CpuPlace]) -> Vec<u32> {
    let nodes: BTreeSet<usize> = firsts.iter().map(|place| place.node).collect();
    let number = |place: &CpuPlace| nodes.range(..place.node).count() as u32;
    firsts.iter().map(number).collect()
}

/// Parts of the same cache are nearest.
fn nearest_by_domain(firsts: &[CpuPlace], distances: &Distances) -> Vec<Vec<u32>> {
    let distance = |own: &CpuPlace, other: u32| {
        let other = firsts[other as usize];
        match (own.node, own.cache) == (other.node, other.cache) {
            true => 0,
            false => distances.between(own.node, other.node),
        }
    };
    let all = firsts.len() as u32;
    (0..)
        .zip(firsts)
        .map(|(domain, own)| nearest_first(domain, all, |other| distance(own, other)))
        .collect()
}

/// By how many percent the fastest CPU of a domain must beat the slowest; chips differ by some in
/// any case.
const UNLIKE: u64 = 5;

/// The CPUs in the upper half of the capacities that there are in their domain; where they are
/// alike, all.
fn fast_cpus(cpu_ids: usize, domains: &[Vec<usize>], online: &[CpuPlace]) -> Vec<bool> {
    let mut fast = vec![true; cpu_ids];
    for domain in domains {
        let cpus: Vec<&CpuPlace> = online
            .iter()
            .filter(|place| domain.contains(&place.cpu))
            .collect();
        let capacities = || cpus.iter().map(|place| place.capacity);
        let (least, most) = (capacities().min(), capacities().max());
        let (least, most) = (least.unwrap_or(0), most.unwrap_or(0));
        if most * 100 >= least * (100 + UNLIKE) {
            let is_fast =
                |place: &CpuPlace| 2 * place.capacity > least + most || place.capacity == most;
            cpus.iter()
                .for_each(|place| fast[place.cpu] = is_fast(place));
        }
    }
    fast
}

/// A CPU that is alone in its core, or offline, is its own sibling.
fn rings(cpu_ids: usize, cores: &[Vec<usize>]) -> Vec<u32> {
    let mut sibling_of: Vec<u32> = (0..cpu_ids as u32).collect();
    for core in cores {
        for (cpu, next) in core.iter().zip(core.iter().cycle().skip(1)) {
            sibling_of[*cpu] = *next as u32;
        }
    }
    sibling_of
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: CpuPlace = CpuPlace {
        cpu: 0,
        core: 0,
        cache: 0,
        node: 0,
        capacity: 1024,
    };

    fn layout(cpu_ids: usize, online: &[CpuPlace]) -> Result<Layout, TopologyError> {
        Layout::new(cpu_ids, online, &Distances::default())
    }

    /// `caches` of `cores` of two threads each: CPU i and i + cores of all are one core.
    fn with_threads(caches: usize, cores: usize) -> Vec<CpuPlace> {
        let all = caches * cores;
        let place = |cpu: usize| {
            let core = cpu % all;
            CpuPlace {
                cpu,
                core,
                cache: core / cores,
                ..NOWHERE
            }
        };
        (0..2 * all).map(place).collect()
    }

    #[test]
    fn cpus_of_a_cache_are_a_domain_and_those_of_a_core_a_ring() {
        let layout = layout(8, &with_threads(2, 2)).expect("it has room");
        assert_eq!(layout.domains, [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(layout.domain_of, [0, 0, 1, 1, 0, 0, 1, 1]);
        assert_eq!(layout.sibling_of, [4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(layout.natural_place(), Place::Llc);
        assert_eq!(layout.places(Place::Llc), 2);
        assert_eq!(layout.places(Place::Cpu), 8);
    }

    #[test]
    fn a_cpu_that_is_offline_has_no_domain_and_no_sibling() {
        let mut online = with_threads(1, 2);
        online.retain(|cpu| cpu.cpu != 1);
        let layout = layout(6, &online).expect("it has room");
        assert_eq!(layout.domain_of, [0, 128, 0, 0, 128, 128]);
        assert_eq!(layout.sibling_of, [2, 1, 0, 3, 4, 5]);
        assert_eq!(layout.online(), 3);
        assert_eq!(layout.natural_place(), Place::Cpu);
    }

    #[test]
    fn equal_cache_numbers_on_two_nodes_are_two_caches() {
        let cpus = [0, 1].map(|cpu| CpuPlace {
            cpu,
            core: cpu,
            node: cpu,
            ..NOWHERE
        });
        assert_eq!(layout(2, &cpus).expect("it has room").domains, [[0], [1]]);
    }

    #[test]
    fn domains_are_nodes_where_there_are_too_many_caches() {
        let cpu = |cpu| CpuPlace {
            cpu,
            core: cpu,
            cache: cpu,
            node: cpu / 100,
            ..NOWHERE
        };
        let layout = layout(300, &(0..300).map(cpu).collect::<Vec<_>>()).expect("it has room");
        assert!(layout.by_node);
        assert_eq!(layout.domains.len(), 3);
    }

    /// 64 cores of two threads under one cache; the threads of core n are CPUs n and n + 64.
    #[test]
    fn a_cache_of_many_cpus_is_divided_between_cores() {
        let cpu = |cpu| CpuPlace {
            cpu,
            core: cpu % 64,
            ..NOWHERE
        };
        let machine = |cpus| layout(cpus, &(0..cpus).map(cpu).collect::<Vec<_>>());
        let layout = machine(128).expect("it has room");
        let sizes: Vec<usize> = layout.domains.iter().map(Vec::len).collect();
        assert_eq!(sizes, [32; 4]);
        for cpu in 0..64 {
            assert_eq!(layout.domain_of[cpu], layout.domain_of[cpu + 64]);
        }
        assert_eq!(machine(63).expect("it has room").domains.len(), 1);
    }

    #[test]
    fn too_many_cpus_are_refused_with_help() {
        let error = layout(1024, &[]).expect_err("it has no room");
        assert!(error.to_string().contains("up to 1023"), "{error}");
        assert!(error.to_string().contains("possible_cpus=512"), "{error}");
    }

    /// Two caches of two CPUs in each of `nodes`, whose numbers have gaps.
    fn with_nodes(nodes: usize) -> Vec<CpuPlace> {
        let place = |cpu: usize| CpuPlace {
            cpu,
            core: cpu,
            cache: cpu / 2,
            node: cpu / 4 * 3,
            ..NOWHERE
        };
        (0..nodes * 4).map(place).collect()
    }

    #[test]
    fn domains_of_the_node_come_before_those_of_others() {
        let layout = layout(12, &with_nodes(3)).expect("it has room");
        assert_eq!(layout.node_of, [0, 0, 1, 1, 2, 2]);
        assert_eq!(layout.nodes(), 3);
        assert_eq!(layout.near[0], [0, 1, 2, 3, 4, 5]);
        assert_eq!(layout.near[3], [3, 2, 4, 5, 0, 1]);
    }

    #[test]
    fn nearer_nodes_come_before_others() {
        let root = tempfile::tempdir().expect("a folder");
        for (node, row) in [(0, "10 32 12"), (3, "32 10 32"), (6, "12 32 10")] {
            let folder = root
                .path()
                .join(format!("sys/devices/system/node/node{node}"));
            std::fs::create_dir_all(&folder).expect("it is made");
            std::fs::write(folder.join("distance"), row).expect("it is written");
        }
        let distances = Distances::read(root.path());
        let layout = Layout::new(12, &with_nodes(3), &distances).expect("it has room");
        assert_eq!(layout.near[1], [1, 0, 4, 5, 2, 3]);
        assert_eq!(layout.near[4], [4, 5, 0, 1, 2, 3]);
    }

    #[test]
    fn parts_of_a_cache_come_before_other_caches() {
        let cpu = |cpu| CpuPlace {
            cpu,
            core: cpu,
            cache: usize::from((64..192).contains(&cpu)),
            ..NOWHERE
        };
        let layout = layout(256, &(0..256).map(cpu).collect::<Vec<_>>()).expect("it has room");
        let caches: Vec<usize> = layout
            .domains
            .iter()
            .map(|domain| cpu(domain[0]).cache)
            .collect();
        for (domain, near) in layout.near.iter().enumerate() {
            let same = near
                .iter()
                .map(|other| caches[*other as usize] == caches[domain]);
            assert!(same.is_sorted_by(|a, b| a >= b), "{near:?} of {caches:?}");
        }
    }

    #[test]
    fn one_node_is_a_ring() {
        let layout = layout(8, &with_threads(2, 2)).expect("it has room");
        assert_eq!(
            (layout.nodes(), layout.node_of.as_slice()),
            (1, &[0, 0][..])
        );
        assert_eq!(layout.near, [[0, 1], [1, 0]]);
    }

    /// CPUs of these capacities, so many under each cache.
    fn with_capacities(capacities: &[u64], a_cache: usize) -> Layout {
        let place = |(cpu, capacity): (usize, &u64)| CpuPlace {
            cpu,
            core: cpu,
            cache: cpu / a_cache,
            capacity: *capacity,
            ..NOWHERE
        };
        let cpus: Vec<CpuPlace> = capacities.iter().enumerate().map(place).collect();
        layout(cpus.len(), &cpus).expect("it has room")
    }

    fn fast(capacities: &[u64]) -> Vec<bool> {
        let layout = with_capacities(capacities, capacities.len());
        assert_eq!(layout.has_unlike_cpus(), layout.fast.contains(&false));
        layout.fast
    }

    #[test]
    fn fast_cpus_are_the_upper_half_of_capacities_that_differ() {
        assert_eq!(fast(&[1024, 1024]), [true, true]);
        assert_eq!(fast(&[1024, 446, 446]), [true, false, false]);
        assert_eq!(fast(&[325, 870, 1024]), [false, true, true]);
        assert_eq!(fast(&[236, 231, 171, 166]), [true, true, false, false]);
        assert_eq!(fast(&[100, 104]), [true, true], "chips differ a little");
        assert_eq!(fast(&[100, 105]), [false, true]);
    }

    /// Each CPU is compared with those that share its cache.
    #[test]
    fn a_cache_of_slow_cpus_has_fast_ones_of_its_own() {
        let layout = with_capacities(&[1024, 1024, 446, 446], 2);
        assert!(!layout.has_unlike_cpus());
    }
}
