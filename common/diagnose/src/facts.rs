//! What was seen, as rules look at it.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use warmq_trace::{Comm, Header};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::activity::About;
use crate::case::Case;
use crate::due::Dues;
use crate::preference::Preference;
use crate::watch::{Mark, Program, Sums, Tally, Task, Watcher};
use crate::words::{rate, thousandths};
use crate::{weight, words};

/// Everything that is known of a time.
pub(crate) struct Facts<'w> {
    pub watcher: &'w Watcher,
    pub header: &'w Header,
    sums: Sums,
    pub from: Instant,
    pub to: Instant,
    /// Whether it is the whole time that was looked at. Of a part nobody knows how much of it a
    /// group was throttled for: recorders say so at the end.
    pub whole: bool,
    /// How long was measured.
    pub period: Duration,
    pub dues: Dues,
    /// The tables of the scenario that have more than one task, once anybody asks.
    several: OnceCell<BTreeSet<u32>>,
    /// Stands for a task that no record names.
    unknown: Task,
    /// What processes are called: as their first threads are, as far as these were seen; once
    /// anybody asks.
    processes: OnceCell<BTreeMap<u32, Comm>>,
    /// The paths of groups, as far as their names are known; once anybody asks.
    paths: OnceCell<BTreeMap<u32, String>>,
    /// Somebody of each program, as far as anybody asks.
    programs: OnceCell<BTreeMap<Program, TaskId>>,
}

/// Kernel threads by their names, for recordings that do not say who is one. Each is the beginning
/// of a name that programs do not have.
const OF_KERNEL: &[&str] = &[
    "kworker/",
    "ksoftirqd/",
    "migration/",
    "rcu_",
    "rcub/",
    "rcuc/",
    "rcuog/",
    "rcuop/",
    "irq/",
    "kswapd",
    "kcompactd",
    "khugepaged",
    "kthreadd",
    "cpuhp/",
    "idle_inject/",
    "jbd2/",
    "sched_ext_",
    "scx_enable_",
    "ktimers/",
    "backlog_napi/",
    "napi/",
];
/// So many times a second a task must have taken a CPU at its wakeup to be named for it.
const LEAST_TAKES: u64 = 10;

/// Of a task that did nothing.
static NOTHING: LazyLock<Tally> = LazyLock::new(Tally::default);

impl<'w> Facts<'w> {
    /// Of all that `watcher` saw between `from` and `to`; it was closed.
    pub fn of_all(watcher: &'w Watcher, (from, to): (Instant, Instant)) -> Facts<'w> {
        let mut sums = Sums::default();
        for (id, task) in watcher.tasks.iter() {
            sums.insert(id, Arc::clone(&task.tally));
        }
        Facts::new(watcher, sums, (from, to), true)
    }

    /// Of what happened between two times.
    pub fn between(watcher: &'w Watcher, (from, to): (&Mark, &Mark)) -> Facts<'w> {
        let changed = |id, now: &Arc<Tally>| match from.sums.get(&id) {
            // It did nothing.
            Some(before) if Arc::ptr_eq(before, now) => None,
            Some(before) => Some((id, Arc::new(now.since(before)))),
            None => Some((id, Arc::clone(now))),
        };
        let died = watcher.died_between((from.at, to.at));
        let died = died.filter(|(id, _)| !to.sums.contains_key(id));
        let living = to.sums.iter().map(|(id, now)| (*id, now));
        let sums = died.chain(living);
        let sums = sums.filter_map(|(id, now)| changed(id, now)).collect();
        Facts::new(watcher, sums, (from.at, to.at), false)
    }

    fn new(
        watcher: &'w Watcher,
        sums: Sums,
        (from, to): (Instant, Instant),
        whole: bool,
    ) -> Facts<'w> {
        let period = to.since(from);
        Facts {
            watcher,
            header: &watcher.header,
            from,
            to,
            whole,
            period,
            dues: Dues::of(watcher, &sums, (from, to)),
            sums,
            several: OnceCell::new(),
            unknown: Task::default(),
            processes: OnceCell::new(),
            paths: OnceCell::new(),
            programs: OnceCell::new(),
        }
    }

    /// The tasks that did anything.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.sums.keys().copied()
    }

    /// What was counted of a task.
    pub fn tally(&self, id: TaskId) -> &Tally {
        self.sums.get(&id).map_or(&NOTHING, |tally| tally)
    }

    /// For how long a quota held back tasks of `group`, as far as was recorded.
    pub fn throttled(&self, group: u32) -> Duration {
        match self.whole {
            true => self.watcher.quotas.held(group),
            false => Duration::ZERO,
        }
    }

    /// The task; one that is not known is as if it had just been met.
    pub fn task(&self, id: TaskId) -> &Task {
        // A record of another task may have named it, as its waker.
        self.watcher.tasks.get(id).unwrap_or(&self.unknown)
    }

    /// Whether CPUs take turns, as in a guest whose instructions are counted: while one does, the
    /// others seem to be in an interrupt.
    pub fn cpus_take_turns(&self) -> bool {
        self.header.clock == "instructions" && self.watcher.cpu_count() > 1
    }

    /// For how long `cpu` was recorded.
    pub fn recorded(&self, cpu: CpuId) -> Duration {
        self.watcher.recorded(cpu, (self.from, self.to))
    }

    /// For how much of the time measured the task was there.
    pub fn lived(&self, task: &Task) -> Duration {
        let until = task.died.unwrap_or(self.to).min(self.to);
        until.since(task.born.unwrap_or(self.from).max(self.from))
    }

    /// Who it is.
    pub fn about(&self, id: TaskId) -> About {
        let who = &self.task(id).who;
        let of_role = who.role.and_then(|(table, number)| {
            let name = self.header.names.tasks.get(table as usize)?;
            let several = self.several.get_or_init(|| several(self.watcher));
            let number = several.contains(&table).then_some(number);
            Some((name.clone(), number))
        });
        let is_role = of_role.is_some();
        let of_comm = || (who.comm.to_string(), None);
        let (name, number) = of_role.unwrap_or_else(of_comm);
        let processes = || self.processes.get_or_init(|| processes(self.watcher));
        let process = who.tgid.and_then(|tgid| processes().get(&tgid));
        let program = match process {
            // Threads of the kernel are many, and differ in what follows: `kworker/0:1-events`.
            _ if who.kernel => name.split('/').next().unwrap_or_default().to_owned(),
            Some(process) if !is_role => process.to_string(),
            _ => name.clone(),
        };
        About {
            name: number.map_or_else(|| name.clone(), |number| format!("{name} {number}")),
            program,
            number,
            pid: who.tgid.or(who.tid),
            tid: who.tid,
            group: self
                .path(who.group)
                .unwrap_or_else(|| self.group_name(who.group)),
            task: id.0,
            of_scenario: is_role,
        }
    }

    /// What people call it.
    pub fn name(&self, id: TaskId) -> String {
        self.about(id).shown()
    }

    /// Somebody of a program.
    pub fn of_program(&self, program: Program) -> Option<TaskId> {
        let all = || {
            let all = self.watcher.tasks.iter();
            all.map(|(id, task)| (task.program(), id)).collect()
        };
        self.programs.get_or_init(all).get(&program).copied()
    }

    /// What people call those of a program and a group together.
    pub fn program(&self, (comm, group): Program) -> String {
        match comm == Comm::default() {
            true => format!("more of {}", self.group_name(group)),
            false => format!("more of {comm}"),
        }
    }

    /// What people call a group.
    pub fn group_name(&self, group: u32) -> String {
        match (group, self.path(group)) {
            (0, _) => "the root group".to_owned(),
            (_, None) => format!("the group of {}", self.first_of(group)),
            (_, Some(path)) => format!("group {path}"),
        }
    }

    /// The path of a group, as far as its names are known.
    fn path(&self, group: u32) -> Option<String> {
        if group == 0 {
            return Some("/".to_owned());
        }
        let paths = self.paths.get_or_init(|| paths(self.watcher));
        paths.get(&group).cloned()
    }

    /// Somebody of a group that has no name.
    fn first_of(&self, group: u32) -> String {
        let mut all = self.watcher.tasks.iter();
        let of = all.find(|(_, task)| task.who.group == group);
        match of {
            Some((_, task)) if task.who.comm != Comm::default() => task.who.comm.to_string(),
            Some((_, task)) => format!("thread {}", task.who.tid.unwrap_or_default()),
            None => "others".to_owned(),
        }
    }

    pub fn is_kernel(&self, id: TaskId) -> bool {
        let who = &self.task(id).who;
        let name = who.comm.raw();
        who.kernel || who.role.is_none() && OF_KERNEL.iter().any(|start| name.starts_with(start))
    }

    pub fn is_softirqd(&self, id: TaskId) -> bool {
        self.task(id).is_softirqd()
    }

    pub fn is_realtime(&self, id: TaskId) -> bool {
        self.task(id).who.is_realtime()
    }

    /// The outermost group that `of` lies in, or is, and `from` does not.
    pub fn outermost_own_group(&self, of: u32, from: u32) -> Option<u32> {
        let other = self.watcher.groups.upwards(from);
        let mut own = self.watcher.groups.upwards(of);
        own.reverse();
        own.into_iter().find(|group| !other.contains(group))
    }

    /// The tasks of a group and of those within it.
    pub fn members(&self, group: u32) -> impl Iterator<Item = (TaskId, &Task)> {
        self.watcher.tasks.iter().filter(move |(_, task)| {
            let of = task.who.group;
            of == group || self.watcher.groups.upwards(of).contains(&group)
        })
    }

    /// How often in a second `id` was woken on one of `cpus`.
    pub fn woken_on(&self, id: TaskId, cpus: &[CpuId]) -> u64 {
        let places = self.tally(id).places.iter();
        let there = places.filter(|place| cpus.contains(&place.cpu));
        rate(there.map(|place| place.wakeups).sum(), self.period)
    }

    /// For what share of the time `id` was runnable on other CPUs than `cpu`, in thousandths. The
    /// weight of a group is divided by what is runnable, whether it runs or waits.
    pub fn wanted_elsewhere(&self, id: TaskId, cpu: Option<CpuId>) -> u64 {
        let places = self.tally(id).places.iter();
        let elsewhere = places.filter(|place| Some(place.cpu) != cpu);
        thousandths(
            elsewhere.map(|place| place.ran + place.waited).sum(),
            self.period,
        )
    }

    /// Of its wakeups, how many took the CPU from another task at once, in thousandths.
    pub fn takes_at_wakeup(&self, id: TaskId) -> u64 {
        let tally = self.tally(id);
        tally.took_at_wakeup * 1_000 / tally.wakeups.max(1)
    }

    /// Its weight among tasks of its group, on average where it changed while it wanted a CPU.
    pub fn weight(&self, id: TaskId) -> u64 {
        let (mut weights, mut time) = (0, 0);
        let places = self.tally(id).places.iter();
        for place in places.filter(|place| place.weight > 0) {
            let wanted = u128::from((place.ran + place.waited).0);
            weights += u128::from(place.weight) * wanted;
            time += wanted;
        }
        let average = weights.checked_div(time).map(|weight| weight as u64);
        let who = &self.task(id).who;
        average.unwrap_or_else(|| weight::of_task(who.policy(), who.nice))
    }

    /// Whether what is known of its nice value, policy, group and CPUs, which is what they were
    /// last, says how it was scheduled: not of a task that sets them all the time.
    pub fn is_settled(&self, id: TaskId) -> bool {
        let changes = self.task(id).who.changes;
        rate(changes.saturating_sub(1), self.watcher.measured()) == 0
    }

    /// Why `id` could run where `waiter` waited, in some words.
    pub fn why_it_could(&self, id: TaskId, waiter: TaskId) -> String {
        let preference = self.preference(id, waiter);
        let (rival, waits) = self.rivals(id, waiter);
        let (own, other) = (self.task(waiter).who.slice, self.task(id).who.slice);
        let mut why = match preference {
            Preference::RealTime => return "real-time".to_owned(),
            Preference::LeftOver => return "real-time tasks leave a part to others".to_owned(),
            Preference::Softirqs => return "softirqs".to_owned(),
            _ if self.is_kernel(id) => return "a thread of the kernel".to_owned(),
            Preference::Group => {
                let group = rival.group.unwrap_or_default();
                vec![format!("of {}", self.group_name(group))]
            }
            Preference::Weight => vec![format!(
                "weight {} against {}",
                words::count(rival.weight),
                words::count(waits.weight)
            )],
            Preference::Slice if other == Duration::ZERO => {
                vec![format!("the kernel's slice against {}", words::span(own))]
            }
            Preference::Slice if own == Duration::ZERO => {
                vec![format!("asks for a slice of {}", words::span(other))]
            }
            Preference::Slice => vec![format!(
                "a slice of {} against {}",
                words::span(other),
                words::span(own)
            )],
            Preference::OwnPolicy => vec!["SCHED_BATCH preempts nobody".to_owned()],
            Preference::Turn => Vec::new(),
        };
        let often = rate(self.tally(id).took_at_wakeup, self.period);
        if self.takes_at_wakeup(id) >= 100 && often >= LEAST_TAKES {
            let often = words::count(often);
            why.push(format!("took the CPU at its wakeup {often} times a second"));
        }
        // Turns serve everybody: who starves did not wait for them alone.
        let starves = || Case::of(self, waiter).is_some_and(|case| case.starves);
        match why.is_empty() {
            true if starves() => "for no reason that is recorded".to_owned(),
            true => "its turn".to_owned(),
            false => why.join(", "),
        }
    }
}

/// The tables of the scenario that have more than one task.
fn several(watcher: &Watcher) -> BTreeSet<u32> {
    let roles = watcher.tasks.iter().filter_map(|(_, task)| task.who.role);
    let several = roles.filter(|(_, number)| *number > 0);
    several.map(|(table, _)| table).collect()
}

/// The path of each group that has a name. Those of one path, as sessions may be, are numbered.
fn paths(watcher: &Watcher) -> BTreeMap<u32, String> {
    let named = watcher.groups.iter();
    let named = named.filter(|(_, group)| group.name != Comm::default());
    let path = |group| {
        let names = watcher.groups.upwards(group).into_iter().rev();
        let names = names.map(|group| watcher.groups.get(group).name.to_string());
        names.collect::<Vec<_>>().join("/")
    };
    let mut by_path: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (group, _) in named {
        by_path.entry(path(group)).or_default().push(group);
    }
    let numbered = by_path.into_iter().flat_map(|(path, groups)| {
        let several = groups.len() > 1;
        let called = move |(number, group)| match several {
            true => (group, format!("{path} {number}")),
            false => (group, path.clone()),
        };
        (0..)
            .zip(groups)
            .map(called)
            .collect::<Vec<(u32, String)>>()
    });
    numbered.collect()
}

/// What each process is called.
fn processes(watcher: &Watcher) -> BTreeMap<u32, Comm> {
    let mut processes = BTreeMap::new();
    for (_, task) in watcher.tasks.iter() {
        let who = &task.who;
        let Some(tgid) = who.tgid.filter(|_| who.comm != Comm::default()) else {
            continue;
        };
        match who.tid == Some(tgid) {
            true => drop(processes.insert(tgid, who.comm)),
            false => drop(processes.entry(tgid).or_insert(who.comm)),
        }
    }
    processes
}

#[cfg(test)]
mod tests {
    use warmq_trace::{Context, Observer, Record};

    use super::*;

    #[test]
    fn groups_of_one_path_are_numbered() {
        let end = Instant(u64::MAX);
        let mut watcher = Watcher::new(&Header::default(), Instant::START, end);
        for (group, parent, name) in [(7, 0, "session"), (9, 0, "session"), (8, 7, "session")] {
            let (weight, name) = (100, Comm::new(name));
            let record = Record::Cgroup {
                group,
                parent,
                weight,
                name,
            };
            watcher.see(Instant(0), &record);
        }
        let facts = Facts::of_all(&watcher, (Instant::START, end));
        let names = [7, 8, 9].map(|group| facts.group_name(group));
        assert_eq!(
            names,
            [
                "group session 0",
                "group session/session",
                "group session 1"
            ]
        );
    }

    #[test]
    fn a_waker_of_which_nothing_else_is_known_has_a_name() {
        let end = Instant(u64::MAX);
        let mut watcher = Watcher::new(&Header::default(), Instant::START, end);
        let waking = Record::Waking {
            cpu: CpuId(0),
            waker: Some(TaskId(99)),
            task: TaskId(1),
            context: Context::Task,
            synchronous: false,
        };
        watcher.see(Instant(0), &waking);
        let facts = Facts::of_all(&watcher, (Instant::START, end));
        assert_eq!(facts.name(TaskId(99)), "task 99");
    }
}
