//! Steps that look at the clock, and what a task sets of itself.

use warmq_scenario::Set;
use warmq_scenario::program::{Draws, Timer, To};
use warmq_units::{Duration, Instant};

use super::changes::of_task;
use super::player::{Left, Player};
use super::specs::NO_CPU;

/// How long a task that waits for the time to pass computes before it reads the clock.
const PIECE: Duration = Duration::from_us(32);

impl Player {
    /// Computes until `span` has passed.
    pub(super) async fn spin(&mut self, span: &Draws) -> Result<(), Left> {
        let span = Duration(self.draw(span)?);
        let end = self.task.now().await + span;
        loop {
            let now = self.task.now().await;
            if now >= end {
                return Ok(());
            }
            self.task.compute_for(PIECE.min(end - now)).await;
        }
    }

    /// Sleeps until `timer` expires.
    pub(super) async fn wait_for(&mut self, timer: &Timer) -> Result<(), Left> {
        let (place, period) = (self.place(&timer.timer)?, self.draw(&timer.period)?);
        let shared = timer.own.is_none();
        let last = match shared {
            true => self.stage.objects.timers[place].get(),
            false => self.timers.get(&place).copied(),
        };
        let next = last.unwrap_or(self.began) + Duration(period);
        self.due = next;
        let now = self.task.now().await;
        // A shared timer is moved before this task sleeps: the next user waits one period longer.
        let late = now >= next;
        let restarted = late && !timer.absolute;
        self.expires(place, shared, if restarted { now } else { next });
        if !late {
            self.task.sleep(next - now).await;
        }
        Ok(())
    }

    fn expires(&mut self, place: usize, shared: bool, at: Instant) {
        match shared {
            true => self.stage.objects.timers[place].set(Some(at)),
            false => _ = self.timers.insert(place, at),
        }
    }

    /// Sets something of the task itself.
    pub(super) async fn set_own(&mut self, set: &Set) -> Result<(), Left> {
        let (stage, id) = (self.stage.clone(), self.task.id());
        let to = stage.bound.to(set, &stage.cpus, &self.loops.indexes)?;
        if matches!(&to, To::Cpus(cpus) if cpus.is_empty()) {
            self.task.give_up(&format!("is now {NO_CPU}")).await;
        }
        if let Some(change) = of_task(&to, id, &stage) {
            self.task.change(change).await;
        }
        Ok(())
    }
}
