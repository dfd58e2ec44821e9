//! The objects of a scenario as the simulated kernel has them.

use std::cell::Cell;

use warmq_kernel::{
    Barrier, Boot, Condition, GroupId, Limits, Mm, Mutex, Region, Semaphore, Socket,
};
use warmq_scenario::{Bound, Expr, ObjectId, ObjectKind, Reference};
use warmq_units::{Bytes, Duration};

use super::Trouble;
use super::clocks::Timers;
use super::specs::{Machine, nice_of};

const NO_CPU: &str = "a group whose `cpus` the machine lacks";

/// A bounded queue in the memory of its users.
pub(super) struct Queue {
    pub(super) mutex: Mutex,
    pub(super) filled: Condition,
    pub(super) emptied: Condition,
    pub(super) holds: u64,
    pub(super) items: Cell<u64>,
}

/// All objects of one table.
pub(super) enum Made {
    /// Each with its lines.
    Regions(Vec<(Region, u64)>),
    Mutexes(Vec<Mutex>),
    Conditions(Vec<Condition>),
    Semaphores(Vec<Semaphore>),
    Barriers(Vec<Barrier>),
    Queues(Vec<Queue>),
    /// Both ends, `near` first; of a pipe, the one that is written first.
    Streams(Vec<(Socket, Socket)>),
    Datagrams(Vec<Socket>),
    Groups(Vec<GroupId>),
    Processes(Vec<Mm>),
    Timers(Timers),
    /// Senders outside the machine are no objects of it.
    Sources,
}

/// Makes one object after another of table `id`.
struct Maker<'a, 'b, 'c> {
    bound: &'a Bound,
    boot: &'a mut Boot<'b>,
    /// The tables before this one.
    made: &'c [Made],
    machine: &'c Machine,
    id: ObjectId,
}

/// Makes all objects, in the order of their tables.
pub(super) fn make(bound: &Bound, boot: &mut Boot<'_>) -> Result<Vec<Made>, Trouble> {
    let machine = Machine::new(boot);
    let mut made = Vec::new();
    for (index, object) in bound.scenario().objects().iter().enumerate() {
        let maker = Maker {
            bound,
            boot,
            made: &made,
            machine: &machine,
            id: ObjectId(index as u32),
        };
        let table = maker.table(&object.kind)?;
        made.push(table);
    }
    Ok(made)
}

impl Maker<'_, '_, '_> {
    fn table(mut self, kind: &ObjectKind) -> Result<Made, Trouble> {
        Ok(match kind {
            ObjectKind::Region { bytes } => Made::Regions(self.each(|maker, at| {
                let bytes = Bytes(maker.eval(bytes, at)?.max(1));
                let region = maker.boot.region(bytes)?;
                Ok((region, bytes.0.div_ceil(maker.boot.line())))
            })?),
            ObjectKind::Mutex => Made::Mutexes(self.each(|maker, _| Ok(maker.boot.mutex()))?),
            ObjectKind::Condition => {
                Made::Conditions(self.each(|maker, _| Ok(maker.boot.condition()))?)
            }
            ObjectKind::Semaphore { initial } => Made::Semaphores(self.semaphores(initial)?),
            ObjectKind::Barrier { tasks } => Made::Barriers(self.each(|maker, at| {
                let tasks = maker.eval(tasks, at)?;
                Ok(maker.boot.barrier(tasks))
            })?),
            ObjectKind::Queue { holds } => Made::Queues(self.each(|maker, at| {
                Ok(Queue {
                    mutex: maker.boot.mutex(),
                    filled: maker.boot.condition(),
                    emptied: maker.boot.condition(),
                    holds: maker.eval(holds, at)?,
                    items: Cell::new(0),
                })
            })?),
            ObjectKind::Pipe { buffer } => Made::Streams(self.each(|maker, at| {
                let buffer = Bytes(maker.eval(buffer, at)?);
                Ok(maker.boot.pipe(buffer)?)
            })?),
            ObjectKind::Stream { buffer, nagle } => Made::Streams(self.each(|maker, at| {
                let own = maker.boot.stream_buffer();
                let buffer = maker.buffer(buffer.as_ref(), own, at)?;
                Ok(maker.boot.stream(buffer, *nagle)?)
            })?),
            ObjectKind::Datagram { buffer } => Made::Datagrams(self.each(|maker, at| {
                let own = maker.boot.datagram_buffer();
                let buffer = maker.buffer(buffer.as_ref(), own, at)?;
                Ok(maker.boot.datagram_socket(buffer)?)
            })?),
            ObjectKind::Group {
                weight,
                parent,
                quota,
                burst,
                idle,
                cpus,
            } => Made::Groups(self.each(|maker, at| {
                let group = maker.group(weight, parent.as_ref(), at)?;
                if let Some((quota, period)) = quota {
                    let time = |expr| maker.eval(expr, at).map(Duration);
                    let burst = burst.as_ref().map(time).transpose()?;
                    let limits = Limits {
                        quota: time(quota)?,
                        period: time(period)?,
                        burst: burst.unwrap_or(Duration::ZERO),
                    };
                    maker.boot.bandwidth(group, limits);
                }
                if *idle {
                    maker.boot.idle(group);
                }
                if let Some(place) = cpus {
                    let cpus = maker.machine.cpus_of(maker.bound, place, at)?;
                    if cpus.is_empty() {
                        return Err(Trouble::Lacking(NO_CPU));
                    }
                    maker.boot.cpuset(group, &cpus);
                }
                Ok(group)
            })?),
            ObjectKind::Autogroup { nice } => Made::Groups(self.each(|maker, at| {
                let nice = nice_of(maker.bound.eval_signed(nice, at)?);
                let name = &maker.bound.scenario().object(maker.id).name;
                Ok(maker.boot.autogroup(name, nice))
            })?),
            ObjectKind::Process => Made::Processes(self.each(|maker, _| Ok(maker.boot.mm()))?),
            ObjectKind::Timer { shared, absolute } => Made::Timers(Timers {
                shared: shared
                    .then(|| self.each(|_, _| Ok(Cell::new(None))))
                    .transpose()?,
                absolute: *absolute,
            }),
            ObjectKind::File { .. } => unreachable!("a scenario that writes is not played"),
            ObjectKind::Source(_) => Made::Sources,
        })
    }

    /// What `make` makes for each of the table, which gets the indexes.
    fn each<T>(
        &mut self,
        make: impl Fn(&mut Self, &[u64]) -> Result<T, Trouble>,
    ) -> Result<Vec<T>, Trouble> {
        let all = 0..self.bound.objects(self.id);
        all.map(|number| {
            let at = self.bound.indexes_of_object(self.id, number);
            make(self, &at)
        })
        .collect()
    }

    /// A set for each value of the indexes but the last.
    fn semaphores(&mut self, initial: &Expr) -> Result<Vec<Semaphore>, Trouble> {
        let of_set = self.bound.dimensions_of_object(self.id).last();
        let of_set = of_set.copied().unwrap_or(1);
        let mut made = Vec::new();
        for first in (0..self.bound.objects(self.id)).step_by(of_set.max(1) as usize) {
            let at = self.bound.indexes_of_object(self.id, first);
            let initial = self.eval(initial, &at)?;
            made.extend(self.boot.semaphores(of_set as u32, initial)?);
        }
        Ok(made)
    }

    fn group(
        &mut self,
        weight: &Expr,
        parent: Option<&Reference>,
        at: &[u64],
    ) -> Result<GroupId, Trouble> {
        let parent = match parent.map(|it| (it, &self.made[it.object.0 as usize])) {
            Some((reference, Made::Groups(groups))) => {
                groups[self.bound.object_number(reference, at)? as usize]
            }
            _ => GroupId::ROOT,
        };
        let weight = self.eval(weight, at)? as u32;
        let name = &self.bound.scenario().object(self.id).name;
        Ok(self.boot.group(parent, name, weight))
    }

    /// The buffer that a socket is given, or else the kernel's `own`.
    fn buffer(&self, given: Option<&Expr>, own: Bytes, at: &[u64]) -> Result<Bytes, Trouble> {
        given.map_or(Ok(own), |given| Ok(Bytes(self.eval(given, at)?)))
    }

    fn eval(&self, expr: &Expr, at: &[u64]) -> Result<u64, Trouble> {
        Ok(self.bound.eval(expr, at)?)
    }
}
