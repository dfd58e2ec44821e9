//! What must hold of groups, looked at whenever a CPU has picked, pulled or switched, over random
//! scripts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_config::{Chosen, Value};
use warmq_kernel::{Boot, Context, Costs, Ending, Kernel, MakeScheduler, Settings, Workload};
use warmq_machine::{builtin, read_toml};
use warmq_random::{Act, Script, scripts};
use warmq_units::{CpuId, Duration, Instant, Seed, TaskId};

use super::{Affinity, Base};

impl<B: Base> Affinity<B> {
    pub(super) fn check(&self, context: &Context<'_>) {
        let named = (0..).map(TaskId).zip(&self.named);
        for (task, fragment) in named {
            assert_eq!(self.groups.fragment_of(task), *fragment, "{task}");
            let Some(fragment) = *fragment else { continue };
            let groups = self.groups.of(fragment);
            let own = groups.iter().filter(|group| group.tasks.contains(&task));
            assert_eq!(own.count(), 1, "{task} is in one group");
            assert!(
                self.lines.group(fragment).is_some(),
                "its group is in the map"
            );
            let splits = self.options.split_after.is_some();
            assert!(
                splits || groups.len() == 1,
                "nothing but a split makes two groups"
            );
        }
        let members: usize = self.groups.count();
        let fragments: std::collections::BTreeSet<_> = self.named.iter().flatten().collect();
        assert!(members >= fragments.len(), "no group is forgotten");
        self.check_places(context);
    }

    /// Who waits does so at its group's place.
    fn check_places(&self, context: &Context<'_>) {
        for cpu in (0..context.cpus()).map(CpuId) {
            for task in self.base.waiting(cpu) {
                let waits = context.task(task).on_cpu().is_none();
                let elsewhere = self.belongs_elsewhere(context, task, cpu);
                let excused = !waits || self.late.contains(&task);
                assert!(
                    excused || elsewhere.is_none(),
                    "{task} waits on {cpu:?}, not at {elsewhere:?}"
                );
            }
        }
    }
}

/// Whether a task may ever be at a place that is forbidden to it, which excuses it.
fn is_free(act: &Act) -> bool {
    !matches!(act, Act::Bind(_) | Act::Online(..))
}

fn set(place: bool, waits: bool, writes: bool, splits: u64) -> BTreeMap<String, Value> {
    let word = |one: &str, other: &str, first: bool| {
        Value::Text(if first { one } else { other }.to_owned())
    };
    BTreeMap::from([
        ("place".to_owned(), word("llc", "cpu", place)),
        ("at_change".to_owned(), word("wait", "preempt", waits)),
        (
            "hint_cost".to_owned(),
            word("memory_write", "system_call", writes),
        ),
        (
            "split_after".to_owned(),
            Value::Duration(Duration::from_ms(splits)),
        ),
        (
            "balance_every".to_owned(),
            Value::Duration(Duration::from_ms(20)),
        ),
    ])
}

fn play(name: &str, script: &Script, cpus: usize, set: BTreeMap<String, Value>) -> Ending {
    let entry = crate::scheduler(name).expect("a scheduler");
    let shipped = |name: &str| {
        let text = builtin(name).expect("a shipped machine");
        read_toml(name, text).expect("a sound machine")
    };
    let mut machine = shipped("small-4llc");
    machine.cpus.truncate(cpus);
    let settings = Settings {
        caches: false,
        ..entry.kernel_settings(Seed(1))
    };
    let costs = Costs::new(shipped("epyc-12llc").costs["linux-2.4"].clone());
    let chosen = Chosen::new(entry.settings(), set).expect("settings that it has");
    let make: MakeScheduler = entry.build(chosen);
    let workload = |boot: &mut Boot<'_>| script.start(boot);
    let kernel = Kernel::boot(&machine, &costs, settings, make, &workload, ());
    let mut kernel = kernel.expect("the workload fits");
    kernel.run_until(Instant::START + Duration::from_ms(1_000))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn groups_add_up_and_wait_at_their_places(
        mut script in scripts(), cpus in 1usize..7,
        place: bool, waits: bool, writes: bool, splits in prop::sample::select(vec![0u64, 10, 800])
    ) {
        script.parts.iter_mut().for_each(|part| part.acts.retain(is_free));
        for name in ["affinity-o1", "affinity-cfs", "affinity-eevdf"] {
            let ending = play(name, &script, cpus, set(place, waits, writes, splits));
            prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{name}: {ending}");
        }
    }
}
