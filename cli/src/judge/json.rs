//! A judgement as a line of JSON.

use serde::Serialize;
use serde_json::Value;
use warmq_experiment::judgement::{Compared, Contest, FORMULA, Judgement, Ratio};

use crate::failure::Failure;
use crate::output;

#[derive(Serialize)]
struct Line<'j> {
    set: u64,
    world: &'j str,
    scheduler: &'j str,
    kernel: Option<&'j str>,
    base: &'j str,
    base_kernel: Option<&'j str>,
    seeds: &'j [u64],
    verdict: &'j str,
    score: f64,
    formula: &'j str,
    laws: Laws<'j>,
    families: serde_json::Map<String, Value>,
    figures: Vec<Figure<'j>>,
}

#[derive(Serialize)]
struct Laws<'j> {
    holds: usize,
    broken: usize,
    inconclusive: usize,
    skipped: usize,
    regressed: &'j [String],
    gained: &'j [String],
}

#[derive(Serialize)]
struct Figure<'j> {
    scenario: &'j str,
    machine: &'j str,
    figure: &'j str,
    family: &'j str,
    verdict: &'j str,
    #[serde(flatten)]
    ratio: Option<Numbers>,
    values: Vec<Option<f64>>,
    base: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'j str>,
}

#[derive(Serialize)]
struct Numbers {
    ratio: f64,
    low: f64,
    high: f64,
}

/// A line for each scheduler that was judged.
///
/// # Errors
/// A number that JSON does not have.
pub fn lines(contest: &Contest, judgements: &[Judgement<'_>]) -> Result<String, Failure> {
    output::lines_of(judgements[1..].iter().map(|judged| line(contest, judged)))
}

fn line<'j>(contest: &'j Contest, judged: &'j Judgement<'_>) -> Line<'j> {
    let (column, base) = (judged.column, &contest.columns[0]);
    let [holds, broken, inconclusive, skipped] = judged.laws.counts;
    let families = judged.families.iter().map(|(family, ratio)| {
        let ratio = serde_json::json!(numbers(*ratio));
        (family.name().to_owned(), ratio)
    });
    Line {
        set: contest.set.version,
        world: column.world.name(),
        scheduler: &column.scheduler,
        kernel: column.kernel.as_deref(),
        base: &base.scheduler,
        base_kernel: base.kernel.as_deref(),
        seeds: &contest.seeds,
        verdict: match judged.is_regression() {
            true => "regression",
            false => "no regression",
        },
        score: rounded(judged.score),
        formula: FORMULA,
        laws: Laws {
            holds,
            broken,
            inconclusive,
            skipped,
            regressed: &judged.laws.regressed,
            gained: &judged.laws.gained,
        },
        families: families.collect(),
        figures: judged.figures.iter().map(figure).collect(),
    }
}

fn figure<'j>(compared: &'j Compared<'_>) -> Figure<'j> {
    let of = |which: usize| compared.values.iter().map(|both| both[which]).collect();
    Figure {
        scenario: &compared.setup.scenario.name,
        machine: &compared.setup.machine.name,
        figure: &compared.figure.name,
        family: compared.figure.family.name(),
        verdict: compared.comparison.name(),
        ratio: compared.ratio.map(numbers),
        values: of(0),
        base: of(1),
        why: compared.why.as_deref(),
    }
}

fn numbers(ratio: Ratio) -> Numbers {
    Numbers {
        ratio: rounded(ratio.mid),
        low: rounded(ratio.low),
        high: rounded(ratio.high),
    }
}

/// Logarithms differ in their last digits from one C library to another.
fn rounded(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}
