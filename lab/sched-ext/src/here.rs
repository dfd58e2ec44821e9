//! What the kernel's part of sched_ext does with tasks and queues.

use warmq_bpf_run::Access;
use warmq_kernel::View;
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::queue::{Dsq, Queue};
use crate::state::{Dispatched, Held, Here, Insert};
use crate::words::{SLICE_DEFAULT, SLICE_ENDLESS, dsq};

/// For how long the machine has been up when a run begins, in ns: programs take a point in time of
/// 0, as memory has it at first, for one long ago.
const UP: u64 = 100_000_000_000;

/// A point in time as programs have it, in ns.
pub(crate) fn ns(at: Instant) -> u64 {
    UP + at.since(Instant::START).as_ns()
}

/// The same, the other way round; one before the run is its beginning.
pub(crate) fn at_ns(ns: u64) -> Instant {
    Instant::START + Duration::from_ns(ns.saturating_sub(UP))
}

impl Here<'_, '_> {
    /// The CPU waits for `size` bytes of guest memory at `address`.
    pub(crate) fn access(&mut self, address: u64, size: u32, access: Access) {
        self.state.lines.access(self.context, address, size, access);
    }

    pub(crate) fn view(&self, task: TaskId) -> View<'_> {
        self.context.task(task)
    }

    /// The program is ejected for a reason, of which the first counts.
    pub(crate) fn eject(&mut self, why: String) {
        self.state.ejected.get_or_insert(why);
    }

    pub(crate) fn now(&self) -> Instant {
        self.context.now()
    }

    pub(crate) fn slice(&self, task: TaskId) -> u64 {
        let fields = &self.state.layouts.task;
        fields.slice.get(self.guest, self.state.task(task).address)
    }

    pub(crate) fn set_slice(&mut self, task: TaskId, slice: u64) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        fields.slice.set(self.guest, address, slice);
        self.access(fields.slice.within(address), 8, Access::Store);
    }

    /// Charges what runs on this CPU for what it has run (`update_curr_scx()`).
    pub(crate) fn update_current(&mut self, cpu: CpuId) {
        let now = self.now();
        let here = self.state.cpu_mut(cpu);
        // The clock of a run queue counts whole ns.
        let ran = ns(now).saturating_sub(ns(here.exec_start));
        here.exec_start = here.exec_start.max(now);
        let Some(task) = self.state.runs(cpu) else {
            return;
        };
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let all = fields.sum_exec_runtime.get(self.guest, address) + ran;
        fields.sum_exec_runtime.set(self.guest, address, all);
        fields.utime.set(self.guest, address, all);
        if self.state.is_urgent(task) {
            return self.charge_urgent(task, cpu, ran);
        }
        self.charge_server(cpu, ran);
        let slice = self.slice(task);
        if ran > 0 && slice != SLICE_ENDLESS {
            self.set_slice(task, slice.saturating_sub(ran));
        }
    }

    /// The queue that a number names, as it is seen from `cpu`: no global one.
    pub(crate) fn named_queue(&self, id: u64, cpu: CpuId) -> Option<Dsq> {
        if id == dsq::LOCAL {
            return Some(Dsq::Local(cpu));
        }
        if let Some(to) = dsq::on_cpu(id) {
            let there = to < u64::from(self.context.cpus());
            return there.then_some(Dsq::Local(CpuId(to as u16)));
        }
        self.state.users.contains_key(&id).then_some(Dsq::User(id))
    }

    /// The queue that a number names for a task on `cpu`; ejects the program if there is none, and
    /// takes the global one.
    pub(crate) fn find_queue(&mut self, id: u64, cpu: CpuId) -> Dsq {
        if id != dsq::GLOBAL {
            if let Some(named) = self.named_queue(id, cpu) {
                return named;
            }
            self.eject(match dsq::on_cpu(id) {
                Some(to) => format!("invalid CPU {to} in SCX_DSQ_LOCAL_ON dispatch verdict"),
                None => format!("non-existent DSQ {id:#x}"),
            });
        }
        Dsq::Global(self.node_of(cpu))
    }

    pub(crate) fn node_of(&self, cpu: CpuId) -> u16 {
        self.state.cpu(cpu).node
    }

    /// Inserts a task that is in no queue (`scx_dispatch_enqueue()`), and its slice and vtime.
    pub(crate) fn insert(&mut self, task: TaskId, to: Dsq, how: Insert) {
        let state = self.state.task_mut(task);
        debug_assert!(state.on.is_none(), "{task} is in a queue");
        state.held = Held::Kernel;
        self.apply(task, how);
        let enq = self.state.enq;
        let builtin = !matches!(to, Dsq::User(_));
        if builtin && how.vtime.is_some() {
            self.eject("cannot use vtime ordering for built-in DSQs".to_owned());
        }
        let vtime = how.vtime.filter(|_| !builtin);
        let Some(queue) = self.state.queue_mut(to) else {
            return;
        };
        if !queue.tasks.is_empty() && queue.by_vtime != vtime.is_some() {
            let had = if queue.by_vtime { "PRIQ" } else { "FIFO" };
            let name = self.name(to);
            self.eject(format!("DSQ ID {name} already had {had}-enqueued tasks"));
            return;
        }
        queue.by_vtime = vtime.is_some();
        let head = how.flags & (enq.head | enq.preempt) != 0;
        let place = queue.place(vtime, head);
        queue.tasks.insert(place, task);
        let (lines, length) = (queue.address, queue.len());
        self.state.task_mut(task).on = Some((to, place));
        self.touch_queue(lines, length, task, vtime.is_some());
        if let Dsq::Local(cpu) = to {
            self.note_immediate(task, cpu, how.flags);
        }
        let notified = enq.custody != 0;
        if self.set_custody(task, notified && !builtin) && notified && builtin {
            self.note_left(task);
        }
        if let Dsq::Local(cpu) = to {
            self.inserted_locally(cpu, how.flags);
        }
    }

    /// A task has left the program for a queue of the kernel's, which its dequeue follows: at once,
    /// or as soon as the execution can.
    fn note_left(&mut self, task: TaskId) {
        if self.state.interleaved {
            return self.state.own.left.push(task);
        }
        self.write_state(task);
        let args = [self.state.task(task).address, 0];
        self.call(self.code.callbacks.dequeue, &args);
    }

    /// Whether the program is to be notified when a task leaves it, and whether it was.
    pub(crate) fn set_custody(&mut self, task: TaskId, custody: bool) -> bool {
        let before = std::mem::replace(&mut self.state.task_mut(task).custody, custody);
        self.write_flags(task);
        before
    }

    /// Where a task is inserted when the callback has returned; what was said before.
    pub(crate) fn set_direct(&mut self, task: TaskId, how: Option<Insert>) -> Option<Insert> {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let (to, flags) = how.map_or((dsq::INVALID, 0), |how| (how.dsq, how.flags));
        fields.direct_dsq.set(self.guest, address, to);
        fields.direct_flags.set(self.guest, address, flags);
        std::mem::replace(&mut self.state.task_mut(task).direct, how)
    }

    /// What a task gets with its place in a queue (`apply_slice_vtime()`).
    fn apply(&mut self, task: TaskId, how: Insert) {
        let slice = match how.slice {
            0 => self.slice(task).max(1),
            slice => slice,
        };
        self.set_slice(task, slice);
        if let Some(vtime) = how.vtime {
            self.set_vtime(task, vtime);
        }
    }

    pub(crate) fn set_vtime(&mut self, task: TaskId, vtime: u64) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        fields.dsq_vtime.set(self.guest, address, vtime);
        self.access(fields.dsq_vtime.within(address), 8, Access::Store);
    }

    fn name(&self, queue: Dsq) -> String {
        match queue {
            Dsq::User(id) => format!("{id:#018x}"),
            Dsq::Local(cpu) => format!("of {cpu}"),
            Dsq::Global(node) => format!("of node {node}"),
        }
    }

    /// Lines that joining or leaving a queue writes: its head with the lock, the task's links and
    /// those of its neighbour. A tree of vtimes is walked, too.
    fn touch_queue(&mut self, queue: u64, length: u64, task: TaskId, tree: bool) {
        let links = self.state.layouts.task.dsq;
        self.access(queue, 8, Access::Atomic);
        let own = links.within(self.state.task(task).address);
        self.access(own, 64, Access::Store);
        if length < 2 {
            return;
        }
        // Which ones they are makes no difference: each has a line of its own.
        let steps = if tree { length.ilog2().max(1) } else { 1 };
        let place = self.state.task(task).on;
        let Some((dsq, place)) = place else { return };
        let near = self.state.queue(dsq).map(|queue| {
            let before = queue.tasks.range(..place).rev().take(steps as usize);
            let after = queue.tasks.range(place..).skip(1).take(1);
            before
                .chain(after)
                .map(|(_, task)| *task)
                .collect::<Vec<_>>()
        });
        for task in near.unwrap_or_default().into_iter().take(steps as usize) {
            let links = links.within(self.state.task(task).address);
            self.access(links, 8, Access::Load);
        }
    }

    /// A task came into the own queue of `cpu` (`rq_owned_post_enq()`).
    fn inserted_locally(&mut self, cpu: CpuId, flags: u64) {
        if self.context.running_on(cpu).is_none() && self.state.own.picking != Some(cpu) {
            self.context.reschedule(cpu);
            return;
        }
        if self.state.own.picking != Some(cpu) && flags & self.state.enq.preempt != 0 {
            self.end_slice(cpu);
        }
    }

    /// Who runs on `cpu` loses its slice, and the CPU picks again.
    pub(crate) fn end_slice(&mut self, cpu: CpuId) {
        if let Some(current) = self.state.cpu(cpu).current {
            self.set_slice(current, 0);
        }
        self.context.reschedule(cpu);
    }

    /// A task that has a part of its slice left runs next on its CPU.
    pub(crate) fn keep_first(&mut self, task: TaskId, cpu: CpuId) {
        let how = Insert::local(0, self.state.enq.head);
        self.insert(task, Dsq::Local(cpu), how);
    }

    /// Takes the task that `cpu` runs next out of its queue.
    pub(crate) fn take(&mut self, task: TaskId, cpu: CpuId) {
        if self.slice(task) == 0 {
            self.refill(task);
        }
        self.unlink(task);
        self.state.task_mut(task).repeats = 0;
        self.set_cpu(task, cpu);
    }

    /// `cpu` idles no longer. Returns true if the program was notified that it does
    /// (`ops.update_idle`).
    pub(crate) fn end_idle(&mut self, cpu: CpuId) -> bool {
        let was_idle = std::mem::take(&mut self.state.cpu_mut(cpu).known_idle);
        if was_idle {
            self.note_idle(cpu, false);
        }
        was_idle
    }

    /// Takes a task out of the queue that it is in, if it is in one (`scx_dispatch_dequeue()`).
    pub(crate) fn unlink(&mut self, task: TaskId) {
        let Some((from, place)) = self.state.task(task).on else {
            return;
        };
        let known = |queue: &Queue| (queue.address, queue.len(), queue.by_vtime);
        let (lines, length, tree) = self.state.queue(from).map(known).unwrap_or_default();
        self.touch_queue(lines, length, task, tree);
        if let Some(queue) = self.state.queue_mut(from) {
            queue.tasks.remove(&place);
        }
        self.state.task_mut(task).on = None;
    }

    /// Whether a task that waits can be run by `cpu`. One that still leaves another CPU cannot yet:
    /// it is remembered who wanted it.
    pub(crate) fn may_take(&mut self, task: TaskId, cpu: CpuId) -> bool {
        let view = self.view(task);
        let elsewhere = view.on_cpu().is_some_and(|there| there != cpu);
        let may = view.may_run_on(cpu);
        if elsewhere && may && !self.state.leaving.contains(&(task, cpu)) {
            self.state.leaving.push((task, cpu));
        }
        may && !elsewhere
    }

    /// A waiting task goes to the run queue of `cpu` (`move_remote_task_to_local_dsq()`), whose
    /// lock is taken beside that of its own.
    pub(crate) fn move_to_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let from = self.state.task(task).cpu;
        if from == cpu {
            return;
        }
        for other in [from, cpu] {
            if other != self.context.cpu() {
                let word = self.state.cpu(other).word;
                self.context.touch(word, warmq_machine::Access::Write);
            }
        }
        self.set_cpu(task, cpu);
        self.context.migrated(task, cpu);
    }

    /// From now on a task is on the run queue of `cpu`.
    pub(crate) fn set_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let before = std::mem::replace(&mut self.state.task_mut(task).cpu, cpu);
        if before != cpu && self.state.watches_migrations {
            self.state.migrated.push((task, cpu));
        }
        if before != cpu && self.state.task(task).queued {
            self.count_runnable(before, false);
            self.count_runnable(cpu, true);
        }
        fields.cpu.set(self.guest, address, cpu.0.into());
    }

    /// Moves the first task of a queue that `cpu` can run to its own (`scx_consume_dispatch_q()`).
    pub(crate) fn consume(&mut self, from: Dsq, cpu: CpuId, flags: u64) -> bool {
        let Some(lines) = self.state.queue(from).map(|queue| queue.address) else {
            return false;
        };
        self.access(lines, 8, Access::Load);
        let mut after = None;
        while let Some((place, task)) = self.next_in(from, after) {
            after = Some(place);
            if self.may_take(task, cpu) {
                self.unlink(task);
                self.move_to_cpu(task, cpu);
                let how = Insert::local(0, flags);
                self.insert(task, Dsq::Local(cpu), how);
                return true;
            }
        }
        false
    }

    fn next_in(&self, queue: Dsq, after: Option<(i64, i64)>) -> Option<((i64, i64), TaskId)> {
        let tasks = &self.state.queue(queue)?.tasks;
        let next = match after {
            None => tasks.iter().next(),
            Some(after) => tasks
                .range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
                .next(),
        };
        next.map(|(place, task)| (*place, *task))
    }

    /// A task that the program was to insert goes where it said (`direct_dispatch()`,
    /// `dispatch_to_local_dsq()`).
    pub(crate) fn place(&mut self, task: TaskId, how: Insert) {
        let cpu = self.state.task(task).cpu;
        let mut to = self.find_queue(how.dsq, cpu);
        if let Dsq::Local(target) = to
            && target != cpu
        {
            // Of a CPU that is offline the program may not know yet.
            let allowed = self.view(task).allowed();
            if allowed.is_some_and(|allowed| !allowed.contains(target)) {
                let text = format!("SCX_DSQ_LOCAL[_ON] cannot move {task} from {cpu} to {target}");
                self.eject(text);
            }
            if self.view(task).may_run_on(target) {
                self.move_to_cpu(task, target);
            } else {
                self.state.counts.offline += 1;
                to = Dsq::Global(self.node_of(cpu));
            }
        }
        self.insert(task, to, how);
    }

    /// What `ops.dispatch` has inserted so far takes effect (`scx_flush_dispatch_buf()`).
    pub(crate) fn flush(&mut self, picking: CpuId) {
        while let Some(dispatched) = self.next_dispatched(picking) {
            self.finish_dispatch(dispatched);
        }
    }

    /// The first of what `ops.dispatch` has inserted, which takes effect now.
    pub(crate) fn next_dispatched(&mut self, picking: CpuId) -> Option<Dispatched> {
        let own = &mut self.state.own;
        let (task, sequence, how) = (!own.batch.is_empty()).then(|| own.batch.remove(0))?;
        own.dispatched += 1;
        // SCX_DSQ_LOCAL is the queue of who dispatches, not of the task's CPU.
        let dsq = match how.dsq {
            dsq::LOCAL => dsq::LOCAL_ON | u64::from(picking.0),
            dsq => dsq,
        };
        Some((task, sequence, Insert { dsq, ..how }))
    }

    /// A task goes where `ops.dispatch` said, if it is still the program's (`finish_dispatch()`).
    pub(crate) fn finish_dispatch(&mut self, (task, sequence, how): Dispatched) {
        let state = self.state.task(task);
        if state.held == Held::Program && state.sequence == sequence && state.address != 0 {
            self.place(task, how);
        }
    }

    /// Gives a task the default slice (`refill_task_slice_dfl()`).
    pub(crate) fn refill(&mut self, task: TaskId) {
        self.state.counts.refill += 1;
        self.set_slice(task, SLICE_DEFAULT);
    }
}
