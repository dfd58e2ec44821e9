//! The measurement of all cases in all modes, whatever the program.

use serde::Serialize;

use crate::error::BenchError;

use super::{Compared, Host, Mode, Others, Plan, Sample, Step, compared, in_turn};

/// The result of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report<R> {
    /// Where it was made.
    pub host: Host,
    /// The time was up before the last round was complete.
    pub cut: bool,
    /// The share of the CPUs' time that other programs used; `None` if the kernel does not tell.
    pub others_share: Option<f64>,
    /// A row for each case and mode.
    pub rows: Vec<R>,
}

impl<R> Report<R> {
    /// Runs `plan` on this host, and makes a row of the runs of each case and mode. `run`, `name` and
    /// `progress` are those of [`in_turn`].
    pub(crate) fn measure<C, S: AsRef<Sample>>(
        plan: &Plan<'_, C>,
        run: impl FnMut(&C, Mode) -> Result<Option<S>, BenchError>,
        name: impl Fn(&C) -> String,
        progress: &mut dyn FnMut(Step),
        row: impl Fn(&C, Compared, &[&S]) -> Option<R>,
    ) -> Result<Report<R>, BenchError> {
        let host = Host::now()?;
        let others = Others::begin(&host.cpus)?;
        let rounds = in_turn(plan, run, name, progress)?;
        let of_case = |(case, rounds): (&C, &Vec<Vec<S>>)| {
            let modes = compared(plan.modes, rounds).into_iter();
            let rows = modes.filter_map(|(compared, runs)| row(case, compared, &runs));
            rows.collect::<Vec<R>>()
        };
        let cases = plan.cases.iter().zip(&rounds.samples);
        Ok(Report {
            rows: cases.flat_map(of_case).collect(),
            cut: rounds.cut,
            others_share: others.share()?,
            host,
        })
    }
}
