//! What is run.

use std::collections::BTreeMap;
use std::time::{Duration as HostTime, Instant as HostInstant};

use warmq_config::{Chosen, Setting, Value};
use warmq_kernel::{Costs, Ending, Kernel, MakeScheduler, Settings};
use warmq_machine::{MachineDescription, Overrides, builtin, read_toml};
use warmq_play::{Counters, workload};
use warmq_sched::{COMPILED, Entry, scheduler};
use warmq_trace::{Digest, Observer, Record};
use warmq_units::{Duration, Instant, Seed};

use crate::compiled::{BPFLAND, Compiled, WARMQ};

/// One run that is measured.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// How much simulated time.
    pub(crate) time: Duration,
    machine: &'static str,
    /// The first so many CPUs of the machine; all where it is `None`.
    cpus: Option<u16>,
    /// False where memory accesses cost nothing and no cache is simulated.
    caches: bool,
    scheduler: Under,
    workload: &'static str,
    set: &'static [(&'static str, i64)],
}

/// Who schedules.
enum Under {
    /// A scheduler of the lab.
    Lab(&'static str),
    Compiled(Compiled),
}

/// Every scene. A program that computes has an event at the end of each burst, which makes no
/// record: where records are counted, the bursts are long.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "engine-4cpus",
        what: "4 CPUs, 8 CPU-bound tasks, linux24, no caches",
        time: Duration::from_s(500),
        machine: "p3xeon-8way",
        cpus: Some(4),
        caches: false,
        scheduler: Under::Lab("linux24"),
        workload: "spin",
        set: &[("tasks", 8)],
    },
    Scene {
        name: "engine-4cpus-ticks",
        what: "the same, bursts longer than a slice: ticks and switches only",
        time: Duration::from_s(2_000),
        machine: "p3xeon-8way",
        cpus: Some(4),
        caches: false,
        scheduler: Under::Lab("linux24"),
        workload: "spin",
        set: &[("tasks", 8), ("burst", 1_000_000_000)],
    },
    Scene {
        name: "server-384cpus",
        what: "384 CPUs, 24 last-level caches, 768 CPU-bound tasks, mq, with caches",
        time: Duration::from_s(5),
        machine: "server-24llc",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("mq"),
        workload: "spin",
        set: &[("tasks", 768), ("burst", 1_000_000_000)],
    },
    Scene {
        name: "server-384cpus-bare",
        what: "the same without caches: what the engine and the scheduler take of it",
        time: Duration::from_s(5),
        machine: "server-24llc",
        cpus: None,
        caches: false,
        scheduler: Under::Lab("mq"),
        workload: "spin",
        set: &[("tasks", 768), ("burst", 1_000_000_000)],
    },
    Scene {
        name: "server-384cpus-eevdf",
        what: "the same, eevdf-7.1, without caches",
        time: Duration::from_s(2),
        machine: "server-24llc",
        cpus: None,
        caches: false,
        scheduler: Under::Lab("eevdf-7.1"),
        workload: "spin",
        set: &[("tasks", 768), ("burst", 1_000_000_000)],
    },
    Scene {
        name: "server-384cpus-chat",
        what: "384 CPUs, 24 last-level caches, chat with 2,400 threads, eevdf-7.1, with caches",
        time: Duration::from_ms(20),
        machine: "server-24llc",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("eevdf-7.1"),
        workload: "chat",
        set: &[("rooms", 60), ("users", 10), ("messages", 1_000_000)],
    },
    Scene {
        name: "server-384cpus-chat-bpfland",
        what: "the same under the compiled scx_bpfland",
        time: Duration::from_ms(20),
        machine: "server-24llc",
        cpus: None,
        caches: true,
        scheduler: Under::Compiled(BPFLAND),
        workload: "chat",
        set: &[("rooms", 60), ("users", 10), ("messages", 1_000_000)],
    },
    Scene {
        name: "server-384cpus-chat-warmq",
        what: "the same under the compiled scx_warmq",
        time: Duration::from_ms(20),
        machine: "server-24llc",
        cpus: None,
        caches: true,
        scheduler: Under::Compiled(WARMQ),
        workload: "chat",
        set: &[("rooms", 60), ("users", 10), ("messages", 1_000_000)],
    },
    Scene {
        name: "fragments-128threads",
        what: "2 CPUs, 128 threads on 4 fragments, o1-2.6.4, with caches: what a row of table 3 of the affinity paper takes",
        time: Duration::from_s(4),
        machine: "xeon-2way",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("o1-2.6.4"),
        workload: "passes",
        set: &[("threads", 128)],
    },
    Scene {
        name: "web-8cpus",
        what: "8 CPUs, web with 1024 processes, linux24, with caches (table 4's first row)",
        time: Duration::from_ms(1_000),
        machine: "p3xeon-8way",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("linux24"),
        workload: "web",
        set: &[("processes", 1_024)],
    },
    Scene {
        name: "starvation-100kpps",
        what: "Simplex beside a receiver of 100 Kpps on machine C, o1, with caches: a minute within 6 s",
        time: Duration::from_s(60),
        machine: "p4",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("o1"),
        workload: "starvation",
        set: &[("kpps", 100), ("seconds", 100)],
    },
    Scene {
        name: "starvation-80kpps",
        what: "the same at 80 Kpps, where the receiver sleeps and preempts",
        time: Duration::from_s(60),
        machine: "p4",
        cpus: None,
        caches: true,
        scheduler: Under::Lab("o1"),
        workload: "starvation",
        set: &[("kpps", 80), ("seconds", 100)],
    },
];

/// What a run came to.
pub(crate) struct Made {
    pub(crate) took: HostTime,
    pub(crate) events: u64,
    pub(crate) records: u64,
    /// Stands for all that happened, so that a change of behaviour shows.
    pub(crate) digest: u64,
}

/// Counts records, and does nothing else with them.
#[derive(Default)]
struct Count(u64);

impl Observer for Count {
    // As in a sweep.
    const DETAIL: bool = false;

    fn see(&mut self, _: Instant, record: &Record) {
        std::hint::black_box(record);
        self.0 += 1;
    }
}

impl Under {
    fn make(&self) -> (&'static Entry, MakeScheduler) {
        match self {
            Under::Lab(name) => {
                let entry = scheduler(name).expect("a scheduler of ours");
                (entry, entry.build(chosen(entry.settings(), &[])))
            }
            Under::Compiled(compiled) => (&COMPILED, compiled.make()),
        }
    }
}

impl Scene {
    /// The object that it needs, if that was not made.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        match &self.scheduler {
            Under::Compiled(compiled) if !compiled.is_there() => Some(compiled.object),
            _ => None,
        }
    }

    /// Runs it for `time`; booting is not timed. The digest comes from a run of its own, a tenth as
    /// long.
    pub(crate) fn run(&self, time: Duration) -> Made {
        let mut kernel = self.boot(Count::default());
        let start = HostInstant::now();
        let ending = kernel.run_until(Instant::START + time);
        let took = start.elapsed();
        assert_eq!(ending, Ending::TimeUp, "{}", self.name);
        let events = kernel.events();
        let records = kernel.into_observer().0;
        Made {
            took,
            events,
            records,
            digest: self.digest(time / 10),
        }
    }

    fn digest(&self, time: Duration) -> u64 {
        let mut kernel = self.boot(Digest::new());
        kernel.run_until(Instant::START + time);
        kernel.into_observer().value()
    }

    fn boot<O: Observer>(&self, observer: O) -> Kernel<O> {
        let machine = self.machine();
        let (scheduler, policy) = self.scheduler.make();
        let workload = workload(self.workload).expect("a workload of ours");
        let own = machine.costs.get(scheduler.kernel);
        let costs = Costs::new(own.unwrap_or(&machine.costs["linux-2.4"]).clone());
        let defaults = chosen(scheduler.settings(), &[]);
        let settings = Settings {
            caches: self.caches,
            ..scheduler.kernel_settings_as(&defaults, Seed(1))
        };
        let chosen = chosen(workload.settings(), self.set);
        let load = workload.build(&chosen, &warmq_play::site(&machine), &Counters::default());
        let load = load.expect("settings that it can be played with");
        Kernel::boot(&machine, &costs, settings, policy, &*load, observer).expect("it boots")
    }

    fn machine(&self) -> MachineDescription {
        let text = builtin(self.machine).expect("a machine of ours");
        let machine = read_toml(self.machine, text).expect("a machine that can be read");
        let overrides = Overrides {
            cpus: self.cpus,
            ..Overrides::default()
        };
        machine
            .with_overrides(&overrides)
            .expect("no more CPUs than there are")
    }
}

fn chosen(settings: Vec<Setting>, set: &[(&str, i64)]) -> Chosen {
    let values: BTreeMap<String, Value> = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::Integer(*value)))
        .collect();
    Chosen::new(settings, values).expect("values within bounds")
}
