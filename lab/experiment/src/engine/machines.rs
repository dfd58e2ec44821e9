//! Machines by name, by path or as the host, and their settings.

use std::collections::BTreeMap;
use std::path::Path;

use warmq_config::{Chosen, Setting, settings};
use warmq_machine::{
    CARD_MODELS, CardModel, MachineDescription, Overrides, PLAIN, builtin, builtin_names,
    costs_taken_from, read_hwloc, read_toml,
};
use warmq_units::Bytes;

use super::CostTable;
use crate::simulator::PartError;

/// The machine whose kernel costs are used for machines that give none.
const STAND_IN: &str = "epyc-12llc";

pub(super) fn names(with_host: bool) -> Vec<&'static str> {
    builtin_names().chain(with_host.then_some("host")).collect()
}

pub(super) fn find(
    name: &str,
    host: Option<&MachineDescription>,
) -> Result<MachineDescription, PartError> {
    if name == "host" {
        let unasked = || PartError::Broken("this host was not described".to_owned());
        return host.cloned().ok_or_else(unasked);
    }
    if let Some(text) = builtin(name) {
        return read_toml(name, text).map_err(PartError::Problems);
    }
    let read = match Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str())
    {
        Some("toml") => read_toml,
        Some("xml") => read_hwloc,
        _ => return Err(PartError::Unknown),
    };
    let text = warmq_config::read_text(name)
        .map_err(|error| PartError::Broken(format!("{name}: cannot read it: {error}")))?;
    read(name, &text).map_err(PartError::Problems)
}

/// The settings of `machine`.
pub(super) fn settings(machine: &MachineDescription) -> Vec<Setting> {
    let cpus = machine.cpus.len() as i64;
    let mut settings = settings! {
        "cpus", count((1, cpus), cpus, "CPUs"),
            "number of CPUs used, counted from cpu0",
            "the machine's description";
    };
    for (level, size) in level_sizes(machine) {
        let bounds = (Bytes(1), Bytes(1 << 36));
        settings.push(Setting::bytes(&format!("l{level}"), bounds, size).says(
            &format!("size of each level-{level} cache; ways, line and latency stay"),
            "the machine's description",
        ));
    }
    settings.extend(settings! {
        "page_cluster", count((1, 1_024), 8, "blocks"),
            "mean size of a cluster of free memory, in blocks of 8 KB",
            "coloring paper, note on table 2";
        "memory_used", count((0, 90), 40, "%"),
            "share of memory that is permanently in use",
            "assumed";
        "card", choice(&cards(machine)),
            "the model of the network card; `plain`: none, it interrupts when a packet finds it idle",
            "the machine's description";
        "caches", flag(true),
            "whether accesses go through the caches; without them, accesses are free",
            "ours";
        "page_offsets", flag(false),
            "count bus transactions by page offset, as GATES does; slower",
            "ours";
        "classify_misses", flag(false),
            "count cold, conflict, capacity and coherence misses separately; slower",
            "ours";
    });
    settings
}

/// What the network card can be, that of `machine` first.
fn cards(machine: &MachineDescription) -> Vec<&'static str> {
    let own = machine.card.map_or(PLAIN, |card| card.name);
    let all = std::iter::once(PLAIN).chain(CARD_MODELS.iter().map(|model| model.name));
    std::iter::once(own)
        .chain(all.filter(|name| *name != own))
        .collect()
}

fn level_sizes(machine: &MachineDescription) -> Vec<(u8, Bytes)> {
    let mut sizes: Vec<(u8, Bytes)> = Vec::new();
    for cache in &machine.caches {
        if sizes.iter().all(|(level, _)| *level != cache.level) {
            sizes.push((cache.level, cache.size));
        }
    }
    sizes
}

/// `machine` with the chosen settings; an error says what is wrong and how to fix it.
pub(super) fn set(
    machine: &MachineDescription,
    chosen: &Chosen,
) -> Result<MachineDescription, String> {
    let cpus = chosen.count("cpus") as u16;
    let mut overrides = Overrides::default();
    if usize::from(cpus) != machine.cpus.len() {
        overrides = overrides.first_cpus(cpus);
    }
    for (level, size) in level_sizes(machine) {
        let wanted = chosen.bytes(&format!("l{level}"));
        if wanted != size {
            overrides = overrides.cache(level, wanted);
        }
    }
    let machine = machine
        .with_overrides(&overrides)
        .map_err(|flaw| flaw.to_string())?;
    Ok(MachineDescription {
        card: CardModel::named(chosen.choice("card")).copied(),
        ..machine
    })
}

/// The kernel whose costs stand for those of one that a machine does not describe: the only one
/// that machines had before 2.6 was measured on any.
const OLDEST: &str = "linux-2.4";

/// The costs of `kernel` on `machine`, or else those of Linux 2.4 there. A machine that has neither
/// gets the same of [`STAND_IN`].
pub(super) fn costs(machine: &MachineDescription, kernel: &str) -> CostTable {
    let of = |costs: &BTreeMap<String, CostTable>| {
        costs.get(kernel).or_else(|| costs.get(OLDEST)).cloned()
    };
    let stand_in = || of(&costs_taken_from(STAND_IN));
    of(&machine.costs).or_else(stand_in).unwrap_or_default()
}
