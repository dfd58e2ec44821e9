//! This machine's kernel as the lab plays it, where both play a scenario side by side.

use warmq_record::RunningKernel;
use warmq_sched::{Entry, backports, of_kernel, scheduler};

/// The scheduler of whatever kernel plays.
const OWN: &str = "kernel";
/// The oldest series whose scheduler the lab has, for machines with an older kernel.
const OLDEST: &str = "6.12";
/// The preemption model that a kernel has if it is told nothing.
const DEFAULT: &str = "default";

/// What the lab plays in place of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modelled {
    /// The release.
    pub kernel: String,
    /// The preemption model, `default` where it is not known or not modelled.
    pub preempt: String,
    /// Both, and what was assumed, in a sentence.
    pub note: String,
}

impl Modelled {
    /// The model that is nearest to `kernel` under all of `schedulers`.
    pub fn nearest(kernel: &RunningKernel, schedulers: &[String]) -> Option<Modelled> {
        let known = of_kernel(&kernel.release).map(|entry| (entry, kernel.release.as_str()));
        let (entry, release) = known.or_else(|| Some((of_kernel(OLDEST)?, OLDEST)))?;
        let (preempt, why) = preemption(kernel, entry, schedulers);
        let note = format!(
            "The lab plays this machine's kernel {} as {}{}, {why}. --kernel and --preempt set both.",
            kernel.release,
            entry.name,
            changed(release)
        );
        Some(Modelled {
            kernel: release.to_owned(),
            preempt,
            note,
        })
    }
}

/// What `release` has otherwise than the first of its series.
fn changed(release: &str) -> String {
    let changes = backports(release).into_iter();
    let changes: Vec<String> = changes
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    match changes.is_empty() {
        true => String::new(),
        false => format!(" ({})", changes.join(", ")),
    }
}

/// The preemption model that the lab takes, and why.
fn preemption(kernel: &RunningKernel, own: &Entry, schedulers: &[String]) -> (String, String) {
    let has = &kernel.preemption;
    let entries = schedulers.iter().filter_map(|name| match name.as_str() {
        OWN => Some(own),
        name => scheduler(name),
    });
    let lacking = |entry: &&Entry| !entry.models.iter().any(|model| model.name() == has);
    let default = |why: String| (DEFAULT.to_owned(), why);
    if has.is_empty() {
        let why =
            "with the preemption model that it has by default: this machine does not say its own";
        return default(why.to_owned());
    }
    match entries.into_iter().find(lacking) {
        Some(entry) => default(format!(
            "with the preemption model that it has by default: {} has no preempt={has}",
            entry.name
        )),
        None => (
            has.clone(),
            format!("with preempt={has} ({})", kernel.preemption_from),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(release: &str, preemption: &str, schedulers: &[&str]) -> Modelled {
        let kernel = RunningKernel {
            release: release.to_owned(),
            preemption: preemption.to_owned(),
            preemption_from: "debugfs",
            ..RunningKernel::default()
        };
        let schedulers: Vec<String> = schedulers.iter().map(|it| (*it).to_owned()).collect();
        Modelled::nearest(&kernel, &schedulers).expect("a model")
    }

    #[test]
    fn the_lab_takes_the_release_and_the_preemption_model_of_this_machine() {
        let same = nearest("6.18.44-amd64", "none", &["kernel"]);
        assert_eq!((&*same.kernel, &*same.preempt), ("6.18.44-amd64", "none"));
        assert!(
            same.note.contains("6.18.44-amd64 as eevdf-6.18"),
            "{}",
            same.note
        );
        assert!(
            same.note.contains("preempt=none (debugfs)"),
            "{}",
            same.note
        );
    }

    #[test]
    fn a_release_with_the_revert_is_played_with_it() {
        let mended = nearest("6.18.45", "lazy", &["kernel"]).note;
        assert!(mended.contains("reweight = keeps-average"), "{mended}");
        let old = nearest("6.18.44", "lazy", &["kernel"]).note;
        assert!(!old.contains("reweight"), "{old}");
    }

    #[test]
    fn what_the_lab_lacks_is_said() {
        let old = nearest("5.15.0-91-generic", "voluntary", &["kernel"]);
        assert_eq!((&*old.kernel, &*old.preempt), ("6.12", "voluntary"));
        assert!(
            old.note.contains("kernel 5.15.0-91-generic as eevdf-6.12"),
            "{}",
            old.note
        );
        let lazy = nearest("6.12.30", "lazy", &["kernel"]);
        assert_eq!(lazy.preempt, "default");
        assert!(
            lazy.note.contains("eevdf-6.12 has no preempt=lazy"),
            "{}",
            lazy.note
        );
        let other = nearest("6.18", "lazy", &["kernel", "cfs"]);
        assert!(
            other.note.contains("cfs has no preempt=lazy"),
            "{}",
            other.note
        );
        let silent = nearest("6.18", "", &["kernel"]);
        assert_eq!(silent.preempt, "default");
        assert!(
            silent.note.contains("does not say its own"),
            "{}",
            silent.note
        );
    }
}
