//! What a program's work takes, in instructions of the machine.
//!
//! Measured in guests of 6.18 and 7.3 whose clocks count instructions, by scripts/bpf-costs.sh:
//! what a switch takes with 40 calls more against 8 calls, without the BPF instructions that make
//! their arguments. What a machine takes for an instruction is its cost `hundred_instructions`;
//! memory is the caches'.

use warmq_bpf::MapKind;
use warmq_kernel::{Attach, UnknownCost};
use warmq_units::{Cycles, Duration};

use crate::load::Loaded;

/// What the program's work takes, in instructions of the machine, where [`CALLS`] says nothing.
#[derive(Clone, Copy, Debug)]
pub struct Expenses {
    /// Of 100 BPF instructions.
    pub instructions: u64,
    /// Of a call of a kfunc.
    pub kfunc: u64,
    /// Of a call of a helper.
    pub helper: u64,
    /// Of a callback: the call, and what sched_ext does around it.
    pub callback: u64,
}

/// What was measured.
impl Default for Expenses {
    fn default() -> Expenses {
        Expenses {
            instructions: 120,
            kfunc: 60,
            helper: 40,
            callback: 120,
        }
    }
}

/// Instructions of a kfunc or helper in 6.18 and in 7.3; those that 6.18 lacks have 7.3's. Of two
/// that were measured as a pair (take and give back), each has half.
const CALLS: &[(&str, u64, u64)] = &[
    ("bpf_cgroup_release", 23, 33),
    ("bpf_cpumask_empty", 24, 24),
    ("bpf_cpumask_first", 19, 19),
    ("bpf_cpumask_test_cpu", 9, 9),
    ("bpf_get_current_task_btf", 3, 2),
    ("bpf_get_prandom_u32", 50, 50),
    ("bpf_get_smp_processor_id", 2, 2),
    ("bpf_iter_num_next", 10, 7),
    ("bpf_kptr_xchg", 2, 2),
    ("bpf_ktime_get_ns", 52, 46),
    // Of an array; of a hash see HASH_LOOKUP.
    ("bpf_map_lookup_elem", 5, 5),
    ("bpf_map_lookup_percpu_elem", 17, 17),
    ("bpf_map_update_elem", 406, 399),
    ("bpf_rcu_read_lock", 10, 10),
    ("bpf_rcu_read_unlock", 9, 9),
    ("bpf_spin_lock", 16, 14),
    ("bpf_spin_unlock", 15, 14),
    ("bpf_task_from_pid", 82, 82),
    ("bpf_task_release", 82, 82),
    ("bpf_task_storage_get", 42, 35),
    ("bpf_timer_start", 487, 642),
    ("scx_bpf_cpu_node", 48, 71),
    ("scx_bpf_cpuperf_cap", 49, 74),
    ("scx_bpf_cpuperf_set", 72, 117),
    // In place of the kernel's own insert into its global queue.
    ("scx_bpf_dsq_insert", 143, 195),
    ("scx_bpf_dsq_insert_vtime", 210, 247),
    // With a task in it; 219 and 242 without.
    ("scx_bpf_dsq_move_to_local", 286, 330),
    // Of a queue of the program's; 44 and 70 of a CPU's own.
    ("scx_bpf_dsq_nr_queued", 137, 143),
    ("scx_bpf_dsq_peek", 134, 134),
    ("scx_bpf_get_idle_cpumask", 15, 29),
    // With the interrupt that this CPU sends itself (`irq_work_queue()`); 133 and 169 of one more
    // before that comes.
    ("scx_bpf_kick_cpu", 590, 751),
    ("scx_bpf_now", 86, 86),
    ("scx_bpf_nr_cpu_ids", 4, 4),
    ("scx_bpf_pick_idle_cpu", 125, 155),
    ("scx_bpf_put_idle_cpumask", 15, 29),
    ("scx_bpf_task_cgroup", 24, 34),
    ("scx_bpf_task_cpu", 4, 4),
    ("scx_bpf_task_running", 17, 17),
    ("scx_bpf_task_set_dsq_vtime", 56, 56),
    ("scx_bpf_task_set_slice", 80, 80),
    ("scx_bpf_test_and_clear_cpu_idle", 66, 98),
];

/// A lookup in a hash.
const HASH_LOOKUP: (u64, u64) = (140, 134);

/// The number of `bpf_map_lookup_elem`.
const MAP_LOOKUP: u32 = 1;

/// Numbers in `enum bpf_func_id` are below this.
const HELPERS: u32 = 256;

/// What the program's work takes on a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Costs {
    /// Of 100 BPF instructions.
    pub(crate) instructions: Duration,
    /// Of calling the program.
    pub(crate) callback: Duration,
    /// By index in `Image::kfuncs`, and by number.
    kfuncs: Vec<Duration>,
    helpers: Vec<Duration>,
    hash_lookup: Duration,
    /// Which maps are hashes.
    hashes: Vec<bool>,
    /// What a wakeup and a pick take without BPF.
    pub(crate) wakeup: Cycles,
    pub(crate) pick: Cycles,
}

impl Costs {
    /// Of an object as it is loaded.
    pub(crate) fn new(
        attach: &Attach<'_>,
        expenses: Expenses,
        loaded: &Loaded,
    ) -> Result<Costs, UnknownCost> {
        let hundred = attach.cost("hundred_instructions")?;
        let time = |instructions: u64| attach.time_of(Cycles(instructions * hundred.0)) / 100;
        let of = |(older, newer): (u64, u64)| match loaded.series.as_str() {
            "6.18" => time(older),
            _ => time(newer),
        };
        let call = |name: &str, other: u64| of(measured(name).unwrap_or((other, other)));
        let helper = |number: u32| {
            let name = loaded.kernel.helper_name(number).unwrap_or_default();
            call(&name, expenses.helper)
        };
        let image = &loaded.image;
        let kfuncs = image.kfuncs.iter();
        Ok(Costs {
            instructions: time(expenses.instructions),
            callback: time(expenses.callback),
            kfuncs: kfuncs.map(|name| call(name, expenses.kfunc)).collect(),
            helpers: (0..HELPERS).map(helper).collect(),
            hash_lookup: of(HASH_LOOKUP),
            hashes: image
                .maps
                .iter()
                .map(|map| map.kind == MapKind::Hash)
                .collect(),
            wakeup: attach.cost("wakeup")?,
            pick: attach.cost("schedule_fixed")?,
        })
    }

    pub(crate) fn kfunc(&self, which: u32) -> Duration {
        self.kfuncs.get(which as usize).copied().unwrap_or_default()
    }

    /// Of a helper, for a lookup in a map.
    pub(crate) fn helper(&self, number: u32, map: Option<u32>) -> Duration {
        let is_hash = map.is_some_and(|map| self.hashes.get(map as usize) == Some(&true));
        if number == MAP_LOOKUP && is_hash {
            return self.hash_lookup;
        }
        self.helpers
            .get(number as usize)
            .copied()
            .unwrap_or_default()
    }
}

/// What was measured of a call. Objects name kfuncs for certain kernels: `..._insert___v2`, and
/// `__scx_bpf_...` for those whose arguments are in a struct.
fn measured(name: &str) -> Option<(u64, u64)> {
    let name = name.split("___").next().unwrap_or(name);
    let name = name.trim_start_matches("__");
    let known = CALLS.iter().find(|(known, ..)| *known == name);
    known.map(|(_, older, newer)| (*older, *newer))
}

#[cfg(test)]
mod tests {
    use warmq_bpf::KernelTable;

    use super::*;
    use crate::load::offer;

    /// A name that nobody calls would be a cost that nobody pays.
    #[test]
    fn every_call_that_was_measured_is_one_that_is_offered() {
        let kernel = KernelTable::of("7.3").expect("a table");
        let offered = offer();
        let helpers = offered.helpers.iter();
        let helpers: Vec<String> = helpers.filter_map(|one| kernel.helper_name(*one)).collect();
        for (name, ..) in CALLS {
            let known = offered.kfuncs.contains(*name) || helpers.iter().any(|one| one == name);
            assert!(known, "{name}");
        }
        assert!(CALLS.is_sorted_by_key(|(name, ..)| *name));
    }

    #[test]
    fn a_lookup_costs_what_its_map_is() {
        let costs = Costs {
            helpers: vec![Duration(1), Duration(5)],
            hash_lookup: Duration(140),
            hashes: vec![false, true],
            ..Costs::default()
        };
        assert_eq!(costs.helper(MAP_LOOKUP, Some(0)), Duration(5));
        assert_eq!(costs.helper(MAP_LOOKUP, Some(1)), Duration(140));
        assert_eq!(costs.helper(0, Some(1)), Duration(1));
        assert_eq!(costs.helper(MAP_LOOKUP, None), Duration(5));
    }

    #[test]
    fn calls_of_several_kernels_have_one_cost() {
        let moved = measured("scx_bpf_dsq_move_to_local");
        assert!(moved.is_some());
        assert_eq!(measured("scx_bpf_dsq_move_to_local___v2"), moved);
        let inserted = measured("scx_bpf_dsq_insert_vtime");
        assert_eq!(measured("__scx_bpf_dsq_insert_vtime"), inserted);
        assert_eq!(measured("bpf_no_such_call"), None);
    }
}
