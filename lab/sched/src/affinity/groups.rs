//! Naming data: joining and leaving groups, and where a task of a group runs.

use std::collections::BTreeMap;

use super::statistics::{CHANGE_PREEMPTIONS, GROUPS, HINTS, TASK_MIGRATIONS};
use super::{Access, Address, Affinity, Base, Context, CpuId, Fragment, TaskId, Why};
use super::{Bytes, settings::AtChange};
use warmq_affinity::rules::Place;
use warmq_kernel::Hint;

/// How finely the tasks of places with different numbers of CPUs are compared.
const SCALE: u32 = 256;

/// Where what the layer knows lies in memory.
pub(super) struct Lines {
    /// The entry of each fragment in the map: the place of its group, and how many use it.
    groups: BTreeMap<Fragment, Address>,
    /// Entries that nobody uses any more.
    free: Vec<Address>,
    /// How many tasks each place has.
    places: Vec<Address>,
}

impl Lines {
    pub(super) fn new(places: impl Iterator<Item = Address>) -> Lines {
        Lines {
            groups: BTreeMap::new(),
            free: Vec::new(),
            places: places.collect(),
        }
    }

    /// The lines of all places.
    pub(super) fn places(&self) -> Vec<Address> {
        self.places.clone()
    }

    pub(super) fn place(&self, place: Place) -> Address {
        self.places[place.index()]
    }

    /// The entry of `fragment`, which has one while it has a group.
    pub(super) fn group(&self, fragment: Fragment) -> Option<Address> {
        self.groups.get(&fragment).copied()
    }
}

impl<B: Base> Affinity<B> {
    /// Makes room for `task`, which was just created.
    pub(super) fn admit(&mut self, task: TaskId) {
        if self.named.len() <= task.index() {
            self.named.resize(task.index() + 1, None);
        }
    }

    /// Whether `task` has named other data since the layer looked last, and if so, what follows.
    pub(super) fn notice(&mut self, context: &mut Context<'_>, task: TaskId) {
        let view = context.task(task);
        let (fragment, line) = (self.grouping.of(view), view.block());
        if self.options.hint == Hint::MemoryWrite {
            context.touch(line, Access::Read);
        }
        if self.named[task.index()] != fragment {
            if self.grouping.is_declared() {
                context.statistic(HINTS.of::<B>(), task, 1);
            }
            self.name(context, task, fragment);
        }
    }

    /// `task` uses `fragment` from now on, or nothing that has a name: it leaves its group and
    /// joins another.
    pub(super) fn name(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        let before = std::mem::replace(&mut self.named[task.index()], fragment);
        if before == fragment {
            return;
        }
        if let Some(before) = before {
            self.groups.leave(task);
            self.left(context, before);
        }
        if let Some(fragment) = fragment {
            if self.groups.of(fragment).is_empty() {
                context.touch_all(self.lines.places(), Access::Read);
            }
            let crowds = self.crowds(context, task);
            let place = self.groups.join(task, fragment, &crowds);
            let line = self.entry(context, fragment);
            context.touch(line, Access::Write);
            context.touch(self.lines.place(place), Access::Write);
        }
        self.base.steering().manage(task, fragment);
        context.statistic(GROUPS.of::<B>(), task, self.groups.count() as u64);
    }

    /// A task has left the group of `fragment`, which may be empty now.
    fn left(&mut self, context: &mut Context<'_>, fragment: Fragment) {
        let Some(line) = self.lines.group(fragment) else {
            return;
        };
        context.touch(line, Access::Write);
        if self.groups.of(fragment).is_empty() {
            self.lines.groups.remove(&fragment);
            self.lines.free.push(line);
        }
    }

    /// The entry of `fragment` in the map, which is made if there is none.
    fn entry(&mut self, context: &mut Context<'_>, fragment: Fragment) -> Address {
        let Lines { groups, free, .. } = &mut self.lines;
        let new = || free.pop().unwrap_or_else(|| context.data(Bytes(1)));
        *groups.entry(fragment).or_insert_with(new)
    }

    /// How crowded each place is for a new group with `task`, for each CPU: by groups if they
    /// count, then by runnable tasks.
    fn crowds(&self, context: &Context<'_>, task: TaskId) -> Vec<(u32, u32)> {
        let runnable = self.runnable(context, task);
        let groups = self.places.all().map(|place| match self.options.by_groups {
            true => self.for_each_cpu(context, place, self.groups.at(place) as u32),
            false => 0,
        });
        groups.zip(runnable).collect()
    }

    /// How many tasks run or wait at each place for each CPU that is online, in parts of `SCALE`,
    /// without `task` itself: wherever it goes, it will be there.
    fn runnable(&self, context: &Context<'_>, task: TaskId) -> Vec<u32> {
        let own = self.places.of(self.base.queue_of(task));
        let counts = self.places.all().map(|place| {
            let runnable = self.runnable_at(place);
            let others = runnable.saturating_sub(u32::from(place == own));
            self.for_each_cpu(context, place, others)
        });
        counts.collect()
    }

    /// `count` divided by the CPUs of `place` that are online, in parts of `SCALE`.
    fn for_each_cpu(&self, context: &Context<'_>, place: Place, count: u32) -> u32 {
        let parts = count.saturating_mul(SCALE);
        parts
            .checked_div(self.online(context, place))
            .unwrap_or(u32::MAX)
    }

    /// How many tasks run or wait at `place`.
    pub(super) fn runnable_at(&self, place: Place) -> u32 {
        let cpus = self.places.cpus(place).iter();
        cpus.map(|cpu| self.base.runnable(*cpu)).sum()
    }

    /// How many CPUs of `place` are online.
    pub(super) fn online(&self, context: &Context<'_>, place: Place) -> u32 {
        let cpus = self.places.cpus(place).iter();
        cpus.filter(|cpu| context.is_online(**cpu)).count() as u32
    }

    /// The place of the group of `task`, if it is in one and may run there.
    pub(super) fn home(&self, context: &Context<'_>, task: TaskId) -> Option<Place> {
        let place = self.groups.place_of(task)?;
        let view = context.task(task);
        let mut cpus = self.places.cpus(place).iter();
        cpus.any(|cpu| view.may_run_on(*cpu)).then_some(place)
    }

    /// Where `task`, which is at `cpu`, should be instead, if it should.
    pub(super) fn belongs_elsewhere(
        &self,
        context: &Context<'_>,
        task: TaskId,
        cpu: CpuId,
    ) -> Option<Place> {
        let here = self.places.of(cpu);
        self.home(context, task).filter(|place| *place != here)
    }

    /// The CPU of `place` where `task`, which may run there, would wait for the fewest others.
    pub(super) fn cpu_of(&self, context: &Context<'_>, task: TaskId, place: Place) -> CpuId {
        let view = context.task(task);
        let cpus = self.places.cpus(place).iter();
        let allowed = cpus.filter(|cpu| view.may_run_on(**cpu));
        let fewest = allowed.min_by_key(|cpu| self.base.runnable(**cpu));
        *fewest.expect("it is its home")
    }

    /// Where a task whose group is at `place` goes when it wakes: where the base would wake it, if
    /// that is there.
    pub(super) fn select(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        place: Place,
        why: Why,
    ) -> CpuId {
        let line = self.named[task.index()].and_then(|fragment| self.lines.group(fragment));
        line.into_iter()
            .for_each(|line| context.touch(line, Access::Read));
        if let [only] = self.places.cpus(place) {
            return *only;
        }
        let cpu = self.base.select_cpu(context, task, why);
        match self.places.of(cpu) == place {
            true => cpu,
            false => self.cpu_of(context, task, place),
        }
    }

    /// If `task`, which runs here, should be elsewhere, it leaves before it goes on, where changes
    /// preempt.
    pub(super) fn preempt_for_change(&mut self, context: &mut Context<'_>, task: TaskId) {
        let here = context.cpu();
        let preempts = self.options.at_change == AtChange::Preempt;
        if preempts && self.belongs_elsewhere(context, task, here).is_some() {
            context.statistic(CHANGE_PREEMPTIONS.of::<B>(), task, 1);
            context.reschedule(here);
        }
    }

    /// `task` is queued on `cpu`: does that take it to another place?
    pub(super) fn count_wakeup(&self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let last = context.task(task).last_cpu();
        if self.places.of(last) != self.places.of(cpu) {
            self.count_migration(context, task);
        }
    }

    /// `task` has come to another place. Who is in no group does not count.
    pub(super) fn count_migration(&self, context: &mut Context<'_>, task: TaskId) {
        if self.groups.fragment_of(task).is_some() {
            context.statistic(TASK_MIGRATIONS.of::<B>(), task, 1);
        }
    }
}
