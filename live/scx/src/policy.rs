//! Options as the numbers that decide.h works with. Only here does a time become a bare number.

use warmq_hint::abi;
use warmq_units::Duration;

use crate::bpf_skel::types::{bss, rodata, warmq_policy};
use crate::options::{Place, Schedule};
use crate::stats::Origin;
use crate::topology::Layout;

fn ns(span: Duration) -> u64 {
    span.0 / 1_000
}

/// The policy; see decide.h.
pub fn policy(schedule: &Schedule) -> warmq_policy {
    warmq_policy {
        period: ns(schedule.time.period),
        slice_max: ns(schedule.time.slice),
        slice_min: ns(schedule.time.slice_min),
        wakeup_lag_max: ns(schedule.time.wakeup_lag_max),
        lag_max: ns(schedule.time.lag_max),
        alpha: if schedule.wakeups.no_granularity {
            0
        } else {
            ns(schedule.wakeups.alpha)
        },
        preempt_interval: ns(schedule.wakeups.preempt_interval),
        min_sleep: ns(schedule.wakeups.min_sleep),
        batch_budget: ns(schedule.groups.batch_budget),
        imbalance: schedule.groups.imbalance,
        patience: ns(schedule.groups.patience),
    }
}

/// Writes the options into the program before it is loaded.
pub fn configure(settings: &mut rodata, state: &mut bss, schedule: &Schedule, layout: &Layout) {
    let place = schedule.groups.place.unwrap_or(layout.natural_place());
    state.policy = policy(schedule);
    settings.nr_cpus = layout.cpu_ids as u32;
    settings.nr_domains = layout.domains.len() as u32;
    settings.nr_places = layout.places(place) as u32;
    settings.place_is_cpu = place == Place::Cpu;
    settings.cpu_domain.fill(abi::MAX_DOMAINS);
    settings.cpu_domain[..layout.cpu_ids].copy_from_slice(&layout.domain_of);
    settings.cpu_sibling[..layout.cpu_ids].copy_from_slice(&layout.sibling_of);
    settings.smt_enabled = layout.has_smt();
    settings.nr_nodes = layout.nodes() as u32;
    settings.domain_node[..layout.node_of.len()].copy_from_slice(&layout.node_of);
    for (row, near) in settings.domain_near.iter_mut().zip(&layout.near) {
        for (place, other) in row.iter_mut().zip(near) {
            *place = *other as u8;
        }
    }
    settings.unlike_cpus = layout.has_unlike_cpus();
    for (place, fast) in settings.cpu_fast.iter_mut().zip(&layout.fast) {
        *place = u8::from(*fast);
    }
    settings.nr_groups = schedule.groups.groups + 1; // number 0 is none
    settings.groups_per_process = schedule.groups.groups_per_process;
    settings.groups_per_user = schedule.groups.groups_per_user;
    settings.preempts = !schedule.wakeups.no_preempt;
    settings.keeps_groups = !schedule.groups.no_groups;
    settings.infer = schedule.groups.infer;
    settings.group_by = schedule.groups.group_by.map_or(Origin::Named, Origin::from) as u32;
    settings.infer_size = schedule.groups.infer_size;
    settings.scope = schedule.groups.scope as u32;
    settings.reads_task_hints = schedule.groups.task_hint_map.is_some();
    settings.balance_interval = ns(schedule.groups.balance_interval);
}
