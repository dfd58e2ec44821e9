//! Steps that look at the clock, and what a task sets of itself.

use warmq_scenario::program::{Draws, Own, Timer};
use warmq_units::{Duration, Instant};

use super::player::{Left, Player};
use super::specs::{NO_CPU, nice_of, policy};

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
    pub(super) async fn set_own(&mut self, own: &Own) -> Result<(), Left> {
        let (stage, id) = (self.stage.clone(), self.task.id());
        let (bound, indexes) = (&stage.bound, &self.loops.indexes);
        match own {
            Own::Cpus(place) => {
                let cpus = stage.machine.cpus_of(bound, place, indexes)?;
                if cpus.is_empty() {
                    self.task.give_up(&format!("is now {NO_CPU}")).await;
                }
                self.task.set_affinity(id, cpus.iter()).await;
            }
            Own::Policy(wanted) => self.task.set_policy(id, policy(wanted)).await,
            Own::Slice(slice) => {
                let slice = Duration(self.get(slice)?);
                self.task.set_slice(id, Some(slice)).await;
            }
            Own::Group(group) => {
                let group = stage.objects.groups[self.place(group)?];
                self.task.set_group(id, group).await;
            }
            Own::Nice(nice) => {
                let nice = nice_of(bound.eval_signed(nice, indexes)?);
                self.task.set_nice(id, nice).await;
            }
        }
        Ok(())
    }
}
