//! What a trace is of: where it was recorded, and the names of what its records number.

use warmq_units::{Duration, printable};

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
    /// The memory node of each CPU, in the order of CPUs; empty if unknown.
    pub nodes: Vec<u16>,
    /// The recorded machine as a machine file of WarmQ has it, a line each; empty if unknown.
    pub hardware: Vec<String>,
    /// The names of the scenario.
    pub names: Names,
    /// What the kernel itself counted meanwhile of threads that were alive at the end.
    pub accounts: Vec<Account>,
    /// What a recording of another program lacks that a diagnosis may need, by the names that
    /// diagnoses have for it.
    pub lacks: Vec<String>,
    /// For how long by the kernel's account some task waited for a CPU (pressure stall
    /// information).
    pub pressure: Option<Duration>,
}

/// What a kernel counted of a thread (`/proc/PID/task/TID/schedstat`): from before the recording
/// until after it, so that a trace cannot have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its thread id.
    pub tid: u32,
    /// How long it ran.
    pub ran: Duration,
    /// How long it waited for a CPU, without a wait that went on at the end.
    pub waited: Duration,
    /// Whether it was runnable at the end.
    pub runnable: bool,
}

/// How the names of counters begin that are the scheduler's own.
pub const OF_SCHEDULER: &str = "scheduler.";

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
    /// Tables of groups that have a quota.
    pub groups: Vec<String>,
    /// Tables of spin locks, of each of which three counters are ([`SpinlockNames`]).
    pub spinlocks: Vec<String>,
    /// The counter that is the work done; empty for none.
    pub work: String,
}

impl Names {
    /// The counters that steps of the scenario name, with their numbers: all but those of spin
    /// locks.
    pub fn counters_of_steps(&self) -> impl Iterator<Item = (usize, &String)> {
        let locks = self.spinlocks.iter().map(|lock| SpinlockNames::of(lock));
        let locks: Vec<SpinlockNames> = locks.collect();
        let counters = self.counters.iter().enumerate();
        counters.filter(move |(_, name)| {
            let counts = |lock: &SpinlockNames| lock.all().contains(&name.as_str());
            !locks.iter().any(counts)
        })
    }
}

/// The counters of the spin locks of a table, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpinlockNames {
    /// How often one was taken.
    pub taken: String,
    /// How often a task that wanted one found it held.
    pub contended: String,
    /// CPU time between looks at one that was held, in nanoseconds.
    pub spun: String,
}

impl SpinlockNames {
    /// Of the table `name`.
    pub fn of(name: &str) -> SpinlockNames {
        let counter = |what: &str| format!("{name}_{what}");
        SpinlockNames {
            taken: counter("taken"),
            contended: counter("contended"),
            spun: counter("spun"),
        }
    }

    /// All of them.
    pub fn all(&self) -> [&str; 3] {
        [&self.taken, &self.contended, &self.spun]
    }
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
        facts.extend(self.nodes.iter().map(|node| ("node", node.to_string())));
        let accounts = self.accounts.iter();
        facts.extend(accounts.map(|account| ("account", account.to_text())));
        let pressure = self.pressure.iter();
        facts.extend(pressure.map(|pressure| ("pressure", pressure.as_ns().to_string())));
        for (key, list) in [
            ("task", &names.tasks),
            ("span", &names.spans),
            ("counter", &names.counters),
            ("phase", &names.phases),
            ("group", &names.groups),
            ("spinlock", &names.spinlocks),
            ("lacks", &self.lacks),
            ("hardware", &self.hardware),
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
            "group" => self.names.groups.push(value),
            "spinlock" => self.names.spinlocks.push(value),
            "lacks" => self.lacks.push(value),
            "hardware" => self.hardware.push(value),
            // A place that is no pair of numbers is none that this version knows.
            "place" => self.places.extend(place(&value)),
            "node" => self.nodes.extend(value.parse::<u16>().ok()),
            "account" => self.accounts.extend(Account::of_text(&value)),
            "pressure" => self.pressure = value.parse().ok().map(Duration::from_ns),
            _ => {}
        }
    }
}

/// `CORE LLC`.
fn place(text: &str) -> Option<(u16, u16)> {
    let (core, llc) = text.split_once(' ')?;
    Some((core.parse().ok()?, llc.parse().ok()?))
}

impl Account {
    /// `TID RAN WAITED RUNNABLE`, times in ns.
    fn to_text(self) -> String {
        let (ran, waited) = (self.ran.as_ns(), self.waited.as_ns());
        format!("{} {ran} {waited} {}", self.tid, u8::from(self.runnable))
    }

    fn of_text(text: &str) -> Option<Account> {
        let mut words = text.split(' ').map(|word| word.parse::<u64>().ok());
        let mut next = || words.next().flatten();
        Some(Account {
            tid: u32::try_from(next()?).ok()?,
            ran: Duration::from_ns(next()?),
            waited: Duration::from_ns(next()?),
            runnable: next()? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_counted_is_read_back_and_what_is_no_account_is_none() {
        let account = Account {
            tid: 42,
            ran: Duration::from_us(7),
            waited: Duration::from_ms(3),
            runnable: true,
        };
        let mut header = Header {
            accounts: vec![account],
            pressure: Some(Duration::from_ms(9)),
            places: vec![(0, 0), (1, 0)],
            nodes: vec![0, 1],
            ..Header::default()
        };
        let facts = header.facts();
        let mut read = Header::default();
        facts
            .into_iter()
            .for_each(|(key, value)| read.learn(key, &value));
        assert_eq!(read, header);
        header.learn("account", "42 7");
        header.learn("node", "-1");
        assert_eq!((header.accounts.len(), header.nodes.len()), (1, 2));
    }
}
