//! The deadline server of a CPU's fair tasks: when it is asked, and what it asks for
//! ([`warmq_classes::Server`]).

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use super::deadline::SERVER_TIMER;
use super::effects::Urgency;
use super::state::State;

impl State {
    /// `cpu` has a fair task, and had none (`dl_server_start()`).
    pub(super) fn start_server(&mut self, cpu: CpuId) {
        let there = self.cpu_mut(cpu);
        there.server.start(there.clock);
        if there.server.serves() {
            self.effects.request(cpu, Urgency::Now);
        }
        self.servers.push(cpu);
    }

    /// `cpu` goes offline (`sched_cpu_dying()`).
    pub(super) fn stop_server(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).server.stop();
        self.servers.push(cpu);
    }

    /// A fair task of `cpu` ran for `ran` ns, whether it was served or not (`dl_server_update()`).
    pub(super) fn charge_server(&mut self, cpu: CpuId, ran: i64) {
        let there = self.cpu_mut(cpu);
        if there.server.charge(there.clock, ran) {
            self.effects.request(cpu, Urgency::Now);
        }
        self.servers.push(cpu);
    }

    /// Counts the time that `cpu` idles: it turns from `prev` to `next`.
    pub(super) fn count_idling(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let there = self.cpu_mut(cpu);
        if prev.is_none() {
            there.server.end_idle(there.clock);
        }
        if next.is_none() {
            there.server.begin_idle(there.clock);
        }
        self.servers.push(cpu);
    }

    /// The fair task that runs on `cpu` before all real-time ones, if the server serves, and no
    /// deadline task has an earlier deadline. If there is none, it stops (`__pick_task_dl()`).
    pub(super) fn pick_served(&mut self, cpu: CpuId) -> Option<TaskId> {
        let there = self.cpu(cpu);
        if there.server.rank() >= there.urgent.best() {
            return None;
        }
        let next = self.pick_fair(cpu);
        // What is charged on the way may have used up the runtime; who was found runs, as in the
        // kernel.
        if next.is_none() {
            self.stop_server(cpu);
        }
        next
    }

    /// The timer of the server has expired on `cpu` (`dl_server_timer()`).
    pub(super) fn server_is_due(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).server_timer.expired();
        self.charge_current(cpu);
        let there = self.cpu_mut(cpu);
        there.server.timer(there.clock);
        if there.server.serves() {
            self.effects.request(cpu, Urgency::Now);
        }
        self.servers.push(cpu);
    }

    /// Charges the fair task that runs on `cpu`, level by level (`update_curr_fair()`).
    fn charge_current(&mut self, cpu: CpuId) {
        let current = self.cpu(cpu).current.filter(|task| {
            let state = self.task(*task);
            state.runnable && !state.class.is_urgent()
        });
        let mut next = current.map(|current| self.entity_of(current));
        while let Some(entity) = next {
            self.charge(self.entities[entity].queue);
            next = self.parent(entity);
        }
    }

    /// Arms the timer of the server of `cpu` as that asks for, or cancels it.
    pub(super) fn arm_server(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        let there = self.cpu_mut(cpu);
        let due = there.server.due();
        there.server_timer.set(context, due, (cpu, SERVER_TIMER));
    }
}
