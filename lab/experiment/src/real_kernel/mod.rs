//! Real kernels as the lab plays them: this machine's and those of guests, where both play side by
//! side, and those of recordings.

mod beside;
mod modelled;
mod taken;

use std::collections::BTreeMap;

use warmq_sched::{Entry, of_kernel};

pub use self::beside::{Kernels, beside, simulates};
pub use self::modelled::Modelled;
pub use self::taken::facts;

/// The oldest series whose scheduler the lab has, for machines with an older kernel.
const OLDEST: &str = "6.6";

/// A kernel that runs somewhere, as whoever looks there says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealKernel {
    /// Whose it is: `this machine's`.
    pub whose: &'static str,
    /// Its release.
    pub release: String,
    /// Its preemption model; empty where it does not say.
    pub preemption: String,
    /// Where it says it.
    pub preemption_from: &'static str,
    /// What it says of the [`facts`], as it writes it: empty if it has no such thing. Those that
    /// cannot be known are missing.
    pub facts: BTreeMap<&'static str, String>,
}

/// The release whose scheduler the lab plays for the kernel `release`: its own, or the oldest that
/// the lab has.
pub fn nearest_release(release: &str) -> Option<(&'static Entry, &str)> {
    let known = of_kernel(release).map(|entry| (entry, release));
    known.or_else(|| Some((of_kernel(OLDEST)?, OLDEST)))
}
