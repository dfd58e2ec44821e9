//! A document into a [`Scenario`]: first the names, then what they stand for, then the checks.

mod changes;
mod curves;
mod names;
mod objects;
mod references;
mod scope;
mod settings;
mod spinlock;
mod steps;
mod table;
mod tasks;
mod values;
mod verbs;

use std::sync::Arc;

use warmq_config::{Chosen, Document, Fields, Problems};

use crate::check;
use crate::scenario::{Order, Scenario};
use crate::site::Site;
use names::Names;

#[cfg(test)]
pub(crate) use verbs::{VERBS, Verb, verbs};

impl Scenario {
    /// Reads and checks `document`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place and a fix.
    pub fn of(document: Document) -> Result<Scenario, Problems> {
        let document = Arc::new(document);
        let scenario = document.read(|fields| Some(read(fields, &document)))?;
        check::structure(&scenario)?;
        let defaults = Chosen::defaults(scenario.settings());
        scenario.bind(&defaults, &Site::default())?;
        Ok(scenario)
    }
}

/// What can be read of a scenario; the rest was reported.
fn read(fields: &Fields<'_>, document: &Arc<Document>) -> Scenario {
    let (settings, names) = settings::read(fields);
    let mut names = Names::new(&settings, names);
    names.curves = curves::read(fields);
    let headings = names.collect(fields);
    let objects = objects::read(&headings, &names);
    let tasks = tasks::read(fields, &headings, &names);
    let (changes, phases) = (
        changes::changes(fields, &names),
        changes::phases(fields, &names),
    );
    let orders = [("listed", Order::Listed), ("random", Order::Random)];
    let mut scenario = Scenario {
        document: document.clone(),
        title: fields.line("title").unwrap_or_default(),
        about: fields.text("about").unwrap_or_default().trim().to_owned(),
        work: work(fields, &names),
        order: fields.choice("order", &orders).unwrap_or(Order::Listed),
        settings,
        objects,
        tasks,
        changes,
        phases,
        spans: names.spans(),
        counters: names.counters(),
        uses: names.all_uses(),
        remarks: Vec::new(),
    };
    let by_value: Vec<&str> = crate::uses::by_value(&scenario).collect();
    scenario.uses.extend(by_value);
    scenario.uses.sort_unstable();
    // Whoever reads laws reads it.
    fields.know(&["law"]);
    fields.finish();
    scenario
}

/// The counter that is the work done. Where nothing is counted it is `rounds`.
fn work(fields: &Fields<'_>, names: &Names) -> String {
    const ROUNDS: &str = "rounds";
    let counters = names.counters();
    let Some(item) = fields.item("work") else {
        return ROUNDS.to_owned();
    };
    let work = item.text().unwrap_or_default();
    if work != ROUNDS && !work.is_empty() && !counters.contains(&work) {
        let known = counters.iter().map(String::as_str).chain([ROUNDS]);
        item.unknown(format!("no step counts \"{work}\""), &work, known);
    }
    work
}
