//! What recordings say of machines: cores, caches, memory nodes.

use warmq_machine::{Observed, ObservedCache, ObservedCpu, ObservedNodes, ObservedWays};
use warmq_trace::Header;
use warmq_units::{Bytes, CpuId};

/// What a recording says of a machine, as far as it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The processor's name.
    pub processor: String,
    /// The core of each CPU in its socket, and the socket.
    pub cores: Vec<(u32, u32)>,
    /// The caches.
    pub caches: Vec<CacheOf>,
    /// The memory nodes, and the CPUs of each.
    pub nodes: Vec<(u32, Vec<u16>)>,
    /// Physical memory.
    pub memory: Option<Bytes>,
}

impl Seen {
    /// Puts it into a header.
    pub fn put_into(&self, header: &mut Header) {
        header.machine.clone_from(&self.processor);
        header.places = places(&self.cores, &self.caches);
        header.nodes = self.nodes_of_cpus().unwrap_or_default();
        header.hardware = self.hardware().unwrap_or_default();
    }

    fn node(&self, cpu: u16) -> Option<u64> {
        let mut nodes = self.nodes.iter();
        let node = nodes.find(|(_, cpus)| cpus.contains(&cpu));
        node.map(|(node, _)| u64::from(*node))
    }

    /// The node of each CPU; none if that of some CPU is unknown.
    fn nodes_of_cpus(&self) -> Option<Vec<u16>> {
        let node = |(cpu, _)| u16::try_from(self.node(cpu)?).ok();
        (0..).zip(&self.cores).map(node).collect()
    }

    /// The machine as a file of WarmQ, if it is known well enough: the CPUs and a cache with its
    /// size. Times are assumed, and so is what else was not said.
    fn hardware(&self) -> Option<Vec<String>> {
        let cpus = self.cores.len();
        let cpu_of = |(core, socket): &(u32, u32)| ObservedCpu {
            socket: (*socket).into(),
            core: (*core).into(),
        };
        let caches = self
            .caches
            .iter()
            .filter(|cache| cache.kind != "Instruction");
        let observed = Observed {
            name: "recorded".to_owned(),
            title: format!("{cpus} CPUs, {}", self.processor),
            seen_by: "the recording".to_owned(),
            cpus: self.cores.iter().map(cpu_of).collect(),
            caches: caches
                .map(|cache| cache.observed(cpus))
                .collect::<Option<_>>()?,
            nodes: ObservedNodes {
                of_cpus: (0..).take(cpus).map(|cpu| self.node(cpu)).collect(),
                ..ObservedNodes::default()
            },
            memory: self.memory,
            ..Observed::default()
        };
        let machine = observed.describe().ok()?;
        Some(machine.to_toml().lines().map(str::to_owned).collect())
    }
}

/// A cache, and the CPUs that share it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheOf {
    /// Its level.
    pub level: u32,
    /// Capacity; 0 if it was not said.
    pub size: u64,
    /// Ways; 0 if they were not said.
    pub ways: u32,
    /// A line in bytes; 0 if it was not said.
    pub line: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// The CPUs.
    pub cpus: Vec<u16>,
}

impl CacheOf {
    /// As the models of machines have it; none if its size was not said, or CPUs share it that the
    /// recording does not have.
    fn observed(&self, cpus: usize) -> Option<ObservedCache> {
        let known = |number: u32| Some(number).filter(|number| *number > 0);
        let own = self.cpus.iter().all(|cpu| usize::from(*cpu) < cpus);
        (self.size > 0 && own).then(|| ObservedCache {
            level: u8::try_from(self.level).unwrap_or(u8::MAX),
            size: Bytes(self.size),
            ways: known(self.ways).map_or(ObservedWays::Unknown, ObservedWays::Ways),
            line: known(self.line).map(|line| Bytes(line.into())),
            inclusive: None,
            cpus: self.cpus.iter().copied().map(CpuId).collect(),
        })
    }
}

/// `1024K`, `32M`: how kernels write sizes of caches.
pub(crate) fn size_of(text: &str) -> Option<u64> {
    let number = text.trim_end_matches(|unit: char| !unit.is_ascii_digit());
    let shift = match &text[number.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// No machine has more CPUs here.
const MOST_CPUS: u16 = 8192;

/// The CPUs of a list as `0-3,8`; those that cannot be are left out.
pub(crate) fn cpus_of(list: &str) -> Vec<u16> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim()
                .parse::<u16>()
                .ok()
                .filter(|cpu| *cpu < MOST_CPUS)
        };
        Some(number(first)?..=number(last)?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The core and the last-level cache of each CPU, numbered from 0; nothing if either is unknown.
/// `cores` has the core of each CPU in its socket, and the socket.
fn places(cores: &[(u32, u32)], caches: &[CacheOf]) -> Vec<(u16, u16)> {
    let last = caches.iter().map(|cache| cache.level).max();
    let data = caches.iter().filter(|cache| cache.kind != "Instruction");
    let last: Vec<&CacheOf> = data.filter(|cache| Some(cache.level) == last).collect();
    let mut numbers: Vec<(u32, u32)> = cores.to_vec();
    numbers.sort_unstable_by_key(|(core, socket)| (*socket, *core));
    numbers.dedup();
    let place = |(cpu, core): (u16, &(u32, u32))| {
        let core = numbers.iter().position(|known| known == core)?;
        let cache = last.iter().position(|cache| cache.cpus.contains(&cpu))?;
        Some((core as u16, cache as u16))
    };
    let all: Option<Vec<(u16, u16)>> = (0..).zip(cores).map(place).collect();
    all.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_machine::read_toml;

    fn cache(level: u32, size: u64, cpus: &str) -> CacheOf {
        CacheOf {
            level,
            size,
            kind: "Unified".to_owned(),
            cpus: cpus_of(cpus),
            ..CacheOf::default()
        }
    }

    /// Two sockets of two cores, each with a node.
    fn seen() -> Seen {
        let mut caches: Vec<CacheOf> = (0..4)
            .map(|cpu| cache(2, 1 << 20, &cpu.to_string()))
            .collect();
        caches.extend([cache(3, 32 << 20, "0-1"), cache(3, 32 << 20, "2-3")]);
        Seen {
            processor: "a processor".to_owned(),
            cores: vec![(0, 0), (1, 0), (0, 1), (1, 1)],
            caches,
            nodes: vec![(0, cpus_of("0-1")), (1, cpus_of("2-3"))],
            memory: Some(Bytes::from_mb(4096)),
        }
    }

    fn header(seen: &Seen) -> Header {
        let mut header = Header::default();
        seen.put_into(&mut header);
        header
    }

    #[test]
    fn a_machine_is_described_as_its_file_would_be() {
        let header = header(&seen());
        let machine = read_toml("recorded", &header.hardware.join("\n")).expect("a machine");
        let llcs: Vec<u16> = machine.cpus.iter().map(|cpu| cpu.llc).collect();
        assert_eq!(llcs, [0, 0, 1, 1]);
        let largest = machine.caches.iter().map(|cache| cache.size).max();
        assert_eq!(largest, Some(Bytes(32 << 20)));
        assert!(machine.title.contains("a processor"), "{}", machine.title);
        assert_eq!(header.places, [(0, 0), (1, 0), (2, 1), (3, 1)]);
        assert_eq!(header.nodes, [0, 0, 1, 1]);
    }

    #[test]
    fn what_is_not_known_well_enough_is_not_described() {
        let without_size = |mut seen: Seen| {
            seen.caches[0].size = 0;
            seen
        };
        let of_other_cpus = |mut seen: Seen| {
            seen.caches[4].cpus = cpus_of("0-9");
            seen
        };
        let without_caches = |seen: Seen| Seen {
            caches: Vec::new(),
            ..seen
        };
        for seen in [
            without_size(seen()),
            of_other_cpus(seen()),
            without_caches(seen()),
            Seen::default(),
        ] {
            assert!(header(&seen).hardware.is_empty(), "{seen:?}");
        }
    }

    #[test]
    fn sizes_are_as_kernels_write_them() {
        assert_eq!(size_of("512K"), Some(512 << 10));
        assert_eq!(size_of("32M"), Some(32 << 20));
        assert_eq!(size_of("64"), Some(64));
        for wrong in ["", "K", "12X", "-1K", "99999999999999999999G"] {
            assert_eq!(size_of(wrong), None, "{wrong}");
        }
    }
}
