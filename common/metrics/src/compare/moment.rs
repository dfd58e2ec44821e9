//! The state of a recording at one of its records: who waits, and who woke whom just before.

use std::collections::VecDeque;

use warmq_trace::{Context, Record, Table};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::Recording;
use super::roles::{Roles, Who};

/// A task that could run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Who.
    pub who: Who,
    /// The CPU in whose queue it is; none if that is not known.
    pub cpu: Option<CpuId>,
    /// Since it was woken or lost its CPU.
    pub span: Duration,
}

/// A wakeup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Woken {
    /// When.
    pub at: Instant,
    /// Who was woken.
    pub who: Who,
    /// Who ran where it was woken, if that was a task of the scenario.
    pub by: Option<Who>,
    /// What that CPU was doing.
    pub context: Context,
}

/// How many wakeups are kept.
const WAKEUPS: usize = 3;

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    since: Option<Instant>,
    cpu: Option<CpuId>,
}

/// The state of a recording before one of its records.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub waiting: Vec<Waits>,
    pub wakeups: Vec<Woken>,
}

impl Moment {
    /// That before the record at `index`, which is a switch: whoever it preempts waits as well.
    pub fn before(recording: &Recording, roles: &Roles, index: usize) -> Moment {
        let mut replay = Replay::default();
        let records = &recording.records;
        for (at, record) in &records[..index] {
            replay.see(*at, record, roles);
        }
        let at = records[index].0;
        if let Record::Switch {
            cpu,
            prev: Some(prev),
            prev_runnable: true,
            ..
        } = records[index].1
        {
            replay.waits(prev, at, Some(cpu));
        }
        let mut waiting: Vec<Waits> = roles
            .all()
            .filter_map(|(task, who)| {
                let state = replay.tasks.get(task)?;
                Some(Waits {
                    who: who.clone(),
                    cpu: state.cpu,
                    span: at.since(state.since?),
                })
            })
            .collect();
        waiting.sort_by_key(|it| std::cmp::Reverse(it.span));
        Moment {
            waiting,
            wakeups: replay.wakeups.into(),
        }
    }
}

#[derive(Debug, Default)]
struct Replay {
    tasks: Table<TaskId, State>,
    /// Who is about to be woken: by whom, and where.
    waking: Table<TaskId, Option<(Option<TaskId>, Context)>>,
    wakeups: VecDeque<Woken>,
}

impl Replay {
    fn see(&mut self, at: Instant, record: &Record, roles: &Roles) {
        match *record {
            Record::Waking {
                waker,
                task,
                context,
                ..
            } => *self.waking.touch(task) = Some((waker, context)),
            Record::Wakeup { task, target, .. } => {
                self.waits(task, at, Some(target));
                self.woken(at, task, roles);
            }
            Record::Migrate { task, to, .. } => self.tasks.touch(task).cpu = Some(to),
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                if let Some(prev) = prev {
                    self.tasks.touch(prev).since = prev_runnable.then_some(at);
                    self.tasks.touch(prev).cpu = Some(cpu);
                }
                if let Some(next) = next {
                    self.tasks.touch(next).since = None;
                }
            }
            _ => {}
        }
    }

    fn waits(&mut self, task: TaskId, at: Instant, cpu: Option<CpuId>) {
        let since = Some(at);
        *self.tasks.touch(task) = State { since, cpu };
    }

    fn woken(&mut self, at: Instant, task: TaskId, roles: &Roles) {
        let waking = self.waking.touch(task).take();
        let Some(who) = roles.who(task) else { return };
        let (waker, context) = waking.unwrap_or((None, Context::Unknown));
        self.wakeups.push_back(Woken {
            at,
            who: who.clone(),
            by: waker.and_then(|waker| roles.who(waker)).cloned(),
            context,
        });
        if self.wakeups.len() > WAKEUPS {
            self.wakeups.pop_front();
        }
    }
}
