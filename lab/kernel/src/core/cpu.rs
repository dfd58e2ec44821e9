//! A CPU of the simulated machine, and where its time went.

use std::collections::VecDeque;

use warmq_units::{Duration, Instant, TaskId};

use crate::core::address_spaces::AddressSpaces;
use crate::core::interrupt::{PendingInterrupts, PendingSoftirqs};
use crate::core::net::Packet;
use crate::core::time::TimerOwner;
use crate::words::{Activity, BusyWait, CpuTime, Mode, Nic, Polled, Spinlock, Step, Why};

/// Whether a CPU was asked to pick again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum NeedResched {
    /// No.
    #[default]
    No,
    /// Before it returns to user mode, or at the next tick (`TIF_NEED_RESCHED_LAZY`).
    Lazy,
    /// As soon as the preemption model allows.
    Now,
}

/// A CPU.
///
/// Invariant: `stack` belongs to `current`, or to the idle task when that is `None`; the stacks of
/// all other tasks are kept in their task structures.
// In this order: what every step looks at comes first, so that it is in three lines of a host's
// cache.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Cpu {
    // Changed whenever the CPU's activity changes.
    pub(crate) activity: Activity,
    /// The event that ends a step carries this number; an event with an older number is void.
    pub(crate) generation: u32,
    /// Steps begun at `stepped_at`, the time of the latest step.
    pub(crate) steps_at_once: u32,
    pub(crate) stepped_at: Instant,

    // Changed only by the switch.
    pub(crate) stack: Vec<Step>,
    pub(crate) current: Option<TaskId>,

    // Changed by locks and interrupts; all are zero whenever a program runs.
    pub(crate) irq_off: u32,
    pub(crate) irq_depth: u32,
    pub(crate) softirq_depth: u32,
    /// True from the call of `schedule()` until its switch is over.
    pub(crate) in_schedule: bool,
    /// It is to wait for another CPU before it goes on.
    pub(crate) is_to_wait: Option<BusyWait>,

    // Changed when interrupts and softirqs are raised, and by their handlers.
    pub(crate) softirqs: PendingSoftirqs,
    pub(crate) interrupts: PendingInterrupts,

    /// Set while the current task may have something to do before it goes on in user mode
    /// (`TIF_SIGPENDING`, `TIF_NOTIFY_RESUME`).
    pub(crate) has_work: bool,
    /// It was interrupted in a halt, and is not out of that yet.
    pub(crate) leaves_halt: bool,
    /// The spin lock of user space that its task looks at while the step in progress lasts.
    pub(crate) looks_at: Option<Spinlock>,
    /// True while it is recorded as idle.
    pub(crate) shown_idle: bool,
    /// It runs user code, or has done so since the kernel was entered last.
    pub(crate) in_user: bool,
    /// The outermost interrupt came while it ran user code.
    pub(crate) interrupted_user: bool,
    /// Set by requests to reschedule, cleared by the pick.
    pub(crate) need_resched: NeedResched,

    // Changed only where siblings share a core:
    /// True while the CPU is not idle.
    pub(crate) occupies_core: bool,
    /// True while a sibling is not idle.
    pub(crate) shares_core: bool,

    /// The time of the next tick; changed by the timer, by idling and by going offline.
    pub(crate) next_tick: Instant,
    pub(crate) spent: ModeTimes,

    // Changed only by the pick, under the locks of this CPU's queue:
    /// The task that was picked last; differs from `current` only between a pick and its switch.
    pub(crate) chosen: Option<TaskId>,

    // Changed only by the switch.
    /// The idle task's stack while a task runs.
    pub(crate) idle_stack: Vec<Step>,
    pub(crate) last_switch: Instant,
    pub(crate) address_spaces: AddressSpaces,
    /// The value of `spent` when `current` was switched in.
    pub(crate) spent_before: ModeTimes,
    /// What the idle task did besides idling, up to the last switch away from it.
    pub(crate) idle_task: CpuTime,

    /// For how long it is taken away by the interrupt that is pending for that.
    pub(crate) to_steal: Duration,
    /// Timers that expired and whose interrupt is pending.
    pub(crate) expired: VecDeque<TimerOwner>,
    /// What waits to be polled here, in turn; the interrupts of cards in it are masked.
    pub(crate) poll_list: VecDeque<Polled>,
    /// Packets of cards that are not polled, with their cards (`softnet_data.input_pkt_queue`).
    pub(crate) backlog: VecDeque<(Nic, Packet)>,

    /// Tasks that other CPUs woke and left to this one, by when (`rq->ttwu_pending`, and the queue
    /// of calls that it announces).
    pub(crate) wake_list: Vec<(TaskId, Why)>,

    // Changed by the timer, by idling and by going offline:
    /// The time of the first tick, even if it was stopped: all others follow at whole periods.
    pub(crate) first_tick: Instant,
    /// True while the CPU is idle or offline and its tick is stopped.
    pub(crate) tick_stopped: bool,
    /// True if this CPU's next tick is in the timeline.
    pub(crate) tick_pending: bool,
    pub(crate) online: bool,
}

/// Time by [`Mode`].
pub(crate) type ModeTimes = [Duration; Mode::ALL.len()];

impl Cpu {
    pub(crate) fn new() -> Cpu {
        Cpu {
            online: true,
            ..Cpu::default()
        }
    }

    #[inline]
    pub(crate) fn takes_interrupts(&self) -> bool {
        self.irq_off == 0 && self.irq_depth == 0
    }

    /// Whether this CPU may switch tasks now.
    #[inline]
    pub(crate) fn may_schedule(&self) -> bool {
        let held = self.softirq_depth > 0 || self.in_schedule;
        self.takes_interrupts() && !held
    }

    /// How this CPU waits for another one now, if it is to.
    #[inline]
    pub(crate) fn waits_now(&self) -> Option<BusyWait> {
        let may = self.takes_interrupts() && !self.in_schedule;
        self.is_to_wait.filter(|_| may)
    }

    /// Whether this CPU does nothing but wait for another one.
    pub(crate) fn waits_busily(&self) -> bool {
        let waits = matches!(self.stack.last(), Some(Step::BusyWait(_)));
        waits && self.activity.mode == Mode::Spin
    }

    /// Counts one more step at `now`; returns how many there have been at this time.
    #[inline]
    pub(crate) fn count_step(&mut self, now: Instant) -> u32 {
        if self.stepped_at != now {
            self.stepped_at = now;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        self.steps_at_once
    }

    /// Charges the time up to `now` to the CPU's current mode.
    pub(crate) fn charge(&mut self, now: Instant) {
        self.spent[self.activity.mode as usize] += now - self.activity.since;
        self.activity.since = now;
    }

    /// The CPU time of `current` since it was switched in, up to the last charge.
    pub(crate) fn of_current(&self) -> CpuTime {
        let since = |mode: Mode| self.spent[mode as usize] - self.spent_before[mode as usize];
        CpuTime {
            user: since(Mode::User),
            system: since(Mode::System) + since(Mode::Spin),
        }
    }

    /// Puts something on the poll list, unless it is there: there is one backlog.
    pub(crate) fn will_poll(&mut self, polled: Polled) {
        if polled != Polled::Backlog || !self.poll_list.contains(&polled) {
            self.poll_list.push_back(polled);
        }
    }

    /// Stops the tick until [`Cpu::next_tick`] is set again.
    pub(crate) fn stop_tick(&mut self) {
        self.tick_stopped = true;
        self.next_tick = Instant(u64::MAX);
    }

    /// The remaining time of the step in progress.
    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.activity
            .until
            .map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Interrupts the step in progress; the remaining time, `left`, goes back on the stack.
    pub(crate) fn put_down(&mut self, now: Instant, left: Duration) {
        let mode = self.activity.mode;
        if left > Duration::ZERO {
            let user = mode == Mode::User;
            self.stack.push(Step::Busy { left, user });
        }
        self.turn_to(now, mode, None);
    }

    /// Changes the CPU's activity at `now`.
    pub(crate) fn turn_to(&mut self, now: Instant, mode: Mode, until: Option<Instant>) {
        self.charge(now);
        self.activity = Activity {
            mode,
            since: now,
            until,
        };
        self.in_user |= mode == Mode::User;
        self.generation = self.generation.wrapping_add(1);
    }
}
