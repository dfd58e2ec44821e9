//! Experiments that the lab plays beside real kernels.

use std::collections::BTreeSet;

use warmq_config::Value;
use warmq_scenario::WorldKind;

use super::modelled::PREEMPT;
use super::{Modelled, RealKernel};
use crate::experiment::{Experiment, Parts, Target, bare};
use crate::plan::{KERNEL, LAB, Part};

/// Who looks at real kernels.
pub struct Kernels<'k> {
    /// Looks at the one that runs here.
    pub host: &'k dyn Fn() -> RealKernel,
    /// Looks at one of guests, by the name that it has in experiments; none if it is not here yet.
    pub guest: &'k dyn Fn(&str) -> Option<RealKernel>,
}

/// Has the lab play the kernels of other worlds, which `kernels` looks at, where `experiment` is
/// played by both under the kernel's own scheduler. This machine's it plays only where no kernel is
/// named.
pub fn beside(experiment: &mut Experiment, kernels: &Kernels<'_>) {
    let in_lab = uses(experiment, Part::World, LAB) && uses(experiment, Part::Scheduler, KERNEL);
    let plays = |world: WorldKind| in_lab && uses(experiment, Part::World, world.name());
    if plays(WorldKind::Host) && named(experiment, KERNEL).is_empty() {
        beside_host(experiment, (kernels.host)());
    } else if plays(WorldKind::Guest) {
        for name in of_guests(experiment) {
            beside_guest(experiment, name, kernels);
        }
    }
}

fn beside_host(experiment: &mut Experiment, kernel: RealKernel) {
    let Some(mut modelled) = modelled(experiment, &kernel) else {
        return;
    };
    modelled.note += " --kernel and --preempt name others.";
    let lab = (Part::World, LAB.to_owned());
    let lab = experiment.parts.defaults.entry(lab).or_default();
    lab.insert(KERNEL.to_owned(), Value::Text(kernel.release.clone()));
    play(experiment, kernel.release, modelled);
}

fn beside_guest(experiment: &mut Experiment, name: String, kernels: &Kernels<'_>) {
    let Some(kernel) = (kernels.guest)(&name) else {
        let note = format!(
            "The guest's kernel {name} is not here yet: the lab plays the first release of its series. \
             `warmq vm fetch --release {name}` fetches it."
        );
        experiment.notes.push(note);
        return;
    };
    if let Some(modelled) = modelled(experiment, &kernel) {
        play(experiment, name, modelled);
    }
}

fn modelled(experiment: &Experiment, kernel: &RealKernel) -> Option<Modelled> {
    let schedulers = experiment.parts.defaults.keys();
    let schedulers = schedulers.filter(|(part, _)| *part == Part::Scheduler);
    let schedulers = schedulers.map(|(part, name)| bare(*part, name).to_owned());
    let modelled = Modelled::nearest(kernel, &schedulers.collect::<Vec<_>>())?;
    Some(match named(experiment, PREEMPT).is_empty() {
        true => modelled,
        false => modelled.preempted_as_named(),
    })
}

/// Has the lab play `modelled` in place of the kernel `name`, and says so.
fn play(experiment: &mut Experiment, name: String, modelled: Modelled) {
    experiment.notes.push(modelled.note.clone());
    experiment.parts.kernels.insert(name, modelled);
}

/// Whether the lab plays `experiment` on the machine that is called `machine`.
pub fn simulates(experiment: &Experiment, machine: &str) -> bool {
    uses(experiment, Part::World, LAB) && uses(experiment, Part::Machine, machine)
}

fn uses(experiment: &Experiment, part: Part, name: &str) -> bool {
    let key = (part, name.to_owned());
    experiment.parts.defaults.contains_key(&key)
}

/// The kernels, or what else `key` of a world says, that `experiment` names.
fn named(experiment: &Experiment, key: &str) -> BTreeSet<String> {
    let target = Target::Setting(Part::World, key.to_owned());
    let Parts { set, axes, .. } = &experiment.parts;
    let set = set.iter();
    let set = set.filter(|(part, set, _)| *part == Part::World && set == key);
    let swept = axes.iter().filter(|axis| axis.target == target);
    let swept = swept.flat_map(|axis| &axis.values);
    set.map(|(.., value)| value)
        .chain(swept)
        .map(Value::to_string)
        .collect()
}

/// The kernels of its guests.
fn of_guests(experiment: &Experiment) -> BTreeSet<String> {
    let mut names = named(experiment, KERNEL);
    if names.is_empty() {
        let guest = (Part::World, WorldKind::Guest.name().to_owned());
        let settings = experiment.parts.defaults.get(&guest);
        let usual = settings.and_then(|settings| settings.get(KERNEL));
        names.extend(usual.map(Value::to_string));
    }
    names
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use warmq_config::Setting;

    use super::*;
    use crate::engine::Engine;
    use crate::plan::Plan;
    use crate::run::Options;
    use crate::simulator::{Measured, RunError};
    use crate::world::{AnyObserver, Play, World};

    /// A world that nothing is played in.
    struct Planned(WorldKind);

    impl World for Planned {
        fn kind(&self) -> WorldKind {
            self.0
        }

        fn settings(&self) -> Vec<Setting> {
            let kernel = || Setting::text(KERNEL, "6.12").says("its kernel", "a test");
            let has = self.0 == WorldKind::Guest;
            has.then(kernel).into_iter().collect()
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

    fn kernel(whose: &'static str, release: &str, preemption: &str, hz: &str) -> RealKernel {
        RealKernel {
            whose,
            release: release.to_owned(),
            preemption: preemption.to_owned(),
            preemption_from: "debugfs",
            facts: [("CONFIG_HZ", hz.to_owned())].into(),
        }
    }

    /// Of guests there is one kernel here.
    fn of_guest(name: &str) -> Option<RealKernel> {
        (name == "6.12").then(|| kernel("the guest's", "6.12.117", "voluntary", "100"))
    }

    /// The kernel, the preemption model and the tick of each run in the lab of an experiment with
    /// `sweep`, where they are set, and its notes.
    fn played(sweep: &str) -> (Vec<[String; 3]>, Vec<String>) {
        let text = format!(
            "title = \"Both\"\nabout = \"it\"\nworkload = \"chat\"\nmachine = \"host\"\n[run]\nwarmup = \"1ms\"\n\
             time = \"1ms\"\n{sweep}\n[[measure]]\nmetric = \"*\"\n"
        );
        let document = warmq_config::Document::parse("both.toml", &text).unwrap();
        let machine = Engine::new(None).machine("tiny-2cpu").unwrap();
        let engine = Engine::new(Some(machine))
            .with(Arc::new(Planned(WorldKind::Host)))
            .with(Arc::new(Planned(WorldKind::Guest)));
        let mut experiment =
            Experiment::of(&document, &engine).unwrap_or_else(|error| panic!("{error}"));
        let kernels = Kernels {
            host: &|| kernel("this machine's", "6.18.44", "none", "1000"),
            guest: &of_guest,
        };
        beside(&mut experiment, &kernels);
        let plans = experiment.jobs(&Options::default()).into_iter();
        let in_lab = plans.map(|job| job.plan).filter(Plan::is_simulated);
        let text = |value: Option<&Value>| value.map(Value::to_string).unwrap_or_default();
        let set = |plan: Plan| {
            let of_world = ["kernel", "preempt"].map(|key| text(plan.world.settings.get(key)));
            let [kernel, preempt] = of_world;
            [kernel, preempt, text(plan.scheduler.settings.get("hz"))]
        };
        (in_lab.map(set).collect(), experiment.notes)
    }

    /// The first run in the lab, and how many notes there are.
    fn first(sweep: &str) -> ([String; 3], usize) {
        let (mut kernels, notes) = played(sweep);
        (kernels.swap_remove(0), notes.len())
    }

    #[test]
    fn the_lab_plays_the_kernel_beside_it_unless_another_one_is_named() {
        let beside = |worlds: &str, more: &str| {
            format!("{more}[sweep]\nworld = [{worlds}]\nscheduler = [\"kernel\"]\n")
        };
        let host = "\"lab\", \"host\"";
        let guest = "\"lab\", \"guest\"";
        for (sweep, expected, notes) in [
            (beside(host, ""), ["6.18.44", "none", "1000"], 1),
            (
                beside(host, "") + "preempt = [\"full\"]",
                ["6.18.44", "full", "1000"],
                1,
            ),
            (
                beside(host, "") + "kernel = [\"6.12\"]",
                ["6.12", "default", ""],
                0,
            ),
            (
                beside(host, "[settings]\nkernel = \"6.12\"\n"),
                ["6.12", "default", ""],
                0,
            ),
            (beside("\"lab\"", ""), ["6.18", "default", ""], 0),
            (
                beside(guest, "") + "kernel = [\"6.12\"]",
                ["6.12.117", "voluntary", "100"],
                1,
            ),
            // One that would have to be fetched.
            (
                beside(guest, "") + "kernel = [\"7.1\"]",
                ["7.1", "default", ""],
                1,
            ),
            (
                beside("\"lab\", \"guest\", \"host\"", ""),
                ["6.18.44", "none", "1000"],
                1,
            ),
        ] {
            let (found, said) = first(&sweep);
            assert_eq!(found, expected, "{sweep}");
            assert_eq!(said, notes, "{sweep}");
        }
    }

    #[test]
    fn the_note_says_no_preemption_model_that_is_not_played() {
        let note = |more: &str| {
            let sweep = "[sweep]\nworld = [\"lab\", \"host\"]\nscheduler = [\"kernel\"]\n";
            played(&format!("{sweep}{more}")).1.swap_remove(0)
        };
        assert!(note("").contains("preempt=none"));
        let named = note("preempt = [\"full\"]");
        assert!(!named.contains("preempt=none"), "{named}");
        assert!(named.contains("that is named"), "{named}");
    }

    #[test]
    fn each_of_several_kernels_of_guests_has_its_own_model() {
        let (kernels, notes) = played(
            "[sweep]\nworld = [\"lab\", \"guest\"]\nscheduler = [\"kernel\", \"cfs\"]\nkernel = [\"6.12\", \"7.1\"]",
        );
        let all: BTreeSet<[String; 3]> = kernels.into_iter().collect();
        assert!(
            all.contains(&["6.12.117", "voluntary", "100"].map(str::to_owned)),
            "{all:?}"
        );
        assert!(
            all.contains(&["7.1", "default", ""].map(str::to_owned)),
            "{all:?}"
        );
        // CFS keeps its own tick.
        assert!(
            !all.iter()
                .any(|run| run[2] == "250" && run[0] == "6.12.117"),
            "{all:?}"
        );
        assert!(
            notes
                .iter()
                .any(|note| note.contains("vm fetch --release 7.1")),
            "{notes:?}"
        );
    }
}
