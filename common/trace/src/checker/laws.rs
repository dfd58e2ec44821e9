//! The laws: each looks at the machine before a record, and at the record.

use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::board::{Board, State};
use super::{Breach, Violation};
use crate::{Interrupt, Record};

/// Whether `record`, which happened at `at`, may follow what is on `board`.
pub(super) fn judge(board: &Board, at: Instant, record: &Record) -> Result<(), Violation> {
    time_never_back(board, at)?;
    let case = Case { board, at };
    match *record {
        Record::Fork { child, .. } => case.fork(child),
        Record::Exit { cpu, task } => case.alive(task, Some(cpu)),
        Record::Wakeup { task, target, .. } => case.alive(task, Some(target)),
        Record::Migrate { task, to, .. } => case.alive(task, Some(to)),
        Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        } => {
            case.not_in_interrupt(cpu)?;
            case.leaves(cpu, prev, prev_runnable)?;
            match next {
                None => Ok(()),
                // Who goes on after its own switch was running, and here.
                Some(task) if next == prev => case.alive(task, Some(cpu)),
                Some(task) => case.runs(cpu, task),
            }
        }
        Record::InterruptExit { cpu, interrupt } => case.interrupt_ends(cpu, interrupt),
        Record::InterruptEnter { .. }
        | Record::RescheduleSent { .. }
        | Record::Lock { .. }
        | Record::LockBusy { .. }
        | Record::Recalculate { .. } => Ok(()),
    }
}

/// Whether nobody waits at `end` for a CPU that idles, both for longer than `patience`.
pub(super) fn no_wakeup_lost(
    board: &Board,
    end: Instant,
    patience: Duration,
) -> Result<(), Violation> {
    for (task, state) in board.tasks() {
        let State::Runnable { cpu, since } = state else {
            continue;
        };
        let Some(idle_since) = board.idle_since(cpu) else {
            continue;
        };
        let since = since.max(idle_since);
        if end.since(since) > patience {
            let case = Case { board, at: end };
            return case.broken(Some(task), Some(cpu), Breach::LeftWaiting { since });
        }
    }
    Ok(())
}

fn time_never_back(board: &Board, at: Instant) -> Result<(), Violation> {
    if at < board.now {
        return Case { board, at }.broken(None, None, Breach::TimeWentBack { before: board.now });
    }
    Ok(())
}

/// The machine before a record, and the record's time.
struct Case<'a> {
    board: &'a Board,
    at: Instant,
}

impl Case<'_> {
    fn broken(
        &self,
        task: Option<TaskId>,
        cpu: Option<CpuId>,
        breach: Breach,
    ) -> Result<(), Violation> {
        Err(Violation {
            at: self.at,
            record: self.board.records,
            task,
            cpu,
            breach,
        })
    }

    fn fork(&self, child: TaskId) -> Result<(), Violation> {
        match self.board.state(child) {
            State::Unknown => Ok(()),
            _ => self.broken(Some(child), None, Breach::ForkedAgain),
        }
    }

    fn alive(&self, task: TaskId, cpu: Option<CpuId>) -> Result<(), Violation> {
        match self.board.state(task) {
            State::Unknown if !self.board.is_whole() => Ok(()),
            State::Unknown | State::Gone => self.broken(Some(task), cpu, Breach::NotAlive),
            State::Asleep | State::Runnable { .. } | State::Running(_) => Ok(()),
        }
    }

    fn leaves(&self, cpu: CpuId, prev: Option<TaskId>, runnable: bool) -> Result<(), Violation> {
        if let Some(running) = self.board.running(cpu)
            && running != prev
        {
            return self.broken(prev, Some(cpu), Breach::AnotherRan { running });
        }
        let gone = prev.is_some_and(|task| self.board.state(task) == State::Gone);
        if gone && runnable {
            return self.broken(prev, Some(cpu), Breach::RunnableAfterExit);
        }
        Ok(())
    }

    fn runs(&self, cpu: CpuId, task: TaskId) -> Result<(), Violation> {
        self.alive(task, Some(cpu))?;
        match self.board.state(task) {
            State::Running(other) => {
                self.broken(Some(task), Some(cpu), Breach::OnTwoCpus { other })
            }
            State::Asleep => self.broken(Some(task), Some(cpu), Breach::Asleep),
            State::Unknown | State::Runnable { .. } | State::Gone => Ok(()),
        }
    }

    fn not_in_interrupt(&self, cpu: CpuId) -> Result<(), Violation> {
        match self.board.open(cpu) {
            None => Ok(()),
            Some(open) => self.broken(None, Some(cpu), Breach::SwitchInInterrupt { open }),
        }
    }

    fn interrupt_ends(&self, cpu: CpuId, interrupt: Interrupt) -> Result<(), Violation> {
        let open = self.board.open(cpu);
        let from_before = open.is_none() && self.board.may_be_in_unknown_interrupt(cpu);
        if open == Some(interrupt) || from_before {
            return Ok(());
        }
        self.broken(None, Some(cpu), Breach::NotInInterrupt { open })
    }
}
