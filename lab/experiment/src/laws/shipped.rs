//! The laws that come with WarmQ.

use warmq_config::Problems;
use warmq_law::Found;

/// Name and text of each, in the order of the matrix.
pub const LAWS: &[(&str, &str)] = warmq_config::texts! {
    "../../../../laws/":
    "nice"
    "nice-on-two-cpus"
    "weights"
    "nested"
    "one-against-many"
    "unusable-weights"
    "narrow-cpusets"
    "short-naps"
    "frequent-sleepers"
    "other-session"
    "other-cgroup"
    "least-weight"
    "pipe-reader"
    "forks"
    "receiver-beside-hog"
    "receiver-beside-hogs"
    "timer"
    "timer-same-group"
    "timer-other-group"
    "idle-class"
    "wake-chain"
    "woken-beside-idle"
    "quota"
    "quota-sleepers"
    "thaw"
    "pinned-and-floating"
    "timers-at-half-load"
    "short-beside-long"
    "changes"
    "replaced"
    "idle-domain"
    "behind-pinned"
    "affinity-widened"
    "three-and-two"
    "smt"
    "fragments-at-home"
    "chat-rooms"
    "ping-pong"
    "hotplug"
    "group-moves"
    "real-time-hog"
    "real-time-hog-pinned"
    "deadline"
    "softirqs"
    "fork-storm"
    "lying-hints"
    "ten-thousand"
};

/// The law called `name`; nothing if none that comes with WarmQ is.
///
/// # Errors
/// None, unless its file is broken: then what is wrong with it.
pub fn shipped(name: &str) -> Option<Result<Found, Problems>> {
    let (name, text) = LAWS.iter().find(|(shipped, _)| *shipped == name)?;
    Some(Found::read(name, &format!("{name}.toml"), name, text))
}

/// All of them, in the order of the matrix.
///
/// # Errors
/// None, unless a file is broken: then what is wrong with it.
pub fn all_shipped() -> Result<Vec<Found>, Problems> {
    let names = LAWS.iter().map(|(name, _)| *name);
    names.filter_map(shipped).collect()
}
