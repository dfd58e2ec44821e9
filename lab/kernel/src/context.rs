//! What a scheduler may reach: [`Attach`] before anything runs, [`Context`] inside of callbacks.

use warmq_machine::{Access, CpuPlace};
use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Instant, LockId, TaskId};

use crate::core::{Core, Event};
use crate::costs::{Costs, UnknownCost};
use crate::ending::Rule;
use crate::lock::SpinLock;
use crate::memory::Within;
use crate::task::View;

/// What a scheduler may ask for when it is attached.
pub struct Attach<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) costs: &'a Costs,
}

impl Attach<'_> {
    /// How many CPUs the machine has.
    pub fn cpus(&self) -> u16 {
        self.core.cpus.len() as u16
    }

    /// Where `cpu` sits: its socket, last-level cache and core.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn place(&self, cpu: CpuId) -> CpuPlace {
        self.core.places[cpu.index()]
    }

    /// The size of a cache line in bytes.
    pub fn line(&self) -> u64 {
        self.core.memory.line()
    }

    /// Size over associativity of the cache of `level` (1 is nearest): addresses that differ by a
    /// multiple of it share a set. `None` where there is no such level.
    pub fn way_size(&self, level: usize) -> Option<Bytes> {
        self.core
            .way_sizes
            .get(level.checked_sub(1)?)
            .copied()
            .map(Bytes)
    }

    /// Declares a spin lock, which lives in a cache line of its own.
    pub fn lock(&mut self, name: &'static str) -> LockId {
        let address = self.data(Bytes(self.core.memory.line()));
        self.core.locks.push(SpinLock::new(name, address));
        LockId(self.core.locks.len() as u16 - 1)
    }

    /// Kernel data of the scheduler's own, aligned on a cache line.
    pub fn data(&mut self, bytes: Bytes) -> Address {
        self.core.kernel_data(bytes)
    }

    /// A cost of this kernel on this machine, by name.
    pub fn cost(&self, name: &str) -> Result<Cycles, UnknownCost> {
        self.costs.get(name)
    }
}

/// What a scheduler sees and may do inside of a callback. Time passes here by what it does.
pub struct Context<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) cpu: CpuId,
    /// The CPU's own time, ahead of the timeline by what the callback has done so far.
    pub(crate) at: Instant,
    pub(crate) within: Within,
    pub(crate) prefetched: Option<(Address, Instant)>,
    pub(crate) broke: Option<Rule>,
    /// Locks taken by `try_lock` and not given back yet.
    pub(crate) locks_kept: u32,
}

impl<'a> Context<'a> {
    pub(crate) fn new(core: &'a mut Core, cpu: CpuId) -> Context<'a> {
        let at = core.timeline.now();
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

    /// What may be known of `task`.
    ///
    /// # Panics
    /// When there is no such task: schedulers only know tasks that `fork` told them of.
    #[inline]
    pub fn task(&self, task: TaskId) -> View<'_> {
        self.core.view(task)
    }

    /// Who runs on `cpu`, from the moment it was picked (`cpu_curr()` of Linux 2.4); `None` is the
    /// idle task.
    pub fn running_on(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.cpus[cpu.index()].chosen
    }

    /// Whether `cpu` was asked to reschedule and has not done so yet.
    pub fn will_reschedule(&self, cpu: CpuId) -> bool {
        self.core.cpus[cpu.index()].need_resched
    }

    /// When `cpu` last went through a switch.
    pub fn last_switch(&self, cpu: CpuId) -> Instant {
        self.core.cpus[cpu.index()].last_switch
    }

    /// Works for `cycles`.
    #[inline]
    pub fn compute(&mut self, cycles: Cycles) {
        self.at += self.core.clock.time_of(cycles);
    }

    /// Works for `span`.
    #[inline]
    pub fn spend(&mut self, span: Duration) {
        self.at += span;
    }

    /// How long `cycles` take on this machine.
    pub fn time_of(&self, cycles: Cycles) -> Duration {
        self.core.clock.time_of(cycles)
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

    /// Reads or writes the scheduler's data at all `addresses`, none of which depends on what another
    /// one holds: misses overlap as those of a program's touch do.
    pub fn touch_all(&mut self, addresses: impl IntoIterator<Item = Address>, access: Access) {
        for address in addresses {
            let memory = &mut self.core.memory;
            self.at += memory.access_overlapped(self.cpu, address, access, self.at, self.within);
        }
    }

    /// Asks for the line of `address` and does not wait: the next touch of it waits for the rest.
    pub fn prefetch(&mut self, address: Address) {
        let takes = self
            .core
            .memory
            .access(self.cpu, address, Access::Read, self.at, self.within);
        self.prefetched = Some((address, self.at + takes));
    }

    /// From here on, accesses count as made within `within`.
    pub fn within(&mut self, within: Within) {
        self.within = within;
    }

    /// Kernel data that is never freed, aligned on a cache line.
    pub fn data(&mut self, bytes: Bytes) -> Address {
        self.core.kernel_data(bytes)
    }

    /// Counts one walk over `visits` entries of a run queue.
    pub fn walked(&mut self, visits: u64) {
        self.core.walks.walks += 1;
        self.core.walks.visits += visits;
        self.core.walks.longest = self.core.walks.longest.max(visits);
    }

    /// Records that every time slice is computed anew.
    pub fn recalculated(&mut self) {
        self.core.walks.recalculations += 1;
    }

    /// Lets `cpu` call `pick_next` as soon as it is out of the kernel. For another CPU this
    /// sends a reschedule interrupt.
    pub fn reschedule(&mut self, cpu: CpuId) {
        if cpu.index() >= self.core.cpus.len() {
            self.broke = Some(Rule::NoSuchCpu(cpu));
            return;
        }
        self.core.cpus[cpu.index()].need_resched = true;
        if cpu != self.cpu {
            self.at += self.core.send_interrupt_cost();
            let event = Event::Reschedule {
                from: self.cpu,
                to: cpu,
            };
            self.core.schedule(self.at, event);
        }
    }

    /// Takes `lock` if it is free. It must be given back by [`Context::unlock`] in this callback.
    pub fn try_lock(&mut self, lock: LockId) -> bool {
        let address = self.core.locks[lock.index()].address;
        self.touch(address, Access::Write);
        let taken = self.core.locks[lock.index()].try_request(self.cpu, self.at);
        self.locks_kept += u32::from(taken);
        taken
    }

    /// Gives back a lock that [`Context::try_lock`] took; others see it free from now on.
    pub fn unlock(&mut self, lock: LockId) {
        let cpu = self.cpu;
        self.locks_kept = self.locks_kept.saturating_sub(1);
        self.core.schedule(self.at, Event::Unlock { lock, cpu });
    }
}
