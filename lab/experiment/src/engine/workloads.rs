//! Workloads by name: those that come with WarmQ, and scenarios in files, each read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use warmq_play::Entry;

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
pub(super) struct Workloads(Mutex<BTreeMap<String, Arc<Workload>>>);

impl Workloads {
    /// Makes the scenario in `text` known as `name`.
    pub(super) fn add(&self, name: &str, text: &str) -> Result<(), PartError> {
        let entry = Entry::of_scenario(name, name, text).map_err(PartError::Problems)?;
        let workload = Arc::new(Workload::Read(Box::new(entry)));
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.insert(name.to_owned(), workload);
        Ok(())
    }

    /// The workload called `name`, or the scenario in the file of that path.
    pub(super) fn find(&self, name: &str) -> Result<Arc<Workload>, PartError> {
        if let Some(shipped) = warmq_play::workload(name) {
            return Ok(Arc::new(Workload::Shipped(shipped)));
        }
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(name) {
            return Ok(known.clone());
        }
        let workload = Arc::new(Workload::Read(Box::new(from_file(name)?)));
        read.insert(name.to_owned(), workload.clone());
        Ok(workload)
    }
}

fn from_file(path: &str) -> Result<Entry, PartError> {
    let ending = Path::new(path).extension().and_then(|it| it.to_str());
    if !matches!(ending, Some("toml" | "json")) {
        return Err(PartError::Unknown);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| PartError::Broken(format!("{path}: cannot read it: {error}")))?;
    Entry::of_scenario(path, path, &text).map_err(PartError::Problems)
}
