//! Instances of the affinity model: found or drawn, solved, and shown as text or JSON.

mod drawing;
mod json;
mod section;
mod text;

use std::path::Path;

use warmq_affinity::{
    Best, Gap, Gaps, Instance, Online, Optimum, Plan, Policy, Schedule, Shape, TooLarge, draw,
    online, optimum, replay,
};

use crate::failure::Failure;
use crate::output;
use crate::progress::Late;

pub use self::section::{GAP, is_named, section};

/// Name and text of each instance that comes with WarmQ.
const INSTANCES: &[(&str, &str)] = warmq_config::texts! {
    "../../../instances/": "example" "bins" "changes"
};

/// Instances to be drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// How many.
    pub count: u64,
    /// The seed of the first.
    pub seed: u64,
    /// CPUs of each, if not the usual ones.
    pub cpus: Option<u64>,
    /// Tasks of each.
    pub tasks: Option<u64>,
    /// Fragments of each.
    pub fragments: Option<u64>,
}

/// An instance with all that is known of it.
struct Answer {
    instance: Instance,
    policy: Policy,
    /// The file's orders, by name.
    orders: Vec<(String, Schedule)>,
    online: Online,
    whole_bins: Result<Best, TooLarge>,
    optimum: Result<Best, TooLarge>,
}

/// Answers `name`: a file, or an instance that comes with WarmQ where no file has the name.
///
/// # Errors
/// No such file, or what is wrong in it.
pub fn file(name: &str, json: bool) -> Result<(), Failure> {
    show(&answer(plan(name)?), json)
}

/// The instance called `name`, as [`file`] finds it.
///
/// # Errors
/// As of [`file`].
pub fn plan(name: &str) -> Result<Plan, Failure> {
    let shipped = INSTANCES.iter().find(|(shipped, _)| *shipped == name);
    let plan = match shipped.filter(|_| !Path::new(name).exists()) {
        Some((name, text)) => Plan::read(&format!("{name}.toml"), text),
        None => Plan::read(name, &text_of(name)?),
    };
    plan.map_err(|problems| Failure::Problems(vec![problems]))
}

fn text_of(name: &str) -> Result<String, Failure> {
    warmq_config::read_text(name).map_err(|error| {
        let names: Vec<&str> = INSTANCES.iter().map(|(name, _)| *name).collect();
        let help = format!(
            "give a file, or one that comes with warmq ({})",
            names.join(", ")
        );
        Failure::usage(format!("{name}: cannot read it: {error}"), help)
    })
}

/// Draws instances and shows how far the online algorithm is from their optimum; a single one is
/// shown as if it came from a file.
///
/// # Errors
/// An instance that is too large for an exact answer.
pub fn drawn(drawn: &Drawn, json: bool) -> Result<(), Failure> {
    let shape = drawn.shape();
    if drawn.count == 1 {
        let instance = draw(&shape, drawn.seed);
        let policy = Policy::usual(&instance);
        let orders = Vec::new();
        let plan = Plan {
            instance,
            orders,
            policy,
        };
        return show(&answer(plan), json);
    }
    let gaps = gaps(drawn, &shape)?;
    match json {
        true => output::print(&json::gaps(drawn, &gaps).to_string()),
        false => output::print(&text::gaps(drawn, &gaps)),
    }
}

fn gaps(drawn: &Drawn, shape: &Shape) -> Result<Gaps, Failure> {
    let mut progress = Late::over("instances");
    let total = drawn.count as usize;
    let mut all = Vec::with_capacity(total);
    for index in 0..drawn.count {
        let seed = drawn.seed.wrapping_add(index);
        let gap = Gap::of(&draw(shape, seed), seed).map_err(|error| {
            let help = "give fewer --cpus or --tasks";
            Failure::usage(format!("the instance of seed {seed}: {error}"), help)
        })?;
        all.push(gap);
        progress.see(all.len(), total, &format!("seed {seed}"));
    }
    Ok(Gaps { all })
}

impl Drawn {
    fn shape(&self) -> Shape {
        let mut shape = Shape::default();
        for (given, range) in [
            (self.cpus, &mut shape.cpus),
            (self.tasks, &mut shape.tasks),
            (self.fragments, &mut shape.fragments),
        ] {
            if let Some(count) = given {
                *range = count..=count;
            }
        }
        shape
    }

    /// The command that shows the instance of `seed`.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("warmq oracle --random 1 --seed {seed}");
        for (option, given) in [
            ("cpus", self.cpus),
            ("tasks", self.tasks),
            ("fragments", self.fragments),
        ] {
            if let Some(count) = given {
                command.push_str(&format!(" --{option} {count}"));
            }
        }
        command
    }
}

fn answer(plan: Plan) -> Answer {
    let instance = plan.instance;
    let orders = plan.orders.into_iter();
    let orders = orders.map(|(name, order)| (name, replay(&instance, &order)));
    let mut progress = Late::over("rows");
    let mut best = |which, name: &str| {
        let mut see = |done, total| progress.see(done, total, name);
        optimum(&instance, which, &mut see)
    };
    Answer {
        orders: orders.collect(),
        online: online(&instance, &plan.policy),
        whole_bins: best(Optimum::WholeBins, "whole bins"),
        optimum: best(Optimum::SplitBins, "optimum"),
        policy: plan.policy,
        instance,
    }
}

fn show(answer: &Answer, json: bool) -> Result<(), Failure> {
    match json {
        true => output::print(&json::answer(answer).to_string()),
        false => output::print(&text::answer(answer)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_the_folder_of_instances_is_shipped_and_can_be_read() {
        let folder = format!("{}/../instances", env!("CARGO_MANIFEST_DIR"));
        let names = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let file = |(name, _): &(&str, &str)| std::ffi::OsString::from(format!("{name}.toml"));
        let mut shipped: Vec<_> = INSTANCES.iter().map(file).collect();
        shipped.sort();
        assert_eq!(names, shipped);
        for (name, text) in INSTANCES {
            Plan::read(name, text).unwrap();
        }
    }
}
