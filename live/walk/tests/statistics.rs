//! Median and quartiles.

use proptest::prelude::*;
use warmq_walk::Spread;

#[test]
fn quartiles_lie_between_the_nearest_ranks() {
    let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!(
        spread,
        Spread {
            min: 1.0,
            low: 1.75,
            median: 2.5,
            high: 3.25,
            max: 4.0
        }
    );
    let one = Spread::of(&[7.0]).unwrap();
    assert_eq!([one.min, one.low, one.median, one.high, one.max], [7.0; 5]);
    assert_eq!(Spread::of(&[]), None);
}

proptest! {
    #[test]
    fn a_spread_is_in_order_and_no_order_of_the_samples_changes_it(
        mut samples in prop::collection::vec(0.0..1e6_f64, 1..40),
    ) {
        let spread = Spread::of(&samples).unwrap();
        prop_assert!(spread.min <= spread.low && spread.low <= spread.median);
        prop_assert!(spread.median <= spread.high && spread.high <= spread.max);
        samples.reverse();
        prop_assert_eq!(Spread::of(&samples).unwrap(), spread);
    }
}
