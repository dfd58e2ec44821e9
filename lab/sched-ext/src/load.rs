//! An object, ready to be attached to machines.

use std::sync::{Arc, OnceLock};

use warmq_bpf::{
    Counter, Entry, Image, KernelTable, Loading, MapKind, Missing, Object, Offer, Package,
    Unreadable,
};
use warmq_bpf_run::offered;
use warmq_config::Value as Chosen;

use crate::facts::Facts;
use crate::kfuncs::{HELPERS, KFUNCS};
use crate::layout;
use crate::profile::{Hint, Profile, Run};
use crate::run_queue::Callbacks;
use crate::tracing::AtEvent;
use crate::variables::OFFERED;

/// An object that fits a kernel. It can be attached to any number of machines.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub(crate) image: Arc<Image>,
    pub(crate) kernel: Arc<KernelTable>,
    /// Which kernel that is: `7.3`.
    pub(crate) series: String,
    /// Programs that its loader runs.
    pub(crate) runs: Vec<Run>,
    /// The CPU that its loader's thread is bound to.
    pub(crate) cpu: Option<u16>,
    /// Entries of maps that its loader writes.
    pub(crate) entries: Vec<Entry>,
    /// How tasks name their data.
    pub(crate) hint: Option<Hint>,
    /// What it counts.
    pub(crate) counters: Arc<[Counter]>,
}

/// Why an object cannot be run here.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotLoaded {
    /// It is no object.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    /// There is no table of that kernel.
    #[error("the lab knows no kernel {series} for compiled schedulers: it knows {}", .known.join(" and "))]
    UnknownKernel {
        /// The kernel.
        series: String,
        /// Those that are known.
        known: Vec<&'static str>,
    },
    /// Its profile says that it cannot be played.
    #[error("{0}")]
    Refused(String),
    /// It is no scheduler.
    #[error("it has no struct sched_ext_ops")]
    NoScheduler,
    /// Its callbacks are those of another struct.
    #[error("its callbacks are a struct {0}, and the lab calls those of sched_ext_ops")]
    OtherCallbacks(String),
    /// Its profile asks for what is not there.
    #[error("the profile of {name}: {why}")]
    Profile {
        /// The profile's name.
        name: String,
        /// What.
        why: String,
    },
    /// A variable cannot be set.
    #[error("{0}")]
    Variable(String),
    /// What it needs and the lab does not have.
    #[error("it needs what the lab does not have: it {}", list(.0))]
    Missing(Vec<Missing>),
}

impl NotLoaded {
    /// One sentence for each reason.
    pub fn reasons(&self) -> Vec<String> {
        match self {
            NotLoaded::Missing(missing) => missing.iter().map(|one| format!("it {one}")).collect(),
            one => vec![one.to_string()],
        }
    }
}

fn list(missing: &[Missing]) -> String {
    let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
    all.join("; ")
}

/// A value of a variable, or of an option of the loader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number; of a flag, 0 or 1; of a time, in ns.
    Number(i128),
    /// All bytes of it.
    Bytes(Vec<u8>),
    /// One of the names that an option can have.
    Text(String),
}

impl From<&Chosen> for Value {
    fn from(chosen: &Chosen) -> Value {
        match chosen {
            Chosen::Integer(number) => Value::Number((*number).into()),
            Chosen::Bool(flag) => Value::Number((*flag).into()),
            Chosen::Bytes(size) => Value::Number(size.0.into()),
            Chosen::Duration(time) => Value::Number(time.as_ns().into()),
            Chosen::Text(name) => Value::Text(name.clone()),
        }
    }
}

/// All that the lab offers to objects.
pub fn offer() -> Offer {
    let mut offer = offered();
    offer
        .kfuncs
        .extend(KFUNCS.iter().map(|(name, _)| (*name).to_owned()));
    offer
        .helpers
        .extend(HELPERS.iter().map(|(number, _)| *number));
    offer.fields = Some(layout::offered());
    let variables = OFFERED.iter().map(|name| (*name).to_owned());
    offer.variables = variables.collect();
    offer.maps.insert(MapKind::PerfEventArray.number());
    let callbacks = Callbacks::NAMES.iter().map(|name| (*name).to_owned());
    offer.callbacks = Some(callbacks.collect());
    offer.events = crate::tracing::offered().map(str::to_owned).collect();
    offer
}

/// Why an object with an arena needs its own loader.
const ARENA: &str = "its loader fills an arena with the machine's topology: give its program, \
                     which does that, and not the object alone";

fn kernel(series: &str) -> Result<KernelTable, NotLoaded> {
    KernelTable::of(series).ok_or_else(|| NotLoaded::UnknownKernel {
        series: series.to_owned(),
        known: KernelTable::known().collect(),
    })
}

/// An object as it is in its file, and what its loader does.
#[derive(Clone, Debug)]
pub struct Source {
    object: Object,
    profile: Profile,
    counters: OnceLock<Arc<[Counter]>>,
}

impl Source {
    /// Reads an object, or a program that has one inside. `find` knows the profile of a name in
    /// `sched_ext_ops`; without one, the loader does nothing.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(
        bytes: &[u8],
        find: impl FnOnce(&str) -> Option<Profile>,
    ) -> Result<Source, NotLoaded> {
        let object = Object::read(bytes)?;
        let ops = object.ops().ok_or(NotLoaded::NoScheduler)?;
        if ops.type_name != "sched_ext_ops" {
            return Err(NotLoaded::OtherCallbacks(ops.type_name.clone()));
        }
        let profile = find(object.name().unwrap_or_default()).unwrap_or_default();
        let counters = OnceLock::new();
        Ok(Source {
            object,
            profile,
            counters,
        })
    }

    /// The name in its `sched_ext_ops`.
    pub fn name(&self) -> &str {
        self.object.name().unwrap_or_default()
    }

    /// What it counts.
    pub fn counters(&self) -> &Arc<[Counter]> {
        self.counters.get_or_init(|| {
            let object = &self.object;
            let declared = self.profile.counters.iter();
            match self.profile.counters.is_empty() {
                true => {
                    let paths = object.counted().into_iter();
                    paths
                        .flat_map(|path| object.counters(&path, None))
                        .collect()
                }
                false => declared.flat_map(|one| one.find(object)).collect(),
            }
        })
    }

    /// What it counts, as `warmq-player --counters` takes it, on a machine of so many CPUs.
    pub fn written_counters(&self, cpus: u32) -> String {
        self.object.written(self.counters().iter(), cpus)
    }

    /// What its loader does.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Callbacks that it defines.
    pub fn callbacks(&self) -> impl Iterator<Item = &str> {
        let ops = self.object.ops().into_iter();
        ops.flat_map(|ops| ops.callbacks.keys().map(String::as_str))
    }

    /// Events at which a kernel runs its programs, as their sections name them, and what the lab
    /// does with these: `tp_btf/sched_switch`. Those that its loader does not turn on are not
    /// named.
    pub fn events(&self) -> Vec<(String, AtEvent)> {
        let mut all = Vec::new();
        for program in self.object.programs() {
            let is_on = !program.optional || self.profile.programs.contains(&program.name);
            let event = program.kind.event().filter(|_| is_on);
            all.extend(event.map(|event| (event.clone(), AtEvent::of(&event))));
        }
        all
    }

    /// Sets variables as its loader does, with options and then variables as in `given`, and fits
    /// it to the kernel of a series (`7.3`). Where an option has the name of a variable, the option
    /// is meant.
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn load(
        &self,
        series: &str,
        facts: &Facts,
        given: &[(String, Value)],
    ) -> Result<Loaded, NotLoaded> {
        let kernel = kernel(series)?;
        let object = self.set(&kernel, facts, given)?;
        let refused = |why| self.wrong_profile(why);
        let mut runs = self.profile.runs(facts).map_err(refused)?;
        if let Some(arena) = &self.profile.arena {
            let size = object.size_of(&arena.task);
            let size = size.ok_or_else(|| refused(format!("there is no struct {}", arena.task)))?;
            runs.splice(..0, crate::arena::runs(facts, size));
        }
        let image = object.fit(&kernel, &offer()).map_err(NotLoaded::Missing)?;
        Ok(Loaded {
            image: Arc::new(image),
            runs,
            cpu: self.profile.cpu(facts).map_err(refused)?,
            entries: self.profile.entries(facts).map_err(refused)?,
            hint: self.profile.hint.clone(),
            counters: self.counters().clone(),
            kernel: Arc::new(kernel),
            series: series.to_owned(),
        })
    }

    /// The object as its loader sets it before loading.
    fn set(
        &self,
        kernel: &KernelTable,
        facts: &Facts,
        given: &[(String, Value)],
    ) -> Result<Object, NotLoaded> {
        if !self.profile.refused.is_empty() {
            return Err(NotLoaded::Refused(self.profile.refused.clone()));
        }
        let refused = |why| self.wrong_profile(why);
        let mut object = self.object.clone();
        self.shape(&mut object, facts).map_err(refused)?;
        let own = self.profile.variables(facts, given).map_err(refused)?;
        let own = own.into_iter().map(|set| as_c_converts(&object, set));
        let own: Vec<(String, Value)> = own.collect();
        let variables = given.iter();
        let variables = variables.filter(|(name, _)| !self.profile.has_option(name));
        for (variable, value) in own.iter().chain(variables) {
            let set = match value {
                Value::Number(number) => object.set(variable, *number),
                Value::Bytes(bytes) => object.set_bytes(variable, bytes),
                Value::Text(text) => Err(format!("{variable} is a number, not {text}")),
            };
            set.map_err(NotLoaded::Variable)?;
        }
        let flags = self.profile.flags(facts).map_err(refused)?;
        let flag = |name: &String| kernel.enum_value(name).unwrap_or(0) as u64;
        object.add_flags(flags.iter().map(flag).fold(0, |all, one| all | one));
        Ok(object)
    }

    fn wrong_profile(&self, why: String) -> NotLoaded {
        let name = self.profile.name.clone();
        NotLoaded::Profile { name, why }
    }

    /// The object in a file that the system starts as a script of `loader`, which does there what
    /// its own loader does; with options and variables as for [`Source::load`]. `object` is what
    /// this was read from.
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn packed(
        &self,
        object: &[u8],
        (loader, series): (&str, &str),
        facts: &Facts,
        given: &[(String, Value)],
    ) -> Result<Vec<u8>, NotLoaded> {
        let kernel = kernel(series)?;
        let mut set = self.set(&kernel, facts, given)?;
        set.suit(&kernel);
        let refused = |why| self.wrong_profile(why);
        if self.profile.arena.is_some() {
            return Err(NotLoaded::Refused(ARENA.to_owned()));
        }
        let runs = self.profile.runs(facts).map_err(refused)?;
        let (after, before): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(|run| run.after);
        let plain = |runs: Vec<Run>| runs.into_iter().map(Run::plain).collect();
        let loading = Loading {
            entries: self.profile.entries(facts).map_err(refused)?,
            before: plain(before),
            after: plain(after),
            cpu: self.profile.cpu(facts).map_err(refused)?,
            ..Loading::between(&self.object, &set)
        };
        Ok(Package { loading, object }.bytes(loader))
    }

    /// Gives maps their sizes, turns on programs and takes out callbacks, as its loader does.
    fn shape(&self, object: &mut Object, facts: &Facts) -> Result<(), String> {
        for (name, elements) in self.profile.sizes(facts)? {
            object.resize(&name, elements)?;
        }
        for program in &self.profile.programs {
            object.turn_on(program)?;
        }
        for callback in &self.profile.without {
            object.take_out(callback);
        }
        Ok(())
    }

    /// The variables that are numbers, in the order of their names.
    pub fn variables(&self) -> Vec<Variable> {
        let names = self.object.variables();
        names
            .filter_map(|name| variable(&self.object, name))
            .collect()
    }
}

/// A negative number for a variable without a sign is what C makes of it: -1 is the greatest.
fn as_c_converts(object: &Object, (path, value): (String, Value)) -> (String, Value) {
    let place = object.variable(&path);
    let wraps = place.ok().filter(|place| !place.signed && place.size <= 8);
    match (value, wraps) {
        (Value::Number(number), Some(place)) if number < 0 => {
            (path, Value::Number(number + (1 << (8 * place.size))))
        }
        (value, _) => (path, value),
    }
}

/// A variable of an object that is one number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The least and the greatest value that fit.
    pub range: (i128, i128),
    /// Its initial value.
    pub value: i128,
}

fn variable(object: &Object, name: &str) -> Option<Variable> {
    let place = object.variable(name).ok()?;
    let bits = match place.size {
        size @ (1 | 2 | 4 | 8) => 8 * size as u32,
        _ => return None,
    };
    let raw = object.initial(&place)?;
    let (range, value) = match place.signed {
        true => {
            let (half, unused) = (1_i128 << (bits - 1), 64 - bits);
            let value = (raw << unused) as i64 >> unused;
            ((-half, half - 1), value.into())
        }
        false => ((0, (1 << bits) - 1), raw.into()),
    };
    let name = name.to_owned();
    Some(Variable { name, range, value })
}
