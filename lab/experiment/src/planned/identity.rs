//! Digests: of a run and of a plan.

use std::collections::BTreeMap;
use std::path::Path;

use warmq_config::read_text;
use xxhash_rust::xxh3::xxh3_128;

use crate::engine::Engine;
use crate::experiment::Experiment;
use crate::not_done::NotDone;
use crate::plan::Part;
use crate::run::{Job, Options};

/// Part of every digest. To be raised when lines of plans or of runs change their meaning.
const FORMAT: u32 = 1;

/// What the digests of the runs of one experiment are made of, beside their plans: a plan knows
/// the names of a machine and a workload, and what these names mean may change.
pub struct Identity {
    meanings: BTreeMap<(Part, String), u128>,
    files: Vec<String>,
}

impl Identity {
    /// Looks at every machine and workload of `experiment`.
    ///
    /// # Errors
    /// When one of them can no longer be read.
    pub fn of(experiment: &Experiment, engine: &Engine) -> Result<Identity, NotDone> {
        let mut identity = Identity {
            meanings: BTreeMap::new(),
            files: Vec::new(),
        };
        for (part, name) in experiment.parts.defaults.keys() {
            let of_file = is_file(*part, name);
            let meaning = match part {
                // Also where it is no file: `host` is another machine on another machine.
                Part::Machine => {
                    let found = engine.machine(name);
                    let found = found.map_err(|why| NotDone::Part("machine", name.clone(), why))?;
                    format!("{found:?}")
                }
                Part::Workload if of_file => read(read_text(name), name)?,
                Part::Scheduler if of_file => bytes_of(name)?,
                _ => continue,
            };
            if of_file {
                identity.files.push(name.clone());
            }
            let digest = xxh3_128(meaning.as_bytes());
            identity.meanings.insert((*part, name.clone()), digest);
        }
        Ok(identity)
    }

    /// The files of machines, workloads and schedulers that the experiment names.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The digest of a run, in hexadecimal. Equal digests are equal runs within one build: what the
    /// code and the scenarios of another make of the same names is not in it.
    pub fn digest(&self, job: &Job) -> String {
        let meaning = |part: Part, name: &str| {
            let key = (part, name.to_owned());
            self.meanings.get(&key).copied().unwrap_or_default()
        };
        let machine = meaning(Part::Machine, &job.plan.machine.name);
        let workload = meaning(Part::Workload, &job.plan.workload.name);
        hex(&format!(
            "{FORMAT}\n{}\n{machine:x}\n{workload:x}",
            job.plan
        ))
    }

    /// The digest of the whole plan of `experiment`: which runs there are, in which order, and what
    /// is measured in them.
    pub fn of_plan(&self, experiment: &Experiment, options: &Options) -> String {
        let names: Vec<&str> = experiment
            .measures_of_runs()
            .map(|measure| measure.name.as_str())
            .collect();
        let jobs = experiment.job_list(options);
        // The first run has all settings that are not swept; the points say the rest.
        let first = jobs.get(0).map(|job| self.digest(&job));
        let points = match experiment.grid {
            Some(_) => format!("{:?}", experiment.grid),
            None => format!("{:?}", experiment.points_of(options)),
        };
        let (parts, extent) = (&experiment.parts, jobs.extent());
        hex(&format!(
            "{FORMAT}\n{}\n{parts:?}\n{extent:?}\n{points}\n{}\n{names:?}\n{first:?}\n{:?}",
            experiment.id, options.quick, self.meanings
        ))
    }
}

fn is_file(part: Part, name: &str) -> bool {
    let path = Path::new(name);
    let can_be = match part {
        Part::Machine => path.extension().is_some(),
        Part::Workload => warmq_play::workload(name).is_none(),
        Part::Scheduler => true,
        Part::World => false,
    };
    can_be && path.is_file()
}

/// What a file is that is no text: its digest.
fn bytes_of(name: &str) -> Result<String, NotDone> {
    let bytes = read(std::fs::read(name), name)?;
    Ok(format!("{:032x}", xxh3_128(&bytes)))
}

fn read<T>(result: std::io::Result<T>, name: &str) -> Result<T, NotDone> {
    result.map_err(|error| NotDone::Unreadable(name.to_owned(), error))
}

fn hex(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}
