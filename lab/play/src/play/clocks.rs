//! Steps that look at the clock, and what a task sets of itself.

use std::cell::Cell;
use std::collections::BTreeMap;

use warmq_scenario::{Amount, ObjectId, Reference, Set};
use warmq_units::{Duration, Instant};

use super::objects::Made;
use super::player::{Left, Player};
use super::specs::{NO_CPU, nice_of, policy};

/// How long a task that waits for the time to pass computes before it reads the clock.
const PIECE: Duration = Duration::from_us(32);

/// The timers of one table.
pub(super) struct Timers {
    /// When each expired last; none: each task has timers of its own.
    pub(super) shared: Option<Vec<Cell<Option<Instant>>>>,
    /// Whether a task that comes too late leaves the timer as it is.
    pub(super) absolute: bool,
}

/// When a task's own timers expired last, by table and number.
pub(super) type OwnTimers = BTreeMap<(ObjectId, usize), Instant>;

impl Player {
    /// Computes until `span` has passed.
    pub(super) async fn spin(&mut self, span: &Amount) -> Result<(), Left> {
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
    pub(super) async fn wait_for(
        &mut self,
        timer: &Reference,
        period: &Amount,
    ) -> Result<(), Left> {
        let (number, period) = (self.number(timer)?, Duration(self.draw(period)?));
        let last = self.last_expiry(timer, number);
        let next = last.unwrap_or(self.began) + period;
        let now = self.task.now().await;
        // A shared timer is moved before this task sleeps: the next user waits one period longer.
        let late = now >= next;
        let restarted = late && !self.timers_of(timer).absolute;
        self.set_expiry(timer, number, if restarted { now } else { next });
        if !late {
            self.task.sleep(next - now).await;
        }
        Ok(())
    }

    fn timers_of(&self, timer: &Reference) -> &Timers {
        match self.stage.made(timer) {
            Made::Timers(timers) => timers,
            _ => unreachable!("the reader resolves timers to timers"),
        }
    }

    fn last_expiry(&self, timer: &Reference, number: usize) -> Option<Instant> {
        match &self.timers_of(timer).shared {
            Some(shared) => shared[number].get(),
            None => self.timers.get(&(timer.object, number)).copied(),
        }
    }

    fn set_expiry(&mut self, timer: &Reference, number: usize, at: Instant) {
        match &self.timers_of(timer).shared {
            Some(shared) => shared[number].set(Some(at)),
            None => {
                self.timers.insert((timer.object, number), at);
            }
        }
    }

    /// Sets the task's own CPUs, policy, slice or group.
    pub(super) async fn set_own(&mut self, set: &Set) -> Result<(), Left> {
        let (stage, id) = (self.stage.clone(), self.task.id());
        match set {
            Set::Cpus(place) => {
                let cpus = stage.machine.cpus_of(&stage.bound, place, &self.indexes)?;
                if cpus.is_empty() {
                    self.task.give_up(&format!("is now {NO_CPU}")).await;
                }
                self.task.set_affinity(id, cpus.iter()).await;
            }
            Set::Policy(wanted) => self.task.set_policy(id, policy(wanted)).await,
            Set::Slice(slice) => {
                let slice = Duration(self.eval(slice)?);
                self.task.set_slice(id, Some(slice)).await;
            }
            Set::Group(group) => {
                let number = self.number(group)?;
                if let Made::Groups(groups) = stage.made(group) {
                    self.task.set_group(id, groups[number]).await;
                }
            }
            Set::Nice(nice) => {
                let nice = nice_of(stage.bound.eval_signed(nice, &self.indexes)?);
                self.task.set_nice(id, nice).await;
            }
            _ => unreachable!("the reader lets a task set nothing else of itself"),
        }
        Ok(())
    }
}
