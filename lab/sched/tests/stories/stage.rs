//! A small machine for stories, with watchers on every run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::ProptestConfig;

use warmq_config::{Chosen, Value};
use warmq_kernel::*;
use warmq_machine::{Fragmentation, MachineDescription, OutOfMemory, builtin, read_toml};
use warmq_metrics::{Chart, Counts, LockFigures, LockMeter, TaskFigures, TaskMeter};
use warmq_sched::Entry;
use warmq_trace::{Checker, Digest, Observer, Promise};
use warmq_units::{CpuId, Cycles, Duration, Instant, LockId, Seed, TaskId};

use crate::compiled;

pub type Started = Result<(), OutOfMemory>;
pub type Watch = ((Chart, Meters), (Checker, Digest));
pub type Meters = (TaskMeter, (LockMeter, Counts));

/// A shipped machine with as many of its CPUs as wanted, `sharing` of them under each last-level
/// cache; its numbers are round.
pub fn tiny(cpus: u16, sharing: u16) -> MachineDescription {
    let text = builtin("tiny-2cpu").expect("a shipped machine");
    let mut machine = read_toml("tiny-2cpu.toml", text).expect("a sound machine");
    let (place, caches) = (machine.cpus[0], machine.caches.clone());
    let shared = |cpu: u16| cpu / sharing;
    machine.cpus = (0..cpus)
        .map(|cpu| warmq_machine::CpuPlace {
            socket: shared(cpu),
            llc: shared(cpu),
            core: cpu,
        })
        .collect();
    assert_eq!(place.llc, 0, "the first CPU's caches are the pattern");
    let of_first = |level: u8| {
        let mut of_first = caches.iter().filter(move |cache| cache.cpus == [CpuId(0)]);
        of_first
            .find(|cache| cache.level == level)
            .expect("two levels")
    };
    let first = (0..cpus).map(|cpu| (1, vec![CpuId(cpu)]));
    let last = (0..=shared(cpus - 1)).map(|llc| {
        let under = (0..cpus).filter(|cpu| shared(*cpu) == llc);
        (2, under.map(CpuId).collect())
    });
    machine.caches = first
        .chain(last)
        .map(|(level, cpus)| warmq_machine::CacheDescription {
            cpus,
            ..of_first(level).clone()
        })
        .collect();
    machine
}

/// The scheduler `name`, set as said.
pub fn scheduler(name: &str, set: &[(&str, Value)]) -> MakeScheduler {
    if name == compiled::WARMQ {
        return compiled::made(set);
    }
    let entry = warmq_sched::scheduler(name).expect("a scheduler");
    let values: BTreeMap<String, Value> = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    entry.build(Chosen::new(entry.settings(), values).expect("settings that it has"))
}

/// Costs of so many microseconds, at 100 MHz; what is not named is free.
pub fn costs(some: &[(&str, u64)]) -> Costs {
    let mut table = Costs::free().table().clone();
    for (name, us) in some {
        let cost = table.get_mut(*name).expect("a cost that the kernel knows");
        cost.cycles = Cycles(us * 100);
    }
    Costs::new(table)
}

/// What a machine does for its scheduler, apart from the workload.
pub struct Stage {
    pub cpus: u16,
    /// CPUs under each last-level cache.
    pub sharing: u16,
    pub costs: Costs,
    pub settings: Settings,
    /// What is changed of the machine.
    pub alter: fn(&mut MachineDescription),
    /// Whose promise the run is held to, and what it is.
    pub promised: (&'static str, Promise),
}

/// So many cases, unless `PROPTEST_CASES` says how many.
pub fn config(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}

/// CPUs with a kernel that costs nothing and memory that is free.
pub fn stage(cpus: u16) -> Stage {
    let settings = Settings {
        caches: false,
        timer_resolution: Duration::from_ms(1),
        ..Settings::linux24(Seed(1))
    };
    Stage {
        cpus,
        sharing: 1,
        costs: Costs::free(),
        settings,
        alter: |_| (),
        promised: ("the default", Promise::default()),
    }
}

impl Stage {
    /// What a scenario may know of its machine.
    pub fn site(&self) -> warmq_scenario::Site {
        warmq_play::site(&tiny(self.cpus, self.sharing))
    }

    /// The same with the machine's own costs and caches.
    pub fn real(self) -> Stage {
        let costs = Costs::new(tiny(1, 1).costs["linux-2.4"].clone());
        let settings = Settings {
            caches: true,
            ..self.settings
        };
        Stage {
            costs,
            settings,
            ..self
        }
    }

    /// The same on a machine changed by `alter`.
    pub fn altered(self, alter: fn(&mut MachineDescription)) -> Stage {
        Stage { alter, ..self }
    }

    /// The same, held to what the scheduler `entry` promises.
    pub fn promised_by(self, entry: &Entry) -> Stage {
        let promised = (entry.name, entry.promise);
        Stage { promised, ..self }
    }

    /// The same with a scheduler that may let tasks wait for ever.
    pub fn promised_nothing(self) -> Stage {
        let patience = Duration(u64::MAX);
        let nothing = Promise {
            patience,
            ..Promise::default()
        };
        let promised = ("nobody", nothing);
        Stage { promised, ..self }
    }

    /// The same with so many CPUs under each last-level cache.
    pub fn sharing(self, sharing: u16) -> Stage {
        Stage { sharing, ..self }
    }

    /// The same with a timer of so many milliseconds.
    pub fn tick_of(mut self, ms: u64) -> Stage {
        self.settings.tick = Duration::from_ms(ms);
        self.settings.timer_resolution = Duration::from_us(1);
        self
    }

    pub fn worn(mut self, cluster: u32) -> Stage {
        self.settings.fragmentation = Fragmentation::Worn {
            cluster,
            used_percent: 50,
        };
        self
    }

    pub fn seed(mut self, seed: u64) -> Stage {
        self.settings.seed = Seed(seed);
        self
    }

    /// Runs `workload` for `ms`, and holds the run to every invariant.
    pub fn plays(
        self,
        scheduler: MakeScheduler,
        ms: u64,
        workload: impl Workload,
    ) -> (Ending, Kernel<Watch>) {
        self.charted(Duration::from_ms(10), scheduler, ms, workload)
    }

    /// The same with a chart in which a letter is `step`.
    pub fn charted(
        self,
        step: Duration,
        scheduler: MakeScheduler,
        ms: u64,
        workload: impl Workload,
    ) -> (Ending, Kernel<Watch>) {
        let chart = Chart::new(self.cpus.into(), step);
        let meters = Meters::default();
        let (by, promise) = self.promised;
        let watch = (
            (chart, meters),
            (Checker::of_a_run().promised(promise), Digest::new()),
        );
        let (ending, kernel) = self.plays_before(watch, scheduler, ms, workload);
        keeps_the_laws(&kernel, by);
        (ending, kernel)
    }

    /// A kernel that is about to run `workload`, watched.
    pub fn boots(self, scheduler: MakeScheduler, workload: impl Workload) -> Kernel<Watch> {
        let chart = Chart::new(self.cpus.into(), Duration::from_ms(10));
        let meters = Meters::default();
        let checker = Checker::of_a_run().promised(self.promised.1);
        let watch = ((chart, meters), (checker, Digest::new()));
        self.plays_before(watch, scheduler, 0, workload).1
    }

    /// Runs `workload` for `ms` before `watch`, and judges nothing.
    pub fn plays_before<O: Observer>(
        self,
        watch: O,
        scheduler: MakeScheduler,
        ms: u64,
        workload: impl Workload,
    ) -> (Ending, Kernel<O>) {
        let mut machine = tiny(self.cpus, self.sharing);
        (self.alter)(&mut machine);
        let kernel = Kernel::boot(
            &machine,
            &self.costs,
            self.settings,
            scheduler,
            &workload,
            watch,
        );
        let mut kernel = kernel.expect("the workload fits");
        let ending = kernel.run_until(Instant::START + Duration::from_ms(ms));
        (ending, kernel)
    }

    /// The chart of `ticks` ticks of `workload` under the scheduler `name`.
    pub fn chart(self, name: &str, ticks: u64, workload: impl Workload) -> Vec<String> {
        let (_, kernel) = self.plays(scheduler(name, &[]), ticks * 10, workload);
        let end = Instant::START + Duration::from_ms(ticks * 10);
        kernel.observer().0.0.lines_until(end)
    }
}

/// The checker's invariants, coherence, and that no CPU's time is lost or counted twice.
pub fn keeps_the_laws(kernel: &Kernel<Watch>, promised_by: &str) {
    let now = kernel.now();
    let watched = kernel.observer().1.0.clone().finish(now);
    assert_eq!(watched, Ok(()), "promised by {promised_by}");
    assert_eq!(kernel.check_coherence(), Ok(()));
    assert_eq!(kernel.check_times(), Ok(()));
}

/// What the meters of a run say.
pub fn meters(kernel: &Kernel<Watch>) -> &Meters {
    &kernel.observer().0.1
}

/// The figures of the first lock.
pub fn first_lock(kernel: &Kernel<Watch>) -> LockFigures {
    meters(kernel).1.0.figures(LockId(0))
}

/// What `task` did.
pub fn task_figures(kernel: &Kernel<Watch>, task: u32) -> TaskFigures {
    let figures = meters(kernel).0.figures(TaskId(task), kernel.now());
    figures.expect("there is such a task")
}

/// Work of so many ticks.
pub fn ticks(ticks: u64) -> Cycles {
    Cycles(ticks * 1_000_000)
}

/// Sleep of so many ticks.
pub fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

/// Work that is done, in ms at full speed.
pub type Done = Rc<Cell<u64>>;

/// What is done in a second that begins at `from`, in thousandths of a CPU.
pub fn done_in_a_second(
    stage: Stage,
    name: &str,
    from: Duration,
    workload: impl Fn(&mut Boot<'_>, &Done) -> Started,
) -> u64 {
    let done = Done::default();
    let mut kernel = stage.boots(scheduler(name, &[]), |boot: &mut Boot<'_>| {
        workload(boot, &done)
    });
    let from = Instant::START + from;
    kernel.run_until(from);
    let before = done.get();
    kernel.run_until(from + Duration::from_s(1));
    done.get() - before
}

/// EEVDF of each kernel.
pub const EEVDF: [&str; 6] = [
    "eevdf-6.6",
    "eevdf-6.12",
    "eevdf-6.18",
    "eevdf-7.1",
    "eevdf-7.2",
    "eevdf-7.3",
];

pub fn cpu(cpu: u16) -> CpuId {
    CpuId(cpu)
}

pub fn called(name: &str) -> TaskSpec {
    TaskSpec::new(name, None)
}

/// A task that never sleeps.
pub fn hog(boot: &mut Boot<'_>, spec: TaskSpec) -> Result<TaskId, OutOfMemory> {
    boot.task(spec, |task: Task| async move {
        loop {
            task.compute(ticks(1)).await;
        }
    })
}

/// A task that sleeps for `asleep` ticks, works for `works`, and so on. It wakes a millisecond
/// after a tick, so that it is not charged for that one.
pub fn sleeper(
    boot: &mut Boot<'_>,
    spec: TaskSpec,
    asleep: u64,
    works: u64,
) -> Result<TaskId, OutOfMemory> {
    boot.task(spec, move |task: Task| async move {
        task.sleep(ms(asleep * 10 + 1)).await;
        loop {
            task.compute(ticks(works)).await;
            task.sleep(ms(asleep * 10)).await;
        }
    })
}
