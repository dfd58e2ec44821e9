//! The laws that come with WarmQ, and those in files.

use std::path::Path;

use warmq_law::Law;

use crate::failure::Failure;

/// The files of `laws/`, in the order of the matrix.
macro_rules! laws {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../laws/", $name, ".toml")))),*]
    };
}

/// Name and text of each.
pub const LAWS: &[(&str, &str)] = laws! {
    "nice"
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
    "softirqs"
    "fork-storm"
    "lying-hints"
    "ten-thousand"
};

/// The laws called `names`, or all that come with WarmQ; each with its text.
///
/// # Errors
/// No such law; what is wrong with its file.
pub fn find(names: &[String]) -> Result<Vec<(Law, String)>, Failure> {
    let all = || {
        LAWS.iter()
            .map(|(name, text)| read(name, &format!("{name}.toml"), text))
    };
    match names {
        [] => all().collect(),
        names => names.iter().map(|name| one(name)).collect(),
    }
}

fn one(name: &str) -> Result<(Law, String), Failure> {
    if let Some((name, text)) = LAWS.iter().find(|(shipped, _)| *shipped == name) {
        return read(name, &format!("{name}.toml"), text);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|ending| ending != "toml") {
        let known = LAWS.iter().map(|(name, _)| *name);
        let help = warmq_config::did_you_mean(name, known);
        return Err(Failure::usage(format!("no law is called {name}"), help));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{name}: cannot read it: {error}"), ""))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    read(&stem, name, &text)
}

fn read(name: &str, file: &str, text: &str) -> Result<(Law, String), Failure> {
    let law = Law::read(name, file, text).map_err(|problems| Failure::Problems(vec![problems]))?;
    Ok((law, text.to_owned()))
}
