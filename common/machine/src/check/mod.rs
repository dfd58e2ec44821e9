//! The rules for every machine, checked once, wherever its description comes from.

mod cache;
mod sharing;

use warmq_units::{Bytes, CpuId, Cycles, Duration};

use crate::cache::farthest_memory;
use crate::description::{CacheDescription, CpuPlace, MachineDescription, Steal};
use crate::error::Flaw;
use crate::observed::{cuts_parts, renumbered};
use crate::topology::{FULL_CAPACITY, LOCAL_DISTANCE};
pub(crate) use cache::MOST_WAYS;
use cache::{cache_key, check_cache};

/// The most CPUs that a machine may have.
pub const MOST_CPUS: usize = 4096;
const SMALLEST_MEMORY: Bytes = Bytes(1 << 20);
const LARGEST_MEMORY: Bytes = Bytes(8 << 40);
const LARGEST_HUGE_PAGE: Bytes = Bytes(1 << 30);
const MOST_CYCLES: Cycles = Cycles(1_000_000_000);
const LONGEST_LATENCY: Duration = Duration::from_ms(1);
const MOST_OVERLAP: u64 = 1024;
/// The `smt_speed` of a CPU that a busy sibling does not slow down, in thousandths.
pub(crate) const NOT_SLOWED_DOWN: u64 = 1_000;
/// The greatest distance between nodes; 255 says that one cannot be reached.
const FARTHEST: u16 = 254;
const SHORTEST_GAP: Duration = Duration::from_us(1);
const LONGEST_GAP: Duration = Duration::from_ms(1_000_000);
const SLOWEST_KHZ: u64 = 1_000;
const FASTEST_KHZ: u64 = 100_000_000;

/// `Ok` if `good`, else the flaw, which is constructed only then.
fn demand(good: bool, flaw: impl FnOnce() -> Flaw) -> Result<(), Flaw> {
    if good { Ok(()) } else { Err(flaw()) }
}

impl MachineDescription {
    /// Checks that the models can handle this machine: the invariant of [`MachineDescription`].
    ///
    /// # Errors
    /// The first rule that is broken, and how to fix it.
    pub fn check(&self) -> Result<(), Flaw> {
        self.check_name()?;
        self.check_cpu()?;
        self.check_places()?;
        self.check_of_each("priorities", &self.priorities)?;
        self.check_of_each("capacities", &self.capacities)?;
        self.check_capacities()?;
        self.check_of_each("nodes", &self.nodes)?;
        self.check_nodes()?;
        self.check_distances()?;
        for cache in &self.caches {
            check_cache(cache, self.cpus.len())?;
        }
        self.check_caches_in_nodes()?;
        self.check_lines_and_order()?;
        let chains = self.chains()?;
        self.check_chains(&chains)?;
        self.check_sharing(&chains)?;
        self.check_coherence()?;
        self.check_memory()?;
        self.check_steals()?;
        self.check_costs()
    }

    /// What takes CPUs away leaves half of each at least.
    fn check_steals(&self) -> Result<(), Flaw> {
        for (index, Steal { every, span }) in self.steals.iter().enumerate() {
            let key = |field: &str| format!("steal.{index}.{field}");
            demand((SHORTEST_GAP..=LONGEST_GAP).contains(every), || {
                let problem = format!("{every} is no time from one to the next");
                Flaw::new(key("every"), problem, "give 1us to 1000s")
            })?;
            let half = Duration(every.0 / 2);
            demand(*span > Duration::ZERO && *span <= half, || {
                let problem = format!("{span} of every {every} are taken");
                let help = format!("give more than nothing, and at most half of `every`: {half}");
                Flaw::new(key("span"), problem, help)
            })?;
        }
        Ok(())
    }

    fn check_name(&self) -> Result<(), Flaw> {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        demand(
            (1..=64).contains(&self.name.len()) && self.name.chars().all(allowed),
            || {
                Flaw::new(
                    "name",
                    format!("`{}` is not a name", self.name),
                    "use 1 to 64 of the letters a-z, digits, `-`, `_` and `.`",
                )
            },
        )
    }

    fn check_cpu(&self) -> Result<(), Flaw> {
        demand(
            (SLOWEST_KHZ..=FASTEST_KHZ).contains(&self.clock.khz()),
            || {
                let problem = format!("a clock of {} kHz is absurd", self.clock.khz());
                Flaw::new("cpu.clock", problem, "give a clock between 1MHz and 100GHz")
            },
        )?;
        demand((1..=MOST_OVERLAP).contains(&self.miss_overlap), || {
            let problem = format!("{} misses cannot overlap", self.miss_overlap);
            Flaw::new("cpu.miss_overlap", problem, "give 1 for none, 1024 at most")
        })?;
        demand((1..=NOT_SLOWED_DOWN).contains(&self.smt_speed), || {
            let problem = format!("a CPU at {} thousandths of its speed", self.smt_speed);
            let help =
                "give 1 to 1000; two busy siblings of 610 each do 1.22 times the work of one";
            Flaw::new("cpu.smt_speed", problem, help)
        })
    }

    /// Each CPU has one of `numbers`, or none has.
    fn check_of_each(&self, name: &str, numbers: &[u16]) -> Result<(), Flaw> {
        let (given, cpus) = (numbers.len(), self.cpus.len());
        demand(given == 0 || given == cpus, || {
            let problem = format!("{given} {name} for {cpus} CPUs");
            let help = "give each CPU one, in the order of their numbers, or leave the key out";
            Flaw::new(format!("topology.{name}"), problem, help)
        })
    }

    fn check_capacities(&self) -> Result<(), Flaw> {
        let range = 1..=FULL_CAPACITY;
        let outside = |capacity: &&u16| !range.contains(&u64::from(**capacity));
        let outside = self.capacities.iter().find(outside);
        outside.map_or(Ok(()), |capacity| {
            let problem = format!("{capacity} is no capacity");
            let help = "give 1 to 1024, which the fastest CPU has";
            Err(Flaw::new("topology.capacities", problem, help))
        })
    }

    /// Checks that capacities are those that kernels have made of what firmware says
    /// (`topology_normalize_cpu_scale()`): the fastest CPU of a whole machine has 1024. It may be
    /// among those that a kernel leaves offline.
    pub(crate) fn check_fastest(&self) -> Result<(), Flaw> {
        let most = self.capacities.iter().max().copied();
        let most = most.map_or(FULL_CAPACITY, u64::from);
        demand(most == FULL_CAPACITY, || {
            let problem = format!("the fastest CPU has a capacity of {most}");
            let help = "kernels scale capacities until the fastest CPU has 1024: multiply all by \
                        1024 over the greatest, and take its clock for that of the machine";
            Flaw::new("topology.capacities", problem, help)
        })
    }

    /// Memory nodes are counted as CPUs are met, and cut no core in two.
    fn check_nodes(&self) -> Result<(), Flaw> {
        let flaw = |problem: String, help: &str| {
            let help = help.to_owned();
            Flaw::new("topology.nodes", problem, help)
        };
        demand(renumbered(self.nodes.iter()) == self.nodes, || {
            flaw(
                "the numbers of memory nodes have gaps, or are out of order".to_owned(),
                "count them from 0 without a gap, in the order of their first CPUs",
            )
        })?;
        let of_core = |cpu: CpuId| self.siblings(cpu).map(|other| self.socket_or_node(other));
        let cut = |cpu: &CpuId| of_core(*cpu).any(|node| node != self.socket_or_node(*cpu));
        match self.cpu_ids().filter(|_| !self.nodes.is_empty()).find(cut) {
            None => Ok(()),
            Some(cpu) => {
                let problem = format!("threads of the core of {cpu} are in several memory nodes");
                Err(flaw(problem, "give all threads of a core the same node"))
            }
        }
    }

    /// A shared cache is inside one node (or socket, where no nodes are listed), or has whole ones.
    fn check_caches_in_nodes(&self) -> Result<(), Flaw> {
        let nodes = self.cpu_ids().map(|cpu| self.socket_or_node(cpu));
        let nodes: Vec<u16> = nodes.collect();
        let mut caches = self.caches.iter();
        let Some(cache) = caches.find(|cache| cuts_parts(&cache.cpus, &nodes)) else {
            return Ok(());
        };
        let (key, part) = match self.nodes.is_empty() {
            true => ("topology.sockets", "sockets"),
            false => ("topology.nodes", "memory nodes"),
        };
        let problem = format!(
            "the level-{} cache of {} has parts of several {part}",
            cache.level, cache.cpus[0]
        );
        let help = "put all CPUs of a shared cache into one, or all CPUs of each into one cache";
        Err(Flaw::new(key, problem, help))
    }

    /// Distances are those of ACPI's SLIT.
    fn check_distances(&self) -> Result<(), Flaw> {
        let (rows, nodes) = (&self.node_distances, self.nodes());
        let flaw = |problem: String, help: &str| {
            let help = help.to_owned();
            Flaw::new("topology.distances", problem, help)
        };
        let is_square = rows.len() == nodes && rows.iter().all(|row| row.len() == nodes);
        demand(rows.is_empty() || is_square, || {
            let problem = format!("these are not the distances of {nodes} memory nodes");
            flaw(
                problem,
                "give a list for each node, with its distance from each; each socket of \
                           a machine with a directory is a node, unless `nodes` lists others",
            )
        })?;
        match unsound_distance(rows) {
            None => Ok(()),
            Some((problem, help)) => Err(flaw(problem, help)),
        }
    }

    fn check_places(&self) -> Result<(), Flaw> {
        demand((1..=MOST_CPUS).contains(&self.cpus.len()), || {
            let problem = format!("the machine has {} CPUs", self.cpus.len());
            Flaw::new(
                "topology",
                problem,
                format!("describe 1 to {MOST_CPUS} CPUs"),
            )
        })?;
        self.check_numbers("sockets", |place| place.socket)?;
        self.check_numbers("last-level caches", |place| place.llc)?;
        self.check_numbers("cores", |place| place.core)
    }

    fn check_numbers(&self, name: &str, part: impl Fn(&CpuPlace) -> u16) -> Result<(), Flaw> {
        let mut numbers: Vec<u16> = self.cpus.iter().map(part).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let dense = numbers
            .last()
            .is_some_and(|last| numbers.len() == usize::from(*last) + 1);
        demand(dense, || {
            let problem = format!("the numbers of the {name} have gaps");
            Flaw::new("topology", problem, "count them from 0 without a gap")
        })
    }

    fn check_lines_and_order(&self) -> Result<(), Flaw> {
        for pair in self.caches.windows(2) {
            let key = |field| cache_key(&pair[1], field);
            demand(pair[0].line == pair[1].line, || {
                let problem = format!("lines of {} beside lines of {}", pair[1].line, pair[0].line);
                Flaw::new(
                    key("line"),
                    problem,
                    "give every cache of the machine the same line size",
                )
            })?;
            let place = |cache: &CacheDescription| (cache.level, cache.cpus[0]);
            demand(place(&pair[0]) < place(&pair[1]), || {
                let problem = format!(
                    "{} has two level-{} caches, or the caches are out of order",
                    pair[1].cpus[0], pair[1].level
                );
                Flaw::new(
                    key("sharing"),
                    problem,
                    "list each once, by level and then by first CPU",
                )
            })?;
        }
        Ok(())
    }

    fn check_coherence(&self) -> Result<(), Flaw> {
        let times = self.coherence.times().into_iter();
        let mut times = times.filter_map(|(field, time)| Some((field, time?)));
        times.try_for_each(|(field, time)| check_time(&format!("coherence.{field}"), time))
    }

    fn check_memory(&self) -> Result<(), Flaw> {
        let memory = self.memory;
        check_time("memory.latency", memory.latency)?;
        let page_fits = memory.page.0.is_power_of_two()
            && (Bytes::from_kb(4)..=LARGEST_HUGE_PAGE).contains(&memory.page)
            && memory.page >= self.line();
        demand(page_fits, || {
            let problem = format!("{} is not a page size", memory.page);
            Flaw::new("memory.page", problem, "give a power of two such as 4KB")
        })?;
        let huge_fits = memory.huge_page.0.is_power_of_two()
            && (memory.page..=LARGEST_HUGE_PAGE).contains(&memory.huge_page);
        demand(huge_fits, || {
            let problem = format!("{} is not a huge page size", memory.huge_page);
            let help = "give a power of two from the page size to 1GB, such as 2MB";
            Flaw::new("memory.huge_page", problem, help)
        })?;
        let size_fits = (SMALLEST_MEMORY..=LARGEST_MEMORY).contains(&memory.size)
            && memory.size.0.is_multiple_of(memory.page.0);
        demand(size_fits, || {
            let problem = format!("{} of memory", memory.size);
            Flaw::new(
                "memory.size",
                problem,
                "give 1MB to 8192GB, a whole number of pages",
            )
        })?;
        self.check_tags()
    }

    /// Checks that every cache can distinguish all lines of memory.
    fn check_tags(&self) -> Result<(), Flaw> {
        let size = self.memory.size;
        self.caches.iter().try_for_each(|cache| {
            let farthest = farthest_memory(cache);
            demand(size <= farthest, || {
                let problem = format!(
                    "{size} of memory behind so small a level-{} cache: its tags of 30 bits \
                     distinguish {farthest}",
                    cache.level
                );
                let help = "give less memory, or that cache more sets";
                Flaw::new("memory.size", problem, help)
            })
        })
    }

    fn check_costs(&self) -> Result<(), Flaw> {
        let all = self.costs.iter().flat_map(|(kernel, costs)| {
            costs
                .iter()
                .map(move |(name, cost)| (format!("costs.{kernel}.{name}"), cost.cycles))
        });
        all.into_iter()
            .try_for_each(|(key, cycles)| check_cycles(&key, cycles))
    }
}

/// What is wrong with distances that are a square, and what helps.
pub(crate) fn unsound_distance(rows: &[Vec<u16>]) -> Option<(String, &'static str)> {
    let pairs = rows.iter().enumerate().flat_map(|(from, row)| {
        let to = row.iter().enumerate();
        to.map(move |(to, distance)| (from, to, *distance))
    });
    pairs.into_iter().find_map(|(from, to, distance)| {
        let range = match from == to {
            true => LOCAL_DISTANCE..=LOCAL_DISTANCE,
            false => LOCAL_DISTANCE + 1..=FARTHEST,
        };
        let problem = format!("node {to} is {distance} from node {from}");
        if !range.contains(&distance) {
            return Some((
                problem,
                "give 10 for a node itself, and 11 to 254 for others",
            ));
        }
        let back = rows[to][from] != distance;
        back.then(|| {
            (
                problem + ", but not back",
                "give the same distance both ways",
            )
        })
    })
}

fn check_cycles(key: &str, cycles: Cycles) -> Result<(), Flaw> {
    demand(cycles <= MOST_CYCLES, || {
        let problem = format!("{} cycles are absurd", cycles.0);
        Flaw::new(key, problem, format!("give at most {}", MOST_CYCLES.0))
    })
}

fn check_time(key: &str, time: Duration) -> Result<(), Flaw> {
    demand(time <= LONGEST_LATENCY, || {
        Flaw::new(
            key,
            format!("{time} is absurd for hardware"),
            "give at most a millisecond",
        )
    })
}
