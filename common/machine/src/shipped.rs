//! The machines that come with WarmQ, inside the program.

use std::collections::BTreeMap;

use crate::description::Cost;
use crate::toml_machine::read_toml;

const SHIPPED: &[(&str, &str)] = warmq_config::texts! {
    "../machines/":
    "core2duo"
    "epyc-12llc"
    "epyc-vm"
    "guest-1cpu"
    "guest-8cpu"
    "i7-12700k"
    "p3xeon-8way"
    "p4"
    "pentium-d"
    "ppro-4way"
    "rk3399"
    "server-24llc"
    "small-4llc"
    "small-smt"
    "smt-8core"
    "tiny-1cpu"
    "tiny-2cpu"
    "two-nodes"
    "two-nodes-adjacent"
    "xeon-16vm"
    "xeon-2way"
};

/// The TOML of a machine that comes with WarmQ, for [`read_toml`](crate::read_toml).
pub fn builtin(name: &str) -> Option<&'static str> {
    SHIPPED
        .iter()
        .find(|(shipped, _)| *shipped == name)
        .map(|(_, text)| *text)
}

/// The names of the machines that come with WarmQ, ascending.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The costs of kernels on a machine that comes with WarmQ, by kernel and cost, for one on which
/// nobody measured any: each source says where it is taken from. Empty for a name that no machine
/// has.
pub fn costs_taken_from(name: &str) -> BTreeMap<String, BTreeMap<String, Cost>> {
    let machine = builtin(name).and_then(|text| read_toml(name, text).ok());
    let mut costs = machine.map(|machine| machine.costs).unwrap_or_default();
    for cost in costs.values_mut().flat_map(BTreeMap::values_mut) {
        cost.source = format!("taken from {name}: {}", cost.source);
    }
    costs
}
