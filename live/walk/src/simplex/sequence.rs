//! What the numbers of arriving datagrams tell of those that did not arrive.

/// Counts arrivals, gaps and overtaking in one stream.
///
/// Invariant: `gaps` is how many numbers between the first and the highest were not seen, as long
/// as no datagram arrives twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    /// Datagrams that arrived.
    pub arrived: u64,
    /// Numbers that were passed over and did not come later.
    pub gaps: u64,
    /// Datagrams that arrived after a higher number.
    pub overtaken: u64,
    next: Option<u64>,
}

impl Sequence {
    /// Datagram `number` arrived.
    pub fn see(&mut self, number: u64) {
        self.arrived += 1;
        let next = self.next.unwrap_or(number);
        if number < next {
            self.overtaken += 1;
            self.gaps = self.gaps.saturating_sub(1);
            return;
        }
        self.gaps += number - next;
        self.next = Some(number.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(numbers: impl IntoIterator<Item = u64>) -> Sequence {
        let mut sequence = Sequence::default();
        numbers.into_iter().for_each(|number| sequence.see(number));
        sequence
    }

    proptest! {
        #[test]
        fn arrivals_and_gaps_are_all_that_was_sent(
            first in 0_u64..1 << 60, lost in prop::collection::vec(any::<bool>(), 1..400)
        ) {
            // The ends arrive: what is lost before the first or after the last leaves no gap.
            let all = lost.len() as u64 + 2;
            let dropped = |number: &u64| *number > 0 && *number < all - 1 && lost[*number as usize - 1];
            let arrived = (0..all).filter(|number| !dropped(number)).map(|number| first + number);
            let sequence = seen(arrived);
            prop_assert_eq!(sequence.arrived + sequence.gaps, all);
            prop_assert_eq!(sequence.overtaken, 0);
        }

        #[test]
        fn overtaking_loses_nothing(mut order in Just((1_u64..200).collect::<Vec<_>>()).prop_shuffle()) {
            order.insert(0, 0);
            let sequence = seen(order);
            prop_assert_eq!((sequence.arrived, sequence.gaps), (200, 0));
        }
    }

    #[test]
    fn a_late_one_is_no_longer_a_gap() {
        let sequence = seen([5, 6, 9, 7]);
        assert_eq!(
            (sequence.arrived, sequence.gaps, sequence.overtaken),
            (4, 1, 1)
        );
    }
}
