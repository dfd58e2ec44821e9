//! The map of fragments to groups: who uses what, and where.

use std::collections::{BTreeMap, BTreeSet};

use super::Place;

/// The groups of all fragments, and the task of each.
///
/// Invariants: a task is in one group at most; no group is empty, so the map is bounded by the
/// number of tasks that have a fragment; the groups of one fragment are at different places. A
/// fragment has several groups only after one was split.
#[derive(Clone, Debug)]
pub struct Groups<F, T> {
    /// The groups of each fragment; new tasks join the first.
    groups: BTreeMap<F, Vec<Group<T>>>,
    /// The fragment of each task that is in a group.
    fragments: BTreeMap<T, F>,
}

/// Tasks that use one fragment at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group<T> {
    /// Where.
    pub place: Place,
    /// Who.
    pub tasks: BTreeSet<T>,
}

impl<F, T> Default for Groups<F, T> {
    fn default() -> Self {
        Groups {
            groups: BTreeMap::new(),
            fragments: BTreeMap::new(),
        }
    }
}

impl<F: Copy + Ord, T: Copy + Ord> Groups<F, T> {
    /// Lets `task` use `fragment` from now on, and says where: at the place of the fragment's group
    /// if it has one, else at the least crowded place; `crowds` says how crowded each is, as by the
    /// number of running tasks there, which is the paper's rule (of several such places at the one
    /// with the lowest number).
    ///
    /// This is the rule for a task that starts, wakes or changes its fragment; it leaves the group
    /// that it is in. The caller migrates it before it touches the data.
    ///
    /// # Panics
    /// When `crowds` is empty.
    pub fn join(&mut self, task: T, fragment: F, crowds: &[impl Ord]) -> Place {
        self.leave(task);
        let groups = self.groups.entry(fragment).or_default();
        if groups.is_empty() {
            let place = least(crowds);
            let tasks = BTreeSet::new();
            groups.push(Group { place, tasks });
        }
        groups[0].tasks.insert(task);
        self.fragments.insert(task, fragment);
        groups[0].place
    }

    /// Takes `task`, which exits, sleeps or changes its fragment, out of its group. An empty group
    /// is removed: the fragment is unknown again.
    pub fn leave(&mut self, task: T) {
        let Some(fragment) = self.fragments.remove(&task) else {
            return;
        };
        let groups = self.groups.get_mut(&fragment).expect("it has a group");
        for group in groups.iter_mut() {
            group.tasks.remove(&task);
        }
        groups.retain(|group| !group.tasks.is_empty());
        if groups.is_empty() {
            self.groups.remove(&fragment);
        }
    }

    /// Moves the whole group of `fragment` at `from` to `to`; one that is there already takes it
    /// in.
    pub fn shift(&mut self, fragment: F, from: Place, to: Place) {
        let Some(groups) = self.groups.get_mut(&fragment).filter(|_| from != to) else {
            return;
        };
        if let Some(index) = groups.iter().position(|group| group.place == from) {
            let moved = groups[index].tasks.clone();
            match groups.iter_mut().find(|group| group.place == to) {
                Some(other) => {
                    other.tasks.extend(moved);
                    groups.remove(index);
                }
                None => groups[index].place = to,
            }
        }
    }

    /// Splits `task` off its group, into the one of the same fragment at `to`.
    pub fn split(&mut self, task: T, to: Place) {
        let Some(groups) = self
            .fragments
            .get(&task)
            .and_then(|fragment| self.groups.get_mut(fragment))
        else {
            return;
        };
        for group in groups.iter_mut() {
            group.tasks.remove(&task);
        }
        match groups.iter_mut().find(|group| group.place == to) {
            Some(group) => {
                group.tasks.insert(task);
            }
            None => groups.push(Group {
                place: to,
                tasks: BTreeSet::from([task]),
            }),
        }
        groups.retain(|group| !group.tasks.is_empty());
    }

    /// The groups of `fragment`: none where it is unknown, more than one where it was split.
    pub fn of(&self, fragment: F) -> &[Group<T>] {
        self.groups.get(&fragment).map_or(&[], Vec::as_slice)
    }

    /// The fragment that `task` uses.
    pub fn fragment_of(&self, task: T) -> Option<F> {
        self.fragments.get(&task).copied()
    }

    /// Where the group of `task` is, if it is in one.
    pub fn place_of(&self, task: T) -> Option<Place> {
        let mut groups = self.of(self.fragment_of(task)?).iter();
        groups
            .find(|group| group.tasks.contains(&task))
            .map(|group| group.place)
    }

    /// How many groups are at `place`.
    pub fn at(&self, place: Place) -> usize {
        let groups = self.groups.values().flatten();
        groups.filter(|group| group.place == place).count()
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }
}

/// The least crowded place.
fn least(crowds: &[impl Ord]) -> Place {
    let places = crowds.iter().zip(0..);
    let (_, place) = places.min().expect("there is a place");
    Place(place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ZERO: Place = Place(0);
    const ONE: Place = Place(1);

    /// Decision case 15 of the paper's table.
    #[test]
    fn an_unknown_fragment_goes_where_least_runs_and_a_known_one_to_its_group() {
        let mut groups = Groups::default();
        assert_eq!(groups.join(1, 'A', &[0, 0]), ZERO);
        assert_eq!(groups.join(2, 'B', &[3, 2]), ONE);
        assert_eq!(groups.join(3, 'A', &[3, 2]), ZERO);
        groups.leave(2);
        assert_eq!(groups.of('B'), []);
        assert_eq!(groups.join(4, 'B', &[1, 2]), ZERO);
    }

    #[test]
    fn a_change_leaves_the_old_group_and_joins_the_new_one() {
        let mut groups = Groups::default();
        groups.join(1, 'A', &[0, 0]);
        groups.join(2, 'B', &[1, 0]);
        assert_eq!(groups.join(1, 'B', &[1, 1]), ONE);
        assert!(groups.of('A').is_empty());
        assert_eq!(groups.of('B')[0].tasks, BTreeSet::from([1, 2]));
        // The last of a group that announces the same again may go elsewhere.
        groups.leave(2);
        assert_eq!(groups.join(1, 'B', &[0, 1]), ZERO);
    }

    #[test]
    fn a_group_that_comes_back_is_taken_in() {
        let mut groups = Groups::default();
        for task in 0..3 {
            groups.join(task, 'A', &[0, 0]);
        }
        groups.split(2, ONE);
        assert_eq!(groups.of('A').len(), 2);
        assert_eq!(groups.join(3, 'A', &[9, 0]), ZERO);
        groups.shift('A', ZERO, ONE);
        let all = BTreeSet::from([0, 1, 2, 3]);
        assert_eq!(
            groups.of('A'),
            [Group {
                place: ONE,
                tasks: all
            }]
        );
    }

    #[derive(Clone, Debug)]
    enum Step {
        Join(u8, u8, Vec<u32>),
        Leave(u8),
        Shift(u8, u16, u16),
        Split(u8, u16),
    }

    fn step() -> impl Strategy<Value = Step> {
        let running = prop::collection::vec(0u32..5, 3);
        prop_oneof![
            4 => (0u8..6, 0u8..3, running)
                .prop_map(|(task, fragment, by)| Step::Join(task, fragment, by)),
            2 => (0u8..6).prop_map(Step::Leave),
            1 => (0u8..3, 0u16..3, 0u16..3)
                .prop_map(|(fragment, from, to)| Step::Shift(fragment, from, to)),
            1 => (0u8..6, 0u16..3).prop_map(|(task, to)| Step::Split(task, to)),
        ]
    }

    proptest! {
        #[test]
        fn no_task_is_in_two_groups_and_no_group_is_empty(steps in prop::collection::vec(step(), 0..60)) {
            let mut groups = Groups::default();
            let mut known: BTreeMap<u8, u8> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Join(task, fragment, running) => {
                        groups.join(task, fragment, &running);
                        known.insert(task, fragment);
                    }
                    Step::Leave(task) => {
                        groups.leave(task);
                        known.remove(&task);
                    }
                    Step::Shift(fragment, from, to) => groups.shift(fragment, Place(from), Place(to)),
                    Step::Split(task, to) => groups.split(task, Place(to)),
                }
                let mut seen = BTreeMap::new();
                for fragment in 0..3 {
                    let of = groups.of(fragment);
                    let places: BTreeSet<Place> = of.iter().map(|group| group.place).collect();
                    prop_assert_eq!(places.len(), of.len());
                    for group in of {
                        prop_assert!(!group.tasks.is_empty());
                        for task in &group.tasks {
                            prop_assert_eq!(seen.insert(*task, fragment), None);
                        }
                    }
                }
                prop_assert_eq!(&seen, &known);
            }
        }
    }
}
