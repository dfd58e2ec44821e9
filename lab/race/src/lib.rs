//! Races of compiled sched_ext schedulers: random events on a few CPUs, without a timeline, and
//! callbacks that are interrupted at each place where another CPU may come in.
//!
//! ```text
//! let race = Race { loaded: &loaded, cpus: 2, tasks: 4, steps: 40, only: &[] };
//! if let Some(found) = race.run(Seed(7))? {       // the same for the same seed, always
//!     println!("{}", race.story(&found)?);        // the shortest schedule, with source lines
//! }
//! ```
//!
//! **How a callback is interrupted.** A run of the interpreter is a value (registers, frames, where
//! it goes on, a stack): `warmq_bpf_run::Interrupted`. It comes back before each access to memory
//! that is not its stack, and before each call that depends on others. Where nobody asks for that,
//! the test for it is not compiled, so that the laboratory's runs are as fast as without.
//!
//! **How several share one memory.** Each has a stack of its own, which is in the guest's memory
//! only while that run goes on; maps, tasks and queues are there once. What the kernel knows of a
//! callback alone (may it insert, what has it inserted, iterators, kicks) goes in and out with it.
//!
//! **Which overlap.** The paths of `warmq_sched_ext::interleaved` take the locks of Linux 7.3, so
//! whatever these allow may happen: two callbacks under two run queues' locks, `select_cpu` beside
//! anything, timers and prctl beside everything.
//!
//! **What is used again.** State, dispatch queues, kfuncs, idle masks and layouts are those of
//! lab/sched-ext; the machine is the lab's, without its run loop.
//!
//! **Schedules.** A [`Plan`] is a list of steps: what happens on which CPU, and whether that path
//! is interrupted, where, and for how many steps. All that is not interrupted runs to its end at
//! once, so that no CPU waits for ever. A plan is made shorter by leaving out steps, and then
//! interruptions, as long as the same fault comes. It is drawn from the seed, step by step, among
//! what can happen; a step that cannot happen when it is played again does nothing.
//!
//! **Faults**: see [`Fault`]. Whether a CPU sleeps beside a task is looked at whenever nothing is
//! interrupted: it looks for a task, as it might at any time, and should find none. Some schedulers
//! leave a CPU idle on purpose, whatever others do meanwhile: [`Found::is_fault`].

#![deny(clippy::float_arithmetic)]
#![warn(missing_docs)]

mod draw;
mod fault;
mod plan;
mod play;
mod shrink;
mod stage;
mod story;

use warmq_kernel::BootError;
use warmq_sched_ext::Loaded;
use warmq_units::Seed;

pub use self::{
    draw::kinds,
    fault::Fault,
    plan::{Act, Hold, Plan, Setup, Step},
};
use crate::draw::Draw;
use crate::play::Play;

/// A scheduler, and how large the races are.
#[derive(Clone, Copy, Debug)]
pub struct Race<'l> {
    /// The scheduler.
    pub loaded: &'l Loaded,
    /// CPUs, all under one cache: 8 at most.
    pub cpus: u16,
    /// Tasks.
    pub tasks: u16,
    /// Steps of a plan.
    pub steps: usize,
    /// What happens, of [`kinds`]; all of them, if it is empty.
    pub only: &'l [String],
}

/// The most CPUs of a race.
pub const MOST_CPUS: u16 = 8;

/// A fault, and the shortest plan that was found to lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// What went wrong.
    pub fault: Fault,
    /// The seed of the plan that it was found with.
    pub seed: Seed,
    /// How many steps that had.
    pub steps: usize,
    /// The shortest one.
    pub plan: Plan,
}

impl Found {
    /// Whether something is wrong whatever the scheduler means to do. One that leaves a CPU asleep
    /// beside a task although nothing is interrupted may do so on purpose.
    pub fn is_fault(&self) -> bool {
        !matches!(self.fault, Fault::Asleep { raced: false, .. })
    }
}

impl Race<'_> {
    /// Plays the plan of a seed, and makes it short if it leads to a fault.
    ///
    /// # Errors
    /// If the scheduler cannot be attached.
    pub fn run(&self, seed: Seed) -> Result<Option<Found>, BootError> {
        let mut draw = Draw::new(seed, self);
        let mut play = Play::new(self, &draw.setup())?;
        let plan = play.draw(&mut draw);
        let Some(fault) = play.end() else {
            return Ok(None);
        };
        let steps = plan.steps.len();
        let plan = shrink::shortest(plan, |plan| self.leads_to(plan, &fault))?;
        let fault = self.play(&plan)?.unwrap_or(fault);
        Ok(Some(Found {
            fault,
            seed,
            steps,
            plan,
        }))
    }

    /// Whether a plan leads to a fault of the same kind.
    fn leads_to(&self, plan: &Plan, fault: &Fault) -> Result<bool, BootError> {
        let found = self.play(plan)?;
        Ok(found.is_some_and(|found| found.is_like(fault)))
    }

    /// Plays a plan.
    ///
    /// # Errors
    /// If the scheduler cannot be attached.
    pub fn play(&self, plan: &Plan) -> Result<Option<Fault>, BootError> {
        let mut play = Play::new(self, &plan.setup)?;
        play.all(plan);
        Ok(play.end())
    }

    /// What happens in the plan that was found, step by step, with source lines.
    ///
    /// # Errors
    /// If the scheduler cannot be attached.
    pub fn story(&self, found: &Found) -> Result<String, BootError> {
        story::tell(self, found)
    }
}
