//! Tasks' `struct task_struct` in guest memory: what the lab knows of a task, and when that is
//! written.

use warmq_bpf_run::{Access, Ending};
use warmq_classes::{Rank, TaskClass};
use warmq_kernel::{Mm, Policy, group_weight_of_nice};
use warmq_units::TaskId;

use crate::here::ns;
use crate::masks;
use crate::state::{Here, Task};
use crate::words::{SLICE_DEFAULT, flags, policy, state};

/// The weight of SCHED_IDLE on the scale of `cpu.weight`: 3 of 1,024 (`WEIGHT_IDLEPRIO`), at least
/// 1 (`sched_weight_to_cgroup()`).
const WEIGHT_OF_IDLE: u64 = 1;

/// Nice 0 (`DEFAULT_PRIO`).
const PRIO_OF_NICE_0: i64 = 120;

/// The first process id that tasks of a run have. Those below are the kernel's.
const FIRST_PID: u64 = 1_000;

/// The process id of a task.
pub(crate) fn pid_of(task: TaskId) -> u64 {
    FIRST_PID + task.index() as u64
}

impl Here<'_, '_> {
    /// Makes the objects of a new task.
    pub(crate) fn make_task(&mut self, task: TaskId, parent: Option<TaskId>) -> Result<(), Ending> {
        let layouts = self.state.layouts;
        let fields = layouts.task;
        let address = self.guest.allocate(fields.size)?;
        if self.state.tasks.len() <= task.index() {
            self.state.tasks.resize(task.index() + 1, Task::default());
        }
        let mut class = TaskClass::default();
        class.set_policy(self.view(task).policy());
        *self.state.task_mut(task) = Task {
            address,
            cpu: self.view(task).last_cpu(),
            class,
            ..Task::default()
        };
        self.state.by_address.insert(address, task);
        let view = self.view(task);
        let (kernel_thread, mm) = (view.is_kernel_thread(), view.mm());
        let parent = parent.map_or(address, |parent| self.state.task(parent).address);
        let guest = &mut *self.guest;
        fields.pid.set(guest, address, pid_of(task));
        fields
            .cpus_ptr
            .set(guest, address, fields.cpus_mask.within(address));
        fields.real_parent.set(guest, address, parent);
        fields.slice.set(guest, address, SLICE_DEFAULT);
        let kind = if kernel_thread { flags::KTHREAD } else { 0 };
        fields.flags.set(guest, address, kind);
        self.join_process(task, mm)?;
        let (now, cred) = (ns(self.now()), self.state.cred);
        fields.cred.set(self.guest, address, cred);
        fields.start_time.set(self.guest, address, now);
        self.set_direct(task, None);
        self.write_comm(task);
        self.write_affinity(task);
        self.write_weight(task);
        let cpu = self.state.task(task).cpu;
        self.set_cpu(task, cpu);
        Ok(())
    }

    /// A task is a thread of the process of those that have the same address space; of its own, if
    /// it has none. Whether it has one is all that can be seen of that.
    fn join_process(&mut self, task: TaskId, mm: Option<Mm>) -> Result<(), Ending> {
        let layouts = self.state.layouts;
        let fields = layouts.task;
        let leader = mm.map_or(task, |mm| *self.state.leaders.entry(mm).or_insert(task));
        let (address, first) = (
            self.state.task(task).address,
            self.state.task(leader).address,
        );
        let signal = match leader == task {
            true => self.guest.allocate(layouts.signal.size)?,
            false => fields.signal.get(self.guest, first),
        };
        let guest = &mut *self.guest;
        let threads = layouts.signal.threads.get(guest, signal);
        layouts.signal.threads.set(guest, signal, threads + 1);
        fields.signal.set(guest, address, signal);
        fields.tgid.set(guest, address, pid_of(leader));
        fields.group_leader.set(guest, address, first);
        fields.mm.set(guest, address, mm.map_or(0, |_| signal));
        Ok(())
    }

    /// A task has exited. If it was the first of its process, the next task of that address space
    /// begins another one; what others share stays.
    pub(crate) fn leave_process(&mut self, task: TaskId) {
        let layouts = self.state.layouts;
        let address = self.state.task(task).address;
        let signal = layouts.task.signal.get(self.guest, address);
        let threads = layouts.signal.threads.get(self.guest, signal);
        layouts
            .signal
            .threads
            .set(self.guest, signal, threads.saturating_sub(1));
        self.state.leaders.retain(|_, leader| *leader != task);
        if threads == 1 {
            self.guest.free(signal, layouts.signal.size);
        }
    }

    fn write_comm(&mut self, task: TaskId) {
        let comm = self.view(task).comm().to_string();
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        fields.comm.set_text(self.guest, address, &comm);
    }

    /// The CPUs that a task may run on.
    pub(crate) fn write_affinity(&mut self, task: TaskId) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let allowed = self.view(task).allowed().cloned();
        let count = allowed
            .as_ref()
            .map_or(usize::from(self.context.cpus()), warmq_units::CpuSet::len);
        masks::write(
            self.guest,
            fields.cpus_mask.within(address),
            allowed.as_ref(),
        );
        fields
            .nr_cpus_allowed
            .set(self.guest, address, count as u64);
    }

    /// The weight of a task, and what it follows from; whether the weight changed.
    pub(crate) fn write_weight(&mut self, task: TaskId) -> bool {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let view = self.view(task);
        let (nice, class) = (view.nice(), view.policy());
        let (number, weight) = match class {
            Policy::Other => (policy::NORMAL, u64::from(group_weight_of_nice(nice))),
            Policy::Batch => (policy::BATCH, u64::from(group_weight_of_nice(nice))),
            Policy::Idle => (policy::IDLE, WEIGHT_OF_IDLE),
            Policy::Fifo(_) => (policy::FIFO, u64::from(group_weight_of_nice(-20))),
            Policy::RoundRobin(_) => (policy::ROUND_ROBIN, u64::from(group_weight_of_nice(-20))),
            Policy::Deadline(_) => (policy::DEADLINE, u64::from(group_weight_of_nice(-20))),
        };
        let static_prio = PRIO_OF_NICE_0 + i64::from(nice);
        let prio = match self.state.rank(task) {
            Rank::Deadline(_) => -1,
            Rank::RealTime(priority) => priority.into(),
            Rank::Other => static_prio,
        };
        let guest = &mut *self.guest;
        fields.policy.set(guest, address, number);
        fields.prio.set(guest, address, prio as u64);
        fields.static_prio.set(guest, address, static_prio as u64);
        fields.weight.set(guest, address, weight);
        std::mem::replace(&mut self.state.task_mut(task).weight, weight) != weight
    }

    /// Whether a task runs, and whether it sleeps.
    pub(crate) fn write_state(&mut self, task: TaskId) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let view = self.view(task);
        let runs = view.on_cpu().is_some();
        let known = self.state.task(task);
        let number = match (view.is_runnable(), view.has_exited()) {
            (true, _) => state::RUNNING,
            (_, true) => state::DEAD,
            _ if known.blocked => state::UNINTERRUPTIBLE,
            _ => state::INTERRUPTIBLE,
        };
        let exiting = view.has_exited();
        fields.state.set(self.guest, address, number);
        fields.on_cpu.set(self.guest, address, runs.into());
        if exiting {
            let old = fields.flags.get(self.guest, address);
            fields.flags.set(self.guest, address, old | flags::EXITING);
        }
    }

    /// Whether a task is on a run queue (`SCX_TASK_QUEUED` of `scx.flags`), and whether it is to
    /// run at once.
    pub(crate) fn write_queued(&mut self, task: TaskId) {
        let (fields, state) = (self.state.layouts.task, self.state.task(task));
        let (address, cpu, queued) = (state.address, state.cpu, state.queued);
        let before = fields.scx_flags.get(self.guest, address) & 1 != 0;
        if before != queued {
            self.count_runnable(cpu, queued);
        }
        self.write_flags(task);
        self.access(fields.scx_flags.within(address), 4, Access::Store);
    }

    /// `scx.flags`, whose line has been paid for.
    pub(crate) fn write_flags(&mut self, task: TaskId) {
        let (enq, state) = (self.state.enq, self.state.task(task));
        let immediate = enq.task_immediate * u64::from(state.immediate);
        let custody = enq.custody * u64::from(state.custody);
        let flags = u64::from(state.queued) | immediate | custody;
        let field = self.state.layouts.task.scx_flags;
        field.set(self.guest, state.address, flags);
    }

    pub(crate) fn count_sleep(&mut self, task: TaskId) {
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let sleeps = fields.nvcsw.get(self.guest, address);
        fields.nvcsw.set(self.guest, address, sleeps + 1);
    }

    /// What a task has waited for, of which the wait ends now (`sched_info_arrive()`).
    pub(crate) fn count_wait(&mut self, task: TaskId) {
        let Some(since) = self.state.task_mut(task).waits_since.take() else {
            return;
        };
        let waited = self.now().since(since).as_ns();
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        let (all, count) = (
            fields.run_delay.get(self.guest, address),
            fields.pcount.get(self.guest, address),
        );
        fields.run_delay.set(self.guest, address, all + waited);
        fields.pcount.set(self.guest, address, count + 1);
        fields.last_queued.set(self.guest, address, 0);
    }

    /// A task waits from now on, unless it does already.
    pub(crate) fn begin_wait(&mut self, task: TaskId) {
        let now = self.now();
        let state = self.state.task_mut(task);
        if state.waits_since.is_none() {
            state.waits_since = Some(now);
            let address = state.address;
            let fields = self.state.layouts.task;
            fields.last_queued.set(self.guest, address, ns(now));
        }
    }
}
