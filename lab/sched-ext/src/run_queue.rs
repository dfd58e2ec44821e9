//! A task's way through a run queue, with the callbacks in the order of kernel/sched/ext/ext.c.

use std::collections::BTreeMap;

use warmq_bpf::KernelTable;
use warmq_bpf_run::Guest;
use warmq_kernel::{Context, Pick};
use warmq_units::{CpuId, TaskId};

use crate::call::Code;
use crate::masks;
use crate::queue::Dsq;
use crate::state::{During, Held, Here, Insert, State};
use crate::tracing::AtEvents;
use crate::words::{MOST_DISPATCHES, SLICE_DEFAULT, deq, dsq, ops};

/// Declares the callbacks that are called, by their names in `struct sched_ext_ops`.
macro_rules! callbacks {
    ($($field:ident: $name:literal,)*) => {
        /// The functions of an object's callbacks (`struct sched_ext_ops`).
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Callbacks {
            $(pub(crate) $field: Option<u32>,)*
        }

        impl Callbacks {
            /// Names of all.
            pub(crate) const NAMES: &[&str] = &[$($name,)*];

            /// Those that a kernel knows.
            pub(crate) fn of(named: &BTreeMap<String, u32>, kernel: &KernelTable) -> Callbacks {
                let known = |name| kernel.field("sched_ext_ops", name).is_some();
                let of = |name| named.get(name).copied().filter(|_| known(name));
                Callbacks {
                    $($field: of($name),)*
                }
            }
        }
    };
}

callbacks! {
    select_cpu: "select_cpu",
    enqueue: "enqueue",
    dequeue: "dequeue",
    dispatch: "dispatch",
    tick: "tick",
    runnable: "runnable",
    running: "running",
    stopping: "stopping",
    quiescent: "quiescent",
    yields: "yield",
    set_weight: "set_weight",
    set_cpumask: "set_cpumask",
    update_idle: "update_idle",
    init_task: "init_task",
    exit_task: "exit_task",
    enable: "enable",
    disable: "disable",
    cgroup_init: "cgroup_init",
    cgroup_move: "cgroup_move",
    cgroup_set_weight: "cgroup_set_weight",
    cgroup_set_idle: "cgroup_set_idle",
    cgroup_set_bandwidth: "cgroup_set_bandwidth",
    cpu_offline: "cpu_offline",
    cpu_online: "cpu_online",
    cpu_release: "cpu_release",
    cpu_acquire: "cpu_acquire",
    init: "init",
}

/// The program and its memory beside the kernel's state.
pub(crate) struct Machine {
    pub(crate) code: Code,
    pub(crate) guest: Guest,
    pub(crate) state: State,
    pub(crate) callbacks: Callbacks,
    pub(crate) events: AtEvents,
}

/// What a pick found (`enum scx_dsp_verdict`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Who runs goes on.
    Previous,
    /// The first of the own queue, if it has one.
    Local,
}

impl Machine {
    pub(crate) fn here<'a, 'k>(&'a mut self, context: &'a mut Context<'k>) -> Here<'a, 'k> {
        Here {
            state: &mut self.state,
            guest: &mut self.guest,
            context,
        }
    }

    /// Writes words to where a pointer in `place` says.
    pub(crate) fn write_words(&mut self, place: &[u8], words: &[u64]) {
        let bytes = place.first_chunk().copied();
        let begins = u64::from_le_bytes(bytes.unwrap_or_default());
        for (at, word) in (0..).zip(words) {
            // What cannot be written there was not allocated: the next program says so.
            let _ = self.guest.store(begins + 8 * at, 8, *word);
        }
    }

    pub(crate) fn call(
        &mut self,
        context: &mut Context<'_>,
        function: Option<u32>,
        during: During,
        args: &[u64],
    ) -> Option<u64> {
        function?;
        let code = self.code.clone();
        self.here(context).call(&code, function, during, args)
    }

    /// Calls a function with a task as its first argument.
    fn call_task(
        &mut self,
        context: &mut Context<'_>,
        function: Option<u32>,
        task: TaskId,
        more: &[u64],
    ) -> Option<u64> {
        function?;
        self.here(context).write_state(task);
        let mut args = vec![self.state.task(task).address];
        args.extend(more);
        self.call(context, function, During::Other, &args)
    }

    /// A task joins the run queue of `cpu` (`enqueue_task_scx()`).
    pub(crate) fn enqueue(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        cpu: CpuId,
        flags: u64,
    ) {
        self.here(context).join_run_queue(task, cpu);
        self.call_task(context, self.callbacks.runnable, task, &[flags]);
        self.give(context, task, flags);
    }

    /// Gives a runnable task to the program, unless it goes elsewhere (`scx_do_enqueue_task()`).
    pub(crate) fn give(&mut self, context: &mut Context<'_>, task: TaskId, flags: u64) {
        let cpu = self.state.task(task).cpu;
        self.here(context).set_immediate(task, false);
        let again = flags & self.state.enq.reenqueued != 0;
        if again && self.here(context).repeats_too_often(task) {
            return;
        }
        if !context.is_online(cpu) || self.state.ejected.is_some() {
            return self.insert_default(context, task, Dsq::Local(cpu), flags);
        }
        if self.state.task(task).direct.is_none() {
            let exits = context.task(task).has_exited();
            if exits && self.state.flags & ops::ENQ_EXITING == 0 {
                self.state.counts.skip_exiting += 1;
                return self.insert_default(context, task, Dsq::Local(cpu), flags);
            }
            if self.callbacks.enqueue.is_none() {
                let node = self.state.cpu(cpu).node;
                return self.insert_default(context, task, Dsq::Global(node), flags);
            }
            self.ask_where(context, task, flags);
        }
        match self.here(context).set_direct(task, None) {
            Some(how) => {
                let flags = how.flags | flags;
                self.here(context).place(task, Insert { flags, ..how });
            }
            None if self.state.ejected.is_some() => {
                self.insert_default(context, task, Dsq::Local(cpu), flags);
            }
            None => {}
        }
    }

    /// The same of a task that the kernel has moved to another run queue: a CPU that idles picks
    /// again, as at a wakeup (`move_queued_task()`).
    pub(crate) fn give_moved(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.give(context, task, 0);
        let cpu = self.state.task(task).cpu;
        if context.running_on(cpu).is_none() {
            context.reschedule(cpu);
        }
    }

    fn ask_where(&mut self, context: &mut Context<'_>, task: TaskId, flags: u64) {
        let state = self.state.task_mut(task);
        state.sequence += 1;
        state.held = Held::Program;
        let (function, args) = (self.callbacks.enqueue, [state.address, flags]);
        self.here(context).write_state(task);
        self.call(context, function, During::Placing(task), &args);
    }

    /// A task goes where the kernel puts it, with the default slice.
    pub(crate) fn insert_default(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        to: Dsq,
        flags: u64,
    ) {
        self.here(context).set_direct(task, None);
        self.state.counts.refill += 1;
        let how = Insert {
            dsq: dsq::LOCAL,
            slice: SLICE_DEFAULT,
            vtime: None,
            flags,
        };
        self.here(context).insert(task, to, how);
    }

    /// A task leaves its run queue (`dequeue_task_scx()`).
    pub(crate) fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId, flags: u64) {
        if !self.state.task(task).queued {
            return;
        }
        let held = std::mem::take(&mut self.state.task_mut(task).held);
        let in_custody =
            held == Held::Program || matches!(self.state.task(task).on, Some((Dsq::User(_), _)));
        if in_custody {
            self.call_task(context, self.callbacks.dequeue, task, &[flags]);
        }
        let cpu = self.state.task(task).cpu;
        if self.state.cpu(cpu).current == Some(task) {
            let mut here = self.here(context);
            here.update_current(cpu);
            here.count_switch(cpu);
            self.call_task(context, self.callbacks.stopping, task, &[0]);
        }
        self.call_task(context, self.callbacks.quiescent, task, &[flags]);
        self.here(context).leave_run_queue(task, flags);
    }

    /// Runs `change` on a task that is on no run queue meanwhile, as the kernel changes attributes.
    pub(crate) fn change(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        change: impl FnOnce(&mut Machine, &mut Context<'_>),
    ) {
        let cpu = self.state.task(task).cpu;
        let (queued, runs) = (
            self.state.task(task).queued,
            self.state.cpu(cpu).current == Some(task),
        );
        if queued {
            self.dequeue(context, task, deq::CHANGE);
        }
        change(self, context);
        if !queued {
            return;
        }
        if !runs {
            let to = match context.task(task).may_run_on(cpu) {
                true => cpu,
                false => context.task(task).last_cpu(),
            };
            self.enqueue(context, task, to, self.state.enq.restore);
            if to != cpu && context.running_on(to).is_none() {
                context.reschedule(to);
            }
            return;
        }
        self.goes_on(context, task);
    }

    /// A task that has changed goes on where it ran, through the own queue of its CPU.
    pub(crate) fn goes_on(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.state.task_mut(task).queued = true;
        self.here(context).write_queued(task, true);
        let flags = self.state.enq.restore;
        self.call_task(context, self.callbacks.runnable, task, &[flags]);
        self.call_task(context, self.callbacks.running, task, &[]);
    }

    /// The next task of sched_ext of this CPU (`pick_task_scx()`, `put_prev_task_scx()`,
    /// `set_next_task_scx()`); `urgent` runs if there is none.
    pub(crate) fn pick(
        &mut self,
        context: &mut Context<'_>,
        previous: Option<TaskId>,
        urgent: Option<TaskId>,
    ) -> Pick {
        let cpu = context.cpu();
        context.compute(self.state.costs.pick);
        self.note_online(context, cpu);
        self.here(context).begin_pick(cpu);
        let previous = previous.filter(|task| self.state.task(*task).queued);
        let stays = previous.filter(|task| context.task(*task).may_run_on(cpu));
        self.state.picking = Some(cpu);
        let ran = self.state.cpu(cpu).current.is_some();
        if let Some(task) = previous.filter(|_| stays.is_none()) {
            self.move_away(context, cpu, task);
        }
        self.state.finding = Some(cpu);
        let verdict = self.find(context, cpu, stays);
        self.here(context).settle_immediate(cpu);
        self.state.finding = None;
        let next = match (verdict, stays) {
            (Verdict::Previous, Some(task)) => {
                self.state.picking = None;
                return self.go_on(context, task);
            }
            _ => self.first_local(context, cpu),
        };
        if let Some(task) = stays {
            self.put_back(context, cpu, task, next);
        }
        self.state.picking = None;
        self.state.cpu_mut(cpu).current = None;
        match (next, urgent) {
            (Some(task), _) => self.set_next(context, cpu, task),
            (None, Some(task)) => {
                self.stop_server(cpu);
                self.run_urgent(context, cpu, task)
            }
            (None, None) => {
                self.idle(context, cpu, ran);
                Pick::Idle
            }
        }
    }

    /// A CPU that picks is online, also if it was not.
    fn note_online(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        if masks::contains(&self.guest, self.state.online, cpu) {
            return;
        }
        masks::put(&mut self.guest, self.state.online, cpu, true);
        let variables = self.state.variables;
        variables.write_online(&mut self.guest, cpu, true);
        self.hotplug(context, self.callbacks.cpu_online, cpu);
    }

    fn go_on(&mut self, context: &mut Context<'_>, task: TaskId) -> Pick {
        let mut here = self.here(context);
        if here.slice(task) == 0 {
            here.refill(task);
        }
        here.send_kicks();
        Pick::Task(task)
    }

    /// Finds something to run (`dispatch_one()`).
    pub(crate) fn find(
        &mut self,
        context: &mut Context<'_>,
        cpu: CpuId,
        previous: Option<TaskId>,
    ) -> Verdict {
        self.acquire(context, cpu);
        let mut here = self.here(context);
        here.update_current(cpu);
        if previous.is_some_and(|task| here.slice(task) > 0) {
            return Verdict::Previous;
        }
        if self.first_local(context, cpu).is_some() {
            return Verdict::Local;
        }
        let node = self.state.cpu(cpu).node;
        if self.here(context).consume(Dsq::Global(node), cpu, 0) {
            return Verdict::Local;
        }
        if let Some(found) = self.dispatch(context, cpu, previous) {
            return found;
        }
        match previous {
            Some(_) if self.state.flags & ops::ENQ_LAST == 0 => {
                self.state.counts.keep_last += 1;
                Verdict::Previous
            }
            _ => Verdict::Local,
        }
    }

    /// Asks the program again and again (`scx_dispatch_sched()`).
    fn dispatch(
        &mut self,
        context: &mut Context<'_>,
        cpu: CpuId,
        previous: Option<TaskId>,
    ) -> Option<Verdict> {
        let function = self.callbacks.dispatch?;
        if !context.is_online(cpu) {
            return None;
        }
        for _ in 0..MOST_DISPATCHES {
            self.state.dispatched = 0;
            let address = previous.map_or(0, |task| self.state.task(task).address);
            let args = [u64::from(cpu.0), address];
            self.call(context, Some(function), During::Dispatch, &args)?;
            let mut here = self.here(context);
            here.flush(cpu);
            if previous.is_some_and(|task| here.slice(task) > 0) {
                return Some(Verdict::Previous);
            }
            if self.first_local(context, cpu).is_some() {
                return Some(Verdict::Local);
            }
            let node = self.state.cpu(cpu).node;
            if self.here(context).consume(Dsq::Global(node), cpu, 0) {
                return Some(Verdict::Local);
            }
            if self.state.dispatched == 0 {
                return None;
            }
        }
        // It goes on after what is to be done meanwhile.
        self.state.kicks.push((cpu, 0));
        None
    }

    /// The first task of the own queue of a CPU that can run there now.
    pub(crate) fn first_local(&mut self, context: &mut Context<'_>, cpu: CpuId) -> Option<TaskId> {
        let tasks: Vec<TaskId> = self.state.cpu(cpu).local.tasks.values().copied().collect();
        let mut here = self.here(context);
        tasks.into_iter().find(|task| here.may_take(*task, cpu))
    }

    fn stop(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) {
        self.here(context).update_current(cpu);
        self.call_task(context, self.callbacks.stopping, task, &[1]);
        self.here(context).begin_wait(task);
    }

    /// Who ran may not go on here: the migration thread takes the CPU from it, and it to another,
    /// before this one asks the program for a task (`migration_cpu_stop()`).
    pub(crate) fn move_away(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) {
        self.stop(context, cpu, task);
        self.state.cpu_mut(cpu).current = None;
        self.here(context).count_switch(cpu);
        let mut cpus = (0..context.cpus()).map(CpuId);
        let to = cpus.find(|cpu| context.task(task).may_run_on(*cpu));
        self.here(context).set_cpu(task, to.unwrap_or(cpu));
        self.give_moved(context, task);
    }

    /// Who ran and still could goes back to the program (`put_prev_task_scx()`).
    pub(crate) fn put_back(
        &mut self,
        context: &mut Context<'_>,
        cpu: CpuId,
        task: TaskId,
        next: Option<TaskId>,
    ) {
        self.stop(context, cpu, task);
        let flags = if next.is_none() {
            self.state.enq.last
        } else {
            0
        };
        match (
            self.here(context).slice(task) > 0,
            self.state.task(task).immediate,
        ) {
            (true, true) => self.give(context, task, self.state.enq.reenqueued),
            (true, false) => self.here(context).keep_first(task, cpu),
            (false, _) => self.give(context, task, flags),
        }
        if next.is_none()
            && self
                .state
                .task(task)
                .on
                .is_some_and(|(on, _)| on == Dsq::Local(cpu))
        {
            self.state.kicks.push((cpu, 0));
        }
    }

    fn set_next(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) -> Pick {
        let now = context.now();
        self.here(context).take(task, cpu);
        self.leave_idle(context, cpu);
        let state = self.state.cpu_mut(cpu);
        state.current = Some(task);
        state.exec_start = now;
        self.here(context).count_wait(task);
        self.call_task(context, self.callbacks.running, task, &[]);
        self.here(context).send_kicks();
        Pick::Task(task)
    }

    /// The CPU idles no longer (`put_prev_task_idle()`).
    pub(crate) fn leave_idle(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        if self.here(context).end_idle(cpu) {
            let update = self.callbacks.update_idle;
            self.call(context, update, During::Other, &[cpu.0.into(), 0]);
        }
    }

    /// The CPU has nothing to run (`scx_update_idle()`): the masks say so again each time, and the
    /// program hears when that begins.
    fn idle(&mut self, context: &mut Context<'_>, cpu: CpuId, begins: bool) {
        if !self.here(context).idles_already(cpu) || begins {
            let update = self.callbacks.update_idle;
            self.call(context, update, During::Other, &[cpu.0.into(), 1]);
        }
        self.here(context).send_kicks();
    }
}

impl Here<'_, '_> {
    /// A task is on the run queue of `cpu` from now on.
    pub(crate) fn join_run_queue(&mut self, task: TaskId, cpu: CpuId) {
        self.set_cpu(task, cpu);
        self.state.task_mut(task).queued = true;
        self.begin_wait(task);
        self.write_queued(task, true);
    }

    /// A task is on no run queue from now on, and in none of its queues.
    pub(crate) fn leave_run_queue(&mut self, task: TaskId, flags: u64) {
        self.unlink(task);
        self.set_direct(task, None);
        let sleeps = flags & deq::SLEEP != 0;
        let state = self.state.task_mut(task);
        state.queued = false;
        if sleeps {
            state.waits_since = None;
        }
        self.write_queued(task, false);
        if sleeps {
            self.count_sleep(task);
        }
    }

    /// A CPU idles; whether the program knows that.
    pub(crate) fn idles_already(&mut self, cpu: CpuId) -> bool {
        self.note_idle(cpu, true);
        std::mem::replace(&mut self.state.cpu_mut(cpu).known_idle, true)
    }
}
