//! An object, ready to be attached to machines.

use std::sync::Arc;

use warmq_bpf::{Image, KernelTable, MapKind, Missing, Object, Offer, Unreadable};
use warmq_bpf_run::offered;

use crate::kfuncs::{HELPERS, KFUNCS};
use crate::layout;
use crate::variables::OFFERED;

/// An object that fits a kernel. It can be attached to any number of machines.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub(crate) image: Arc<Image>,
    pub(crate) kernel: Arc<KernelTable>,
    name: String,
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
    /// A variable cannot be set.
    #[error("{0}")]
    Variable(String),
    /// What it needs and the lab does not have.
    #[error("it needs what the lab does not have: it {}", list(.0))]
    Missing(Vec<Missing>),
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

impl Loaded {
    /// Reads an object, or a program that has one inside, sets its variables, and fits it to the
    /// kernel of a series (`7.3`).
    ///
    /// # Errors
    /// Why that cannot be.
    pub fn new<'v>(
        bytes: &[u8],
        series: &str,
        variables: impl IntoIterator<Item = (&'v str, &'v Value)>,
    ) -> Result<Loaded, NotLoaded> {
        let mut object = Object::read(bytes)?;
        let kernel = KernelTable::of(series).ok_or_else(|| NotLoaded::UnknownKernel {
            series: series.to_owned(),
            known: KernelTable::known().collect(),
        })?;
        let ops = object.ops().ok_or(NotLoaded::NoScheduler)?;
        if ops.type_name != "sched_ext_ops" {
            return Err(NotLoaded::NoScheduler);
        }
        let name = object.name().unwrap_or_default().to_owned();
        for (variable, value) in variables {
            let set = match value {
                Value::Number(number) => object.set(variable, *number),
                Value::Bytes(bytes) => object.set_bytes(variable, bytes),
            };
            set.map_err(NotLoaded::Variable)?;
        }
        let image = object.fit(&kernel, &offer()).map_err(NotLoaded::Missing)?;
        Ok(Loaded {
            image: Arc::new(image),
            kernel: Arc::new(kernel),
            name,
        })
    }

    /// The name in its `sched_ext_ops`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Callbacks that it defines.
    pub fn callbacks(&self) -> impl Iterator<Item = &str> {
        let ops = self.image.ops.iter();
        ops.flat_map(|ops| ops.callbacks.keys().map(String::as_str))
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

/// The variables of an object that are numbers, in the order of their names.
///
/// # Errors
/// If it is no object.
pub fn variables(bytes: &[u8]) -> Result<Vec<Variable>, Unreadable> {
    let object = Object::read(bytes)?;
    let variable = |name: &str| {
        let place = object.variable(name).ok()?;
        let bits = match place.size {
            size @ (1 | 2 | 4 | 8) => 8 * size as u32,
            _ => return None,
        };
        let raw = object.initial(&place)?;
        let (range, value) = match place.signed {
            true => {
                let half = 1_i128 << (bits - 1);
                let unused = 64 - bits;
                ((-half, half - 1), ((raw << unused) as i64 >> unused).into())
            }
            false => ((0, (1 << bits) - 1), raw.into()),
        };
        let name = name.to_owned();
        Some(Variable { name, range, value })
    };
    Ok(object.variables().filter_map(variable).collect())
}
