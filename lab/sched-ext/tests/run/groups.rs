//! Iterators over cgroups, and what programs hear of changes.

use warmq_kernel::*;
use warmq_units::Instant;

use crate::stage::*;

const GROUPS: &[u8] = include_bytes!("../programs/groups.bpf.o");
const CHANGES: &[u8] = include_bytes!("../programs/changes.bpf.o");

/// The names of cgroups `a`, `a/b`, `a/c` and `d` in an order, from the root or from `d`.
fn walked(order: i128) -> String {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let a = boot.group(GroupId::ROOT, "a", 100);
        let groups = [boot.group(a, "b", 100), boot.group(a, "c", 100)];
        let last = boot.group(GroupId::ROOT, "d", 100);
        for group in groups.into_iter().chain([last]) {
            hog(boot, called("t").group(group))?;
        }
        Ok(())
    };
    let loaded = load(GROUPS, "7.3", &[("order", order), ("most", 5)]);
    said(&play(loaded, 1, 100, &workload))
}

#[test]
fn cgroups_are_walked_in_the_orders_of_the_kernel() {
    // BPF_CGROUP_ITER_DESCENDANTS_PRE, ..._POST, BPF_CGROUP_ITER_ANCESTORS_UP, none of these
    let table = [(2, "//a/b/c/d"), (3, "/b/c/a/d/"), (4, "/d/"), (1, "!")];
    for (order, expected) in table {
        assert_eq!(walked(order), expected, "order {order}");
    }
}

/// What a program hears of a cgroup's changes, in this order: idle twice, a weight of 300, not idle
/// any more, the weights 300 and 400.
fn heard(series: &str, most: i128) -> String {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let group = boot.group(GroupId::ROOT, "a", 200);
        hog(boot, called("t").group(group))?;
        let changes = [
            Change::Idle(group, true),
            Change::Idle(group, true),
            Change::Weight(group, 300),
            Change::Idle(group, false),
            Change::Weight(group, 300),
            Change::Weight(group, 400),
        ];
        for (at, change) in (1..).zip(changes) {
            boot.operator(Instant::START + ms(at), |operator| async move {
                operator.change(change).await;
            });
        }
        Ok(())
    };
    let loaded = load(CHANGES, series, &[("most", most)]);
    said(&play(loaded, 1, 100, &workload))
}

/// `cpu_idle_write_s64()` says that a group is idle and nothing of its weight, which is EINVAL to
/// set meanwhile. Up to 6.18 there is no such callback.
#[test]
fn a_cgroup_becomes_idle_and_an_ordinary_one_again() {
    assert_eq!(heard("7.3", 4), "i1 i0 w300 w400");
    assert_eq!(heard("6.18", 2), "w300 w400");
}
