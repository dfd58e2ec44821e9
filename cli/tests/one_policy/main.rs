//! The compiled scx_warmq in the lab, and the same program compiled for this machine under a small
//! model of sched_ext (live/native), are fed the same events, those of random workloads, and must
//! decide the same each time: the CPU for a task that wakes, the CPUs that are asked to reschedule,
//! the task that a CPU runs next, and when it gives way. So lab/sched-ext and lab/bpf-run do what
//! two independent readings of the kernel and of BPF say.
//!
//! Tasks change their own nice value and affinity, and others change these and cgroups from
//! outside. CPUs stay online: the real scx_warmq is loaded anew when one goes or comes
//! (SCX_ECODE_ACT_RESTART, load.rs).
//!
//! The compiled one is followed. Decisions and switches take no time, because those of the native
//! program take none.

mod later;
mod pair;

use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use warmq_kernel::{Costs, Ending, Kernel, MakeScheduler, Policy, Settings};
use warmq_machine::{CpuPlace, builtin, read_toml};
use warmq_random::{Act, Script, scripts};
use warmq_sched_ext::{Expenses, Facts, Profile, SchedExt, Source, Value};
use warmq_units::{Cycles, Duration, Instant, Seed};

use crate::later::{Changing, Later, later};
use crate::pair::Pair;

/// What the model of sched_ext does not have is left out.
fn playable(mut script: Script) -> Script {
    for part in &mut script.parts {
        part.acts.retain(|act| !matches!(act, Act::Online(..)));
        if matches!(part.policy, Policy::Fifo(_) | Policy::RoundRobin(_)) {
            part.policy = Policy::Other;
        }
    }
    script
}

/// System calls take time, so that not everything happens at once; nothing else of the kernel does.
fn costs() -> Costs {
    let mut table = Costs::free().table().clone();
    let system_call = table.get_mut("system_call").expect("the kernel's own cost");
    system_call.cycles = Cycles(300);
    Costs::new(table)
}

/// Changes what the CPU of a number shares with others.
type Alter = fn(usize, &mut CpuPlace);

/// A machine, and where groups live on it.
#[derive(Clone, Copy, Debug)]
struct Place {
    machine: &'static str,
    alter: Alter,
    cpus: usize,
    groups: &'static str,
}

fn as_shipped(_: usize, _: &mut CpuPlace) {}

/// Two cores of two threads under each cache.
fn two_cores_a_cache(number: usize, place: &mut CpuPlace) {
    place.llc = number as u16 / 4;
}

/// Two caches of two CPUs in each of two nodes.
fn two_nodes(number: usize, place: &mut CpuPlace) {
    place.socket = number as u16 / 4;
}

/// As `two_cores_a_cache`, and each cache in a node of its own.
fn a_node_a_cache(number: usize, place: &mut CpuPlace) {
    two_cores_a_cache(number, place);
    place.socket = place.llc;
}

fn four_threads_a_core(number: usize, place: &mut CpuPlace) {
    place.core = number as u16 / 4;
}

/// Own caches, shared ones, several CPUs under each of several; cores of two threads, numbered side
/// by side or not, under one cache or two; cores of four.
fn places() -> impl Strategy<Value = Place> {
    let machines = prop_oneof![
        (1usize..=8).prop_map(|cpus| ("p3xeon-8way", as_shipped as Alter, cpus)),
        (1usize..=8).prop_map(|cpus| ("small-4llc", as_shipped as Alter, cpus)),
        (1usize..=4).prop_map(|cpus| ("small-smt", as_shipped as Alter, cpus)),
        (1usize..=8).prop_map(|cpus| ("smt-8core", as_shipped as Alter, cpus)),
        (5usize..=12).prop_map(|cpus| ("smt-8core", two_cores_a_cache as Alter, cpus)),
        (5usize..=8).prop_map(|cpus| ("small-4llc", two_nodes as Alter, cpus)),
        (5usize..=12).prop_map(|cpus| ("smt-8core", a_node_a_cache as Alter, cpus)),
        (5usize..=12).prop_map(|cpus| ("smt-8core", four_threads_a_core as Alter, cpus)),
    ];
    let groups = prop::sample::select(&["llc", "cpu"][..]);
    (machines, groups).prop_map(|((machine, alter, cpus), groups)| Place {
        machine,
        alter,
        cpus,
        groups,
    })
}

/// The object in the program of scx_warmq, beside the tests; none, where nobody has built it.
fn object() -> Option<&'static Source> {
    static OBJECT: OnceLock<Option<Source>> = OnceLock::new();
    let read = || {
        let path = std::env::current_exe().ok()?;
        let bytes = std::fs::read(path.ancestors().nth(2)?.join("scx_warmq")).ok()?;
        let profile = Profile::read(include_str!("../../../schedulers/warmq.toml"));
        let profile = profile.expect("a profile");
        Some(Source::read(&bytes, |_| Some(profile.clone())).expect("an object"))
    };
    let or_skipped = || {
        let object = read();
        if object.is_none() {
            eprintln!("SKIPPED: `cargo build -p scx_warmq` makes what this test needs");
        }
        object
    };
    OBJECT.get_or_init(or_skipped).as_ref()
}

fn play(object: &'static Source, script: &Script, later: &Later, place: Place) -> Ending {
    let text = builtin(place.machine).expect("a shipped machine");
    let mut machine = read_toml(place.machine, text).expect("a sound machine");
    machine.cpus.truncate(place.cpus);
    let cpus = machine.cpus.iter_mut().enumerate();
    cpus.for_each(|(number, cpu)| (place.alter)(number, cpu));
    let settings = Settings {
        caches: false,
        ..warmq_sched::COMPILED.kernel_settings(Seed(1))
    };
    let by_cpu = place.groups == "cpu";
    let pair: MakeScheduler = Box::new(move |attach| {
        // A name means the same data to all: the program beside it knows no processes.
        let set = [("place", place.groups), ("scope", "system")];
        let set = set.map(|(option, value)| (option.to_owned(), Value::Text(value.to_owned())));
        let loaded = object.load("7.3", &Facts::of(attach), &set);
        let loaded = loaded.expect("the lab can run it");
        let nothing = Expenses {
            instructions: 0,
            kfunc: 0,
            helper: 0,
            callback: 0,
        };
        let compiled = SchedExt::attach(&loaded, attach, nothing, 1).expect("it fits");
        Ok(Box::new(Pair::new(attach, by_cpu, Box::new(compiled))))
    });
    let workload = &Changing { script, later };
    let kernel = Kernel::boot(&machine, &costs(), settings, pair, workload, ());
    let mut kernel = kernel.expect("the workload fits");
    kernel.run_until(Instant::START + Duration::from_ms(300))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::with_cases(1500) })]

    #[test]
    fn the_compiled_program_decides_as_the_native_one(
        script in scripts().prop_map(playable),
        later in later(),
        place in places(),
    ) {
        let Some(object) = object() else {
            return Ok(());
        };
        let ending = play(object, &script, &later, place);
        prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{ending}");
    }
}
