//! Machines from TOML.
//!
//! The format is shown by the files in `machines/`. A machine has the tables `[cpu]`, `[topology]`
//! (with `numbers`, if CPUs are numbered otherwise than on x86; or with `cores`, which lists the
//! core of each CPU, and perhaps `llcs` and `sockets`), `[[cache]]` (one a level, or several for
//! some `cpus` each),
//! `[coherence]`, `[memory]`, perhaps `[network]`, and any number of `[[steal]]` and
//! `[costs."KERNEL"]`. Each carries a `source`: where its numbers come from. With `like = "p4"`
//! what it leaves out is as in that machine, table by table.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Document, Fields, Item, NodeKind, Problems};
use warmq_units::{Bytes, Cycles, Duration, Hertz, thousandths};

use crate::card::{CARD_MODELS, CardModel};
use crate::check::{MOST_CPUS, NOT_SLOWED_DOWN};
use crate::description::{Coherence, Cost, CpuPlace, MachineDescription, MemoryDescription, Steal};
use crate::shipped::{builtin, builtin_names};
use crate::toml_blame::blame;
use crate::toml_caches::{caches, read_levels};
use crate::topology::{Layout, number_without_gaps};

/// The source of a number that was given without one.
pub const NOT_GIVEN: &str = "not given";
const SMT_SPEED: &str = "smt_speed_permille";

/// Where the numbers of each group come from.
pub type Sources = BTreeMap<String, String>;

/// Reads a machine from TOML; `file` is its name in errors.
///
/// # Errors
/// Text that is not TOML, keys that are missing, unknown or of the wrong type, or a machine that
/// [`MachineDescription::check`] rejects. Each problem names the key, the place and the fix.
///
/// ```
/// let text = "name = \"my\"\ntitel = \"mine\"";
/// let problems = warmq_machine::read_toml("my.toml", text).unwrap_err();
/// assert_eq!(
///     problems.list.last().unwrap().to_string(),
///     "my.toml:2: `titel`: unknown key; did you mean `title`?"
/// );
/// ```
pub fn read_toml(file: &str, text: &str) -> Result<MachineDescription, Problems> {
    document(file, text)?.read(|root| {
        check_like(root)?;
        let machine = read_machine(root);
        root.finish();
        let machine = machine.filter(|_| root.problems() == 0)?;
        if let Err(flaw) = machine.check().and_then(|()| machine.check_fastest()) {
            blame(root, flaw);
        }
        Some(machine)
    })
}

/// The text, with what it leaves out as in the machine that it names by `like`.
fn document(file: &str, text: &str) -> Result<Document, Problems> {
    let mut document = Document::parse(file, text)?;
    let like = document.text("like").unwrap_or_default().to_owned();
    if let Some(text) = builtin(&like) {
        document.take_tables(self::document(&format!("{like}.toml"), text)?);
    }
    Ok(document)
}

/// Nothing if no machine comes with WarmQ that is called what `like` says.
fn check_like(root: &Fields<'_>) -> Option<()> {
    let Some(item) = root.item("like") else {
        return Some(());
    };
    let name = item.text()?;
    if builtin(&name).is_none() {
        let what = format!("no machine `{name}` comes with WarmQ");
        item.unknown(what, &name, builtin_names());
        return None;
    }
    Some(())
}

fn read_machine(root: &Fields<'_>) -> Option<MachineDescription> {
    let mut sources = Sources::new();
    let name = required(root, "name", "name = \"my-machine\"", Item::text);
    let title = root.line("title");
    let cpu = read_cpu(root, &mut sources);
    let layout = read_topology(root, &mut sources);
    let coherence = read_coherence(root, &mut sources);
    let memory = read_memory(root, &mut sources);
    let card = read_card(root, &mut sources);
    let steals = read_steals(root, &mut sources);
    let costs = read_costs(root);
    let count = layout.as_ref().map(|topology| topology.cpus.len());
    let levels = read_levels(root, count.unwrap_or(MOST_CPUS), &mut sources);
    let (topology, (clock, miss_overlap), name) = (layout?, cpu?, name?);
    let Topology {
        one_llc_per_socket,
        mut cpus,
        ..
    } = topology;
    let smt_speed = read_smt_speed(root, has_threads(&cpus));

    let caches = caches(&levels, &cpus);
    let whole = |all: &crate::CacheDescription| all.cpus.len() == cpus.len();
    if one_llc_per_socket && caches.last().is_some_and(whole) {
        // One outermost cache, also of several sockets, is one last-level domain.
        cpus.iter_mut().for_each(|place| place.llc = 0);
    }
    Some(MachineDescription {
        title: title.unwrap_or_else(|| name.clone()),
        name,
        clock,
        miss_overlap,
        smt_speed: smt_speed?,
        caches,
        cpus,
        priorities: topology.priorities,
        capacities: topology.capacities,
        nodes: topology.nodes,
        node_distances: topology.node_distances,
        coherence: coherence?,
        memory: memory?,
        card,
        steals,
        costs,
        sources,
        left_out: Vec::new(),
    })
}

/// The value of a required key, as `read` reads it; `example` shows how to write it.
pub fn required<'a, T>(
    fields: &Fields<'a>,
    key: &'static str,
    example: &str,
    read: impl FnOnce(&Item<'a>) -> Option<T>,
) -> Option<T> {
    read(&fields.required(key, &format!("add {example}"))?)
}

/// Notes the source of a group of numbers.
pub fn note_source(fields: &Fields<'_>, group: &str, sources: &mut Sources) {
    sources.insert(group.to_owned(), source_of(fields));
}

fn source_of(fields: &Fields<'_>) -> String {
    let Some(item) = fields.item("source") else {
        return NOT_GIVEN.to_owned();
    };
    let source = item.text().unwrap_or_default().trim().to_owned();
    if source.is_empty() {
        item.report(
            "the source is empty",
            "say who measured it, or leave the key out",
        );
    }
    source
}

fn read_cpu(root: &Fields<'_>, sources: &mut Sources) -> Option<(Hertz, u64)> {
    let cpu = required(root, "cpu", "a table [cpu]", Item::table)?;
    note_source(&cpu, "cpu", sources);
    let clock = required(&cpu, "clock", "clock = \"550MHz\"", clock);
    let overlap = cpu.or("miss_overlap", 1, Item::count);
    // Whether the key is allowed depends on the topology.
    cpu.know(&[SMT_SPEED]);
    cpu.finish();
    clock.zip(overlap)
}

/// The speed of a CPU beside a busy sibling; required for a machine whose cores have several CPUs.
fn read_smt_speed(root: &Fields<'_>, has_threads: bool) -> Option<u64> {
    let cpu = root.find("cpu")?.table()?;
    match (cpu.find(SMT_SPEED), has_threads) {
        (None, false) => return Some(NOT_SLOWED_DOWN),
        (Some(item), true) => return item.integer(0..=NOT_SLOWED_DOWN),
        (None, true) => cpu.report(
            format!("`{SMT_SPEED}` is missing, and the cores have several CPUs"),
            "add the speed of a CPU beside a busy sibling, in thousandths of its speed alone: \
             smt_speed_permille = 610",
        ),
        (Some(item), false) => item.report(
            "no core has two CPUs",
            "leave the key out, or give the topology threads_per_core = 2",
        ),
    }
    None
}

/// Whether some core has several CPUs.
fn has_threads(cpus: &[CpuPlace]) -> bool {
    let cores: BTreeSet<u16> = cpus.iter().map(|place| place.core).collect();
    cores.len() < cpus.len()
}

/// Reads `550MHz` or `2.4GHz`; rejects 0.
fn clock(item: &Item<'_>) -> Option<Hertz> {
    let text = item.text()?.trim().to_ascii_lowercase();
    let unit = [("ghz", 1_000_000), ("mhz", 1_000), ("khz", 1)]
        .into_iter()
        .find_map(|(unit, khz)| Some((text.strip_suffix(unit)?, khz)));
    let khz = unit.and_then(|(number, khz)| Some(thousandths(number)?.checked_mul(khz)? / 1_000));
    match khz {
        Some(khz) if khz > 0 => Some(Hertz::from_khz(khz)),
        _ => item.wrong("a clock such as \"550MHz\" or \"2.4GHz\""),
    }
}

/// The place of each CPU, in the order that `numbers` says: that of [`Layout::places`], siblings
/// side by side, or a list whose entry i is the number in [`Layout::places`] of what is CPU i here.
fn numbered(layout: &Layout, numbers: Option<Item<'_>>) -> Option<Vec<CpuPlace>> {
    let places = layout.places();
    let Some(numbers) = numbers else {
        return Some(places);
    };
    let order = match numbers.is_text("adjacent-siblings") {
        true => layout.adjacent_siblings(),
        false => listed(&numbers, places.len() as u64)?,
    };
    let mut places: Vec<CpuPlace> = order.into_iter().map(|at| places[at as usize]).collect();
    number_without_gaps(&mut places);
    Some(places)
}

fn listed(numbers: &Item<'_>, cpus: u64) -> Option<Vec<u64>> {
    let Some(last) = cpus.checked_sub(1) else {
        return Some(Vec::new());
    };
    let items = numbers.list()?;
    let listed: Option<Vec<u64>> = items.iter().map(|item| item.integer(0..=last)).collect();
    let listed = listed?;
    let all: BTreeSet<u64> = listed.iter().copied().collect();
    if all.len() as u64 != cpus || listed.len() as u64 != cpus {
        let help = format!("write each number from 0 to {last} once, or \"adjacent-siblings\"");
        numbers.report("a CPU is missing, or is there twice", help);
        return None;
    }
    Some(listed)
}

/// What the machine's sockets are like, and each CPU.
struct Topology {
    one_llc_per_socket: bool,
    cpus: Vec<CpuPlace>,
    priorities: Vec<u16>,
    capacities: Vec<u16>,
    nodes: Vec<u16>,
    node_distances: Vec<Vec<u16>>,
}

/// Numbers from 0 to 65,535.
fn numbers_of(item: &Item<'_>) -> Option<Vec<u16>> {
    let most = u64::from(u16::MAX);
    let items = some_of(item)?;
    let number = |item: &Item<'_>| Some(item.integer(0..=most)? as u16);
    items.iter().map(number).collect()
}

/// Lists of such numbers.
fn rows_of(item: &Item<'_>) -> Option<Vec<Vec<u16>>> {
    some_of(item)?.iter().map(numbers_of).collect()
}

/// The items of a list that is not empty.
pub fn some_of<'f>(item: &Item<'f>) -> Option<Vec<Item<'f>>> {
    let items = item.list()?;
    if items.is_empty() {
        item.report("nothing is listed", "leave the key out");
        return None;
    }
    Some(items)
}

fn read_topology(root: &Fields<'_>, sources: &mut Sources) -> Option<Topology> {
    let item = root.required("topology", "add a table [topology]")?;
    let topology = item.table()?;
    note_source(&topology, "topology", sources);
    let listed = topology
        .item("cores")
        .map(|cores| of_each(&topology, &cores));
    let places = match listed {
        Some(listed) => listed,
        None => regular(&topology, &item),
    };
    let of_cpus = |key| topology.or(key, Vec::new(), numbers_of);
    let (priorities, capacities) = (of_cpus("priorities"), of_cpus("capacities"));
    let nodes = of_cpus("nodes");
    let distances = topology.or("distances", Vec::new(), rows_of);
    topology.finish();
    let (cpus, one_llc_per_socket) = places?;
    Some(Topology {
        one_llc_per_socket,
        cpus,
        priorities: priorities?,
        capacities: capacities?,
        nodes: nodes?,
        node_distances: distances?,
    })
}

/// The place of each CPU of a machine whose sockets are all alike, and whether each has one
/// last-level cache.
fn regular(topology: &Fields<'_>, at: &Item<'_>) -> Option<(Vec<CpuPlace>, bool)> {
    let number = |key| topology.or(key, 1, |item| item.integer(1..=u64::MAX));
    let numbers = [
        number("sockets"),
        number("llcs_per_socket"),
        number("cores_per_llc"),
        number("threads_per_core"),
    ];
    let order = topology.item("numbers");
    let layout = Layout {
        sockets: numbers[0]?,
        llcs_per_socket: numbers[1]?,
        cores_per_llc: numbers[2]?,
        threads_per_core: numbers[3]?,
    };
    if layout.cpus().is_none_or(|cpus| cpus > MOST_CPUS as u64) {
        let help = format!("describe at most {MOST_CPUS} CPUs");
        at.report("there are too many CPUs", help);
        return None;
    }
    Some((numbered(&layout, order)?, layout.llcs_per_socket == 1))
}

/// The place of each CPU where the file lists them: the core of each, and its last-level cache and
/// socket, or else they have one.
fn of_each(topology: &Fields<'_>, cores: &Item<'_>) -> Option<(Vec<CpuPlace>, bool)> {
    for key in [
        "llcs_per_socket",
        "cores_per_llc",
        "threads_per_core",
        "numbers",
    ] {
        if let Some(item) = topology.item(key) {
            let help = "leave it out, or leave out `cores`";
            item.report("the core of each CPU is listed", help);
        }
    }
    let all = numbers_of(cores)?;
    let of = |key| match topology.item(key) {
        None => Some(vec![0; all.len()]),
        Some(item) => {
            let listed = numbers_of(&item)?;
            if listed.len() != all.len() {
                let what = format!("{} numbers for {} CPUs", listed.len(), all.len());
                item.report(what, "list that of each CPU, as `cores` does");
                return None;
            }
            Some(listed)
        }
    };
    let (llcs, sockets) = (of("llcs"), of("sockets"));
    let parts = all.iter().zip(llcs?).zip(sockets?);
    let place = |((core, llc), socket): ((&u16, u16), u16)| CpuPlace {
        socket,
        llc,
        core: *core,
    };
    Some((parts.map(place).collect(), false))
}

/// A latency in nanoseconds.
fn time(fields: &Fields<'_>, key: &'static str) -> Option<Duration> {
    let example = format!("{key} = 37.5");
    required(fields, key, &example, Item::thousandths).map(Duration)
}

fn read_coherence(root: &Fields<'_>, sources: &mut Sources) -> Option<Coherence> {
    let fields = required(root, "coherence", "a table [coherence]", Item::table)?;
    note_source(&fields, "coherence", sources);
    let kinds = [("bus", true), ("directory", false)];
    let bus = required(&fields, "kind", "kind = \"bus\"", |item| {
        item.choice(&kinds)
    });
    let coherence = match bus {
        Some(true) => read_bus(&fields),
        Some(false) => read_directory(&fields),
        None => return None,
    };
    fields.finish();
    coherence
}

fn read_bus(fields: &Fields<'_>) -> Option<Coherence> {
    let (line_transfer, address_only, cache_to_cache) = (
        time(fields, "line_transfer_ns"),
        time(fields, "address_only_ns"),
        time(fields, "cache_to_cache_ns"),
    );
    let crossing = fields.if_given("crossing_ns", |item| item.thousandths().map(Duration));
    let foreign = ["same_domain_ns", "other_domain_ns", "other_socket_ns"];
    refuse(fields, foreign, "bus", "directory");
    Some(Coherence::Bus {
        line_transfer: line_transfer?,
        address_only: address_only?,
        cache_to_cache: cache_to_cache?,
        crossing: crossing?,
    })
}

fn read_directory(fields: &Fields<'_>) -> Option<Coherence> {
    let (same_domain, other_domain) = (
        time(fields, "same_domain_ns"),
        time(fields, "other_domain_ns"),
    );
    let (other_socket, line_transfer) = (
        time(fields, "other_socket_ns"),
        time(fields, "line_transfer_ns"),
    );
    let foreign = ["address_only_ns", "cache_to_cache_ns", "crossing_ns"];
    refuse(fields, foreign, "directory", "bus");
    Some(Coherence::Directory {
        same_domain: same_domain?,
        other_domain: other_domain?,
        other_socket: other_socket?,
        line_transfer: line_transfer?,
    })
}

/// Rejects latencies that belong to the `other` kind of coherence.
fn refuse<const N: usize>(fields: &Fields<'_>, keys: [&'static str; N], kind: &str, other: &str) {
    for item in keys.into_iter().filter_map(|key| fields.item(key)) {
        let help = format!("leave it out, or write kind = \"{other}\"");
        item.report(format!("a {kind} has no such latency"), help);
    }
}

fn read_memory(root: &Fields<'_>, sources: &mut Sources) -> Option<MemoryDescription> {
    let memory = required(root, "memory", "a table [memory]", Item::table)?;
    note_source(&memory, "memory", sources);
    let or = |key, default| memory.or(key, default, Item::bytes);
    let size = required(&memory, "size", "size = \"512MB\"", Item::bytes);
    let page = or("page", Bytes::from_kb(4));
    let huge_page = or("huge_page", Bytes::from_mb(2));
    let latency = time(&memory, "latency_ns");
    let dma_into_llc = memory.flag("dma_into_llc");
    memory.finish();
    Some(MemoryDescription {
        size: size?,
        page: page?,
        huge_page: huge_page?,
        latency: latency?,
        dma_into_llc,
    })
}

/// The network card, by the name of its model.
fn read_card(root: &Fields<'_>, sources: &mut Sources) -> Option<CardModel> {
    let network = root.table("network")?;
    note_source(&network, "network", sources);
    let models = CARD_MODELS.iter().map(|model| (model.name, *model));
    let models: Vec<(&str, CardModel)> = models.collect();
    let card = required(&network, "card", "card = \"bcm5752\"", |item| {
        item.choice(&models)
    });
    network.finish();
    card
}

/// What takes CPUs away. Their sources are `steal.0` and so on, in the order of the file.
fn read_steals(root: &Fields<'_>, sources: &mut Sources) -> Vec<Steal> {
    let tables = root.tables("steal").into_iter().enumerate();
    let steals = tables.filter_map(|(index, steal)| {
        note_source(&steal, &format!("steal.{index}"), sources);
        let every = required(&steal, "every", "every = \"10ms\"", Item::duration);
        let span = required(&steal, "span", "span = \"50us\"", Item::duration);
        steal.finish();
        Some(Steal {
            every: every?,
            span: span?,
        })
    });
    steals.collect()
}

type Costs = BTreeMap<String, BTreeMap<String, Cost>>;

fn read_costs(root: &Fields<'_>) -> Costs {
    let mut costs = Costs::new();
    let Some(kernels) = root.table("costs") else {
        return costs;
    };
    for (kernel, item) in kernels.entries() {
        let Some(table) = item.table() else { continue };
        let cost = |(name, item): (&warmq_config::Entry, Item<'_>)| {
            Some((name.key.clone(), read_cost(&item)?))
        };
        let of_kernel = table.entries().filter_map(cost).collect();
        costs.insert(kernel.key.clone(), of_kernel);
    }
    costs
}

/// `{ cycles = 1200, source = "..." }`, or just `1200`.
fn read_cost(item: &Item<'_>) -> Option<Cost> {
    if !matches!(item.node.kind, NodeKind::Table(_)) {
        return Some(Cost {
            cycles: Cycles(item.count()?),
            source: NOT_GIVEN.to_owned(),
        });
    }
    let cost = item.table()?;
    let cycles = required(&cost, "cycles", "cycles = 1200", Item::count);
    let source = source_of(&cost);
    cost.finish();
    Some(Cost {
        cycles: Cycles(cycles?),
        source,
    })
}
