//! Reads the topology of this machine from /sys.
//!
//! Purpose: to describe a running Linux machine as [`MachineDescription`]. Key decision: the root
//! of the file system is a parameter, so that tests feed recorded trees. /sys has shapes, no
//! times: latencies are assumed, as `sources` says, until [`set_latencies`] puts measured ones in
//! their place. This crate measures nothing.

mod cpus;
mod error;
mod latencies;
mod replacement;
mod tree;

use std::collections::BTreeSet;
use std::path::Path;

use warmq_machine::{MachineDescription, Observed, costs_taken_from};
use warmq_units::{Bytes, CpuId, Hertz, thousandths};

pub use error::HostError;
pub use latencies::{Latencies, set_latencies};
use tree::Tree;

const SMALL_CORES: &str = "sys/devices/cpu_atom";
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
    let observed = Observed {
        name: "host".to_owned(),
        title: title(tree, online.len()),
        seen_by: "/sys and /proc of the machine".to_owned(),
        clock: clock(tree, online[0])?,
        cpus: cpus::places(tree, &online)?,
        caches: cpus::caches(tree, &online)?,
        memory: memory(tree)?,
        page,
        huge_page,
        left_out: left_out(tree, &online)?,
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

/// The clock: what cpufreq calls the base or else the highest frequency, or else what
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

/// What the models lack of this machine: CPUs of unlike speed. Arm's kernels give each CPU a
/// capacity (topology_normalize_cpu_scale()), and the drivers of performance counters on hybrid
/// Intel processors show which CPUs are small cores.
fn left_out(tree: Tree<'_>, online: &[CpuId]) -> Result<Vec<String>, HostError> {
    let capacity =
        |cpu: &CpuId| tree.optional_number(&format!("{}/cpu{}/cpu_capacity", cpus::CPUS, cpu.0));
    let capacities = online.iter().map(capacity);
    let capacities = capacities.collect::<Result<BTreeSet<_>, _>>()?;
    let unlike = capacities.len() > 1 || tree.has(SMALL_CORES);
    let what = "The CPUs of this machine are of unlike speed, and are modelled as equally fast.";
    Ok(unlike.then(|| what.to_owned()).into_iter().collect())
}
