//! Load balancing by whole groups.

/// What balancing sees of a place: its tasks, running or waiting for a CPU there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View<F> {
    /// The groups that have tasks there, the one that may leave first, first.
    pub groups: Vec<Members<F>>,
    /// Unmanaged tasks that wait and may run at the other place.
    pub unmanaged: u32,
    /// Unmanaged tasks that run, or may not leave.
    pub unmanaged_bound: u32,
}

/// The tasks of a group at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members<F> {
    /// Their fragment.
    pub fragment: F,
    /// How many wait.
    pub waiting: u32,
    /// How many run, or may not leave: then the group cannot move as a whole.
    pub bound: u32,
}

/// How a place decides whether another has too many tasks, and when a group may be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balancing {
    /// Of what the difference must be `percent`.
    pub reference: Reference,
    /// How great a difference is an imbalance, in percent: 25 in the paper.
    pub percent: u32,
    /// A group may be split after so many looks in a row that found an imbalance and nothing that
    /// could move: the paper splits when an imbalance "lasts". None: never.
    pub split_after: Option<u32>,
}

/// Of what the difference of two places must be so many percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reference {
    /// Of the busiest place's tasks: 4 * (busiest - own) >= busiest, as in `find_busiest_queue()`
    /// of Linux 2.6.4.
    #[default]
    Busiest,
    /// Of the place's own: 25 % more than its own, in the words of the paper.
    Own,
}

/// What to move to the place that looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move<F> {
    /// There is no imbalance.
    Nothing,
    /// The whole group of this fragment.
    Group(F),
    /// So many unmanaged tasks.
    Unmanaged(u32),
    /// So many waiting tasks of the group of this fragment, which is split.
    Split(F, u32),
    /// There is an imbalance, but nothing can move: it lasts.
    Stuck,
}

impl<F: Copy> View<F> {
    /// All tasks.
    pub fn tasks(&self) -> u32 {
        self.managed() + self.unmanaged + self.unmanaged_bound
    }

    fn managed(&self) -> u32 {
        let groups = self.groups.iter();
        groups.map(|group| group.waiting + group.bound).sum()
    }
}

/// What moves from `busiest`, the other place with the most tasks, to `own`; `stuck` looks in a row
/// have found nothing that could move.
///
/// An idle place takes whatever it can from one with two tasks or more; a busy one needs a
/// difference of `percent`. The kind of tasks, managed or unmanaged, of which `busiest` has more in
/// excess moves, else the other. Of several groups it is the one that leaves the least difference,
/// and none that would only turn the imbalance around (the paper does not say which).
pub fn balance<F: Copy>(
    balancing: &Balancing,
    own: &View<F>,
    busiest: &View<F>,
    stuck: u32,
) -> Move<F> {
    let Some(excess) = excess(balancing, own.tasks(), busiest.tasks()) else {
        return Move::Nothing;
    };
    let group = || group(busiest, excess).map(Move::Group);
    let unmanaged = || unmanaged(busiest, own.tasks(), excess).map(Move::Unmanaged);
    let managed_excess = i64::from(busiest.managed()) - i64::from(own.managed());
    let moved = match 2 * managed_excess >= i64::from(excess) {
        true => group().or_else(unmanaged),
        false => unmanaged().or_else(group),
    };
    let split = || match balancing.split_after {
        Some(after) if stuck >= after => split(busiest, excess),
        _ => None,
    };
    moved.or_else(split).unwrap_or(Move::Stuck)
}

/// How many tasks more the busiest place has, if that is an imbalance.
fn excess(balancing: &Balancing, own: u32, busiest: u32) -> Option<u32> {
    let excess = busiest.checked_sub(own)?;
    let of = match balancing.reference {
        Reference::Busiest => busiest,
        Reference::Own => own,
    };
    let imbalanced = match own {
        0 => busiest >= 2,
        _ => excess > 0 && 100 * u64::from(excess) >= u64::from(balancing.percent) * u64::from(of),
    };
    imbalanced.then_some(excess)
}

/// The group whose move leaves the least difference.
fn group<F: Copy>(busiest: &View<F>, excess: u32) -> Option<F> {
    let whole = busiest.groups.iter().filter(|group| group.bound == 0);
    let better = whole.filter(|group| 0 < group.waiting && group.waiting < excess);
    let best = better.min_by_key(|group| excess.abs_diff(2 * group.waiting));
    best.map(|group| group.fragment)
}

/// One for an idle place, half of the excess for a busy one, as Linux 2.6.4 pulls.
fn unmanaged<F>(busiest: &View<F>, own: u32, excess: u32) -> Option<u32> {
    let wanted = if own == 0 { 1 } else { excess / 2 };
    let count = wanted.min(busiest.unmanaged);
    (count > 0).then_some(count)
}

/// A part of the group of which most tasks wait: half of the excess.
fn split<F: Copy>(busiest: &View<F>, excess: u32) -> Option<Move<F>> {
    let groups = busiest.groups.iter().rev();
    let largest = groups.max_by_key(|group| group.waiting)?;
    let count = largest.waiting.min(excess / 2);
    (count > 0).then_some(Move::Split(largest.fragment, count))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USUAL: Balancing = Balancing {
        reference: Reference::Busiest,
        percent: 25,
        split_after: Some(3),
    };

    fn view(groups: &[(char, u32, u32)], unmanaged: u32, unmanaged_bound: u32) -> View<char> {
        let members = |&(fragment, waiting, bound): &(char, u32, u32)| Members {
            fragment,
            waiting,
            bound,
        };
        View {
            groups: groups.iter().map(members).collect(),
            unmanaged,
            unmanaged_bound,
        }
    }

    /// Decision case 16 of the paper's table, and what else the rules say.
    #[test]
    fn whole_groups_move_then_unmanaged_tasks_and_parts_only_when_it_lasts() {
        let idle = view(&[], 0, 0);
        let (a, b) = (('A', 4, 1), ('B', 3, 0));
        let table = [
            (view(&[a, b], 0, 0), 0, Move::Group('B')),
            (view(&[a, b], 2, 0), 0, Move::Group('B')),
            (view(&[a], 2, 0), 0, Move::Unmanaged(1)),
            (view(&[a], 0, 0), 0, Move::Stuck),
            (view(&[a], 0, 0), 2, Move::Stuck),
            (view(&[a], 0, 0), 3, Move::Split('A', 2)),
            // Unmanaged tasks cause it.
            (view(&[('B', 1, 0)], 4, 1), 0, Move::Unmanaged(1)),
            (view(&[('B', 1, 0)], 0, 2), 0, Move::Group('B')),
            // The group that leaves the least difference, of equal ones the first.
            (
                view(&[('A', 1, 0), ('B', 2, 0), ('C', 2, 0), ('D', 0, 1)], 0, 0),
                0,
                Move::Group('B'),
            ),
            // All that there is would only change its place.
            (view(&[('A', 3, 0)], 0, 0), 0, Move::Stuck),
            (view(&[('A', 0, 1)], 0, 0), 9, Move::Nothing),
            (view(&[('A', 1, 1)], 0, 0), 3, Move::Split('A', 1)),
        ];
        for (busiest, stuck, moved) in table {
            assert_eq!(
                balance(&USUAL, &idle, &busiest, stuck),
                moved,
                "{busiest:?}"
            );
        }
    }

    /// Decision cases 7 and 8: when a difference is an imbalance, and of what it is 25 %.
    #[test]
    fn an_imbalance_is_a_quarter() {
        let table = [
            (Reference::Busiest, 4, 5, None),
            (Reference::Own, 4, 5, Some(1)),
            (Reference::Own, 5, 6, None),
            (Reference::Busiest, 4, 6, Some(2)),
            (Reference::Busiest, 2, 8, Some(6)),
            (Reference::Busiest, 3, 4, Some(1)),
            (Reference::Busiest, 0, 1, None),
            (Reference::Busiest, 0, 2, Some(2)),
            (Reference::Own, 3, 3, None),
            (Reference::Own, 3, 2, None),
        ];
        for (reference, own, busiest, wanted) in table {
            let balancing = Balancing { reference, ..USUAL };
            assert_eq!(excess(&balancing, own, busiest), wanted, "{own} {busiest}");
        }
    }

    #[test]
    fn a_busy_place_takes_half_of_what_unmanaged_tasks_are_too_many() {
        let own = view(&[], 0, 2);
        let busiest = view(&[], 7, 1);
        assert_eq!(balance(&USUAL, &own, &busiest, 0), Move::Unmanaged(3));
    }

    fn any_view() -> impl Strategy<Value = View<char>> {
        let groups = prop::collection::vec((0u32..6, 0u32..2), 0..4);
        (groups, 0u32..5, 0u32..2).prop_map(|(groups, unmanaged, bound)| {
            let names = ['A', 'B', 'C', 'D'];
            let named = names.into_iter().zip(groups);
            let groups: Vec<_> = named
                .map(|(name, (waiting, bound))| (name, waiting, bound))
                .collect();
            view(&groups, unmanaged, bound)
        })
    }

    proptest! {
        #[test]
        fn a_move_makes_the_difference_smaller(own in any_view(), busiest in any_view(), stuck in 0u32..5) {
            let count = match balance(&USUAL, &own, &busiest, stuck) {
                Move::Nothing | Move::Stuck => return Ok(()),
                Move::Group(fragment) => {
                    let mut groups = busiest.groups.iter();
                    let group = groups.find(|group| group.fragment == fragment).unwrap();
                    prop_assert_eq!(group.bound, 0, "a part of the group would stay");
                    group.waiting
                }
                Move::Unmanaged(count) => {
                    prop_assert!(count <= busiest.unmanaged);
                    count
                }
                Move::Split(fragment, count) => {
                    prop_assert!(stuck >= 3);
                    let mut groups = busiest.groups.iter();
                    let group = groups.find(|group| group.fragment == fragment).unwrap();
                    prop_assert!(count <= group.waiting);
                    count
                }
            };
            let excess = busiest.tasks() - own.tasks();
            prop_assert!(count > 0);
            prop_assert!(excess.abs_diff(2 * count) < excess);
        }
    }
}
