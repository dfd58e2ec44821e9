//! Compiled schedulers by the path of their file: an object, or the program that has it inside.

use std::path::Path;

use warmq_config::{Chosen, Setting, Value};
use warmq_kernel::{BootError, MakeScheduler};
use warmq_sched_ext::{
    AtEvent, Expenses, Facts, Loaded, NotAttached, Place, Profile, Profiler, SchedExt, Source,
    Variable,
};

use super::setting;
use crate::plan::Plan;
use crate::simulator::{PartError, RunError};

/// The kernel that compiled schedulers are fitted to.
const SERIES: &str = "series";

/// The newest of these.
const NEWEST: &str = "7.3";

/// Whether the name of a scheduler is written as that of a file.
fn is_written_as_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".o")
}

/// Whether the name of a scheduler is that of a file.
pub fn is_file(name: &str) -> bool {
    is_written_as_file(name) && Path::new(name).is_file()
}

/// Texts of the profiles in `schedulers/`.
macro_rules! profiles {
    ($($name:literal)*) => {
        &[$(include_str!(concat!("../../../../schedulers/", $name, ".toml")),)*]
    };
}

/// Profiles of schedulers, by the names in their `sched_ext_ops`.
const PROFILES: &[&str] = profiles! {
    "beerland" "bpfland" "cake" "central" "chaos" "cosmos" "flash" "flatcg" "flow" "lavd" "layered"
    "mitosis" "nest" "p2dq" "pair" "pandemonium" "prev" "qmap" "rustland" "rusty" "simple" "tickless"
    "userland" "warmq"
};

fn profile(name: &str) -> Option<Profile> {
    let all = PROFILES.iter().map(|text| Profile::read(text));
    let mut all = all.map(|profile| profile.expect("a test reads all of them"));
    let found = all.find(|profile| profile.name == name)?;
    match found.like.as_deref().and_then(profile) {
        Some(base) => Some(found.over(base)),
        None => Some(found),
    }
}

/// The object in a file, and what its loader does.
fn source(name: &str) -> Result<Source, String> {
    let bytes = std::fs::read(name).map_err(|error| format!("{name}: cannot read it: {error}"))?;
    Source::read(&bytes, profile).map_err(|error| format!("{name}: {error}"))
}

/// The compiled scheduler in a file, with variables set, as its loader loads it for CPUs at these
/// places.
///
/// # Errors
/// Why it cannot be run.
pub fn load_compiled(
    name: &str,
    variables: &[(String, String)],
    places: Vec<Place>,
) -> Result<Loaded, String> {
    let set = variables.iter().map(|(name, text)| {
        let value = number(name, text).map_err(|error| error.to_string())?;
        Ok((name.clone(), value))
    });
    let set: Vec<(String, warmq_sched_ext::Value)> = set.collect::<Result<_, String>>()?;
    let loaded = source(name)?.load(NEWEST, &Facts::of_places(places), &set);
    loaded.map_err(|error| format!("{name} cannot be run in the lab: {error}"))
}

/// What can be set: what its work takes, and its variables.
pub(super) fn settings(name: &str) -> Result<Vec<Setting>, PartError> {
    let variables = source(name).map_err(PartError::Broken)?.variables();
    let mut settings = expenses();
    let taken: Vec<String> = settings.iter().map(|known| known.name.clone()).collect();
    // Those of the kernel's enums are filled as it is loaded.
    let own = variables.iter().filter(|one| !one.name.starts_with("__"));
    let free = own.filter(|one| !taken.contains(&one.name));
    settings.extend(free.map(of_variable));
    Ok(settings)
}

/// A variable that is not set here has what the loader gives it.
const AS_LOADED: &str = "as-loaded";

fn of_variable(variable: &Variable) -> Setting {
    let (least, most) = variable.range;
    let what = format!(
        "a variable of the object, {least} to {most}, {} in the file",
        variable.value
    );
    Setting::text(&variable.name, AS_LOADED).says(&what, "its loader, or the file")
}

/// The variables that are set here.
fn variables(plan: &Plan) -> Result<Vec<(String, warmq_sched_ext::Value)>, RunError> {
    let known: Vec<String> = expenses().into_iter().map(|known| known.name).collect();
    let settings = plan.scheduler.settings.iter();
    let mut variables = Vec::new();
    for (name, value) in settings.filter(|(name, _)| !known.contains(name)) {
        let Value::Text(text) = value else { continue };
        if text != AS_LOADED {
            variables.push((name.clone(), number(name, text)?));
        }
    }
    Ok(variables)
}

fn number(name: &str, text: &str) -> Result<warmq_sched_ext::Value, RunError> {
    let number = match text {
        "true" => Some(1),
        "false" => Some(0),
        text => text.replace('_', "").parse().ok(),
    };
    let refused = || setting(format!("{name} is a number, true or false, not {text}"));
    number
        .map(warmq_sched_ext::Value::Number)
        .ok_or_else(refused)
}

/// What the program's work takes, in instructions of the machine.
fn expenses() -> Vec<Setting> {
    let cost = |name: &str, default: i64, what: &str, source: &str| {
        Setting::count(name, (0, 100_000), default, "instructions").says(what, source)
    };
    vec![
        Setting::choice(SERIES, &[NEWEST, "6.18"]).says(
            "the kernel that it is fitted to",
            "the newest of which there is a table",
        ),
        cost(
            "bpf_instructions",
            120,
            "what 100 BPF instructions take, besides memory",
            "scripts/bpf-costs.sh: 1 of an addition, a load or a store, 2 of a branch; a fifth as branches",
        ),
        cost(
            "bpf_kfunc",
            60,
            "what a call of a kfunc takes that was not measured, besides memory",
            "the mean of those that were, by scripts/bpf-costs.sh",
        ),
        cost(
            "bpf_helper",
            40,
            "what a call of a helper takes that was not measured, besides memory",
            "the mean of those that were, without timers and updates, by scripts/bpf-costs.sh",
        ),
        cost(
            "bpf_callback",
            120,
            "what calling the program takes",
            "scripts/bpf-costs.sh: 122 in 6.18, 118 in 7.3",
        ),
    ]
}

/// A compiled scheduler, as it is described.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The name in its `sched_ext_ops`.
    pub name: String,
    /// Callbacks that it defines.
    pub callbacks: Vec<String>,
    /// Its profile: where that comes from, and what it leaves out. None: its loader does nothing
    /// that the lab knows of.
    pub profile: Option<(String, String)>,
    /// Events at which a kernel runs its programs, and the lab does not.
    pub left_out: Vec<String>,
    /// Events at which a kernel runs its programs, and that never happen in the lab.
    pub never: Vec<String>,
    /// For each kernel that the lab knows, why the lab cannot run it as on that: nothing, if it
    /// can.
    pub refused: Vec<(String, Vec<String>)>,
    /// What can be set.
    pub settings: Vec<Setting>,
}

/// The compiled scheduler in a file; `None`, if the name is not written as that of a file.
///
/// # Errors
/// Why it cannot be read.
pub fn compiled(name: &str) -> Option<Result<Compiled, String>> {
    is_written_as_file(name).then(|| describe(name))
}

fn describe(name: &str) -> Result<Compiled, String> {
    let source = source(name)?;
    let facts = Facts::of_places(vec![Place::default()]);
    let why = |series: &&str| {
        let refused = source.load(series, &facts, &[]).err();
        let why = refused.map(|error| error.reasons()).unwrap_or_default();
        ((*series).to_owned(), why)
    };
    let events = source.events();
    let events = |what: AtEvent| {
        let at = events.iter().filter(|(_, lab)| *lab == what);
        at.map(|(event, _)| event.clone()).collect()
    };
    let known = source.profile();
    let profile =
        (known.name == source.name()).then(|| (known.source.clone(), known.lacks.clone()));
    Ok(Compiled {
        name: source.name().to_owned(),
        callbacks: source.callbacks().map(str::to_owned).collect(),
        profile,
        left_out: events(AtEvent::LeftOut),
        never: events(AtEvent::Never),
        refused: [NEWEST, "6.18"].iter().map(why).collect(),
        settings: settings(name).map_err(|error| error.to_string())?,
    })
}

/// What makes the scheduler of `plan`.
pub(super) fn maker(
    plan: &Plan,
    chosen: &Chosen,
    profiler: Option<Profiler>,
) -> Result<MakeScheduler, RunError> {
    let name = &plan.scheduler.name;
    let source = source(name).map_err(setting)?;
    let variables = variables(plan)?;
    let series = chosen.choice(SERIES).to_owned();
    let expenses = Expenses {
        instructions: chosen.count("bpf_instructions"),
        kfunc: chosen.count("bpf_kfunc"),
        helper: chosen.count("bpf_helper"),
        callback: chosen.count("bpf_callback"),
    };
    let seed = plan.seed.stream("bpf_get_prandom_u32").next();
    let name = name.clone();
    Ok(Box::new(move |attach| {
        let loaded = source.load(&series, &Facts::of(attach), &variables);
        let loaded = loaded.map_err(|error| {
            BootError::Scheduler(format!("{name} cannot be run in the lab: {error}"))
        })?;
        match SchedExt::attach(&loaded, attach, expenses, seed) {
            Ok(scheduler) => Ok(Box::new(match &profiler {
                Some(profiler) => scheduler.profiled(&loaded, profiler),
                None => scheduler,
            })),
            Err(NotAttached::Cost(unknown)) => Err(BootError::Cost(unknown)),
            Err(error) => Err(BootError::Scheduler(error.to_string())),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_read() {
        for text in PROFILES {
            let profile = Profile::read(text).expect("a profile");
            assert!(!profile.source.is_empty(), "{}", profile.name);
            let known = super::profile(&profile.name).expect("found by its name");
            assert_eq!(known.name, profile.name);
            if let Some(like) = &profile.like {
                assert!(
                    super::profile(like).is_some(),
                    "{} is like {like}",
                    profile.name
                );
            }
        }
    }
}
