//! Measures all cases in all modes.

use serde::Serialize;

use crate::compare::{Compared, Host, Limit, Others, Plan, Spread, Step, compared, in_turn};
use crate::error::BenchError;

use super::run::{self, FragmentsSample};
use super::settings::{Case, FragmentsSettings};

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FragmentsReport {
    /// Where it was made.
    pub host: Host,
    /// The time was up before the last round was complete.
    pub cut: bool,
    /// The share of the CPUs' time that other programs used; `None` if the kernel does not tell.
    pub others_share: Option<f64>,
    /// A row for each number of threads, size and mode.
    pub rows: Vec<FragmentsRow>,
}

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
    let host = Host::now()?;
    let others = Others::begin(&host.cpus)?;
    let limit = Limit::after(settings.time_limit);
    let cases = settings.cases();
    let plan = Plan {
        cases: &cases,
        modes: &settings.modes,
        rounds: settings.repetitions,
        limit,
    };
    let run = |case: &Case, mode| run::run(settings, case, mode, &limit);
    let name = |case: &Case| format!("{} threads, size {}", case.threads, case.size);
    let rounds = in_turn(&plan, run, name, progress)?;
    let of_case = |(case, rounds): (&Case, &Vec<Vec<FragmentsSample>>)| {
        let modes = compared(&settings.modes, rounds).into_iter();
        let rows = modes.filter_map(|(it, runs)| row(settings, case, it, &runs));
        rows.collect::<Vec<_>>()
    };
    let rows = cases
        .iter()
        .zip(&rounds.samples)
        .flat_map(of_case)
        .collect();
    let others_share = others.share()?;
    Ok(FragmentsReport {
        cut: rounds.cut,
        others_share,
        rows,
        host,
    })
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
