//! The set that schedulers are judged by, as data: machines, scenarios and what counts of each.

use std::collections::BTreeMap;

use warmq_config::{Document, Fields, Item, NodeKind, Problems, Value};
use warmq_metrics::answers;
use warmq_scenario::Scenario as Workload;
use warmq_units::Duration;

warmq_units::named! {
    /// What one figure is about, by its name in tables and JSON and in the order of tables. A score
    /// weighs families equally, however many figures each has.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Family {
        /// Work done.
        Throughput = "throughput",
        /// How long something takes, or waits.
        Latency = "latency",
        /// What the one gets who gets least.
        Fairness = "fairness",
        /// How far data moves.
        Locality = "locality",
    }
}

/// Which values of a figure are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More of it.
    Higher,
    /// Less of it.
    Lower,
}

/// A figure of a scenario that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name among the metrics: `key_p99`.
    pub name: String,
    /// What it is about.
    pub family: Family,
    /// Which values are better.
    pub better: Better,
    /// Values below it count as it, in the figure's unit. Above 0, so that every ratio is finite.
    pub floor: f64,
}

/// A machine of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name in the set.
    pub name: String,
    /// The description: its name, or a file.
    pub is: String,
    /// How many of its CPUs are used; none: all.
    pub cpus: Option<u64>,
}

/// A scenario of the set.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The workload: its name, or a file.
    pub name: String,
    /// The machines of the set that it is played on.
    pub machines: Vec<String>,
    /// How long it is played before anything is measured.
    pub warmup: Duration,
    /// How long it is measured.
    pub time: Duration,
    /// What is set on the workload, or by a dotted name (`machine.cpus`) elsewhere.
    pub settings: BTreeMap<String, Value>,
    /// What counts.
    pub figures: Vec<Figure>,
}

/// Which ratios are no difference, as parts of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// A smaller difference counts for nothing, however sure it is.
    pub difference: f64,
    /// What surely differs by no more is the same; what is not sure is inconclusive.
    pub equal: f64,
}

/// What schedulers are judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Its version: scores of one version can be compared.
    pub version: u64,
    /// How many seeds each scenario has on each machine.
    pub seeds: u64,
    /// Which ratios are no difference.
    pub margins: Margins,
    /// What a ratio counts in the score at most, and its inverse at least.
    pub most: f64,
    /// The machines.
    pub machines: Vec<Machine>,
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
}

/// File and text of the set that comes with WarmQ.
const SHIPPED: (&str, &str) = ("judge/v1.toml", include_str!("../../../../judge/v1.toml"));

/// Where the scenario of a file is played unless machines are named.
const MACHINES_OF_FILES: [&str; 3] = ["2cpus", "smt", "4llc"];
/// How long the scenario of a file is played before it is measured, and how long that takes.
const TIMES_OF_FILES: (Duration, Duration) = (Duration::from_ms(50), Duration::from_ms(500));
/// Floors of what is not chosen figure by figure: a few events a second, what a wakeup and a switch
/// take in us, one percent of a CPU.
const FLOORS_OF_FILES: [(&str, f64); 3] = [("1/s", 10.0), ("us", 20.0), ("%", 1.0)];

impl Set {
    /// The set that comes with WarmQ.
    ///
    /// # Errors
    /// None, unless its file is broken: then what is wrong with it.
    pub fn shipped() -> Result<Set, Problems> {
        let (file, text) = SHIPPED;
        Set::read(file, text)
    }

    /// Reads the text of `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with place and fix.
    pub fn read(file: &str, text: &str) -> Result<Set, Problems> {
        Document::parse(file, text)?.read(set)
    }
}

impl Scenario {
    /// The scenario in the file `name`, which a set does not know: the figures that answer what it
    /// asks count.
    pub fn of_file(name: &str, workload: &Workload) -> Scenario {
        let (warmup, time) = TIMES_OF_FILES;
        let answers = answers(&workload.names()).into_iter();
        Scenario {
            name: name.to_owned(),
            machines: MACHINES_OF_FILES.map(str::to_owned).to_vec(),
            warmup,
            time,
            settings: BTreeMap::new(),
            figures: answers.filter_map(of_answer).collect(),
        }
    }
}

/// What a figure is about that no set describes, by how its name ends.
fn of_answer(name: String) -> Option<Figure> {
    const ENDINGS: [(&str, Family, Better, &str); 4] = [
        ("_per_second", Family::Throughput, Better::Higher, "1/s"),
        ("_p99", Family::Latency, Better::Lower, "us"),
        ("_delay_max", Family::Fairness, Better::Lower, "us"),
        ("_share_least", Family::Fairness, Better::Higher, "%"),
    ];
    let (_, family, better, unit) = ENDINGS.iter().find(|(ending, ..)| name.ends_with(ending))?;
    let (_, floor) = FLOORS_OF_FILES.iter().find(|(of, _)| of == unit)?;
    Some(Figure {
        name,
        family: *family,
        better: *better,
        floor: *floor,
    })
}

fn set(fields: &Fields<'_>) -> Option<Set> {
    let help = "say which version of the set this is: version = 1";
    let version = fields.required("version", help);
    let seeds = fields.required("seeds", "say how many seeds there are: seeds = 3");
    let margin = fields.required("margin_percent", "say what is no difference: 2");
    let equal = fields.required("equal_percent", "say what is the same: 10");
    let most = fields.required("most", "say what a ratio counts at most: 10");
    let machines = named(fields, "machine", machine);
    let names: Vec<&str> = machines.iter().map(|one| one.name.as_str()).collect();
    let scenarios = named(fields, "scenario", |name, table| {
        scenario(name, table, &names)
    });
    fields.finish();
    Some(Set {
        version: version?.count()?,
        seeds: seeds?.integer(1..=1000)?,
        margins: Margins {
            difference: percent(&margin?)?,
            equal: percent(&equal?)?,
        },
        most: at_least(&most?, 1.0)?,
        machines,
        scenarios,
    })
}

/// All tables `[KEY.NAME]`.
fn named<T>(
    fields: &Fields<'_>,
    key: &'static str,
    read: impl Fn(&str, &Fields<'_>) -> Option<T>,
) -> Vec<T> {
    let help = format!("write at least one [{key}.NAME]");
    let Some(tables) = fields.required(key, &help).and_then(|item| item.table()) else {
        return Vec::new();
    };
    let all = tables.entries().filter_map(|(entry, item)| {
        let table = item.table()?;
        let one = read(&entry.key, &table);
        table.finish();
        one
    });
    all.collect()
}

fn machine(name: &str, table: &Fields<'_>) -> Option<Machine> {
    let is = table.required("is", "name a machine: warmq machines lists them");
    let cpus = table.if_given("cpus", |item| item.integer(1..=4096));
    table.text("about");
    Some(Machine {
        name: name.to_owned(),
        is: is?.text()?,
        cpus: cpus?,
    })
}

fn scenario(name: &str, table: &Fields<'_>, machines: &[&str]) -> Option<Scenario> {
    let on = table.required("machines", "name machines of this file");
    let span = |key| {
        let help = "write a time, such as \"50ms\"";
        table.required(key, help).and_then(|item| item.duration())
    };
    let (warmup, time) = (span("warmup"), span("time"));
    let settings = table.table("settings").map(|table| settings(&table));
    let figures = table.tables("figure");
    if figures.is_empty() {
        table.report("nothing counts of it", "write figure = [{ name = ... }]");
    }
    let figures = figures.iter().map(|figure_table| {
        let figure = figure(figure_table);
        figure_table.finish();
        figure
    });
    let figures: Option<Vec<Figure>> = figures.collect();
    let on = on?.one_or_more().into_iter().map(|item| {
        let machine = item.text()?;
        if !machines.contains(&machine.as_str()) {
            let known = machines.iter().copied();
            item.unknown("the file has no such machine", &machine, known);
        }
        Some(machine)
    });
    Some(Scenario {
        name: name.to_owned(),
        machines: on.collect::<Option<_>>()?,
        warmup: warmup?,
        time: time?,
        settings: settings.unwrap_or_default(),
        figures: figures?,
    })
}

/// Whether the workload has them is checked where it is played.
fn settings(table: &Fields<'_>) -> BTreeMap<String, Value> {
    let all = table.entries().filter_map(|(entry, item)| {
        let value = match &item.node.kind {
            NodeKind::Bool(flag) => Value::Bool(*flag),
            NodeKind::Integer(count) => Value::Integer(*count),
            NodeKind::Text(text) => Value::Text(text.clone()),
            _ => return item.wrong("a number, a text, true or false"),
        };
        Some((entry.key.clone(), value))
    });
    all.collect()
}

fn figure(table: &Fields<'_>) -> Option<Figure> {
    let name = table.required("name", "name a figure: warmq metrics lists them");
    let family = table.required("family", "say what it is about: family = \"latency\"");
    let better = table.required("better", "say which values are better: \"lower\"");
    let floor = table.required("floor", "say below which value differences do not count");
    let words = [("higher", Better::Higher), ("lower", Better::Lower)];
    let floor_item = floor?;
    let floor = match floor_item.node.kind {
        NodeKind::Text(_) => floor_item.duration()?.0 as f64 / 1e6,
        _ => floor_item.number()?,
    };
    if floor <= 0.0 {
        floor_item.report("a floor is above 0", "write the least that anybody notices");
    }
    Some(Figure {
        name: name?.text()?,
        family: family?.choice(&Family::NAMES)?,
        better: better?.choice(&words)?,
        floor,
    })
}

/// A part of 1, below it.
fn percent(item: &Item<'_>) -> Option<f64> {
    let number = at_least(item, 0.0)?;
    if number >= 100.0 {
        item.report("this is no part", "write a number below 100");
        return None;
    }
    Some(number / 100.0)
}

fn at_least(item: &Item<'_>, least: f64) -> Option<f64> {
    let number = item.number()?;
    if number < least {
        item.report("this is too small", format!("write at least {least}"));
        return None;
    }
    Some(number)
}
