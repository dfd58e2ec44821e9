//! Which CPUs share a core and a last-level cache, out of what recordings say of machines.

/// A cache, and the CPUs that share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CacheOf {
    /// Its level.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// The CPUs.
    pub cpus: Vec<u16>,
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
pub(crate) fn places(cores: &[(u32, u32)], caches: &[CacheOf]) -> Vec<(u16, u16)> {
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
