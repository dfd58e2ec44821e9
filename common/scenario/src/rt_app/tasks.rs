//! Threads into tables of tasks.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Entry, Fields, Item, Node, Place};

use super::events::{Body, Script, sleep_for_ever};
use super::numbers::{ANY, whole};
use super::objects::free_name;
use super::policy::Class as PolicyClass;
use super::threads::{Facts, Phase, Thread};
use super::tree::{endless, entry, flag, list, microseconds, step, table, text, whole as number};
use crate::object::Class;

/// The longest name that a kernel keeps of a task.
const LONGEST_NAME: usize = 15;

/// Our names for the tables of a thread.
pub(super) struct Tables {
    /// Those that start by themselves.
    first: Option<String>,
    /// Those that are forked.
    forked: Option<String>,
}

/// Names for all threads, and the table of those that each name forks.
pub(super) fn name(
    threads: &[Thread<'_>],
    facts: &Facts,
) -> (Vec<Tables>, BTreeMap<String, String>) {
    let (mut taken, mut forks) = (BTreeSet::new(), BTreeMap::new());
    let named = threads.iter().map(|thread| {
        let mut free = |wanted: &str| free_name(wanted, "thread", &mut taken);
        let first = (thread.instances > 0).then(|| free(&thread.name));
        // Of two threads with one name, the first is forked.
        let forked = facts.forked.contains(&thread.name) && !forks.contains_key(&thread.name);
        let forked = forked.then(|| match &first {
            Some(first) => free(&format!("{first}-forked")),
            None => free(&thread.name),
        });
        if let Some(forked) = &forked {
            forks.insert(thread.name.clone(), forked.clone());
        }
        Tables { first, forked }
    });
    (named.collect(), forks)
}

impl Script<'_, '_> {
    /// The tables of `thread`: none if nothing starts it.
    pub(super) fn thread(&mut self, thread: &Thread<'_>, tables: &Tables) -> Option<Vec<Entry>> {
        let Some(key) = tables.first.as_ref().or(tables.forked.as_ref()) else {
            let what = format!("the thread `{}` is never started", thread.name);
            self.remarks
                .say(&thread.item, what, "it has no instance and nobody forks it");
            return Some(Vec::new());
        };
        let place = thread.item.node.place.clone();
        let keys = self.keys(thread, &place, key)?;
        let of = |name: &String, more: Option<Entry>| {
            let keys = more.into_iter().chain(keys.iter().cloned()).collect();
            entry(name, table(&place, keys))
        };
        let count =
            (thread.instances > 1).then(|| entry("count", number(&place, thread.instances)));
        let first = tables.first.as_ref().map(|name| of(name, count));
        let spawned = entry("spawned", flag(&place, true));
        let forked = tables.forked.as_ref().map(|name| of(name, Some(spawned)));
        Some(first.into_iter().chain(forked).collect())
    }

    /// What all tables of `thread` have.
    fn keys(&mut self, thread: &Thread<'_>, place: &Place, key: &str) -> Option<Vec<Entry>> {
        let process = "rt-app";
        let process = self
            .objects
            .get(Class::Process, process, process, place, Vec::new);
        let mut keys = vec![
            entry("name", text(place, cut(&thread.name))),
            entry("process", text(place, process)),
        ];
        let scheduling = &thread.scheduling;
        keys.extend(scheduling.keys(&thread.item, self.global.policy, self.remarks));
        let own_cpus = cpus(&thread.fields)?;
        keys.extend(own_cpus.clone().map(|cpus| entry("cpus", cpus)));
        let class = scheduling.class(self.global.policy);
        let group = self.group(&thread.fields, class, key)?.flatten();
        keys.extend(group.map(|group| entry("group", group)));
        let mut never = None;
        if let Some(item) = thread.fields.item("delay") {
            let place = &item.node.place;
            match whole(&item, ANY)? {
                delay @ 0.. => keys.push(entry("start", microseconds(place, delay))),
                _ => never = Some(sleep_for_ever(place)),
            }
        }
        if let Some((item, seconds)) = &self.global.duration {
            keys.push(entry("end", text(&item.node.place, format!("{seconds}s"))));
        }
        if thread.loops >= 0 {
            keys.push(entry("times", number(place, thread.loops)));
        }
        let body = self.body(thread, key, own_cpus, class)?;
        let body = never.into_iter().chain(body).collect();
        keys.push(entry("body", list(place, body)));
        Some(keys)
    }

    fn body(
        &mut self,
        thread: &Thread<'_>,
        key: &str,
        own_cpus: Option<Node>,
        mut class: PolicyClass,
    ) -> Option<Vec<Node>> {
        let mut body = Body {
            thread,
            key,
            held: BTreeSet::new(),
        };
        let with_phases = thread
            .phases
            .iter()
            .filter(|phase| phase.scheduling.is_some());
        let moves = with_phases
            .clone()
            .any(|phase| phase.fields.find("cpus").is_some());
        let mut steps = Vec::new();
        for phase in &thread.phases {
            if let Some(scheduling) = &phase.scheduling {
                class = scheduling.class(class);
                steps.extend(scheduling.steps(class, self.remarks));
                if moves {
                    // A phase that does not name CPUs has those of its thread.
                    let all = || text(&phase.item.node.place, "all");
                    let cpus = cpus(&phase.fields)?.or_else(|| own_cpus.clone());
                    steps.push(step("cpus", cpus.unwrap_or_else(all)));
                }
                if let Some(group) = self.group(&phase.fields, class, key)? {
                    let group = group.unwrap_or_else(|| self.root_group(phase, key));
                    steps.push(step("group", group));
                }
            }
            steps.extend(self.phase(&mut body, phase)?);
        }
        Some(steps)
    }

    fn phase(&mut self, body: &mut Body<'_, '_>, phase: &Phase<'_>) -> Option<Vec<Node>> {
        let events = phase.events.iter().map(|event| self.event(body, event));
        // All are translated, so that each reports what is wrong with it.
        let events: Vec<Option<Vec<Node>>> = events.collect();
        let steps: Option<Vec<Vec<Node>>> = events.into_iter().collect();
        let (steps, place) = (steps?.concat(), &phase.item.node.place);
        let times = match phase.loops {
            1 => return Some(steps),
            ..1 => return Some(vec![endless(place, steps)]),
            times => times,
        };
        let repeated = vec![
            entry("repeat", number(place, times)),
            entry("body", list(place, steps)),
        ];
        Some(vec![table(place, repeated)])
    }

    /// The group that `fields` name: none if they do not, and none within if it is the root's.
    fn group(
        &mut self,
        fields: &Fields<'_>,
        class: PolicyClass,
        key: &str,
    ) -> Option<Option<Option<Node>>> {
        let Some(item) = fields.item("taskgroup") else {
            return Some(None);
        };
        let (path, place) = (item.text()?, item.node.place.clone());
        if path.is_empty() {
            return Some(None);
        }
        if !path.starts_with('/') {
            return item.wrong("a path, as in \"/group/inner\"");
        }
        if !matches!(class, PolicyClass::Fair(_)) {
            let what = format!("`{key}` is in a task group with a policy that has none");
            let help = "task groups are for SCHED_OTHER, SCHED_BATCH and SCHED_IDLE";
            item.report(what, help);
            return None;
        }
        let mut parent: Option<(String, String)> = None;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let path = parent
                .as_ref()
                .map_or(String::new(), |(path, _)| path.clone())
                + "/"
                + part;
            let keys = || {
                let parent = parent.as_ref();
                let parent = parent.map(|(_, name)| entry("parent", text(&place, name.clone())));
                parent.into_iter().collect()
            };
            let wanted = path.trim_start_matches('/');
            let name = self.objects.get(Class::Group, &path, wanted, &place, keys);
            parent = Some((path, name));
        }
        Some(Some(parent.map(|(_, name)| text(&place, name))))
    }

    /// A group in place of the root's, to which no step leads back.
    fn root_group(&mut self, phase: &Phase<'_>, key: &str) -> Node {
        let why = "a step cannot lead back to the root's own; its weight is that of a task there";
        let what = "task group / is a group of its own for each thread that leaves another";
        self.remarks.say(&phase.item, what, why);
        let (name, place) = (format!("root-of-{key}"), &phase.item.node.place);
        let group = self
            .objects
            .get(Class::Group, &name, &name, place, Vec::new);
        text(place, group)
    }
}

/// As much of a name as a kernel keeps.
fn cut(name: &str) -> &str {
    let mut end = name.len().min(LONGEST_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// The place that `cpus` names: none if it is missing.
fn cpus(fields: &Fields<'_>) -> Option<Option<Node>> {
    let Some(item) = fields.item("cpus") else {
        return Some(None);
    };
    let cpus = item.list()?;
    let cpu = |cpu: &Item<'_>| whole(cpu, 0..=u16::MAX.into()).map(|cpu| cpu.to_string());
    let cpus: Option<Vec<String>> = cpus.iter().map(cpu).collect();
    match cpus? {
        cpus if cpus.is_empty() => item.wrong("at least one CPU, as in [0]"),
        cpus => Some(Some(text(
            &item.node.place,
            format!("cpus {}", cpus.join(",")),
        ))),
    }
}
