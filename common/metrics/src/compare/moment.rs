//! The state of a recording at one of its records: who waits, and who woke whom just before.

use std::collections::VecDeque;

use warmq_trace::{Board, Context, Doing, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::Recording;
use super::roles::{Roles, Who};

/// A task that could run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Who.
    pub who: Who,
    /// The CPU in whose queue it is, if each CPU has one.
    pub cpu: CpuId,
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

/// The state of a recording before one of its records.
#[derive(Debug, Default)]
pub(super) struct Moment {
    pub waiting: Vec<Waits>,
    pub wakeups: Vec<Woken>,
}

impl Moment {
    /// That before the record at `index`, which is a switch: whoever it preempts waits as well.
    pub fn before(recording: &Recording, roles: &Roles, index: usize) -> Moment {
        let mut board = Board::default();
        let mut wakeups = VecDeque::new();
        let records = &recording.records;
        for (at, record) in &records[..index] {
            board.see(*at, record);
            if let Record::Wakeup { task, .. } = record {
                wakeups.extend(woken(*at, *task, &board, roles));
                wakeups.drain(..wakeups.len().saturating_sub(WAKEUPS));
            }
        }
        Moment {
            waiting: waiting(&board, roles, &records[index]),
            wakeups: wakeups.into(),
        }
    }
}

fn waiting(board: &Board, roles: &Roles, (at, switch): &(Instant, Record)) -> Vec<Waits> {
    let preempted = match *switch {
        Record::Switch {
            cpu,
            prev: Some(prev),
            prev_runnable: true,
            ..
        } => Some((prev, cpu)),
        _ => None,
    };
    let wait = |task: TaskId| match (board.doing(task), preempted) {
        (_, Some((prev, cpu))) if prev == task => Some((cpu, *at)),
        (Doing::Waits(cpu), _) => Some((cpu, board.since(task))),
        _ => None,
    };
    let all = roles.all().filter_map(|(task, who)| {
        let (cpu, since) = wait(task)?;
        Some(Waits {
            who: who.clone(),
            cpu,
            span: at.since(since),
        })
    });
    let mut waiting: Vec<Waits> = all.collect();
    waiting.sort_by_key(|wait| std::cmp::Reverse(wait.span));
    waiting
}

fn woken(at: Instant, task: TaskId, board: &Board, roles: &Roles) -> Option<Woken> {
    let waking = board.waking(task)?;
    Some(Woken {
        at,
        who: roles.who(task)?.clone(),
        by: waking.waker.and_then(|waker| roles.who(waker)).cloned(),
        context: waking.context,
    })
}
