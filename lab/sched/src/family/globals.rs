//! The kernel's own variables that scheduling in 2.4 reads and writes, by cache line.
//!
//! Their lines go from CPU to CPU, some at each switch (`aligned_data`), some at each wakeup
//! (`nr_running`). Which of them share a line with neighbours is not known; each has its own here.

use std::collections::BTreeMap;

use warmq_kernel::{Attach, Context, Mm};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId};

/// Lines of an idle task's structure that others touch: `need_resched`, `processor`, `active_mm`.
const IDLE_LINES: u64 = 3;
/// CPUs whose counters (five words each) share a line of `kstat`.
const CPUS_A_LINE: u64 = 4;

/// Where the kernel's variables lie.
pub(crate) struct Globals {
    line: u64,
    /// `aligned_data[cpu]`: who runs there, and since when.
    cpus: Vec<Address>,
    /// The idle tasks' structures.
    idle_tasks: Vec<Address>,
    nr_running: Address,
    tasklist_lock: Address,
    jiffies: Address,
    /// `kstat`: counters of ticks, of CPUs side by side.
    ticks: Address,
    /// `kstat.context_swtch`, which all CPUs write.
    switches: Address,
    /// `cpu_tlbstate[cpu]`.
    tlb_states: Vec<Address>,
    /// `cpu_vm_mask` of each address space.
    vm_masks: BTreeMap<Mm, Address>,
}

impl Globals {
    pub(crate) fn new(attach: &mut Attach<'_>) -> Globals {
        let (line, cpus) = (attach.line(), u64::from(attach.cpus()));
        let mut lines = |count: u64| attach.data(Bytes(count * line));
        let data = (0..cpus).map(|_| lines(1)).collect();
        let idle_tasks = (0..cpus).map(|_| lines(IDLE_LINES)).collect();
        let tlb_states = (0..cpus).map(|_| lines(1)).collect();
        Globals {
            line,
            cpus: data,
            idle_tasks,
            tlb_states,
            nr_running: lines(1),
            tasklist_lock: lines(1),
            jiffies: lines(1),
            ticks: lines(cpus.div_ceil(CPUS_A_LINE)),
            switches: lines(1),
            vm_masks: BTreeMap::new(),
        }
    }

    /// Makes room for what is kept of `mm`.
    pub(crate) fn admit(&mut self, context: &mut Context<'_>, mm: Mm) {
        let line = Bytes(self.line);
        self.vm_masks
            .entry(mm)
            .or_insert_with(|| context.data(line));
    }

    /// `aligned_data[cpu]`.
    pub(crate) fn cpu(&self, cpu: CpuId) -> Address {
        self.cpus[cpu.index()]
    }

    /// Line `line` (0 to 2) of the idle task of `cpu`.
    pub(crate) fn idle_task(&self, cpu: CpuId, line: u64) -> Address {
        self.idle_tasks[cpu.index()] + line * self.line
    }

    /// A task joins or leaves the run queue.
    pub(crate) fn count_running(&self, context: &mut Context<'_>) {
        context.touch(self.nr_running, Access::Write);
    }

    /// How many are runnable, and who runs where.
    pub(crate) fn read_running(&self, context: &mut Context<'_>) {
        context.touch(self.nr_running, Access::Read);
        for cpu in &self.cpus {
            context.touch(*cpu, Access::Read);
        }
    }

    /// The time goes into `sleep_time`.
    pub(crate) fn read_jiffies(&self, context: &mut Context<'_>) {
        context.touch(self.jiffies, Access::Read);
    }

    /// A tick: this CPU's counters; the first CPU keeps the time.
    pub(crate) fn count_tick(&self, context: &mut Context<'_>) {
        let cpu = context.cpu();
        let counters = self.ticks + u64::from(cpu.0) / CPUS_A_LINE * self.line;
        context.touch(counters, Access::Write);
        if cpu == CpuId(0) {
            context.touch(self.jiffies, Access::Write);
        }
    }

    /// `tasklist_lock` is taken for reading or given back: a write either way.
    pub(crate) fn lock_tasklist(&self, context: &mut Context<'_>) {
        context.touch(self.tasklist_lock, Access::Write);
    }

    /// A switch was made, perhaps to another address space.
    pub(crate) fn count_switch(&self, context: &mut Context<'_>, from: Option<Mm>, to: Option<Mm>) {
        let cpu = context.cpu();
        context.touch(self.cpu(cpu), Access::Write);
        context.touch(self.switches, Access::Write);
        let Some(to) = to.filter(|to| Some(*to) != from) else {
            return;
        };
        for mm in from.into_iter().chain([to]) {
            if let Some(mask) = self.vm_masks.get(&mm) {
                context.touch(*mask, Access::Write);
            }
        }
        context.touch(self.tlb_states[cpu.index()], Access::Write);
    }
}
