//! What the lab plays in place of a real kernel.

use std::collections::BTreeMap;

use warmq_config::Value;
use warmq_sched::{Entry, backports, scheduler};

use super::taken::{Taken, taken};
use super::{RealKernel, nearest_release};
use crate::plan::{KERNEL, Plan};
use crate::point::pairs;

/// The setting of a world that says where its kernel is preempted.
pub(super) const PREEMPT: &str = "preempt";
/// The preemption model that a kernel has if nothing else is set.
const DEFAULT: &str = "default";

/// What the lab plays in place of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modelled {
    /// The release.
    pub kernel: String,
    /// The preemption model, `default` where it is not known or not modelled.
    pub preempt: String,
    /// What is set on its scheduler, where that is other than in the release.
    pub set: BTreeMap<String, Value>,
    /// Why it is that.
    why: String,
    /// All this, and what was assumed, in a few sentences.
    pub note: String,
}

impl Modelled {
    /// The model that is nearest to `kernel` under all of `schedulers`.
    pub fn nearest(kernel: &RealKernel, schedulers: &[String]) -> Option<Modelled> {
        let (entry, release) = nearest_release(&kernel.release)?;
        let (preempt, why) = preemption(kernel, entry, schedulers);
        let changes = backports(release);
        let taken = taken(kernel, &entry.settings(), &changes);
        let as_listed = match changes.is_empty() {
            true => String::new(),
            false => format!(" ({})", pairs(&changes)),
        };
        let note = format!(
            "The lab plays {} kernel {} as {}{as_listed}, {why}.{}",
            kernel.whose,
            kernel.release,
            entry.name,
            sentences(&taken)
        );
        Some(Modelled {
            kernel: release.to_owned(),
            preempt,
            set: taken.other,
            why,
            note,
        })
    }

    /// The same where the preemption model is named.
    pub(super) fn preempted_as_named(self) -> Modelled {
        let named = "with the preemption model that is named";
        let note = self.note.replacen(&self.why, named, 1);
        Modelled { note, ..self }
    }

    /// Has `plan` played with it, but for what the plan itself sets.
    pub(crate) fn take_place(&self, plan: &mut Plan) {
        let world = &mut plan.world.settings;
        world.insert(KERNEL.to_owned(), Value::Text(self.kernel.clone()));
        let model = world.entry(PREEMPT.to_owned());
        let model = model.or_insert_with(|| Value::Text(DEFAULT.to_owned()));
        if *model == Value::Text(DEFAULT.to_owned()) {
            *model = Value::Text(self.preempt.clone());
        }
        if plan.scheduler.name == KERNEL {
            for (setting, value) in &self.set {
                let own = plan.scheduler.settings.entry(setting.clone());
                own.or_insert_with(|| value.clone());
            }
        }
    }
}

/// What was taken over and what could not be, each in a sentence with a space before it.
fn sentences(taken: &Taken) -> String {
    let said = [
        ("Set as there: ", pairs(&taken.other)),
        ("As in its series: ", taken.same.join(", ")),
        (
            "Cannot be read here, and is assumed to be as in its series: ",
            itertools::join(&taken.unknown, ", "),
        ),
        ("The lab does not have: ", taken.beyond.join(", ")),
    ];
    let said = said.into_iter().filter(|(_, what)| !what.is_empty());
    said.map(|(how, what)| format!(" {how}{what}.")).collect()
}

/// The preemption model that the lab takes, and why.
fn preemption(kernel: &RealKernel, own: &Entry, schedulers: &[String]) -> (String, String) {
    let has = &kernel.preemption;
    let entries = schedulers.iter().filter_map(|name| match name.as_str() {
        KERNEL => Some(own),
        name => scheduler(name),
    });
    let lacking = |entry: &&Entry| !entry.models.iter().any(|model| model.name() == has);
    let default = |why: String| (DEFAULT.to_owned(), why);
    if has.is_empty() {
        let why = "with the preemption model that it has by default: its own cannot be read here";
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

    fn running(release: &str, preemption: &str) -> RealKernel {
        RealKernel {
            release: release.to_owned(),
            preemption: preemption.to_owned(),
            preemption_from: "debugfs",
            whose: "this machine's",
            ..RealKernel::default()
        }
    }

    fn nearest(release: &str, preemption: &str, schedulers: &[&str]) -> Modelled {
        let kernel = running(release, preemption);
        let schedulers: Vec<String> = schedulers
            .iter()
            .map(|scheduler| (*scheduler).to_owned())
            .collect();
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
        assert_eq!((&*old.kernel, &*old.preempt), ("6.6", "voluntary"));
        assert!(
            old.note.contains("kernel 5.15.0-91-generic as eevdf-6.6"),
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
            silent.note.contains("its own cannot be read here"),
            "{}",
            silent.note
        );
    }

    #[test]
    fn what_was_taken_over_is_said_in_sentences() {
        let kernel = RealKernel {
            facts: [("CONFIG_HZ", "1000"), ("sessions", "y")]
                .map(|(fact, text)| (fact, text.to_owned()))
                .into(),
            ..running("7.2.12", "full")
        };
        let modelled = Modelled::nearest(&kernel, &[KERNEL.to_owned()]).expect("a model");
        let expected = "The lab plays this machine's kernel 7.2.12 as eevdf-7.2, with preempt=full \
             (debugfs). Set as there: hz = 1000. As in its series: sessions. Cannot be read here, and \
             is assumed to be as in its series: CONFIG_FAIR_GROUP_SCHED, \
             sched_cfs_bandwidth_slice_us, what debugfs has in sched/ (slices, features, the fair \
             server).";
        assert_eq!(modelled.note, expected);
    }
}
