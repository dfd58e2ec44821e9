//! Kfuncs of dispatch queues.

use warmq_bpf_run::Access;
use warmq_units::TaskId;

use super::{Answer, Args};
use crate::queue::{Dsq, Queue};
use crate::state::{During, Held, Here, Insert, Walk};
use crate::words::{EEXIST, EINVAL, ENOENT, dsq};

/// `SCX_DSQ_ITER_REV`.
const REVERSE: u64 = 1 << 16;

pub(super) fn create(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    if id & dsq::BUILTIN != 0 {
        return Ok(EINVAL);
    }
    if here.state.users.contains_key(&id) {
        return Ok(EEXIST);
    }
    let fields = here.state.layouts.queue;
    let address = here.guest.allocate(fields.size)?;
    fields.id.set(here.guest, address, id);
    here.state.users.insert(id, Queue::new(address));
    Ok(0)
}

pub(super) fn destroy(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    let there = here.state.users.get(&id);
    if there.is_some_and(|queue| queue.tasks.is_empty()) {
        here.state.users.remove(&id);
    } else if there.is_some() {
        here.eject(format!("attempting to destroy in-use dsq {id:#018x}"));
    }
    Ok(0)
}

pub(super) fn insert(here: &mut Here<'_, '_>, [task, dsq, slice, flags, _]: Args) -> Answer {
    let local = Insert::local(slice, flags);
    insert_task(here, task, Insert { dsq, ..local })
}

pub(super) fn insert_vtime(
    here: &mut Here<'_, '_>,
    [task, dsq, slice, vtime, flags]: Args,
) -> Answer {
    let how = Insert {
        dsq,
        slice,
        vtime: Some(vtime),
        flags,
    };
    insert_task(here, task, how)
}

pub(super) fn insert_vtime_args(here: &mut Here<'_, '_>, [task, args, ..]: Args) -> Answer {
    let fields = here.state.layouts.insert;
    let how = Insert {
        dsq: fields.dsq_id.get(here.guest, args),
        slice: fields.slice.get(here.guest, args),
        vtime: Some(fields.vtime.get(here.guest, args)),
        flags: fields.enq_flags.get(here.guest, args),
    };
    insert_task(here, task, how)
}

/// `scx_dsq_insert_commit()`.
fn insert_task(here: &mut Here<'_, '_>, address: u64, how: Insert) -> Answer {
    let task = here.task_at("scx_bpf_dsq_insert", address)?;
    let flags = here.vet(how.dsq, how.flags);
    let how = Insert { flags, ..how };
    match here.state.own.during {
        During::Placing(placed) => {
            here.state.own.during = During::Placed;
            if placed == task {
                here.set_direct(task, Some(how));
            } else {
                let text = format!("scheduling for {placed} but trying to direct-dispatch {task}");
                here.eject(text);
            }
        }
        During::Placed => here.eject(format!("{task} already direct-dispatched")),
        During::Dispatch if here.state.own.batch.len() as u64 >= here.state.most_batch => {
            here.eject("dispatch buffer overflow".to_owned());
        }
        During::Dispatch => {
            let state = here.state.task(task);
            // Nobody has one of sequence 0: it is not the program's.
            let sequence = match state.held {
                Held::Program => state.sequence,
                Held::Kernel => 0,
            };
            here.state.own.batch.push((task, sequence, how));
        }
        During::Other => {
            here.eject("scx_bpf_dsq_insert() called where nothing can be inserted".to_owned());
        }
    }
    Ok(1)
}

pub(super) fn move_to_local(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    consume(here, id, 0)
}

pub(super) fn move_to_local_with(here: &mut Here<'_, '_>, [id, flags, ..]: Args) -> Answer {
    consume(here, id, flags)
}

fn consume(here: &mut Here<'_, '_>, id: u64, flags: u64) -> Answer {
    let Some(cpu) = here.state.own.picking else {
        here.eject("scx_bpf_dsq_move_to_local() called outside of ops.dispatch".to_owned());
        return Ok(0);
    };
    let flags = here.vet(dsq::LOCAL, flags);
    here.flush(cpu);
    if !here.state.users.contains_key(&id) {
        here.eject(format!("invalid DSQ ID {id:#018x}"));
        return Ok(0);
    }
    let moved = here.consume(Dsq::User(id), cpu, flags);
    here.state.own.dispatched += u64::from(moved);
    Ok(moved.into())
}

pub(super) fn count(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    let named = here.named_queue(id, here.context.cpu());
    let queue = named.and_then(|named| here.state.queue(named));
    let Some((lines, length)) = queue.map(|queue| (queue.address, queue.len())) else {
        return Ok(ENOENT);
    };
    here.access(lines, 8, Access::Load);
    Ok(length)
}

pub(super) fn peek(here: &mut Here<'_, '_>, [id, ..]: Args) -> Answer {
    let queue = here.state.users.get(&id);
    let Some((lines, first)) = queue.map(|queue| (queue.address, queue.first())) else {
        here.eject(format!("peek on non-existent DSQ {id:#x}"));
        return Ok(0);
    };
    here.access(lines, 8, Access::Load);
    Ok(first.map_or(0, |task| here.state.task(task).address))
}

/// Tasks in a queue are enqueued again: of a CPU, or of the program's own.
pub(super) fn reenqueue(here: &mut Here<'_, '_>, [id, flags, ..]: Args) -> Answer {
    /// `SCX_REENQ_ANY`, which no flag means, too.
    const ANY: u64 = 1;
    match here.named_queue(id, here.context.cpu()) {
        _ if flags & !ANY != 0 => here.eject(format!("invalid SCX_REENQ flags {flags:#x}")),
        Some(queue) => here.look_through(queue, true),
        None => here.eject(format!("non-existent DSQ {id:#x}")),
    }
    Ok(0)
}

/// The same of this CPU; how many tasks are in it.
pub(super) fn reenqueue_local(here: &mut Here<'_, '_>, _: Args) -> Answer {
    let cpu = here.context.cpu();
    here.look_through(Dsq::Local(cpu), true);
    Ok(here.state.cpu(cpu).local.len())
}

pub(super) fn walk_new(here: &mut Here<'_, '_>, [walk, id, flags, ..]: Args) -> Answer {
    here.state.own.walks.remove(&walk);
    let Some(queue) = here.state.users.get(&id) else {
        return Ok(ENOENT);
    };
    let (lines, tasks) = (queue.address, queue.in_order(flags & REVERSE != 0));
    here.access(lines, 8, Access::Atomic);
    let new = Walk {
        dsq: Dsq::User(id),
        tasks,
        next: 0,
        slice: None,
        vtime: None,
    };
    here.state.own.walks.insert(walk, new);
    Ok(0)
}

/// The next task that is still in the queue.
pub(super) fn walk_next(here: &mut Here<'_, '_>, [walk, ..]: Args) -> Answer {
    let Some(known) = here.state.own.walks.get_mut(&walk) else {
        return Ok(0);
    };
    let dsq = known.dsq;
    let left = known.tasks.get(known.next..).unwrap_or_default();
    let (tasks, state) = (left.to_vec(), &here.state);
    let is_there = |task: &TaskId| state.task(*task).on.is_some_and(|(on, _)| on == dsq);
    let found = tasks.iter().position(is_there);
    let task = found.map(|at| tasks[at]);
    let skipped = found.map_or(tasks.len(), |at| at + 1);
    if let Some(known) = here.state.own.walks.get_mut(&walk) {
        known.next += skipped;
    }
    let address = task.map_or(0, |task| here.state.task(task).address);
    if address != 0 {
        let links = here.state.layouts.task.dsq.within(address);
        here.access(links, 8, Access::Load);
    }
    Ok(address)
}

pub(super) fn walk_destroy(here: &mut Here<'_, '_>, [walk, ..]: Args) -> Answer {
    here.state.own.walks.remove(&walk);
    Ok(0)
}

pub(super) fn walk_set_slice(here: &mut Here<'_, '_>, [walk, slice, ..]: Args) -> Answer {
    if let Some(known) = here.state.own.walks.get_mut(&walk) {
        known.slice = Some(slice);
    }
    Ok(0)
}

pub(super) fn walk_set_vtime(here: &mut Here<'_, '_>, [walk, vtime, ..]: Args) -> Answer {
    if let Some(known) = here.state.own.walks.get_mut(&walk) {
        known.vtime = Some(vtime);
    }
    Ok(0)
}

pub(super) fn walk_move(here: &mut Here<'_, '_>, [walk, task, id, flags, _]: Args) -> Answer {
    move_walked(here, walk, task, id, flags, false)
}

pub(super) fn walk_move_vtime(here: &mut Here<'_, '_>, [walk, task, id, flags, _]: Args) -> Answer {
    move_walked(here, walk, task, id, flags, true)
}

/// `scx_dsq_move()`: moves a task of the queue that is walked to another one.
fn move_walked(
    here: &mut Here<'_, '_>,
    walk: u64,
    task: u64,
    id: u64,
    flags: u64,
    by_vtime: bool,
) -> Answer {
    let task = here.task_at("scx_bpf_dsq_move", task)?;
    let flags = here.vet(id, flags);
    let Some(known) = here.state.own.walks.get_mut(&walk) else {
        return Ok(0);
    };
    let (dsq, slice, vtime) = (known.dsq, known.slice.take(), known.vtime.take());
    if here.state.task(task).on.is_none_or(|(on, _)| on != dsq) {
        return Ok(0);
    }
    let cpu = here.state.task(task).cpu;
    // SCX_DSQ_LOCAL is the queue of who dispatches.
    let seen_from = here.state.own.picking.unwrap_or(here.context.cpu());
    let to = match here.find_queue(id, seen_from) {
        Dsq::Global(_) => Dsq::Global(here.node_of(cpu)),
        to => to,
    };
    if let Dsq::Local(target) = to {
        if !here.may_take(task, target) {
            return Ok(0);
        }
        here.unlink(task);
        here.move_to_cpu(task, target);
    } else {
        here.unlink(task);
    }
    if let Some(vtime) = vtime {
        here.set_vtime(task, vtime);
    }
    let fields = here.state.layouts.task;
    let own = fields
        .dsq_vtime
        .get(here.guest, here.state.task(task).address);
    let how = Insert {
        dsq: id,
        slice: slice.unwrap_or(0),
        vtime: by_vtime.then_some(own),
        flags,
    };
    here.insert(task, to, how);
    Ok(1)
}

pub(super) fn slots(here: &mut Here<'_, '_>, _: Args) -> Answer {
    let taken = here.state.own.batch.len() as u64;
    Ok(here.state.most_batch.saturating_sub(taken))
}

pub(super) fn cancel(here: &mut Here<'_, '_>, _: Args) -> Answer {
    if here.state.own.batch.pop().is_none() {
        here.eject("dispatch buffer underflow".to_owned());
    }
    Ok(0)
}
