//! What tasks did, beside verdicts: who waited, who is woken, who moves between caches. All are
//! listed; who shows them may cut the list.

use std::collections::BTreeMap;

use serde::Serialize;
use warmq_trace::Context;
use warmq_units::{Duration, TaskId};

use crate::Need;
use crate::facts::Facts;
use crate::words::rate;

/// So many of those who ran instead are listed.
const MOST_INSTEAD: usize = 4;
/// Moves between caches a second from which on a task is listed.
const LEAST_MOVES: u64 = 10;
/// Less waiting is not listed: a millionth of the time measured may be one switch.
const LEAST_WAITED: Duration = Duration::from_ms(1);

/// Who a task is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// Its name: of its program, or of its table in the scenario with its number there.
    pub name: String,
    /// Its process, as the kernel of a recording numbers it.
    pub pid: Option<u32>,
    /// Its thread.
    pub tid: Option<u32>,
    /// The path of its group, as far as its names are known.
    pub group: String,
    /// Its number in the trace.
    pub task: u32,
    /// What its process is called, or its table.
    #[serde(skip)]
    pub program: String,
    #[serde(skip)]
    pub(crate) number: Option<u32>,
    #[serde(skip)]
    pub(crate) of_scenario: bool,
}

impl About {
    /// What people call it: `make (4711)`, and of a scenario `hog 3`.
    pub fn shown(&self) -> String {
        match (self.name.as_str(), self.tid) {
            ("", Some(tid)) => format!("thread {tid}"),
            ("", None) => format!("task {}", self.task),
            (name, Some(tid)) if !self.of_scenario => format!("{name} ({tid})"),
            (name, _) => name.to_owned(),
        }
    }

    /// What distinguishes it from others of its program.
    fn id(&self) -> u32 {
        let own = if self.of_scenario { None } else { self.tid };
        own.or(self.number).unwrap_or(self.task)
    }
}

/// So many ids of a program are named, and so many programs.
const NAMED: usize = 20;

/// All of `tasks`, those of a program and a group together: `make (3: 41, 42, 43)`. Of many, the
/// first ones and how many more there are.
pub fn summed<'a>(tasks: impl IntoIterator<Item = &'a About>) -> Vec<String> {
    let mut together: Vec<Vec<&About>> = Vec::new();
    for task in tasks {
        let same =
            |of: &&mut Vec<&About>| (&of[0].program, &of[0].group) == (&task.program, &task.group);
        match together.iter_mut().find(same) {
            Some(of) => of.push(task),
            None => together.push(vec![task]),
        }
    }
    let shown = together.iter().take(NAMED).map(|of| match of[..] {
        [only] => only.shown(),
        _ => {
            let ids = of.iter().take(NAMED).map(|task| task.id().to_string());
            let ids = ids.chain(more(of.len(), "")).collect::<Vec<_>>();
            format!("{} ({}: {})", of[0].program, of.len(), ids.join(", "))
        }
    });
    shown.chain(more(together.len(), " programs")).collect()
}

/// What stands for those of `all` that are not named.
fn more(all: usize, of: &str) -> Option<String> {
    let more = all.saturating_sub(NAMED);
    (more > 0).then(|| format!("{more} more{of}"))
}

/// Who waited, who is woken, who moves; whoever does so most comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Who waited.
    pub waiting: Vec<Waiting>,
    /// Who is woken.
    pub woken: Vec<Woken>,
    /// Who moves between caches.
    pub bouncing: Vec<Bouncing>,
}

/// A task that was runnable and did not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// Who it is.
    #[serde(flatten)]
    pub about: About,
    /// How long it ran, in ns.
    pub ran_ns: u64,
    /// How long it waited, in ns.
    pub waited_ns: u64,
    /// Its longest wait, in ns.
    pub longest_ns: u64,
    /// For how long a quota held it back, in ns.
    pub throttled_ns: u64,
    /// About what it was due of the time that it wanted, in ns.
    pub due_ns: u64,
    /// While it waited, some CPU idled that it may use for so long, in ns.
    pub idle_allowed_ns: u64,
    /// While it waited, some CPU idled that it may not use for so long, in ns.
    pub idle_excluded_ns: u64,
    /// Who ran where it waited, most first.
    pub instead: Vec<Instead>,
}

/// Somebody who ran where a task waited.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instead {
    /// Who it is.
    #[serde(flatten)]
    pub about: About,
    /// How long, in ns.
    pub ran_ns: u64,
    /// Why it could.
    pub why: String,
}

/// A task that is woken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Woken {
    /// Who it is.
    #[serde(flatten)]
    pub about: About,
    /// How often in a second.
    pub per_second: u64,
    /// How often in a second it took the CPU from another at once.
    pub took_per_second: u64,
    /// Who wakes it, most often first.
    pub by: Vec<Waker>,
}

/// Somebody who wakes a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waker {
    /// Its name, and in what context it wakes.
    pub waker: String,
    /// How often in a second.
    pub per_second: u64,
}

/// A task that moves between last-level caches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bouncing {
    /// Who it is.
    #[serde(flatten)]
    pub about: About,
    /// Moves between caches a second.
    pub llc_moves_per_second: u64,
    /// Moves between CPUs a second.
    pub cpu_moves_per_second: u64,
}

impl Activity {
    pub(crate) fn of(facts: &Facts<'_>) -> Activity {
        Activity {
            waiting: waiting(facts),
            woken: woken(facts),
            bouncing: bouncing(facts),
        }
    }
}

/// The tasks whose `key` is at least `least`, the largest first.
fn top(facts: &Facts<'_>, least: u64, key: impl Fn(TaskId) -> u64) -> Vec<(TaskId, u64)> {
    let all = facts.watcher.tasks.iter().map(|(id, _)| (id, key(id)));
    let mut all: Vec<(TaskId, u64)> = all.filter(|(_, key)| *key >= least).collect();
    all.sort_by_key(|(id, key)| (std::cmp::Reverse(*key), *id));
    all
}

fn waiting(facts: &Facts<'_>) -> Vec<Waiting> {
    let waited = |id| {
        let tally = facts.tally(id);
        (tally.waited + tally.throttled).0
    };
    let all = top(facts, LEAST_WAITED.0, waited).into_iter();
    all.map(|(id, _)| {
        let tally = facts.tally(id);
        let who = &facts.task(id).who;
        let mut beside = tally.beside.clone();
        beside.sort_by_key(|(id, span)| (std::cmp::Reverse(*span), *id));
        let instead = beside
            .iter()
            .take(MOST_INSTEAD)
            .map(|(other, span)| Instead {
                about: facts.about(*other),
                ran_ns: span.as_ns(),
                why: facts.why_it_could(*other, id),
            });
        Waiting {
            about: facts.about(id),
            ran_ns: tally.ran.as_ns(),
            waited_ns: tally.waited.as_ns(),
            longest_ns: tally.longest.span().as_ns(),
            throttled_ns: tally.throttled.as_ns(),
            due_ns: facts.dues.due(who, tally, tally).as_ns(),
            idle_allowed_ns: tally.idle.inside.as_ns(),
            idle_excluded_ns: tally.idle.outside.as_ns(),
            instead: instead.collect(),
        }
    })
    .collect()
}

fn woken(facts: &Facts<'_>) -> Vec<Woken> {
    let often = |id| facts.tally(id).wakeups;
    let all = top(facts, 1, often).into_iter();
    all.map(|(id, wakeups)| {
        let tally = facts.tally(id);
        let mut times: BTreeMap<String, u64> = BTreeMap::new();
        for (by, woke) in &tally.wakers.known {
            *times.entry(waker(facts, *by)).or_default() += woke;
        }
        let mut by: Vec<(String, u64)> = times.into_iter().collect();
        by.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        let by = by.into_iter().take(MOST_INSTEAD);
        let by = by.map(|(waker, times)| Waker {
            waker,
            per_second: rate(times, facts.period),
        });
        Woken {
            about: facts.about(id),
            per_second: rate(wakeups, facts.period),
            took_per_second: rate(tally.took_at_wakeup, facts.period),
            by: by.collect(),
        }
    })
    .filter(|waker| waker.per_second > 0)
    .collect()
}

fn waker(facts: &Facts<'_>, (task, context): (Option<TaskId>, Context)) -> String {
    match (context, task) {
        (Context::Interrupt, _) => "an interrupt".to_owned(),
        (Context::Softirq, Some(task)) => format!("a softirq in {}", facts.name(task)),
        (Context::Softirq, None) => "a softirq on an idle CPU".to_owned(),
        (_, Some(task)) => facts.name(task),
        (_, None) if facts.watcher.lacks.contains(&Need::Contexts) => "nobody known".to_owned(),
        (_, None) => "an idle CPU".to_owned(),
    }
}

fn bouncing(facts: &Facts<'_>) -> Vec<Bouncing> {
    let moves = |id| facts.tally(id).llc_moves;
    let all = top(facts, 1, moves).into_iter();
    let bouncing = all.map(|(id, moves)| Bouncing {
        about: facts.about(id),
        llc_moves_per_second: rate(moves, facts.period),
        cpu_moves_per_second: rate(facts.tally(id).cpu_moves, facts.period),
    });
    bouncing
        .filter(|task| task.llc_moves_per_second >= LEAST_MOVES)
        .collect()
}

#[cfg(test)]
mod tests {
    use warmq_trace::{Header, Observer, Record, State};
    use warmq_units::{CpuId, Instant};

    use super::*;
    use crate::{Diagnosis, Watcher};

    /// A timer wakes a task a hundred times a second, and interrupts one of two others for it.
    #[test]
    fn interrupts_are_one_waker_whoever_is_interrupted() {
        let (woken, cpu) = (TaskId(3), CpuId(0));
        let header = Header {
            places: vec![(0, 0)],
            ..Header::default()
        };
        let mut watcher = Watcher::new(&header, Instant::START, Instant(u64::MAX));
        let switch = |prev, prev_runnable, next| Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next: Some(next),
        };
        let mut before = None;
        for turn in 0..100 {
            let runs = TaskId(1 + turn % 2);
            let waking = Record::Waking {
                cpu,
                waker: Some(runs),
                task: woken,
                context: Context::Interrupt,
                synchronous: false,
            };
            let wakeup = Record::Wakeup {
                waker: cpu,
                task: woken,
                target: cpu,
            };
            let asleep = Record::Block {
                cpu,
                task: woken,
                cause: warmq_trace::Cause::Unknown,
                state: State::Interruptible,
                object: None,
            };
            let records = [
                (0, switch(before, false, runs)),
                (5, waking),
                (5, wakeup),
                (5, switch(Some(runs), true, woken)),
                (6, asleep),
            ];
            for (ms, record) in records {
                let at = Duration::from_ms(u64::from(turn) * 10 + ms);
                watcher.see(Instant::START + at, &record);
            }
            before = Some(woken);
        }
        let activity = Diagnosis::of(watcher).activity;
        let by: Vec<&str> = activity.woken[0]
            .by
            .iter()
            .map(|waker| waker.waker.as_str())
            .collect();
        assert_eq!(by, ["an interrupt"]);
    }

    #[test]
    fn of_many_tasks_the_first_are_named_and_the_others_counted() {
        let task = |task: u32, program: String| About {
            program,
            task,
            ..About::default()
        };
        let summed = |tasks: &[About]| summed(tasks).join(", ");
        let few: Vec<About> = (0..3).map(|number| task(number, "make".into())).collect();
        assert_eq!(summed(&few), "make (3: 0, 1, 2)");
        let many: Vec<About> = (0..14_000)
            .map(|number| task(number, "cc1".into()))
            .collect();
        let text = summed(&many);
        assert!(
            text.starts_with("cc1 (14000: 0, 1, ") && text.ends_with("19, 13980 more)"),
            "{text}"
        );
        let programs: Vec<About> = (0..30)
            .map(|number| task(number, format!("p{number}")))
            .collect();
        assert!(summed(&programs).ends_with(", 10 more programs"));
    }
}
