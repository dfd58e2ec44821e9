//! What the kernel's work costs on a machine, found by playing the same there and in the lab.
//!
//! Each [`Step`] names a cost and a play of experiments/costs with a figure that depends on it. The
//! play is measured on the machine ([`measure`]), the least disturbed of several tries. Then the
//! lab plays it until its figure is the measured one ([`calibrate`]). A step comes after those
//! whose costs are in its figure, too, so that each has one unknown.
//!
//! Who plays on the machine is a [`Runner`], whatever world it asks.

mod solve;
mod steal;
mod steps;

use std::collections::BTreeMap;

use warmq_config::{Problems, Value};
use warmq_kernel::Costs;
use warmq_machine::{Cost, MachineDescription};
use warmq_scenario::WorldKind;
use warmq_units::{Cycles, Duration};

pub use self::steal::{Taken, steals};
pub use self::steps::{Figure, Scene, Step};
use self::steps::{HALT_EXIT, NOHZ_EXIT, STEPS};
use crate::engine::Engine;
use crate::plan::{KERNEL, LAB, Plan, named};
use crate::real_kernel::{Modelled, RealKernel, nearest_release};
use crate::request::Trial;
use crate::simulator::{PartError, RunError, Runner};

/// The name that the machine has in plans.
const HOST: &str = "host";

/// Figures in us by step: that of each try.
pub type Tries = BTreeMap<&'static str, Vec<f64>>;

/// Why there is no calibration.
#[derive(Debug, thiserror::Error)]
pub enum CannotCalibrate {
    /// No scheduler of the lab stands for the kernel.
    #[error("the lab has no scheduler for kernel {0}")]
    NoKernel(String),
    /// A play is refused.
    #[error(transparent)]
    Refused(#[from] Problems),
    /// A play is no scenario.
    #[error(transparent)]
    NoPlay(#[from] PartError),
    /// A run gave no measurement.
    #[error("{0}: {1}")]
    Failed(&'static str, RunError),
}

/// A cost that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How.
    pub step: Step,
    /// The cost before.
    pub before: Cycles,
    /// The cost.
    pub now: Cycles,
    /// The figure in us of the least disturbed try, and of the most disturbed one.
    pub measured: (f64, f64),
    /// The figure in us that the lab has with the cost.
    pub lab: f64,
    /// Whether no cost explains what was measured. The cost is then as it was, or 0 where even that
    /// is too much: the rest of the path takes longer in the lab than all of it did.
    pub missed: bool,
}

/// The name of the table of costs that the lab uses for `kernel`.
pub fn table(kernel: &RealKernel) -> String {
    let known = nearest_release(&kernel.release);
    known.map_or_else(String::new, |(entry, _)| entry.kernel.to_owned())
}

/// The steps that find the costs of `kernel` on `machine`, in their order. The way out of idle is
/// one out of halt where the machine's idle CPUs halt.
pub fn steps(machine: &MachineDescription, kernel: &RealKernel) -> Vec<Step> {
    let costs = machine.costs.get(&table(kernel));
    let halts = costs.is_some_and(|costs| costs.contains_key(HALT_EXIT));
    let mut steps = STEPS.to_vec();
    for step in steps
        .iter_mut()
        .filter(|step| step.cost == NOHZ_EXIT && halts)
    {
        step.cost = HALT_EXIT;
    }
    steps
}

/// Plays all scenes of `steps` that `cpus` CPUs can play `tries` times on the machine; `seen` hears
/// how many of how many plays are done.
///
/// # Errors
/// A play that cannot be played.
pub fn measure(
    engine: &Engine,
    steps: &[Step],
    cpus: usize,
    tries: u64,
    mut seen: impl FnMut(usize, usize, &str),
) -> Result<Tries, CannotCalibrate> {
    let mut measured = Tries::new();
    let scenes = scenes(steps, cpus);
    let total = scenes.len() * tries as usize;
    for (done, (number, scene)) in (0..tries)
        .flat_map(|number| scenes.iter().map(move |scene| (number, scene)))
        .enumerate()
    {
        seen(done, total, scene.name);
        let settings = [("record", Value::Bool(false))];
        let plan = plan(engine, scene, WorldKind::Host.name(), number + 1, settings)?;
        let played = engine.simulate(&plan);
        let played = played.map_err(|error| CannotCalibrate::Failed(scene.name, error))?;
        for step in steps.iter().filter(|step| step.scene == *scene) {
            if let Some(figure) = step.figure.of(&played.figures) {
                measured.entry(step.cost).or_default().push(figure);
            }
        }
    }
    Ok(measured)
}

/// The distinct scenes of `steps` that `cpus` CPUs can play, in their order.
pub fn scenes(steps: &[Step], cpus: usize) -> Vec<Scene> {
    let mut scenes: Vec<Scene> = Vec::new();
    for step in steps {
        if usize::from(step.scene.cpus) <= cpus && !scenes.contains(&step.scene) {
            scenes.push(step.scene);
        }
    }
    scenes
}

/// Finds the costs of `machine`, whose kernel is `kernel`, from what was `measured` there, by
/// `steps`, and sets them; `source` says who measured them.
///
/// # Errors
/// A kernel that the lab does not know; a play that cannot be played.
pub fn calibrate(
    machine: &mut MachineDescription,
    kernel: &RealKernel,
    steps: &[Step],
    measured: &Tries,
    source: impl Fn(&Step) -> String,
    mut seen: impl FnMut(usize, usize, &str),
) -> Result<Vec<Found>, CannotCalibrate> {
    let no_kernel = || CannotCalibrate::NoKernel(kernel.release.clone());
    let modelled = Modelled::nearest(kernel, &[KERNEL.to_owned()]).ok_or_else(no_kernel)?;
    let (entry, _) = nearest_release(&kernel.release).ok_or_else(no_kernel)?;
    let mut found = Vec::new();
    for (done, step) in steps.iter().enumerate() {
        seen(done, steps.len(), step.cost);
        let Some(tries) = measured.get(step.cost).filter(|tries| !tries.is_empty()) else {
            continue;
        };
        let wanted = step.least_disturbed(tries);
        let most = tries.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let before = cost_of(machine, entry.kernel, step.cost);
        let solved = solve::solve(wanted, before.0, |cycles| {
            let mut tried = machine.clone();
            set_cost(&mut tried, entry.kernel, step.cost, Cycles(cycles), "tried");
            lab_figure(tried, &modelled, step)
        })?;
        let missed = solved.misses(wanted);
        let now = match missed && solved.cycles > 0 {
            true => before,
            false => Cycles(solved.cycles),
        };
        if now != before || !missed {
            set_cost(machine, entry.kernel, step.cost, now, &source(step));
        }
        found.push(Found {
            step: *step,
            before,
            now,
            measured: (wanted, most),
            lab: solved.figure,
            missed,
        });
    }
    Ok(found)
}

fn cost_of(machine: &MachineDescription, kernel: &str, cost: &str) -> Cycles {
    let costs = machine.costs.get(kernel).cloned().unwrap_or_default();
    Costs::new(costs).get(cost).unwrap_or(Cycles(0))
}

fn set_cost(machine: &mut MachineDescription, kernel: &str, name: &str, cycles: Cycles, who: &str) {
    let cost = Cost {
        cycles,
        source: who.to_owned(),
    };
    let costs = machine.costs.entry(kernel.to_owned()).or_default();
    costs.insert(name.to_owned(), cost);
}

/// The figure of a step on `machine` in the lab.
fn lab_figure(
    machine: MachineDescription,
    kernel: &Modelled,
    step: &Step,
) -> Result<f64, CannotCalibrate> {
    let engine = Engine::new(Some(machine));
    let mut plan = plan(&engine, &step.scene, LAB, 1, [])?;
    kernel.take_place(&mut plan);
    let played = engine.simulate(&plan);
    let played = played.map_err(|error| CannotCalibrate::Failed(step.scene.name, error))?;
    Ok(step.figure.of(&played.figures).unwrap_or(f64::NAN))
}

/// One play of a scene in `world`.
fn plan<const N: usize>(
    engine: &Engine,
    scene: &Scene,
    world: &str,
    seed: u64,
    settings: [(&str, Value); N],
) -> Result<Plan, CannotCalibrate> {
    if engine.workload(scene.name).is_err() {
        engine.know(scene.name, scene.text)?;
    }
    let of_scene = scene.set.iter();
    let of_scene = of_scene.map(|(key, value)| ((*key).to_owned(), Value::Integer(*value)));
    let settings = settings.into_iter();
    let settings = settings.map(|(key, value)| (key.to_owned(), value));
    let trial = Trial {
        file: scene.name.to_owned(),
        title: scene.name.to_owned(),
        parts: named([world, HOST, KERNEL, scene.name]),
        settings: settings.chain(of_scene).collect(),
        time: Duration::from_ms(scene.ms),
        ..Trial::default()
    };
    let mut jobs = trial
        .experiment(engine)?
        .jobs_called(scene.name, vec![seed]);
    Ok(jobs.swap_remove(0).plan)
}

#[cfg(test)]
mod tests;
