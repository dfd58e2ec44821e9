//! The objects of a scenario as the simulated kernel has them.

use std::cell::Cell;

use warmq_kernel::{
    Barrier, Boot, Condition, GroupId, Limits, Mm, Mutex, Object, Part, Region, Semaphore, Socket,
};
use warmq_scenario::program::{Cpus, GroupSpec, Spinning};
use warmq_scenario::{Bound, Expr, Family, ObjectId, ObjectKind};
use warmq_trace::Cause;
use warmq_units::{Bytes, Instant};

use super::Trouble;
use super::spinlocks::SpinlockSet;

/// A bounded queue in the memory of its users.
pub(super) struct Queue {
    pub(super) mutex: Mutex,
    pub(super) filled: Condition,
    pub(super) emptied: Condition,
    pub(super) holds: u64,
    pub(super) items: Cell<u64>,
}

/// All objects, those of each class in the order of their tables.
#[derive(Default)]
pub(super) struct Objects {
    /// Each with its lines.
    pub(super) regions: Vec<(Region, u64)>,
    pub(super) mutexes: Vec<Mutex>,
    pub(super) spinlocks: Vec<SpinlockSet>,
    pub(super) conditions: Vec<Condition>,
    pub(super) futexes: Vec<Condition>,
    pub(super) semaphores: Vec<Semaphore>,
    pub(super) barriers: Vec<Barrier>,
    pub(super) queues: Vec<Queue>,
    /// Both ends; the first is written and the second is read.
    pub(super) pipes: Vec<(Socket, Socket)>,
    /// Both ends, `near` first.
    pub(super) streams: Vec<(Socket, Socket)>,
    pub(super) datagrams: Vec<Socket>,
    pub(super) groups: Vec<GroupId>,
    pub(super) processes: Vec<Mm>,
    /// When each expired last, of those that all tasks share.
    pub(super) timers: Vec<Cell<Option<Instant>>>,
}

/// One object that is being made: its place in its table, and its indexes.
struct One<'i> {
    number: u64,
    at: &'i [u64],
}

/// Makes one object after another of table `id`.
struct Maker<'a, 'b> {
    bound: &'a Bound,
    boot: &'a mut Boot<'b>,
    objects: &'a mut Objects,
    id: ObjectId,
}

/// Makes all objects, in the order of their tables. The kernel learns which of its mutexes,
/// conditions, semaphores and sockets are parts of which objects, so that the records of those who
/// wait name the object.
pub(super) fn make(bound: &Bound, cpus: &Cpus, boot: &mut Boot<'_>) -> Result<Objects, Trouble> {
    let mut objects = Objects::default();
    for (id, object) in (0..).map(ObjectId).zip(bound.scenario().objects()) {
        let mut maker = Maker {
            bound,
            boot,
            objects: &mut objects,
            id,
        };
        maker.table(&object.kind)?;
    }
    for group in bound.groups(cpus)? {
        let name = &bound.scenario().object(group.table).name;
        let made = make_group(&group.spec, name, &objects.groups, boot)?;
        objects.groups.push(made);
    }
    Ok(objects)
}

fn make_group(
    spec: &GroupSpec,
    name: &str,
    before: &[GroupId],
    boot: &mut Boot<'_>,
) -> Result<GroupId, Trouble> {
    let spec = match spec {
        GroupSpec::Autogroup { nice } => return Ok(boot.autogroup(name, *nice)),
        GroupSpec::Cgroup(spec) => spec,
    };
    let parent = spec.parent.map_or(GroupId::ROOT, |place| before[place]);
    let group = boot.group(parent, name, spec.weight);
    if let Some((quota, period)) = spec.quota {
        let limits = Limits {
            quota,
            period,
            burst: spec.burst,
        };
        boot.bandwidth(group, limits);
    }
    if spec.idle {
        boot.idle(group);
    }
    match &spec.cpus {
        Some(cpus) if cpus.is_empty() => {
            let what = format!("the group {name}, whose `cpus` the machine lacks");
            return Err(Trouble::Lacking(what));
        }
        Some(cpus) => boot.cpuset(group, cpus),
        None => {}
    }
    Ok(group)
}

impl Maker<'_, '_> {
    fn table(&mut self, kind: &ObjectKind) -> Result<(), Trouble> {
        match kind {
            ObjectKind::Semaphore { initial } => self.semaphores(initial),
            _ => (0..self.bound.objects(self.id)).try_for_each(|number| {
                let at = &self.bound.indexes_of_object(self.id, number);
                self.one(kind, &One { number, at })
            }),
        }
    }

    fn one(&mut self, kind: &ObjectKind, one: &One<'_>) -> Result<(), Trouble> {
        match kind {
            ObjectKind::Region { bytes } => self.region(bytes, one)?,
            ObjectKind::Mutex => {
                let mutex = self.boot.mutex();
                self.part(one, Cause::Mutex, Part::Mutex(mutex));
                self.objects.mutexes.push(mutex);
            }
            ObjectKind::Spinlock(spinlock) => self.spinlocks(spinlock, one)?,
            ObjectKind::Condition => {
                let condition = self.boot.condition();
                self.part(one, Cause::Condition, Part::Condition(condition));
                self.objects.conditions.push(condition);
            }
            ObjectKind::Futex => {
                let futex = self.boot.condition();
                self.part(one, Cause::Futex, Part::Condition(futex));
                self.objects.futexes.push(futex);
            }
            ObjectKind::Barrier { tasks } => {
                let tasks = self.eval(tasks, one)?;
                let barrier = self.boot.barrier(tasks);
                self.part(one, Cause::Barrier, Part::Barrier(barrier));
                self.objects.barriers.push(barrier);
            }
            ObjectKind::Queue { holds } => self.queue(holds, one)?,
            ObjectKind::Pipe { buffer } => {
                let buffer = Bytes(self.eval(buffer, one)?);
                let ends = self.boot.pipe(buffer)?;
                self.ends(one, Cause::Pipe, ends);
                self.objects.pipes.push(ends);
            }
            ObjectKind::Stream {
                family,
                buffer,
                nagle,
            } => {
                let ends = match family {
                    Family::Inet => self.inet_stream(buffer.as_ref(), nagle, one)?,
                    Family::Unix => self.unix_stream(buffer.as_ref(), one)?,
                };
                self.ends(one, Cause::Socket, ends);
                self.objects.streams.push(ends);
            }
            ObjectKind::Datagram { buffer } => {
                let own = self.boot.datagram_buffer();
                let buffer = self.buffer(buffer.as_ref(), own, one)?;
                let socket = self.boot.datagram_socket(buffer)?;
                self.part(one, Cause::Socket, Part::Socket(socket));
                self.objects.datagrams.push(socket);
            }
            ObjectKind::Process => self.objects.processes.push(self.boot.mm()),
            ObjectKind::Timer { .. } => self.objects.timers.push(Cell::new(None)),
            // Sets of semaphores are made at once, and groups by themselves; files and senders
            // outside the machine are no objects of it.
            ObjectKind::Semaphore { .. }
            | ObjectKind::Group { .. }
            | ObjectKind::Autogroup { .. }
            | ObjectKind::File { .. }
            | ObjectKind::Source(_) => {}
        }
        Ok(())
    }

    fn inet_stream(
        &mut self,
        buffer: Option<&Expr>,
        nagle: &Expr,
        one: &One<'_>,
    ) -> Result<(Socket, Socket), Trouble> {
        let buffer = self.buffer(buffer, self.boot.stream_buffer(), one)?;
        let nagle = self.eval(nagle, one)? != 0;
        Ok(self.boot.stream(buffer, nagle)?)
    }

    /// Kernels double a send buffer that they are given (`SO_SNDBUF`), and make it no smaller than
    /// `SOCK_MIN_SNDBUF`.
    fn unix_stream(
        &mut self,
        buffer: Option<&Expr>,
        one: &One<'_>,
    ) -> Result<(Socket, Socket), Trouble> {
        const LEAST: u64 = 4_608;
        let given = buffer.map(|given| self.eval(given, one)).transpose()?;
        let doubled = given.map(|given| Bytes(given.saturating_mul(2).max(LEAST)));
        let buffer = doubled.unwrap_or(self.boot.datagram_buffer());
        Ok(self.boot.unix_pair(buffer)?)
    }

    fn region(&mut self, bytes: &Expr, one: &One<'_>) -> Result<(), Trouble> {
        let bytes = Bytes(self.eval(bytes, one)?.max(1));
        let region = self.boot.region(bytes)?;
        let lines = bytes.0.div_ceil(self.boot.line());
        self.objects.regions.push((region, lines));
        Ok(())
    }

    fn spinlocks(
        &mut self,
        spinlock: &warmq_scenario::Spinlock,
        one: &One<'_>,
    ) -> Result<(), Trouble> {
        let spinning = Spinning::of(spinlock, self.bound, one.at)?;
        let count = if spinning.per_cpu {
            self.boot.cpus()
        } else {
            1
        };
        let locks = (0..count).map(|_| self.boot.spinlock());
        let locks = locks.collect::<Result<Vec<_>, _>>()?;
        for lock in &locks {
            self.part(one, Cause::Spinlock, Part::Spinlock(*lock));
        }
        self.objects.spinlocks.push(SpinlockSet { locks, spinning });
        Ok(())
    }

    fn queue(&mut self, holds: &Expr, one: &One<'_>) -> Result<(), Trouble> {
        let queue = Queue {
            mutex: self.boot.mutex(),
            filled: self.boot.condition(),
            emptied: self.boot.condition(),
            holds: self.eval(holds, one)?,
            items: Cell::new(0),
        };
        self.part(one, Cause::Queue, Part::Mutex(queue.mutex));
        self.part(one, Cause::Queue, Part::Condition(queue.filled));
        self.part(one, Cause::Queue, Part::Condition(queue.emptied));
        self.objects.queues.push(queue);
        Ok(())
    }

    /// A set for each value of the indexes but the last.
    fn semaphores(&mut self, initial: &Expr) -> Result<(), Trouble> {
        let of_set = self.bound.dimensions_of_object(self.id).last();
        let of_set = of_set.copied().unwrap_or(1);
        for first in (0..self.bound.objects(self.id)).step_by(of_set.max(1) as usize) {
            let at = &self.bound.indexes_of_object(self.id, first);
            let initial = self.bound.eval(initial, at)?;
            let set = self.boot.semaphores(of_set as u32, initial)?;
            for (number, semaphore) in (first..).zip(set) {
                let one = One { number, at };
                self.part(&one, Cause::Semaphore, Part::Semaphore(semaphore));
                self.objects.semaphores.push(semaphore);
            }
        }
        Ok(())
    }

    /// The buffer that a socket is given, or else the kernel's `own`.
    fn buffer(&self, given: Option<&Expr>, own: Bytes, one: &One<'_>) -> Result<Bytes, Trouble> {
        given.map_or(Ok(own), |given| Ok(Bytes(self.eval(given, one)?)))
    }

    fn eval(&self, expr: &Expr, one: &One<'_>) -> Result<u64, Trouble> {
        Ok(self.bound.eval(expr, one.at)?)
    }

    fn ends(&mut self, one: &One<'_>, cause: Cause, (first, second): (Socket, Socket)) {
        self.part(one, cause, Part::Socket(first));
        self.part(one, cause, Part::Socket(second));
    }

    /// Tells the kernel of which object a part is, and for what its waiters wait.
    fn part(&mut self, one: &One<'_>, cause: Cause, part: Part) {
        // There are at most a million objects of a table.
        if let Ok(number) = u32::try_from(self.bound.object_of_all(self.id, one.number)) {
            self.boot.part_of(part, Object { cause, number });
        }
    }
}
