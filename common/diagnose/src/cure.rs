//! What helps against a verdict, and what that costs.

use std::fmt;

use serde::Serialize;

/// Something that helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cure {
    /// What to do.
    pub does: &'static str,
    /// What it costs, and whom.
    pub costs: &'static str,
    /// The kernels that have what it needs; empty: all.
    pub kernels: &'static str,
}

impl Cure {
    pub(crate) const fn new(does: &'static str, costs: &'static str) -> Cure {
        Cure {
            does,
            costs,
            kernels: "",
        }
    }

    /// It needs one of these kernels.
    pub(crate) const fn on(self, kernels: &'static str) -> Cure {
        Cure { kernels, ..self }
    }
}

/// `use fewer threads; costs: parallelism (Linux 6.12 and later)`.
impl fmt::Display for Cure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}; costs: {}", self.does, self.costs)?;
        match self.kernels {
            "" => Ok(()),
            kernels => write!(formatter, " (needs {kernels})"),
        }
    }
}
