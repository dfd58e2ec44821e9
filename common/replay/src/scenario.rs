//! A recording as a scenario in TOML.

mod names;
mod row;

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use warmq_trace::Policy;
use warmq_units::{CpuId, CpuSet, Instant, TaskId, is_printable};

use self::names::Names;
use crate::missing::Missing;
use crate::row::{Kind, Moment};
use crate::taken::{Taken, did_anything};
use crate::task::Task;

/// `/proc/PID/cgroup` has no groups of sessions: the recorder names them so.
const AUTOGROUP: &str = "autogroup-";
/// The payload of a datagram whose size nobody knows.
const DATAGRAM: &str = "64B";

/// The machine that a scenario is for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many CPUs it has.
    pub cpus: usize,
}

impl Taken {
    /// The scenario in TOML, and what it does not have of the recording.
    pub fn scenario(&self, shape: Shape) -> (String, Missing) {
        let tasks = self.tasks.iter();
        let tasks: Vec<(TaskId, &Task)> = tasks.filter(|(_, task)| did_anything(task)).collect();
        let mut missing = self.missing.clone();
        missing.silent = (self.tasks.iter().count() - tasks.len()) as u64;
        let mut writer = Writer {
            names: Names::of(self, &tasks),
            tasks,
            taken: self,
            shape,
            missing,
            text: String::new(),
        };
        // Writing to a string does not fail.
        let _ = writer.all();
        (writer.text, writer.missing)
    }
}

struct Writer<'t> {
    names: Names,
    tasks: Vec<(TaskId, &'t Task)>,
    taken: &'t Taken,
    shape: Shape,
    missing: Missing,
    text: String,
}

impl Writer<'_> {
    fn all(&mut self) -> fmt::Result {
        self.title()?;
        self.groups()?;
        self.processes()?;
        self.objects()?;
        for (id, task) in self.tasks.clone() {
            self.task(id, task)?;
        }
        Ok(())
    }

    fn title(&mut self) -> fmt::Result {
        let header = &self.taken.header;
        let of = [
            &header.world,
            &header.machine,
            &header.kernel,
            &header.scheduler,
        ];
        let of: Vec<&str> = of.into_iter().map(String::as_str).collect();
        let of: Vec<&str> = of.into_iter().filter(|fact| !fact.is_empty()).collect();
        let about = "Each task computes, sleeps and wakes others as it was recorded. Times to compute \
                     are all CPU time that it took; who waited for what another task did waits for \
                     that here.";
        let title = format!("What was recorded: {}", of.join(", "));
        writeln!(self.text, "title = {}", quoted(&title))?;
        writeln!(self.text, "about = \"{about}\"")
    }

    /// The groups that tasks are in, with those above them, outer ones first.
    fn groups(&mut self) -> fmt::Result {
        let mut used = BTreeSet::new();
        for (_, task) in &self.tasks {
            let mut group = task.who.group;
            while group != 0 && used.insert(group) {
                group = self.parent(group);
            }
        }
        let mut done = BTreeSet::new();
        while done.len() < used.len() {
            let ready = |group: &&u32| {
                let parent = self.parent(**group);
                !done.contains(*group) && (!used.contains(&parent) || done.contains(&parent))
            };
            // A cycle, which only a damaged trace has, is cut at its first group.
            let left = used.iter().find(|group| !done.contains(*group)).copied();
            let Some(group) = used.iter().find(ready).copied().or(left) else {
                return Ok(());
            };
            self.group(group, done.contains(&self.parent(group)))?;
            done.insert(group);
        }
        Ok(())
    }

    fn parent(&self, group: u32) -> u32 {
        self.taken.groups.get(group).parent
    }

    fn group(&mut self, group: u32, inside: bool) -> fmt::Result {
        writeln!(self.text, "\n[group.{}]", self.names.group(group))?;
        let known = self.taken.groups.get(group);
        if known.name.raw().starts_with(AUTOGROUP) {
            return writeln!(self.text, "autogroup = true");
        }
        if inside {
            let parent = self.names.group(self.parent(group));
            writeln!(self.text, "parent = \"{parent}\"")?;
        }
        match known.weight {
            0 => writeln!(self.text, "idle = true"),
            weight => writeln!(self.text, "weight = {}", weight.min(10_000)),
        }
    }

    /// Of tasks whose process is unknown each has one of its own.
    fn processes(&mut self) -> fmt::Result {
        for tgid in self.names.processes() {
            writeln!(self.text, "\n[process.p{tgid}]")?;
        }
        Ok(())
    }

    /// What each task waits for.
    fn objects(&mut self) -> fmt::Result {
        let mut made = BTreeSet::new();
        for (id, task) in self.tasks.clone() {
            let awaited = task.row.moments.iter().filter_map(awaits);
            let awaited = awaited.map(|kind| if kind.is_inbox() { task.inbox } else { kind });
            for kind in awaited.collect::<BTreeSet<Kind>>() {
                let name = self.names.object(id, kind);
                if !made.contains(&name) {
                    self.object(kind, &name)?;
                    made.insert(name);
                }
            }
            if !task.arrivals.is_empty() {
                self.source(id, task)?;
            }
        }
        Ok(())
    }

    fn object(&mut self, kind: Kind, name: &str) -> fmt::Result {
        let table = match kind {
            Kind::Semaphore | Kind::Shared(_) | Kind::Turn(_) => "semaphore",
            Kind::Pipe => "pipe",
            Kind::Socket | Kind::Outside => "datagram",
        };
        writeln!(self.text, "\n[{table}.{name}]")
    }

    fn source(&mut self, id: TaskId, task: &Task) -> fmt::Result {
        let (from, until) = (self.taken.from, self.taken.until);
        let since = |at: Instant, before: Instant| at.since(before).as_ns();
        let first = task.arrivals[0];
        writeln!(self.text, "\n[source.from_outside_{}]", self.names.task(id))?;
        let socket = self.names.object(id, Kind::Outside);
        writeln!(self.text, "to = \"{socket}\"\nbytes = \"{DATAGRAM}\"")?;
        writeln!(self.text, "start = \"{}ns\"", since(first, from))?;
        if let Some(cpu) = task.arrives_on.filter(|cpu| *cpu < self.shape.cpus)
            && !task.arrives_everywhere
        {
            writeln!(self.text, "cpu = \"cpu {cpu}\"")?;
        }
        // After the last one it begins anew, as far after the end as it began after the beginning.
        let last = task.arrivals[task.arrivals.len() - 1];
        let around = since(until, last) + since(first, from);
        let gaps = task.arrivals.windows(2).map(|pair| since(pair[1], pair[0]));
        let mut words = row::Words::new("gaps = \"\"\"\n");
        for gap in gaps.chain([around.max(1)]) {
            words.push(&format!("{gap}ns"));
        }
        self.text.push_str(&words.finish());
        writeln!(self.text, "\n\"\"\"")
    }

    fn task(&mut self, id: TaskId, task: &Task) -> fmt::Result {
        let who = &task.who;
        writeln!(self.text, "\n[task.{}]", self.names.task(id))?;
        let name: String = who
            .comm
            .raw()
            .chars()
            .filter(|letter| is_printable(*letter))
            .collect();
        if !name.is_empty() {
            writeln!(self.text, "name = {}", quoted(&name))?;
        }
        if let Some(tgid) = self.names.process(who.tgid) {
            writeln!(self.text, "process = \"p{tgid}\"")?;
        }
        if who.group != 0 {
            writeln!(self.text, "group = \"{}\"", self.names.group(who.group))?;
        }
        if who.nice != 0 {
            writeln!(self.text, "nice = {}", who.nice.clamp(-20, 19))?;
        }
        if let Some(policy) = policy(who.policy, who.priority) {
            writeln!(self.text, "policy = \"{policy}\"")?;
        }
        if who.slice.as_ns() > 0 {
            writeln!(self.text, "slice = \"{}ns\"", who.slice.as_ns())?;
        }
        match who.allowed(self.shape.cpus) {
            Some(none) if none.is_empty() => self.missing.bound += 1,
            Some(cpus) => writeln!(self.text, "cpus = \"{}\"", place(&cpus))?,
            None => {}
        }
        // A round is as long as the recording; whoever never rested in the end never does.
        if task.rests {
            writeln!(
                self.text,
                "every = \"{}ns\"",
                self.taken.time().as_ns().max(1)
            )?;
        }
        let body = row::body(id, task, &self.names);
        writeln!(self.text, "body = [{body}]")
    }
}

fn awaits(moment: &Moment) -> Option<Kind> {
    match moment {
        Moment::Await(kind, _) => Some(*kind),
        _ => None,
    }
}

fn policy(policy: Option<Policy>, priority: u8) -> Option<String> {
    let priority = priority.clamp(1, 99);
    match policy? {
        Policy::Batch => Some("batch".to_owned()),
        Policy::Idle => Some("idle".to_owned()),
        Policy::Fifo => Some(format!("fifo {priority}")),
        Policy::RoundRobin => Some(format!("rr {priority}")),
        Policy::Other | Policy::Deadline | Policy::Ext => None,
    }
}

/// `cpu 3`, `cpus 0-2,5`.
fn place(cpus: &[usize]) -> String {
    let set: CpuSet = cpus.iter().map(|cpu| CpuId(*cpu as u16)).collect();
    match cpus {
        [only] => format!("cpu {only}"),
        _ => format!("cpus {set}"),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if !is_printable(letter) => {}
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_texts_are_written_as_scenarios_have_them() {
        assert_eq!(place(&[3]), "cpu 3");
        assert_eq!(place(&[0, 1, 2, 5, 7, 8]), "cpus 0-2,5,7-8");
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c""#);
        assert_eq!(policy(Some(Policy::Fifo), 0).as_deref(), Some("fifo 1"));
        assert_eq!(policy(Some(Policy::Other), 0), None);
    }
}
