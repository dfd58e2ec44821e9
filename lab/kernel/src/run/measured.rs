//! The counts and times that a run measured, as integers.

use warmq_machine::Counts;
use warmq_trace::Observer;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::core::{AccessCounts, Cpu, DatagramCounts, PacketCounts, Sampled, Statistic, Within};
use crate::run::kernel::Kernel;
use crate::words::{CpuTime, Mode, Nic, Socket, TaskCpuTime, Walks};

impl<O: Observer> Kernel<O> {
    /// The time over which the figures were measured.
    pub fn measured(&self) -> Duration {
        self.now() - self.core().figures.since()
    }

    /// The time that all CPUs together spent in `mode`.
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

    /// The locks that the scheduler declared, with their names; the kernel's own are not among
    /// them.
    pub fn run_queue_locks(&self) -> impl Iterator<Item = (LockId, &'static str)> {
        self.core().locks.of_scheduler()
    }

    /// The walks over run queues.
    pub fn walks(&self) -> Walks {
        self.core().figures.walks()
    }

    /// The accesses counted under `within`.
    pub fn accesses(&self, within: Within) -> AccessCounts {
        self.core().memory.counts(within)
    }

    /// The counts of the caches and the bus; `None` without caches.
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

    /// Checks that no CPU time is lost or counted twice: the times of each CPU add up to the time
    /// measured, those of a task are no longer than that, and those of all tasks and idle tasks add
    /// up to what the CPUs spent in user mode and in the kernel outside interrupts.
    ///
    /// # Errors
    /// A sentence with the two sums that differ.
    pub fn check_times(&self) -> Result<(), String> {
        let whole = self.measured();
        for (cpu, spent) in self.spent_by_cpu().into_iter().enumerate() {
            let spent: Duration = spent.into_iter().sum();
            same(&format!("the times of cpu{cpu}"), spent, whole)?;
        }
        let of_task = |task| self.task(TaskId(task)).map(|time| time.exact);
        let of_tasks = (0..self.tasks()).filter_map(of_task);
        let cpus = (0..self.core().cpus.len()).map(|cpu| CpuId(cpu as u16));
        let mut all = CpuTime::default();
        for time in of_tasks.chain(cpus.map(|cpu| self.idle_task(cpu))) {
            within("the times of a task", time.total(), whole)?;
            all += time;
        }
        let system = self.spent(Mode::System) + self.spent(Mode::Spin);
        same("the tasks' user times", all.user, self.spent(Mode::User))?;
        same("the tasks' system times", all.system, system)
    }

    /// The CPU time of `task` in the time measured; `None` if there never was such a task.
    pub fn task(&self, task: TaskId) -> Option<TaskCpuTime> {
        let state = self.core().tasks.get(task.index())?;
        let mut exact = state.cpu_time;
        let running = |cpu: &&Cpu| cpu.current == Some(task);
        if let Some(cpu) = self.core().cpus.iter().find(running) {
            exact += cpu.of_current();
        }
        Some(TaskCpuTime {
            exact,
            sampled: state.sampled,
        })
    }

    /// CPU time that the idle task of `cpu` spent in the kernel in the time measured: picking, and
    /// switching to others.
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

    /// The counts of the packets of `nic`.
    pub fn packets(&self, nic: Nic) -> PacketCounts {
        self.core().packets(nic)
    }

    /// The counts of the datagrams of `socket` in the time measured.
    pub fn datagrams(&self, socket: Socket) -> DatagramCounts {
        self.core().net.endpoints[socket].datagrams
    }

    /// The counts of the datagrams of all sockets in the time measured.
    pub fn all_datagrams(&self) -> DatagramCounts {
        let endpoints = self.core().net.endpoints.iter();
        let counts = endpoints.map(|endpoint| endpoint.datagrams);
        counts.fold(DatagramCounts::default(), |sum, counts| DatagramCounts {
            sent: sum.sent + counts.sent,
            dropped: sum.dropped + counts.dropped,
            received: sum.received + counts.received,
        })
    }

    /// What the scheduler said of `task` since the measurement began.
    pub fn statistic(&self, statistic: Statistic, task: TaskId) -> Sampled {
        self.core()
            .figures
            .statistics
            .get(self.now(), statistic, task)
    }

    /// What the scheduler has counted since it was attached, by name.
    pub fn counted_by_scheduler(&self) -> Vec<(String, u64)> {
        self.system.scheduler.counted()
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

/// An error that names `what` unless its sum is `expected`.
fn same(what: &str, sum: Duration, expected: Duration) -> Result<(), String> {
    if sum == expected {
        return Ok(());
    }
    Err(format!("{what} add up to {sum}, not to {expected}"))
}

/// An error that names `what` if it is longer than `whole`.
fn within(what: &str, span: Duration, whole: Duration) -> Result<(), String> {
    match span <= whole {
        true => Ok(()),
        false => Err(format!("{what} add up to {span}, in {whole}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_do_not_add_up_are_named() {
        let ms = Duration::from_ms;
        assert_eq!(same("the times", ms(2), ms(2)), Ok(()));
        let error = same("the tasks' user times", ms(2), ms(1)).unwrap_err();
        assert!(
            error.starts_with("the tasks' user times add up to"),
            "{error}"
        );
        assert_eq!(within("the times", ms(2), ms(2)), Ok(()));
        let error = within("the times of a task", ms(6), ms(5)).unwrap_err();
        assert!(
            error.starts_with("the times of a task add up to"),
            "{error}"
        );
    }
}
