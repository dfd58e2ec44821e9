//! What was recorded of a task, played again.
//!
//! A recorded time is all CPU time that the task took, with its system calls, wakeups and switches.
//! The steps of a row cost what they cost here; what they took is left out of the next computation.
//! So the task takes as much CPU time as it was seen to take, whatever its steps cost.

use warmq_scenario::program::{self, Do, Which};
use warmq_scenario::{Moment, TaskKindId};
use warmq_units::{Duration, Instant};

use super::inbox::inbox_of;
use super::player::{Left, Player};

/// How far a task is.
#[derive(Default)]
pub(super) struct Row {
    /// The CPU time that it should have had by now; none before its first moment.
    due: Option<Duration>,
    /// When it woke last, or should have, from a sleep until a time.
    expired: Option<Instant>,
}

impl Player {
    /// Does what is before the first part, then parts, as the messages come that begin them.
    pub(super) async fn row(&mut self, row: &program::Row) -> Result<(), Left> {
        self.moments(&row.moments[row.parts.before()], row).await?;
        let mut order = row.parts.order();
        while let Some(step) = order.step() {
            let Some(step) = &row.steps[step as usize] else {
                return Ok(());
            };
            self.act(step).await?;
            let sender = inbox_of(step).and_then(|inbox| self.sender_of(inbox));
            self.moments(&row.moments[order.next(sender)], row).await?;
        }
        Ok(())
    }

    async fn moments(&mut self, moments: &[Moment], row: &program::Row) -> Result<(), Left> {
        for moment in moments {
            match *moment {
                Moment::Run(span) => self.run_for(span).await,
                Moment::Sleep(span) => self.task.sleep(span).await,
                Moment::Until(span) => self.sleep_until(span).await,
                Moment::Step(step) => {
                    if let Some(step) = &row.steps[step as usize] {
                        self.signs(step);
                        self.act(step).await?;
                    }
                }
                // What begins a part is done before its moments.
                Moment::Part { .. } => {}
            }
        }
        Ok(())
    }

    /// Whoever takes what `step` sends knows that this task sent it.
    fn signs(&self, step: &Do) {
        if let Do::Raise(to) | Do::Send(to, ..) = step
            && let Ok(place) = self.place(to)
        {
            self.stage.inboxes.sent((to.table(), place), self.kind);
        }
    }

    /// Who sent the message that was taken out of `inbox`.
    fn sender_of(&self, inbox: &Which) -> Option<TaskKindId> {
        let place = self.place(inbox).ok()?;
        self.stage.inboxes.taken((inbox.table(), place))
    }

    async fn run_for(&mut self, span: Duration) {
        let ran = self.task.ran().await;
        let due = self.row.due.unwrap_or(ran) + span;
        self.row.due = Some(due);
        if due > ran {
            self.task.compute_for(due - ran).await;
        }
    }

    async fn sleep_until(&mut self, span: Duration) {
        let expires = self.row.expired.unwrap_or(self.began) + span;
        self.row.expired = Some(expires);
        let now = self.task.now().await;
        if expires > now {
            self.task.sleep(expires - now).await;
        }
    }
}
