//! A task's way onto a run queue and off it, with the callbacks in the order of
//! kernel/sched/ext/ext.c.

use std::collections::BTreeMap;

use warmq_bpf::KernelTable;
use warmq_bpf_run::Guest;
use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::call::Code;
use crate::execution::{Execution, Lock};
use crate::kfuncs;
use crate::queue::Dsq;
use crate::state::{During, Held, Here, Insert, State, Task};
use crate::tracing::AtEvents;
use crate::words::{SLICE_DEFAULT, deq, ops};

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
    pub(crate) events: AtEvents,
}

/// What becomes of a task that is runnable.
enum Goes {
    /// It went back to the program too often.
    Nowhere,
    /// The kernel puts it there, and does not ask the program.
    To(Dsq),
    /// Where `ops.select_cpu` said.
    AsSaid,
    /// `ops.enqueue` is called with these arguments.
    Asked([u64; 2]),
}

impl Machine {
    pub(crate) fn here<'a, 'k>(&'a mut self, context: &'a mut Context<'k>) -> Here<'a, 'k> {
        Here {
            code: &self.code,
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

    /// Runs a program of kind syscall, which may change its argument. Returns what that returns,
    /// if it has not been ejected; `None` if it is not there.
    pub(crate) fn call_syscall(
        &mut self,
        context: &mut Context<'_>,
        program: &str,
        argument: &mut [u8],
    ) -> Option<Option<i32>> {
        let function = self.code.program.image().program(program)?.function;
        let size = argument.len() as u64;
        let there = self.guest.allocate(size).ok()?;
        if let Some(bytes) = self.guest.bytes_mut(there, size) {
            bytes.copy_from_slice(argument);
        }
        let returned = self.here(context).call_syscall(function, there);
        if let Some(bytes) = self.guest.bytes(there, size) {
            argument.copy_from_slice(bytes);
        }
        self.guest.free(there, size);
        Some(returned.map(|value| value as i32))
    }

    /// A task is to be given to the program (`scx_do_enqueue_task()`).
    fn goes(&mut self, context: &mut Context<'_>, task: TaskId, flags: u64) -> Goes {
        let again = flags & self.state.enq.reenqueued != 0;
        let mut here = self.here(context);
        here.set_immediate(task, false);
        if again && here.repeats_too_often(task) {
            return Goes::Nowhere;
        }
        let state = self.state.task(task);
        let (cpu, exits) = (state.cpu, context.task(task).has_exited());
        if !context.is_online(cpu) || self.state.ejected.is_some() {
            return Goes::To(Dsq::Local(cpu));
        }
        if state.direct.is_some() {
            return Goes::AsSaid;
        }
        if exits && self.state.flags & ops::ENQ_EXITING == 0 {
            self.state.counts.skip_exiting += 1;
            return Goes::To(Dsq::Local(cpu));
        }
        if self.code.callbacks.enqueue.is_none() {
            return Goes::To(Dsq::Global(self.state.cpu(cpu).node));
        }
        let state = self.state.task_mut(task);
        state.sequence += 1;
        state.held = Held::Program;
        let args = [state.address, flags];
        self.here(context).write_state(task);
        Goes::Asked(args)
    }

    /// A task goes where the kernel puts it, with the default slice.
    fn insert_default(&mut self, context: &mut Context<'_>, task: TaskId, to: Dsq, flags: u64) {
        self.here(context).set_direct(task, None);
        self.state.counts.refill += 1;
        let how = Insert::local(SLICE_DEFAULT, flags);
        self.here(context).insert(task, to, how);
    }

    /// The CPU that `ops.select_cpu` has chosen, if it is one, and where the task goes.
    fn selected(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        previous: CpuId,
        chosen: Option<u64>,
    ) -> CpuId {
        let there = chosen.map(|cpu| cpu as i32);
        let Some(cpu) = there.filter(|cpu| (0..i32::from(context.cpus())).contains(cpu)) else {
            if let Some(cpu) = there {
                let text = format!("invalid CPU {cpu} from ops.select_cpu()");
                self.here(context).eject(text);
            }
            return self.allowed_near(context, task, previous);
        };
        let cpu = CpuId(cpu as u16);
        let (selected, address) = (
            self.state.layouts.task.selected_cpu,
            self.state.task(task).address,
        );
        selected.set(&mut self.guest, address, cpu.0.into());
        let goes_to = self.allowed_near(context, task, cpu);
        self.state.counts.fallback += u64::from(goes_to != cpu);
        goes_to
    }
}

/// What a task was before it changes.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    pub(crate) queued: bool,
    pub(crate) cpu: CpuId,
    pub(crate) runs: bool,
}

impl State {
    pub(crate) fn before(&self, task: TaskId) -> Before {
        let Task { queued, cpu, .. } = *self.task(task);
        let runs = self.cpu(cpu).current == Some(task);
        Before { queued, cpu, runs }
    }
}

/// Tasks come onto run queues, and leave them.
pub(crate) trait RunQueue: Execution {
    /// `select_task_rq()`, and `select_task_rq_scx()` for tasks that have a choice; under the
    /// task's lock.
    async fn select(&mut self, task: TaskId, wakes: u64) -> CpuId {
        let (previous, choices) = self.with(|_, at| {
            let (view, all) = (at.task(task), usize::from(at.cpus()));
            let allowed = view.allowed().map_or(all, warmq_units::CpuSet::len);
            (view.last_cpu(), allowed)
        });
        if choices == 1 {
            return self.with(|machine, at| machine.allowed_near(at, task, previous));
        }
        self.with(|machine, _| machine.state.task_mut(task).cpu_selected = true);
        let Some(function) = self.callbacks().select_cpu else {
            return self.with(|machine, at| {
                let mut here = machine.here(at);
                let found = kfuncs::select_without_program(&mut here, task, previous, wakes);
                machine.allowed_near(at, task, found)
            });
        };
        let address = self.here(|here| {
            here.write_state(task);
            here.state.task(task).address
        });
        let args = [address, u64::from(previous.0), wakes];
        let chosen = self
            .call(Some(function), During::Placing(task), &args)
            .await;
        self.with(|machine, at| machine.selected(at, task, previous, chosen))
    }

    /// A task that becomes runnable joins the run queue of the CPU that was selected.
    async fn activate(&mut self, task: TaskId, cpu: CpuId, flags: u64) {
        let selected = self.with(|machine, _| {
            let selected = std::mem::take(&mut machine.state.task_mut(task).cpu_selected);
            u64::from(selected) * machine.state.enq.cpu_selected
        });
        self.enqueue(task, cpu, flags | selected).await;
    }

    /// A task joins the run queue of `cpu` (`enqueue_task_scx()`), under that one's lock.
    async fn enqueue(&mut self, task: TaskId, cpu: CpuId, flags: u64) {
        self.here(|here| here.join_run_queue(task, cpu));
        let runnable = self.callbacks().runnable;
        self.call_task(runnable, task, &[flags]).await;
        self.give(task, flags).await;
    }

    /// Gives a runnable task to the program, unless it goes elsewhere (`scx_do_enqueue_task()`).
    async fn give(&mut self, task: TaskId, flags: u64) {
        let handover = [Lock::Handover(task)];
        let placed = match self.with(|machine, at| machine.goes(at, task, flags)) {
            Goes::Nowhere => return,
            Goes::To(queue) => {
                self.with(|machine, at| machine.insert_default(at, task, queue, flags));
                true
            }
            Goes::AsSaid => self.place(task, flags),
            Goes::Asked(args) => {
                self.lock(&handover).await;
                let enqueue = self.callbacks().enqueue;
                self.call(enqueue, During::Placing(task), &args).await;
                self.place(task, flags)
            }
        };
        if !placed {
            self.with(|machine, at| {
                let state = machine.state.task(task);
                if machine.state.ejected.is_some() && state.on.is_none() {
                    return machine.insert_default(at, task, Dsq::Local(state.cpu), flags);
                }
                machine.here(at).set_custody(task, true);
            });
        }
        self.unlock(&handover);
        self.notify_left().await;
    }

    /// A CPU that idles picks again whenever a task comes onto its run queue.
    fn reschedule_if_idle(&mut self, cpu: CpuId) {
        self.with(|_, at| {
            if at.running_on(cpu).is_none() {
                at.reschedule(cpu);
            }
        });
    }

    /// A task is the program's no longer, if it was (`ops_dequeue()`). Returns the flags with
    /// which it is dequeued.
    async fn leave_program(&mut self, task: TaskId, flags: u64) -> u64 {
        let handover = [Lock::Handover(task)];
        self.lock(&handover).await;
        self.unlock(&handover);
        let (leaves, flags) = self.here(|here| {
            here.state.task_mut(task).held = Held::Kernel;
            let change = here.state.enq.change * u64::from(flags & deq::SLEEP == 0);
            (here.set_custody(task, false), flags | change)
        });
        if leaves {
            let dequeue = self.callbacks().dequeue;
            self.call_task(dequeue, task, &[flags]).await;
        }
        flags
    }

    /// A task leaves its run queue (`dequeue_task_scx()`), under that one's lock.
    async fn dequeue(&mut self, task: TaskId, flags: u64) {
        let before = self.with(|machine, _| machine.state.before(task));
        if !before.queued {
            return;
        }
        let flags = self.leave_program(task, flags).await;
        let callbacks = self.callbacks();
        if before.runs {
            self.here(|here| {
                here.update_current(before.cpu);
                here.count_switch(before.cpu);
            });
            self.call_task(callbacks.stopping, task, &[0]).await;
        }
        self.call_task(callbacks.quiescent, task, &[flags]).await;
        self.here(|here| here.leave_run_queue(task, flags));
    }

    /// A task that is about to exit is dequeued and enqueued once more while it runs
    /// (`sched_autogroup_exit_task()`).
    async fn leave_autogroup(&mut self, task: TaskId) {
        self.change(task, async |_| {}).await;
    }

    /// Runs `change` on a task that is on no run queue meanwhile, as the kernel changes attributes
    /// (`sched_change_begin()`, `sched_change_end()`).
    async fn change(&mut self, task: TaskId, change: impl AsyncFnOnce(&mut Self)) {
        let before = self.with(|machine, _| machine.state.before(task));
        if before.queued {
            self.dequeue(task, deq::SAVE).await;
        }
        change(self).await;
        match (before.queued, before.runs) {
            (false, _) => {}
            (true, true) => self.goes_on(task).await,
            (true, false) => {
                let restore = self.with(|machine, _| machine.state.enq.restore);
                self.enqueue(task, before.cpu, restore).await;
            }
        }
    }

    /// A task that has changed goes on where it ran, through the own queue of its CPU.
    async fn goes_on(&mut self, task: TaskId) {
        let flags = self.here(|here| {
            here.state.task_mut(task).queued = true;
            here.write_queued(task);
            here.state.enq.restore
        });
        let callbacks = self.callbacks();
        self.call_task(callbacks.runnable, task, &[flags]).await;
        self.call_task(callbacks.running, task, &[]).await;
    }

    /// Takes the lock of a task, and that of its run queue (`task_rq_lock()`).
    async fn lock_task(&mut self, task: TaskId) -> [Lock; 2] {
        self.lock(&[Lock::Task(task)]).await;
        loop {
            let cpu = self.with(|machine, _| machine.state.task(task).cpu);
            let lock = Lock::RunQueue(cpu);
            self.lock(&[lock]).await;
            if self.with(|machine, _| machine.state.task(task).cpu) == cpu {
                return [lock, Lock::Task(task)];
            }
            self.unlock(&[lock]);
        }
    }

    /// A task that waits goes to a CPU where it may run (`move_queued_task()`): it is runnable all
    /// the time. Its locks are given back.
    async fn migrate(&mut self, task: TaskId, [run_queue, pi]: [Lock; 2]) {
        let flags = self.leave_program(task, 0).await;
        let to = self.with(|machine, at| {
            let to = machine.allowed_near(at, task, at.task(task).last_cpu());
            let mut here = machine.here(at);
            here.leave_run_queue(task, flags);
            here.set_cpu(task, to);
            to
        });
        self.unlock(&[run_queue]);
        let lock = [Lock::RunQueue(to)];
        self.lock(&lock).await;
        self.here(|here| here.join_run_queue(task, to));
        self.give(task, 0).await;
        self.reschedule_if_idle(to);
        self.unlock(&lock);
        self.unlock(&[pi]);
    }

    /// The same, if it waits where it may not run.
    async fn migrate_if_lost(&mut self, task: TaskId, locks: [Lock; 2]) {
        let lost = self.with(|machine, at| {
            let now = machine.state.before(task);
            now.queued && !now.runs && !at.task(task).may_run_on(now.cpu)
        });
        match lost {
            true => self.migrate(task, locks).await,
            false => self.unlock(&locks),
        }
    }

    /// Tasks go back to the program (`run_deferred()`), until no queue is to be looked through.
    async fn reenqueue(&mut self) {
        while let Some(again) = self.with(|machine, _| {
            let known = &mut machine.state.own.again;
            (!known.is_empty()).then(|| known.remove(0))
        }) {
            let lock = match again.queue {
                Dsq::Local(cpu) => Some(Lock::RunQueue(cpu)),
                _ => None,
            };
            self.lock(lock.as_slice()).await;
            let (tasks, flags) =
                self.here(|here| (here.take_back(again), here.state.enq.reenqueued));
            for task in tasks {
                self.give(task, flags).await;
            }
            self.unlock(lock.as_slice());
            self.place_deferred().await;
        }
    }
}

impl<E: Execution> RunQueue for E {}

impl Here<'_, '_> {
    /// A task is on the run queue of `cpu` from now on.
    pub(crate) fn join_run_queue(&mut self, task: TaskId, cpu: CpuId) {
        self.set_cpu(task, cpu);
        self.state.task_mut(task).queued = true;
        self.begin_wait(task);
        self.write_queued(task);
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
        self.write_queued(task);
        if sleeps {
            self.count_sleep(task);
        }
    }
}
