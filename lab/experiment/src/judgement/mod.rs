//! Schedulers judged against another one: `warmq judge` (docs/judge.md).
//!
//! Purpose: whoever changes a scheduler gets one answer. A [`Set`] is data (`judge/v1.toml`):
//! machines, scenarios, and which figures count. A [`Contest`] is what is played: the base and the
//! schedulers, each a [`Column`] as laws have them, in each [`Setup`] (a scenario on a machine)
//! with each seed. Its runs are ordinary ones: each setup becomes a [`Trial`], that an experiment,
//! that jobs; `Runs::of` makes them on all cores, and equal plans once. Laws are played by
//! [`crate::laws`], in the same columns. Of runs and cells a [`Judgement`] is made for each
//! scheduler: its regressions, a comparison for each figure, families and a score.
//!
//! It depends on what plays (`laws`, `request`, `run`) and is called by the command alone, which
//! shows tables, JSON and explanations. It reads no clock, and floats only describe: the same
//! inputs give the same bytes.
//!
//! The score: each ratio is bounded to `1/most..most`; a family is the geometric mean of its
//! ratios, the score that of the families. It is 0 where a law that the base keeps is broken, or a
//! figure that the base has is absent: a scheduler that does not run everything has no speed.

mod ratio;
mod set;
mod welch;

use warmq_config::{Problems, Value};
use warmq_law::{Cell, Column, Verdict};
use warmq_scenario::WorldKind;

pub use self::ratio::{Comparison, Ratio};
pub use self::set::{Better, Family, Figure, Machine, Margins, Scenario, Set};
use crate::laws::changes;
use crate::plan::named;
use crate::request::Trial;
use crate::run::{Job, Runs};
use crate::simulator::{Measured, RunError, Simulator};

/// The formula of the score, as tables and JSON say it.
pub const FORMULA: &str = "geometric mean over families of the geometric mean of their ratios; \
                           0 if a law regressed or a figure is absent";

/// The setting of a machine that says how many CPUs are used.
const CPUS: &str = "machine.cpus";

/// A scenario on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The scenario.
    pub scenario: Scenario,
    /// The machine.
    pub machine: Machine,
}

/// What is played.
#[derive(Clone)]
pub struct Contest {
    /// The version of the set, its margins and its bound.
    pub set: Set,
    /// What the schedulers play.
    pub setups: Vec<Setup>,
    /// The base, and the schedulers that are judged against it.
    pub columns: Vec<Column>,
    /// The seeds of each.
    pub seeds: Vec<u64>,
}

/// All runs of a contest: for each column and each setup its jobs, seed by seed.
pub struct Jobs(Vec<Vec<Vec<Job>>>);

/// A scheduler, judged.
pub struct Judgement<'c> {
    /// The scheduler.
    pub column: &'c Column,
    /// What became of laws.
    pub laws: Laws,
    /// Each figure of each setup.
    pub figures: Vec<Compared<'c>>,
    /// Each family of which there is a figure, with the spread over seeds.
    pub families: Vec<(Family, Ratio)>,
    /// The score, as [`FORMULA`] has it.
    pub score: f64,
}

/// What became of laws: how many the scheduler keeps and breaks, and where it differs from the
/// base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Laws {
    /// How many hold, are broken, are inconclusive, are skipped.
    pub counts: [usize; 4],
    /// Those that the base keeps and the scheduler breaks.
    pub regressed: Vec<String>,
    /// Those that the base breaks and the scheduler keeps.
    pub gained: Vec<String>,
}

/// A figure of a setup.
pub struct Compared<'c> {
    /// The setup.
    pub setup: &'c Setup,
    /// The figure.
    pub figure: &'c Figure,
    /// Its value of each seed, and the base's: nothing where a run does not have it.
    pub values: Vec<[Option<f64>; 2]>,
    /// How it compares.
    pub comparison: Comparison,
    /// The ratio, where both have the figure.
    pub ratio: Option<Ratio>,
    /// The scheduler's run that is worst in it.
    pub worst: &'c Job,
    /// The base's run of the same seed.
    pub base: &'c Job,
    /// Why it is absent, if a run failed.
    pub why: Option<String>,
}

impl Contest {
    /// All jobs, checked.
    ///
    /// # Errors
    /// A scenario, a machine or a setting that there is not.
    pub fn jobs(&self, simulator: &dyn Simulator) -> Result<Jobs, Vec<Problems>> {
        let mut wrong = Vec::new();
        let columns = self.columns.iter().map(|column| {
            let setups = self.setups.iter().map(|setup| {
                let jobs = setup.jobs(column, &self.seeds, simulator);
                jobs.unwrap_or_else(|problems| {
                    if !wrong.contains(&problems) {
                        wrong.push(problems);
                    }
                    Vec::new()
                })
            });
            setups.collect()
        });
        let jobs = Jobs(columns.collect());
        match wrong.is_empty() {
            true => Ok(jobs),
            false => Err(wrong),
        }
    }

    /// Judges each scheduler by `runs`, which are those of `jobs`, and by `cells` of laws, law by
    /// law as [`crate::laws::judged`] has them.
    pub fn judged<'c>(
        &'c self,
        jobs: &'c Jobs,
        runs: &Runs,
        cells: &[Cell<'_>],
    ) -> Vec<Judgement<'c>> {
        let columns = self.columns.iter().enumerate();
        let judgements = columns.map(|(place, column)| {
            let laws = Laws::of(cells, self.columns.len(), place);
            let figures = self.compared(&jobs.0[place], &jobs.0[0], runs);
            let (families, score) = self.scored(&figures);
            let judged = Judgement {
                column,
                laws,
                figures,
                families,
                score,
            };
            match judged.is_regression() {
                true => Judgement {
                    score: 0.0,
                    ..judged
                },
                false => judged,
            }
        });
        judgements.collect()
    }

    fn compared<'c>(
        &'c self,
        jobs: &'c [Vec<Job>],
        base: &'c [Vec<Job>],
        runs: &Runs,
    ) -> Vec<Compared<'c>> {
        let setups = self.setups.iter().zip(jobs.iter().zip(base));
        let figures = setups.flat_map(|(setup, (jobs, base))| {
            let of_figure =
                move |figure| compared(setup, figure, jobs, base, runs, self.set.margins);
            setup.scenario.figures.iter().map(of_figure)
        });
        figures.collect()
    }

    /// Families and score. The spread of a family is that over seeds, each beside the base's of the
    /// same number.
    fn scored(&self, figures: &[Compared<'_>]) -> (Vec<(Family, Ratio)>, f64) {
        let bounded = |ratio: f64| ratio.clamp(1.0 / self.set.most, self.set.most);
        let families = Family::ALL.into_iter().filter_map(|family| {
            let of_family = || figures.iter().filter(|one| one.figure.family == family);
            let ratios = of_family().filter_map(|one| one.ratio);
            let mid = ratio::mean(ratios.map(|ratio| bounded(ratio.mid)))?;
            let of_seeds = (0..self.seeds.len()).filter_map(|seed| {
                let ratios = of_family().filter_map(|one| one.of_seed(seed));
                ratio::mean(ratios.map(bounded))
            });
            let of_seeds: Vec<f64> = of_seeds.collect();
            let ratio = Ratio {
                mid,
                low: of_seeds.iter().copied().fold(mid, f64::min),
                high: of_seeds.iter().copied().fold(mid, f64::max),
            };
            Some((family, ratio))
        });
        let families: Vec<(Family, Ratio)> = families.collect();
        let score = ratio::mean(families.iter().map(|(_, ratio)| ratio.mid));
        (families, score.unwrap_or(1.0))
    }
}

impl Jobs {
    /// All of them, in order.
    pub fn all(&self) -> Vec<Job> {
        self.0.iter().flatten().flatten().cloned().collect()
    }
}

impl Compared<'_> {
    /// The ratio of one seed, where both have the figure.
    fn of_seed(&self, seed: usize) -> Option<f64> {
        match self.values[seed] {
            [Some(value), Some(base)] => Some(ratio::of_values(self.figure, value, base)),
            _ => None,
        }
    }
}

impl Judgement<'_> {
    /// Whether it broke what the base keeps, or failed where the base did not.
    pub fn is_regression(&self) -> bool {
        !self.laws.regressed.is_empty() || self.absent().next().is_some()
    }

    /// The geometric mean of its ratios in a scenario, whatever they are about.
    pub fn of_scenario(&self, name: &str) -> Option<f64> {
        let of = self
            .figures
            .iter()
            .filter(|one| one.setup.scenario.name == name);
        ratio::mean(of.filter_map(|one| Some(one.ratio?.mid)))
    }

    /// Figures that the base has and the scheduler lacks.
    pub fn absent(&self) -> impl Iterator<Item = &Compared<'_>> {
        let all = self.figures.iter();
        all.filter(|figure| figure.comparison == Comparison::Absent)
    }
}

impl Laws {
    fn of(cells: &[Cell<'_>], columns: usize, place: usize) -> Laws {
        let mut laws = Laws::default();
        for row in cells.chunks(columns) {
            let (base, cell) = (row[0].judged.verdict, row[place].judged.verdict);
            match cell {
                Verdict::Holds | Verdict::Compared => laws.counts[0] += 1,
                Verdict::Broken => laws.counts[1] += 1,
                Verdict::Inconclusive => laws.counts[2] += 1,
                Verdict::Skipped => laws.counts[3] += 1,
            }
            let name = || row[0].law.name.clone();
            match (base, cell) {
                (Verdict::Holds, Verdict::Broken) => laws.regressed.push(name()),
                (Verdict::Broken, Verdict::Holds) => laws.gained.push(name()),
                _ => {}
            }
        }
        laws
    }
}

impl Setup {
    fn jobs(
        &self,
        column: &Column,
        seeds: &[u64],
        simulator: &dyn Simulator,
    ) -> Result<Vec<Job>, Problems> {
        let experiment = self.trial(column).experiment(simulator)?;
        Ok(experiment.jobs_called(&format!("{self} under {column}"), seeds.to_vec()))
    }

    fn trial(&self, column: &Column) -> Trial {
        let (scenario, machine) = (&self.scenario, &self.machine);
        let is_here = column.world == WorldKind::Host;
        let place = if is_here { "host" } else { &machine.is };
        let cpus = machine.cpus.filter(|_| !is_here);
        let cpus = cpus.map(|count| (CPUS.to_owned(), Value::Integer(count as i64)));
        let of_scenario = scenario
            .settings
            .iter()
            .filter(|(name, _)| !is_here || *name != CPUS);
        // A scheduler may have a setting of the same name.
        let of_scenario = of_scenario.map(|(name, value)| match name.contains('.') {
            true => (name.clone(), value.clone()),
            false => (format!("workload.{name}"), value.clone()),
        });
        Trial {
            file: scenario.name.clone(),
            parts: named([column.world.name(), place, column.name(), &scenario.name]),
            settings: cpus.into_iter().chain(of_scenario).collect(),
            warmup: scenario.warmup,
            time: scenario.time,
            changes: changes(column),
            ..Trial::default()
        }
    }
}

impl std::fmt::Display for Setup {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} on {}", self.scenario.name, self.machine.name)
    }
}

fn compared<'c>(
    setup: &'c Setup,
    figure: &'c Figure,
    jobs: &'c [Job],
    base: &'c [Job],
    runs: &Runs,
    margins: Margins,
) -> Compared<'c> {
    let of = |job: &Job| value(figure, job, runs);
    let values: Vec<[Option<f64>; 2]> = jobs
        .iter()
        .zip(base)
        .map(|(job, base)| [of(job), of(base)])
        .collect();
    let all =
        |which: usize| -> Option<Vec<f64>> { values.iter().map(|both| both[which]).collect() };
    let (comparison, ratio) = Comparison::of(figure, all(0).as_deref(), all(1).as_deref(), margins);
    // What is absent is worst.
    let goodness =
        |seed: &usize| values[*seed][0].map(|value| ratio::of_values(figure, value, 1.0));
    let goodness = |seed: &usize| goodness(seed).unwrap_or(f64::NEG_INFINITY);
    let worst = (0..values.len()).min_by(|one, other| goodness(one).total_cmp(&goodness(other)));
    let worst = worst.unwrap_or(0);
    let failed = jobs
        .iter()
        .find_map(|job| result(job, runs)?.as_ref().err());
    Compared {
        setup,
        figure,
        values,
        comparison,
        ratio,
        worst: &jobs[worst],
        base: &base[worst],
        why: failed.map(ToString::to_string),
    }
}

fn result<'r>(job: &Job, runs: &'r Runs) -> Option<&'r Result<Measured, RunError>> {
    runs.0.get(&job.plan)
}

fn value(figure: &Figure, job: &Job, runs: &Runs) -> Option<f64> {
    let measured = runs.measured(&job.plan)?;
    measured.figures.get(&figure.name).copied()
}
