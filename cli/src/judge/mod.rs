//! `warmq judge`: what was asked for into a contest, and what became of it as text and JSON.

mod explain;
pub mod json;
pub mod page;
pub mod text;
pub mod tune;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Args;
use warmq_config::did_you_mean;
use warmq_experiment::judgement::{Contest, Jobs, Judgement, Machine, Scenario, Set, Setup};
use warmq_experiment::laws::{Playing, check};
use warmq_experiment::{Engine, Job, Progress, Runs, seeds};
use warmq_law::{Cell, Column, Columns, Found};
use warmq_scenario::WorldKind;

use crate::arguments::Trust;
use crate::failure::Failure;
use crate::laws::{self, shipped};
use crate::machines::{self, HOST};
use crate::progress::OfRuns;
use crate::seeds::Seeds;
use crate::{output, scenario};

/// The kernel whose own scheduler is the base in the lab: the newest that it has.
const NEWEST: &str = "7.3";
/// How often a real kernel plays each scenario: enough for a test, few enough for an evening.
const REPETITIONS: u64 = 5;
/// In place of names of laws: none of them.
const NO_LAWS: &str = "none";
/// Seeds that are drawn are below this, so that they can be typed again.
const FRESH_BELOW: u64 = 1_000_000_000;

/// `--seeds` of a judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgeSeeds {
    /// These.
    Given(Seeds),
    /// Drawn from the system.
    Fresh,
}

impl FromStr for JudgeSeeds {
    type Err = String;

    fn from_str(text: &str) -> Result<JudgeSeeds, String> {
        match text {
            "fresh" => Ok(JudgeSeeds::Fresh),
            text => Ok(JudgeSeeds::Given(text.parse()?)),
        }
    }
}

impl JudgeSeeds {
    /// The seeds; `usual` is how many there are.
    fn all(&self, usual: u64) -> Vec<u64> {
        match self {
            JudgeSeeds::Given(Seeds(seeds)) => seeds.clone(),
            JudgeSeeds::Fresh => {
                let drawn = |_| RandomState::new().build_hasher().finish() % FRESH_BELOW;
                (0..usual).map(drawn).collect()
            }
        }
    }
}

/// What is asked for.
#[derive(Args, Clone, Debug)]
pub struct Wanted {
    /// Schedulers: `kernel`, one of the lab, or a program or an object of sched_ext; with settings
    /// as NAME:KEY=VALUE;KEY=VALUE.
    #[arg(required = true, value_name = "SCHEDULER", value_delimiter = ',')]
    pub schedulers: Vec<String>,
    /// The scheduler that they are judged against [default: the kernel's own: of 7.3 in the lab, of
    /// the same kernel elsewhere].
    #[arg(long, value_name = "SCHEDULER")]
    pub against: Option<String>,
    /// Kernels whose own scheduler `kernel` is, and those of guests: series (6.12, 7.3) [default:
    /// 6.18].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Who plays: lab, guest (a real kernel in QEMU), host (this machine).
    #[arg(long, value_name = "WORLD", default_value = "lab")]
    pub world: String,
    /// Machines of the set (2cpus, smt, 4llc, 12llc, 24llc, 2nodes), or others by name or file
    /// [default: all of the set].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub machine: Vec<String>,
    /// Scenarios of the set, or others by name or file [default: all of the set].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// Laws by name or file, or `none` [default: all that come with warmq].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub law: Vec<String>,
    /// How many seeds (3), which (4,7; a single one with a comma: 7,), or `fresh`: as many as
    /// usual, drawn anew and printed [default: 3; of real kernels 5 repetitions].
    #[arg(long, value_name = "N|LIST|fresh")]
    pub seeds: Option<JudgeSeeds>,
}

/// A contest, and what plays it.
pub struct Ring {
    /// What is played.
    pub contest: Contest,
    engine: Engine,
    laws: Vec<Found>,
    threads: usize,
}

/// What was played.
pub struct Played<'r> {
    /// The runs that were asked for.
    pub jobs: Jobs,
    /// What they gave.
    pub runs: Runs,
    /// The laws.
    pub cells: Vec<Cell<'r>>,
}

impl Ring {
    /// Finds all that was asked for.
    ///
    /// # Errors
    /// What there is not.
    pub fn new(wanted: &Wanted, trust: Trust, threads: usize) -> Result<Ring, Failure> {
        let columns = columns(wanted)?;
        let set = Set::shipped()?;
        let setups = setups(wanted, trust, &set)?;
        let usual = match wanted.world == WorldKind::Lab.name() {
            true => set.seeds,
            false => REPETITIONS,
        };
        let seeds = match &wanted.seeds {
            Some(given) => given.all(usual),
            None => seeds(usual),
        };
        if wanted.seeds == Some(JudgeSeeds::Fresh) {
            let drawn = itertools::join(&seeds, ",");
            output::say(&format!("warmq: the same again: --seeds {drawn}"));
        }
        let is_here = |column: &Column| column.world == WorldKind::Host;
        let names_host = setups.iter().any(|setup| setup.machine.is == HOST);
        let engine = machines::engine_of(names_host || columns.iter().any(is_here))?;
        let engine = trust.engine(engine);
        for column in &columns {
            check(column, &engine)?;
        }
        let contest = Contest {
            set,
            setups,
            columns,
            seeds,
        };
        Ok(Ring {
            contest,
            engine,
            laws: laws_of(&wanted.law, trust)?,
            threads,
        })
    }

    /// Plays all of it.
    ///
    /// # Errors
    /// A setting that there is not; what the operating system refuses.
    pub fn play(&self) -> Result<Played<'_>, Failure> {
        self.played(&self.contest, &self.laws, Runs::default())
    }

    /// Plays `laws` and a part of the contest, but what is `known`.
    fn played<'r>(
        &self,
        contest: &'r Contest,
        laws: &'r [Found],
        mut known: Runs,
    ) -> Result<Played<'r>, Failure> {
        let jobs = contest.jobs(&self.engine);
        let jobs = jobs.map_err(Failure::Problems)?;
        let playing = Playing {
            threads: self.threads,
            ..Playing::default()
        };
        let cells = match laws.is_empty() {
            true => Vec::new(),
            false => laws::judged(laws, &contest.columns, &playing, None, &mut |_| Ok(()))?,
        };
        let mut new = jobs.all();
        known
            .0
            .retain(|plan, _| new.iter().any(|job| job.plan == *plan));
        new.retain(|job| !known.0.contains_key(&job.plan));
        known.0.extend(self.runs(new)?.0);
        let runs = known;
        Ok(Played { jobs, runs, cells })
    }

    /// Why each of `judgements` lost.
    ///
    /// # Errors
    /// A run that was made before, and is not made again.
    pub fn explained(
        &self,
        judgements: &[Judgement<'_>],
        cells: &[Cell<'_>],
    ) -> Result<String, Failure> {
        let each = judgements.iter().skip(1);
        let each = each.map(|judged| explain::of(judged, cells, &self.engine));
        Ok(each.collect::<Result<Vec<_>, _>>()?.join("\n\n"))
    }

    fn runs(&self, jobs: Vec<Job>) -> Result<Runs, Failure> {
        let shown = OfRuns::default();
        let see = |progress: Progress<'_>| shown.see(progress);
        Ok(Runs::of(jobs, &self.engine, self.threads, &see)?)
    }
}

/// The base, and whoever is judged; each once.
fn columns(wanted: &Wanted) -> Result<Vec<Column>, Failure> {
    if wanted.schedulers.iter().any(|name| name.trim().is_empty()) {
        let what = "one of the schedulers has an empty name";
        return Err(Failure::usage(what, "write NAME or NAME,NAME"));
    }
    let of = |schedulers: &[String], kernels: &[String]| {
        let columns = Columns {
            world: vec![wanted.world.clone()],
            scheduler: schedulers.to_vec(),
            kernel: kernels.to_vec(),
            ..Columns::default()
        };
        let all = columns.all();
        all.map_err(|what| Failure::usage(what, "use lab, guest or host"))
    };
    let base_kernel = match (wanted.world == WorldKind::Lab.name(), &wanted.kernel) {
        (true, _) => vec![NEWEST.to_owned()],
        (false, kernels) => kernels.iter().take(1).cloned().collect(),
    };
    let against: Vec<String> = wanted.against.clone().into_iter().collect();
    let mut columns = of(&against, &base_kernel)?;
    let given = of(&wanted.schedulers, &wanted.kernel)?;
    let base = columns[0].clone();
    columns.extend(given.into_iter().filter(|column| *column != base));
    match columns.len() {
        1 => Err(Failure::usage(
            format!("{base} would be judged against itself"),
            "name another scheduler, or another one with --against",
        )),
        _ => Ok(columns),
    }
}

/// Each scenario on each of its machines. Where both are named, or a machine is not of the set,
/// each scenario is played on each.
fn setups(wanted: &Wanted, trust: Trust, set: &Set) -> Result<Vec<Setup>, Failure> {
    let machines = machines_of(wanted, set)?;
    let scenarios = match &wanted.scenario[..] {
        [] => set.scenarios.clone(),
        names => names
            .iter()
            .map(|name| one_scenario(trust, set, name))
            .collect::<Result<_, _>>()?,
    };
    let both_named = !wanted.machine.is_empty() && !wanted.scenario.is_empty();
    let is_played = |scenario: &Scenario, machine: &Machine| {
        both_named || scenario.machines.contains(&machine.name) || !set.machines.contains(machine)
    };
    let each = scenarios.iter().flat_map(|scenario| {
        let on = machines.iter().filter(|one| is_played(scenario, one));
        on.map(|machine| Setup {
            scenario: scenario.clone(),
            machine: machine.clone(),
        })
    });
    let each: Vec<Setup> = each.collect();
    match each.is_empty() {
        true => Err(Failure::usage(
            "none of these scenarios is played on these machines",
            "name both, --scenario and --machine: then each is played on each",
        )),
        false => Ok(each),
    }
}

/// The machines that were named, or all of the set that this world can have: guests of as many CPUs
/// as this machine has cores, and for --world host this machine alone.
fn machines_of(wanted: &Wanted, set: &Set) -> Result<Vec<Machine>, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let is_of = |world: WorldKind| wanted.world == world.name();
    match &wanted.machine[..] {
        [] if is_of(WorldKind::Host) => Ok(vec![machine(set, HOST)?]),
        [] if is_of(WorldKind::Guest) => {
            let all = set.machines.iter();
            let sized = all.map(|machine| Ok((cpus(machine)?, machine)));
            let sized = sized.collect::<Result<Vec<_>, Failure>>()?.into_iter();
            let fits = sized.filter(|(cpus, _)| *cpus <= cores);
            Ok(fits.map(|(_, machine)| machine.clone()).collect())
        }
        [] => Ok(set.machines.clone()),
        _ if is_of(WorldKind::Host) => Err(Failure::usage(
            "--machine: with --world host there is this machine alone",
            "leave it out",
        )),
        names => names.iter().map(|name| machine(set, name)).collect(),
    }
}

fn cpus(machine: &Machine) -> Result<usize, Failure> {
    match machine.cpus {
        Some(count) => Ok(count as usize),
        None => Ok(machines::find(&machine.is)?.cpus.len()),
    }
}

fn machine(set: &Set, name: &str) -> Result<Machine, Failure> {
    if let Some(known) = set.machines.iter().find(|known| known.name == name) {
        return Ok(known.clone());
    }
    match machines::find(name) {
        Ok(_) => Ok(Machine {
            name: name.to_owned(),
            is: name.to_owned(),
            cpus: None,
        }),
        Err(Failure::Usage(what, help)) => {
            let names = itertools::join(set.machines.iter().map(|one| &one.name), ", ");
            Err(Failure::usage(
                what,
                format!("the set has {names}; or {help}"),
            ))
        }
        Err(other) => Err(other),
    }
}

fn one_scenario(trust: Trust, set: &Set, name: &str) -> Result<Scenario, Failure> {
    if let Some(known) = set.scenarios.iter().find(|known| known.name == name) {
        return Ok(known.clone());
    }
    if !scenario::is_named(name) && !name.ends_with(".toml") && !name.ends_with(".json") {
        return Err(Failure::usage(
            format!("no scenario is called {name}"),
            format!(
                "{}; warmq scenarios lists them; or give a file",
                did_you_mean(name, scenario::shipped())
            ),
        ));
    }
    let workload = scenario::find(name)?;
    if !scenario::is_shipped_as(name) {
        trust.admits(&workload)?;
    }
    Ok(Scenario::of_file(name, &workload))
}

fn laws_of(laws: &[String], trust: Trust) -> Result<Vec<Found>, Failure> {
    match laws {
        [name] if name == NO_LAWS => return Ok(Vec::new()),
        laws if laws.iter().any(|name| name == NO_LAWS) => {
            let what = format!("--law: `{NO_LAWS}` stands alone");
            return Err(Failure::usage(what, "leave it out, or the names beside it"));
        }
        _ => {}
    }
    let laws = shipped::find(laws)?;
    for Found { law, text, .. } in &laws {
        if !shipped::is_shipped(text) {
            trust.admits(&law.scenario)?;
        }
    }
    Ok(laws)
}
