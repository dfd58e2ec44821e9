//! Where a recording is played again: machine, scheduler, kernel.

use std::collections::BTreeMap;

use clap::Args;
use warmq_config::{Pair, Value};
use warmq_experiment::{Engine, KERNEL, Part, Trial, nearest_release};
use warmq_machine::{MachineDescription, builtin_names, read_toml};
use warmq_replay::Taken;
use warmq_sched::{COMPILED, Entry, backports};
use warmq_trace::Header;
use warmq_units::Duration;

use crate::failure::Failure;
use crate::machines::{self, HOST};
use crate::source;
use crate::worlds;

/// Whose scheduler is played where nobody knows of which kernel a recording is.
const USUAL: &str = "6.18";

/// What the command line says.
#[derive(Args, Clone, Debug, Default)]
pub struct On {
    /// The scheduler, or the file of a compiled one [default: that of the recording, or the lab's
    /// model of it].
    #[arg(long, value_name = "NAME")]
    pub scheduler: Option<String>,
    /// The machine: a name, a .toml or hwloc .xml file, or `host` [default: that of the recording
    /// if the lab has it, else one like this].
    #[arg(long, value_name = "NAME|FILE|host")]
    pub machine: Option<String>,
    /// How many of its CPUs are used [default: as many as were recorded, if it has them].
    #[arg(long, value_name = "N")]
    pub cpus: Option<u16>,
    /// Set a setting of the machine, the kernel or the scheduler.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Pair>,
}

/// Where a recording is played again.
pub struct Place {
    /// The machine.
    pub machine: String,
    /// As what the machine called [`HOST`] is described, if it is played on.
    described: Option<MachineDescription>,
    /// How people know it.
    pub shown: String,
    /// How many of its CPUs are used.
    pub cpus: usize,
    /// The scheduler.
    pub scheduler: String,
    /// The preemption model, if the scheduler's kernel has that of the recording.
    preempt: Option<String>,
    /// What the recorded release has otherwise than the first of its series.
    of_release: BTreeMap<String, Value>,
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
        let (machine, shown, described) = machine(on.machine.as_deref(), header, &mut notes)?;
        let has = match &described {
            Some(described) => described.cpus.len(),
            None => machines::find(&machine)?.cpus.len(),
        };
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
        let Found {
            name,
            entry,
            release,
            note,
        } = scheduler(on.scheduler.as_deref(), header)?;
        notes.extend(note);
        let recorded = &header.preemption;
        let has_model = entry.models.iter().any(|model| model.name() == recorded);
        if !recorded.is_empty() && !has_model && !entry.models.is_empty() {
            notes.push(format!("{} has no preempt={recorded}", entry.name));
        }
        Ok(Place {
            machine,
            shown,
            described,
            cpus,
            scheduler: name.to_owned(),
            preempt: has_model.then(|| recorded.clone()),
            of_release: release.map(backports).unwrap_or_default(),
            settings: on.set.clone(),
            notes,
        })
    }

    /// The engine for it.
    pub fn engine(&self) -> Engine {
        worlds::add(Engine::new(self.described.clone()))
    }

    /// What plays `scenario` for `time`.
    pub fn trial(&self, scenario: &str, time: Duration) -> Trial {
        let parts = [
            (Part::Machine, self.machine.as_str()),
            (Part::Scheduler, &self.scheduler),
            (Part::Workload, scenario),
        ];
        let cpus = ("cpus".to_owned(), Value::Integer(self.cpus as i64));
        let preempt = self.preempt.iter();
        let preempt = preempt.map(|model| ("preempt".to_owned(), Value::Text(model.clone())));
        let mut settings = self.of_release.clone();
        settings.extend(preempt.chain([cpus]));
        Trial {
            file: "replay".to_owned(),
            title: "What was recorded, played again".to_owned(),
            parts: parts.map(|(part, name)| (part, name.to_owned())).into(),
            settings,
            time,
            changes: source::settings(&self.settings).collect(),
            ..Trial::default()
        }
    }
}

/// The name of the machine, that for people, and its description if the lab has none by that name:
/// the one that is `asked` for; else that of the recording, if the lab has it or the recording
/// describes it; else this one.
fn machine(
    asked: Option<&str>,
    header: &Header,
    notes: &mut Vec<String>,
) -> Result<(String, String, Option<MachineDescription>), Failure> {
    let recorded = Some(header.machine.as_str());
    let known = recorded.filter(|name| builtin_names().any(|known| known == *name));
    let host = || Ok((HOST.to_owned(), HOST.to_owned(), Some(machines::host()?)));
    match asked.or(known) {
        Some(HOST) => return host(),
        Some(name) => return Ok((name.to_owned(), name.to_owned(), None)),
        None => {}
    }
    let described = match header.hardware.is_empty() {
        true => None,
        // Of a later version, perhaps, or damaged.
        false => read_toml("recorded", &header.hardware.join("\n")).ok(),
    };
    match described {
        Some(described) => {
            let title = &described.title;
            // Where it was recorded, it was this machine.
            let title = title.strip_prefix("this machine: ").unwrap_or(title);
            let shown = format!("the recorded machine ({title})");
            Ok((HOST.to_owned(), shown, Some(described)))
        }
        None => {
            let what = "the caches of the recorded machine are not known: those of this one are";
            notes.push(what.to_owned());
            host()
        }
    }
}

/// A scheduler of the lab.
struct Found<'h> {
    /// Its name, or the file of a compiled one.
    name: &'h str,
    entry: &'static Entry,
    /// The release of the kernel that has it, if it is one's own.
    release: Option<&'h str>,
    /// What is not as it was recorded.
    note: Option<String>,
}

/// The scheduler that is asked for; else that of the recording, or the lab's model of its kernel's.
fn scheduler<'h>(asked: Option<&'h str>, header: &'h Header) -> Result<Found<'h>, Failure> {
    let asked_for = match asked {
        Some(KERNEL) => of_kernel(header),
        Some(name) => named(name),
        None => named(&header.scheduler).or_else(|| of_kernel(header)),
    };
    asked_for.ok_or_else(|| {
        let what = format!(
            "the lab has no scheduler {}",
            asked.unwrap_or(&header.scheduler)
        );
        Failure::usage(what, "see `warmq schedulers`")
    })
}

/// A scheduler of the lab by its name, or a compiled one by its name or its file.
fn named(name: &str) -> Option<Found<'_>> {
    let engine = worlds::add(Engine::new(None));
    let entry = match engine.is_compiled(name) {
        true => Some(&COMPILED),
        false => warmq_sched::scheduler(name),
    };
    Some(Found {
        name,
        entry: entry?,
        release: None,
        note: None,
    })
}

/// The lab's model of the kernel of a recording, as it plays this machine's
/// ([`nearest_release`]).
fn of_kernel(header: &Header) -> Option<Found<'_>> {
    let (kernel, scheduler) = (header.kernel.as_str(), &header.scheduler);
    if kernel.is_empty() {
        let note =
            format!("nobody knows under which scheduler it was recorded: {USUAL}'s is played");
        return warmq_sched::of_kernel(USUAL).map(|entry| Found {
            name: entry.name,
            entry,
            release: None,
            note: Some(note),
        });
    }
    let (entry, release) = nearest_release(kernel)?;
    let note = match (is_kernels_own(scheduler), release == kernel) {
        (true, true) => None,
        (true, false) => Some(format!(
            "the lab has no kernel {kernel}: it is played under {}",
            entry.name
        )),
        (false, _) => Some(format!(
            "the lab has no {scheduler}: it is played under {}",
            entry.name
        )),
    };
    Some(Found {
        name: entry.name,
        entry,
        release: Some(release),
        note,
    })
}

/// How recordings call the kernel's own scheduler.
fn is_kernels_own(name: &str) -> bool {
    name.is_empty() || name == KERNEL || name.starts_with("eevdf")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(asked: Option<&str>, kernel: &str, by: &str) -> (&'static str, Vec<String>, String) {
        let header = Header {
            kernel: kernel.to_owned(),
            scheduler: by.to_owned(),
            ..Header::default()
        };
        let found = scheduler(asked, &header).unwrap_or_else(|_| panic!("{kernel} {by}"));
        let of_release = found.release.map(backports).unwrap_or_default();
        (
            found.entry.name,
            of_release.into_keys().collect(),
            found.note.unwrap_or_default(),
        )
    }

    #[test]
    fn a_recorded_kernel_is_played_as_this_machines_would_be() {
        let (entry, changes, note) = found(None, "6.18.45-amd64", KERNEL);
        assert_eq!((entry, &*note), ("eevdf-6.18", ""));
        assert!(changes.contains(&"reweight".to_owned()), "{changes:?}");
        let (entry, _, note) = found(None, "5.15.0-91-generic", KERNEL);
        assert_eq!(entry, "eevdf-6.6");
        assert_eq!(
            note,
            "the lab has no kernel 5.15.0-91-generic: it is played under eevdf-6.6"
        );
        assert_eq!(found(Some(KERNEL), "7.1.2", "scx_mine").0, "eevdf-7.1");
    }

    #[test]
    fn a_machine_that_the_recording_describes_is_played_on() {
        let shipped = machines::find("small-4llc").unwrap_or_else(|_| panic!("shipped"));
        let toml = shipped.to_toml().replace("small-4llc", "theirs");
        let mut header = Header {
            machine: "a processor".to_owned(),
            hardware: toml.lines().map(str::to_owned).collect(),
            ..Header::default()
        };
        let of = |asked: Option<&str>, header: &Header| {
            let mut notes = Vec::new();
            let found = machine(asked, header, &mut notes);
            let (name, shown, described) = found.unwrap_or_else(|_| panic!("a machine"));
            (
                name,
                shown,
                described.map(|described| described.cpus),
                notes,
            )
        };
        let (name, shown, cpus, notes) = of(None, &header);
        assert_eq!((&*name, cpus), (HOST, Some(shipped.cpus.clone())));
        assert!(
            shown.contains(&shipped.title) && notes.is_empty(),
            "{shown} {notes:?}"
        );
        assert_eq!(of(Some("tiny-2cpu"), &header).2, None, "the lab's own");
        assert_eq!(of(Some(HOST), &header).1, HOST, "asked for");
        header.hardware.pop();
        header.hardware[0] = "name = ".to_owned();
        let (_, shown, _, notes) = of(None, &header);
        assert_eq!((&*shown, notes.len()), (HOST, 1), "{notes:?}");
    }

    #[test]
    fn what_is_asked_for_or_known_is_played_as_it_is() {
        let none = Vec::<String>::new();
        assert_eq!(
            found(Some("cfs"), "6.18.45", KERNEL),
            ("cfs", none.clone(), String::new())
        );
        assert_eq!(found(None, "6.18.45", "o1").0, "o1");
        let (entry, changes, note) = found(None, "", "");
        assert_eq!((entry, changes), ("eevdf-6.18", none));
        assert!(note.starts_with("nobody knows"), "{note}");
    }
}
