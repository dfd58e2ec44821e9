//! The scripts of rt-app (github.com/scheduler-tools/rt-app) as scenarios.
//!
//! A script is read in two steps: its JSON becomes the document that a person would write for it
//! in the language of scenarios, each value of which keeps its place in the script; then that is
//! read and checked as any. What this loses is in [`Scenario::remarks`].
//!
//! The grammar is that of rt-app's tutorial and of its reader (`src/rt-app_parse_config.c`,
//! version of 2025), of workgen, which allows the same key several times, and of older versions
//! where its examples need them.

mod events;
mod global;
mod json;
mod memory;
mod numbers;
mod objects;
mod policy;
mod remarks;
mod tasks;
#[cfg(test)]
mod tests;
mod threads;
mod tree;

use std::collections::BTreeMap;

use warmq_config::{Document, Fields, Node, NodeKind, Place, Problems};

use self::events::Script;
use self::global::Global;
use self::objects::Objects;
use self::remarks::Remarks;
use self::threads::Facts;
use crate::scenario::Scenario;

impl Scenario {
    /// Reads `text`, a script of rt-app that messages call `name`, and checks it.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place and a fix.
    pub fn read_rt_app(name: &str, text: &str) -> Result<Scenario, Problems> {
        let root = json::parse(name, text)?;
        let place = root.place.clone();
        if !matches!(root.kind, NodeKind::Table(_)) {
            let (what, help) = ("a script is an object", "write { \"tasks\" : { ... } }");
            let document = Document::of_tree(name, text, root);
            return Err(document.problem("", &place, what, help).into());
        }
        let document = Document::of_tree(name, text, root);
        let remarks = Remarks::default();
        let tree = document.read(|fields| translate(name, &place, fields, &remarks))?;
        let mut scenario = Scenario::of(Document::of_tree(name, text, tree))?;
        scenario.remarks = remarks.of(&document);
        Ok(scenario)
    }
}

fn translate(name: &str, place: &Place, fields: &Fields<'_>, remarks: &Remarks) -> Option<Node> {
    for (entry, item) in fields.entries() {
        if !["global", "tasks", "resources"].contains(&entry.key.as_str()) {
            global::unknown(&entry.key, &item, remarks);
        }
    }
    if let Some(resources) = fields.item("resources") {
        let why = "what an event names is made where it is first named";
        remarks.say(&resources, "`resources` is not used", why);
    }
    let global = fields.or("global", Global::default(), |item| {
        global::read(&item.table()?, remarks)
    });
    let tasks = fields.required(
        "tasks",
        "write \"tasks\" : { \"NAME\" : { \"run\" : 1000 } }",
    );
    let threads = threads::read(&tasks?.table()?, remarks);
    let (global, threads) = (global?, threads?);
    let facts = Facts::of(&threads);
    let (tables, forks) = tasks::name(&threads, &facts);
    let mut script = Script {
        global: &global,
        facts: &facts,
        remarks,
        objects: Objects::default(),
        threads: threads.iter().map(|thread| thread.name.clone()).collect(),
        forks,
        regions: BTreeMap::new(),
    };
    let translated = threads.iter().zip(&tables);
    let translated: Vec<_> = translated
        .map(|(thread, tables)| script.thread(thread, tables))
        .collect();
    let tasks: Option<Vec<_>> = translated.into_iter().collect();
    let tasks = tasks?.concat();
    let mut entries = vec![tree::entry(
        "title",
        tree::text(place, format!("rt-app: {name}")),
    )];
    entries.extend(script.objects.entries(place));
    entries.push(tree::entry("task", tree::table(place, tasks)));
    Some(tree::table(place, entries))
}

/// True for a text that is JSON and not TOML: it begins with a brace or with a comment of JSON.
pub(crate) fn is_json(name: &str, text: &str) -> bool {
    let named = name.to_ascii_lowercase().ends_with(".json");
    named || text.trim_start().starts_with(['{', '/'])
}
