//! Interrupts and softirqs: how a CPU enters and leaves them.

use warmq_machine::Access;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Address, CpuId, Duration, Instant, TaskId};

use crate::core::{CARD_VECTORS, Event, NeedResched, Softirq, TimerOwner, Vector, Within};
use crate::face::Callback;
use crate::paths::{Flow, System};
use crate::words::{Balance, Mode, Nic, Run, Step, Timer, Waiting, wake};

/// Lines at the top of the kernel stack that entering the kernel writes: saved registers and the
/// frames of a short call chain, some 200 bytes.
const STACK_LINES: u64 = 6;

impl System {
    /// An interrupt arrives at `cpu`, which takes it at once or as soon as it can.
    pub(crate) fn interrupt(&mut self, cpu: CpuId, vector: Vector) {
        let here = self.core.cpu(cpu);
        here.interrupts.raise(vector);
        if here.takes_interrupts() && !self.leaves_halt(cpu, vector) {
            self.core.put_down(cpu);
            self.advance(cpu);
        }
    }

    /// Whether `cpu` halts in idle, and takes the interrupt of `vector` when it is out of that.
    fn leaves_halt(&mut self, cpu: CpuId, vector: Vector) -> bool {
        let seen_by_kernel = !matches!(vector, Vector::Steal | Vector::Change);
        let here = &self.core.cpus[cpu.index()];
        let (halts, leaves) = (here.activity.mode == Mode::Idle, here.leaves_halt);
        let Some(takes) = self.core.times.halt_exit.filter(|_| halts) else {
            return false;
        };
        if seen_by_kernel && !leaves {
            self.core.cpu(cpu).leaves_halt = true;
            let at = self.core.now() + takes;
            self.core.schedule(at, Event::OutOfHalt(cpu));
        }
        seen_by_kernel
    }

    /// `cpu` is out of halt, and takes the interrupts that came.
    pub(crate) fn out_of_halt(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        here.leaves_halt = false;
        if here.takes_interrupts() && here.activity.mode == Mode::Idle {
            self.core.put_down(cpu);
            self.advance(cpu);
        }
    }

    pub(crate) fn enter_interrupt(&mut self, cpu: CpuId, vector: Vector) {
        let interrupted = self.core.cpu(cpu).activity.mode;
        let now = self.core.now();
        let interrupt = match vector {
            Vector::Steal => return self.enter_steal(cpu),
            Vector::Change => return self.enter_changes(cpu),
            Vector::Tick | Vector::Timer => Interrupt::Timer,
            Vector::Reschedule => Interrupt::Reschedule,
            Vector::Network(_) => Interrupt::Network,
        };
        self.core.record(Record::InterruptEnter { cpu, interrupt });
        let stack = self.stack_touch(cpu, now);
        let times = self.core.times;
        let here = self.core.cpu(cpu);
        if here.irq_depth == 0 {
            here.interrupted_user = interrupted == Mode::User;
        }
        here.irq_depth += 1;
        here.in_user = false;
        if interrupted == Mode::User && times.interrupt_return > Duration::ZERO {
            here.stack.push(Step::ReturnToUser(times.interrupt_return));
        }
        here.stack.push(Step::EndInterrupt(interrupt));
        here.stack.push(Step::Busy {
            left: times.interrupt_exit,
            user: false,
        });
        let handler = match vector {
            Vector::Tick => self.push_tick(cpu, interrupted),
            Vector::Timer => self.push_expired(cpu),
            Vector::Reschedule => {
                self.push_wake_list(cpu);
                Duration::ZERO
            }
            Vector::Steal | Vector::Change => Duration::ZERO,
            Vector::Network(nic) => {
                self.core.cpu(cpu).stack.push(Step::ScheduleNapi(nic));
                Duration::ZERO
            }
        };
        let left = times.interrupt_entry + handler + stack;
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Busy { left, user: false });
    }

    /// The handler of the tick; returns what it costs without the scheduler's part.
    fn push_tick(&mut self, cpu: CpuId, interrupted: Mode) -> Duration {
        self.core.sample_tick(cpu, interrupted);
        self.tick_bandwidth(cpu);
        let here = self.core.cpu(cpu);
        if here.need_resched == NeedResched::Lazy {
            here.need_resched = NeedResched::Now;
        }
        let running = here.current;
        let locks = self.scheduler.locks(Callback::Tick, cpu);
        self.push_locked(cpu, locks, Step::Tick(running));
        self.core.times.timer_tick
    }

    /// The handler of expired timers.
    fn push_expired(&mut self, cpu: CpuId) -> Duration {
        let left = self.core.times.timer_program;
        let here = self.core.cpu(cpu);
        here.stack.push(Step::Busy { left, user: false });
        for owner in std::mem::take(&mut here.expired).into_iter().rev() {
            let handler = match owner {
                TimerOwner::Sleep(task) => Some(wake(task)),
                TimerOwner::Wait(task, condition) => self.wait_is_over(task, condition),
                TimerOwner::Scheduler(token) => Some(Step::SchedulerTimer(token)),
                TimerOwner::Refill(group) => Some(Step::Refill(group)),
                TimerOwner::Slack(group) => Some(Step::HandOutSlack(group)),
            };
            self.core.cpu(cpu).stack.extend(handler);
        }
        Duration::ZERO
    }

    pub(crate) fn end_interrupt(&mut self, cpu: CpuId, interrupt: Interrupt) -> Flow {
        self.core.record(Record::InterruptExit { cpu, interrupt });
        self.leave_interrupt(cpu);
        Flow::Next
    }

    /// The handler is over: raised softirqs run next.
    pub(crate) fn leave_interrupt(&mut self, cpu: CpuId) {
        self.core.cpu(cpu).irq_depth -= 1;
        self.run_pending_softirqs(cpu);
    }

    /// Softirqs that were raised meanwhile, or that are left over, run now unless an interrupt or
    /// another stretch without softirqs goes on.
    pub(crate) fn run_pending_softirqs(&mut self, cpu: CpuId) {
        let here = self.core.cpu(cpu);
        if here.irq_depth == 0 && here.softirq_depth == 0 && !here.softirqs.is_empty() {
            self.begin_softirqs(cpu);
        }
    }

    /// A timer expires: its CPU is interrupted, or another one if that is offline.
    pub(crate) fn timer_expired(&mut self, timer: Timer) {
        let Some((owner, armed_on)) = self.core.disarm(timer) else {
            return;
        };
        let cpu = self.core.online_or_first(armed_on);
        self.core.cpu(cpu).expired.push_back(owner);
        self.interrupt(cpu, Vector::Timer);
    }

    /// The handler of a card's interrupt: every card of this vector that raised one here is polled
    /// here.
    pub(crate) fn schedule_napi(&mut self, cpu: CpuId, vector: u32) -> Flow {
        for index in (vector..self.core.net.cards.len() as u32).step_by(CARD_VECTORS as usize) {
            self.interrupted_by(cpu, Nic(index));
        }
        Flow::Next
    }

    // Softirqs.

    /// Starts the raised softirqs: interrupts on, scheduling off.
    pub(crate) fn begin_softirqs(&mut self, cpu: CpuId) {
        let (round, since) = (0, self.core.now());
        let here = self.core.cpu(cpu);
        here.softirq_depth += 1;
        here.stack.push(Step::Softirqs(round, since));
    }

    /// One round over the raised softirqs; after the last, the rest is left to `ksoftirqd`.
    pub(crate) fn softirqs(&mut self, cpu: CpuId, round: u32, since: Instant) -> Flow {
        let limits = self.core.settings.softirqs;
        let now = self.core.now();
        let here = self.core.cpu(cpu);
        if here.softirqs.is_empty() {
            here.softirq_depth -= 1;
            return Flow::Next;
        }
        let preempts = here.need_resched == NeedResched::Now && limits.ends_for_tasks;
        let enough = round >= limits.rounds || now - since >= limits.time || preempts;
        if round > 0 && enough {
            here.softirq_depth -= 1;
            if !here.online {
                self.core.move_softirqs(cpu);
            } else if let Some(thread) = self.core.ksoftirqd(cpu) {
                self.core.cpu(cpu).stack.push(wake(thread));
            }
            return Flow::Next;
        }
        let round = round + 1;
        here.stack.push(Step::Softirqs(round, since));
        let taken: Vec<Softirq> = here.softirqs.take_all().collect();
        for softirq in taken.into_iter().rev() {
            self.push_softirq(cpu, softirq);
        }
        Flow::Next
    }

    fn push_softirq(&mut self, cpu: CpuId, softirq: Softirq) {
        let limits = self.core.settings.softirqs;
        let since = self.core.now();
        let here = self.core.cpu(cpu);
        let (interrupt, handler) = match softirq {
            Softirq::NetRx => (
                Interrupt::NetworkSoftirq,
                Step::NetRx(Run {
                    packets: limits.packets,
                    polled: 0,
                    since,
                }),
            ),
            Softirq::Sched => {
                let when = here.current.map_or(Balance::Idle, |_| Balance::Tick);
                (Interrupt::SchedSoftirq, Step::Balance(when))
            }
        };
        here.stack.push(Step::EndSoftirq(interrupt));
        here.stack.push(handler);
        here.stack.push(Step::BeginSoftirq(interrupt));
    }

    /// What `ksoftirqd` does next: run softirqs, let other tasks run, or sleep. It is parked while
    /// its CPU is offline.
    pub(crate) fn run_ksoftirqd(&mut self, cpu: CpuId, thread: TaskId) -> Flow {
        self.core.cpu(cpu).stack.push(Step::Ksoftirqd);
        if !self.core.cpu(cpu).online {
            self.core.move_softirqs(cpu);
        }
        if self.core.cpu(cpu).softirqs.is_empty() {
            self.sleep(cpu, thread, Waiting::Softirqs);
            return Flow::Next;
        }
        // cond_resched() before the next series.
        if self.core.cpu(cpu).need_resched == NeedResched::Now {
            self.core.cpu(cpu).stack.push(Step::Schedule);
            return Flow::Next;
        }
        self.begin_softirqs(cpu);
        Flow::Next
    }

    /// Lets the scheduler look for a queue to pull tasks from, and pull from it.
    pub(crate) fn balance(&mut self, cpu: CpuId, when: Balance) -> Flow {
        let mut from = None;
        let took = self.call(cpu, |scheduler, context| {
            from = scheduler.balance(context, when);
        });
        if let Some(from) = from.filter(|from| from.index() < self.core.cpus.len()) {
            match when {
                Balance::NewlyIdle => self.pick_after_pull(cpu),
                _ if self.scheduler.keeps_balancing(cpu) => {
                    self.core.cpu(cpu).stack.push(Step::Balance(when));
                }
                _ => {}
            }
            let locks = self.scheduler.locks(Callback::Pull { from }, cpu);
            self.push_locked(cpu, locks, Step::Pull(from, when));
        }
        Flow::Takes(took, self.mode(cpu, false))
    }

    /// Entering the kernel writes to the top of the current task's kernel stack.
    pub(crate) fn stack_touch(&mut self, cpu: CpuId, now: Instant) -> Duration {
        let Some(current) = self.core.cpu(cpu).current else {
            return Duration::ZERO;
        };
        let line = self.core.memory.line();
        let top = self.core.task(current).block + self.core.settings.block.0;
        let mut took = Duration::ZERO;
        for frame in 1..=STACK_LINES {
            let address = Address(top.0 - frame * line);
            let at = now + took;
            let (access, within) = (Access::Write, Within::Elsewhere);
            took += self.core.memory.access(cpu, address, access, at, within);
        }
        took
    }
}
