//! A CPU of the simulated machine, and where its time went.

use std::collections::VecDeque;

use warmq_units::{Duration, Instant, TaskId};

use crate::operation::Nic;
use crate::step::{Activity, Mode, Step};

/// A CPU.
///
/// Invariant: `stack` belongs to `current`, or to the idle task when that is `None`; the stacks
/// of all other tasks lie with them.
pub(crate) struct Cpu {
    // Changed only by the pick, under the lock of this CPU's queue.
    /// Who was picked last: `current`, but between a pick and its switch.
    pub(crate) chosen: Option<TaskId>,

    // Changed only by the switch.
    pub(crate) current: Option<TaskId>,
    pub(crate) stack: Vec<Step>,
    /// The idle task's stack while a task runs.
    pub(crate) idle_stack: Vec<Step>,
    pub(crate) last_switch: Instant,

    // Changed by locks and interrupts; both are zero whenever a program runs.
    pub(crate) irq_off: u32,
    pub(crate) irq_depth: u32,
    pub(crate) interrupts: VecDeque<PendingInterrupt>,

    /// Set by whoever wants this CPU to pick again, cleared by the pick.
    pub(crate) need_resched: bool,

    /// When the timer interrupts next; changed by the timer.
    pub(crate) next_tick: Instant,

    // Changed whenever the CPU turns to something else.
    pub(crate) activity: Activity,
    /// Steps end by an event that carries this number; an older one is void.
    pub(crate) generation: u32,
    pub(crate) spent: [Duration; 5],
    /// Steps since `stepped_at`, the last time at which there were any.
    pub(crate) steps_at_once: u32,
    pub(crate) stepped_at: Instant,
}

/// An interrupt that waits for its CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PendingInterrupt {
    Tick,
    Reschedule,
    Network(Nic),
    Timer(TaskId),
}

impl Cpu {
    pub(crate) fn new() -> Cpu {
        Cpu {
            chosen: None,
            current: None,
            stack: Vec::new(),
            idle_stack: Vec::new(),
            last_switch: Instant::START,
            irq_off: 0,
            irq_depth: 0,
            interrupts: VecDeque::new(),
            need_resched: false,
            next_tick: Instant::START,
            activity: Activity {
                mode: Mode::Idle,
                since: Instant::START,
                until: None,
            },
            generation: 0,
            spent: [Duration::ZERO; 5],
            steps_at_once: 0,
            stepped_at: Instant::START,
        }
    }

    pub(crate) fn takes_interrupts(&self) -> bool {
        self.irq_off == 0 && self.irq_depth == 0
    }

    /// Counts one more step at `now`; returns how many there were at this time.
    #[inline]
    pub(crate) fn count_step(&mut self, now: Instant) -> u32 {
        if self.stepped_at != now {
            self.stepped_at = now;
            self.steps_at_once = 0;
        }
        self.steps_at_once += 1;
        self.steps_at_once
    }

    /// Charges the time up to `now` to what the CPU did, and starts counting anew.
    pub(crate) fn charge(&mut self, now: Instant) {
        self.spent[self.activity.mode as usize] += now - self.activity.since;
        self.activity.since = now;
    }

    /// From `now` on the CPU does something else.
    pub(crate) fn turn_to(&mut self, now: Instant, mode: Mode, until: Option<Instant>) {
        self.charge(now);
        self.activity = Activity {
            mode,
            since: now,
            until,
        };
        self.generation = self.generation.wrapping_add(1);
    }
}
