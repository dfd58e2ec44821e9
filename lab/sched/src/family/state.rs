//! What every scheduler of the family keeps besides its queues: where structures lie, slices, the
//! kernel's variables, and costs.

use warmq_config::{Chosen, Setting, settings};
use warmq_kernel::{Attach, Context, Mm, UnknownCost};
use warmq_machine::Access;
use warmq_units::{CpuId, Cycles, Duration, TaskId};

use super::directory::Directories;
use super::globals::Globals;
use super::goodness::Candidate;
use super::layout::{self, Layout};
use super::slices::Slices;

/// What can be set on every scheduler of the family.
pub(crate) fn settings() -> Vec<Setting> {
    let mut settings = layout::settings();
    settings.extend(settings! {
        "pde", flag(true),
            "whether the walk's TLB misses read the page directory of the process on the CPU",
            "coloring paper's machines: 8 TLB entries for the kernel's pages of 4 MB";
        "share", flag(false),
            "whether a fork halves the ticks that the parent has left; in 2.4.4 alone the child got all",
            "Linux 2.4: shared up to 2.4.3 and from 2.4.5 on";
        "recalculates_after", duration((Duration::ZERO, Duration::from_s(100)), Duration::ZERO),
            "when time starts, tasks have so many ticks left that this passes before all slices are \
             computed anew; 0: whole slices",
            "ours: recalculations are seconds apart, and a short run should contain one as a long one does";
        "lockmeter", flag(false),
            "whether Lockmeter is compiled in, which touches a lock's word twice more while it is held",
            "Lockmeter 1.5";
    });
    settings
}

/// The part of a scheduler's state that does not depend on how it queues.
pub(crate) struct Common {
    pub(crate) layout: Layout,
    pub(crate) globals: Globals,
    pub(crate) slices: Slices,
    /// Where the TLB's misses read; nothing where they are not modelled.
    directories: Option<Directories>,
    /// Whose address space each CPU has loaded: that of the last task that had one.
    active_mm: Vec<Option<Mm>>,
    /// How long the ticks of those who are there at the first pick are to last; nothing after it.
    recalculates_after: Option<Duration>,
    /// Tasks in the run queues (`nr_running`).
    queued: u32,
    /// `schedule()` but for the walk.
    fixed: Cycles,
    /// One visit of the walk, but for its misses.
    visit: Cycles,
    wakeup: Cycles,
}

/// What a callback works with: what the family has in common, and the CPU that it runs on.
pub(crate) struct Here<'a, 'k> {
    pub(crate) common: &'a mut Common,
    pub(crate) context: &'a mut Context<'k>,
}

impl Common {
    pub(crate) fn new(attach: &mut Attach<'_>, chosen: &Chosen) -> Result<Common, UnknownCost> {
        let layout = Layout::new(attach, chosen);
        let current = match layout.is_colored() {
            true => attach.cost("current_colored")?,
            false => Cycles(0),
        };
        if chosen.flag("lockmeter") {
            attach.lockmeter();
        }
        let cpus = attach.cpus();
        Ok(Common {
            layout,
            globals: Globals::new(attach),
            slices: Slices::new(attach, chosen)?,
            directories: chosen.flag("pde").then(|| Directories::new(cpus)),
            active_mm: vec![None; usize::from(cpus)],
            recalculates_after: Some(chosen.duration("recalculates_after"))
                .filter(|span| *span > Duration::ZERO),
            queued: 0,
            fixed: attach.cost("schedule_fixed")? + current,
            visit: attach.cost("goodness")?,
            wakeup: attach.cost("wakeup")?,
        })
    }

    /// The address space that `cpu` has loaded; a kernel thread and the idle task borrow it.
    pub(crate) fn active_mm(&self, cpu: CpuId) -> Option<Mm> {
        self.active_mm[cpu.index()]
    }

    /// What `task`'s goodness on `cpu` depends on, after the task that has it now.
    #[inline]
    pub(crate) fn candidate(&self, context: &Context<'_>, task: TaskId, cpu: CpuId) -> Candidate {
        self.slices
            .candidate(context, task, cpu, self.active_mm(cpu))
    }

    /// What `task` is worth on this CPU, after the task that has it now.
    #[inline]
    pub(crate) fn goodness(&self, context: &Context<'_>, task: TaskId) -> i32 {
        self.candidate(context, task, context.cpu()).goodness()
    }

    fn load(&mut self, cpu: CpuId, mm: Mm) {
        self.active_mm[cpu.index()] = Some(mm);
        if let Some(directories) = &mut self.directories {
            directories.load(cpu, Some(mm));
        }
    }
}

impl Here<'_, '_> {
    pub(crate) fn fork(&mut self, parent: Option<TaskId>, child: TaskId) {
        self.common.layout.place(self.context, child);
        self.common.slices.fork(self.context, parent, child);
        let mm = self.context.task(child).mm();
        if let Some(mm) = mm {
            self.common.globals.admit(self.context, mm);
        }
        if let Some(directories) = &mut self.common.directories {
            directories.admit(self.context, mm);
        }
        if parent.is_some_and(|parent| self.common.slices.counter(parent) == 0) {
            self.context.reschedule(self.context.cpu());
        }
    }

    /// `schedule()` reads what it must know of `prev` and clears its `need_resched`.
    pub(crate) fn begin(&mut self, prev: Option<TaskId>) {
        if let Some(span) = self.common.recalculates_after.take() {
            self.common.slices.leave_ticks(span, self.context.cpus());
        }
        self.context.compute(self.common.fixed);
        if let Some(prev) = prev {
            self.context
                .touch(self.common.layout.hot(prev), Access::Read);
        }
        let flag = match prev {
            Some(prev) => self.common.layout.state(prev),
            None => self.common.globals.idle_task(self.context.cpu(), 0),
        };
        self.context.touch(flag, Access::Write);
    }

    /// One visit of a walk: whether `task` can run here now. The line of `ahead` is on its way
    /// while goodness() is computed (Sears's prefetch).
    #[inline]
    pub(crate) fn visit(&mut self, task: TaskId, ahead: Option<TaskId>) -> bool {
        let hot = self.common.layout.hot(task);
        if let Some(directories) = &mut self.common.directories {
            directories.translate(self.context, hot);
        }
        self.context.touch(hot, Access::Read);
        if let Some(ahead) = ahead {
            self.context.prefetch(self.common.layout.hot(ahead));
        }
        self.context.compute(self.common.visit);
        let (view, cpu) = (self.context.task(task), self.context.cpu());
        view.on_cpu().is_none_or(|there| there == cpu) && view.may_run_on(cpu)
    }

    /// `curr`, `has_cpu` and `processor`: this CPU has picked `next`. One that gave way and is
    /// picked all the same has done its duty.
    pub(crate) fn picked(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        let cpu = self.context.cpu();
        self.context
            .touch(self.common.globals.cpu(cpu), Access::Write);
        let line = match next {
            Some(next) => self.common.layout.hot(next),
            None => self.common.globals.idle_task(cpu, 1),
        };
        self.context.touch(line, Access::Write);
        if let Some(prev) = prev.filter(|_| prev == next) {
            self.common.slices.forget_yield(prev);
        }
    }

    /// What follows the switch, without the lock: times, address spaces, registers, and `prev` is
    /// free for others.
    pub(crate) fn switched(&mut self, prev: Option<TaskId>, next: Option<TaskId>) {
        let cpu = self.context.cpu();
        let from = self.common.active_mm(cpu);
        let to = next.and_then(|next| self.context.task(next).mm());
        self.common.globals.count_switch(self.context, from, to);
        if let Some(to) = to.filter(|to| Some(*to) != from) {
            self.common.load(cpu, to);
        }
        if let Some(next) = next {
            self.context
                .touch(self.common.layout.hot(next), Access::Read);
            self.context
                .touch(self.common.layout.thread(next), Access::Read);
        }
        if let Some(prev) = prev {
            self.common.slices.forget_yield(prev);
            self.context
                .touch(self.common.layout.links(prev), Access::Read);
            self.context
                .touch(self.common.layout.thread(prev), Access::Write);
            self.context
                .touch(self.common.layout.hot(prev), Access::Write);
            self.context
                .touch(self.common.layout.state(prev), Access::Read);
        }
    }

    /// A task joins a queue: what waking it costs, but for its place there.
    pub(crate) fn joins(&mut self, task: TaskId) {
        self.context.compute(self.common.wakeup);
        self.context
            .touch(self.common.layout.state(task), Access::Write);
        self.common.queued += 1;
        self.common.globals.count_running(self.context);
        self.common.slices.forget_yield(task);
    }

    /// `task` leaves the queues.
    pub(crate) fn leaves(&mut self) {
        self.common.queued -= 1;
        self.common.globals.count_running(self.context);
        self.common.globals.read_jiffies(self.context);
    }

    /// `sched_yield()`. Returns whether somebody waits for `task` to give way.
    pub(crate) fn yields(&mut self, task: TaskId) -> bool {
        self.common.globals.read_running(self.context);
        let busy = (0..self.context.cpus()).filter(|cpu| !is_idle(self.context, CpuId(*cpu)));
        let waits = somebody_waits(self.common.queued, busy.count() as u32);
        if waits {
            self.context
                .touch(self.common.layout.hot(task), Access::Write);
            self.context
                .touch(self.common.layout.state(task), Access::Write);
            self.common.slices.yields(self.context, task);
        }
        waits
    }

    pub(crate) fn tick(&mut self, running: Option<TaskId>) {
        self.common.globals.count_tick(self.context);
        let Some(running) = running else { return };
        self.context
            .touch(self.common.layout.hot(running), Access::Write);
        if self.common.slices.charge_tick(running) {
            self.context
                .touch(self.common.layout.state(running), Access::Write);
            self.context.reschedule(self.context.cpu());
        }
    }

    /// All tasks of the system get new slices; `tasklist_lock` is held for reading, no other.
    pub(crate) fn recalculate(&mut self) {
        self.common.globals.lock_tasklist(self.context);
        self.common
            .slices
            .recalculate(self.context, &self.common.layout);
        self.common.globals.lock_tasklist(self.context);
    }
}

/// Whether more tasks are runnable than run: `nr_running` less the busy CPUs.
fn somebody_waits(queued: u32, busy: u32) -> bool {
    queued > busy
}

/// `prev`, if it does not sleep.
pub(crate) fn still_runnable(context: &Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
    prev.filter(|prev| context.task(*prev).is_runnable())
}

/// `prev`, if it could go on here.
pub(crate) fn may_go_on(context: &Context<'_>, prev: Option<TaskId>) -> Option<TaskId> {
    still_runnable(context, prev).filter(|prev| context.task(*prev).may_run_on(context.cpu()))
}

/// True when nobody but the idle task is on `cpu`.
pub(crate) fn is_idle(context: &Context<'_>, cpu: CpuId) -> bool {
    context.running_on(cpu).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decision case 11 of the coloring paper's specification.
    #[test]
    fn a_yield_with_nobody_waiting_does_nothing() {
        assert!(!somebody_waits(4, 4));
        assert!(somebody_waits(5, 4));
    }
}
