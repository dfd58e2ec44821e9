//! Measures all cases in all modes.

use serde::Serialize;

use crate::compare::{Compared, Limit, Plan, Report, Spread, Step};
use crate::error::BenchError;

use super::run::{self, FragmentsSample};
use super::settings::{Case, FragmentsSettings};

/// A row for each number of threads, size and mode.
pub type FragmentsReport = Report<FragmentsRow>;

/// One number of threads with one size in one mode. Work is an access.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FragmentsRow {
    /// Threads.
    pub threads: u32,
    /// Fragments.
    pub fragments: u32,
    /// 32-bit numbers in a fragment.
    pub size: u32,
    /// Accesses of each thread.
    pub iterations: u64,
    /// Accesses in a hundred that write.
    pub write_share: u32,
    /// The mode, what its runs took, and how it compares.
    #[serde(flatten)]
    pub compared: Compared,
    /// Times in a run that a thread was seen on another CPU than at the look before; looks are 4096
    /// accesses apart, so that a thread that left and came back between two is not seen to move.
    pub moves: Spread,
    /// The share of accesses on the CPU where most of their fragment's took place.
    pub together: Spread,
    /// Hints in all runs that a scheduler heard.
    pub hints_heard: u64,
}

/// Measures every number of threads with every size, all modes in turn. `progress` is called after
/// each run.
///
/// # Errors
/// Settings that make no sense, threads that cannot be had, and a time limit before the first
/// complete round.
pub fn measure_fragments(
    settings: &FragmentsSettings,
    progress: &mut dyn FnMut(Step),
) -> Result<FragmentsReport, BenchError> {
    settings.check()?;
    let limit = Limit::after(settings.time_limit);
    let plan = Plan {
        cases: &settings.cases(),
        modes: &settings.modes,
        rounds: settings.repetitions,
        limit,
    };
    let run = |case: &Case, mode| run::run(settings, case, mode, &limit);
    let name = |case: &Case| format!("{} threads, size {}", case.threads, case.size);
    let row =
        |case: &Case, compared, runs: &[&FragmentsSample]| row(settings, case, compared, runs);
    Report::measure(&plan, run, name, progress, row)
}

fn row(
    settings: &FragmentsSettings,
    case: &Case,
    compared: Compared,
    runs: &[&FragmentsSample],
) -> Option<FragmentsRow> {
    let spread = |value: &dyn Fn(&FragmentsSample) -> f64| {
        let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
        Spread::of(&values)
    };
    let hints_heard = runs.iter().map(|run| run.heard).sum();
    Some(FragmentsRow {
        threads: case.threads,
        fragments: settings.fragments,
        size: case.size,
        iterations: settings.iterations,
        write_share: settings.write_share,
        compared: compared.with_hints(hints_heard),
        moves: spread(&|run| run.moves as f64)?,
        together: spread(&|run| run.together)?,
        hints_heard,
    })
}
