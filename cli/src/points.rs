//! Which points of a sweep are wanted, as `--point` says.

use std::collections::BTreeMap;

use warmq_config::Value;
use warmq_experiment::{Experiment, Filter, Options};

use crate::failure::Failure;
use crate::typed;
use warmq_config::Pair;

/// `options`, with only the points where each key of `wanted` has one of the values that are given
/// for it.
///
/// # Errors
/// A key that is not swept; no such point.
pub fn only(
    experiment: &Experiment,
    options: Options,
    wanted: &[Pair],
) -> Result<Options, Failure> {
    let mut filter: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pair in wanted {
        let axis = experiment.parts.axis(&pair.key);
        let axis = axis.ok_or_else(|| not_swept(experiment, &pair.key))?;
        let meant = axis.values.iter();
        let meant = meant.filter(|value| value.is_written(&pair.value));
        let values = filter.entry(pair.key.clone()).or_default();
        values.extend(meant.cloned());
    }
    let only = Options {
        only: Filter(filter),
        ..options.clone()
    };
    match experiment.points_of(&only).is_empty() {
        true => Err(no_such_point(experiment, &options)),
        false => Ok(only),
    }
}

/// The option that wants these points, as it would be typed; nothing where all are wanted.
pub fn typed(pairs: impl IntoIterator<Item = Pair>) -> Vec<String> {
    let pairs: Vec<String> = pairs.into_iter().map(|pair| pair.to_string()).collect();
    typed::list("point", &pairs)
}

fn not_swept(experiment: &Experiment, key: &str) -> Failure {
    let axes = experiment.parts.axes.iter();
    let keys: Vec<&str> = axes.map(|axis| axis.key.as_str()).collect();
    Failure::usage(
        format!("--point: `{key}` is not swept"),
        format!("the sweep has {}", keys.join(", ")),
    )
}

fn no_such_point(experiment: &Experiment, options: &Options) -> Failure {
    let points = experiment.points_of(options);
    let words = points.iter().map(|point| experiment.name_of(point));
    let words: Vec<String> = words.collect();
    Failure::usage(
        "--point: the sweep has no such point",
        format!("use one of: {}", words.join("; ")),
    )
}
