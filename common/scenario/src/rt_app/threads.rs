//! The object `tasks`: threads with their phases and events, before they are translated.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Entry, Fields, Item, NodeKind};

use super::events::{Event, verb};
use super::global::unknown;
use super::numbers::{ANY, whole_or};
use super::policy::{Scheduling, knows};
use super::remarks::Remarks;

/// A thread, of which there may be several.
pub(super) struct Thread<'a> {
    /// What the script calls it.
    pub(super) name: String,
    pub(super) item: Item<'a>,
    pub(super) fields: Fields<'a>,
    pub(super) scheduling: Scheduling<'a>,
    pub(super) instances: i64,
    /// How often its phases are done; below 0: without end.
    pub(super) loops: i64,
    pub(super) phases: Vec<Phase<'a>>,
}

/// A part of a thread's body.
pub(super) struct Phase<'a> {
    pub(super) item: Item<'a>,
    pub(super) fields: Fields<'a>,
    /// None: that of the thread is meant.
    pub(super) scheduling: Option<Scheduling<'a>>,
    /// How often it is done; below 1: without end, as rt-app counts a round before it looks.
    pub(super) loops: i64,
    pub(super) events: Vec<Event<'a>>,
}

/// Properties that a thread and a phase may have besides those of scheduling.
const OF_BOTH: [&str; 3] = ["loop", "cpus", "taskgroup"];
const OF_THREADS: [&str; 3] = ["instance", "delay", "phases"];

pub(super) fn read<'a>(tasks: &Fields<'a>, remarks: &Remarks) -> Option<Vec<Thread<'a>>> {
    let threads = tasks
        .entries()
        .map(|(entry, item)| thread(&entry.key, item, remarks));
    // All are read, so that each reports what is wrong with it.
    let threads: Vec<_> = threads.collect();
    threads.into_iter().collect()
}

fn thread<'a>(name: &str, item: Item<'a>, remarks: &Remarks) -> Option<Thread<'a>> {
    let fields = item.table()?;
    let scheduling = Scheduling::read(&fields, remarks);
    let instances = whole_or(&fields, "instance", ANY, 1);
    let (loops, phases) = match fields.item("phases") {
        Some(phases) => {
            properties(&fields, &OF_THREADS, true, remarks);
            let loops = whole_or(&fields, "loop", ANY, -1);
            (loops, of_phases(&phases, remarks))
        }
        None => {
            properties(&fields, &OF_THREADS, false, remarks);
            let loops = whole_or(&fields, "loop", ANY, -1);
            let only = Phase {
                events: events(&fields)?,
                fields: item.table()?,
                item: item.clone(),
                scheduling: None,
                loops: 1,
            };
            (loops, Some(vec![only]))
        }
    };
    Some(Thread {
        name: name.to_owned(),
        scheduling: scheduling?,
        instances: instances?.max(0),
        loops: loops?,
        phases: phases?,
        item,
        fields,
    })
}

fn of_phases<'a>(phases: &Item<'a>, remarks: &Remarks) -> Option<Vec<Phase<'a>>> {
    let phases = phases.table()?;
    let phase = |(_, item): (_, Item<'a>)| {
        let fields = item.table()?;
        properties(&fields, &[], false, remarks);
        let scheduling = Scheduling::read(&fields, remarks);
        let loops = whole_or(&fields, "loop", ANY, 1);
        Some(Phase {
            events: events(&fields)?,
            scheduling: Some(scheduling?),
            loops: loops?,
            item,
            fields,
        })
    };
    let phases: Vec<Option<Phase<'a>>> = phases.entries().map(phase).collect();
    phases.into_iter().collect()
}

/// Says which keys of a thread or a phase mean nothing. Events beside `phases` are not done.
fn properties(fields: &Fields<'_>, more: &[&str], has_phases: bool, remarks: &Remarks) {
    for (entry, item) in fields.entries() {
        let key = entry.key.as_str();
        if OF_BOTH.contains(&key) || more.contains(&key) || knows(key) {
            continue;
        }
        match verb(key) {
            Some(_) if has_phases => {
                let what = format!("`{key}` is not done");
                remarks.say(&item, what, "rt-app ignores events beside `phases`");
            }
            Some(_) => {}
            None => unknown(key, &item, remarks),
        }
    }
}

fn events<'a>(fields: &Fields<'a>) -> Option<Vec<Event<'a>>> {
    let event = |(entry, item): (&Entry, Item<'a>)| {
        let verb = verb(&entry.key)?;
        Some(Event { verb, item })
    };
    let events: Vec<Event<'a>> = fields.entries().filter_map(event).collect();
    if events.is_empty() {
        let help = "write an event, as in \"run\" : 1000";
        fields.report("there is no event", help);
        return None;
    }
    Some(events)
}

/// What must be known of all events before one of them is translated.
#[derive(Default)]
pub(super) struct Facts {
    /// What somebody resumes.
    pub(super) resumed: BTreeSet<String>,
    /// The threads that somebody forks.
    pub(super) forked: BTreeSet<String>,
    /// Timers in mode absolute, as [`Facts::timer`] names them.
    absolute: BTreeSet<String>,
    /// How many tasks come to each barrier.
    pub(super) barriers: BTreeMap<String, i64>,
}

impl Facts {
    pub(super) fn of(threads: &[Thread<'_>]) -> Facts {
        let mut facts = Facts::default();
        for thread in threads {
            for event in thread.phases.iter().flat_map(|phase| &phase.events) {
                facts.see(thread, event);
            }
        }
        facts
    }

    fn see(&mut self, thread: &Thread<'_>, event: &Event<'_>) {
        // What is neither is reported where the event is translated.
        match (event.verb.0, &event.item.node.kind) {
            ("timer", NodeKind::Table(keys)) => self.see_timer(thread, keys),
            ("resume", NodeKind::Text(name)) => _ = self.resumed.insert(name.clone()),
            ("fork", NodeKind::Text(name)) => _ = self.forked.insert(name.clone()),
            ("barrier", NodeKind::Text(name)) => {
                *self.barriers.entry(name.clone()).or_default() += thread.instances;
            }
            _ => {}
        }
    }

    fn see_timer(&mut self, thread: &Thread<'_>, keys: &[Entry]) {
        let written = |key: &str| Some(&keys.iter().find(|entry| entry.key == key)?.node.kind);
        let text = |key: &str, otherwise| match written(key) {
            None => Some(otherwise),
            Some(NodeKind::Text(text)) => Some(text.as_str()),
            Some(_) => None,
        };
        if let (Some(name), Some(mode)) = (text("ref", "unknown"), text("mode", "relative"))
            && mode.starts_with("absolute")
        {
            self.absolute.insert(Facts::timer(thread, name));
        }
    }

    /// Whether the timer that `thread` calls `name` is absolute. One use of it in that mode is
    /// enough.
    pub(super) fn is_absolute(&self, thread: &Thread<'_>, name: &str) -> bool {
        self.absolute.contains(&Facts::timer(thread, name))
    }

    /// Those that begin with `unique` belong to their thread.
    fn timer(thread: &Thread<'_>, name: &str) -> String {
        match name.starts_with("unique") {
            true => format!("{}\n{name}", thread.name),
            false => name.to_owned(),
        }
    }
}
