//! Compiled schedulers by the path of their file (an object, or the program that has it inside), or
//! by the name of their program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use warmq_config::{Chosen, Setting, Value, texts};
use warmq_kernel::{BootError, MakeScheduler};
use warmq_metrics::Described;
use warmq_sched_ext::{
    AtEvent, Expenses, Facts, Loaded, NotAttached, Place, Profile, Profiler, SchedExt, Source,
    Variable, is_object,
};

use super::lab::Made;
use super::measure::metric;
use super::setting;
use crate::plan::{KERNEL, Plan};
use crate::simulator::{Cause, MetricDescription, PartError, RunError};

/// The kernel that compiled schedulers are fitted to.
pub(crate) const SERIES: &str = "series";

/// The newest of these.
const NEWEST: &str = "7.3";

/// Whether the name of a scheduler is written as that of a file.
fn is_written_as_file(name: &str) -> bool {
    name.contains('/') || name.ends_with(".o")
}

/// From the name of a program to its file.
pub type FindProgram = fn(&str) -> Option<PathBuf>;

/// The compiled schedulers that can be named.
pub(crate) struct Programs {
    /// Nothing here looks for programs.
    find: FindProgram,
    /// What was read, by the name that was given.
    read: Mutex<BTreeMap<String, Result<Arc<Source>, String>>>,
}

impl Default for Programs {
    fn default() -> Programs {
        Programs::found_by(|_| None)
    }
}

impl Programs {
    /// Those whose programs `find` finds.
    pub(super) fn found_by(find: FindProgram) -> Programs {
        Programs {
            find,
            read: Mutex::default(),
        }
    }

    /// The file of the scheduler `name`, if it is a compiled one that is here. Schedulers of the
    /// lab come before programs of the same name.
    fn file(&self, name: &str) -> Option<PathBuf> {
        match is_written_as_file(name) {
            true => Some(PathBuf::from(name)).filter(|path| path.is_file()),
            false if name == KERNEL || warmq_sched::scheduler(name).is_some() => None,
            false => (self.find)(name),
        }
    }

    /// Whether `name` is that of a compiled scheduler: one that is here, or one that has a profile.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.file(name).is_some() || profile_of_program(name).is_some()
    }

    /// Why the compiled scheduler `name`, which is known, cannot be played here, if it is missing.
    pub(super) fn missing(&self, name: &str) -> Option<String> {
        if self.file(name).is_some() {
            return None;
        }
        let profile = profile_of_program(name)?;
        let makes = match profile.made_by.as_str() {
            "" => "install it, or give the path of its program or of its object".to_owned(),
            command => format!("`{command}` makes it"),
        };
        Some(format!(
            "{name} is neither beside warmq nor on PATH: {makes}"
        ))
    }

    /// The programs that have a profile and are here, or are made by a command: their names, and
    /// what they are.
    pub(super) fn listed(&self) -> Vec<(String, String)> {
        let all = profiles().map(|profile| (program_of(&profile), profile));
        let known =
            all.filter(|(name, profile)| !profile.made_by.is_empty() || self.file(name).is_some());
        known
            .map(|(name, profile)| (name, listed_as(&profile)))
            .collect()
    }

    /// The object of the scheduler `name`, and what its loader does. It is read once.
    fn source(&self, name: &str) -> Result<Arc<Source>, String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let source = || self.read_source(name).map(Arc::new);
        read.entry(name.to_owned()).or_insert_with(source).clone()
    }

    /// The figures of what the scheduler `name` counts; none, if it cannot be read.
    pub(super) fn metrics(&self, name: &str) -> Vec<MetricDescription> {
        let known = self.knows(name).then(|| self.source(name));
        let sources = known.into_iter().flatten();
        let counters = sources.flat_map(|source| source.counters().to_vec());
        counters
            .map(|counter| metric(Described::of_counter(&counter.name)))
            .collect()
    }

    /// What the scheduler `name` counts, as `warmq-player --counters` takes it.
    pub(crate) fn written_counters(&self, name: &str, cpus: usize) -> String {
        let known = self.knows(name).then(|| self.source(name).ok()).flatten();
        known.map_or(String::new(), |source| source.written_counters(cpus as u32))
    }

    fn read_source(&self, name: &str) -> Result<Source, String> {
        let file = self.file(name);
        let file = file.as_deref().unwrap_or(Path::new(name));
        let bytes = std::fs::read(file);
        let bytes = bytes.map_err(|error| format!("{name}: cannot read it: {error}"))?;
        Source::read(&bytes, profile).map_err(|error| format!("{name}: {error}"))
    }
}

/// Profiles of schedulers in `schedulers/`, by the names in their `sched_ext_ops`.
const PROFILES: &[(&str, &str)] = texts! {
    "../../../../schedulers/":
    "beerland" "bpfland" "cake" "central" "chaos" "cosmos" "flash" "flatcg" "flow" "lavd" "layered"
    "mitosis" "nest" "p2dq" "pair" "pandemonium" "prev" "qmap" "rustland" "rusty" "simple" "tickless"
    "userland" "warmq"
};

fn profiles() -> impl Iterator<Item = Profile> {
    let all = PROFILES.iter().map(|(_, text)| Profile::read(text));
    all.map(|profile| profile.expect("a test reads all of them"))
}

fn profile(name: &str) -> Option<Profile> {
    let found = profiles().find(|profile| profile.name == name)?;
    match found.like.as_deref().and_then(profile) {
        Some(base) => Some(found.over(base)),
        None => Some(found),
    }
}

fn listed_as(profile: &Profile) -> String {
    let about = Some(&profile.what).filter(|what| !what.is_empty());
    let about = about.unwrap_or(&profile.source);
    format!("compiled: {about}")
}

/// What the programs of schedulers are called: `scx_` and the name in their `sched_ext_ops`.
const PREFIX: &str = "scx_";

fn program_of(profile: &Profile) -> String {
    format!("{PREFIX}{}", profile.name)
}

/// The profile of a scheduler, by the name of its program.
fn profile_of_program(name: &str) -> Option<Profile> {
    profile(name.strip_prefix(PREFIX)?)
}

impl Programs {
    /// What can be set: what its work takes, its loader's options, and its variables. Nobody knows
    /// the variables of a program that is missing.
    pub(super) fn settings(&self, name: &str) -> Result<Vec<Setting>, PartError> {
        let is_missing = self.file(name).is_none();
        let alone = is_missing.then(|| profile_of_program(name)).flatten();
        let (profile, variables) = match alone {
            Some(profile) => (profile, Vec::new()),
            None => {
                let source = self.source(name).map_err(PartError::Broken)?;
                (source.profile().clone(), source.variables())
            }
        };
        let mut settings = expenses();
        settings.extend(profile.settings());
        let taken: Vec<String> = settings.iter().map(|known| known.name.clone()).collect();
        // Those of the kernel's enums are filled as it is loaded.
        let own = variables.iter().filter(|one| !one.name.starts_with("__"));
        let free = own.filter(|one| !taken.contains(&one.name));
        settings.extend(free.map(of_variable));
        Ok(settings)
    }
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

/// The options and the variables that are set here.
fn given(settings: &Values, profile: &Profile) -> Result<Vec<Given>, RunError> {
    let named = |settings: Vec<Setting>| -> BTreeSet<String> {
        settings.into_iter().map(|known| known.name).collect()
    };
    let (costs, options) = (named(expenses()), named(profile.settings()));
    let mut given = Vec::new();
    for (name, value) in settings.iter().filter(|(name, _)| !costs.contains(*name)) {
        match value {
            value if options.contains(name) => given.push((name.clone(), value.into())),
            Value::Text(text) if text != AS_LOADED => {
                given.push((name.clone(), number(name, text)?));
            }
            _ => {}
        }
    }
    Ok(given)
}

type Given = (String, warmq_sched_ext::Value);

/// What is set, by its name.
type Values = BTreeMap<String, Value>;

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
    let cost = |name: &str, default: u64, what: &str, source: &str| {
        Setting::count(name, (0, 100_000), default as i64, "instructions").says(what, source)
    };
    let measured = Expenses::default();
    vec![
        Setting::choice(SERIES, &[NEWEST, "6.18"]).says(
            "the kernel that it is fitted to",
            "the newest of which there is a table",
        ),
        cost(
            "bpf_instructions",
            measured.instructions,
            "what 100 BPF instructions take, besides memory",
            "scripts/bpf-costs.sh: 1 of an addition, a load or a store, 2 of a branch; a fifth as branches",
        ),
        cost(
            "bpf_kfunc",
            measured.kfunc,
            "what a call of a kfunc takes that was not measured, besides memory",
            "the mean of those that were, by scripts/bpf-costs.sh",
        ),
        cost(
            "bpf_helper",
            measured.helper,
            "what a call of a helper takes that was not measured, besides memory",
            "the mean of those that were, without timers and updates, by scripts/bpf-costs.sh",
        ),
        cost(
            "bpf_callback",
            measured.callback,
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

fn describe(source: &Source, settings: Vec<Setting>) -> Compiled {
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
    Compiled {
        name: source.name().to_owned(),
        callbacks: source.callbacks().map(str::to_owned).collect(),
        profile,
        left_out: events(AtEvent::LeftOut),
        never: events(AtEvent::Never),
        refused: [NEWEST, "6.18"].iter().map(why).collect(),
        settings,
    }
}

impl Programs {
    /// The compiled scheduler `name`, as it is described; `None`, if it is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn described(&self, name: &str) -> Option<Result<Compiled, String>> {
        if !is_written_as_file(name) && !self.knows(name) {
            return None;
        }
        let described = || {
            self.missing(name).map_or(Ok(()), Err)?;
            let settings = self.settings(name).map_err(|error| error.to_string())?;
            Ok(describe(&*self.source(name)?, settings))
        };
        Some(described())
    }

    /// The compiled scheduler `name`, with variables set, as its loader loads it for CPUs at these
    /// places.
    ///
    /// # Errors
    /// Why it cannot be run.
    pub(super) fn loaded(
        &self,
        name: &str,
        variables: &[(String, String)],
        places: Vec<Place>,
    ) -> Result<Loaded, String> {
        self.missing(name).map_or(Ok(()), Err)?;
        let set = variables.iter().map(|(name, text)| {
            let value = number(name, text).map_err(|error| error.to_string())?;
            Ok((name.clone(), value))
        });
        let set: Vec<Given> = set.collect::<Result<_, String>>()?;
        let loaded = self
            .source(name)?
            .load(NEWEST, &Facts::of_places(places), &set);
        loaded.map_err(|error| format!("{name} cannot be run in the lab: {error}"))
    }

    /// The compiled scheduler `name` as a file that a kernel of a series starts as a script of
    /// `loader`, with what its own loader does on CPUs at these places; none, if it is a program,
    /// which does that itself.
    ///
    /// # Errors
    /// Why that cannot be.
    pub(crate) fn packed(
        &self,
        (name, settings): (&str, &Values),
        (loader, series): (&str, &str),
        places: Vec<Place>,
    ) -> Result<Option<Vec<u8>>, RunError> {
        let bytes = self.file(name).and_then(|file| std::fs::read(file).ok());
        let Some(object) = bytes.filter(|bytes| is_object(bytes)) else {
            return self.check_program(name, settings).map(|()| None);
        };
        let known = self.settings(name);
        super::chosen(known.map_err(|error| setting(error.to_string()))?, settings)?;
        let source = self.source(name).map_err(setting)?;
        let given = given(settings, source.profile())?;
        let facts = Facts::of_places(places);
        let packed = source.packed(&object, (loader, series), &facts, &given);
        packed
            .map(Some)
            .map_err(|error| setting(format!("{name} cannot be run in a guest: {error}")))
    }

    /// That nothing is set which only the program of a scheduler itself could set.
    fn check_program(&self, name: &str, settings: &Values) -> Result<(), RunError> {
        let costs = expenses();
        let is_cost = |key: &str| costs.iter().any(|cost| cost.name == key);
        let known = self.settings(name).unwrap_or_default();
        let is_usual = |one: &Setting| {
            settings
                .get(&one.name)
                .is_none_or(|set| *set == one.default)
        };
        let mut set = known.iter().filter(|one| !is_usual(one));
        match set.find(|one| !is_cost(&one.name)) {
            Some(one) => Err(setting(format!(
                "{name} is a program, and under a real kernel only it can set `{}`: give it its options, as \
                 in --set options='--NAME VALUE', or give the object alone",
                one.name
            ))),
            None => Ok(()),
        }
    }

    /// The scheduler of `plan`.
    pub(super) fn made(&self, plan: &Plan, profiler: Option<Profiler>) -> Result<Made, RunError> {
        let name = &plan.scheduler.name;
        if let Some(what) = self.missing(name) {
            let cause = Cause::NoProgram;
            return Err(RunError { what, cause });
        }
        let known = self.settings(name);
        let known = known.map_err(|error| setting(error.to_string()))?;
        let chosen = super::chosen(known, &plan.scheduler.settings)?;
        let source = self.source(name).map_err(setting)?;
        Ok(Made {
            make: maker(plan, &source, &chosen, profiler.clone())?,
            promise: source.profile().promise(),
            chosen,
            profiler,
        })
    }
}

/// What makes the scheduler of `plan`.
fn maker(
    plan: &Plan,
    source: &Arc<Source>,
    chosen: &Chosen,
    profiler: Option<Profiler>,
) -> Result<MakeScheduler, RunError> {
    let given = given(&plan.scheduler.settings, source.profile())?;
    let series = chosen.choice(SERIES).to_owned();
    let expenses = Expenses {
        instructions: chosen.count("bpf_instructions"),
        kfunc: chosen.count("bpf_kfunc"),
        helper: chosen.count("bpf_helper"),
        callback: chosen.count("bpf_callback"),
    };
    let seed = plan.seed.stream("bpf_get_prandom_u32").next();
    let (name, source) = (plan.scheduler.name.clone(), Arc::clone(source));
    Ok(Box::new(move |attach| {
        let loaded = source.load(&series, &Facts::of(attach), &given);
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
        for profile in profiles() {
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
