//! What the online algorithm decides, without engine, queues or time.
//!
//! A *place* is where tasks that use the same data run one after another: a CPU in the paper; a
//! scheduler may also take a last-level cache. A *group* is all tasks that use one fragment at one
//! place.
//!
//! - [`Groups`]: which task is in which group, and where a task is to go when it starts, wakes or
//!   changes its fragment.
//! - [`succession`]: who runs next at a place.
//! - [`balance`]: what moves from the busiest place to another.
//!
//! The caller owns run queues and says what runs and what waits. What the paper leaves open is
//! said at each rule.

mod balance;
mod groups;

pub use balance::{Balancing, Members, Move, Reference, View, balance};
pub use groups::{Group, Groups};

/// Where tasks run: a CPU, or a cache with all its CPUs. Counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u16);

impl Place {
    /// The place as an index into a table that has an entry a place.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Which of the tasks that wait at a place runs next, when one on the fragment `last` has run: the
/// first on the same fragment, so that a group runs in succession; else the first of all.
///
/// `waiting` has the fragment of each, in the order of the queue; none for unmanaged ones. The
/// paper does not say which group follows: here it is that of whoever waits longest.
pub fn succession<F: PartialEq>(
    waiting: impl IntoIterator<Item = Option<F>>,
    last: Option<F>,
) -> Option<usize> {
    let mut any = false;
    for (index, fragment) in waiting.into_iter().enumerate() {
        if fragment.is_some() && fragment == last {
            return Some(index);
        }
        any = true;
    }
    any.then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_runs_in_succession_and_then_whoever_waits_longest() {
        let waiting = || [Some('B'), None, Some('A'), Some('A')];
        assert_eq!(succession(waiting(), Some('A')), Some(2));
        assert_eq!(succession(waiting(), Some('C')), Some(0));
        assert_eq!(succession(waiting(), None), Some(0));
        assert_eq!(succession([None, Some('A')], None), Some(0));
        assert_eq!(succession::<char>([], Some('A')), None);
    }
}
