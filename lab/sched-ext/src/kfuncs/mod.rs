//! Kfuncs and helpers that need the scheduler's state; what needs memory and maps alone is in
//! lab/bpf-run.

mod cpus;
mod groups;
mod queues;
mod tasks;

use warmq_bpf_run::Ending;
use warmq_units::{CpuId, TaskId};

use crate::state::Here;

pub(crate) use cpus::select_without_program;

type Args = [u64; 5];
type Answer = Result<u64, Ending>;

/// A kfunc or a helper.
type Run = fn(&mut Here<'_, '_>, Args) -> Answer;

/// Kfuncs by their names.
pub(crate) const KFUNCS: &[(&str, Run)] = &[
    ("scx_bpf_create_dsq", queues::create),
    ("scx_bpf_destroy_dsq", queues::destroy),
    ("scx_bpf_dsq_insert", queues::insert),
    ("scx_bpf_dsq_insert___v2", queues::insert),
    ("scx_bpf_dsq_insert_vtime", queues::insert_vtime),
    ("__scx_bpf_dsq_insert_vtime", queues::insert_vtime_args),
    ("scx_bpf_dsq_move_to_local", queues::move_to_local),
    ("scx_bpf_dsq_move_to_local___v2", queues::move_to_local_with),
    ("scx_bpf_dsq_nr_queued", queues::count),
    ("scx_bpf_dsq_peek", queues::peek),
    ("scx_bpf_dsq_reenq", queues::reenqueue),
    ("scx_bpf_reenqueue_local", queues::reenqueue_local),
    ("scx_bpf_reenqueue_local___v2", queues::reenqueue_local),
    ("bpf_iter_css_new", groups::new),
    ("bpf_iter_css_next", groups::next),
    ("bpf_iter_css_destroy", groups::destroy),
    ("bpf_iter_scx_dsq_new", queues::walk_new),
    ("bpf_iter_scx_dsq_next", queues::walk_next),
    ("bpf_iter_scx_dsq_destroy", queues::walk_destroy),
    ("scx_bpf_dsq_move", queues::walk_move),
    ("scx_bpf_dsq_move_vtime", queues::walk_move_vtime),
    ("scx_bpf_dsq_move_set_slice", queues::walk_set_slice),
    ("scx_bpf_dsq_move_set_vtime", queues::walk_set_vtime),
    ("scx_bpf_dispatch_nr_slots", queues::slots),
    ("scx_bpf_dispatch_cancel", queues::cancel),
    ("scx_bpf_kick_cpu", cpus::kick),
    ("scx_bpf_nr_cpu_ids", cpus::count),
    ("scx_bpf_nr_node_ids", cpus::nodes),
    ("scx_bpf_nr_cids", cpus::count),
    ("scx_bpf_cpu_node", cpus::node),
    ("scx_bpf_get_possible_cpumask", cpus::possible),
    ("scx_bpf_get_online_cpumask", cpus::online),
    ("scx_bpf_put_cpumask", nothing),
    ("scx_bpf_get_idle_cpumask", cpus::idle),
    ("scx_bpf_get_idle_smtmask", cpus::idle_cores),
    ("scx_bpf_get_idle_cpumask_node", cpus::idle_of_node),
    ("scx_bpf_get_idle_smtmask_node", cpus::idle_cores_of_node),
    ("scx_bpf_put_idle_cpumask", nothing),
    ("scx_bpf_test_and_clear_cpu_idle", cpus::claim),
    ("scx_bpf_pick_idle_cpu", cpus::pick_idle),
    ("scx_bpf_pick_idle_cpu_node", cpus::pick_idle_of_node),
    ("scx_bpf_pick_any_cpu", cpus::pick_any),
    ("scx_bpf_pick_any_cpu_node", cpus::pick_any_of_node),
    ("scx_bpf_select_cpu_dfl", cpus::select_default),
    ("scx_bpf_select_cpu_and", cpus::select_and),
    ("__scx_bpf_select_cpu_and", cpus::select_and_args),
    ("scx_bpf_cpu_curr", cpus::current),
    ("scx_bpf_cpuperf_cap", cpus::capacity),
    ("scx_bpf_cpuperf_cur", cpus::speed),
    ("scx_bpf_cpuperf_set", nothing),
    ("scx_bpf_now", cpus::now),
    ("scx_bpf_events", tasks::events),
    ("scx_bpf_task_running", tasks::runs),
    ("scx_bpf_task_cpu", tasks::cpu),
    ("scx_bpf_task_cgroup", tasks::cgroup),
    ("scx_bpf_task_set_slice", tasks::set_slice),
    ("scx_bpf_task_set_dsq_vtime", tasks::set_vtime),
    ("bpf_task_from_pid", tasks::from_pid),
    ("bpf_task_acquire", tasks::same),
    ("bpf_task_release", nothing),
    ("bpf_cgroup_acquire", tasks::same),
    ("bpf_cgroup_release", nothing),
    ("bpf_cgroup_ancestor", tasks::ancestor),
    ("bpf_cgroup_from_id", tasks::cgroup_from_id),
    ("scx_bpf_error_bstr", tasks::error),
    ("scx_bpf_exit_bstr", tasks::exit),
    ("scx_bpf_dump_bstr", nothing),
];

/// Helpers by their numbers in `enum bpf_func_id`.
pub(crate) const HELPERS: &[(u32, Run)] = &[
    (14, tasks::current_ids),
    (35, tasks::current),
    (118, cpus::jiffies),
    (55, tasks::no_counter),
    (158, tasks::current),
    (171, cpus::start_timer),
    (172, cpus::cancel_timer),
    (175, tasks::registers),
];

fn nothing(_: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(0)
}

impl Here<'_, '_> {
    /// The task of a `struct task_struct`.
    fn task_at(&self, call: &'static str, address: u64) -> Result<TaskId, Ending> {
        let known = self.state.by_address.get(&address).copied();
        known.ok_or(Ending::Argument {
            call,
            address,
            wanted: "task of sched_ext",
        })
    }

    /// A CPU by its number, of which the program is ejected if the machine has none
    /// (`ops_cpu_valid()`).
    fn cpu_at(&mut self, number: u64) -> Option<CpuId> {
        let number = number as u32;
        let there = number < u32::from(self.context.cpus());
        if !there {
            self.eject(format!("invalid CPU {}", number as i32));
        }
        there.then_some(CpuId(number as u16))
    }
}

/// A CPU, or a negative errno, as kfuncs return it.
fn cpu_or(cpu: Option<CpuId>, error: u64) -> u64 {
    cpu.map_or(error, |cpu| u64::from(cpu.0))
}
