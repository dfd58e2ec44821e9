//! Who starts whom: what only a step starts is started, and no task starts tasks without end.

use std::collections::BTreeSet;

use super::Findings;
use super::limits::MOST_TASKS;
use crate::bind::{Bound, Indexes};
use crate::scenario::Scenario;
use crate::step::{Action, Step, TaskReference};
use crate::task::{TaskKind, TaskKindId};

/// Rounds and steps that counting looks at before it gives up.
const MOST_STEPS: u64 = 10_000_000;

pub(super) fn check(scenario: &Scenario, findings: &mut Findings<'_>) {
    let mut started = BTreeSet::new();
    for task in scenario.tasks() {
        for reference in starts(task) {
            started.insert(reference.task);
            let named = scenario.task(reference.task);
            if !named.spawned {
                let what = format!("`{}` starts by itself", named.key);
                findings.report(&reference.spot, what, "write spawned = true in its table");
            }
        }
    }
    for (number, task) in (0..).zip(scenario.tasks()) {
        let id = TaskKindId(number);
        if task.spawned && !started.contains(&id) {
            let what = format!("no step starts `{}`", task.key);
            let help = "leave `spawned` out, or start it with { spawn = \"NAME\" }";
            findings.report(&task.spot, what, help);
        }
        if task.times.is_none() && is_on_a_cycle(scenario, id) {
            let what = format!(
                "`{}` starts itself, directly or through others, without end",
                task.key
            );
            findings.report(
                &task.spot,
                what,
                "say with `times` how often its body is done",
            );
        }
    }
}

/// What the steps of `task` start, as threads or as processes.
pub(super) fn starts(task: &TaskKind) -> Vec<&TaskReference> {
    named(task, |action| match action {
        Action::Spawn(task) | Action::Fork(task) => Some(task),
        _ => None,
    })
}

/// What the steps of `task` start as threads.
pub(super) fn threads(task: &TaskKind) -> Vec<&TaskReference> {
    named(task, |action| match action {
        Action::Spawn(task) => Some(task),
        _ => None,
    })
}

fn named<'t>(
    task: &'t TaskKind,
    wanted: impl Fn(&'t Action) -> Option<&'t TaskReference>,
) -> Vec<&'t TaskReference> {
    let steps = task.steps();
    steps.filter_map(|step| wanted(&step.action)).collect()
}

fn is_on_a_cycle(scenario: &Scenario, start: TaskKindId) -> bool {
    let next = |id: TaskKindId| {
        starts(scenario.task(id))
            .into_iter()
            .map(|start| start.task)
    };
    let (mut seen, mut left) = (BTreeSet::new(), next(start).collect::<Vec<_>>());
    while let Some(id) = left.pop() {
        if id == start {
            return true;
        }
        if seen.insert(id) {
            left.extend(next(id));
        }
    }
    false
}

/// Where tasks start one another in a circle, all of them are counted as if they were played.
pub(super) fn count(bound: &Bound, findings: &mut Findings<'_>) {
    let scenario = bound.scenario();
    let ids = || (0..scenario.tasks().len() as u32).map(TaskKindId);
    let Some(circular) = ids().find(|id| is_on_a_cycle(scenario, *id)) else {
        return;
    };
    let mut counting = Counting {
        bound,
        waiting: Vec::new(),
        tasks: 0,
        steps: 0,
    };
    for id in ids().filter(|id| !scenario.task(*id).spawned) {
        (0..bound.tasks(id)).for_each(|number| counting.start(id, number));
    }
    if !counting.ends() {
        let key = &scenario.task(circular).key;
        let what =
            format!("`{key}` starts itself, and there would be more than {MOST_TASKS} tasks");
        findings.report(
            &scenario.task(circular).spot,
            what,
            "let each task start fewer",
        );
    }
}

/// Tasks that were started and whose steps were not looked at yet.
struct Counting<'b> {
    bound: &'b Bound,
    waiting: Vec<(TaskKindId, u64)>,
    tasks: u64,
    steps: u64,
}

impl Counting<'_> {
    fn start(&mut self, id: TaskKindId, number: u64) {
        self.tasks += 1;
        self.waiting.push((id, number));
    }

    fn is_too_much(&self) -> bool {
        self.tasks > MOST_TASKS || self.steps > MOST_STEPS
    }

    /// True if the number of tasks stays within the limit. An expression without a value ends the
    /// count of its task; playing it will end there, too.
    fn ends(&mut self) -> bool {
        while let Some((id, number)) = self.waiting.pop() {
            let task = self.bound.scenario().task(id);
            let mut indexes = self.bound.indexes_of_task(id, number);
            // Rounds of a task that is on no cycle and has no end count once.
            let times = task
                .times
                .as_ref()
                .map(|times| self.bound.eval(times, &indexes));
            let rounds = times.map_or(1, |times| times.unwrap_or(0));
            if starts(task).is_empty() {
                continue;
            }
            self.follow(&task.setup, &mut indexes);
            for _ in 0..rounds {
                // A round whose steps are all left out counts, too.
                self.steps += 1;
                self.follow(&task.body, &mut indexes);
                if self.is_too_much() {
                    return false;
                }
            }
            if self.is_too_much() {
                return false;
            }
        }
        true
    }

    fn follow(&mut self, steps: &[Step], indexes: &mut Indexes) {
        for step in steps.iter().filter(|step| self.bound.holds(step.when)) {
            self.steps += 1;
            if self.is_too_much() {
                return;
            }
            match &step.action {
                Action::Spawn(task) | Action::Fork(task) => {
                    if let Ok(number) = self.bound.task_number(task, indexes) {
                        self.start(task.task, number);
                    }
                }
                Action::Repeat {
                    times,
                    except,
                    body,
                } => {
                    let times = self.bound.eval(times, indexes).unwrap_or(0);
                    let except = except
                        .as_ref()
                        .map(|except| self.bound.eval(except, indexes).ok());
                    self.repeat(times, except.flatten(), body, indexes);
                }
                _ => {}
            }
        }
    }

    fn repeat(&mut self, times: u64, except: Option<u64>, body: &[Step], indexes: &mut Indexes) {
        for round in (0..times).filter(|round| Some(*round) != except) {
            indexes.push(round);
            self.steps += 1;
            self.follow(body, indexes);
            indexes.pop();
            if self.is_too_much() {
                return;
            }
        }
    }
}
