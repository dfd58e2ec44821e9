//! `reschedule_idle()` of Linux 2.4.4: who should make room for a task that wants to run.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::layout::Layout;
use super::slices::Slices;
use super::state::is_idle;

/// Asks the CPU that suits `task` best to reschedule: its last one if that idles; else the one
/// that has idled longest; else the one whose running task loses most against `task`.
pub(crate) fn reschedule_idle(
    context: &mut Context<'_>,
    slices: &Slices,
    layout: &Layout,
    task: TaskId,
) {
    let view = context.task(task);
    let last = view.last_cpu();
    if view.may_run_on(last) && is_idle(context, last) {
        return context.reschedule(last);
    }
    if let Some(cpu) = longest_idle(context, task) {
        return context.reschedule(cpu);
    }
    if let Some((cpu, running)) = weakest(context, slices, layout, task) {
        context.touch(layout.need_resched(running), Access::Write);
        context.reschedule(cpu);
    }
}

fn allowed_cpus<'a>(
    context: &'a Context<'_>,
    task: TaskId,
) -> impl Iterator<Item = CpuId> + use<'a> {
    let view = context.task(task);
    (0..context.cpus())
        .map(CpuId)
        .filter(move |cpu| view.may_run_on(*cpu))
}

fn longest_idle(context: &Context<'_>, task: TaskId) -> Option<CpuId> {
    allowed_cpus(context, task)
        .filter(|cpu| is_idle(context, *cpu) && !context.will_reschedule(*cpu))
        .min_by_key(|cpu| (context.last_switch(*cpu), *cpu))
}

/// The CPU where `task` would win by most, and who runs there. It must win by more than 1.
fn weakest(
    context: &mut Context<'_>,
    slices: &Slices,
    layout: &Layout,
    task: TaskId,
) -> Option<(CpuId, TaskId)> {
    let mut most = 1;
    let mut found = None;
    let cpus: Vec<CpuId> = allowed_cpus(context, task).collect();
    for cpu in cpus {
        let Some(running) = context.running_on(cpu) else {
            continue;
        };
        context.touch(layout.hot(running), Access::Read);
        let mm = context.task(running).mm();
        let ours = slices.candidate(context, task, cpu, mm).goodness();
        let theirs = slices.candidate(context, running, cpu, mm).goodness();
        if ours - theirs > most {
            most = ours - theirs;
            found = Some((cpu, running));
        }
    }
    found
}
