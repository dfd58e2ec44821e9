//! Kfuncs of CPUs, idle masks, time and timers.

use warmq_units::{CpuId, Duration};

use super::{Answer, Args, cpu_or};
use crate::here::{at_ns, ns};
use crate::idle::Masks;
use crate::masks;
use crate::state::{During, Here, Insert};
use crate::words::{EBUSY, EINVAL, SLICE_DEFAULT, kick as kicks, pick};

/// `SCX_CPUPERF_ONE`: all of a CPU, or of its clock.
const FULL_SPEED: u64 = 1024;

/// ns of a jiffy at HZ 250.
const JIFFY: u64 = 4_000_000;
/// `INITIAL_JIFFIES`: five minutes before it wraps around, of 32 bits.
const FIRST_JIFFY: u64 = (-300_i32 * 250) as u32 as u64;

pub(super) fn kick(here: &mut Here<'_, '_>, [cpu, flags, ..]: Args) -> Answer {
    let Some(cpu) = here.cpu_at(cpu) else {
        return Ok(0);
    };
    if flags & kicks::IDLE != 0 && flags & (kicks::PREEMPT | kicks::WAIT) != 0 {
        here.eject("PREEMPT/WAIT cannot be used with SCX_KICK_IDLE".to_owned());
    }
    // Interrupts are sent when the callback has returned.
    here.state.own.kicks.push((cpu, flags));
    Ok(0)
}

pub(super) fn count(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(here.context.cpus().into())
}

pub(super) fn nodes(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(here.state.globals.len() as u64)
}

pub(super) fn node(here: &mut Here<'_, '_>, [cpu, ..]: Args) -> Answer {
    let cpu = here.cpu_at(cpu);
    Ok(cpu.map_or(u64::MAX, |cpu| here.node_of(cpu).into()))
}

pub(super) fn possible(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(here.state.possible)
}

pub(super) fn online(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(here.state.online)
}

/// The masks of a node, of those that there are.
fn of_node(here: &Here<'_, '_>, node: u64) -> Masks {
    let masks = &here.state.idle.masks;
    masks[(node as usize).min(masks.len() - 1)]
}

pub(super) fn idle(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(of_node(here, 0).cpus)
}

pub(super) fn idle_cores(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(of_node(here, 0).cores)
}

pub(super) fn idle_of_node(here: &mut Here<'_, '_>, [node, ..]: Args) -> Answer {
    Ok(of_node(here, node).cpus)
}

pub(super) fn idle_cores_of_node(here: &mut Here<'_, '_>, [node, ..]: Args) -> Answer {
    Ok(of_node(here, node).cores)
}

pub(super) fn claim(here: &mut Here<'_, '_>, [cpu, ..]: Args) -> Answer {
    let cpu = here.cpu_at(cpu);
    Ok(cpu.is_some_and(|cpu| here.claim_idle(cpu)).into())
}

pub(super) fn pick_idle(here: &mut Here<'_, '_>, [allowed, flags, ..]: Args) -> Answer {
    let near = here.context.cpu();
    Ok(cpu_or(here.pick_idle(&[allowed], near, flags), EBUSY))
}

/// A CPU of a node.
fn in_node(here: &Here<'_, '_>, node: u64) -> CpuId {
    let mut cpus = (0..here.context.cpus()).map(CpuId);
    cpus.find(|cpu| u64::from(here.node_of(*cpu)) == node)
        .unwrap_or_default()
}

pub(super) fn pick_idle_of_node(
    here: &mut Here<'_, '_>,
    [allowed, node, flags, ..]: Args,
) -> Answer {
    let near = in_node(here, node);
    Ok(cpu_or(here.pick_idle(&[allowed], near, flags), EBUSY))
}

pub(super) fn pick_any(here: &mut Here<'_, '_>, [allowed, flags, ..]: Args) -> Answer {
    let near = here.context.cpu();
    Ok(any(here, allowed, near, flags))
}

pub(super) fn pick_any_of_node(
    here: &mut Here<'_, '_>,
    [allowed, node, flags, ..]: Args,
) -> Answer {
    let near = in_node(here, node);
    Ok(any(here, allowed, near, flags))
}

fn any(here: &mut Here<'_, '_>, allowed: u64, near: CpuId, flags: u64) -> u64 {
    if let Some(idle) = here.pick_idle(&[allowed], near, flags & pick::IN_NODE) {
        return idle.0.into();
    }
    cpu_or(here.next_of_all(allowed, &[]), EBUSY)
}

/// `scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, *is_idle)`.
pub(super) fn select_default(
    here: &mut Here<'_, '_>,
    [task, prev, wakes, is_idle, _]: Args,
) -> Answer {
    let found = select(here, task, prev, wakes, None, 0)?;
    let idle = u64::from(found.is_some());
    here.guest.store(is_idle, 1, idle)?;
    Ok(found.map_or(prev, |cpu| cpu.0.into()))
}

/// `scx_bpf_select_cpu_and(p, prev_cpu, wake_flags, cpus_allowed, flags)`.
pub(super) fn select_and(
    here: &mut Here<'_, '_>,
    [task, prev, wakes, cpus, flags]: Args,
) -> Answer {
    Ok(cpu_or(
        select(here, task, prev, wakes, Some(cpus), flags)?,
        EBUSY,
    ))
}

/// `__scx_bpf_select_cpu_and(p, cpus_allowed, args)`.
pub(super) fn select_and_args(here: &mut Here<'_, '_>, [task, cpus, args, ..]: Args) -> Answer {
    let fields = here.state.layouts.select;
    let prev = fields.prev_cpu.get(here.guest, args);
    let wakes = fields.wake_flags.get(here.guest, args);
    let flags = fields.flags.get(here.guest, args);
    select_and(here, [task, prev, wakes, cpus, flags])
}

fn select(
    here: &mut Here<'_, '_>,
    task: u64,
    prev: u64,
    wakes: u64,
    cpus: Option<u64>,
    flags: u64,
) -> Result<Option<CpuId>, warmq_bpf_run::Ending> {
    let task = here.task_at("scx_bpf_select_cpu", task)?;
    let Some(prev) = here.cpu_at(prev) else {
        return Ok(None);
    };
    if !here.state.idle.kept {
        here.eject("built-in idle tracking is disabled".to_owned());
        return Ok(None);
    }
    // A task of one CPU has no choice (kernel/sched/ext/idle.c, select_cpu_from_kfunc()).
    let fields = here.state.layouts.task;
    let address = here.state.task(task).address;
    if fields.nr_cpus_allowed.get(here.guest, address) == 1 {
        let own = cpus.is_none_or(|cpus| masks::contains(here.guest, cpus, prev));
        let may = own && here.view(task).may_run_on(prev);
        return Ok((may && here.claim_idle(prev)).then_some(prev));
    }
    Ok(here.select_default(task, prev, wakes, cpus, flags))
}

/// The kernel's own choice, where the program has no `ops.select_cpu`: the idle CPU, into whose
/// queue the task goes.
pub(crate) fn select_without_program(
    here: &mut Here<'_, '_>,
    task: warmq_units::TaskId,
    prev: CpuId,
    wakes: u64,
) -> CpuId {
    let found = here.select_default(task, prev, wakes, None, 0);
    if found.is_some() {
        let how = Insert::local(SLICE_DEFAULT, 0);
        here.set_direct(task, Some(how));
    }
    debug_assert_eq!(here.state.own.during, During::Other);
    found.unwrap_or(prev)
}

pub(super) fn current(here: &mut Here<'_, '_>, [cpu, ..]: Args) -> Answer {
    let cpu = here.cpu_at(cpu);
    Ok(cpu.map_or(0, |cpu| here.current_of(cpu)))
}

impl Here<'_, '_> {
    /// The task_struct of who runs on a CPU.
    pub(crate) fn current_of(&self, cpu: CpuId) -> u64 {
        let known = self.state.runs(cpu);
        let known = known.map(|task| self.state.task(task).address);
        known.unwrap_or(self.state.cpu(cpu).idle_task)
    }
}

/// `scx_bpf_cpuperf_cap()`: the capacity of a CPU (`arch_scale_cpu_capacity()`).
pub(super) fn capacity(here: &mut Here<'_, '_>, [cpu, ..]: Args) -> Answer {
    let cpu = here.cpu_at(cpu);
    Ok(cpu.map_or(FULL_SPEED, |cpu| here.context.capacity(cpu)))
}

/// `scx_bpf_cpuperf_cur()`: the part of its clock that a CPU has. Clocks do not change here.
pub(super) fn speed(here: &mut Here<'_, '_>, [cpu, ..]: Args) -> Answer {
    here.cpu_at(cpu);
    Ok(FULL_SPEED)
}

pub(super) fn now(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(ns(here.now()))
}

pub(super) fn jiffies(here: &mut Here<'_, '_>, _: Args) -> Answer {
    Ok(FIRST_JIFFY + ns(here.now()) / JIFFY)
}

/// `BPF_F_TIMER_ABS`: nsecs is a point in time.
const ABSOLUTE: u64 = 1;

/// `bpf_timer_start(timer, nsecs, flags)`: it expires on the CPU that starts it.
pub(super) fn start_timer(here: &mut Here<'_, '_>, [timer, span, flags, ..]: Args) -> Answer {
    if here
        .guest
        .timer(timer)
        .is_none_or(|timer| timer.function.is_none())
    {
        return Ok(EINVAL);
    }
    if let Some(old) = here.state.timers.remove(&timer) {
        here.context.cancel_timer(old);
    }
    let at = match flags & ABSOLUTE {
        0 => here.now() + Duration::from_ns(span),
        _ => at_ns(span),
    };
    let cpu = here.state.bound_to.unwrap_or(here.context.cpu());
    let armed = here.context.arm_timer(cpu, at, timer);
    here.state.timers.insert(timer, armed);
    Ok(0)
}

/// `bpf_timer_cancel(timer)`: whether it was to expire.
pub(super) fn cancel_timer(here: &mut Here<'_, '_>, [timer, ..]: Args) -> Answer {
    let armed = here.state.timers.remove(&timer);
    Ok(armed
        .is_some_and(|armed| here.context.cancel_timer(armed))
        .into())
}
