//! Changes from outside at random times: of tasks, whatever these do just then, and of cgroups.

use proptest::prelude::*;
use warmq_kernel::{Boot, Change, GroupId, Workload};
use warmq_machine::OutOfMemory;
use warmq_units::{CpuId, Duration, Instant, TaskId};

use warmq_random::Script;

/// The root, one in it, one in that, and another in the root.
const GROUPS: usize = 4;

/// A change of a task or a cgroup, by number (modulo those there are).
#[derive(Clone, Copy, Debug)]
enum What {
    Nice(u32, i8),
    /// The CPUs as a mask.
    Affinity(u32, u16),
    Group(u32, usize),
    Weight(usize, u32),
}

/// What happens when, in ns since the start.
#[derive(Clone, Debug)]
pub struct Later {
    weights: [u32; GROUPS],
    changes: Vec<(u64, What)>,
}

pub fn later() -> impl Strategy<Value = Later> {
    let task = || 0u32..20;
    let weight = || prop_oneof![1u32..10_001, 50u32..200];
    let group = || 1..GROUPS;
    let what = prop_oneof![
        3 => (task(), -20i8..20).prop_map(|(task, nice)| What::Nice(task, nice)),
        3 => (task(), 1u16..256).prop_map(|(task, cpus)| What::Affinity(task, cpus)),
        1 => (task(), 0u16..8).prop_map(|(task, cpu)| What::Affinity(task, 1 << cpu)),
        1 => task().prop_map(|task| What::Affinity(task, u16::MAX)),
        3 => (task(), 0..GROUPS).prop_map(|(task, group)| What::Group(task, group)),
        1 => (group(), weight()).prop_map(|(group, weight)| What::Weight(group, weight)),
    ];
    let at = prop_oneof![Just(0), 0u64..20_000_000, 0u64..300_000_000];
    let changes = prop::collection::vec((at, what), 0..25);
    (prop::array::uniform(weight()), changes)
        .prop_map(|(weights, changes)| Later { weights, changes })
}

impl What {
    fn change(self, tasks: u32, cpus: u16, groups: &[GroupId]) -> Change {
        let task = |number| TaskId(number % tasks);
        match self {
            What::Nice(of, nice) => Change::Nice(task(of), nice),
            What::Affinity(of, mask) => {
                let allowed = (0..cpus).filter(|cpu| mask >> cpu & 1 == 1);
                Change::Affinity(task(of), allowed.map(CpuId).collect())
            }
            What::Group(of, to) => Change::Group(task(of), groups[to]),
            What::Weight(of, weight) => Change::Weight(groups[of], weight),
        }
    }
}

/// A script, and changes while it is played.
pub struct Changing<'a> {
    pub script: &'a Script,
    pub later: &'a Later,
}

impl Workload for Changing<'_> {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        self.script.start(boot)?;
        let outer = boot.group(GroupId::ROOT, "outer", self.later.weights[1]);
        let inner = boot.group(outer, "inner", self.later.weights[2]);
        let other = boot.group(GroupId::ROOT, "other", self.later.weights[3]);
        let groups = [GroupId::ROOT, outer, inner, other];
        // Readers, the waiter, the bell, parts, and the receiver; their numbers begin at 0.
        let script = self.script;
        let tasks =
            script.streams.len() + 2 + script.parts.len() + usize::from(script.flood.is_some());
        for (at, what) in &self.later.changes {
            let change = what.change(tasks as u32, boot.cpus(), &groups);
            let at = Instant::START + Duration::from_ns(*at);
            boot.operator(at, |operator| async move {
                operator.change(change).await;
            });
        }
        Ok(())
    }
}
