//! Scheduling by data affinity, as a layer on top of another scheduler (docs/affinity.md).
//!
//! Purpose: the scheduler of the affinity paper. A task names the data that it is about to use, a
//! *fragment*. The tasks of a fragment are a *group*; a group has a *place*, a CPU or a last-level
//! cache, and its tasks run there, one after another if the base lets them. Which group is where,
//! and what moves, the rules of `warmq_affinity` decide; priorities, slices and all about tasks
//! that name nothing stay the base's. Groups may also be those of a process, of a cgroup, or
//! inferred from wakeups (`grouping`): what follows speaks of named data for all of them.
//!
//! ```text
//! task, CPU      kernel          Affinity<B>                              B: Base (o1, cfs, eevdf)
//! names data     set_fragment -> joins a group; elsewhere? reschedule
//! is woken       select_cpu   -> a CPU of its group's place             |  unmanaged: select_cpu
//! picks          pick_next    -> prev belongs elsewhere? send_away;     |  pick_next: of tasks that it
//!                                whose group is favoured                |  holds equal, the favoured one
//! balances       balance,     -> rules: a whole group, unmanaged tasks, |  nothing of that: balance, pull,
//!                pull            or a part of a group, by move_to       |  which leave groups where they are
//! ```
//!
//! The layer reaches its base by [`Base`] alone, and a base asks the layer by [`Steering`] alone:
//! which tasks its own balancing may take, and which it should prefer.
//!
//! It does badly
//! - where a group is larger than what its place can serve: the others idle until it is split;
//! - where fragments have little data, or tasks change them often: each change can cost a
//!   preemption and a migration, and nothing is saved;
//! - where hints are wrong: tasks that share nothing wait for one another.
//!
//! What the paper leaves open is said at each setting. Besides:
//! - A task that sleeps stays in its group, and so does one that was split off: only a change or
//!   its end takes it out.
//! - A task that may run nowhere at its group's place (affinity, offline CPUs) runs where the base
//!   likes, and counts there as one that cannot move.
//! - A group that moves is taken to the queue of the CPU that pulls. Under a cache with several
//!   CPUs the base spreads it from there.
//! - The map of fragments has no lock of its own here; the lines of groups and places are fetched
//!   and written, but nobody waits for another CPU that changes them.

mod balance;
mod base;
#[cfg(test)]
mod checks;
mod groups;
mod places;
mod settings;
mod statistics;
mod succession;

use warmq_affinity::rules::Groups;
use warmq_config::Chosen;
use warmq_kernel::{
    Attach, Balance, Callback, Context, Fragment, GroupId, Hint, Pick, Scheduler, Why,
};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, LockId, TaskId};

use crate::grouping::Grouping;

use self::balance::Looks;
pub(crate) use self::base::{Base, Steering};
use self::groups::Lines;
use self::places::Places;
use self::settings::Options;
pub(crate) use self::settings::settings;
pub(crate) use self::statistics::{STATISTICS, with_those_of_o1};
use self::succession::Turn;

/// The layer, and the scheduler under it.
///
/// Invariant: a managed task waits and runs at its group's place, but for one that may not run
/// there, and one that was queued while its group moved, until it has run.
pub(crate) struct Affinity<B> {
    base: B,
    options: Options,
    places: Places,
    grouping: Grouping,
    groups: Groups<Fragment, TaskId>,
    /// What each task has named last, as far as the layer knows.
    named: Vec<Option<Fragment>>,
    // Of each CPU.
    turns: Vec<Turn>,
    looks: Vec<Looks>,
    // Where in memory.
    lines: Lines,
    /// Tasks that were queued while their group moved.
    #[cfg(test)]
    late: std::collections::BTreeSet<TaskId>,
}

impl<B: Base> Affinity<B> {
    /// The layer on top of `base`.
    pub(crate) fn new(mut base: B, chosen: &Chosen, attach: &mut Attach<'_>) -> Affinity<B> {
        let options = Options::new(chosen);
        let places = Places::new(attach, options.place);
        let cpus = usize::from(attach.cpus());
        *base.steering() = Steering::new(&places, options.across);
        let line = attach.line();
        Affinity {
            base,
            options,
            grouping: Grouping::new(chosen),
            groups: Groups::default(),
            named: Vec::new(),
            turns: vec![Turn::default(); cpus],
            looks: vec![Looks::default(); cpus],
            lines: Lines::new((0..places.count()).map(|_| attach.data(Bytes(line)))),
            places,
            #[cfg(test)]
            late: Default::default(),
        }
    }
}

impl<B: Base> Scheduler for Affinity<B> {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.base.lock_for(cpu)
    }

    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        self.base.queues(callback, cpu)
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.admit(child);
        self.base.fork(context, parent, child);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.grouping.woken(context, task, why);
        if !self.grouping.is_declared() {
            self.notice(context, task);
        }
        match self.home(context, task) {
            Some(place) => self.select(context, task, place, why),
            None => self.base.select_cpu(context, task, why),
        }
    }

    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        match self.home(context, task) {
            Some(_) => self.select_cpu(context, task, Why::Fork),
            None => self.base.exec_cpu(context, task),
        }
    }

    fn leaves_wakeup(&mut self, context: &mut Context<'_>, task: TaskId, target: CpuId) -> bool {
        self.base.leaves_wakeup(context, task, target)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.count_wakeup(context, task, cpu);
        self.base.enqueue(context, task, cpu, why);
        #[cfg(test)]
        match self.belongs_elsewhere(context, task, cpu) {
            Some(_) => self.late.insert(task),
            None => self.late.remove(&task),
        };
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.base.wakeup_preempt(context, task, cpu, why);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.notice(context, task);
        self.base.dequeue(context, task);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let here = context.cpu();
        if let Some(prev) = prev.filter(|prev| context.task(*prev).is_runnable()) {
            self.notice(context, prev);
            if let Some(place) = self.belongs_elsewhere(context, prev, here) {
                let to = self.cpu_of(context, prev, place);
                self.base.send_away(prev, here, to);
            }
        }
        self.favour(context.now(), here);
        let pick = self.base.pick_next(context, prev);
        self.picked(context.now(), here, pick);
        #[cfg(test)]
        self.check(context);
        pick
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.base.unlocked(context);
    }

    fn switched(&mut self, context: &mut Context<'_>, prev: Option<TaskId>, next: Option<TaskId>) {
        self.base.switched(context, prev, next);
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.base.wants_put_prev(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        let from = self.base.queue_of(prev);
        self.base.put_prev(context, prev);
        if self.places.of(from) != self.places.of(self.base.queue_of(prev)) {
            self.count_migration(context, prev);
        }
        #[cfg(test)]
        self.check(context);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.base.tick(context, running);
        if let Some(running) = running {
            self.notice(context, running);
            self.preempt_for_change(context, running);
        }
        self.look_in_time(context, running.is_none());
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.base.yield_task(context, task)
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.base.set_weight(context, task);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.base.set_cpumask(context, task);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.base.cpu_offline(context, cpu);
    }

    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let from = self.look(context, when);
        self.looks[context.cpu().index()].found = from;
        from.or_else(|| self.base.balance(context, when))
    }

    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        let found = self.looks[context.cpu().index()].found.take();
        match found == Some(from) {
            true => self.pull_by_the_rules(context, from),
            false => self.base.pull(context, from, when),
        }
        #[cfg(test)]
        self.check(context);
    }

    fn keeps_balancing(&self, cpu: CpuId) -> bool {
        self.base.keeps_balancing(cpu)
    }

    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        self.base.timer(context, token);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.base.set_group_weight(context, group);
    }

    fn hint(&self) -> Hint {
        self.options.hint
    }

    fn set_fragment(&mut self, context: &mut Context<'_>, task: TaskId, _: Option<Fragment>) {
        self.notice(context, task);
        self.preempt_for_change(context, task);
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.name(context, task, None);
        self.grouping.exit(task, context.now());
        self.base.exit(context, task);
    }
}
