//! An object, ready to be attached to machines.

use std::sync::Arc;

use warmq_bpf::{
    Image, KernelTable, MapKind, Missing, Object, Offer, Program, ProgramKind, Unreadable,
};
use warmq_bpf_run::offered;

use crate::kfuncs::{HELPERS, KFUNCS};
use crate::layout;
use crate::profile::{Facts, Hint, Profile, Run};
use crate::variables::OFFERED;

/// An object that fits a kernel. It can be attached to any number of machines.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub(crate) image: Arc<Image>,
    pub(crate) kernel: Arc<KernelTable>,
    /// Which kernel that is: `7.3`.
    pub(crate) series: String,
    /// Flags of `sched_ext_ops` that its loader adds.
    pub(crate) flags: u64,
    /// Programs that its loader runs.
    pub(crate) runs: Vec<Run>,
    /// How tasks name their data.
    pub(crate) hint: Option<Hint>,
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
    /// It is no scheduler.
    #[error("it has no struct sched_ext_ops")]
    NoScheduler,
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

/// A value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number; of a flag, 0 or 1.
    Number(i128),
    /// All bytes of it.
    Bytes(Vec<u8>),
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
    offer
}

/// An object as it is in its file, and what its loader does.
#[derive(Clone, Debug)]
pub struct Source {
    object: Object,
    profile: Profile,
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
            return Err(NotLoaded::NoScheduler);
        }
        let profile = find(object.name().unwrap_or_default()).unwrap_or_default();
        Ok(Source { object, profile })
    }

    /// The name in its `sched_ext_ops`.
    pub fn name(&self) -> &str {
        self.object.name().unwrap_or_default()
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

    /// Programs that a kernel runs at events of its own, and the lab does not: `tp_btf
    /// sched_switch`.
    pub fn left_out(&self) -> Vec<String> {
        let programs = self.object.programs().iter();
        let event = |program: &Program| match &program.kind {
            ProgramKind::StructOps | ProgramKind::Syscall | ProgramKind::ModifyReturn(_) => None,
            // It only probes what the kernel has.
            ProgramKind::Fentry(to) if to == "bpf_scx_reg" => None,
            ProgramKind::Tracepoint(to) => Some(format!("tp_btf {to}")),
            ProgramKind::Fentry(to) => Some(format!("fentry {to}")),
            ProgramKind::Fexit(to) => Some(format!("fexit {to}")),
            ProgramKind::Other(section) => Some(section.clone()),
        };
        programs.filter_map(event).collect()
    }

    /// Sets variables as its loader does, and then those that are given, and fits it to the kernel
    /// of a series (`7.3`).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn load(
        &self,
        series: &str,
        facts: &Facts,
        variables: &[(String, Value)],
    ) -> Result<Loaded, NotLoaded> {
        let kernel = KernelTable::of(series).ok_or_else(|| NotLoaded::UnknownKernel {
            series: series.to_owned(),
            known: KernelTable::known().collect(),
        })?;
        let refused = |why| NotLoaded::Profile {
            name: self.profile.name.clone(),
            why,
        };
        let mut object = self.object.clone();
        let own = self.profile.variables(facts).map_err(refused)?;
        for (variable, value) in own.iter().chain(variables) {
            let set = match value {
                Value::Number(number) => object.set(variable, *number),
                Value::Bytes(bytes) => object.set_bytes(variable, bytes),
            };
            set.map_err(NotLoaded::Variable)?;
        }
        let flags = self.profile.flags(facts).map_err(refused)?;
        let flag = |name: &String| kernel.enum_value(name).unwrap_or(0) as u64;
        let image = object.fit(&kernel, &offer()).map_err(NotLoaded::Missing)?;
        Ok(Loaded {
            image: Arc::new(image),
            flags: flags.iter().map(flag).fold(0, |all, one| all | one),
            runs: self.profile.runs(facts).map_err(refused)?,
            hint: self.profile.hint.clone(),
            kernel: Arc::new(kernel),
            series: series.to_owned(),
        })
    }

    /// The variables that are numbers, in the order of their names.
    pub fn variables(&self) -> Vec<Variable> {
        let names = self.object.variables();
        names
            .filter_map(|name| variable(&self.object, name))
            .collect()
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
