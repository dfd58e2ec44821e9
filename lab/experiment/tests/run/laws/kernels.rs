//! Bounds that differ from one kernel to the next.

use warmq_experiment::laws::shipped;
use warmq_law::{Columns, Verdict};

use super::judged;

/// Since 7.3 a group of seven counts twice on two CPUs, and one thread beside it has 63.6 % of its
/// CPU. Who names the model itself is held to the same as who names the kernel.
#[test]
fn a_kernel_is_held_to_the_limit_of_its_release() {
    let law = [shipped("one-against-many").unwrap().unwrap()];
    for (scheduler, kernel, limit) in [
        ("kernel", "7.2", 80.0),
        ("kernel", "7.3", 55.0),
        ("eevdf-7.3", "7.2", 55.0),
    ] {
        let columns = Columns {
            scheduler: vec![scheduler.to_owned()],
            kernel: vec![kernel.to_owned()],
            ..Columns::default()
        };
        let columns = columns.all().unwrap();
        let cells = judged(&law, &columns);
        let bound = &cells[0].judged.bounds[0];
        assert_eq!(
            (bound.limit, bound.verdict),
            (limit, Verdict::Holds),
            "{scheduler} of {kernel}: {}",
            bound.value
        );
        let least = if limit < 80.0 { 60.0 } else { 95.0 };
        assert!(
            (least..least + 7.0).contains(&bound.value),
            "{}",
            bound.value
        );
    }
}
