//! Where a recording is played again: machine, scheduler, kernel.

use std::fmt::Write;

use warmq_config::{Document, quoted};
use warmq_experiment::Engine;
use warmq_machine::builtin_names;
use warmq_replay::Taken;
use warmq_sched::Entry;
use warmq_trace::Header;
use warmq_units::Duration;

use crate::failure::Failure;
use crate::machines::{self, HOST};
use crate::pair::Pair;
use crate::source::Changes;
use crate::worlds;

/// Whose scheduler is played where nobody knows of which kernel a recording is.
const USUAL: &str = "6.18";
/// How people and recordings call the scheduler of whatever kernel runs.
const KERNEL: &str = "kernel";

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct On {
    /// The scheduler.
    pub scheduler: Option<String>,
    /// The machine.
    pub machine: Option<String>,
    /// How many of its CPUs are used.
    pub cpus: Option<u16>,
    /// Settings.
    pub settings: Vec<Pair>,
}

/// Where a recording is played again.
pub struct Place {
    /// The machine.
    pub machine: String,
    /// How many of its CPUs are used.
    pub cpus: usize,
    /// The scheduler.
    pub scheduler: String,
    /// The preemption model, if the scheduler's kernel has that of the recording.
    preempt: Option<String>,
    settings: Vec<Pair>,
    /// What is not as it was recorded, a sentence each.
    pub notes: Vec<String>,
}

impl Place {
    /// As `on` says; else as in the recording, as far as the lab has it.
    ///
    /// # Errors
    /// A machine or a scheduler that is not there, more CPUs than the machine has.
    pub fn of(on: &On, header: &Header, taken: &Taken) -> Result<Place, Failure> {
        let mut notes = Vec::new();
        let machine = on.machine.clone().unwrap_or_else(|| machine_of(header));
        let has = machines::find(&machine)?.cpus.len();
        let cpus = match on.cpus {
            Some(cpus) if usize::from(cpus) > has || cpus == 0 => {
                let what = format!("--cpus: {machine} has {has} CPUs");
                return Err(Failure::usage(what, "give a number of CPUs that it has"));
            }
            Some(cpus) => cpus.into(),
            None => taken.cpus().clamp(1, has),
        };
        if cpus != taken.cpus() {
            notes.push(format!(
                "{} CPUs were recorded, and {cpus} are used",
                taken.cpus()
            ));
        }
        let (entry, note) = scheduler(on.scheduler.as_deref(), header)?;
        notes.extend(note);
        let recorded = &header.preemption;
        let has_model = entry.models.iter().any(|model| model.name() == recorded);
        if !recorded.is_empty() && !has_model && !entry.models.is_empty() {
            notes.push(format!("{} has no preempt={recorded}", entry.name));
        }
        Ok(Place {
            machine,
            cpus,
            scheduler: entry.name.to_owned(),
            preempt: has_model.then(|| recorded.clone()),
            settings: on.settings.clone(),
            notes,
        })
    }

    /// The engine for it.
    ///
    /// # Errors
    /// When this machine has to be described and cannot be.
    pub fn engine(&self) -> Result<Engine, Failure> {
        let host = (self.machine == HOST).then(machines::host).transpose()?;
        Ok(worlds::add(Engine::new(host)))
    }

    /// The experiment that plays `scenario` once, for `time`.
    ///
    /// # Errors
    /// What is wrong with a setting.
    pub fn experiment(&self, scenario: &str, time: Duration) -> Result<Document, Failure> {
        let mut text = format!(
            "title = \"What was recorded, played again\"\nmachine = {}\nscheduler = {}\n\
             workload = {}\n\n[run]\nwarmup = \"0ms\"\ntime = \"{}\"\n\n[settings]\n\
             cpus = {}\n",
            quoted(&self.machine),
            quoted(&self.scheduler),
            quoted(scenario),
            time.exact(),
            self.cpus
        );
        if let Some(preempt) = &self.preempt {
            // Writing to a string does not fail.
            let _ = writeln!(text, "preempt = {}", quoted(preempt));
        }
        text.push_str("\n[[measure]]\nmetric = \"*\"\n");
        let document = Document::parse("replay", &text);
        let mut document = document.map_err(|problems| Failure::Problems(vec![problems]))?;
        let changes = Changes {
            settings: self.settings.clone(),
            ..Changes::default()
        };
        changes.make(&mut document);
        Ok(document)
    }
}

/// That of the recording, if the lab has it; else one like this.
fn machine_of(header: &Header) -> String {
    match builtin_names().any(|name| name == header.machine) {
        true => header.machine.clone(),
        false => HOST.to_owned(),
    }
}

/// The scheduler that is asked for; else that of the recording, or the lab's model of its kernel's.
fn scheduler(
    asked: Option<&str>,
    header: &Header,
) -> Result<(&'static Entry, Option<String>), Failure> {
    if let Some(name) = asked {
        let found = warmq_sched::scheduler(name);
        let found = found.or_else(|| of_kernel(name, header));
        return found.map(|entry| (entry, None)).ok_or_else(|| {
            let what = format!("the lab has no scheduler {name}");
            Failure::usage(what, "see `warmq schedulers`")
        });
    }
    if let Some(entry) = warmq_sched::scheduler(&header.scheduler) {
        return Ok((entry, None));
    }
    if let Some(entry) = warmq_sched::of_kernel(&header.kernel) {
        let note = (!is_kernels_own(&header.scheduler)).then(|| {
            let (missing, name) = (&header.scheduler, entry.name);
            format!("the lab has no {missing}: it is played under {name}")
        });
        return Ok((entry, note));
    }
    let usual = warmq_sched::of_kernel(USUAL);
    let note = format!("nobody knows under which scheduler it was recorded: {USUAL}'s is played");
    usual
        .map(|entry| (entry, Some(note)))
        .ok_or_else(|| Failure::usage("no scheduler is known", "give one with --scheduler"))
}

/// The word for the scheduler of whatever kernel.
fn of_kernel(name: &str, header: &Header) -> Option<&'static Entry> {
    let own = (name == KERNEL).then(|| warmq_sched::of_kernel(&header.kernel));
    own.flatten()
}

/// How recordings call the kernel's own scheduler.
fn is_kernels_own(name: &str) -> bool {
    name.is_empty() || name == KERNEL || name.starts_with("eevdf")
}
