//! Real kernels as the lab plays them: this machine's, where both play side by side, and those of
//! recordings.

use warmq_config::Value;
use warmq_scenario::World;
use warmq_sched::{Entry, backports, of_kernel, scheduler};

use crate::experiment::{Experiment, Parts, Target, bare};
use crate::plan::{KERNEL as OWN, LAB, Part};

/// The setting of a world that says where its kernel is preempted.
const PREEMPT: &str = "preempt";
/// The oldest series whose scheduler the lab has, for machines with an older kernel.
const OLDEST: &str = "6.12";
/// The preemption model that a kernel has if nothing else is set.
const DEFAULT: &str = "default";

/// A kernel that runs somewhere, as whoever looks there says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostKernel {
    /// Its release.
    pub release: String,
    /// Its preemption model; empty where it does not say.
    pub preemption: String,
    /// Where it says it.
    pub preemption_from: &'static str,
}

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

/// Has the lab play this machine's kernel, which `look` finds, where `experiment` is played by both
/// under the kernel's own scheduler, and names no kernel for the lab.
pub fn beside_host(experiment: &mut Experiment, look: impl FnOnce() -> HostKernel) {
    let both = uses(experiment, Part::World, LAB)
        && uses(experiment, Part::World, World::Host.name())
        && uses(experiment, Part::Scheduler, OWN);
    if !both || names_kernel(experiment) {
        return;
    }
    let parts = experiment.parts.defaults.keys();
    let schedulers = parts.filter(|(part, _)| *part == Part::Scheduler);
    let schedulers = schedulers.map(|(part, name)| bare(*part, name).to_owned());
    let schedulers: Vec<String> = schedulers.collect();
    let Some(modelled) = Modelled::nearest(&look(), &schedulers) else {
        return;
    };
    let lab = (Part::World, LAB.to_owned());
    let lab = experiment.parts.defaults.entry(lab).or_default();
    lab.insert(OWN.to_owned(), Value::Text(modelled.kernel));
    lab.insert(PREEMPT.to_owned(), Value::Text(modelled.preempt));
    experiment.notes.push(modelled.note);
}

/// Whether the lab plays `experiment` on the machine that is called `machine`.
pub fn simulates(experiment: &Experiment, machine: &str) -> bool {
    uses(experiment, Part::World, LAB) && uses(experiment, Part::Machine, machine)
}

fn uses(experiment: &Experiment, part: Part, name: &str) -> bool {
    let key = (part, name.to_owned());
    experiment.parts.defaults.contains_key(&key)
}

/// Whether `experiment` says which kernel is played.
fn names_kernel(experiment: &Experiment) -> bool {
    let target = Target::Setting(Part::World, OWN.to_owned());
    let Parts { set, axes, .. } = &experiment.parts;
    let mut set = set.iter();
    let is_set = set.any(|(part, key, _)| *part == Part::World && key == OWN);
    is_set || axes.iter().any(|axis| axis.target == target)
}

/// The release whose scheduler the lab plays for the kernel `release`: its own, or the oldest that
/// the lab has.
pub fn nearest_release(release: &str) -> Option<(&'static Entry, &str)> {
    let known = of_kernel(release).map(|entry| (entry, release));
    known.or_else(|| Some((of_kernel(OLDEST)?, OLDEST)))
}

impl Modelled {
    /// The model that is nearest to `kernel` under all of `schedulers`.
    pub fn nearest(kernel: &HostKernel, schedulers: &[String]) -> Option<Modelled> {
        let (entry, release) = nearest_release(&kernel.release)?;
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
fn preemption(kernel: &HostKernel, own: &Entry, schedulers: &[String]) -> (String, String) {
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
    use std::sync::Arc;

    use warmq_config::Setting;

    use super::*;
    use crate::engine::Engine;
    use crate::plan::Chosen;
    use crate::run::Options;
    use crate::simulator::{Measured, RunError};
    use crate::world::{AnyObserver, Play, World as Plays};

    /// A machine that nothing is played on.
    struct Host;

    impl Plays for Host {
        fn kind(&self) -> World {
            World::Host
        }

        fn settings(&self) -> Vec<Setting> {
            Vec::new()
        }

        fn takes_scheduler(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn play(
            &self,
            _: &Play<'_>,
            _: Option<&mut dyn AnyObserver>,
        ) -> Result<Measured, RunError> {
            unreachable!("it is only planned")
        }
    }

    fn running(release: &str, preemption: &str) -> HostKernel {
        HostKernel {
            release: release.to_owned(),
            preemption: preemption.to_owned(),
            preemption_from: "debugfs",
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

    /// The kernel and the preemption model of each run in the lab of an experiment with `sweep`,
    /// and its notes.
    fn played(sweep: &str) -> (Vec<[String; 2]>, Vec<String>) {
        let text = format!(
            "title = \"Both\"\nabout = \"it\"\nworkload = \"chat\"\nmachine = \"host\"\n[run]\nwarmup = \"1ms\"\n\
             time = \"1ms\"\n{sweep}\n[[measure]]\nmetric = \"*\"\n"
        );
        let document = warmq_config::Document::parse("both.toml", &text).unwrap();
        let machine = Engine::new(None).machine("tiny-2cpu").unwrap();
        let engine = Engine::new(Some(machine)).with(Arc::new(Host));
        let mut experiment =
            Experiment::of(&document, &engine).unwrap_or_else(|error| panic!("{error}"));
        beside_host(&mut experiment, || running("6.18.44", "none"));
        let plans = experiment.jobs(&Options::default());
        let in_lab = plans.into_iter().map(|job| job.plan.world);
        let setting = |world: &Chosen, key: &str| world.settings[key].to_string();
        let kernels = in_lab
            .filter(|world| world.name == LAB)
            .map(|world| [OWN, PREEMPT].map(|key| setting(&world, key)));
        (kernels.collect(), experiment.notes)
    }

    #[test]
    fn an_experiment_beside_this_machine_is_played_with_its_kernel() {
        let both = "world = [\"lab\", \"host\"]\nscheduler = [\"kernel\"]";
        let of_host = ["6.18.44".to_owned(), "none".to_owned()];
        let (kernels, notes) = played(&format!("[sweep]\n{both}"));
        assert!(
            !kernels.is_empty() && kernels.iter().all(|kernel| *kernel == of_host),
            "{kernels:?}"
        );
        assert!(
            notes.iter().any(|note| note.contains("kernel 6.18.44")),
            "{notes:?}"
        );
        let full = format!("[sweep]\n{both}\npreempt = [\"full\"]");
        assert_eq!(played(&full).0[0], ["6.18.44", "full"].map(str::to_owned));
    }

    #[test]
    fn the_kernel_that_an_experiment_names_counts() {
        let both = "world = [\"lab\", \"host\"]\nscheduler = [\"kernel\"]";
        let usual = ["6.18".to_owned(), "default".to_owned()];
        for (sweep, expected) in [
            (
                format!("[sweep]\n{both}\nkernel = [\"6.12\"]"),
                ["6.12", "default"].map(str::to_owned),
            ),
            (
                format!("[settings]\nkernel = \"6.12\"\n[sweep]\n{both}"),
                ["6.12", "default"].map(str::to_owned),
            ),
            (
                "[sweep]\nworld = [\"lab\"]\nscheduler = [\"kernel\"]".to_owned(),
                usual,
            ),
        ] {
            let (kernels, notes) = played(&sweep);
            assert!(
                kernels.iter().all(|kernel| *kernel == expected),
                "{sweep}: {kernels:?}"
            );
            assert!(notes.is_empty(), "{sweep}: {notes:?}");
        }
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
