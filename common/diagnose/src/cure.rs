//! What helps against a verdict, and what that costs.

use std::fmt;

use serde::Serialize;

use warmq_units::Release;

/// What lets a task that is not of SCHED_DEADLINE ask for a slice: `chrt` refuses it before.
pub(crate) const SLICES: &str = "Linux 6.12 or later, and util-linux 2.41 or later for chrt";

/// Something that helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cure {
    /// What to do.
    pub does: &'static str,
    /// What it costs, and whom.
    pub costs: &'static str,
    /// The kernels that have what it needs; empty: all.
    pub kernels: &'static str,
    /// The releases, major and minor, before which or from which on it is of use. All, if it is not
    /// known of which kernel a recording is.
    #[serde(skip)]
    of_use: OfUse,
}

/// Of which releases a cure is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfUse {
    /// All.
    Always,
    /// Those before it.
    Before(u32, u32),
    /// It and those after it.
    From(u32, u32),
}

impl Cure {
    pub(crate) const fn new(does: &'static str, costs: &'static str) -> Cure {
        Cure {
            does,
            costs,
            kernels: "",
            of_use: OfUse::Always,
        }
    }

    /// It is of use only before the release: the others have what it says.
    pub(crate) const fn before(self, major: u32, minor: u32) -> Cure {
        let of_use = OfUse::Before(major, minor);
        Cure { of_use, ..self }
    }

    /// It is of use only from the release on: those before do not have what it changes.
    pub(crate) const fn from(self, major: u32, minor: u32) -> Cure {
        let of_use = OfUse::From(major, minor);
        Cure { of_use, ..self }
    }

    /// Whether it is of use where `release` was recorded.
    pub(crate) fn helps(&self, release: Option<Release>) -> bool {
        let Some(release) = release else {
            return true;
        };
        match self.of_use {
            OfUse::Always => true,
            OfUse::Before(major, minor) => !release.is_from(major, minor),
            OfUse::From(major, minor) => release.is_from(major, minor),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_has_already_is_no_cure_for_it() {
        let cure = Cure::new("use another", "much");
        let cases = [
            (cure, "6.5.3", true),
            (cure.before(6, 6), "6.5.3", true),
            (cure.before(6, 6), "6.6", false),
            (cure.before(6, 6), "7.0.1", false),
            (cure.from(6, 6), "5.15", false),
            (cure.from(6, 6), "6.18.44", true),
        ];
        for (cure, release, helps) in cases {
            assert_eq!(
                cure.helps(Release::at_start_of(release)),
                helps,
                "{release}"
            );
            assert!(cure.helps(None));
        }
    }
}
