//! What a CPU does: who runs, and which interrupts are going on.

use warmq_trace::{Context, Interrupt};
use warmq_units::{CpuId, Duration, Instant, TaskId};

/// The kernel runs softirqs right after an interrupt (`irq_exit()`); one that begins later runs on
/// behalf of the task, as in `local_bh_enable()`. Some times what lies between two events of a
/// recording.
const RIGHT_AFTER: Duration = Duration::from_us(20);
/// A softirq that was raised again while it ran begins again at once (`handle_softirqs()`); a task
/// needs longer for the system call that sends its next packet.
const AGAIN: Duration = Duration::from_us(1);
/// The vectors of the softirqs that expire timers (`TIMER_SOFTIRQ`, `HRTIMER_SOFTIRQ` in the
/// kernel's `include/linux/interrupt.h`).
const TIMERS: [u8; 2] = [1, 8];

/// Who, or what, woke a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waker {
    /// A task, or the kernel on its behalf.
    Task(TaskId),
    /// A packet from outside the machine.
    Network,
    /// A timer.
    Timer,
    /// Something else outside the machine: a disk, another device.
    Device,
    /// Nobody knows.
    Unknown,
}

/// A CPU.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Who runs; what was before the first switch is unknown.
    pub running: Option<TaskId>,
    switched: bool,
    /// The interrupts and softirqs that are going on, the innermost last; true of a softirq that
    /// runs on behalf of the task.
    open: Vec<(Interrupt, bool)>,
    /// A softirq that begins by then runs because a device interrupted this CPU.
    interrupted_until: Option<Instant>,
    /// The packets of this softirq that have woken nobody so far.
    pub packets: Vec<Instant>,
}

impl Cpu {
    pub fn enters(&mut self, at: Instant, interrupt: Interrupt) {
        let after = self.interrupted_until.filter(|until| at <= *until);
        let inside = self.open.iter().any(|(outer, _)| !outer.is_softirq());
        let of_task =
            interrupt.is_softirq() && after.is_none() && !inside && self.running.is_some();
        self.open.push((interrupt, of_task));
    }

    /// Ends an interrupt; one that began before the recording has no beginning.
    pub fn exits(&mut self, at: Instant, interrupt: Interrupt) {
        let of_task = match self.open.iter().rposition(|(open, _)| *open == interrupt) {
            Some(place) => self.open.drain(place..).next().is_some_and(|(_, of)| of),
            None => false,
        };
        match interrupt {
            // Neither brings packets: one that a task sends to this machine right after is its own.
            Interrupt::Timer | Interrupt::Reschedule => {}
            Interrupt::Network | Interrupt::Line(_) => {
                self.interrupted_until = Some(at + RIGHT_AFTER);
            }
            // `net_rx_action()` takes all packets that a card brought.
            Interrupt::NetworkSoftirq => {
                self.interrupted_until = (!of_task).then_some(at + AGAIN);
            }
            // Other softirqs come before that of the network and after it.
            Interrupt::SchedSoftirq | Interrupt::Softirq(_) => {
                let until = self.interrupted_until;
                self.interrupted_until = until.map(|until| until.max(at + AGAIN));
            }
        }
    }

    /// It runs `next` from now on; returns whether this is its first switch.
    pub fn switches(&mut self, next: Option<TaskId>) -> bool {
        self.running = next;
        self.interrupted_until = None;
        !std::mem::replace(&mut self.switched, true)
    }

    /// Whether the packet that arrives now comes from outside.
    pub fn receives_from_outside(&self) -> bool {
        let network =
            |(open, of_task): &(Interrupt, bool)| *open == Interrupt::NetworkSoftirq && !of_task;
        self.open.iter().any(network)
    }

    /// Whoever wakes a task here now, while `task` is current.
    pub fn waker(&self, task: Option<TaskId>, context: Context) -> Waker {
        let by_task = task.map_or(Waker::Unknown, Waker::Task);
        let softirqs = || self.open.iter().rev().find(|(open, _)| open.is_softirq());
        let hard = || self.open.iter().rev().find(|(open, _)| !open.is_softirq());
        match context {
            Context::Task => by_task,
            Context::Softirq => match softirqs() {
                // The lab does not record the softirqs that a task's own system call runs.
                None | Some((Interrupt::NetworkSoftirq, true)) => by_task,
                Some((Interrupt::NetworkSoftirq, false)) => Waker::Network,
                Some((Interrupt::Softirq(vector), _)) if TIMERS.contains(vector) => Waker::Timer,
                Some(_) => Waker::Device,
            },
            Context::Interrupt => match hard() {
                Some((Interrupt::Timer, _)) => Waker::Timer,
                Some((Interrupt::Network, _)) => Waker::Network,
                _ => Waker::Device,
            },
            Context::Unknown => match self.open.last() {
                None => by_task,
                Some((Interrupt::Timer, _)) => Waker::Timer,
                Some(_) => Waker::Device,
            },
        }
    }
}

/// All CPUs.
#[derive(Debug, Default)]
pub(crate) struct Cpus(Vec<Cpu>);

impl Cpus {
    pub fn get(&mut self, cpu: CpuId) -> &mut Cpu {
        if self.0.len() <= cpu.index() {
            self.0.resize_with(cpu.index() + 1, Cpu::default);
        }
        &mut self.0[cpu.index()]
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}
