//! CPUs and caches from /sys/devices/system/cpu.

use std::collections::BTreeMap;

use warmq_machine::{MOST_CPUS, ObservedCache, ObservedCpu, ObservedWays};
use warmq_units::{Bytes, CpuId};

use crate::error::HostError;
use crate::tree::Tree;

/// The folder of the CPUs, under the root.
pub const CPUS: &str = "sys/devices/system/cpu";
const MOST_CACHES_OF_A_CPU: u32 = 16;

/// The CPUs that are online, by the system's numbers, ascending; at least one.
pub fn online(tree: Tree<'_>) -> Result<Vec<CpuId>, HostError> {
    let path = format!("{CPUS}/online");
    let online = tree.list(&path)?;
    if online.is_empty() || online.len() > MOST_CPUS {
        return Err(tree.error(&path, format!("it names {} CPUs", online.len())));
    }
    Ok(online.iter().collect())
}

/// The threads of the core of `cpu`, itself among them, ascending.
pub fn siblings(tree: Tree<'_>, cpu: CpuId) -> Result<Vec<CpuId>, HostError> {
    let threads = tree.list(&format!(
        "{CPUS}/cpu{}/topology/thread_siblings_list",
        cpu.0
    ))?;
    Ok(threads.iter().collect())
}

/// Socket and core of each CPU that is online. A core is named by the first of its threads; a
/// socket that the system does not know (-1 on some machines) is socket 0.
pub fn places(tree: Tree<'_>, online: &[CpuId]) -> Result<Vec<ObservedCpu>, HostError> {
    let place = |cpu: &CpuId| {
        let topology = format!("{CPUS}/cpu{}/topology", cpu.0);
        let socket = tree.text(&format!("{topology}/physical_package_id"))?;
        let first = siblings(tree, *cpu)?.first().copied().unwrap_or(*cpu);
        Ok(ObservedCpu {
            socket: socket.parse().unwrap_or(0),
            core: first.0.into(),
        })
    };
    online.iter().map(place).collect()
}

/// The data and unified caches of the CPUs that are online, each once.
pub fn caches(tree: Tree<'_>, online: &[CpuId]) -> Result<Vec<ObservedCache>, HostError> {
    let mut caches = BTreeMap::new();
    for cpu in online {
        let folder = format!("{CPUS}/cpu{}/cache", cpu.0);
        let indices = (0..MOST_CACHES_OF_A_CPU).map(|index| format!("{folder}/index{index}"));
        let mut found = false;
        for index in indices.filter(|index| tree.has(index)) {
            found = true;
            if tree.text(&format!("{index}/type"))? != "Instruction" {
                let cache = cache(tree, &index, online)?;
                caches.insert((cache.level, cache.cpus.clone()), cache);
            }
        }
        if !found {
            let problem = "the kernel shows no caches here, as in some virtual machines";
            return Err(tree.error(&folder, problem));
        }
    }
    Ok(caches.into_values().collect())
}

fn cache(tree: Tree<'_>, folder: &str, online: &[CpuId]) -> Result<ObservedCache, HostError> {
    let file = |name: &str| format!("{folder}/{name}");
    let number = |name: &str| tree.optional_number(&file(name));
    let level = number("level")?.and_then(|level| u8::try_from(level).ok());
    let level =
        level.ok_or_else(|| tree.error(&file("level"), "the level is missing or absurd"))?;
    let size = tree.text(&file("size"))?;
    let size: Bytes = format!("{size}B")
        .parse()
        .map_err(|_| tree.error(&file("size"), format!("`{size}` is not a size")))?;
    let ways = match number("ways_of_associativity")? {
        None | Some(0) => ObservedWays::Unknown,
        Some(ways) => ObservedWays::Ways(u32::try_from(ways).unwrap_or(u32::MAX)),
    };
    let line = number("coherency_line_size")?
        .filter(|line| *line > 0)
        .map(Bytes);
    let shared = tree.list(&file("shared_cpu_list"))?;
    let position = |cpu| {
        online
            .binary_search(&cpu)
            .ok()
            .map(|index| CpuId(index as u16))
    };
    let cpus = shared.iter().filter_map(position).collect();
    Ok(ObservedCache {
        level,
        size,
        ways,
        line,
        inclusive: None,
        cpus,
    })
}
