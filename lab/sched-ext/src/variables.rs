//! Variables of the kernel that programs read.

use warmq_bpf::KernelTable;
use warmq_bpf_run::{Ending, Guest};
use warmq_units::CpuId;

use crate::ground::Ground;
use crate::here::ns;
use crate::state::Here;

/// Those that there are. Of `runqueues`, what is read is the clocks, and the number of real-time
/// tasks. All CPUs run at full speed, without a driver of frequencies and without pressure, and no
/// device of their ticks is to be seen.
pub(crate) const OFFERED: &[&str] = &[
    "sd_llc_id",
    "runqueues",
    "cpufreq_cpu_data",
    "hw_pressure",
    "tick_cpu_device",
    "cpuhp_state",
    "__irq_regs",
    "__preempt_count",
];

/// Where variables are, whose values change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Variables {
    /// `__irq_regs`: the registers that an interrupt has saved.
    irq_regs: Option<u64>,
    /// `__preempt_count`.
    preempt_count: Option<u64>,
    /// `runqueues`.
    runqueues: Option<u64>,
    /// `cpuhp_state`, and `CPUHP_ONLINE`.
    hotplug: Option<(u64, u64)>,
}

impl Variables {
    /// Makes the variables that an object reads, each for all CPUs. A program at `scx_tick()` gets
    /// a run queue.
    pub(crate) fn new(
        ground: &Ground,
        guest: &mut Guest,
        kernel: &KernelTable,
        ticks: bool,
    ) -> Result<Variables, Ending> {
        let mut all = Variables::default();
        let mut names = guest.image().kernel_variables.clone();
        if ticks && !names.iter().any(|name| name == "runqueues") {
            names.push("runqueues".to_owned());
        }
        for name in names {
            let size = kernel.variables.get(&name).copied().unwrap_or(8);
            let address = guest.allocate_per_cpu(size)?;
            guest.set_variable(&name, address);
            match name.as_str() {
                "sd_llc_id" => write_caches(ground, guest, address),
                "__irq_regs" => all.irq_regs = Some(address),
                "__preempt_count" => all.preempt_count = Some(address),
                "runqueues" => all.runqueues = Some(address),
                "cpuhp_state" => {
                    let online = kernel.enum_value("CPUHP_ONLINE").unwrap_or(0) as u64;
                    all.hotplug = Some((address, online));
                    for cpu in ground.cpus() {
                        all.write_online(guest, cpu, true);
                    }
                }
                _ => {}
            }
        }
        Ok(all)
    }

    /// `runqueues`.
    pub(crate) fn runqueues(&self) -> Option<u64> {
        self.runqueues
    }

    /// A CPU goes online or offline.
    pub(crate) fn write_online(&self, guest: &mut Guest, cpu: CpuId, online: bool) {
        let Some((address, number)) = self.hotplug else {
            return;
        };
        if let Some(there) = guest.per_cpu(address, cpu.0.into()) {
            // `enum cpuhp_state state, target`
            let _ = guest.store(there + 4, 4, if online { number } else { 0 });
        }
    }
}

/// `sd_llc_id`: the first CPU under the same cache.
fn write_caches(ground: &Ground, guest: &mut Guest, address: u64) {
    let cache = |cpu| ground.site(cpu).place.llc;
    for cpu in ground.cpus() {
        let mut same = ground.cpus().filter(|other| cache(*other) == cache(cpu));
        let first = same.next().unwrap_or(cpu);
        if let Some(there) = guest.per_cpu(address, cpu.0.into()) {
            let _ = guest.store(there, 4, first.0.into());
        }
    }
}

/// In `preempt_count`, in a softirq (`SOFTIRQ_OFFSET`) and in an interrupt (`HARDIRQ_OFFSET`).
const IN_SOFTIRQ: u64 = 1 << 8;
const IN_INTERRUPT: u64 = 1 << 16;

impl Here<'_, '_> {
    /// Where this CPU has a variable of the kernel's, if the program uses that.
    fn on_this_cpu(&self, variable: Option<u64>) -> Option<u64> {
        self.guest.per_cpu(variable?, self.context.cpu().0.into())
    }

    /// The clocks of this CPU's run queue (`update_rq_clock()`). Those of a CPU that nothing
    /// happens on stand still. Time in interrupts counts, and all time at full speed.
    pub(crate) fn write_clock(&mut self) {
        if let Some(there) = self.on_this_cpu(self.state.variables.runqueues) {
            let (fields, now) = (self.state.layouts.run_queue, ns(self.now()));
            for clock in [fields.clock, fields.clock_task, fields.clock_pelt] {
                clock.set(self.guest, there, now);
            }
        }
    }

    /// Where the code is that calls the program (`preempt_count()`).
    pub(crate) fn write_preempt_count(&mut self) {
        if let Some(there) = self.on_this_cpu(self.state.variables.preempt_count) {
            let (interrupt, softirq) = self.context.in_interrupt();
            let count = u64::from(interrupt) * IN_INTERRUPT + u64::from(softirq) * IN_SOFTIRQ;
            let _ = self.guest.store(there, 4, count);
        }
    }

    /// In an interrupt that came in user mode, `__irq_regs` has the registers of who runs; `within`
    /// is false when it is over.
    pub(crate) fn write_interrupt(&mut self, within: bool) {
        if let Some(there) = self.on_this_cpu(self.state.variables.irq_regs) {
            let current = self.state.cpu(self.context.cpu()).current;
            let saved = current.filter(|_| within && self.context.interrupts_user());
            let _ = self.guest.store(there, 8, saved.map_or(0, registers_of));
        }
    }
}

/// A number that stands for `task_pt_regs()` of a task: it is only compared.
pub(crate) fn registers_of(task: warmq_units::TaskId) -> u64 {
    const REGISTERS: u64 = 0xffff_c880_0000_0000;
    REGISTERS + (task.index() as u64) * 16_384
}
