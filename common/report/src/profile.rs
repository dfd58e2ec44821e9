//! Where a compiled scheduler spends its time: callbacks, the functions that run in each, and the
//! lines of those. Every level has the same figures, and a level's are the sums of the next one's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use serde::Serialize;
use warmq_units::Duration;

use crate::number;

/// What the program of a scheduler did in the runs of a point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// The scheduler, as it was named.
    pub scheduler: String,
    /// The point of the sweep, if that has more than the scheduler: `cpus = 4`.
    pub point: String,
    /// Switches from one task to another in the runs.
    pub switches: u64,
    /// CPUs times the time that was measured.
    #[serde(serialize_with = "as_ns", rename = "cpu_time_ns")]
    pub cpu_time: Duration,
    /// All of it.
    pub work: Work,
    /// Callbacks, the most expensive one first. None: there is no program, and nothing to profile.
    pub callbacks: Vec<Spot>,
}

/// A callback, a function or a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spot {
    /// Of callbacks and functions, their names; of a line, its place: `main.bpf.c:12`.
    pub name: String,
    /// The text of a line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// How often a callback or a function began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What it did.
    pub work: Work,
    /// What is in it, the most expensive one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Spot>,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Work {
    /// BPF instructions that ran.
    pub instructions: u64,
    /// Calls of helpers and kfuncs, by their names.
    pub calls: BTreeMap<String, u64>,
    /// Accesses of lines, those excepted that the callback had accessed just before.
    pub lines: u64,
    /// Of these, how many were found in the CPU's own caches, by level from 2 on.
    pub found_in_level: [u64; 3],
    /// How many came from another CPU's cache.
    pub from_other_cpus: u64,
    /// How many came from memory.
    pub from_memory: u64,
    /// Simulated time, with that of kfuncs and helpers.
    #[serde(serialize_with = "as_ns", rename = "time_ns")]
    pub time: Duration,
    /// The part of it under a run queue's lock.
    #[serde(serialize_with = "as_ns", rename = "locked_ns")]
    pub locked: Duration,
}

fn as_ns<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.0 as f64 / 1e3)
}

impl AddAssign<&Work> for Work {
    fn add_assign(&mut self, more: &Work) {
        self.instructions += more.instructions;
        for (name, count) in &more.calls {
            *self.calls.entry(name.clone()).or_default() += count;
        }
        self.lines += more.lines;
        for (own, more) in self.found_in_level.iter_mut().zip(more.found_in_level) {
            *own += more;
        }
        self.from_other_cpus += more.from_other_cpus;
        self.from_memory += more.from_memory;
        self.time += more.time;
        self.locked += more.locked;
    }
}

impl Work {
    /// Calls of helpers and kfuncs.
    pub fn all_calls(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Accesses that the cache of level 1 did not answer.
    pub fn misses(&self) -> u64 {
        let own: u64 = self.found_in_level.iter().sum();
        own + self.from_other_cpus + self.from_memory
    }
}

/// A figure that is shown for each callback, function and line.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    figure: fn(&Work) -> f64,
    /// Of the profile's, in percent, and not for each switch.
    is_share: bool,
}

const NS: Column = column("ns", |work| work.time.0 as f64 / 1e3);
const SHARE: Column = Column {
    is_share: true,
    ..column("%", NS.figure)
};

const FOUND: [Column; 5] = [
    column("L2", |work| work.found_in_level[0] as f64),
    column("L3", |work| work.found_in_level[1] as f64),
    column("L4", |work| work.found_in_level[2] as f64),
    column("other CPU", |work| work.from_other_cpus as f64),
    column("memory", |work| work.from_memory as f64),
];

const fn column(name: &'static str, figure: fn(&Work) -> f64) -> Column {
    Column {
        name,
        figure,
        is_share: false,
    }
}

/// A figure for each switch: three digits, two of them after the point at most.
pub(crate) fn figure(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.005 => "<0.01".to_owned(),
        value if value < 10.0 => format!("{value:.2}"),
        value => number::ours(value, ""),
    }
}

impl Column {
    pub(crate) fn of(&self, profile: &Profile, work: &Work) -> f64 {
        let value = (self.figure)(work);
        match self.is_share {
            true => 100.0 * value / (self.figure)(&profile.work).max(f64::MIN_POSITIVE),
            false => profile.a_switch(value),
        }
    }
}

/// What is shown of a profile. Where no line was found is left out.
pub(crate) fn columns(profile: &Profile) -> Vec<Column> {
    let mut columns = vec![
        NS,
        SHARE,
        column("locked", |work| work.locked.0 as f64 / 1e3),
        column("instr.", |work| work.instructions as f64),
        column("calls", |work| work.all_calls() as f64),
        column("lines", |work| work.lines as f64),
    ];
    let found = FOUND
        .into_iter()
        .filter(|column| (column.figure)(&profile.work) > 0.0);
    columns.extend(found);
    columns
}

/// What is shown of a line, whose text takes room.
pub(crate) fn short_columns() -> Vec<Column> {
    vec![
        NS,
        SHARE,
        column("instr.", |work| work.instructions as f64),
        column("lines", |work| work.lines as f64),
        column("misses", |work| work.misses() as f64),
        column("other CPU", |work| work.from_other_cpus as f64),
    ]
}

/// The spot of a name among `spots`.
fn spot<'s>(spots: &'s mut Vec<Spot>, name: &str) -> &'s mut Spot {
    let at = spots.iter().position(|spot| spot.name == name);
    let at = at.unwrap_or_else(|| {
        spots.push(Spot {
            name: name.to_owned(),
            ..Spot::default()
        });
        spots.len() - 1
    });
    &mut spots[at]
}

fn sort(spots: &mut [Spot]) {
    spots.sort_by(|one, other| {
        let by_time = other.work.time.cmp(&one.work.time);
        by_time.then_with(|| one.name.cmp(&other.name))
    });
    for spot in spots {
        sort(&mut spot.inside);
    }
}

impl Profile {
    /// Whether there is a program.
    pub fn has_program(&self) -> bool {
        !self.callbacks.is_empty()
    }

    /// The callback of a name.
    pub(crate) fn callback(&self, name: &str) -> Option<&Spot> {
        self.callbacks.iter().find(|spot| spot.name == name)
    }

    /// A figure for each switch.
    pub(crate) fn a_switch(&self, value: f64) -> f64 {
        value / self.switches.max(1) as f64
    }

    /// What there is of one without a program.
    pub(crate) fn nothing(&self) -> String {
        let name = self.name();
        format!("{name} has no instructions to profile: it is no compiled scheduler in the lab")
    }

    fn name(&self) -> String {
        match self.point.as_str() {
            "" => self.scheduler.clone(),
            point => format!("{} ({point})", self.scheduler),
        }
    }

    /// What its program takes in all.
    pub(crate) fn sentence(&self) -> String {
        let whole = self.work.time.0 as f64;
        let share = 100.0 * whole / self.cpu_time.0.max(1) as f64;
        format!(
            "{}: its program takes {} us of each switch, {} % of the CPUs' time; figures are for each of {} switches",
            self.name(),
            figure(self.a_switch(whole / 1e6)),
            figure(share),
            number::exact(self.switches as f64),
        )
    }

    /// Counts what was done at the end of a path: callback, function, line.
    pub fn add(&mut self, path: &[&str], text: &str, work: &Work) {
        self.work += work;
        let mut spots = &mut self.callbacks;
        for (depth, name) in path.iter().enumerate() {
            let spot = spot(spots, name);
            spot.work += work;
            if depth + 1 == path.len() {
                spot.text = text.to_owned();
            }
            spots = &mut spot.inside;
        }
    }

    /// Counts how often a callback, or a function in it, began.
    pub fn began(&mut self, path: &[&str], times: u64) {
        let mut spots = &mut self.callbacks;
        for (depth, name) in path.iter().enumerate() {
            let spot = spot(spots, name);
            if depth + 1 == path.len() {
                *spot.times.get_or_insert_default() += times;
            }
            spots = &mut spot.inside;
        }
    }

    /// Adds what another run of the same scheduler did.
    pub fn merge(&mut self, other: &Profile) {
        self.switches += other.switches;
        self.cpu_time += other.cpu_time;
        self.work += &other.work;
        merge(&mut self.callbacks, &other.callbacks);
        self.sort();
    }

    /// The most expensive first, at each level.
    pub fn sort(&mut self) {
        sort(&mut self.callbacks);
    }

    /// Functions, whatever callback they ran in, the most expensive one first.
    pub fn functions(&self) -> Vec<Spot> {
        let functions = self.callbacks.iter().flat_map(|callback| &callback.inside);
        let mut all = Vec::new();
        functions.for_each(|function| merge(&mut all, std::slice::from_ref(function)));
        sort(&mut all);
        all
    }

    /// Lines, whatever callback they ran in, each with its function, the most expensive one first.
    pub fn lines(&self) -> Vec<(String, Spot)> {
        let of = |function: Spot| {
            let name = function.name;
            let lines = function.inside.into_iter();
            lines.map(move |line| (name.clone(), line))
        };
        let mut lines: Vec<_> = self.functions().into_iter().flat_map(of).collect();
        lines.sort_by_key(|(_, line)| std::cmp::Reverse(line.work.time));
        lines
    }
}

fn merge(own: &mut Vec<Spot>, others: &[Spot]) {
    for other in others {
        let spot = spot(own, &other.name);
        spot.text.clone_from(&other.text);
        spot.work += &other.work;
        if let Some(times) = other.times {
            *spot.times.get_or_insert_default() += times;
        }
        merge(&mut spot.inside, &other.inside);
    }
}

/// The names of callbacks, the most expensive ones first.
pub(crate) fn callback_names<'p>(profiles: &[&'p Profile]) -> Vec<&'p str> {
    let callbacks = profiles.iter().flat_map(|profile| &profile.callbacks);
    let names: BTreeSet<&str> = callbacks.map(|spot| spot.name.as_str()).collect();
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_by_cached_key(|name| {
        let spots = profiles.iter().filter_map(|profile| profile.callback(name));
        std::cmp::Reverse(spots.map(|spot| spot.work.time).max())
    });
    names
}
