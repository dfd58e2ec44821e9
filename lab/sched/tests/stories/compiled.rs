//! The compiled scx_warmq among the schedulers that stories are about, where it was built.

use std::sync::OnceLock;

use warmq_config::Value;
use warmq_kernel::{MakeScheduler, Settings, Throttling};
use warmq_sched::{COMPILED, Entry, SCHEDULERS};
use warmq_sched_ext::{Expenses, Facts, Profile, Profiler, SchedExt, Source};

/// Its name among the schedulers.
pub const WARMQ: &str = "scx_warmq";

struct Compiled {
    source: Source,
    entry: Entry,
}

/// The object in the program of scx_warmq, beside the tests; none, where nobody has built it.
fn warmq() -> Option<&'static Compiled> {
    static WARMQ: OnceLock<Option<Compiled>> = OnceLock::new();
    let or_skipped = || {
        let read = read();
        if read.is_none() {
            eprintln!("SKIPPED: `cargo build -p scx_warmq` makes what this test needs");
        }
        read
    };
    WARMQ.get_or_init(or_skipped).as_ref()
}

fn read() -> Option<Compiled> {
    let path = std::env::current_exe().ok()?;
    let bytes = std::fs::read(path.ancestors().nth(2)?.join(WARMQ)).ok()?;
    let profile = Profile::read(include_str!("../../../../schedulers/warmq.toml"));
    let profile = profile.expect("a profile");
    let source = Source::read(&bytes, |_| Some(profile.clone())).expect("an object");
    let mut entry = COMPILED;
    entry.name = WARMQ;
    entry.promise = profile.promise();
    Some(Compiled { source, entry })
}

/// Whether the compiled scx_warmq was not built, so that a story of it alone is skipped.
pub fn is_missing() -> bool {
    warmq().is_none()
}

/// The schedulers of the lab, and the compiled one.
pub fn schedulers() -> impl Iterator<Item = &'static Entry> {
    SCHEDULERS
        .iter()
        .chain(warmq().map(|compiled| &compiled.entry))
}

/// The settings of a kernel under the scheduler `name`: a compiled one keeps quotas by itself.
pub fn under(name: &str, settings: Settings) -> Settings {
    match name {
        WARMQ => Settings {
            throttling: Throttling::Scheduler,
            ..settings
        },
        _ => settings,
    }
}

/// The compiled one, whose instructions take no time, with options as said. Each task of a story is
/// a process, and a name means the same data to all.
pub fn made(set: &[(&str, Value)]) -> MakeScheduler {
    made_and_profiled(set, None)
}

/// The same, whose callbacks are counted, if somebody counts.
pub fn made_and_profiled(set: &[(&str, Value)], profiler: Option<&Profiler>) -> MakeScheduler {
    let profiler = profiler.cloned();
    let source = &warmq().expect("looked for before").source;
    let of_all = ("scope", Value::Text("system".to_owned()));
    let given = set.iter().chain([&of_all]);
    let given: Vec<_> = given
        .map(|(name, value)| ((*name).to_owned(), value.into()))
        .collect();
    let nothing = Expenses {
        instructions: 0,
        kfunc: 0,
        helper: 0,
        callback: 0,
    };
    Box::new(move |attach| {
        let loaded = source.load("7.3", &Facts::of(attach), &given);
        let loaded = loaded.expect("the lab can run it");
        let attached = SchedExt::attach(&loaded, attach, nothing, 1).expect("it fits");
        Ok(Box::new(match &profiler {
            Some(profiler) => attached.profiled(&loaded, profiler),
            None => attached,
        }))
    })
}
