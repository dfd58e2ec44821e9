//! Schedulers as they are raced.

use warmq_race::{Found, Race};
use warmq_sched_ext::{Facts, Loaded, Place, Source, Value};
use warmq_units::Seed;

/// CPUs of nearly all races here.
pub const CPUS: u16 = 2;

/// An object with variables set, whose loader does nothing else.
pub fn load(bytes: &[u8], set: &[(&str, i128)]) -> Loaded {
    load_for("7.3", bytes, set)
}

/// The same for a kernel.
pub fn load_for(series: &str, bytes: &[u8], set: &[(&str, i128)]) -> Loaded {
    let source = Source::read(bytes, |_| None).expect("an object");
    fit_for(series, CPUS, &source, set)
}

/// An object for a machine of so many CPUs under one cache, with variables set.
pub fn fit(cpus: u16, source: &Source, set: &[(&str, i128)]) -> Loaded {
    fit_for("7.3", cpus, source, set)
}

fn fit_for(series: &str, cpus: u16, source: &Source, set: &[(&str, i128)]) -> Loaded {
    let place = |core| Place {
        core,
        ..Place::default()
    };
    let facts = Facts::of_places((0..cpus).map(place).collect());
    let value = |(name, value): &(&str, i128)| ((*name).to_owned(), Value::Number(*value));
    let set: Vec<(String, Value)> = set.iter().map(value).collect();
    let loaded = source.load(series, &facts, &set);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

/// Three tasks, and what happens.
pub fn race<'l>(loaded: &'l Loaded, only: &'l [String]) -> Race<'l> {
    Race {
        loaded,
        cpus: CPUS,
        tasks: 3,
        steps: 40,
        only,
    }
}

/// The first fault of so many plans.
pub fn first(race: &Race<'_>, plans: u64) -> Option<Found> {
    let mut found = (1..=plans).filter_map(|seed| race.run(Seed(seed)).expect("it is attached"));
    found.find(Found::is_fault)
}
