//! Balancing between places, by the rules of `warmq_affinity`: whole groups, then unmanaged tasks,
//! and parts of a group when an imbalance lasts.

use std::collections::BTreeMap;

use warmq_affinity::rules::{Members, Move, Place, View, balance};
use warmq_kernel::{Balance, Context, Fragment};
use warmq_machine::Access;
use warmq_units::{CpuId, Instant, LockId, TaskId};

use super::statistics::{GROUP_MIGRATIONS, SPLITS};
use super::{Affinity, Base};

/// What a CPU remembers of its looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    /// When its last look was due.
    at: Instant,
    /// The softirq that follows the tick is to look.
    due: bool,
    /// Since when each look found an imbalance and nothing that could move.
    stuck_since: Option<Instant>,
    /// The CPU from which the pull that follows takes what the rules say.
    pub(super) found: Option<CpuId>,
}

/// A place as a CPU that balances sees it.
#[derive(Default)]
struct Seen {
    /// Tasks that wait there and may run on the CPU that looks, by CPU and in the order in which
    /// they may leave.
    waiting: Vec<(CpuId, TaskId, Option<Fragment>)>,
    /// How many others each group has.
    bound: BTreeMap<Fragment, u32>,
    unmanaged_bound: u32,
}

impl Seen {
    fn view(&self) -> View<Fragment> {
        let mut groups: Vec<Members<Fragment>> = Vec::new();
        let fragments = self.waiting.iter().filter_map(|(.., fragment)| *fragment);
        for fragment in fragments {
            match groups.iter_mut().find(|group| group.fragment == fragment) {
                Some(group) => group.waiting += 1,
                None => groups.push(Members {
                    fragment,
                    waiting: 1,
                    bound: self.bound.get(&fragment).copied().unwrap_or(0),
                }),
            }
        }
        let all_bound = self.bound.iter().filter(|(fragment, _)| {
            !self
                .waiting
                .iter()
                .any(|(.., other)| *other == Some(**fragment))
        });
        let all_bound: Vec<_> = all_bound
            .map(|(&fragment, &bound)| Members {
                fragment,
                waiting: 0,
                bound,
            })
            .collect();
        groups.extend(all_bound);
        let unmanaged = self.of(None).count();
        View {
            groups,
            unmanaged: unmanaged as u32,
            unmanaged_bound: self.unmanaged_bound,
        }
    }

    /// The tasks of `fragment`, or unmanaged ones, that wait.
    fn of(&self, fragment: Option<Fragment>) -> impl Iterator<Item = (CpuId, TaskId)> + '_ {
        let all = self.waiting.iter();
        let of = all.filter(move |(.., named)| *named == fragment);
        of.map(|(cpu, task, _)| (*cpu, *task))
    }

    /// The CPU where most of them wait, of several the first.
    fn most(&self, fragment: Option<Fragment>) -> Option<CpuId> {
        let mut counts: BTreeMap<CpuId, u32> = BTreeMap::new();
        for (cpu, _) in self.of(fragment) {
            *counts.entry(cpu).or_default() += 1;
        }
        let most = counts.into_iter().rev().max_by_key(|(_, count)| *count);
        most.map(|(cpu, _)| cpu)
    }
}

impl<B: Base> Affinity<B> {
    /// A busy CPU looks in intervals, from its tick; an idle one at each tick.
    pub(super) fn look_in_time(&mut self, context: &mut Context<'_>, idle: bool) {
        let (here, now) = (context.cpu(), context.now());
        let looks = &mut self.looks[here.index()];
        let due = idle || now.since(looks.at) >= self.options.balance_every;
        if due && self.places.count() > 1 && self.groups.count() > 0 {
            looks.at = now;
            looks.due = true;
            context.raise_balance(here);
        }
    }

    /// The CPU from which this one should take what the rules say, if they say so. A busy CPU looks
    /// only when that is due, however often its base balances.
    pub(super) fn look(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let here = context.cpu();
        let due = std::mem::take(&mut self.looks[here.index()].due);
        if when == Balance::Tick && !due {
            return None;
        }
        if self.groups.count() == 0 || self.places.count() == 1 || !context.is_online(here) {
            return None;
        }
        context.touch_all(self.lines.places(), Access::Read);
        let own = self.places.of(here);
        let busiest = self.busiest(context, own);
        let found = busiest.and_then(|busiest| {
            let (decision, seen) = self.decide(context, busiest);
            match decision {
                Move::Nothing => None,
                Move::Stuck => Some(None),
                Move::Group(fragment) | Move::Split(fragment, _) => Some(seen.most(Some(fragment))),
                Move::Unmanaged(_) => Some(seen.most(None)),
            }
        });
        let looks = &mut self.looks[here.index()];
        match found {
            None => looks.stuck_since = None,
            Some(None) => {
                looks.stuck_since.get_or_insert(context.now());
            }
            // The pull follows.
            Some(Some(_)) => {}
        }
        found.flatten()
    }

    /// The other place with the most tasks for each CPU, if some of them must wait; of several the
    /// first.
    fn busiest(&self, context: &Context<'_>, own: Place) -> Option<Place> {
        let loads = self.places.all().filter(|place| *place != own);
        let loads = loads.map(|place| {
            let (runnable, online) = (self.runnable_at(place), self.online(context, place));
            (u64::from(runnable), u64::from(online.max(1)), place)
        });
        let crowded = loads.filter(|(runnable, online, _)| runnable > online);
        let most = crowded.reduce(|most, other| match other.0 * most.1 > most.0 * other.1 {
            true => other,
            false => most,
        });
        most.map(|(.., place)| place)
    }

    /// What the rules say about `busiest` and the place of this CPU.
    fn decide(&self, context: &Context<'_>, busiest: Place) -> (Move<Fragment>, Seen) {
        let here = context.cpu();
        let own = self.see(context, self.places.of(here)).view();
        let seen = self.see(context, busiest);
        let lasted = self.looks[here.index()]
            .stuck_since
            .zip(self.options.split_after)
            .is_some_and(|(since, after)| context.now().since(since) >= after);
        let balancing = &self.options.balancing;
        let decision = balance(balancing, &own, &seen.view(), u32::from(lasted));
        (decision, seen)
    }

    fn see(&self, context: &Context<'_>, place: Place) -> Seen {
        let mut seen = Seen::default();
        for cpu in self.places.cpus(place).iter().copied() {
            let running = context.running_on(cpu);
            let waiting = self.base.waiting(cpu);
            let waiting = waiting.into_iter().filter(|task| running != Some(*task));
            let all = running.into_iter().chain(waiting);
            for task in all {
                let view = context.task(task);
                let fragment = self.groups.fragment_of(task);
                let of_here = fragment.filter(|_| self.groups.place_of(task) == Some(place));
                let may_leave = view.on_cpu().is_none() && view.may_run_on(context.cpu());
                match (of_here, may_leave) {
                    // Of a group that is elsewhere: it goes there when it has run.
                    _ if fragment != of_here => seen.unmanaged_bound += 1,
                    (_, true) => seen.waiting.push((cpu, task, fragment)),
                    (Some(fragment), false) => *seen.bound.entry(fragment).or_default() += 1,
                    (None, false) => seen.unmanaged_bound += 1,
                }
            }
        }
        seen
    }

    /// Under the locks of this CPU and of `from`, moves what the rules say now.
    pub(super) fn pull_by_the_rules(&mut self, context: &mut Context<'_>, from: CpuId) {
        let busiest = self.places.of(from);
        let (decision, seen) = self.decide(context, busiest);
        self.looks[context.cpu().index()].stuck_since = None;
        match decision {
            Move::Nothing | Move::Stuck => {}
            Move::Group(fragment) => self.take_group(context, from, fragment, &seen),
            Move::Unmanaged(count) => {
                let tasks = seen.of(None).filter(|(cpu, _)| *cpu == from);
                self.take(context, tasks.take(count as usize).map(|(_, task)| task));
            }
            Move::Split(fragment, count) => {
                let tasks = seen.of(Some(fragment)).filter(|(cpu, _)| *cpu == from);
                let tasks: Vec<TaskId> = tasks.take(count as usize).map(|(_, task)| task).collect();
                let own = self.places.of(context.cpu());
                if let Some(first) = tasks.first() {
                    context.statistic(SPLITS.of::<B>(), *first, 1);
                }
                for task in &tasks {
                    self.groups.split(*task, own);
                }
                self.moved(context, fragment, busiest);
                self.take(context, tasks);
            }
        }
    }

    /// Moves the whole group of `fragment` here, if the locks of all CPUs where its tasks wait can
    /// be had at once.
    fn take_group(
        &mut self,
        context: &mut Context<'_>,
        from: CpuId,
        fragment: Fragment,
        seen: &Seen,
    ) {
        let mut others: Vec<CpuId> = seen.of(Some(fragment)).map(|(cpu, _)| cpu).collect();
        others.dedup();
        others.retain(|cpu| *cpu != from);
        let mut held: Vec<LockId> = Vec::new();
        let all = others.iter().all(|cpu| {
            let lock = self.base.lock_for(*cpu);
            let taken = context.try_lock(lock);
            held.extend(taken.then_some(lock));
            taken
        });
        if all {
            let tasks: Vec<TaskId> = seen.of(Some(fragment)).map(|(_, task)| task).collect();
            let (busiest, own) = (self.places.of(from), self.places.of(context.cpu()));
            self.groups.shift(fragment, busiest, own);
            if let Some(first) = tasks.first() {
                context.statistic(GROUP_MIGRATIONS.of::<B>(), *first, 1);
            }
            self.moved(context, fragment, busiest);
            self.take(context, tasks);
        }
        held.into_iter().for_each(|lock| context.unlock(lock));
    }

    /// Writes down that tasks of `fragment` have gone from `from` to the place of this CPU.
    fn moved(&self, context: &mut Context<'_>, fragment: Fragment, from: Place) {
        let own = self.places.of(context.cpu());
        let places = [from, own].map(|place| self.lines.place(place));
        for line in self.lines.group(fragment).into_iter().chain(places) {
            context.touch(line, Access::Write);
        }
    }

    /// Moves `tasks`, which wait, into the queue of this CPU.
    fn take(&mut self, context: &mut Context<'_>, tasks: impl IntoIterator<Item = TaskId>) {
        let here = context.cpu();
        for task in tasks {
            self.count_migration(context, task);
            self.base.move_to(context, task, here);
        }
    }
}
