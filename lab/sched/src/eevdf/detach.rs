//! Which tasks a CPU gives to one that pulls (`detach_tasks()`, `can_migrate_task()`).

use warmq_kernel::{Context, Policy};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::balance::{Idleness, Pull};
use super::queueing::Leaving;
use super::standing::Amount;
use super::state::State;

/// What a queue can give.
pub(super) struct Offer {
    pub(super) tasks: Vec<TaskId>,
    /// Those that were looked at and stay.
    pub(super) refused: Vec<TaskId>,
    /// What is still to be pulled.
    pub(super) left: Amount,
    /// None of those that were looked at may run on the CPU that asks (`LBF_ALL_PINNED`).
    pub(super) all_pinned: bool,
    /// One of them may not (`LBF_SOME_PINNED`).
    pub(super) some_pinned: bool,
    /// A CPU of the own group where one of them may run that may not on the one that asks
    /// (`LBF_DST_PINNED`).
    pub(super) elsewhere: Option<CpuId>,
    /// One of them stays for the sake of a cache (`LBF_LLC_PINNED`).
    pub(super) held: bool,
}

/// Why a task stays.
pub(super) enum Stays {
    /// It may not run on the CPU that asks.
    Pinned,
    /// It stays for the sake of a cache.
    Held,
    /// It may, but not now.
    NotNow,
    /// It is not even asked.
    Unasked,
}

impl Offer {
    /// The same, after another attempt with these flags (held, all pinned, some pinned).
    pub(super) fn with(self, (held, all_pinned, some_pinned): (bool, bool, bool)) -> Offer {
        Offer {
            held: self.held | held,
            all_pinned: self.all_pinned & all_pinned,
            some_pinned: self.some_pinned | some_pinned,
            ..self
        }
    }
}

impl State {
    /// What can be pulled from the queue of `from` (`detach_tasks()`): from the task that was
    /// queued or picked longest ago, of at most so many as run there.
    pub(super) fn offer(&mut self, context: &mut Context<'_>, from: CpuId, pull: &Pull) -> Offer {
        let mut offer = Offer {
            tasks: Vec::new(),
            refused: Vec::new(),
            left: pull.amount,
            all_pinned: true,
            some_pinned: false,
            elsewhere: None,
            held: false,
        };
        let mut remaining = self.nr_running(from);
        if remaining <= 1 {
            offer.all_pinned = false;
            return offer;
        }
        let failed = self.cpu(pull.here).domains[pull.domain].failed;
        let most = self.rules.nr_migrate.min(remaining as usize);
        let all: Vec<TaskId> = self.cpu(from).recency.iter().copied().take(most).collect();
        for task in all {
            let keeps_one = remaining <= 1 && pull.idleness != Idleness::Busy;
            if offer.left.is_nothing() || keeps_one {
                break;
            }
            let entity = self.entity_of(task);
            context.touch(self.entities[entity].node, Access::Read);
            let (load, util) = (self.load_of(task), self.util_of(entity));
            let may_go = self.can_migrate(context, task, from, pull);
            let stays = matches!(pull.amount, Amount::Misfit(_)) && self.fits(task, from);
            self.note(context, (task, pull), &may_go, &mut offer);
            if may_go.is_err() || stays || !offer.left.takes(load, util, failed) {
                offer.refused.push(task);
                continue;
            }
            offer.tasks.push(task);
            remaining -= 1;
            if pull.idleness == Idleness::NewlyIdle {
                break;
            }
        }
        offer
    }

    /// What an answer says of the whole queue.
    fn note(
        &self,
        context: &Context<'_>,
        (task, pull): (TaskId, &Pull),
        may_go: &Result<(), Stays>,
        offer: &mut Offer,
    ) {
        match may_go {
            Err(Stays::Pinned) => {
                offer.some_pinned = true;
                offer.elsewhere = offer
                    .elsewhere
                    .or_else(|| self.elsewhere(context, task, pull));
            }
            Err(Stays::Unasked) => {}
            Err(Stays::Held) => (offer.held, offer.all_pinned) = (true, false),
            Ok(()) | Err(Stays::NotNow) => offer.all_pinned = false,
        }
    }

    /// Moves what was offered, under the locks of both queues. A CPU that is about to idle does not
    /// idle then.
    pub(super) fn detach(&mut self, context: &mut Context<'_>, offer: &Offer, pull: &Pull) {
        for task in &offer.tasks {
            self.deactivate(*task, Leaving::Moves);
            match pull.idleness {
                Idleness::NewlyIdle => self.cpu_mut(pull.to).idle_since = None,
                Idleness::Busy | Idleness::Idle => self.end_idling(pull.to),
            }
            self.arrive(context, *task, pull.to);
        }
    }

    /// Tasks that stayed come last the next time.
    pub(super) fn put_behind(&mut self, cpu: CpuId, refused: &[TaskId]) {
        let recency = &mut self.cpu_mut(cpu).recency;
        recency.retain(|task| !refused.contains(task));
        recency.extend(refused);
    }

    /// The tasks that wait on `cpu`, that which had it longest ago first. Delayed ones are not
    /// among them.
    pub(super) fn waiting(&self, cpu: CpuId) -> Vec<TaskId> {
        let there = self.cpu(cpu);
        let all = there.recency.iter().copied();
        all.filter(|task| there.current != Some(*task)).collect()
    }

    /// Whether `task` may be pulled from `from` (`can_migrate_task()`).
    fn can_migrate(
        &mut self,
        context: &Context<'_>,
        task: TaskId,
        from: CpuId,
        pull: &Pull,
    ) -> Result<(), Stays> {
        let (to, view) = (pull.to, context.task(task));
        let failed = self.cpu(pull.here).domains[pull.domain].failed;
        self.may_ask(context, task, to, failed)?;
        if !view.may_run_on(to) {
            return Err(Stays::Pinned);
        }
        if !self.steering.lets_move(task, from, to) {
            return Err(Stays::Unasked);
        }
        if view.on_cpu().is_some() {
            return Err(Stays::NotNow);
        }
        let drawn = matches!(pull.amount, Amount::Drawn(_));
        if self.is_held(task, from, (pull.here, pull.domain), drawn) {
            return Err(match drawn {
                true => Stays::NotNow,
                false => Stays::Held,
            });
        }
        let level = self.cpu(pull.here).domains[pull.domain].level;
        let is_hot = !level.shares_core && self.is_hot(task, from, to);
        match is_hot && failed <= level.cache_nice_tries {
            true => Err(Stays::NotNow),
            false => Ok(()),
        }
    }

    /// What keeps a task from being asked at all: it owes time, its group is out of quota on `to`,
    /// or it is a kernel thread of its CPU.
    pub(super) fn may_ask(
        &self,
        context: &Context<'_>,
        task: TaskId,
        to: CpuId,
        failed: u32,
    ) -> Result<(), Stays> {
        let view = context.task(task);
        let owes = self.rules.ineligible_stay && failed == 0 && self.owes_at(task, to);
        let is_bound = view.allowed().is_some_and(|cpus| cpus.len() == 1);
        let is_of_its_cpu = view.is_kernel_thread() && is_bound;
        // lb_throttled_hierarchy(), kthread_is_per_cpu()
        match owes || context.is_throttled(task, to) || is_of_its_cpu {
            true => Err(Stays::Unasked),
            false => Ok(()),
        }
    }

    /// Another CPU of the group of the one that balances where `task` may run, in number order. One
    /// that is about to idle does not look for others.
    fn elsewhere(&self, context: &Context<'_>, task: TaskId, pull: &Pull) -> Option<CpuId> {
        if pull.idleness == Idleness::NewlyIdle {
            return None;
        }
        let own = &self.cpu(pull.here).domains[pull.domain].groups[0].balances;
        let mut others = own.iter().copied();
        others.find(|cpu| {
            let is_new = *cpu != pull.to && !pull.tried.contains(cpu);
            is_new && context.is_online(*cpu) && context.task(task).may_run_on(*cpu)
        })
    }

    /// Whether `task` owes time, and would on `to`, where others of its group are
    /// (`task_is_ineligible_on_dst_cpu()`).
    fn owes_at(&self, task: TaskId, to: CpuId) -> bool {
        let entity = self.entity_of(task);
        let there = self.timeline_of(self.counterpart(self.entities[entity].queue, to));
        self.rules.place_lag && self.queues[there].entities > 0 && !self.is_eligible(entity)
    }

    /// Whether the data of a task are likely to be still in the cache (`task_hot()`): it ran a
    /// moment ago, or is to be picked next.
    fn is_hot(&self, task: TaskId, from: CpuId, to: CpuId) -> bool {
        if self.task(task).class.is_urgent() || self.task(task).class.policy() == Policy::Idle {
            return false;
        }
        let entity = self.entity_of(task);
        let buddy = self.queues[self.timeline(entity)].buddy;
        if self.nr_running(to) > 0 && buddy == Some(entity) {
            return true;
        }
        self.cpu(from).clock - self.entities[entity].charged_at < self.rules.migration_cost
    }
}
