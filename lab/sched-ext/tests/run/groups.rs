//! Iterators over cgroups.

use warmq_kernel::*;

use crate::stage::*;

const GROUPS: &[u8] = include_bytes!("../programs/groups.bpf.o");

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
