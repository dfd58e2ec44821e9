//! Tells the kernel which of its mutexes, conditions, semaphores and sockets are which objects of
//! the scenario, so that the records of those who wait name the object.

use warmq_kernel::{Boot, Object, Part};
use warmq_scenario::{Bound, ObjectId, ObjectKind};
use warmq_trace::Cause;

use super::objects::Made;

/// Tells it of all objects.
pub(super) fn name(bound: &Bound, made: &[Made], boot: &mut Boot<'_>) {
    let tables = (0..).map(ObjectId).zip(made);
    for (id, table) in tables {
        let pipe = matches!(bound.scenario().object(id).kind, ObjectKind::Pipe { .. });
        for (place, (cause, parts)) in (0..).zip(parts(table, pipe)) {
            // There are at most a million objects of a table.
            let Ok(number) = u32::try_from(bound.object_of_all(id, place)) else {
                return;
            };
            for part in parts {
                boot.part_of(part, Object { cause, number });
            }
        }
    }
}

/// What each object of a table consists of, and what its waiters wait for.
fn parts(table: &Made, pipe: bool) -> Vec<(Cause, Vec<Part>)> {
    let socket = if pipe { Cause::Pipe } else { Cause::Socket };
    match table {
        Made::Mutexes(all) => each(all, |mutex| (Cause::Mutex, vec![Part::Mutex(*mutex)])),
        Made::Conditions(all) => each(all, |condition| {
            (Cause::Condition, vec![Part::Condition(*condition)])
        }),
        Made::Semaphores(all) => each(all, |semaphore| {
            (Cause::Semaphore, vec![Part::Semaphore(*semaphore)])
        }),
        Made::Barriers(all) => each(all, |barrier| {
            (Cause::Barrier, vec![Part::Barrier(*barrier)])
        }),
        Made::Queues(all) => each(all, |queue| {
            let conditions = [queue.filled, queue.emptied].map(Part::Condition);
            let parts = [Part::Mutex(queue.mutex)].into_iter().chain(conditions);
            (Cause::Queue, parts.collect())
        }),
        Made::Streams(all) => each(all, |(near, far)| {
            (socket, vec![Part::Socket(*near), Part::Socket(*far)])
        }),
        Made::Datagrams(all) => each(all, |it| (Cause::Socket, vec![Part::Socket(*it)])),
        Made::Regions(_)
        | Made::Groups(_)
        | Made::Processes(_)
        | Made::Sources
        | Made::Timers(_) => Vec::new(),
    }
}

fn each<T>(all: &[T], of: impl Fn(&T) -> (Cause, Vec<Part>)) -> Vec<(Cause, Vec<Part>)> {
    all.iter().map(of).collect()
}
