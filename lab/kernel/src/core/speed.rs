//! How fast CPUs work: by their capacity, and slower while another on their core is busy.

use warmq_machine::{FULL_CAPACITY, MachineDescription};
use warmq_units::{CpuId, Duration, Instant};

use crate::core::cpu::Cpu;
use crate::core::{Core, Event};

/// Beside a sibling, speeds are in thousandths of what a CPU reaches while its siblings idle.
const ALONE: u64 = 1_000;
/// The speed of the fastest CPU while its siblings idle.
const FULL: u64 = ALONE * FULL_CAPACITY;

/// How fast CPUs work, which share a core, and how much these slow each other down.
///
/// Work is in what the fastest CPU would take for it. What memory takes does not depend on the CPU
/// that waits: [`Memory`](crate::core::memory::Memory) says it as the work that would take as long.
pub(crate) struct Speeds {
    /// The part of its speed that a CPU has while a sibling is busy.
    beside_sibling: u64,
    siblings: Vec<Vec<CpuId>>,
    capacities: Vec<u64>,
}

impl Speeds {
    /// `None` for a machine whose CPUs are alike and do not slow each other down.
    pub(crate) fn of(machine: &MachineDescription) -> Option<Speeds> {
        let cpus = || (0..machine.cpus.len() as u16).map(CpuId);
        let core = |cpu: CpuId| machine.cpus[cpu.index()].core;
        let siblings: Vec<Vec<CpuId>> = cpus()
            .map(|cpu| {
                cpus()
                    .filter(|other| *other != cpu && core(*other) == core(cpu))
                    .collect()
            })
            .collect();
        let any = siblings.iter().any(|of_one| !of_one.is_empty());
        let slowed_down = any && machine.smt_speed < ALONE;
        let differ = slowed_down || !machine.capacities.is_empty();
        differ.then(|| Speeds {
            beside_sibling: machine.smt_speed.max(1),
            siblings,
            capacities: cpus().map(|cpu| machine.capacity(cpu)).collect(),
        })
    }
}

impl Core {
    /// The speed of `cpu` now, in parts of [`FULL`].
    fn speed(&self, cpu: CpuId) -> u64 {
        let shares_core = self.cpus[cpu.index()].shares_core;
        debug_assert_eq!(shares_core, self.has_busy_sibling(cpu));
        let Some(speeds) = &self.hardware.speeds else {
            return FULL;
        };
        let part = match shares_core {
            true => speeds.beside_sibling,
            false => ALONE,
        };
        part * speeds.capacities[cpu.index()]
    }

    /// How long `cpu` takes at its present speed for work that takes `alone` on the fastest CPU
    /// while its siblings idle.
    #[inline]
    pub(crate) fn stretched(&self, cpu: CpuId, alone: Duration) -> Duration {
        match self.hardware.speeds {
            None => alone,
            Some(_) => scaled(alone, FULL, self.speed(cpu)),
        }
    }

    /// The reverse of [`Core::stretched`].
    fn alone(&self, cpu: CpuId, stretched: Duration) -> Duration {
        scaled(stretched, self.speed(cpu), FULL)
    }

    /// Interrupts the step in progress on `cpu`; the rest of the step stays on its stack.
    pub(crate) fn put_down(&mut self, cpu: CpuId) {
        let now = self.now();
        let left = self.cpus[cpu.index()].left(now);
        let alone = self.alone(cpu, left);
        let left = match self.cpus[cpu.index()].looks_at {
            Some(_) => {
                self.interrupt_bout(cpu, alone);
                Duration::ZERO
            }
            None => alone,
        };
        self.cpu(cpu).put_down(now, left);
    }

    /// `cpu` begins or ceases to occupy its core: the steps of its siblings become slower or faster
    /// from now on.
    #[inline]
    pub(crate) fn occupy_core(&mut self, cpu: CpuId, occupies: bool) {
        if self.hardware.speeds.is_some() && self.cpus[cpu.index()].occupies_core != occupies {
            self.change_speeds(cpu, occupies);
        }
    }

    fn change_speeds(&mut self, cpu: CpuId, occupies: bool) {
        let now = self.now();
        let siblings = match &self.hardware.speeds {
            Some(speeds) => speeds.siblings[cpu.index()].clone(),
            None => return,
        };
        let left =
            |core: &Core, sibling: CpuId| core.alone(sibling, core.cpus[sibling.index()].left(now));
        let left: Vec<Duration> = siblings.iter().map(|cpu| left(self, *cpu)).collect();
        self.cpu(cpu).occupies_core = occupies;
        for (sibling, left) in siblings.into_iter().zip(left) {
            self.cpu(sibling).shares_core = occupies || self.has_busy_sibling(sibling);
            let until = now + self.stretched(sibling, left);
            self.step_ends_at(sibling, until);
        }
    }

    fn has_busy_sibling(&self, cpu: CpuId) -> bool {
        let siblings = self
            .hardware
            .speeds
            .iter()
            .flat_map(|speeds| &speeds.siblings[cpu.index()]);
        siblings
            .copied()
            .any(|sibling| self.cpus[sibling.index()].occupies_core)
    }

    /// The step in progress on `cpu`, if there is one, ends at `until` instead.
    pub(crate) fn step_ends_at(&mut self, cpu: CpuId, until: Instant) {
        let now = self.now();
        let here = self.cpu(cpu);
        if here.activity.until.is_some() && here.left(now) > Duration::ZERO {
            let mode = here.activity.mode;
            here.turn_to(now, mode, Some(until));
            self.schedule_step_end(cpu, until);
        }
    }

    /// Schedules the end of the step in progress, unless the tick is sure to interrupt it before.
    pub(crate) fn schedule_step_end(&mut self, cpu: CpuId, until: Instant) {
        let here: &Cpu = &self.cpus[cpu.index()];
        let generation = here.generation;
        if !(here.takes_interrupts() && here.next_tick <= until) {
            self.schedule(until, Event::StepDone { cpu, generation });
        }
    }
}

/// `span` times `by` over `over`. The product of a long span has more than 64 bits.
#[inline]
fn scaled(span: Duration, by: u64, over: u64) -> Duration {
    match span.0.checked_mul(by) {
        Some(product) => Duration(product / over),
        None => Duration((u128::from(span.0) * u128::from(by) / u128::from(over)) as u64),
    }
}
