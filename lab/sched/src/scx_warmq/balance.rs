//! Balance: whole groups move, at first none that runs. Where no group can move, unmanaged tasks
//! do. If the queue of a group has not been empty for long, it moves although it runs, or is split
//! if it is too large. A CPU that would go idle balances for itself; a timer balances among busy
//! places.

use warmq_decide::{self as decide, Domain, Reach, Relief};
use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::queue::Waiting;
use super::state::{BALANCE_INTERVAL, EntityId, State, ns};

/// What should be done for a calm place.
#[derive(Clone, Copy)]
enum Remedy {
    MoveGroup(usize),
    MoveUnmanaged { from: usize },
    SplitGroup(usize),
}

/// At how many tasks of a queue `help_late` looks.
const LATE_LOOKS: usize = 8;
/// How often queued tasks are clamped, and those that are late helped, in rounds of the balance
/// timer.
const CLAMPS_EVERY: u64 = 16;

impl State {
    /// Takes work from elsewhere for a CPU without any. Whatever waits in the own node comes before
    /// all that waits in others.
    pub(super) fn pull(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let near = self.pull_from(context, false);
        let several = self.topology.nodes() > 1;
        near.or_else(|| several.then(|| self.pull_from(context, true)).flatten())
    }

    fn pull_from(&mut self, context: &mut Context<'_>, far: bool) -> Option<TaskId> {
        let pulled = match self.groups.is_empty() {
            true => None,
            false => self.pull_for_place(context, far),
        };
        pulled.or_else(|| self.pull_unmanaged(context, far))
    }

    fn pull_for_place(&mut self, context: &mut Context<'_>, far: bool) -> Option<TaskId> {
        let here = self.topology.place_of(context.cpu());
        match self.remedy_for(context, here, true, far)? {
            Remedy::MoveGroup(group) => {
                if self.leaves_it_to_another(context, here) {
                    return None;
                }
                let entity = self.groups[group].entity;
                self.rehome(context, group, here);
                let task = self.first_of(context, entity);
                self.wake_for(context, group, usize::from(task.is_some()));
                task
            }
            Remedy::MoveUnmanaged { from } => self.take_unmanaged(context, from),
            Remedy::SplitGroup(group) => self.take_out(context, self.groups[group].entity),
        }
    }

    /// Takes an unmanaged task of another domain.
    fn take_unmanaged(&mut self, context: &mut Context<'_>, from: usize) -> Option<TaskId> {
        self.take_out(context, self.unmanaged(from))
    }

    /// Takes the first task that can run here out of the queue of `entity`.
    fn take_out(&mut self, context: &mut Context<'_>, entity: EntityId) -> Option<TaskId> {
        let task = self.first_of(context, entity)?;
        self.unqueue(context, task);
        Some(task)
    }

    /// Takes a waiting unmanaged task of the nearest other domain of the node or, `far`, of another
    /// for a CPU without work.
    fn pull_unmanaged(&mut self, context: &mut Context<'_>, far: bool) -> Option<TaskId> {
        let here = self.topology.domain_of(context.cpu());
        let reach = |other| self.topology.reach(here, other);
        let near = self.topology.near(here)[1..].iter().copied();
        let others = near.filter(|other| (reach(*other) == Reach::OtherNode) == far);
        let others: Vec<usize> = others.collect();
        others
            .into_iter()
            .find_map(|from| self.take_unmanaged_if_any(context, from, here))
    }

    fn take_unmanaged_if_any(
        &mut self,
        context: &mut Context<'_>,
        from: usize,
        to: usize,
    ) -> Option<TaskId> {
        context.touch(self.entities[self.unmanaged(from)].line, Access::Read);
        match self.gives_to(from, to, ns(context)) {
            true => self.take_unmanaged(context, from),
            false => None,
        }
    }

    /// Whether an idle CPU of domain `to` takes unmanaged tasks that wait in another.
    fn gives_to(&self, from: usize, to: usize, now: u64) -> bool {
        let near = self.topology.reach(from, to) != Reach::OtherNode;
        let waits = !self.entities[self.unmanaged(from)].queue.is_empty();
        waits && (near || self.gives_far(from, now))
    }

    /// Takes an unmanaged task of a busier domain, if the timer asked this one to.
    pub(super) fn pull_requested(&mut self, context: &mut Context<'_>) -> Option<TaskId> {
        let domain = self.topology.domain_of(context.cpu());
        let from = self.domains[domain].pull_from.take()?;
        self.take_unmanaged(context, from)
    }

    /// Whether anything waits at `place` that could go to `calm`.
    fn has_to_give(&self, place: usize, calm: usize, now: u64) -> bool {
        let mut groups = self.places[place].groups.iter();
        self.unmanaged_to_give(place, calm, now) > 0 || groups.any(|it| self.has_queued(*it))
    }

    /// The busiest of the places of the node of `calm` or, `far`, of the others that have something
    /// to give; `calm` itself if there is none.
    fn busiest_place(&self, calm: usize, far: bool, now: u64) -> usize {
        let giving = self.topology.places();
        let giving = giving
            .filter(|it| *it != calm && self.topology.is_far(*it, calm) == far)
            .filter(|it| self.has_to_give(*it, calm, now));
        let busier = |most, place| match self.is_less_loaded(most, place) {
            true => place,
            false => most,
        };
        giving.reduce(busier).unwrap_or(calm)
    }

    /// The best home of a node.
    fn calmest_place(&self, node: usize, now: u64) -> usize {
        let calmer = |least, place| {
            if self.is_calmer(place, least, now) {
                place
            } else {
                least
            }
        };
        let places = self.topology.places();
        let places = places.filter(|it| self.topology.node_of_place(*it) == node);
        places.reduce(calmer).unwrap_or(0)
    }

    /// What should be done for the place `calm`, if anything, with what is of its node or, `far`,
    /// of the others. `idle`: for a CPU of it that has no work, so that what the others there do
    /// does not count.
    fn remedy_for(
        &mut self,
        context: &mut Context<'_>,
        calm: usize,
        idle: bool,
        far: bool,
    ) -> Option<Remedy> {
        let now = ns(context);
        for place in self.topology.places() {
            self.read_load(context, place);
        }
        let busy = self.busiest_place(calm, far, now);
        let (load, many) = (self.load_of_place(busy), self.place_cpus(busy));
        let (least, few) = match idle {
            true => (0, 1),
            false => (self.load_of_place(calm), self.place_cpus(calm)),
        };
        let too_much = decide::imbalanced(&self.policy, load, many, least, few);
        if busy == calm || !too_much {
            self.places[calm].imbalanced_since[usize::from(far)] = None;
            return None;
        }
        let since = &mut self.places[calm].imbalanced_since[usize::from(far)];
        let since = *since.get_or_insert(now);
        let excess = decide::excess(load, many, least, few);
        let unmanaged = self.unmanaged_to_give(busy, calm, now);
        let lasted = now.saturating_sub(since);
        let best = self.best_group(busy, excess, far, now);
        let movable = best.map_or(0, |group| self.weight_of_group(group));
        let managed = self.places[busy].managed;
        let entity = self.unmanaged(self.topology.domain_of_place(busy));
        let task = self.entities[entity].time;
        let relief = decide::relieve(
            &self.policy,
            excess,
            managed,
            unmanaged,
            task.weight.checked_div(task.runnable.into()).unwrap_or(0),
            movable,
            lasted,
        );
        match relief {
            Relief::Leave => None,
            Relief::MoveGroup => best.map(Remedy::MoveGroup),
            Relief::MoveUnmanaged => Some(Remedy::MoveUnmanaged {
                from: self.topology.domain_of_place(busy),
            }),
            Relief::SplitGroup => self.group_to_split(busy, far, now).map(Remedy::SplitGroup),
        }
    }

    fn weight_of_group(&self, group: usize) -> u64 {
        self.entities[self.groups[group].entity].time.weight
    }

    fn has_queued(&self, group: usize) -> bool {
        !self.entities[self.groups[group].entity].queue.is_empty()
    }

    /// The weight of the unmanaged tasks of the busy place's domain; 0 if none of them can move.
    fn unmanaged_to_give(&self, busy: usize, calm: usize, now: u64) -> u64 {
        let domain = self.topology.domain_of_place(busy);
        let to = self.topology.domain_of_place(calm);
        match domain != to && self.gives_to(domain, to, now) {
            true => self.entities[self.unmanaged(domain)].time.weight,
            false => 0,
        }
    }

    /// Whether a group is too much for its home: its queue has not been empty for `patience`. One
    /// whose tasks wait for moments only is best left where its data is.
    fn is_short_of_cpus(&self, group: usize, now: u64) -> bool {
        let entity = &self.entities[self.groups[group].entity];
        now.saturating_sub(entity.queued_since) >= self.policy.patience
    }

    /// Whether a group leaves its node.
    fn group_gives_far(&self, group: usize, now: u64) -> bool {
        let id = self.groups[group].entity;
        let entity = &self.entities[id];
        let waiting = entity.queue.iter().count() as u64;
        let lasted = now.saturating_sub(entity.queued_since);
        decide::crosses_node(&self.policy, waiting, self.cpus_of_entity(id), lasted)
    }

    /// The group of a place whose move, `far` to another node, corrects `excess` best, of those
    /// that have no members with a narrow affinity, and that do not run or are short of CPUs.
    fn best_group(&self, place: usize, excess: u64, far: bool, now: u64) -> Option<usize> {
        let movable = self.places[place].groups.iter().filter(|group| {
            let state = &self.groups[**group];
            let runs_well = state.running > 0 && !self.is_short_of_cpus(**group, now);
            let stays = far && !self.group_gives_far(**group, now);
            self.has_queued(**group) && !state.narrow && !runs_well && !stays
        });
        let better = |best: Option<usize>, group: &usize| {
            let so_far = best.map_or(0, |best| self.weight_of_group(best));
            match decide::better_group(self.weight_of_group(*group), so_far, excess) {
                true => Some(*group),
                false => best,
            }
        };
        movable.fold(None, better)
    }

    /// The group to split: the heaviest that is short of CPUs.
    fn group_to_split(&self, place: usize, far: bool, now: u64) -> Option<usize> {
        let groups = self.places[place].groups.iter().copied();
        groups
            .filter(|group| self.has_queued(*group) && self.is_short_of_cpus(*group, now))
            .filter(|group| !far || self.group_gives_far(*group, now))
            .rev() // the first of equals
            .max_by_key(|group| self.weight_of_group(*group))
    }

    /// Whether another place is a better home for a group than `place`, a CPU of which idles: the
    /// tasks of the groups that live here may only sleep for a moment. An idle CPU there is kicked,
    /// which then takes the group.
    fn leaves_it_to_another(&mut self, context: &mut Context<'_>, place: usize) -> bool {
        let now = ns(context);
        let calm = self.calmest_place(self.topology.node_of_place(place), now);
        if !self.is_calmer(calm, place, now) {
            return false;
        }
        self.wake_at(context, calm)
    }

    /// Kicks an idle CPU of `place`. Returns whether there was one.
    fn wake_at(&mut self, context: &mut Context<'_>, place: usize) -> bool {
        let idle = self.any_idle(context, &self.topology.cpus_of_place(place));
        if let Some(idle) = idle {
            self.claim(context, idle);
            context.reschedule(idle);
        }
        idle.is_some()
    }

    /// Gives a group another home. Its tasks are in its own queue, so none of them is touched.
    pub(super) fn rehome(&mut self, context: &mut Context<'_>, group: usize, to: usize) {
        let from = std::mem::replace(&mut self.groups[group].home, to);
        let entity = self.groups[group].entity;
        let weight = self.entities[entity].time.weight;
        self.places[from].managed -= weight;
        self.places[from].groups.remove(&group);
        self.places[to].managed += weight;
        self.places[to].groups.insert(group);
        let (there, here) = (
            self.topology.domain_of_place(from),
            self.topology.domain_of_place(to),
        );
        if there != here {
            self.migrate_entity(entity, there, here);
        }
        for address in [
            self.places[from].line,
            self.places[to].line,
            self.domains[there].line,
            self.domains[here].line,
            self.entities[entity].line,
        ] {
            context.touch(address, Access::Write);
        }
    }

    fn migrate_entity(&mut self, entity: EntityId, from: usize, to: usize) {
        let time = &mut self.entities[entity].time;
        let (weight, vruntime) = (time.weight, decide::entity_vruntime(time));
        let (runnable, old, new) = (
            time.runnable,
            self.domains[from].time,
            self.domains[to].time,
        );
        let there = decide::migrate_vruntime(vruntime, old.avg_vruntime, new.avg_vruntime);
        time.shift = time.shift.wrapping_add(there.wrapping_sub(vruntime));
        let policy = &self.policy;
        let lost = decide::avg_sub(policy, old.avg_vruntime, old.weight, vruntime, weight);
        let gained = decide::avg_add(policy, new.avg_vruntime, new.weight, there, weight);
        self.domains[from].time = Domain {
            avg_vruntime: old.avg_vruntime.wrapping_add(lost),
            weight: old.weight - weight,
            runnable: old.runnable - runnable,
            ..old
        };
        self.domains[to].time = Domain {
            avg_vruntime: new.avg_vruntime.wrapping_add(gained),
            weight: new.weight + weight,
            runnable: new.runnable + runnable,
            ..new
        };
    }

    /// The program's timer is the tick of CPU 0 here, and while that CPU idles without one a timer
    /// of its own.
    pub(super) fn watch(&mut self, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.watches, true) {
            let next = Duration::from_ns(self.balanced_at + BALANCE_INTERVAL);
            context.arm_timer(CpuId(0), Instant::START + next, 0);
        }
    }

    /// The timer: clamps queued tasks, kicks idle CPUs in case an earlier kick got lost, and
    /// balances among busy places.
    pub(super) fn balance(&mut self, context: &mut Context<'_>) {
        let now = ns(context);
        if now.saturating_sub(self.balanced_at) < BALANCE_INTERVAL {
            return;
        }
        self.balanced_at = now;
        self.balance_rounds += 1;
        if self.balance_rounds.is_multiple_of(CLAMPS_EVERY) {
            for entity in 0..self.entities.len() {
                self.clamp_last(context, entity);
                self.help_late(context, entity);
            }
        }
        self.wake_idle(context);
        if self.topology.places().len() > 1 {
            self.balance_busy(context);
        }
    }

    /// The last tasks of a queue that have waited for too long come next in their domain, whatever
    /// their deadlines are. Those before them come sooner.
    fn help_late(&mut self, context: &Context<'_>, entity: EntityId) {
        let last = self.entities[entity].queue.iter().rev().take(LATE_LOOKS);
        let last: Vec<TaskId> = last.map(|last| last.task).collect();
        for task in last {
            if self.tasks[task.index()].late_in.is_none() && self.is_late(context, task) {
                self.comes_late(task);
            }
        }
    }

    /// Whether a queued task has waited for too long.
    pub(super) fn is_late(&self, context: &Context<'_>, task: TaskId) -> bool {
        let state = &self.tasks[task.index()];
        let (Some(entity), Some(since)) = (state.entity, state.waits_since) else {
            return false;
        };
        let there = Domain {
            cpus: self.cpus_of_entity(entity) as u32,
            ..self.domains[self.domain_of_entity(entity)].time
        };
        let waited = ns(context).saturating_sub(since);
        waited >= decide::late_after(&self.policy, &there, state.weight)
    }

    /// A queued task comes next in its domain, behind others that have waited for too long.
    pub(super) fn comes_late(&mut self, task: TaskId) {
        let Some(entity) = self.tasks[task.index()].entity else {
            return;
        };
        let domain = self.domain_of_entity(entity);
        self.tasks[task.index()].late_in = Some(domain);
        self.domains[domain].late.push(task);
    }

    /// A task of this CPU's domain that has waited for too long.
    pub(super) fn late(&mut self, context: &Context<'_>) -> Option<TaskId> {
        let domain = self.topology.domain_of(context.cpu());
        let late = self.domains[domain].late.clone();
        late.into_iter().find(|task| self.is_free(context, *task))
    }

    /// The last task of a queue that has not waited for too long.
    fn last_in_time(&self, entity: EntityId) -> Option<Waiting> {
        let mut last = self.entities[entity].queue.iter().rev();
        last.find(|last| self.tasks[last.task.index()].late_in.is_none())
    }

    /// Clamps the deadlines of queued tasks again, as the load may have grown since they were
    /// queued: the last ones of the queue move forward. V is not corrected for that: these tasks
    /// weigh little.
    fn clamp_last(&mut self, context: &mut Context<'_>, entity: EntityId) {
        let domain = self.domain_of_entity(entity);
        while let Some(last) = self.last_in_time(entity) {
            let deadline = decide::vruntime(&self.entities[entity].time, last.deadline);
            let clamped = decide::clamp_queued(&self.domains[domain].time, deadline);
            if clamped == deadline {
                return;
            }
            self.unqueue(context, last.task);
            let state = &mut self.tasks[last.task.index()];
            let earlier = deadline.wrapping_sub(clamped);
            state.vtime = state.vtime.wrapping_sub(earlier);
            let deadline = last.deadline.wrapping_sub(earlier);
            let since = self.entities[entity].queued_since;
            self.insert(context, entity, Waiting { deadline, ..last });
            self.entities[entity].queued_since = since;
        }
    }

    fn wake_idle(&mut self, context: &mut Context<'_>) {
        let now = ns(context);
        context.touch(self.idle_line, Access::Read);
        self.note_beside_idle(context, now);
        for domain in self.topology.domains() {
            if !self.entities[self.unmanaged(domain)].queue.is_empty() {
                self.wake_near(context, domain, self.gives_far(domain, now));
            }
        }
        for place in self.topology.places() {
            let mut groups = self.places[place].groups.iter();
            if groups.any(|group| self.has_queued(*group)) {
                let far = self.group_to_split(place, true, now).is_some();
                self.wake_near(context, self.topology.domain_of_place(place), far);
            }
        }
        for cpu in self.topology.cpus().map(|cpu| CpuId(cpu as u16)) {
            let waits = !self.entities[self.pinned(cpu)].queue.is_empty();
            if waits && self.is_idle(context, cpu) {
                self.claim(context, cpu);
                context.reschedule(cpu);
            }
        }
    }

    /// Notes since when unmanaged tasks of each domain wait while a CPU idles.
    fn note_beside_idle(&mut self, context: &Context<'_>, now: u64) {
        let mut cpus = self.topology.cpus().map(|cpu| CpuId(cpu as u16));
        let idles = cpus.any(|cpu| self.is_idle(context, cpu));
        for domain in self.topology.domains() {
            let waits = !self.entities[self.unmanaged(domain)].queue.is_empty();
            let since = &mut self.domains[domain].beside_idle_since;
            *since = (idles && waits).then_some(since.unwrap_or(now));
        }
    }

    /// Kicks an idle CPU of `domain`, else of the nearest that has one; of another node only if it
    /// may be `far`.
    fn wake_near(&mut self, context: &mut Context<'_>, domain: usize, far: bool) {
        let reach = |other| self.topology.reach(domain, other);
        let near = self.topology.near(domain).iter();
        let mut near = near.filter(|it| far || reach(**it) != Reach::OtherNode);
        let found = near.find_map(|it| self.any_idle(context, self.topology.cpus_of_domain(*it)));
        if let Some(idle) = found {
            self.claim(context, idle);
            context.reschedule(idle);
        }
    }

    /// Kicks idle CPUs at the home of a group that has just come there, one for each task that
    /// waits, but for those that are `taken`.
    fn wake_for(&mut self, context: &mut Context<'_>, group: usize, taken: usize) {
        let (entity, home) = (self.groups[group].entity, self.groups[group].home);
        let mut waiting = self.entities[entity].queue.iter().skip(taken).count();
        while waiting > 0 && self.wake_at(context, home) {
            waiting -= 1;
        }
    }

    /// Balances among busy places: the calmest of the node whose turn it is gets something of the
    /// busiest there, else elsewhere. Only a CPU without work splits groups.
    fn balance_busy(&mut self, context: &mut Context<'_>) {
        let nodes = self.topology.nodes();
        let turn = (self.balance_rounds % nodes as u64) as usize;
        let calm = self.calmest_place(turn, ns(context));
        let mut remedy = self.remedy_for(context, calm, false, false);
        if remedy.is_none() && nodes > 1 {
            remedy = self.remedy_for(context, calm, false, true);
        }
        match remedy {
            Some(Remedy::MoveGroup(group)) => {
                self.rehome(context, group, calm);
                self.wake_for(context, group, 0);
            }
            Some(Remedy::MoveUnmanaged { from }) => {
                let domain = self.topology.domain_of_place(calm);
                self.domains[domain].pull_from = Some(from);
            }
            Some(Remedy::SplitGroup(_)) | None => {}
        }
    }
}
