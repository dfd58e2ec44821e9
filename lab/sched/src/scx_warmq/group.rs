//! Groups: the tasks of one fragment, and the place where they live.
//!
//! As in the BPF program, a group keeps its home for a while after its last member left, and the
//! number of groups is bounded; tasks of further fragments are unmanaged.

use warmq_decide as decide;
use warmq_kernel::{Context, Fragment, View, Why};
use warmq_machine::Access;
use warmq_units::{Bytes, CpuId, TaskId};

use super::state::{GROUP_LINGERS, GroupState, Kind, MOST_GROUPS, State, new_entity, ns};

impl State {
    /// The runnable weight of a place: its groups, and its part of the unmanaged tasks of its
    /// domain.
    pub(super) fn load_of_place(&self, place: usize) -> u64 {
        let domain = self.topology.domain_of_place(place);
        let time = &self.domains[domain].time;
        if !self.topology.place_is_cpu() {
            return time.weight;
        }
        let unmanaged = self.entities[self.unmanaged(domain)].time.weight / u64::from(time.cpus);
        let pinned = self.entities[self.pinned(CpuId(place as u16))].time.weight;
        self.places[place].managed + unmanaged + pinned
    }

    pub(super) fn place_cpus(&self, place: usize) -> u64 {
        match self.topology.place_is_cpu() {
            true => 1,
            false => self.domains[place].time.cpus.into(),
        }
    }

    /// Touches the lines that the load of a place is read from.
    pub(super) fn read_load(&self, context: &mut Context<'_>, place: usize) {
        let domain = self.topology.domain_of_place(place);
        context.touch(self.domains[domain].line, Access::Read);
        if self.topology.place_is_cpu() {
            context.touch(self.places[place].line, Access::Read);
        }
    }

    pub(super) fn is_less_loaded(&self, place: usize, than: usize) -> bool {
        decide::less_loaded(
            self.load_of_place(place),
            self.place_cpus(place),
            self.load_of_place(than),
            self.place_cpus(than),
        )
    }

    /// How many groups were founded at `place` lately.
    fn newcomers(&self, place: usize, now: u64) -> u64 {
        let place = &self.places[place];
        let age = now.saturating_sub(place.founded_since);
        decide::newcomers(&self.policy, place.founded, age)
    }

    /// The load that a new group must expect at `place`, and its CPUs.
    fn expected_load(&self, place: usize, now: u64) -> (u64, u64) {
        let (load, cpus) = (self.load_of_place(place), self.place_cpus(place));
        let newcomers = self.newcomers(place, now);
        (decide::expected_load(load, newcomers, cpus), cpus)
    }

    /// The load that the other CPUs of a home's core must expect.
    fn core_load(&self, place: usize, now: u64) -> u64 {
        let siblings = match self.topology.place_is_cpu() {
            true => self.topology.siblings(CpuId(place as u16)),
            false => &[],
        };
        let loads = siblings
            .iter()
            .map(|it| self.expected_load(it.index(), now).0);
        loads.sum()
    }

    /// Whether a place is a better home than another.
    pub(super) fn is_calmer(&self, place: usize, than: usize, now: u64) -> bool {
        decide::calmer(
            self.load_of_place(place),
            self.place_cpus(place),
            self.core_load(place, now),
            self.load_of_place(than),
            self.place_cpus(than),
            self.core_load(than, now),
        )
    }

    /// The home of a new group that a task has named at the place `own`.
    fn place_for_new_group(&self, view: View<'_>, own: usize, now: u64) -> usize {
        let near = self.best_new_home(view, own, false, now);
        let far = self.best_new_home(view, own, true, now);
        let (Some(near), Some(far)) = (near, far) else {
            return near.or(far).unwrap_or(own);
        };
        let ((load, cpus), (there, far_cpus)) =
            (self.expected_load(near, now), self.expected_load(far, now));
        match decide::founds_far(&self.policy, load, cpus, there, far_cpus) {
            true => far,
            false => near,
        }
    }

    /// The place of the node of `own` or, `far`, of another on all of whose CPUs a task may run and
    /// that is the best home for a new group; its own if there is no better one.
    fn best_new_home(&self, view: View<'_>, own: usize, far: bool, now: u64) -> Option<usize> {
        let others = self.topology.places().filter(|place| *place != own);
        let mut fitting = std::iter::once(own)
            .chain(others)
            .filter(|place| self.topology.is_far(*place, own) == far)
            .filter(|place| self.topology.fits(view, *place));
        let first = fitting.next()?;
        let lesser = |best, place| {
            let (load, cpus) = self.expected_load(place, now);
            let (least, its_cpus) = self.expected_load(best, now);
            let (core, its_core) = (self.core_load(place, now), self.core_load(best, now));
            if decide::calmer(load, cpus, core, least, its_cpus, its_core) {
                place
            } else {
                best
            }
        };
        Some(fitting.fold(first, lesser))
    }

    /// Counts one more group that was founded at `place`.
    fn found_at(&mut self, place: usize, now: u64) {
        let newcomers = self.newcomers(place, now);
        let place = &mut self.places[place];
        if newcomers == 0 {
            place.founded_since = now;
        }
        place.founded = newcomers + 1;
    }

    /// Whether the home of the group of `view`, which runs on `cpu`, is elsewhere, and the task may
    /// run everywhere there.
    pub(super) fn group_belongs_elsewhere(&self, view: View<'_>, cpu: CpuId) -> bool {
        let group = self.tasks[view.id().index()].group;
        group.is_some_and(|group| {
            let home = self.groups[group].home;
            home != self.topology.place_of(cpu) && self.topology.fits(view, home)
        })
    }

    /// `task`, which is at `cpu`, may belong to another group where nobody has to name data: it
    /// enters that.
    pub(super) fn regroup(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        if self.grouping.is_declared() {
            return;
        }
        let fragment = self.grouping.of(context.task(task));
        let group = self.tasks[task.index()].group;
        if group.and_then(|group| self.groups[group].fragment) != fragment {
            self.follow(context, task, cpu);
        }
    }

    /// `task` is woken: where groups are inferred, it and its waker may come together.
    pub(super) fn infer(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) {
        let Some(waker) = self.grouping.woken(context, task, why) else {
            return;
        };
        for task in [task, waker] {
            let cpu = context.task(task).last_cpu();
            self.regroup(context, task, cpu);
        }
    }

    /// Puts `task`, which is at `cpu`, into the group of those with whom it shares something.
    pub(super) fn follow(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId) {
        let fragment = self.grouping.of(context.task(task));
        context.touch(self.group_table, Access::Read);
        let group = fragment.and_then(|fragment| {
            let known = self.group_of.get(&fragment).copied();
            known.or_else(|| self.found(context, task, fragment, cpu))
        });
        self.enter(task, group, ns(context));
    }

    /// Makes `task` a member of a group (`None`: of none) instead of its present one.
    pub(super) fn enter(&mut self, task: TaskId, group: Option<usize>, now: u64) {
        if let Some(group) = group {
            self.groups[group].members += 1;
        }
        let left = std::mem::replace(&mut self.tasks[task.index()].group, group);
        if let Some(left) = left {
            self.groups[left].members -= 1;
            self.groups[left].left_at = now;
        }
    }

    /// A new group for `fragment`, if there is room for one.
    fn found(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Fragment,
        cpu: CpuId,
    ) -> Option<usize> {
        for place in self.topology.places() {
            self.read_load(context, place);
        }
        let own = self.topology.place_of(cpu);
        let now = ns(context);
        let home = self.place_for_new_group(context.task(task), own, now);
        let group = self.vacant_group(context)?;
        self.found_at(home, now);
        let state = &mut self.groups[group];
        state.fragment = Some(fragment);
        state.narrow = false;
        let before = std::mem::replace(&mut state.home, home);
        self.places[before].groups.remove(&group);
        self.places[home].groups.insert(group);
        self.group_of.insert(fragment, group);
        context.touch(self.group_table, Access::Write);
        context.touch(self.places[home].line, Access::Write);
        Some(group)
    }

    /// One more group or, when there are as many as there may be, one that has had no member for a
    /// while.
    fn vacant_group(&mut self, context: &mut Context<'_>) -> Option<usize> {
        if self.groups.len() < MOST_GROUPS {
            return Some(self.another_group(context));
        }
        let now = ns(context);
        let vacant = self.groups.iter().position(|group| {
            group.members == 0
                && now.saturating_sub(group.left_at) >= GROUP_LINGERS
                && self.entities[group.entity].time.weight == 0
        });
        let group = vacant?;
        if let Some(fragment) = self.groups[group].fragment.take() {
            self.group_of.remove(&fragment);
        }
        Some(group)
    }

    fn another_group(&mut self, context: &mut Context<'_>) -> usize {
        let (group, entity) = (self.groups.len(), self.entities.len());
        let (line, head) = (context.data(Bytes(1)), context.data(Bytes(1)));
        self.entities
            .push(new_entity(Kind::Group { group }, line, head));
        self.groups.push(GroupState {
            fragment: None,
            entity,
            home: 0,
            members: 0,
            running: 0,
            narrow: false,
            left_at: 0,
        });
        group
    }
}
