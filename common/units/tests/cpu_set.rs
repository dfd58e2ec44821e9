//! A bitmap of CPUs behaves as a set of numbers does.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warmq_units::{CpuId, CpuSet};

proptest! {
    #[test]
    fn a_cpu_set_is_a_set(
        steps in prop::collection::vec((any::<bool>(), 0u16..200), 0..60),
        other in prop::collection::btree_set(0u16..200, 0..40),
    ) {
        let (mut set, mut model) = (CpuSet::default(), BTreeSet::new());
        for (adds, cpu) in steps {
            if adds {
                set.insert(CpuId(cpu));
                model.insert(cpu);
            } else {
                set.remove(CpuId(cpu));
                model.remove(&cpu);
            }
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
        }
        prop_assert!(set.iter().map(|cpu| cpu.0).eq(model.iter().copied()));
        prop_assert_eq!(set.first().map(|cpu| cpu.0), model.first().copied());
        prop_assert!((0..256).all(|cpu| set.contains(CpuId(cpu)) == model.contains(&cpu)));
        // Equal sets are equal, whatever was in them before.
        let again: CpuSet = model.iter().copied().map(CpuId).collect();
        prop_assert_eq!(&set, &again);
        let others: CpuSet = other.iter().copied().map(CpuId).collect();
        let both: CpuSet = model.intersection(&other).copied().map(CpuId).collect();
        prop_assert_eq!(set.intersection(&others), both);
    }
}

#[test]
fn a_set_prints_as_the_kernel_prints_lists() {
    let set = |cpus: &[u16]| {
        cpus.iter()
            .copied()
            .map(CpuId)
            .collect::<CpuSet>()
            .to_string()
    };
    assert_eq!(set(&[]), "");
    assert_eq!(set(&[3]), "3");
    assert_eq!(set(&[0, 1, 2, 5, 64, 65]), "0-2,5,64-65");
}
