//! Groups without queues of their own in virtual time: P. Zijlstra's "Flatten the pick", version 3
//! of June 2026 (message 20260605124052.227463677, commit 85570f10a4c6 of 7.3).
//!
//! Only tasks compete, all in the queue of their CPU. A group keeps its queue on each CPU, its
//! entity there and the weights and averages of both, as before, but virtual time is no matter of
//! theirs: the weight of a task in it is the product of the parts that its entity and those above
//! it are of their queues ([`State::refresh_flat_weight`]). That is brought up to date when the
//! task is queued, is picked and is found running by a tick; of a task that waits it is what it
//! was. V stays where it is.
//!
//! So no group owes or is owed time, none is anybody's buddy or has a slice, and what a wakeup
//! compares are tasks.

use crate::fair::tree::EntityId;

use super::queueing::Leaving;
use super::state::State;

impl State {
    /// A task is counted in all queues above it, and competes in that of the CPU
    /// (`enqueue_task_fair()`).
    pub(super) fn enqueue_flat(&mut self, task: EntityId, is_new: bool) {
        let runs = self.is_current(task);
        if runs {
            self.place(task, is_new);
        }
        self.charge(self.entities[task].queue);
        let mut next = Some(task);
        while let Some(entity) = next {
            self.update_load(entity, true);
            self.update_shares(entity);
            if !self.entities[entity].queued {
                self.count_in(entity);
            }
            next = self.parent(entity);
        }
        if !runs {
            self.begin_flat_weight(task);
            self.place(task, is_new);
        }
        self.join(task);
    }

    /// A task, and all groups above it that have no other, are no longer counted; or it is delayed
    /// (`__dequeue_task()`).
    pub(super) fn dequeue_flat(&mut self, task: EntityId, leaving: Leaving) {
        self.clear_buddies(task);
        self.charge(self.entities[task].queue);
        if self.is_delayed_by(task, leaving) {
            return;
        }
        let lag = self.lag_on_leaving(task, leaving);
        self.leave(task);
        let (mut next, mut leaves, mut how) = (Some(task), true, leaving);
        while let Some(entity) = next {
            match leaves {
                true => self.leave_load(entity, how),
                false => self.update_load(entity, true),
            }
            if leaves {
                self.count_out(entity);
            }
            self.update_shares(entity);
            let queue = self.entities[entity].queue;
            leaves &= self.queues[queue].weight == 0;
            how = Leaving::AtOnce;
            next = self.queues[queue].owner;
        }
        self.has_left(task, lag, leaving);
    }
}
