//! A small machine under a compiled scheduler.

use std::collections::BTreeMap;

use warmq_kernel::*;
use warmq_machine::{MachineDescription, OutOfMemory, builtin, read_toml};
use warmq_sched_ext::{Expenses, Facts, Loaded, Profile, Profiler, SchedExt, Source, Value};
use warmq_trace::{Checker, Digest};
use warmq_units::{Duration, Instant, Seed};

pub const ORDER: &[u8] = include_bytes!("../programs/order.bpf.o");
pub const FAULTS: &[u8] = include_bytes!("../programs/faults.bpf.o");

pub type Started = Result<(), OutOfMemory>;

pub fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

/// Computes for 1 ms and sleeps for 2 ms, again and again.
pub fn sleeper(boot: &mut Boot<'_>) -> Started {
    boot.task(called("a"), |task: Task| async move {
        loop {
            task.compute_for(ms(1)).await;
            task.sleep(ms(2)).await;
        }
    })?;
    Ok(())
}

fn shipped(name: &str) -> MachineDescription {
    let text = builtin(name).expect("a shipped machine");
    read_toml(name, text).expect("a sound machine")
}

/// So many of the two CPUs of a shipped machine.
fn machine(cpus: usize) -> MachineDescription {
    let mut machine = shipped("tiny-2cpu");
    machine.cpus.truncate(cpus);
    for cache in &mut machine.caches {
        cache.cpus.retain(|cpu| cpu.index() < cpus);
    }
    machine.caches.retain(|cache| !cache.cpus.is_empty());
    machine
}

/// An object with variables set.
pub fn load(object: &[u8], series: &str, variables: &[(&str, i128)]) -> Loaded {
    load_with(object, series, Profile::default(), variables)
}

/// The same, with what its loader does.
pub fn load_with(
    object: &[u8],
    series: &str,
    profile: Profile,
    variables: &[(&str, i128)],
) -> Loaded {
    let value = |(name, value): &(&str, i128)| ((*name).to_owned(), Value::Number(*value));
    let variables: Vec<(String, Value)> = variables.iter().map(value).collect();
    let source = Source::read(object, |_| Some(profile)).expect("an object");
    let loaded = source.load(series, &Facts::default(), &variables);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

/// How a run ended, and its digest.
pub struct Played {
    pub ending: Ending,
    pub digest: String,
    /// For how long each CPU has waited busily.
    pub spun: Vec<Duration>,
    /// For how long each CPU has run programs.
    pub computed: Vec<Duration>,
    /// What the checker of all runs found.
    pub violation: Option<String>,
    /// What the program counted.
    pub counted: BTreeMap<String, u64>,
}

/// What the program said when it was ejected, without the place.
pub fn said(played: &Played) -> String {
    let Ending::SchedulerBroke(violation) = &played.ending else {
        return format!("not ejected: {}", played.ending);
    };
    match &violation.rule {
        Rule::Ejected(why) => match why.rsplit_once("): ") {
            Some((_, said)) => said.to_owned(),
            None => why.clone(),
        },
        rule => rule.to_string(),
    }
}

type Watchers = (Digest, Checker);

/// A machine under an object.
pub struct Stage {
    pub loaded: Loaded,
    pub machine: MachineDescription,
    pub expenses: Expenses,
    pub costs: Costs,
    pub caches: bool,
    pub profiler: Option<Profiler>,
    /// Where its kernel is preempted.
    pub preemption: Preemption,
}

impl Stage {
    /// So many CPUs, on which nothing costs anything.
    pub fn new(loaded: Loaded, cpus: usize) -> Stage {
        let expenses = Expenses {
            instructions: 0,
            kfunc: 0,
            helper: 0,
            callback: 0,
        };
        Stage {
            loaded,
            machine: machine(cpus),
            expenses,
            costs: Costs::free(),
            caches: false,
            profiler: None,
            preemption: Preemption::None,
        }
    }

    /// So many CPUs, on which the kernel's paths cost what was measured.
    pub fn with_costs(loaded: Loaded, cpus: usize) -> Stage {
        let measured = &shipped("server-24llc").costs["linux-6.18"];
        Stage {
            costs: Costs::new(measured.clone()),
            ..Stage::new(loaded, cpus)
        }
    }

    /// Eight CPUs, on which everything costs what was measured, with caches.
    pub fn costly(loaded: Loaded) -> Stage {
        Stage {
            expenses: Expenses::default(),
            caches: true,
            machine: shipped("small-4llc"),
            ..Stage::with_costs(loaded, 1)
        }
    }

    fn boot(self, workload: &dyn Workload) -> Result<Kernel<Watchers>, BootError> {
        let settings = Settings {
            caches: self.caches,
            preemption: self.preemption,
            timer_resolution: ms(1),
            sync_socket_wakeups: true,
            ..Settings::linux24(Seed(1)).at_hz(250)
        };
        let (machine, costs) = (self.machine.clone(), self.costs.clone());
        let watchers = (Digest::new(), Checker::of_a_run());
        Kernel::boot(&machine, &costs, settings, self.make(), workload, watchers)
    }

    /// Plays a workload for `time` ms.
    pub fn play(self, time: u64, workload: &dyn Workload) -> Played {
        let played = self.try_play(time, workload);
        played.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same, unless the object cannot be attached.
    pub fn try_play(self, time: u64, workload: &dyn Workload) -> Result<Played, BootError> {
        let mut kernel = self.boot(workload)?;
        let ending = kernel.run_until(Instant::START + ms(time));
        let spent = kernel.spent_by_cpu();
        let of = |mode: Mode| spent.iter().map(|spent| spent[mode as usize]).collect();
        let (spun, computed) = (of(Mode::Spin), of(Mode::User));
        let counted = kernel.counted_by_scheduler().into_iter().collect();
        let (digest, checker) = kernel.into_observer();
        Ok(Played {
            counted,
            ending,
            digest: digest.to_string(),
            spun,
            computed,
            violation: checker.violation().map(ToString::to_string),
        })
    }

    fn make(self) -> MakeScheduler {
        Box::new(move |attach| {
            let attached = SchedExt::attach(&self.loaded, attach, self.expenses, 1);
            let attached = attached.map_err(|error| BootError::Scheduler(error.to_string()))?;
            Ok(Box::new(match &self.profiler {
                Some(profiler) => attached.profiled(&self.loaded, profiler),
                None => attached,
            }))
        })
    }
}

/// Plays a workload for `time` ms under an object, on so many CPUs, for which nothing costs
/// anything.
pub fn play(loaded: Loaded, cpus: usize, time: u64, workload: &dyn Workload) -> Played {
    Stage::new(loaded, cpus).play(time, workload)
}

/// Why an object cannot be attached.
pub fn refused(loaded: Loaded, cpus: usize) -> String {
    let booted = Stage::new(loaded, cpus).boot(&|_: &mut Boot<'_>| Ok(()));
    booted
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default()
}

pub fn called(name: &str) -> TaskSpec {
    TaskSpec::new(name, None)
}

/// A task that computes for a millisecond and exits.
pub fn exits(boot: &mut Boot<'_>, spec: TaskSpec) -> Started {
    boot.task(spec, |task: Task| async move {
        task.compute_for(ms(1)).await;
    })?;
    Ok(())
}

/// A task that computes without end.
pub fn hog(boot: &mut Boot<'_>, spec: TaskSpec) -> Started {
    boot.task(spec, |task: Task| async move {
        loop {
            task.compute_for(ms(1)).await;
        }
    })?;
    Ok(())
}
