//! Facts of a machine, by their names, as loaders find them in the topology.

use std::collections::{BTreeMap, BTreeSet};

use warmq_kernel::Attach;
use warmq_machine::FULL_CAPACITY;
use warmq_units::CpuId;

use crate::path::Of;

/// Where a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its core.
    pub core: u16,
    /// Its last-level cache, from 0.
    pub llc: u16,
    /// Its memory node, from 0.
    pub node: u16,
    /// How fast it works, in 1024ths of the fastest CPU, as kernels know it.
    pub capacity: u64,
}

impl Default for Place {
    /// The first CPU of a machine whose CPUs are alike.
    fn default() -> Place {
        Place {
            core: 0,
            llc: 0,
            node: 0,
            capacity: FULL_CAPACITY,
        }
    }
}

/// Facts of a machine: of all of it, and of what placeholders stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    places: Vec<Place>,
    machine: BTreeMap<&'static str, i128>,
    /// CPUs in the order of first threads of cores, then second ones.
    spread: Vec<usize>,
    /// CPUs in the order of their cores, all threads of one beside each other.
    packed: Vec<usize>,
}

/// Names of facts of CPUs, caches, nodes and orders.
const OF_PARTS: &[&str] = &[
    "cpu",
    "core",
    "llc",
    "node",
    "sibling",
    "next_sibling",
    "capacity",
    "fast",
    "llc_cpus",
    "llc_word",
    "near_llc",
    "near_cpu",
    "word",
    "neighbors",
    "neighbor",
    "spread_order",
    "packed_order",
    "value",
];

/// By how many percent the fastest CPU under a cache must beat the slowest.
const UNLIKE: u64 = 5;

/// Whether the CPU at `place` is in the upper half of the capacities under its cache, as scx_warmq
/// has it.
fn is_fast(places: &[Place], place: &Place) -> bool {
    let under = places.iter().filter(|other| other.llc == place.llc);
    let all = under.map(|other| other.capacity);
    let (least, most) = all.fold((u64::MAX, 0), |(least, most), one| {
        (least.min(one), most.max(one))
    });
    let alike = most * 100 < least * (100 + UNLIKE);
    alike || place.capacity == most || 2 * place.capacity > least + most
}

impl Facts {
    /// Those of the machine that a scheduler is attached to.
    pub fn of(attach: &Attach<'_>) -> Facts {
        let place = |cpu: CpuId| Place {
            core: attach.place(cpu).core,
            llc: attach.place(cpu).llc,
            node: attach.node(cpu),
            capacity: attach.capacity(cpu),
        };
        Facts::of_places((0..attach.cpus()).map(CpuId).map(place).collect())
    }

    /// Those of a machine whose CPUs are at these places.
    pub fn of_places(places: Vec<Place>) -> Facts {
        let count = |number: fn(&Place) -> u16| {
            let all: BTreeSet<u16> = places.iter().map(number).collect();
            all.len() as i128
        };
        let (cpus, cores) = (places.len() as i128, count(|place| place.core));
        let (llcs, nodes) = (count(|place| place.llc), count(|place| place.node));
        let (smt, numa) = (i128::from(cores < cpus), i128::from(nodes > 1));
        let most = |part: fn(&Place) -> u16| {
            let sizes = places.iter().map(|one| {
                let same = places.iter().filter(|place| part(place) == part(one));
                same.count() as i128
            });
            sizes.max().unwrap_or(0)
        };
        let capacities: u64 = places.iter().map(|place| place.capacity).sum();
        let machine = BTreeMap::from([
            ("cpus", cpus),
            ("last_cpu", cpus - 1),
            ("cores", cores),
            ("llcs", llcs),
            ("llcs_log2", i128::from((llcs as u64).max(1).ilog2())),
            ("one_llc", i128::from(llcs == 1)),
            ("several_llcs", i128::from(llcs > 1)),
            // How many parts of four CPUs a cache has at most.
            ("llc_quarters", (most(|place| place.llc) / 4).max(1)),
            // Where scx_warmq has groups live.
            ("places", if llcs == 1 { cpus } else { llcs }),
            ("nodes", nodes),
            // Whether 64 bits, or 128, have one for each CPU.
            ("within_64", i128::from(cpus <= 64)),
            ("within_128", i128::from(cpus <= 128)),
            // Orders of CPUs that differ: spread and packed ones.
            ("orders", 1 + i128::from(cpus > 1)),
            ("smt", smt),
            ("no_smt", 1 - smt),
            ("numa", numa),
            ("no_numa", 1 - numa),
            ("capacities", capacities.into()),
            // Whether CPUs under one cache are of unlike capacity.
            (
                "unlike",
                places.iter().any(|place| !is_fast(&places, place)).into(),
            ),
        ]);
        let (distance, lower, upper) = smt_word(&places);
        let machine = BTreeMap::from_iter(machine.into_iter().chain([
            ("smt_distance", distance),
            ("smt_lower", lower),
            ("smt_upper", upper),
        ]));
        Facts {
            spread: sorted(&places, |thread, place| (thread, place)),
            packed: sorted(&places, |thread, place| (place, thread)),
            places,
            machine,
        }
    }

    pub(crate) fn cpus(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// How many a placeholder stands for, where others stand for one each.
    pub(crate) fn count(&self, placeholder: &str, of: &Of) -> usize {
        let machine = |name: &str| self.machine.get(name).map_or(0, |count| *count as usize);
        match placeholder {
            "cpu" | "order" => self.cpus(),
            "llc" | "rank" => machine("llcs"),
            "node" => machine("nodes"),
            "word" => self.cpus().div_ceil(64),
            "other" => self.cpus().saturating_sub(1),
            "distance" => self.distances(of).len(),
            "neighbor" => self.neighbors(of).map_or(0, |neighbors| neighbors.len()),
            _ => 0,
        }
    }

    /// A fact, or the names of those that there are.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(crate) fn get(&self, name: &str, of: &Of) -> Result<i128, String> {
        let machine = || self.machine.get(name).copied();
        let found = self.of_part(name, of).or_else(machine);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.machine.keys().chain(OF_PARTS).copied().collect();
            let known = known.join(", ");
            format!("there is no fact `{name}` here: write a number or one of {known}")
        })
    }

    /// Whether a fact is not 0; without a name, yes.
    ///
    /// # Errors
    /// If there is none of that name.
    pub(crate) fn holds(&self, when: Option<&str>) -> Result<bool, String> {
        let value = when.map_or(Ok(1), |when| self.get(when, &Of::new()));
        Ok(value? != 0)
    }

    fn of_part(&self, name: &str, of: &Of) -> Option<i128> {
        let at = |placeholder: &str| of.get(placeholder).copied();
        let number = |at: usize| at as i128;
        match name {
            "cpu" | "core" | "sibling" | "next_sibling" | "capacity" | "fast" | "llc_cpus"
            | "llc_word" => self.of_cpu(name, at("cpu")?),
            "near_cpu" => self
                .near_cpus(at("cpu")?)
                .get(at("other")?)
                .copied()
                .map(number),
            "llc" => match at("cpu") {
                Some(cpu) => self.places.get(cpu).map(|place| place.llc.into()),
                None => at("llc").map(number),
            },
            "node" => match (at("cpu"), at("llc")) {
                (Some(cpu), _) => self.places.get(cpu).map(|place| place.node.into()),
                (None, Some(llc)) => Some(self.node_of(llc).into()),
                _ => at("node").map(number),
            },
            "word" => self.word(of),
            // What was chosen for an option.
            "value" => at("value").map(number),
            "near_llc" => self.near(at("llc")?).get(at("rank")?).copied().map(number),
            "neighbors" => self.neighbors(of).map(|all| number(all.len())),
            "neighbor" => self
                .neighbors(of)?
                .get(at("neighbor")?)
                .copied()
                .map(number),
            "spread_order" => self.spread.get(at("order")?).copied().map(number),
            "packed_order" => self.packed.get(at("order")?).copied().map(number),
            _ => None,
        }
    }

    fn of_cpu(&self, name: &str, cpu: usize) -> Option<i128> {
        let place = self.places.get(cpu)?;
        let same = |other: &usize| self.places[*other].core == place.core;
        let all = self.places.len();
        Some(match name {
            "cpu" => cpu as i128,
            "core" => place.core.into(),
            "sibling" => {
                let sibling = (0..all).filter(same).find(|other| *other != cpu);
                sibling.map_or(-1, |other| other as i128)
            }
            // In a ring.
            "next_sibling" => (cpu + 1..all).chain(0..=cpu).find(same)? as i128,
            "fast" => is_fast(&self.places, place).into(),
            "llc_cpus" => self.under(place.llc).count() as i128,
            // Those of its cache among the first 64.
            "llc_word" => {
                let first = self.under(place.llc).take_while(|cpu| *cpu < 64);
                first.map(|cpu| 1_i128 << cpu).sum()
            }
            _ => place.capacity.into(),
        })
    }

    /// 64 CPUs of a cache or a node, as bits.
    fn word(&self, of: &Of) -> Option<i128> {
        let first = of.get("word")? * 64;
        let bits = (first..first + 64).filter_map(|cpu| Some((cpu, self.places.get(cpu)?)));
        let within = |place: &Place| match (of.get("llc"), of.get("node")) {
            (Some(llc), _) => usize::from(place.llc) == *llc,
            (None, Some(node)) => usize::from(place.node) == *node,
            _ => true,
        };
        let bits = bits.filter(|(_, place)| within(place));
        Some(bits.map(|(cpu, _)| 1 << (cpu - first)).sum())
    }

    /// CPUs under a cache.
    fn under(&self, llc: u16) -> impl Iterator<Item = usize> {
        let all = self.places.iter().enumerate();
        all.filter(move |(_, place)| place.llc == llc)
            .map(|(cpu, _)| cpu)
    }

    /// Other CPUs: those of its core, of its cache, all others; of these, the next ones in a ring.
    fn near_cpus(&self, cpu: usize) -> Vec<usize> {
        let (count, own) = (
            self.cpus(),
            self.places.get(cpu).copied().unwrap_or_default(),
        );
        let mut others: Vec<usize> = (0..count).filter(|other| *other != cpu).collect();
        others.sort_by_key(|other| {
            let place = self.places[*other];
            let far = (place.llc != own.llc, place.core != own.core);
            (far, (other + count - cpu) % count)
        });
        others
    }

    fn node_of(&self, llc: usize) -> u16 {
        let mut there = self.places.iter();
        let found = there.find(|place| usize::from(place.llc) == llc);
        found.map_or(0, |place| place.node)
    }

    fn llcs(&self) -> std::ops::Range<usize> {
        0..self.machine.get("llcs").map_or(0, |llcs| *llcs as usize)
    }

    /// All caches, the nearest of one first: itself, those of its node, others; of those that are
    /// equally far, the next in number.
    fn near(&self, llc: usize) -> Vec<usize> {
        let mut all: Vec<usize> = self.llcs().collect();
        let count = all.len();
        let far = |other: usize| self.node_of(other) != self.node_of(llc);
        all.sort_by_key(|other| (far(*other), (other + count - llc) % count));
        all
    }

    /// The other caches, in groups that are equally far: those of the same node, others.
    fn distances(&self, of: &Of) -> Vec<Vec<usize>> {
        let Some(llc) = of.get("llc").copied() else {
            return Vec::new();
        };
        let others = self.llcs().filter(|other| *other != llc);
        let near = |other: &usize| self.node_of(*other) == self.node_of(llc);
        let (near, far): (Vec<usize>, Vec<usize>) = others.partition(near);
        let groups = [near, far].into_iter();
        groups
            .filter(|group| !group.is_empty())
            .map(|group| in_circle(llc, group))
            .collect()
    }

    fn neighbors(&self, of: &Of) -> Option<Vec<usize>> {
        let mut groups = self.distances(of);
        let distance = *of.get("distance")?;
        (distance < groups.len()).then(|| groups.swap_remove(distance))
    }
}

/// How far the two threads of a core are from each other, and the lower and the upper ones among
/// the first 64 CPUs, as bits: `(64, 0, 0)`, if distances differ.
fn smt_word(places: &[Place]) -> (i128, i128, i128) {
    let (mut distance, mut lower, mut upper) = (0, 0, 0);
    let few = &places[..places.len().min(64)];
    for (cpu, place) in few.iter().enumerate() {
        let other = few.iter().rposition(|other| other.core == place.core);
        let Some(other) = other.filter(|other| *other > cpu) else {
            continue;
        };
        if distance != 0 && distance != other - cpu {
            return (64, 0, 0);
        }
        distance = other - cpu;
        lower |= 1 << cpu;
        upper |= 1 << other;
    }
    (distance as i128, lower, upper)
}

/// Which thread of its core each CPU is.
fn threads(places: &[Place]) -> Vec<usize> {
    let mut seen: BTreeMap<u16, usize> = BTreeMap::new();
    let thread = |place: &Place| {
        let count = seen.entry(place.core).or_default();
        *count += 1;
        *count - 1
    };
    places.iter().map(thread).collect()
}

/// All CPUs, sorted by which thread each is, and by its place.
fn sorted<K: Ord>(places: &[Place], key: fn(usize, (u16, u16, u16)) -> K) -> Vec<usize> {
    let threads = threads(places);
    let mut all: Vec<usize> = (0..places.len()).collect();
    all.sort_by_key(|cpu| {
        let place = places[*cpu];
        key(threads[*cpu], (place.node, place.llc, place.core))
    });
    all
}

/// Caches in the order of their distance from `start` in a circle of all.
fn in_circle(start: usize, others: Vec<usize>) -> Vec<usize> {
    let mut all = others;
    all.push(start);
    all.sort_unstable();
    let (count, from) = (
        all.len(),
        all.iter().position(|one| *one == start).unwrap_or(0),
    );
    let distance = |at: usize| {
        let ahead = (at + count - from) % count;
        ahead.min(count - ahead)
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|at| (distance(*at), *at));
    order.into_iter().skip(1).map(|at| all[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four caches of two cores of two threads; two nodes. The second threads come last.
    fn machine() -> Facts {
        let place = |cpu: u16| Place {
            core: cpu % 8,
            llc: cpu % 8 / 2,
            node: cpu % 8 / 4,
            ..Place::default()
        };
        Facts::of_places((0..16).map(place).collect())
    }

    fn all(
        facts: &Facts,
        name: &str,
        of: &[(&'static str, usize)],
        over: &'static str,
    ) -> Vec<i128> {
        let mut of: Of = of.iter().copied().collect();
        let count = facts.count(over, &of);
        let mut one = |at| {
            of.insert(over, at);
            facts.get(name, &of).expect("a fact")
        };
        (0..count).map(&mut one).collect()
    }

    /// As live/scx/src/topology.rs has them.
    #[test]
    fn fast_cpus_are_the_upper_half_of_capacities_that_differ_under_a_cache() {
        for (capacities, fast) in [
            ([1024, 1024, 1024, 1024], [1, 1, 1, 1]),
            ([1024, 446, 446, 446], [1, 0, 0, 0]),
            ([325, 870, 1024, 1024], [0, 1, 1, 1]),
            ([1024, 1023, 1000, 990], [1, 1, 1, 1]),
        ] {
            let place = |capacity| Place {
                capacity,
                ..Place::default()
            };
            let facts = Facts::of_places(capacities.map(place).to_vec());
            assert_eq!(all(&facts, "fast", &[], "cpu"), fast, "{capacities:?}");
            let unlike = facts.get("unlike", &Of::new()).unwrap();
            assert_eq!(unlike, i128::from(fast.contains(&0)));
        }
    }

    #[test]
    fn words_are_the_cpus_of_a_part_as_bits() {
        let facts = machine();
        assert_eq!(all(&facts, "word", &[("llc", 1)], "word"), [0x0c0c]);
        assert_eq!(all(&facts, "word", &[("node", 1)], "word"), [0xf0f0]);
        assert_eq!(all(&facts, "word", &[], "word"), [0xffff]);
        let many = Facts::of_places(vec![Place::default(); 65]);
        let words = [u64::MAX.into(), 1];
        assert_eq!(all(&many, "word", &[("llc", 0)], "word"), words);
    }

    #[test]
    fn neighbors_are_grouped_by_their_distance() {
        let facts = machine();
        let llc = |llc| [("llc", llc)];
        assert_eq!(all(&facts, "neighbors", &llc(0), "distance"), [1, 2]);
        let of = |llc, distance| [("llc", llc), ("distance", distance)];
        assert_eq!(all(&facts, "neighbor", &of(0, 0), "neighbor"), [1]);
        assert_eq!(all(&facts, "neighbor", &of(0, 1), "neighbor"), [2, 3]);
        assert_eq!(all(&facts, "neighbor", &of(3, 1), "neighbor"), [0, 1]);
        let one_node = Facts::of_places(
            (0..8)
                .map(|llc| Place {
                    core: llc,
                    llc,
                    node: 0,
                    ..Place::default()
                })
                .collect(),
        );
        // As scx_lavd says it of eight domains, seen from the first and from the last.
        let seen = |from| all(&one_node, "neighbor", &of(from, 0), "neighbor");
        assert_eq!(seen(0), [1, 7, 2, 6, 3, 5, 4]);
        assert_eq!(seen(7), [0, 6, 1, 5, 2, 4, 3]);
    }

    #[test]
    fn other_cpus_are_near_by_core_and_cache() {
        let facts = machine();
        let near = all(&facts, "near_cpu", &[("cpu", 3)], "other");
        assert_eq!(near, [11, 10, 2, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 0, 1]);
        assert_eq!(all(&facts, "llc_cpus", &[], "cpu"), [4; 16]);
        assert_eq!(all(&facts, "llc_word", &[], "cpu")[..2], [0x0303, 0x0303]);
    }

    #[test]
    fn threads_of_cores_are_so_far_from_each_other() {
        let get = |facts: &Facts| {
            let get = |name| facts.get(name, &Of::new()).expect("a fact");
            (get("smt_distance"), get("smt_lower"), get("smt_upper"))
        };
        assert_eq!(get(&machine()), (8, 0x00ff, 0xff00));
        let cores = |cores: &[u16]| {
            let place = |core: &u16| Place {
                core: *core,
                ..Place::default()
            };
            Facts::of_places(cores.iter().map(place).collect())
        };
        assert_eq!(get(&cores(&[0, 1, 2])), (0, 0, 0));
        assert_eq!(get(&cores(&[0, 0, 1, 2, 1, 2])), (64, 0, 0));
    }

    #[test]
    fn orders_are_spread_over_cores_or_packed_into_them() {
        let facts = machine();
        let spread: Vec<i128> = (0..16).collect();
        assert_eq!(all(&facts, "spread_order", &[], "order"), spread);
        let packed = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15];
        assert_eq!(all(&facts, "packed_order", &[], "order"), packed);
    }
}
