//! Which tasks belong together: those that named the same data, those of a process or of a cgroup,
//! or those that wake one another.
//!
//! What they share is always a [`Fragment`], so that a scheduler that runs fragments in one place
//! runs these there, too.
//!
//! Inference is what scx_warmq does with `--infer` (`infer.bpf.h`): labels spread along wakeups,
//! with inertia, within a bound of members. A task that has named data is left out of it, and so
//! are kernel threads and wakeups in interrupts and softirqs, where the task that runs need not be
//! the cause. It takes a few numbers a task, and a step a wakeup. Different here: tasks of two
//! users may come together, since the lab has no users, and a task fades when it wakes, not in its
//! ticks.

use std::collections::BTreeMap;

use warmq_config::{Chosen, Setting, settings};
use warmq_decide::{self as decide, Kinship};
use warmq_kernel::{Context, Fragment, View, WakeContext, Why};
use warmq_machine::Access;
use warmq_units::{Duration, Instant, TaskId};

/// How often the firmness of a member is lowered (`FADES_EVERY` of `wakeup.bpf.h`).
const FADES_EVERY: Duration = Duration::from_s(1);
/// How many inferred groups there may be, as in the BPF program.
const MOST_GROUPS: usize = 1_023;
/// The application of inferred fragments, which no program names.
const INFERRED: u32 = u32::MAX;

/// What makes a group, and how large one that nobody declared may become.
pub(crate) fn settings() -> Vec<Setting> {
    settings! {
        "grouping", choice(&["hints", "process", "cgroup", "inferred"]),
            "which tasks form a group: those that named the same data, those of a process, those of a cgroup, or those that wake \
             one another",
            "affinity paper: hints; ours: the others, the last as scx_warmq --infer";
        "infer_size", count((2, 1_023), 64, "tasks"),
            "how many tasks an inferred group may have",
            "scx_warmq --infer-size";
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Hints,
    Process,
    Cgroup,
    Wakeups,
}

/// The inferred group of a task, 0 for none, and how strongly it belongs to it.
#[derive(Clone, Copy, Debug, Default)]
struct Kin {
    group: u32,
    firmness: u32,
    faded_at: Instant,
}

/// Who belongs together.
///
/// Invariant: `members` has an entry for each group that a task of `kin` is in, the number of these
/// tasks, and no other.
pub(crate) struct Grouping {
    by: By,
    most: u64,
    /// Of each task by its number.
    kin: Vec<Kin>,
    members: BTreeMap<u32, u64>,
    /// The number of the last group.
    last: u32,
}

impl Grouping {
    /// As chosen among [`settings`].
    pub(crate) fn new(chosen: &Chosen) -> Grouping {
        let by = match chosen.choice("grouping") {
            "process" => By::Process,
            "cgroup" => By::Cgroup,
            "inferred" => By::Wakeups,
            _ => By::Hints,
        };
        Grouping {
            by,
            most: chosen.count("infer_size"),
            kin: Vec::new(),
            members: BTreeMap::new(),
            last: 0,
        }
    }

    /// Whether programs have to name their data for groups to form.
    pub(crate) fn is_declared(&self) -> bool {
        self.by == By::Hints
    }

    /// What `view` shares with the others of its group; `None`: it is in none.
    pub(crate) fn of(&self, view: View<'_>) -> Option<Fragment> {
        let whole = |app: usize| Fragment {
            app: app as u32,
            number: 0,
        };
        match self.by {
            By::Hints => view.fragment(),
            _ if view.is_kernel_thread() => None,
            By::Process => view.mm().map(|mm| whole(mm.index())),
            By::Cgroup => Some(whole(view.group().index())),
            By::Wakeups => view.fragment().or_else(|| self.inferred(view.id())),
        }
    }

    fn inferred(&self, task: TaskId) -> Option<Fragment> {
        let group = self.kin.get(task.index())?.group;
        (group != 0).then_some(Fragment {
            app: INFERRED,
            number: group,
        })
    }

    /// `task` is woken: where groups are inferred, it or its waker may belong to another group from
    /// now on. Returns the waker, if it counts.
    pub(crate) fn woken(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        why: Why,
    ) -> Option<TaskId> {
        if self.by != By::Wakeups {
            return None;
        }
        let Why::Wakeup(wakeup) = why else {
            return None;
        };
        let waker = wakeup
            .current
            .filter(|_| wakeup.context == WakeContext::Task)?;
        let counts = |task| {
            let view = context.task(task);
            !view.is_kernel_thread() && view.fragment().is_none()
        };
        if waker == task || !counts(task) || !counts(waker) {
            return None;
        }
        let lines = [task, waker].map(|task| context.task(task).block());
        context.touch(lines[0], Access::Write);
        context.touch(lines[1], Access::Read);
        self.fade(task, context.now());
        self.meet(task, waker, context.now());
        Some(waker)
    }

    fn meet(&mut self, wakee: TaskId, waker: TaskId, now: Instant) {
        let [of_wakee, of_waker] = [wakee, waker].map(|task| self.kin(task).group);
        let kin = self.kin(wakee);
        match decide::meet(of_wakee, of_waker, &mut kin.firmness) {
            Kinship::Strangers => {}
            Kinship::Found if self.members.len() >= MOST_GROUPS => {}
            Kinship::Found => {
                self.last += 1;
                self.enter(wakee, self.last, now);
                self.enter(waker, self.last, now);
            }
            Kinship::WakeeJoins if self.has_room(of_waker) => self.enter(wakee, of_waker, now),
            Kinship::WakerJoins if self.has_room(of_wakee) => self.enter(waker, of_wakee, now),
            Kinship::WakeeJoins | Kinship::WakerJoins => {}
        }
    }

    fn has_room(&self, group: u32) -> bool {
        self.members
            .get(&group)
            .is_some_and(|members| *members < self.most)
    }

    /// A task that its group has not woken for long leaves it.
    fn fade(&mut self, task: TaskId, now: Instant) {
        let kin = self.kin(task);
        if kin.group == 0 || now < kin.faded_at + FADES_EVERY {
            return;
        }
        kin.faded_at = now;
        match kin.firmness {
            0 => self.enter(task, 0, now),
            firmness => kin.firmness = decide::fade(firmness),
        }
    }

    /// Makes `task` a member of an inferred group (0: of none) instead of its present one.
    fn enter(&mut self, task: TaskId, group: u32, now: Instant) {
        let entered = Kin {
            group,
            firmness: 0,
            faded_at: now,
        };
        let left = std::mem::replace(self.kin(task), entered).group;
        if let Some(members) = self.members.get_mut(&left) {
            *members -= 1;
        }
        self.members
            .retain(|number, members| *number != left || *members > 0);
        if group != 0 {
            *self.members.entry(group).or_default() += 1;
        }
    }

    fn kin(&mut self, task: TaskId) -> &mut Kin {
        if self.kin.len() <= task.index() {
            self.kin.resize(task.index() + 1, Kin::default());
        }
        &mut self.kin[task.index()]
    }

    /// `task` has exited.
    pub(crate) fn exit(&mut self, task: TaskId, now: Instant) {
        if self.by == By::Wakeups {
            self.enter(task, 0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use warmq_config::Value;

    use super::*;

    fn grouping(most: u64) -> Grouping {
        let set = [
            ("grouping".to_owned(), Value::Text("inferred".to_owned())),
            ("infer_size".to_owned(), Value::Integer(most as i64)),
        ];
        Grouping::new(&Chosen::new(settings(), set.into()).expect("both are settings"))
    }

    /// The tasks of each group.
    fn groups(grouping: &Grouping) -> BTreeMap<u32, u64> {
        let mut groups = BTreeMap::new();
        for kin in grouping.kin.iter().filter(|kin| kin.group != 0) {
            *groups.entry(kin.group).or_default() += 1;
        }
        groups
    }

    #[test]
    fn rings_of_tasks_that_wake_one_another_become_groups() {
        let mut grouping = grouping(64);
        wake_in_rings(&mut grouping);
        let found: Vec<u64> = groups(&grouping).into_values().collect();
        assert_eq!(found, [4, 4, 4]);
    }

    #[test]
    fn one_task_that_lets_all_begin_does_not_bring_them_together() {
        let mut grouping = grouping(64);
        for task in 0..11 {
            grouping.meet(TaskId(task), TaskId(11), Instant(0));
        }
        wake_in_rings(&mut grouping);
        let found: Vec<u64> = groups(&grouping).into_values().collect();
        assert_eq!(found, [4, 4, 4]);
    }

    /// Three rings of four tasks, each of which wakes the next.
    fn wake_in_rings(grouping: &mut Grouping) {
        for round in 0..50 {
            for task in 0..12u32 {
                let (ring, place) = (task / 4 * 4, task % 4);
                let (waker, wakee) = (TaskId(ring + place), TaskId(ring + (place + 1) % 4));
                grouping.meet(wakee, waker, Instant(0) + Duration::from_us(round));
            }
        }
    }

    proptest! {
        #[test]
        fn groups_are_bounded_and_members_are_counted(
            most in 2..6u64,
            wakeups in prop::collection::vec((0..20u32, 0..20u32, 0..2_000u64), 1..300),
        ) {
            let mut grouping = grouping(most);
            let mut now = Instant(0);
            for (wakee, waker, ms) in wakeups {
                now += Duration::from_ms(ms);
                let (wakee, waker) = (TaskId(wakee), TaskId(waker));
                grouping.fade(wakee, now);
                if wakee != waker {
                    grouping.meet(wakee, waker, now);
                }
                if ms % 7 == 0 {
                    grouping.exit(waker, now);
                }
                prop_assert_eq!(&groups(&grouping), &grouping.members);
                prop_assert!(grouping.members.values().all(|members| *members <= most));
            }
        }
    }
}
