//! `--profile`: whether there is something to profile.

use warmq_experiment::{Engine, Experiment, Options};

use crate::failure::Failure;

/// Checks that some run is one of a compiled scheduler in the lab.
///
/// # Errors
/// If none is.
pub fn has_programs(
    experiments: &[Experiment],
    options: &Options,
    engine: &Engine,
) -> Result<(), Failure> {
    let jobs = experiments
        .iter()
        .flat_map(|experiment| experiment.jobs(options));
    let mut plans = jobs.map(|job| job.plan);
    match plans.any(|plan| plan.is_simulated() && engine.is_compiled(&plan.scheduler.name)) {
        true => Ok(()),
        false => Err(Failure::usage(
            "--profile: no run here is one of a compiled scheduler in the lab, and only those have \
             instructions to profile",
            "name one or its file, as in --world lab --scheduler ./scx_mine.bpf.o",
        )),
    }
}
