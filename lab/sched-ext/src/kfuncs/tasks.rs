//! Kfuncs of tasks and cgroups, and of the program's own end.

use warmq_kernel::GroupId;
use warmq_units::TaskId;

use super::{Answer, Args};
use crate::state::Here;
use crate::tasks::pid_of;
use crate::text;
use crate::variables::registers_of;
use crate::words::{ACT_RESTART, ENOENT, flags};

pub(super) fn runs(here: &mut Here<'_, '_>, [task, ..]: Args) -> Answer {
    let task = here.state.by_address.get(&task);
    Ok(task
        .is_some_and(|task| here.view(*task).on_cpu().is_some())
        .into())
}

pub(super) fn cpu(here: &mut Here<'_, '_>, [task, ..]: Args) -> Answer {
    let cpu = here.state.layouts.task.cpu;
    Ok(cpu.get(here.guest, task))
}

pub(super) fn cgroup(here: &mut Here<'_, '_>, [task, ..]: Args) -> Answer {
    let task = here.task_at("scx_bpf_task_cgroup", task)?;
    let group = here.state.task(task).group.unwrap_or(GroupId::ROOT);
    let known = here.state.groups.get(&group);
    Ok(known.map_or(0, |known| known.address))
}

pub(super) fn set_slice(here: &mut Here<'_, '_>, [task, slice, ..]: Args) -> Answer {
    let task = here.task_at("scx_bpf_task_set_slice", task)?;
    here.set_slice(task, slice);
    Ok(1)
}

pub(super) fn set_vtime(here: &mut Here<'_, '_>, [task, vtime, ..]: Args) -> Answer {
    let task = here.task_at("scx_bpf_task_set_dsq_vtime", task)?;
    here.set_vtime(task, vtime);
    Ok(1)
}

pub(super) fn from_pid(here: &mut Here<'_, '_>, [pid, ..]: Args) -> Answer {
    let pid = u64::from(pid as u32);
    let index = pid.checked_sub(pid_of(TaskId(0)));
    let task = index.and_then(|index| here.state.tasks.get(index as usize));
    Ok(task.map_or(0, |task| task.address))
}

pub(super) fn same(_: &mut Here<'_, '_>, [object, ..]: Args) -> Answer {
    Ok(object)
}

/// `bpf_cgroup_ancestor(cgroup, level)`.
pub(super) fn ancestor(here: &mut Here<'_, '_>, [cgroup, level, ..]: Args) -> Answer {
    let fields = here.state.layouts.cgroup;
    let level = u64::from(level as u32);
    if level > fields.level.get(here.guest, cgroup) {
        return Ok(0);
    }
    let at = fields.ancestors.within(cgroup) + 8 * level;
    Ok(here.guest.peek(at, 8).unwrap_or(0))
}

pub(super) fn cgroup_from_id(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    let mut groups = here.state.groups.iter();
    let known = groups.find(|(group, _)| group.index() as u64 + 1 == id);
    Ok(known.map_or(0, |(_, known)| known.address))
}

/// `scx_bpf_events(events, size)`: as much as there is room for.
pub(super) fn events(here: &mut Here<'_, '_>, [to, size, ..]: Args) -> Answer {
    let (fields, counts) = (here.state.layouts.events, here.state.counts);
    let all = here.guest.allocate(fields.size)?;
    let guest = &mut *here.guest;
    fields.fallback.set(guest, all, counts.fallback);
    fields.offline.set(guest, all, counts.offline);
    fields.keep_last.set(guest, all, counts.keep_last);
    fields.skip_exiting.set(guest, all, counts.skip_exiting);
    fields.refill.set(guest, all, counts.refill);
    let size = size.min(fields.size);
    let bytes = guest.bytes(all, size).map(<[u8]>::to_vec);
    if let Some((there, bytes)) = guest.bytes_mut(to, size).zip(bytes) {
        there.copy_from_slice(&bytes);
    }
    guest.free(all, fields.size);
    Ok(0)
}

/// `scx_bpf_error_bstr(fmt, data, bytes)`.
pub(super) fn error(here: &mut Here<'_, '_>, [format, data, bytes, ..]: Args) -> Answer {
    let text = text::print(here.guest, format, data, bytes);
    here.eject(text);
    Ok(0)
}

/// `scx_bpf_exit_bstr(code, fmt, data, bytes)`.
pub(super) fn exit(here: &mut Here<'_, '_>, [code, format, data, bytes, _]: Args) -> Answer {
    if code & ACT_RESTART != 0 {
        here.state.restarts = true;
        return Ok(0);
    }
    let text = text::print(here.guest, format, data, bytes);
    here.eject(format!("it ended by itself with code {code:#x}: {text}"));
    Ok(0)
}

pub(super) fn current(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(here.current_of(here.context.cpu()))
}

/// Process and thread: both are the task's.
pub(super) fn current_ids(here: &mut Here<'_, '_>, _: Args) -> Answer {
    let fields = here.state.layouts.task;
    let current = here.current_of(here.context.cpu());
    let idle = fields.flags.get(here.guest, current) & flags::IDLE != 0;
    let pid = fields.pid.get(here.guest, current);
    Ok(if idle { 0 } else { pid << 32 | pid })
}

/// `bpf_perf_event_read_value()`: nobody has opened a performance counter.
pub(super) fn no_counter(_: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(ENOENT)
}

/// `bpf_task_pt_regs()`.
pub(super) fn registers(here: &mut Here<'_, '_>, [task, ..]: Args) -> Answer {
    let task = here.state.by_address.get(&task);
    Ok(task.map_or(0, |task| registers_of(*task)))
}
