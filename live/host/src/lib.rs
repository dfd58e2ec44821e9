//! Reads the topology of this machine from /sys.
//!
//! Purpose: to describe a running Linux machine as [`MachineDescription`]. Key decision: the root
//! of the file system is a parameter, so that tests feed recorded trees. /sys has shapes, no
//! times: latencies are assumed, as `sources` says, until [`set_latencies`] puts measured ones in
//! their place. This crate measures nothing.

// Elsewhere it is empty, so that the command, which needs it, can say so.
#![cfg(target_os = "linux")]

mod cpus;
mod error;
mod latencies;
mod replacement;
mod tree;

use std::path::Path;

use warmq_machine::{
    MachineDescription, Observed, ObservedNodes, ObservedSpeeds, costs_taken_from,
};
use warmq_units::{Bytes, CpuId, Hertz, thousandths};

pub use error::HostError;
pub use latencies::{Latencies, set_latencies};
use tree::Tree;

const SMALL_CORES: &str = "sys/devices/cpu_atom";
const NODES: &str = "sys/devices/system/node";
const CPUINFO: &str = "proc/cpuinfo";
/// The machine whose costs are those of a virtual one: to it, interrupts and timers are calls of a
/// hypervisor.
const VIRTUAL: &str = "epyc-vm";

/// Describes the machine whose file system starts at `root` (`/` for this one). CPUs that are
/// offline are left out, and the others numbered from 0 in their order; see [`online`]. Of costs,
/// it has only those of a virtual machine, if it is one.
///
/// # Errors
/// A file that is missing or holds something unexpected, or a machine that
/// [`MachineDescription::check`] refuses.
pub fn read(root: &Path) -> Result<MachineDescription, HostError> {
    let tree = Tree::new(root);
    let online = cpus::online(tree)?;
    let (page, huge_page) = page_sizes(tree)?;
    let speeds = speeds(tree, &online)?;
    let observed = Observed {
        name: "host".to_owned(),
        title: title(tree, online.len()),
        seen_by: "/sys and /proc of the machine".to_owned(),
        clock: clock(tree, online[speeds.fastest()])?,
        cpus: cpus::places(tree, &online)?,
        caches: cpus::caches(tree, &online)?,
        memory: memory(tree)?,
        page,
        huge_page,
        nodes: nodes(tree, &online)?,
        left_out: left_out(tree, &speeds),
        speeds,
    };
    let mut machine = observed.describe().map_err(|flaw| HostError {
        path: root.join(cpus::CPUS),
        problem: flaw.to_string(),
        fix: "describe this machine in TOML instead".to_owned(),
    })?;
    replacement::set_known(tree, &mut machine);
    if is_virtual(tree) {
        machine.costs = costs_taken_from(VIRTUAL);
    }
    Ok(machine)
}

/// The numbers that the system gives the CPUs that are online: entry i is CPU i of [`read`].
///
/// # Errors
/// The list of CPUs is missing or no list.
pub fn online(root: &Path) -> Result<Vec<CpuId>, HostError> {
    cpus::online(Tree::new(root))
}

/// Whether a hypervisor says so of itself, in a bit of CPUID that processors leave zero.
fn is_virtual(tree: Tree<'_>) -> bool {
    let flags = tree.field(CPUINFO, "flags");
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The clock: what cpufreq calls the base or else the highest frequency of `cpu`, or else what
/// /proc/cpuinfo says of the first CPU. A virtual machine often has the latter only.
fn clock(tree: Tree<'_>, cpu: CpuId) -> Result<Option<Hertz>, HostError> {
    for file in ["base_frequency", "cpuinfo_max_freq"] {
        let path = format!("{}/cpu{}/cpufreq/{file}", cpus::CPUS, cpu.0);
        if let Some(khz) = tree.optional_number(&path)?.filter(|khz| *khz > 0) {
            return Ok(Some(Hertz::from_khz(khz)));
        }
    }
    let mhz = tree.field(CPUINFO, "cpu MHz");
    Ok(mhz
        .and_then(|mhz| thousandths(&mhz))
        .filter(|khz| *khz > 0)
        .map(Hertz::from_khz))
}

fn title(tree: Tree<'_>, cpus: usize) -> String {
    let model = tree
        .field(CPUINFO, "model name")
        .unwrap_or_else(|| "an unnamed model".to_owned());
    format!("this machine: {cpus} CPUs, {model}")
}

/// Physical memory in whole megabytes.
fn memory(tree: Tree<'_>) -> Result<Option<Bytes>, HostError> {
    let Some(text) = tree.field("proc/meminfo", "MemTotal") else {
        return Ok(None);
    };
    let kilobytes: Option<u64> = text
        .strip_suffix(" kB")
        .and_then(|kb| kb.trim().parse().ok());
    let kilobytes = kilobytes.ok_or_else(|| {
        tree.error(
            "proc/meminfo",
            format!("MemTotal is `{text}`, no number of kB"),
        )
    })?;
    Ok(Some(Bytes::from_mb(kilobytes >> 10)).filter(|memory| memory.0 > 0))
}

/// Page and huge page. /sys names only the latter, a page full of entries of 8 bytes: it follows
/// from the page, and the page from it.
fn page_sizes(tree: Tree<'_>) -> Result<(Option<Bytes>, Option<Bytes>), HostError> {
    let path = "sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    let Some(huge_page) = tree.optional_number(path)? else {
        return Ok((None, None));
    };
    let page = (12..=20)
        .map(|shift| 1_u64 << shift)
        .find(|page| page * page / 8 == huge_page);
    let page = page.ok_or_else(|| {
        tree.error(
            path,
            format!("{huge_page} is the huge page of no page size"),
        )
    })?;
    Ok((Some(Bytes(page)), Some(Bytes(huge_page))))
}

/// How fast the CPUs work. Kernels of Arm, and of hybrid processors without SMT, give each CPU a
/// capacity (`topology_normalize_cpu_scale()`, `hybrid_init_cpu_capacity_scaling()`). Others say
/// how high each goes, which counts where the drivers of performance counters show that some are
/// small cores: elsewhere, that is of no use to a kernel without its own driver.
fn speeds(tree: Tree<'_>, online: &[CpuId]) -> Result<ObservedSpeeds, HostError> {
    let of_each = |file: &str| {
        let number =
            |cpu: &CpuId| tree.optional_number(&format!("{}/cpu{}/{file}", cpus::CPUS, cpu.0));
        let numbers: Result<Vec<Option<u64>>, HostError> = online.iter().map(number).collect();
        numbers
    };
    let capacities = of_each("cpu_capacity")?;
    let mhz = match tree.has(SMALL_CORES) {
        true => of_each("cpufreq/cpuinfo_max_freq")?,
        false => Vec::new(),
    };
    let mhz = mhz.into_iter().map(|khz| khz.map(|khz| khz / 1_000));
    Ok(ObservedSpeeds::of(capacities, mhz.collect()))
}

/// The memory nodes of the CPUs, where the kernel knows some.
fn nodes(tree: Tree<'_>, online: &[CpuId]) -> Result<ObservedNodes, HostError> {
    if !tree.has(&format!("{NODES}/online")) {
        return Ok(ObservedNodes::default());
    }
    let numbers: Vec<CpuId> = tree.list(&format!("{NODES}/online"))?.iter().collect();
    let mut nodes = ObservedNodes {
        of_cpus: vec![None; online.len()],
        ..ObservedNodes::default()
    };
    for node in &numbers {
        let cpus = tree.list(&format!("{NODES}/node{}/cpulist", node.0))?;
        let known = nodes.of_cpus.iter_mut().zip(online);
        for (known, _) in known.filter(|(_, cpu)| cpus.contains(**cpu)) {
            *known = Some(node.0.into());
        }
        let distances = tree.optional(&format!("{NODES}/node{}/distance", node.0))?;
        let distances = distances.unwrap_or_default();
        let distances = distances.split_whitespace().map(str::parse);
        for (to, distance) in numbers.iter().zip(distances) {
            if let Ok(distance) = distance {
                let pair = (node.0.into(), to.0.into());
                nodes.distances.insert(pair, distance);
            }
        }
    }
    Ok(nodes)
}

/// What the models lack of this machine: which CPUs are small cores, where the system does not say
/// how slow these are.
fn left_out(tree: Tree<'_>, speeds: &ObservedSpeeds) -> Vec<String> {
    let unlike = *speeds == ObservedSpeeds::Alike && tree.has(SMALL_CORES);
    let what = "The CPUs of this machine are of unlike speed, and are modelled as equally fast.";
    unlike.then(|| what.to_owned()).into_iter().collect()
}
