//! Scheduling domains: which CPUs a CPU balances with, from near to far (`sd_init()`), and in which
//! groups (`build_sched_groups()`, `build_overlap_sched_groups()`).
//!
//! The levels are the threads of a core, the cores that share a level-2 cache, the CPUs under a
//! last-level cache, a socket, a memory node, and the nodes within each distance. A level that has
//! no more CPUs than the one below is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use warmq_kernel::Attach;
use warmq_units::CpuId;

use super::newidle::NewIdle;

/// What holds for all domains of a level.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Level {
    /// Its CPUs are threads of one core (`SD_SHARE_CPUCAPACITY`).
    pub(super) shares_core: bool,
    /// They share a last-level cache (`SD_SHARE_LLC`).
    pub(super) shares_cache: bool,
    /// Its groups are memory nodes, or several of them (`SD_NUMA`): they are balanced by one CPU of
    /// the machine at a time (`SD_SERIALIZE`), and its tasks need not spread evenly.
    pub(super) spans_nodes: bool,
    /// New tasks are placed in it (`SD_BALANCE_FORK`).
    pub(super) places_new: bool,
    /// Its CPUs are packed by priority, where they have one (`SD_ASYM_PACKING`).
    pub(super) packs: bool,
    pub(super) imbalance_pct: u64,
    /// Attempts that have to fail before hot tasks are pulled.
    pub(super) cache_nice_tries: u32,
}

/// By how much the interval is longer on a busy CPU (`busy_factor`).
pub(super) const BUSY_FACTOR: i64 = 16;
/// New tasks go to no node that is farther (`RECLAIM_DISTANCE`).
const RECLAIM_DISTANCE: u64 = 30;

const THREADS: Level = Level {
    shares_core: true,
    packs: false,
    imbalance_pct: 110,
    cache_nice_tries: 0,
    ..CACHE
};

const CACHE: Level = Level {
    shares_core: false,
    shares_cache: true,
    spans_nodes: false,
    places_new: true,
    packs: true,
    imbalance_pct: 117,
    cache_nice_tries: 1,
};

const SOCKET: Level = Level {
    shares_cache: false,
    ..CACHE
};

const NODE: Level = Level {
    packs: false,
    ..SOCKET
};

const NODES: Level = Level {
    spans_nodes: true,
    cache_nice_tries: 2,
    ..NODE
};

const FAR_NODES: Level = Level {
    places_new: false,
    ..NODES
};

/// A group of a domain (`struct sched_group`).
#[derive(Clone)]
pub(super) struct Group {
    pub(super) cpus: Rc<[CpuId]>,
    /// Those of them that balance for it: all, unless groups overlap (`group_balance_mask()`).
    pub(super) balances: Rc<[CpuId]>,
    pub(super) cores: u64,
    /// It is one core of several threads (`SD_SHARE_CPUCAPACITY`).
    pub(super) is_smt: bool,
    /// Tasks spread evenly over it and its like (`SD_PREFER_SIBLING`).
    pub(super) prefers_siblings: bool,
    /// Its CPU of the highest priority (`asym_prefer_cpu`).
    pub(super) preferred: CpuId,
    /// Where in [`State::capacities`](super::state::State::capacities) what all its CPUs know of it
    /// is.
    pub(super) capacity: usize,
}

/// What all CPUs of a group know of it (`struct sched_group_capacity`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    /// What of its CPUs is left to fair tasks, in 1024ths of one, as of when it was balanced last.
    pub(super) capacity: u64,
    /// The least and the most of one of them (`min_capacity`, `max_capacity`).
    pub(super) least: u64,
    pub(super) most: u64,
    /// When that is due again, in jiffies (`next_update`).
    pub(super) due: i64,
    /// Below, tasks could not be moved as they may not run everywhere (`imbalance`).
    pub(super) imbalanced: bool,
}

/// A domain of one CPU.
///
/// Invariant: `groups` cover `span`; the first is the CPU's own. They divide it unless it spans
/// nodes.
pub(super) struct Domain {
    pub(super) level: &'static Level,
    pub(super) span: Rc<[CpuId]>,
    pub(super) groups: Vec<Group>,
    /// Its CPUs are packed by priority, as these differ (`SD_ASYM_PACKING`).
    pub(super) packs: bool,
    /// Which of the machine's capacities its CPUs have.
    pub(super) capacities: Unlike,
    /// Up to so many tasks in a node, others may have two fewer (`imb_numa_nr`).
    pub(super) node_imbalance: u64,

    // Changed by balancing.
    /// In jiffies.
    pub(super) last_balance: i64,
    /// In ms (`balance_interval`).
    pub(super) interval: i64,
    /// Attempts in a row that pulled nothing (`nr_balance_failed`).
    pub(super) failed: u32,
    /// Whether looking for work pays for a CPU that is about to idle.
    pub(super) newidle: NewIdle,
}

/// In how far the CPUs of a domain are of unlike capacity (`asym_cpu_capacity_classify()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unlike {
    /// They are alike.
    No,
    /// They differ (`SD_ASYM_CPUCAPACITY`).
    Some,
    /// They have all capacities that the machine has (`SD_ASYM_CPUCAPACITY_FULL`).
    All,
}

impl Unlike {
    fn of(attach: &Attach<'_>, span: &[CpuId]) -> Unlike {
        let count = |cpus: &mut dyn Iterator<Item = CpuId>| {
            let all: BTreeSet<u64> = cpus.map(|cpu| attach.capacity(cpu)).collect();
            all.len()
        };
        let here = count(&mut span.iter().copied());
        match here {
            0 | 1 => Unlike::No,
            _ if here < count(&mut cpus(attach)) => Unlike::Some,
            _ => Unlike::All,
        }
    }

    pub(super) fn is_any(self) -> bool {
        self != Unlike::No
    }
}

impl Domain {
    /// The least interval: a ms for each CPU (`min_interval`).
    pub(super) fn least_interval(&self) -> i64 {
        self.span.len() as i64
    }

    /// An attempt found nothing to do, or a running task that may not come: the next one comes
    /// later (`out_one_pinned` in `sched_balance_rq()`).
    pub(super) fn slacken(&mut self, all_pinned: bool) {
        let most = match all_pinned {
            true => MOST_PINNED_INTERVAL.max(2 * self.least_interval()),
            false => 2 * self.least_interval(),
        };
        if self.interval < most {
            self.interval *= 2;
        }
    }
}

/// Up to which the interval grows while no task may come, in ms (`MAX_PINNED_INTERVAL`).
const MOST_PINNED_INTERVAL: i64 = 512;

/// Which CPUs are together with each, by level, the smallest first.
struct Spans {
    levels: Vec<(&'static Level, Vec<Rc<[CpuId]>>)>,
}

impl Spans {
    fn new(attach: &Attach<'_>) -> Spans {
        let mut spans = Spans { levels: Vec::new() };
        let place = |cpu| attach.place(cpu);
        spans.add(attach, &THREADS, |a, b| place(a).core == place(b).core);
        spans.add(attach, &CACHE, |a, b| {
            attach.cluster(a) == attach.cluster(b)
        });
        // A node may be a part of a cache or of a socket, whose CPUs are not together then
        // (`x86_topology()`, `tl_pkg_mask()`).
        let near = |a, b| attach.node(a) == attach.node(b);
        spans.add(attach, &CACHE, |a, b| {
            place(a).llc == place(b).llc && near(a, b)
        });
        spans.add(attach, &SOCKET, |a, b| {
            place(a).socket == place(b).socket && near(a, b)
        });
        spans.add(attach, &NODE, |a, b| attach.node(a) == attach.node(b));
        for distance in distances(attach) {
            let level = match distance > RECLAIM_DISTANCE {
                true => &FAR_NODES,
                false => &NODES,
            };
            spans.add(attach, level, |a, b| attach.distance(a, b) <= distance);
        }
        spans
    }

    fn add(
        &mut self,
        attach: &Attach<'_>,
        level: &'static Level,
        together: impl Fn(CpuId, CpuId) -> bool,
    ) {
        let mut spans: Vec<Rc<[CpuId]>> = Vec::new();
        for cpu in cpus(attach) {
            let span: Rc<[CpuId]> = cpus(attach).filter(|other| together(cpu, *other)).collect();
            // Equal ones are kept once.
            let known = spans.get(span[0].index()).filter(|known| **known == span);
            let span = known.cloned().unwrap_or(span);
            spans.push(span);
        }
        self.levels.push((level, spans));
    }

    /// The levels that are more than those below for `cpu` (`sd_parent_degenerate()`).
    fn kept(&self, cpu: CpuId) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for (number, (_, spans)) in self.levels.iter().enumerate() {
            let below = kept.last().map_or(1, |below| self.span(*below, cpu).len());
            if spans[cpu.index()].len() > below {
                kept.push(number);
            }
        }
        kept
    }

    fn span(&self, level: usize, cpu: CpuId) -> &Rc<[CpuId]> {
        &self.levels[level].1[cpu.index()]
    }

    /// What a domain of `level` is made of at `cpu`: the largest span below it that is within
    /// `span`, and the level of that (`find_descended_sibling()`).
    fn part(&self, level: usize, cpu: CpuId, span: &[CpuId]) -> (Option<usize>, Rc<[CpuId]>) {
        let below = (0..level).rev().map(|below| (below, self.span(below, cpu)));
        let is_within = |part: &[CpuId]| part.iter().all(|cpu| span.binary_search(cpu).is_ok());
        let mut parts = below.filter(|(_, part)| part.len() < span.len() && is_within(part));
        let Some((below, part)) = parts.find(|(_, part)| part.len() > 1) else {
            return (None, Rc::from([cpu]));
        };
        // Of levels with the same span the lowest is kept.
        let lowest = (0..below).find(|lower| self.span(*lower, cpu).len() == part.len());
        (Some(lowest.unwrap_or(below)), Rc::clone(part))
    }
}

fn cpus(attach: &Attach<'_>) -> impl Iterator<Item = CpuId> + use<> {
    (0..attach.cpus()).map(CpuId)
}

/// Whether some CPU boosts higher than others.
fn have_priorities(attach: &Attach<'_>) -> bool {
    cpus(attach).any(|cpu| attach.priority(cpu) != attach.priority(CpuId(0)))
}

/// The distances between different nodes, ascending.
fn distances(attach: &Attach<'_>) -> Vec<u64> {
    let from_first = cpus(attach).flat_map(|a| cpus(attach).map(move |b| (a, b)));
    let different = from_first.filter(|(a, b)| attach.node(*a) != attach.node(*b));
    let all: BTreeSet<u64> = different.map(|(a, b)| attach.distance(a, b)).collect();
    all.into_iter().collect()
}

/// The domains of each CPU, the smallest first, and what their groups know.
pub(super) fn domains(attach: &Attach<'_>) -> (Vec<Vec<Domain>>, Vec<Capacity>) {
    let spans = Spans::new(attach);
    let mut capacities = Capacities::default();
    let of = |cpu: CpuId| -> Vec<Domain> {
        let kept = spans.kept(cpu);
        let domain = |level: &usize| spans.domain(attach, *level, cpu, &mut capacities);
        kept.iter().map(domain).collect()
    };
    let domains = cpus(attach).map(of).collect();
    (domains, capacities.all)
}

/// Whether a CPU shares a cache within a larger one (`SD_CLUSTER`).
pub(super) fn are_clustered(domains: &[Domain]) -> bool {
    let caches = domains.iter().map(|domain| domain.level);
    caches
        .filter(|level| level.shares_cache && !level.shares_core)
        .count()
        > 1
}

/// What groups know, by level and the first CPU that balances for the group.
#[derive(Default)]
struct Capacities {
    known: BTreeMap<(usize, CpuId), usize>,
    all: Vec<Capacity>,
}

impl Capacities {
    fn number(&mut self, level: usize, first: CpuId, cpus: &[u64]) -> usize {
        *self.known.entry((level, first)).or_insert_with(|| {
            self.all.push(Capacity {
                capacity: cpus.iter().sum(),
                least: cpus.iter().copied().min().unwrap_or(0),
                most: cpus.iter().copied().max().unwrap_or(0),
                due: 0,
                imbalanced: false,
            });
            self.all.len() - 1
        })
    }
}

impl Spans {
    fn domain(
        &self,
        attach: &Attach<'_>,
        level: usize,
        cpu: CpuId,
        capacities: &mut Capacities,
    ) -> Domain {
        let span = self.span(level, cpu);
        let at = span.iter().position(|other| *other == cpu).unwrap_or(0);
        let mut groups: Vec<Group> = Vec::new();
        let unlike = Unlike::of(attach, span);
        // From the CPU itself round to it.
        for other in span[at..].iter().chain(&span[..at]) {
            if !groups.iter().any(|group| group.cpus.contains(other)) {
                let group = self.group(attach, (level, *other), (span, unlike), capacities);
                groups.push(group);
            }
        }
        Domain {
            level: self.levels[level].0,
            packs: self.levels[level].0.packs && have_priorities(attach),
            capacities: unlike,
            node_imbalance: self.node_imbalance(attach, level, cpu),
            last_balance: 0,
            interval: span.len() as i64,
            failed: 0,
            newidle: NewIdle::default(),
            span: Rc::clone(span),
            groups,
        }
    }

    fn group(
        &self,
        attach: &Attach<'_>,
        (level, cpu): (usize, CpuId),
        (span, unlike): (&[CpuId], Unlike),
        capacities: &mut Capacities,
    ) -> Group {
        let (below, cpus) = self.part(level, cpu, span);
        let spans_nodes = self.levels[level].0.spans_nodes;
        let same = |cpu: &CpuId| {
            let part = below.map(|below| self.span(below, *cpu));
            part.is_none_or(|part| Rc::ptr_eq(part, &cpus) || *part == cpus)
        };
        let balances: Rc<[CpuId]> = match spans_nodes {
            true => cpus.iter().copied().filter(same).collect(),
            false => Rc::clone(&cpus),
        };
        let child = below.map(|below| self.levels[below].0);
        let place = |cpu: CpuId| attach.place(cpu);
        let cores: BTreeSet<u16> = cpus.iter().map(|cpu| place(*cpu).core).collect();
        let best = |best: CpuId, cpu: &CpuId| match attach.priority(*cpu) > attach.priority(best) {
            true => *cpu,
            false => best,
        };
        let of_each: Vec<u64> = cpus.iter().map(|cpu| attach.capacity(*cpu)).collect();
        Group {
            cores: cores.len() as u64,
            is_smt: child.is_some_and(|child| child.shares_core),
            // Among CPUs of unlike capacity, tasks need not be even (`sd_init()`).
            prefers_siblings: child.is_some_and(|child| !child.spans_nodes) && !unlike.is_any(),
            preferred: cpus.iter().fold(cpus[0], best),
            capacity: capacities.number(level, balances[0], &of_each),
            balances,
            cpus,
        }
    }

    /// How many tasks a node may have before others must have as many, in a domain of `level`: an
    /// eighth of its CPUs where they share a cache, or one a cache. Nodes at a greater distance may
    /// have as many more as the domain is larger (`adjust_numa_imbalance()` in topology.c).
    fn node_imbalance(&self, attach: &Attach<'_>, level: usize, cpu: CpuId) -> u64 {
        let nodes = |(level, _): &&(&'static Level, _)| level.spans_nodes;
        let Some((_, nearest)) = self.levels.iter().find(nodes) else {
            return 0;
        };
        if !self.levels[level].0.spans_nodes {
            return 0;
        }
        let llc = attach.place(cpu).llc;
        let cached = cpus(attach)
            .filter(|other| attach.place(*other).llc == llc)
            .count();
        let node = cpus(attach)
            .filter(|other| attach.node(*other) == attach.node(cpu))
            .count();
        let least = match node / cached.max(1) {
            0 | 1 => node >> 3,
            caches => caches,
        };
        let factor = self.span(level, cpu).len() / nearest[cpu.index()].len().max(1);
        (least.max(1) * factor.max(1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use warmq_kernel::{ByHand, Settings};
    use warmq_machine::{builtin, read_toml};
    use warmq_units::Seed;

    use super::*;

    fn domains_of(name: &str, alter: impl Fn(&str) -> String) -> Vec<Vec<Domain>> {
        let text = alter(builtin(name).expect("a shipped machine"));
        let machine = read_toml("machine.toml", &text).expect("a sound machine");
        let settings = Settings {
            caches: false,
            ..Settings::linux6(Seed(1))
        };
        let mut hand = ByHand::new(&machine, settings).expect("it has all costs");
        domains(&hand.attach()).0
    }

    fn numbers(cpus: &[CpuId]) -> Vec<u16> {
        cpus.iter().map(|cpu| cpu.0).collect()
    }

    fn groups(domain: &Domain) -> Vec<Vec<u16>> {
        domain
            .groups
            .iter()
            .map(|group| numbers(&group.cpus))
            .collect()
    }

    /// Threads, then the cores of a node, which share its cache, then nodes.
    #[test]
    fn domains_are_the_same_however_cpus_are_numbered() {
        for (name, cpu, threads, cores, nodes) in [
            (
                "two-nodes",
                9,
                vec![vec![9], vec![1]],
                vec![vec![1, 9], vec![2, 10], vec![3, 11], vec![0, 8]],
                vec![
                    vec![0, 1, 2, 3, 8, 9, 10, 11],
                    vec![4, 5, 6, 7, 12, 13, 14, 15],
                ],
            ),
            (
                "two-nodes-adjacent",
                3,
                vec![vec![3], vec![2]],
                vec![vec![2, 3], vec![4, 5], vec![6, 7], vec![0, 1]],
                vec![
                    vec![0, 1, 2, 3, 4, 5, 6, 7],
                    vec![8, 9, 10, 11, 12, 13, 14, 15],
                ],
            ),
        ] {
            let domains = &domains_of(name, str::to_owned)[cpu];
            let found: Vec<_> = domains.iter().map(groups).collect();
            assert_eq!(found, [threads, cores, nodes], "{name}");
            let levels: Vec<&Level> = domains.iter().map(|domain| domain.level).collect();
            assert_eq!(levels, [&THREADS, &CACHE, &NODES]);
            let smt: Vec<bool> = domains.iter().map(|of| of.groups[1].is_smt).collect();
            assert_eq!(smt, [false, true, false]);
            let spread: Vec<bool> = domains
                .iter()
                .map(|of| of.groups[1].prefers_siblings)
                .collect();
            assert_eq!(spread, [false, true, true]);
            assert_eq!(domains[2].node_imbalance, 1, "an eighth of a node");
        }
    }

    /// Four nodes in a line, of a CPU each: the example of `build_overlap_sched_groups()`. Groups
    /// overlap, and one of them is balanced by the CPU alone that has it as a domain.
    #[test]
    fn groups_of_nodes_in_a_line_overlap() {
        let line = |text: &str| {
            let text = text.replace("sockets = 2", "sockets = 4");
            let text = text.replace("cores_per_llc = 4", "cores_per_llc = 1");
            let text = text.replace("threads_per_core = 2", "threads_per_core = 1");
            let text = text.replace("small-smt", "small-4llc");
            let line = "[[10, 20, 30, 40], [20, 10, 20, 30], [30, 20, 10, 20], [40, 30, 20, 10]]";
            text.replace("[[10, 21], [21, 10]]", line)
        };
        let all = domains_of("two-nodes", line);
        let found: Vec<_> = all[0].iter().map(groups).collect();
        let (near, far) = (vec![vec![0], vec![1]], vec![vec![0, 1], vec![2]]);
        assert_eq!(found, [near, far, vec![vec![0, 1, 2], vec![1, 2, 3]]]);
        assert_eq!(numbers(&all[0][2].groups[1].balances), [3]);
        let found: Vec<_> = all[1].iter().map(groups).collect();
        let near = vec![vec![1], vec![2], vec![0]];
        assert_eq!(found, [near, vec![vec![0, 1, 2], vec![2, 3]]]);
        assert!(
            !all[1][1].groups[0].prefers_siblings,
            "nodes need not be even"
        );
        let places: Vec<bool> = all[0].iter().map(|of| of.level.places_new).collect();
        assert_eq!(
            places,
            [true, true, false],
            "new tasks go no farther than 30"
        );
    }

    /// Two nodes in each of two sockets, as of AMD's NPS or Intel's SNC: the domains of a socket
    /// are those of nodes that are near.
    #[test]
    fn nodes_may_be_parts_of_a_socket() {
        let parts = |text: &str| {
            let nodes = [0, 0, 1, 1, 2, 2, 3, 3].repeat(2);
            let near = "[10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10]";
            let text = text.replace("[[10, 21], [21, 10]]", &format!("[{near}]"));
            text.replacen(
                "threads_per_core = 2",
                &format!("threads_per_core = 2\nnodes = {nodes:?}"),
                1,
            )
        };
        let domains = &domains_of("two-nodes", parts)[0];
        let found: Vec<_> = domains.iter().map(groups).collect();
        let of_node = |node: u16| [2 * node, 2 * node + 1, 2 * node + 8, 2 * node + 9].to_vec();
        let of_socket = |socket: u16| [of_node(2 * socket), of_node(2 * socket + 1)];
        assert_eq!(found[0], [[0], [8]]);
        assert_eq!(found[1], [[0, 8], [1, 9]], "the cache is cut by the nodes");
        assert_eq!(found[2], of_socket(0));
        let sockets = [0, 4]
            .map(|first| -> Vec<u16> { (first..first + 4).chain(first + 8..first + 12).collect() });
        assert_eq!(found[3], sockets);
        let levels: Vec<&Level> = domains.iter().map(|domain| domain.level).collect();
        assert_eq!(levels, [&THREADS, &CACHE, &NODES, &FAR_NODES]);
    }

    /// Pairs of CPUs under a cache each. Where CPUs are of unlike capacity, tasks need not be even.
    #[test]
    fn domains_know_whether_their_cpus_are_of_unlike_capacity() {
        use Unlike::{All, No, Some};
        let of = |capacities: &str| -> Vec<(Unlike, bool)> {
            let alter = |text: &str| text.replacen("threads_per_core = 1", capacities, 1);
            let domains = &domains_of("small-4llc", alter)[0];
            let spread = |of: &Domain| of.groups.iter().any(|group| group.prefers_siblings);
            let of = |domain: &Domain| (domain.capacities, spread(domain));
            domains.iter().map(of).collect()
        };
        assert_eq!(of(""), [(No, false), (No, true)]);
        let two = "capacities = [446, 446, 446, 446, 1024, 1024, 1024, 1024]";
        assert_eq!(of(two), [(No, false), (All, false)]);
        let three = "capacities = [250, 446, 446, 446, 1024, 1024, 1024, 1024]";
        assert_eq!(of(three), [(Some, false), (All, false)]);
        let preferred = format!("{two}\npriorities = [1, 1, 1, 1, 2, 2, 2, 2]");
        assert_eq!(
            of(&preferred),
            [(No, false), (No, true)],
            "kernels know priorities only"
        );
    }

    #[test]
    fn cpus_are_packed_under_a_cache_and_in_a_socket_where_priorities_differ() {
        let packs = |text: &str| -> Vec<bool> {
            let domains = &domains_of("two-nodes", |_| text.to_owned())[0];
            domains.iter().map(|domain| domain.packs).collect()
        };
        let text = builtin("two-nodes").expect("a shipped machine");
        assert_eq!(packs(text), [false; 3]);
        let priorities: Vec<u16> = (0..16).collect();
        let some = format!("threads_per_core = 2\npriorities = {priorities:?}");
        let some = text.replacen("threads_per_core = 2", &some, 1);
        assert_eq!(packs(&some), [false, true, false]);
    }
}
