//! Modes in turn: the order of the runs.

use crate::error::BenchError;

use super::limit::Limit;
use super::mode::Mode;

/// The progress of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Runs done.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// The run that was the last to end.
    pub name: String,
}

/// The results of all rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds<S> {
    /// By case, by round, by mode (in the order in which the modes were given). A round is here
    /// only if every mode ended in it.
    pub samples: Vec<Vec<Vec<S>>>,
    /// The time was up before the last round was complete.
    pub cut: bool,
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a, C> {
    /// What is measured; each case on its own.
    pub cases: &'a [C],
    /// How threads are placed.
    pub modes: &'a [Mode],
    /// How often all cases are run in all modes.
    pub rounds: u32,
    /// When to end.
    pub limit: Limit,
}

/// The order of `modes` modes in round `round`: each comes first, second... equally often.
pub fn turn(modes: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..modes).map(move |place| (place + round as usize) % modes)
}

/// Runs all cases in all modes `rounds` times. `run` answers `None` where the time was up before it
/// came to an end; that ends everything. `progress` is told of each run that came to one, with the
/// case as `name` calls it.
///
/// # Errors
/// Those of `run`; [`BenchError::Setting`] where the time was up before one round was complete.
pub fn in_turn<C, S>(
    plan: &Plan<'_, C>,
    mut run: impl FnMut(&C, Mode) -> Result<Option<S>, BenchError>,
    name: impl Fn(&C) -> String,
    progress: &mut dyn FnMut(Step),
) -> Result<Rounds<S>, BenchError> {
    let total = plan.cases.len() * plan.modes.len() * plan.rounds as usize;
    let mut done = 0;
    let mut run = |case: &C, mode: Mode| {
        if plan.limit.is_over() {
            return Ok(None);
        }
        let sample = run(case, mode)?;
        if sample.is_some() {
            done += 1;
            let name = format!("{}, {mode}", name(case));
            progress(Step { done, total, name });
        }
        Ok(sample)
    };
    let mut samples: Vec<Vec<Vec<S>>> = plan.cases.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.rounds {
        for (case, kept) in plan.cases.iter().zip(&mut samples) {
            match one_round(plan.modes, round, |mode| run(case, mode))? {
                Some(by_mode) => kept.push(by_mode),
                None => return ended(samples),
            }
        }
    }
    Ok(Rounds {
        samples,
        cut: false,
    })
}

/// All modes of one case; `None` where one of them came to no end.
fn one_round<S>(
    modes: &[Mode],
    round: u32,
    mut run: impl FnMut(Mode) -> Result<Option<S>, BenchError>,
) -> Result<Option<Vec<S>>, BenchError> {
    let mut by_mode: Vec<Option<S>> = modes.iter().map(|_| None).collect();
    for place in turn(modes.len(), round) {
        let Some(sample) = run(modes[place])? else {
            return Ok(None);
        };
        by_mode[place] = Some(sample);
    }
    Ok(by_mode.into_iter().collect())
}

/// What there is where the time was up.
fn ended<S>(samples: Vec<Vec<Vec<S>>>) -> Result<Rounds<S>, BenchError> {
    if samples.iter().any(|rounds| !rounds.is_empty()) {
        return Ok(Rounds { samples, cut: true });
    }
    let problem = "the time was up before one round was complete";
    let fix = "write a longer --time-limit, or less to do";
    Err(BenchError::TimeUp { problem, fix })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MODES: [Mode; 3] = Mode::ALL;

    fn plan(cases: &[u32], rounds: u32) -> Plan<'_, u32> {
        Plan {
            cases,
            modes: &MODES,
            rounds,
            limit: Limit::after(Duration::from_secs(3600)),
        }
    }

    #[test]
    fn each_mode_has_each_place_equally_often() {
        for modes in 1..4 {
            for place in 0..modes {
                let mut at_place: Vec<usize> = (0..modes as u32)
                    .map(|round| turn(modes, round).nth(place).unwrap())
                    .collect();
                at_place.sort_unstable();
                assert_eq!(at_place, (0..modes).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_run_lands_under_its_case_and_mode_whatever_its_turn() {
        let mut steps = Vec::new();
        let rounds = in_turn(
            &plan(&[10, 20], 4),
            |case, mode| Ok(Some((*case, mode))),
            u32::to_string,
            &mut |step| steps.push(step),
        )
        .unwrap();
        for (case, rounds) in [10, 20].into_iter().zip(&rounds.samples) {
            let expected = MODES.map(|mode| (case, mode)).to_vec();
            assert_eq!(*rounds, vec![expected; 4]);
        }
        assert!(!rounds.cut);
        let done: Vec<usize> = steps.iter().map(|step| step.done).collect();
        assert_eq!(done, (1..=24).collect::<Vec<_>>());
        assert!(steps.iter().all(|step| step.total == 24));
        assert_eq!(steps[4].name, "20, bound");
    }

    #[test]
    fn a_round_that_is_cut_is_not_counted() {
        let mut left = 8;
        let mut run = |case: &u32, _| {
            left -= 1;
            Ok((left >= 0).then_some(*case))
        };
        let rounds = in_turn(&plan(&[1, 2], 4), &mut run, u32::to_string, &mut |_| ()).unwrap();
        assert!(rounds.cut);
        let complete: Vec<usize> = rounds.samples.iter().map(Vec::len).collect();
        assert_eq!(complete, [1, 1]);
    }

    #[test]
    fn without_one_complete_round_there_is_nothing_to_report() {
        let run = |_: &u32, mode| Ok((mode == Mode::Plain).then_some(()));
        let refused = in_turn(&plan(&[1], 2), run, u32::to_string, &mut |_| ()).unwrap_err();
        assert!(refused.to_string().contains("--time-limit"), "{refused}");
    }
}
