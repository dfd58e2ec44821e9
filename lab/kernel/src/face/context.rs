//! What a scheduler has access to: [`Attach`] before anything runs, [`Context`] inside callbacks.

use warmq_machine::{Access, CpuPlace};
use warmq_trace::Record;
use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Instant, LockId, TaskId};

use crate::core::{
    AccessCounts, Core, Event, NeedResched, Softirq, Statistic, TimerOwner, View, Within,
};
use crate::words::{BusyWait, Costs, Group, GroupId, Mm, Preemption, Rule, Timer, UnknownCost};

/// What a scheduler may ask for when it is attached.
pub struct Attach<'a> {
    core: &'a mut Core,
    costs: &'a Costs,
}

impl<'a> Attach<'a> {
    pub(crate) fn new(core: &'a mut Core, costs: &'a Costs) -> Attach<'a> {
        Attach { core, costs }
    }

    /// How many CPUs the machine has.
    pub fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    /// Where `cpu` sits: its socket, last-level cache and core.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn place(&self, cpu: CpuId) -> CpuPlace {
        self.core.hardware.places[cpu.index()]
    }

    /// The memory node of `cpu`.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn node(&self, cpu: CpuId) -> u16 {
        self.core.hardware.nodes[cpu.index()]
    }

    /// How far the memory nodes of two CPUs are from each other, as in ACPI's SLIT: 10 is the same
    /// node.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn distance(&self, one: CpuId, other: CpuId) -> u64 {
        let (one, other) = (self.node(one), self.node(other));
        self.core.hardware.distances[usize::from(one)][usize::from(other)]
    }

    /// The first of the CPUs that share a level-2 cache with `cpu`.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn cluster(&self, cpu: CpuId) -> CpuId {
        self.core.hardware.clusters[cpu.index()]
    }

    /// How high `cpu` boosts, by any scale: the higher the better (`arch_asym_cpu_priority()`).
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn priority(&self, cpu: CpuId) -> u16 {
        self.core.hardware.priorities[cpu.index()]
    }

    /// How fast `cpu` works as kernels know it, in 1024ths of the fastest
    /// (`arch_scale_cpu_capacity()`).
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        self.core.hardware.capacities[cpu.index()]
    }

    /// Whether somebody wants records in detail, as [`Context::record_detail`] makes them.
    pub fn wants_details(&self) -> bool {
        self.core.recorder.wants_details()
    }

    /// The period of the tick: 1 / HZ.
    pub fn tick(&self) -> Duration {
        self.core.settings.tick
    }

    /// The size of a cache line in bytes.
    pub fn line(&self) -> u64 {
        self.core.memory.line()
    }

    /// Size divided by associativity of the cache of `level` (1 is the innermost): addresses that
    /// differ by a multiple of it share a set. `None` if there is no such level.
    pub fn way_size(&self, level: usize) -> Option<Bytes> {
        let sizes = &self.core.hardware.way_sizes;
        sizes.get(level.checked_sub(1)?).copied().map(Bytes)
    }

    /// Declares a spin lock, which lives in a cache line of its own.
    pub fn lock(&mut self, name: &'static str) -> LockId {
        let address = self.data(Bytes(self.core.memory.line()));
        self.lock_at(name, address)
    }

    /// Declares a spin lock whose word is at `address`, where it may share its line with other
    /// data.
    pub fn lock_at(&mut self, name: &'static str, address: Address) -> LockId {
        self.core.locks.add(name, address)
    }

    /// Compiles Lockmeter into this kernel, whose own accesses to a lock's word lengthen holds.
    pub fn lockmeter(&mut self) {
        self.core.locks.compile_lockmeter();
    }

    /// Allocates kernel data for the scheduler, aligned on a cache line.
    pub fn data(&mut self, bytes: Bytes) -> Address {
        self.core.kernel_data(bytes)
    }

    /// How long `cycles` take on this machine.
    pub fn time_of(&self, cycles: Cycles) -> Duration {
        self.core.hardware.clock.time_of(cycles)
    }

    /// The cost called `name` of this kernel on this machine.
    pub fn cost(&self, name: &str) -> Result<Cycles, UnknownCost> {
        self.costs.get(name)
    }
}

/// What a scheduler sees and may do inside a callback. What it does here takes simulated time.
pub struct Context<'a> {
    core: &'a mut Core,
    cpu: CpuId,
    /// The CPU's own time, ahead of the timeline by what the callback has done so far.
    at: Instant,
    within: Within,
    prefetched: Option<(Address, Instant)>,
    broke: Option<Rule>,
    /// Locks taken by `try_lock` and not yet released.
    locks_kept: u32,
}

impl<'a> Context<'a> {
    pub(crate) fn new(core: &'a mut Core, cpu: CpuId) -> Context<'a> {
        let at = core.now();
        let within = Within::Elsewhere;
        Context {
            core,
            cpu,
            at,
            within,
            prefetched: None,
            broke: None,
            locks_kept: 0,
        }
    }

    /// The callback is over: how long it took, and the rule that it broke, if any.
    pub(crate) fn end(self) -> (Duration, Option<Rule>) {
        let kept = (self.locks_kept > 0).then_some(Rule::KeptLock);
        (self.at - self.core.now(), self.broke.or(kept))
    }

    /// The time on this CPU.
    pub fn now(&self) -> Instant {
        self.at
    }

    /// The CPU on which the callback runs.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// How many CPUs the machine has.
    pub fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    /// What a scheduler may know about `task`.
    ///
    /// # Panics
    /// When there is no such task. Schedulers learn of tasks by their `fork` callback.
    #[inline]
    pub fn task(&self, task: TaskId) -> View<'_> {
        self.core.view(task)
    }

    /// `near`, or the first CPU where `task` may run.
    pub fn allowed_near(&self, task: TaskId, near: CpuId) -> CpuId {
        self.task(task).allowed_near(self.cpus(), near)
    }

    /// The task that runs on `cpu`, from the moment it was picked (`cpu_curr()` of Linux 2.4);
    /// `None` is the idle task.
    pub fn running_on(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.cpus[cpu.index()].chosen
    }

    /// Whether `cpu` was asked to reschedule and has not done so yet.
    pub fn will_reschedule(&self, cpu: CpuId) -> bool {
        self.core.cpus[cpu.index()].need_resched != NeedResched::No
    }

    /// Whether `cpu` was asked to reschedule at once, not lazily, and has not done so yet.
    pub fn must_reschedule(&self, cpu: CpuId) -> bool {
        self.core.cpus[cpu.index()].need_resched == NeedResched::Now
    }

    /// How fast `cpu` works as kernels know it, in 1024ths of the fastest.
    pub fn capacity(&self, cpu: CpuId) -> u64 {
        self.core.hardware.capacities[cpu.index()]
    }

    /// Whether this CPU is in an interrupt that came while it ran user code (`user_mode()` of
    /// `get_irq_regs()`).
    pub fn interrupts_user(&self) -> bool {
        let here = &self.core.cpus[self.cpu.index()];
        here.irq_depth > 0 && here.interrupted_user
    }

    /// Whether this CPU is in a hardware interrupt, and whether it is in a softirq.
    pub fn in_interrupt(&self) -> (bool, bool) {
        let here = &self.core.cpus[self.cpu.index()];
        (here.irq_depth > 0, here.softirq_depth > 0)
    }

    /// The time of the last switch on `cpu`.
    pub fn last_switch(&self, cpu: CpuId) -> Instant {
        self.core.cpus[cpu.index()].last_switch
    }

    /// Works for `cycles`.
    #[inline]
    pub fn compute(&mut self, cycles: Cycles) {
        self.at += self.core.hardware.clock.time_of(cycles);
    }

    /// Works for `span`.
    #[inline]
    pub fn spend(&mut self, span: Duration) {
        self.at += span;
    }

    /// How long `cycles` take on this machine.
    pub fn time_of(&self, cycles: Cycles) -> Duration {
        self.core.hardware.clock.time_of(cycles)
    }

    /// Reads or writes the scheduler's data at `address`, and waits for it.
    #[inline]
    pub fn touch(&mut self, address: Address, access: Access) {
        if let Some((line, ready)) = self.prefetched
            && line.0 / self.core.memory.line() == address.0 / self.core.memory.line()
        {
            self.prefetched = None;
            self.at = self.at.max(ready);
            return;
        }
        self.at += self
            .core
            .memory
            .access(self.cpu, address, access, self.at, self.within);
    }

    /// Reads or writes the scheduler's data at all `addresses`. The accesses must not depend on
    /// each other's results: their misses overlap, as in a program's touch.
    pub fn touch_all(&mut self, addresses: impl IntoIterator<Item = Address>, access: Access) {
        if !self.core.memory.has_caches() {
            return;
        }
        for address in addresses {
            let memory = &mut self.core.memory;
            self.at += memory.access_overlapped(self.cpu, address, access, self.at, self.within);
        }
    }

    /// Requests the line of `address` and does not wait: the next touch of the line waits for what
    /// is left of the transfer.
    pub fn prefetch(&mut self, address: Address) {
        let takes = self
            .core
            .memory
            .access(self.cpu, address, Access::Read, self.at, self.within);
        self.prefetched = Some((address, self.at + takes));
    }

    /// From here on, accesses are counted under `within`.
    pub fn within(&mut self, within: Within) {
        self.within = within;
    }

    /// Allocates kernel data that is never freed, aligned on a cache line.
    pub fn data(&mut self, bytes: Bytes) -> Address {
        self.core.kernel_data(bytes)
    }

    /// Records that `task`, which waits and has no CPU, was moved to the queue of `to`
    /// (`set_task_cpu()`): from now on that is its last CPU. Without it a task counts as moved when
    /// another CPU picks it.
    pub fn migrated(&mut self, task: TaskId, to: CpuId) {
        if self.core.task(task).on_cpu.is_some() || to.index() >= self.core.cpus.len() {
            return;
        }
        self.core.set_queue(task, to);
        if let Some(from) = self.core.task_mut(task).moves_to(to) {
            self.core.record(Record::Migrate { task, from, to });
        }
    }

    /// Whether a group that `task` is in is out of quota on `cpu` (`throttled_hierarchy()`).
    pub fn is_throttled(&self, task: TaskId, cpu: CpuId) -> bool {
        self.core.is_throttled(task, cpu)
    }

    /// Counts one walk over `visits` entries of a run queue.
    pub fn walked(&mut self, visits: u64) {
        self.core.figures.walked(visits);
    }

    /// Records that all time slices are recalculated.
    pub fn recalculated(&mut self) {
        let cpu = self.cpu;
        self.core.record(Record::Recalculate { cpu });
    }

    /// Records a detail that only the scheduler knows.
    pub fn record_detail(&mut self, detail: Record) {
        debug_assert!(detail.is_detail(), "{detail:?}");
        self.core.record_detail(|_| detail);
    }

    /// Makes `cpu` call `pick_next` as soon as the preemption model allows. For another CPU this
    /// sends a reschedule interrupt, unless one is pending already or that CPU polls in idle.
    pub fn reschedule(&mut self, cpu: CpuId) {
        let Some(there) = self.core.cpus.get_mut(cpu.index()) else {
            self.broke = Some(Rule::NoSuchCpu(cpu));
            return;
        };
        let before = std::mem::replace(&mut there.need_resched, NeedResched::Now);
        if cpu == self.cpu || before == NeedResched::Now {
            return;
        }
        if self.core.polls_in_idle(cpu) {
            let notices = self.at + self.core.times.idle_poll;
            self.core.schedule(notices, Event::IdlePoll(cpu));
        } else {
            self.send_interrupt(cpu);
        }
    }

    /// Makes `cpu` call `pick_next` before it returns to user mode, or at its next tick. Without
    /// lazy preemption, or if it is idle, this is [`Context::reschedule`] (`resched_curr_lazy()`).
    pub fn reschedule_lazy(&mut self, cpu: CpuId) {
        let lazy = self.core.settings.preemption == Preemption::Lazy;
        match self.core.cpus.get_mut(cpu.index()) {
            Some(there) if lazy && there.chosen.is_some() => {
                there.need_resched = there.need_resched.max(NeedResched::Lazy);
            }
            _ => self.reschedule(cpu),
        }
    }

    /// Before it goes on, this CPU waits busily for as long as the scheduler's `keeps_waiting` says
    /// so: from the end of the switch on, if it is in `schedule()`, or else as soon as interrupts
    /// may come in. It asks once, and again at [`Context::looks_again`].
    pub fn wait_busily(&mut self, how: BusyWait) {
        self.core.cpu(self.cpu).is_to_wait = Some(how);
    }

    /// If `cpu` waits busily, it looks whether it still has to. (An interrupt that it is in is over
    /// before that, and then it looks anyway.)
    pub fn looks_again(&mut self, cpu: CpuId) {
        let there = self.core.cpu(cpu);
        if there.waits_busily() {
            let generation = there.generation;
            self.core
                .schedule(self.at, Event::StepDone { cpu, generation });
        }
    }

    /// The scheduler cannot go on, for a reason: the run ends after this callback.
    pub fn eject(&mut self, why: &str) {
        self.broke
            .get_or_insert_with(|| Rule::Ejected(why.to_owned()));
    }

    fn send_interrupt(&mut self, to: CpuId) {
        self.at += self.core.times.reschedule_interrupt;
        let from = self.cpu;
        self.core.schedule(self.at, Event::Reschedule { from, to });
    }

    /// Raises the softirq in which [`Scheduler::balance`](crate::Scheduler::balance) runs on `cpu`;
    /// if that is another CPU, it is sent an interrupt (`kick_ilb()`).
    pub fn raise_balance(&mut self, cpu: CpuId) {
        let Some(there) = self.core.cpus.get_mut(cpu.index()) else {
            self.broke = Some(Rule::NoSuchCpu(cpu));
            return;
        };
        there.softirqs.raise(Softirq::Sched);
        if cpu != self.cpu {
            self.send_interrupt(cpu);
        }
    }

    /// Arms a timer that interrupts `cpu` at `at`, or now if `at` is in the past. It calls the
    /// scheduler's `timer` on that CPU with `token`.
    pub fn arm_timer(&mut self, cpu: CpuId, at: Instant, token: u64) -> Timer {
        let at = at.max(self.at);
        self.core.arm_timer(cpu, at, TimerOwner::Scheduler(token))
    }

    /// Cancels `timer`; false if it has expired or was cancelled before.
    pub fn cancel_timer(&mut self, timer: Timer) -> bool {
        self.core.disarm(timer).is_some()
    }

    /// A task group.
    pub fn group(&self, group: GroupId) -> &Group {
        self.core.groups.get(group)
    }

    /// The address space that is loaded on `cpu`: that of its task, or the one that a kernel thread
    /// or the idle task borrows (`active_mm`).
    pub fn active_mm(&self, cpu: CpuId) -> Option<Mm> {
        self.core.cpus[cpu.index()].address_spaces.active()
    }

    /// Whether `cpu` is online.
    pub fn is_online(&self, cpu: CpuId) -> bool {
        self.core.cpus[cpu.index()].online
    }

    /// Whether this CPU holds a lock that the scheduler declared.
    pub fn holds_lock(&self) -> bool {
        self.core.locks.is_held_by(self.cpu)
    }

    /// Which caches have served the accesses since counting began, of all CPUs.
    pub fn accesses(&self) -> AccessCounts {
        self.core.memory.counts(self.within)
    }

    /// Takes `lock` if it is free. It must be released by [`Context::unlock`] in the same callback.
    pub fn try_lock(&mut self, lock: LockId) -> bool {
        let (taken, takes) = self.core.word(lock).try_request(self.cpu, self.at);
        self.at += takes;
        self.locks_kept += u32::from(taken);
        if !taken {
            let cpu = self.cpu;
            self.core.record(Record::LockBusy { cpu, lock });
        }
        taken
    }

    /// Releases a lock that [`Context::try_lock`] took; other CPUs see it free from now on.
    pub fn unlock(&mut self, lock: LockId) {
        let cpu = self.cpu;
        self.locks_kept = self.locks_kept.saturating_sub(1);
        self.core.schedule(self.at, Event::Unlock { lock, cpu });
    }

    /// Says that something happened to `task`, or that a value of it is `value` from now on. It
    /// takes no time.
    pub fn statistic(&mut self, statistic: Statistic, task: TaskId, value: u64) {
        let now = self.core.now();
        self.core
            .figures
            .statistics
            .say(now, (statistic, task), value);
    }
}
