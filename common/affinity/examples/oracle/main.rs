//! Says how far scheduling by data affinity is from the optimum, exactly (docs/affinity/model.md).

mod drawing;
mod json;
#[cfg(test)]
mod tests;
mod text;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use warmq_affinity::{
    Best, Gaps, Instance, Online, Optimum, Plan, Policy, Schedule, Shape, TooLarge, draw, online,
    optimum, replay,
};

/// Name and text of each instance that comes with WarmQ.
const INSTANCES: &[(&str, &str)] = warmq_config::texts! {
    "../../../../instances/": "example" "bins" "changes"
};

const EXAMPLES: &str = "\
Examples, each after `cargo run -p warmq-affinity --example oracle --`:
  example                     the paper's worked example, drawn
  mine.toml --json            an instance of yours, for scripts
  --random 1000               how far the online algorithm is from the optimum
  --random 1000 --cpus 2 --tasks 8 --fragments 3 --seed 7
  --random 1 --seed 371       one of these instances, drawn";

/// Say how far scheduling by data affinity is from the optimum, exactly.
///
/// A file has tasks, the fragments of data that they use, and what a cache costs to fill and to
/// write back (docs/affinity/model.md). Shown are the orders that it gives, what the online
/// algorithm of the affinity scheduler makes of it, and the schedule that ends first of all.
/// Instances must be small: some dozens of runs on two CPUs.
#[derive(Parser, Debug)]
#[command(name = "oracle", after_help = EXAMPLES)]
struct Arguments {
    /// A file, or one that comes with WarmQ: example, bins, changes.
    #[arg(value_name = "FILE", required_unless_present = "random")]
    file: Option<String>,
    #[command(flatten)]
    drawn: Drawn,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Instances to be drawn.
#[derive(clap::Args, Clone, Debug)]
struct Drawn {
    /// Draw N small instances instead, and show how the gap is distributed.
    #[arg(
        long = "random",
        id = "random",
        value_name = "N",
        conflicts_with = "file"
    )]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000))]
    count: Option<u64>,
    /// The seed of the first; each further one has the next.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// CPUs of each [default: 2 or 3].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=4))]
    cpus: Option<u64>,
    /// Tasks of each, beside one that may run first [default: 2 to 10].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=16))]
    tasks: Option<u64>,
    /// Fragments of each [default: 1 to 4].
    #[arg(long, value_name = "N", conflicts_with = "file")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1..=16))]
    fragments: Option<u64>,
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

fn main() -> ExitCode {
    match shown(&Arguments::parse()) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

/// What is printed; an error is a sentence for people.
fn shown(arguments: &Arguments) -> Result<String, String> {
    let drawn = &arguments.drawn;
    let plan = match (&arguments.file, drawn.count) {
        (Some(name), _) => plan(name)?,
        (None, Some(count)) if count > 1 => return gaps(drawn, count, arguments.json),
        _ => Plan::usual(draw(&drawn.shape(), drawn.seed)),
    };
    let answer = answer(plan);
    Ok(match arguments.json {
        true => json::answer(&answer).to_string(),
        false => text::answer(&answer),
    })
}

/// The instance called `name`: a file, or one that comes with WarmQ where no file has the name.
fn plan(name: &str) -> Result<Plan, String> {
    let shipped = INSTANCES.iter().find(|(shipped, _)| *shipped == name);
    let plan = match shipped.filter(|_| !Path::new(name).exists()) {
        Some((name, text)) => Plan::read(&format!("{name}.toml"), text),
        None => {
            let text = fs::read_to_string(name);
            let text = text.map_err(|error| format!("{name}: cannot read it: {error}"))?;
            Plan::read(name, &text)
        }
    };
    plan.map_err(|problems| problems.to_string())
}

fn gaps(drawn: &Drawn, count: u64, json: bool) -> Result<String, String> {
    let gaps = Gaps::of(&drawn.shape(), drawn.seed, count, &mut |_| {});
    let gaps = gaps.map_err(|(seed, error)| {
        format!("the instance of seed {seed}: {error}: give fewer --cpus or --tasks")
    })?;
    Ok(match json {
        true => json::gaps(drawn, &gaps).to_string(),
        false => text::gaps(drawn, &gaps),
    })
}

impl Drawn {
    fn shape(&self) -> Shape {
        Shape::default().sized(self.cpus, self.tasks, self.fragments)
    }

    /// The arguments that show the instance of `seed`.
    fn command(&self, seed: u64) -> String {
        let mut command = format!("--random 1 --seed {seed}");
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
    let best = |which| optimum(&instance, which, &mut |_, _| {});
    Answer {
        orders: orders.collect(),
        online: online(&instance, &plan.policy),
        whole_bins: best(Optimum::WholeBins),
        optimum: best(Optimum::SplitBins),
        policy: plan.policy,
        instance,
    }
}
