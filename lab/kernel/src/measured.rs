//! What a run measured, as integers.

use warmq_machine::Counts;
use warmq_trace::Observer;
use warmq_units::{CpuId, Duration, TaskId};

use crate::figures::{CpuTime, TaskFigures, Walks};
use crate::kernel::Kernel;
use crate::lock::LockFigures;
use crate::memory::{AccessCounts, Within};
use crate::network::{DatagramCounts, PacketCounts};
use crate::operation::{Nic, Socket};
use crate::step::Mode;

impl<O: Observer> Kernel<O> {
    /// The time that the figures are of.
    pub fn measured(&self) -> Duration {
        self.now() - self.core().measured_from
    }

    /// Time that all CPUs together spent in `mode`.
    pub fn spent(&self, mode: Mode) -> Duration {
        self.core()
            .cpus
            .iter()
            .map(|cpu| cpu.spent[mode as usize])
            .sum()
    }

    /// Time that each CPU spent in each of [`Mode::ALL`].
    pub fn spent_by_cpu(&self) -> Vec<[Duration; Mode::ALL.len()]> {
        self.core().cpus.iter().map(|cpu| cpu.spent).collect()
    }

    /// The figures of every lock.
    pub fn locks(&self) -> Vec<LockFigures> {
        self.core()
            .locks
            .iter()
            .map(|lock| lock.figures().clone())
            .collect()
    }

    /// The walks over run queues.
    pub fn walks(&self) -> Walks {
        self.core().walks
    }

    /// The accesses made within a stretch of code.
    pub fn accesses(&self, within: Within) -> AccessCounts {
        self.core().memory.counts(within)
    }

    /// What the caches and the bus counted; `None` without caches.
    pub fn counts(&self) -> Option<&Counts> {
        self.core()
            .memory
            .hierarchy()
            .map(warmq_machine::Hierarchy::counts)
    }

    /// Checks that the caches are coherent; a checker for tests.
    pub fn check_coherence(&self) -> Result<(), String> {
        self.core()
            .memory
            .hierarchy()
            .map_or(Ok(()), warmq_machine::Hierarchy::check_coherence)
    }

    /// What `time -v` would say of `task`; `None` when there never was such a task.
    pub fn task(&self, task: TaskId) -> Option<TaskFigures> {
        let state = self.core().tasks.get(task.index())?;
        let mut exact = state.cpu_time;
        let running = |cpu: &&crate::cpu::Cpu| cpu.current == Some(task);
        if let Some(cpu) = self.core().cpus.iter().find(running) {
            exact += cpu.of_current();
        }
        Some(TaskFigures {
            ran: state.ran,
            exact,
            sampled: state.sampled,
            voluntary_switches: state.voluntary_switches,
            involuntary_switches: state.involuntary_switches,
        })
    }

    /// CPU time that the idle task of `cpu` spent in the kernel: picking, and switching to others.
    pub fn idle_task(&self, cpu: CpuId) -> CpuTime {
        let cpu = &self.core().cpus[cpu.index()];
        let mut time = cpu.idle_task;
        if cpu.current.is_none() {
            time += cpu.of_current();
        }
        time
    }

    /// How many tasks there have been, kernel threads included.
    pub fn tasks(&self) -> u32 {
        self.core().tasks.len() as u32
    }

    /// What became of the packets of `nic`.
    pub fn packets(&self, nic: Nic) -> PacketCounts {
        self.core().cards[nic.index()].counts()
    }

    /// What became of the datagrams sent to `socket`.
    pub fn datagrams(&self, socket: Socket) -> DatagramCounts {
        self.core().endpoints[socket.index()].datagrams
    }

    /// How many tasks were runnable, as thousandths of a task in the mean over the measured time.
    pub fn runnable_mean_milli(&self) -> u64 {
        let mut clock = self.core().runnable;
        clock.charge(self.now());
        (clock.area * 1_000 / u128::from(self.measured().0.max(1))) as u64
    }

    /// Switches from one task (or idling) to another.
    pub fn switches(&self) -> u64 {
        self.core().switches
    }

    /// How often a task was picked by another CPU than the one before.
    pub fn migrations(&self) -> u64 {
        self.core().migrations
    }

    /// How many tasks are runnable now.
    pub fn runnable(&self) -> usize {
        self.core()
            .tasks
            .iter()
            .filter(|task| task.is_runnable())
            .count()
    }
}
