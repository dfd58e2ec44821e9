//! What was recorded of a task, played again.
//!
//! A recorded time is all CPU time that the task took, with its system calls, wakeups and switches.
//! The steps of a row cost what they cost here; what they took is left out of the next computation. So
//! the task takes as much CPU time as it was seen to take, whatever its steps cost.

use warmq_scenario::{Action, Moment, Reference, TaskKindId};
use warmq_units::{Duration, Instant};

use super::inbox::{Parts, inbox_of};
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
    /// Does `moments`, which name `actions`; none of these is one that the settings leave out. What is
    /// before the first part is done first, then parts, as the messages come that begin them.
    pub(super) async fn row(
        &mut self,
        moments: &[Moment],
        parts: &Parts,
        actions: &[Option<Action>],
    ) -> Result<(), Left> {
        self.moments(&moments[parts.before()], actions).await?;
        let mut order = parts.order();
        while let Some(step) = order.step() {
            let Some(action) = &actions[step as usize] else {
                return Ok(());
            };
            self.act(action).await?;
            let sender = inbox_of(action).and_then(|inbox| self.sender_of(inbox));
            self.moments(&moments[order.next(sender)], actions).await?;
        }
        Ok(())
    }

    async fn moments(
        &mut self,
        moments: &[Moment],
        actions: &[Option<Action>],
    ) -> Result<(), Left> {
        for moment in moments {
            match *moment {
                Moment::Run(span) => self.run_for(span).await,
                Moment::Sleep(span) => self.task.sleep(span).await,
                Moment::Until(span) => self.sleep_until(span).await,
                Moment::Step(step) => {
                    if let Some(action) = &actions[step as usize] {
                        self.signs(action);
                        self.act(action).await?;
                    }
                }
                Moment::Part { .. } => unreachable!("parts are between these"),
            }
        }
        Ok(())
    }

    /// Whoever takes what `action` sends knows that this task sent it.
    fn signs(&self, action: &Action) {
        if let Action::Raise(to) | Action::Send { to, .. } = action
            && let Ok(number) = self.number(to)
        {
            self.stage.inboxes.sent((to.object, number), self.kind);
        }
    }

    /// Who sent the message that was taken out of `inbox`.
    fn sender_of(&self, inbox: &Reference) -> Option<TaskKindId> {
        let number = self.number(inbox).ok()?;
        self.stage.inboxes.taken((inbox.object, number))
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
