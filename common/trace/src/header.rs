//! What a trace is of: where it was recorded, and the names of what its records number.

use warmq_units::printable;

/// What a trace is of. Fields that nobody knows are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Who played: `lab`, `guest` or `host`.
    pub world: String,
    /// The machine: a description's name, or what the processor says.
    pub machine: String,
    /// The kernel: a release, or the lab's profile.
    pub kernel: String,
    /// The scheduler.
    pub scheduler: String,
    /// What its times count: `simulated`, `instructions`, `monotonic`.
    pub clock: String,
    /// The kernel's tick in Hz; empty where it has none.
    pub hz: String,
    /// The kernel's preemption model: `none`, `voluntary`, `full`, `lazy`.
    pub preemption: String,
    /// The core and the last-level cache of each CPU, in the order of CPUs; empty if unknown.
    pub places: Vec<(u16, u16)>,
    /// The names of the scenario.
    pub names: Names,
}

/// The names of a scenario, which records give by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Tables of tasks.
    pub tasks: Vec<String>,
    /// Latency spans.
    pub spans: Vec<String>,
    /// Counters.
    pub counters: Vec<String>,
    /// Phases.
    pub phases: Vec<String>,
    /// The counter that is the work done; empty for none.
    pub work: String,
}

impl Header {
    /// Every fact as a key and a text, in a fixed order; lists repeat their key.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let names = &self.names;
        let mut facts: Vec<(&'static str, String)> = [
            ("world", &self.world),
            ("machine", &self.machine),
            ("kernel", &self.kernel),
            ("scheduler", &self.scheduler),
            ("clock", &self.clock),
            ("hz", &self.hz),
            ("preemption", &self.preemption),
            ("work", &names.work),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key, value.clone()))
        .collect();
        let place = |(core, llc): &(u16, u16)| ("place", format!("{core} {llc}"));
        facts.extend(self.places.iter().map(place));
        for (key, list) in [
            ("task", &names.tasks),
            ("span", &names.spans),
            ("counter", &names.counters),
            ("phase", &names.phases),
        ] {
            facts.extend(list.iter().map(|name| (key, name.clone())));
        }
        facts
    }

    /// Takes in one fact, as it can be shown: a file may have any. A key that this version does not
    /// know is ignored: a later one wrote it.
    pub(crate) fn learn(&mut self, key: &str, value: &str) {
        let value = printable(value).to_string();
        match key {
            "world" => self.world = value,
            "machine" => self.machine = value,
            "kernel" => self.kernel = value,
            "scheduler" => self.scheduler = value,
            "clock" => self.clock = value,
            "hz" => self.hz = value,
            "preemption" => self.preemption = value,
            "work" => self.names.work = value,
            "task" => self.names.tasks.push(value),
            "span" => self.names.spans.push(value),
            "counter" => self.names.counters.push(value),
            "phase" => self.names.phases.push(value),
            // A place that is no pair of numbers is none that this version knows.
            "place" => self.places.extend(place(&value)),
            _ => {}
        }
    }
}

/// `CORE LLC`.
fn place(text: &str) -> Option<(u16, u16)> {
    let (core, llc) = text.split_once(' ')?;
    Some((core.parse().ok()?, llc.parse().ok()?))
}
