//! Workloads by name: those that come with WarmQ, and scenarios in files, each read once.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use warmq_config::Problems;
use warmq_metrics::of_one_name;
use warmq_play::Entry;
use warmq_scenario::Scenario;

use crate::simulator::PartError;

/// A workload that was found.
pub enum Workload {
    /// It comes with WarmQ.
    Shipped(&'static Entry),
    /// A file says it.
    Read(Box<Entry>),
}

impl Workload {
    /// The workload.
    pub fn entry(&self) -> &Entry {
        match self {
            Workload::Shipped(entry) => entry,
            Workload::Read(entry) => entry,
        }
    }
}

/// The files that were read.
#[derive(Default)]
pub(super) struct Workloads {
    read: Mutex<BTreeMap<String, Arc<Workload>>>,
    /// Whether their authors are not trusted.
    untrusted: bool,
}

impl Workloads {
    /// Refuses scenarios that do more than use the machine ([`Scenario::check_untrusted`]).
    ///
    /// [`Scenario::check_untrusted`]: warmq_scenario::Scenario::check_untrusted
    pub(super) fn untrusted() -> Workloads {
        Workloads {
            untrusted: true,
            ..Workloads::default()
        }
    }

    /// Whether it does.
    pub(super) fn are_untrusted(&self) -> bool {
        self.untrusted
    }

    /// Makes the scenario in `text` known as `name`.
    pub(super) fn add(&self, name: &str, text: &str) -> Result<(), PartError> {
        let entry = self.read(name, text)?;
        let workload = Arc::new(Workload::Read(Box::new(entry)));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(name.to_owned(), workload);
        Ok(())
    }

    /// The workload called `name`, or the scenario in the file of that path.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Workload>, PartError> {
        if let Some(shipped) = warmq_play::workload(name) {
            return Ok(Arc::new(Workload::Shipped(shipped)));
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(name) {
            return Ok(known.clone());
        }
        let workload = Arc::new(Workload::Read(Box::new(self.read_file(name)?)));
        read.insert(name.to_owned(), workload.clone());
        Ok(workload)
    }

    fn read_file(&self, path: &str) -> Result<Entry, PartError> {
        let ending = Path::new(path).extension().and_then(OsStr::to_str);
        if !matches!(ending, Some("toml" | "json")) && !Path::new(path).exists() {
            return Err(PartError::Unknown);
        }
        let text = warmq_config::read_text(path)
            .map_err(|error| PartError::Broken(format!("{path}: cannot read it: {error}")))?;
        self.read(path, &text)
    }

    fn read(&self, name: &str, text: &str) -> Result<Entry, PartError> {
        let entry = Entry::of_scenario(name, name, text).map_err(PartError::Problems)?;
        if let Some(scenario) = entry.scenario() {
            check_figures(scenario).map_err(PartError::Problems)?;
            if self.untrusted {
                let trusted = scenario.check_untrusted();
                trusted.map_err(PartError::Problems)?;
            }
        }
        Ok(entry)
    }
}

/// Refuses a scenario two of whose figures have one name: only one of them could be shown.
///
/// # Errors
/// The name, and what each of the two is.
pub fn check_figures(scenario: &Scenario) -> Result<(), Problems> {
    let Some([one, other]) = of_one_name(&scenario.names()) else {
        return Ok(());
    };
    let what = format!(
        "two figures are called {}: the {}, and the {}",
        one.name, one.what, other.what
    );
    let help = "give the counter, span, task, lock, group or phase of one of them another name";
    Err(scenario.refused(what, help))
}
