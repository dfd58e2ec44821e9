//! The workloads of the laboratory, by name.
//!
//! Purpose: programs that read like what they model, each with its settings. None of them knows a
//! scheduler. A workload counts its work in [`Counter`]s, which cost nothing.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod chat;
mod counter;
mod spin;
mod web;

pub use counter::{Counter, Counters};

use warmq_config::{Chosen, Setting};
use warmq_kernel::Workload;

/// A workload that can be asked for by name.
pub struct Entry {
    /// Its name: `web`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub what: &'static str,
    /// The counter of the work done: `requests`.
    pub work: &'static str,
    settings: fn() -> Vec<Setting>,
    build: fn(&Chosen, &Counters) -> Box<dyn Workload>,
}

impl Entry {
    /// What can be set on it.
    pub fn settings(&self) -> Vec<Setting> {
        (self.settings)()
    }

    /// The workload with the chosen settings; it counts into `counters`.
    pub fn build(&self, chosen: &Chosen, counters: &Counters) -> Box<dyn Workload> {
        (self.build)(chosen, counters)
    }
}

/// Every workload, in the order in which they are listed.
pub const WORKLOADS: &[Entry] = &[
    Entry {
        name: "web",
        what: "WebBench clients in a closed loop against a process-per-connection web server",
        work: "requests",
        settings: web::settings,
        build: |chosen, counters| Box::new(web::Web::new(chosen, counters)),
    },
    Entry {
        name: "chat",
        what: "rooms whose users send messages to one another over TCP on loopback",
        work: "messages",
        settings: chat::settings,
        build: |chosen, counters| Box::new(chat::Chat::new(chosen, counters)),
    },
    Entry {
        name: "spin",
        what: "CPU-bound tasks that never sleep",
        work: "bursts",
        settings: spin::settings,
        build: |chosen, counters| Box::new(spin::Spin::new(chosen, counters)),
    },
];

/// The workload called `name`.
pub fn workload(name: &str) -> Option<&'static Entry> {
    WORKLOADS.iter().find(|entry| entry.name == name)
}
