//! Compiled schedulers, where scripts/objects.sh has made their objects.

use std::path::PathBuf;

use warmq_kernel::MakeScheduler;
use warmq_sched_ext::{Expenses, Facts, Profile, SchedExt, Source};

/// A compiled scheduler.
pub(crate) struct Compiled {
    /// Its object, in `objects` beside what cargo builds.
    pub(crate) object: &'static str,
    /// What its loader does.
    pub(crate) profile: &'static str,
}

pub(crate) const BPFLAND: Compiled = Compiled {
    object: "bpfland.bpf.o",
    profile: include_str!("../../../../schedulers/bpfland.toml"),
};

pub(crate) const WARMQ: Compiled = Compiled {
    object: "warmq.bpf.o",
    profile: include_str!("../../../../schedulers/warmq.toml"),
};

impl Compiled {
    fn path(&self) -> Option<PathBuf> {
        let bench = std::env::current_exe().ok()?; // target/release/deps/engine-...
        Some(bench.ancestors().nth(3)?.join("objects").join(self.object))
    }

    /// Whether its object was made.
    pub(crate) fn is_there(&self) -> bool {
        self.path().is_some_and(|path| path.is_file())
    }

    /// The scheduler, for a kernel 7.3.
    pub(crate) fn make(&self) -> MakeScheduler {
        let path = self.path().expect("looked for before");
        let bytes = std::fs::read(path).expect("an object that can be read");
        let profile = Profile::read(self.profile).expect("a profile of ours");
        let source = Source::read(&bytes, |_| Some(profile)).expect("an object");
        Box::new(move |attach| {
            let loaded = source.load("7.3", &Facts::of(attach), &[]);
            let loaded = loaded.expect("the lab can run it");
            let attached = SchedExt::attach(&loaded, attach, Expenses::default(), 1);
            Ok(Box::new(attached.expect("it fits")))
        })
    }
}
