//! Complete rounds of one case, mode by mode, each beside plain.

use serde::Serialize;

use super::against::{Against, Verdict};
use super::mode::Mode;
use super::sample::{Sample, Summary};

/// One mode of one case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// How threads were placed.
    pub mode: Mode,
    /// What the runs took.
    #[serde(flatten)]
    pub summary: Summary,
    /// The speed as a multiple of plain's; `None` for plain itself, and where plain was not run.
    pub against_plain: Option<Against>,
}

/// Every mode with the results of its runs; nothing if no round is complete.
///
/// `rounds` has a run for each of `modes` in each round.
pub fn compared<'a, S: AsRef<Sample>>(
    modes: &[Mode],
    rounds: &'a [Vec<S>],
) -> Vec<(Compared, Vec<&'a S>)> {
    let plain = modes.iter().position(|mode| *mode == Mode::Plain);
    let of = |(place, mode): (usize, &Mode)| {
        let runs: Vec<&S> = rounds.iter().map(|round| &round[place]).collect();
        let samples: Vec<Sample> = runs.iter().map(|run| *run.as_ref()).collect();
        let compared = Compared {
            mode: *mode,
            summary: Summary::of(&samples)?,
            against_plain: plain
                .filter(|plain| *plain != place)
                .and_then(|plain| Against::of(&ratios(rounds, plain, place))),
        };
        Some((compared, runs))
    };
    modes.iter().enumerate().filter_map(of).collect()
}

/// The speed of the mode at `place` as a multiple of the one at `plain`, round by round.
fn ratios<S: AsRef<Sample>>(rounds: &[Vec<S>], plain: usize, place: usize) -> Vec<f64> {
    let ns = |run: &S| run.as_ref().elapsed_ns.max(1) as f64;
    rounds
        .iter()
        .map(|round| ns(&round[plain]) / ns(&round[place]))
        .collect()
}

impl Compared {
    /// The same, where this program hinted and `hints_heard` of its hints were heard: what nobody
    /// heard neither pays nor fails to.
    pub fn with_hints(mut self, hints_heard: u64) -> Compared {
        if let Some(against) = &mut self.against_plain
            && self.mode == Mode::Hinted
            && hints_heard == 0
        {
            against.verdict = Verdict::NotHeard;
        }
        self
    }
}
