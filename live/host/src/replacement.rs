//! What /proc/cpuinfo lets one know of replacement policies, which /sys does not have.

use warmq_machine::MachineDescription;
use warmq_machine::description::Replacement;

use crate::CPUINFO;
use crate::tree::Tree;

/// Models of Intel's family 6 from Ice Lake on (0x6a: its server part; 0x7d and 0x7e: its client
/// parts came out beside it). Atoms in between have caches of their own kind and few ways.
const ICE_LAKE_SERVER: u32 = 0x6a;
/// Level 2 of these cores has 8 ways or more.
const CORE_WAYS: u32 = 8;

const SOURCE: &str = "Abel and Reineke, uops.info, for level 2 of Ice Lake; inferred for later \
                      cores from walks measured on one of them";

/// Sets the policy of level 2 where it follows from the CPU's model.
pub fn set_known(tree: Tree<'_>, machine: &mut MachineDescription) {
    if !is_ice_lake_or_later(tree) {
        return;
    }
    for cache in machine.caches.iter_mut() {
        if cache.level == 2 && cache.ways >= CORE_WAYS {
            cache.replacement = Replacement::QuadAge;
            machine
                .sources
                .insert("cache.l2.replacement".to_owned(), SOURCE.to_owned());
        }
    }
}

fn is_ice_lake_or_later(tree: Tree<'_>) -> bool {
    let number = |name| {
        tree.field(CPUINFO, name)
            .and_then(|text| text.parse::<u32>().ok())
    };
    tree.field(CPUINFO, "vendor_id").as_deref() == Some("GenuineIntel")
        && number("cpu family") == Some(6)
        && number("model").is_some_and(|model| model >= ICE_LAKE_SERVER)
}
