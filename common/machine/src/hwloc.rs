//! Machines from hwloc's XML (`lstopo --of xml`), of its versions 1 and 2.
//!
//! The XML describes structure, not times: latencies, coherence and the clock are assumed, and
//! `sources` says so. Instruction caches are left out, and what else is says `left_out`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use roxmltree::{Document, Node, ParsingOptions};
use warmq_config::{Problem, Problems, Source};
use warmq_units::{Bytes, CpuId};

use crate::check::MOST_CPUS;
use crate::description::MachineDescription;
use crate::observed::{
    Observed, ObservedCache, ObservedCpu, ObservedNodes, ObservedSpeeds, ObservedWays,
};

const SEEN_BY: &str = "hwloc XML";
const LSTOPO: &str = "give the output of `lstopo --of xml`";

/// The source text, for errors.
#[derive(Clone, Copy)]
struct Xml<'a>(&'a Source);

/// Reads a machine from hwloc's XML. `file` is its name in errors and the name of the machine.
///
/// # Errors
/// Text that is not XML of hwloc, malformed numbers, no cache at all, or a machine that
/// [`MachineDescription::check`] rejects. Each error names the element.
pub fn read_hwloc(file: &str, text: &str) -> Result<MachineDescription, Problems> {
    let source = Source::file(file, text);
    let xml = Xml(&source);
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let what = format!("this is not XML: {error}");
        Problem {
            line: Some(error.pos().row as usize),
            ..source.problem("", 0..0, what, LSTOPO)
        }
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(xml.error(root, "this is not hwloc's <topology>", LSTOPO));
    }
    let units = processing_units(xml, root)?;
    let (page, huge_page) = page_sizes(xml, root)?;
    let speeds = speeds(xml, root, &units)?;
    let observed = Observed {
        name: file_stem(file).to_owned(),
        title: title(root).unwrap_or(file_stem(file)).to_owned(),
        seen_by: SEEN_BY.to_owned(),
        clock: None,
        cpus: units.iter().map(|(_, unit)| place_of(*unit)).collect(),
        caches: caches(xml, &units)?,
        memory: memory(xml, root)?,
        page,
        huge_page,
        nodes: nodes(xml, root, &units)?,
        left_out: left_out(root, &speeds),
        speeds,
    };
    observed.describe().map_err(|flaw| {
        let problem = source.problem(flaw.key, 0..0, flaw.problem, flaw.help);
        Problem {
            line: None,
            ..problem
        }
        .into()
    })
}

impl Xml<'_> {
    fn error(self, node: Node<'_, '_>, what: impl Into<String>, help: &str) -> Problems {
        let mut element = format!("<{}", node.tag_name().name());
        for name in ["type", "os_index", "gp_index"] {
            if let Some(value) = node.attribute(name) {
                element.push_str(&format!(" {name}=\"{value}\""));
            }
        }
        self.0
            .problem(element + ">", node.range(), what, help)
            .into()
    }

    /// A numeric attribute of an element; `None` if it is missing.
    fn number(self, node: Node<'_, '_>, name: &str) -> Result<Option<i64>, Problems> {
        let Some(text) = node.attribute(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            let problem = format!("{name}=\"{text}\" is not a number");
            self.error(node, problem, "export the topology again")
        })
    }

    /// A numeric attribute that cannot be negative; `None` if it is missing.
    fn count(self, node: Node<'_, '_>, name: &str) -> Result<Option<u64>, Problems> {
        let number = self.number(node, name)?;
        number.map(u64::try_from).transpose().map_err(|_| {
            self.error(
                node,
                format!("{name} is negative"),
                "export the topology again",
            )
        })
    }
}

fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    node.attribute("type").unwrap_or("")
}

fn objects<'a, 'i>(root: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    elements(root, "object")
}

/// The processing units that may be used, by `os_index`.
fn processing_units<'a, 'i>(
    xml: Xml<'_>,
    root: Node<'a, 'i>,
) -> Result<Vec<(u64, Node<'a, 'i>)>, Problems> {
    let machine = objects(root).find(|node| kind(*node) == "Machine");
    let allowed = machine
        .and_then(|machine| machine.attribute("allowed_cpuset"))
        .and_then(CpuSet::parse);
    let mut units = BTreeMap::new();
    for node in objects(root).filter(|node| kind(*node) == "PU") {
        let number = xml.count(node, "os_index")?.unwrap_or(units.len() as u64);
        if allowed
            .as_ref()
            .is_some_and(|allowed| !allowed.contains(number))
        {
            continue;
        }
        if units.insert(number, node).is_some() {
            let help = "give each PU its own os_index";
            return Err(xml.error(node, format!("PU {number} occurs twice"), help));
        }
        if units.len() > MOST_CPUS {
            let help = format!("describe at most {MOST_CPUS} CPUs");
            return Err(xml.error(node, "there are too many CPUs", &help));
        }
    }
    Ok(units.into_iter().collect())
}

/// Socket and core of a processing unit, numbered by the position of their elements in the
/// document.
fn place_of(unit: Node<'_, '_>) -> ObservedCpu {
    let above = |kinds: [&str; 2]| {
        let found = unit.ancestors().find(|node| kinds.contains(&kind(*node)));
        found.map(|node| node.id().get_usize() as u64)
    };
    ObservedCpu {
        socket: above(["Package", "Socket"]).unwrap_or(0),
        core: above(["Core", "Core"]).unwrap_or(unit.id().get_usize() as u64),
    }
}

/// Data and unified caches above processing units, with the CPUs below them.
fn caches(xml: Xml<'_>, units: &[(u64, Node<'_, '_>)]) -> Result<Vec<ObservedCache>, Problems> {
    let mut seen: BTreeMap<usize, ObservedCache> = BTreeMap::new();
    for (cpu, (_, unit)) in units.iter().enumerate() {
        for node in unit.ancestors().filter(|node| is_data_cache(*node)) {
            let key = node.id().get_usize();
            let cache = match seen.entry(key) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(cache(xml, node)?),
            };
            cache.cpus.push(CpuId(cpu as u16));
        }
    }
    Ok(seen.into_values().collect())
}

/// `Cache` in version 1, `L1Cache`, `L2Cache`... in version 2; type 2 is an instruction cache.
fn is_data_cache(node: Node<'_, '_>) -> bool {
    let kind = kind(node);
    let numbered = kind
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix("Cache"));
    let cache = numbered.is_some_and(|level| level.parse::<u8>().is_ok()) || kind == "Cache";
    cache && node.attribute("cache_type") != Some("2")
}

fn cache(xml: Xml<'_>, node: Node<'_, '_>) -> Result<ObservedCache, Problems> {
    let depth = xml.count(node, "depth")?;
    let level = depth
        .and_then(|depth| u8::try_from(depth).ok())
        .filter(|level| *level > 0);
    let level = level.ok_or_else(|| {
        xml.error(
            node,
            "a cache without its level",
            "give it depth=\"1\", say",
        )
    })?;
    let size = xml
        .count(node, "cache_size")?
        .filter(|size| *size > 0)
        .ok_or_else(|| {
            xml.error(
                node,
                "a cache without a size",
                "give it cache_size, in bytes",
            )
        })?;
    let ways = match xml.number(node, "cache_associativity")? {
        Some(-1) => ObservedWays::Full,
        None | Some(0) => ObservedWays::Unknown,
        Some(ways) => u32::try_from(ways).map(ObservedWays::Ways).map_err(|_| {
            let help = "give ways, 0 for unknown or -1 for fully associative";
            xml.error(node, format!("an associativity of {ways}"), help)
        })?,
    };
    let line = xml
        .count(node, "cache_linesize")?
        .filter(|line| *line > 0)
        .map(Bytes);
    let inclusive = info(node, "Inclusive").map(|value| value == "1");
    Ok(ObservedCache {
        level,
        size: Bytes(size),
        ways,
        line,
        inclusive,
        cpus: Vec::new(),
    })
}

/// The memory of all nodes, in whole megabytes.
fn memory(xml: Xml<'_>, root: Node<'_, '_>) -> Result<Option<Bytes>, Problems> {
    let mut total = 0_u64;
    for node in objects(root) {
        total = total.saturating_add(xml.count(node, "local_memory")?.unwrap_or(0));
    }
    let megabytes = total >> 20;
    Ok((megabytes > 0).then_some(Bytes(megabytes << 20)))
}

/// The two smallest page sizes.
fn page_sizes(
    xml: Xml<'_>,
    root: Node<'_, '_>,
) -> Result<(Option<Bytes>, Option<Bytes>), Problems> {
    let mut sizes = Vec::new();
    for node in elements(root, "page_type") {
        sizes.extend(xml.count(node, "size")?.filter(|size| *size > 0).map(Bytes));
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok((sizes.first().copied(), sizes.get(1).copied()))
}

/// The memory nodes of CPUs, and how far these are from each other, where the file is of version 2
/// and says so. Nodes without CPUs are left out.
fn nodes(
    xml: Xml<'_>,
    root: Node<'_, '_>,
    units: &[(u64, Node<'_, '_>)],
) -> Result<ObservedNodes, Problems> {
    let mut nodes: Vec<(u64, CpuSet)> = Vec::new();
    for node in objects(root).filter(|node| kind(*node) == "NUMANode") {
        let number = xml.count(node, "os_index")?;
        let cpus = node.attribute("cpuset").and_then(CpuSet::parse);
        nodes.extend(number.zip(cpus));
    }
    let of_unit = |(unit, _): &(u64, Node<'_, '_>)| {
        let holding = nodes.iter().find(|(_, cpus)| cpus.contains(*unit));
        holding.map(|(number, _)| *number)
    };
    Ok(ObservedNodes {
        of_cpus: units.iter().map(of_unit).collect(),
        distances: distances(root).unwrap_or_default(),
    })
}

/// The latencies of `<distances2>` between nodes, by their numbers; nothing where they are said
/// otherwise than `lstopo` does.
fn distances(root: Node<'_, '_>) -> Option<BTreeMap<(u64, u64), u16>> {
    let mut all = elements(root, "distances2");
    let of_nodes = all.find(|node| node.attribute("type") == Some("NUMANode"))?;
    let numbers = |name: &str| -> Option<Vec<u64>> {
        let parts = of_nodes.children().filter(|child| child.has_tag_name(name));
        let texts: Vec<&str> = parts.filter_map(|part| part.text()).collect();
        let words = texts.iter().flat_map(|text| text.split_whitespace());
        words.map(|word| word.parse().ok()).collect()
    };
    let (ids, values) = (numbers("indexes")?, numbers("u64values")?);
    let pairs = ids
        .iter()
        .flat_map(|from| ids.iter().map(move |to| (*from, *to)));
    let values = values.into_iter().map(|value| u16::try_from(value).ok());
    pairs
        .zip(values)
        .map(|(pair, value)| Some((pair, value?)))
        .collect()
}

/// How fast CPUs work, by their kinds: the capacities that the kernel has of them, or their highest
/// frequencies. A kernel of x86 with SMT has 1024 for all.
fn speeds(
    xml: Xml<'_>,
    root: Node<'_, '_>,
    units: &[(u64, Node<'_, '_>)],
) -> Result<ObservedSpeeds, Problems> {
    let kinds = elements(root, "cpukind").map(|kind| Kind::of(xml, kind));
    let kinds = kinds.collect::<Result<Vec<Kind>, Problems>>()?;
    let of_units = |number: fn(&Kind) -> Option<u64>| {
        let of_unit = |(unit, _): &(u64, Node<'_, '_>)| {
            let mut holding = kinds.iter().filter(|kind| kind.cpus.contains(*unit));
            holding.find_map(number)
        };
        units.iter().map(of_unit).collect()
    };
    let capacities = of_units(|kind| kind.capacity);
    Ok(ObservedSpeeds::of(
        capacities,
        of_units(|kind| kind.frequency),
    ))
}

/// CPUs that are alike (`<cpukind>`).
struct Kind {
    cpus: CpuSet,
    /// `LinuxCapacity`
    capacity: Option<u64>,
    /// `FrequencyMaxMHz`
    frequency: Option<u64>,
}

impl Kind {
    fn of(xml: Xml<'_>, kind: Node<'_, '_>) -> Result<Kind, Problems> {
        let cpus = kind.attribute("cpuset").and_then(CpuSet::parse);
        let cpus = cpus.ok_or_else(|| {
            let help = "give it a cpuset such as 0x0000000f";
            xml.error(kind, "kinds of CPUs have a set of them", help)
        })?;
        let number = |name: &str| match info(kind, name) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .map(Some)
                .ok_or_else(|| {
                    let problem = format!("{name} is `{text}`, no number above 0");
                    xml.error(kind, problem, "export the topology again")
                }),
        };
        Ok(Kind {
            cpus,
            capacity: number("LinuxCapacity")?,
            frequency: number("FrequencyMaxMHz")?,
        })
    }
}

/// What the models lack of what the file describes.
fn left_out(root: Node<'_, '_>, speeds: &ObservedSpeeds) -> Vec<String> {
    let kinds: Vec<_> = elements(root, "cpukind").collect();
    let alike = *speeds == ObservedSpeeds::Alike;
    let unlike = (alike && kinds.len() > 1).then(|| {
        let named: Vec<&str> = kinds.iter().filter_map(|kind| name_of_kind(*kind)).collect();
        let named = match named.is_empty() {
            true => String::new(),
            false => format!(" ({})", named.join(", ")),
        };
        format!(
            "{SEEN_BY} shows {} kinds of CPUs by <cpukind>{named}, which are modelled as equally fast.",
            kinds.len()
        )
    });
    let beside = objects(root).filter(|node| kind(*node) == "MemCache");
    let beside = beside.count();
    let beside = (beside > 0).then(|| {
        format!("{SEEN_BY} shows memory-side caches (MemCache: {beside}), which are not modelled.")
    });
    unlike.into_iter().chain(beside).collect()
}

/// The name of a kind of CPUs, where the file has one.
fn name_of_kind<'a>(kind: Node<'a, '_>) -> Option<&'a str> {
    let names = ["CoreType", "CPUModel", "LinuxCPUType", "CPUPart"];
    names.into_iter().find_map(|name| info(kind, name))
}

fn elements<'a, 'i>(root: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    root.descendants()
        .filter(move |node| node.has_tag_name(name))
}

/// The value of the `<info>` called `name` in `node`.
fn info<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let mut found = node
        .children()
        .filter(|child| child.attribute("name") == Some(name));
    found.find_map(|child| child.attribute("value"))
}

fn title<'a>(root: Node<'a, '_>) -> Option<&'a str> {
    let info = |name: &str| {
        let mut found = root
            .descendants()
            .filter(|node| node.attribute("name") == Some(name));
        found.find_map(|node| node.attribute("value"))
    };
    info("CPUModel").or_else(|| info("SyntheticDescription"))
}

fn file_stem(file: &str) -> &str {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    name.strip_suffix(".xml").unwrap_or(name)
}

/// A set of CPU numbers as hwloc writes it: words of 32 bits in hexadecimal, the highest first.
struct CpuSet {
    words: Vec<u32>,
    /// Whether all CPUs above those of the words are in the set, too.
    infinite: bool,
}

impl CpuSet {
    fn parse(text: &str) -> Option<CpuSet> {
        let (infinite, text) = match text.strip_prefix("0xf...f") {
            Some(rest) => (true, rest.trim_start_matches(',')),
            None => (false, text),
        };
        let words = text
            .rsplit(',')
            .map(|word| match word.trim_start_matches("0x") {
                "" => Some(0),
                digits => u32::from_str_radix(digits, 16).ok(),
            });
        let words: Option<Vec<u32>> = words.collect();
        words.map(|words| CpuSet {
            words: if text.is_empty() { Vec::new() } else { words },
            infinite,
        })
    }

    fn contains(&self, cpu: u64) -> bool {
        let word = usize::try_from(cpu / 32)
            .ok()
            .and_then(|word| self.words.get(word));
        word.map_or(self.infinite, |word| word >> (cpu % 32) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_the_cpus_of_its_bits() {
        let members = |text| {
            let set = CpuSet::parse(text).unwrap();
            (0..100)
                .filter(|cpu| set.contains(*cpu))
                .collect::<Vec<u64>>()
        };
        assert_eq!(members("0x00000005"), [0, 2]);
        assert_eq!(members("0x00000001,,0x80000000"), [31, 64]);
        assert_eq!(members("0x0"), [] as [u64; 0]);
        assert_eq!(
            members("0xf...f,0x00000000"),
            (32..100).collect::<Vec<u64>>()
        );
        assert!(CpuSet::parse("0xzz").is_none());
    }
}
