//! The objects of a scenario: memory, locks, connections. All are made before the tasks are
//! forked, who inherit them.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64};

use warmq_scenario::program::{Cpus, Spinning};
use warmq_scenario::{Bound, EvalError, Expr, Family, ObjectId, ObjectKind, Quantity};
use warmq_units::Bytes;

use crate::error::PlayError;
use crate::notes::Notes;
use crate::speed::Speed;
use crate::sys::files::{allow_descriptors, open_to_write, pipe};
use crate::sys::futex::Futex;
use crate::sys::ipc::{Barrier, Condition, Mutex, Semaphore, new_set};
use crate::sys::memory::{Shared, shared};
use crate::sys::sockets;
use crate::sys::spinlock::Spinlock;

/// A bounded queue in the memory of its users.
#[repr(C, align(64))]
pub struct Queue {
    /// Guards `items`.
    pub mutex: Mutex,
    /// There is an item.
    pub filled: Condition,
    /// There is room.
    pub emptied: Condition,
    /// How many items it holds; set once.
    pub holds: AtomicU64,
    /// How many there are; changed under the mutex alone.
    pub items: AtomicU64,
}

// SAFETY: locks of several processes and atomics.
unsafe impl Shared for Queue {}

/// Spin locks that steps name as one: one, or one for each CPU.
#[derive(Debug)]
pub struct SpinlockSet {
    /// The locks.
    pub locks: &'static [Spinlock],
    /// What their table says.
    pub spinning: Spinning,
    /// The rounds of the calibrated loop between two looks.
    pub rounds: u64,
}

// SAFETY: an atomic.
unsafe impl Shared for AtomicU64 {}

/// A word of a region.
pub type Word = AtomicU32;
// SAFETY: an atomic.
unsafe impl Shared for Word {}

/// All objects that steps name, those of each class in the order of their tables.
#[derive(Default)]
pub struct Objects {
    /// Memory, each a slice of its own pages.
    pub regions: Vec<&'static [Word]>,
    /// Mutexes.
    pub mutexes: Vec<&'static Mutex>,
    /// Spin locks.
    pub spinlocks: Vec<SpinlockSet>,
    /// Conditions.
    pub conditions: Vec<&'static Condition>,
    /// Futexes.
    pub futexes: Vec<&'static Futex>,
    /// SysV semaphores.
    pub semaphores: Vec<Semaphore>,
    /// Barriers.
    pub barriers: Vec<&'static Barrier>,
    /// Queues.
    pub queues: Vec<&'static Queue>,
    /// The ends to read and to write.
    pub pipes: Vec<(i32, i32)>,
    /// The near and the far end.
    pub streams: Vec<(i32, i32)>,
    /// The socket, and its port.
    pub datagrams: Vec<(i32, u16)>,
    /// When each timer expired last that all tasks share, in nanoseconds of the monotonic clock; 0
    /// for never.
    pub timers: Vec<&'static AtomicU64>,
    /// Files, open for writing.
    pub files: Vec<i32>,
}

/// SysV sets that were made, so that they can be removed.
#[derive(Default)]
pub struct Sets(pub Vec<i32>);

/// Each region begins on a page of its own,
const PAGE: u64 = 4096;
/// and ends with a line.
const LINE: u64 = 64;
/// Descriptors of a process beside those of objects.
const SPARE: u64 = 64;

/// Makes all objects.
///
/// # Errors
/// What the system refuses, with the object's name.
pub fn make(
    bound: &Bound,
    (speed, cpus): (Speed, &Cpus),
    sets: &mut Sets,
    notes: &Notes,
) -> Result<Objects, PlayError> {
    descriptors(bound)?;
    memory(bound)?;
    let mut objects = Objects::default();
    for (id, object) in (0..).map(ObjectId).zip(bound.scenario().objects()) {
        let mut maker = Maker {
            bound,
            speed,
            cpus: cpus.all().iter().last().map_or(1, |last| last.index() + 1),
            id,
            name: &object.name,
            sets,
            notes,
        };
        maker.table(&object.kind, &mut objects)?;
    }
    Ok(objects)
}

/// Allows as many descriptors as the connections take.
fn descriptors(bound: &Bound) -> Result<(), PlayError> {
    let objects = (0..).map(ObjectId).zip(bound.scenario().objects());
    let needed = objects.map(|(id, object)| match object.kind {
        ObjectKind::Pipe { .. } | ObjectKind::Stream { .. } => 2 * bound.objects(id),
        ObjectKind::Datagram { .. } | ObjectKind::File { .. } => bound.objects(id),
        _ => 0,
    });
    let needed = needed.sum::<u64>() + SPARE;
    allow_descriptors(needed).map_err(|most| PlayError::Refused {
        what: format!("pipes, streams, sockets and files take {needed} file descriptors"),
        why: format!("a process may have {most}"),
        fix: "make fewer of them, or allow more (ulimit -Hn)".to_owned(),
    })
}

/// Refuses regions that this machine has no memory for.
fn memory(bound: &Bound) -> Result<(), PlayError> {
    let needed = bound.memory(Bytes(PAGE))?.0;
    let available = available_memory();
    match available.filter(|available| needed > *available) {
        None => Ok(()),
        Some(available) => Err(PlayError::Refused {
            what: format!("the regions take {} MB", needed >> 20),
            why: format!("{} MB of memory are available", available >> 20),
            fix: "make them smaller or fewer".to_owned(),
        }),
    }
}

/// `MemAvailable`, in bytes.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// Makes the objects of table `id`.
struct Maker<'a> {
    bound: &'a Bound,
    speed: Speed,
    /// The number of its last CPU, counted from 1.
    cpus: usize,
    id: ObjectId,
    name: &'a str,
    sets: &'a mut Sets,
    notes: &'a Notes,
}

impl Maker<'_> {
    fn table(&mut self, kind: &ObjectKind, objects: &mut Objects) -> Result<(), PlayError> {
        match kind {
            ObjectKind::Region { bytes } => objects.regions.extend(self.regions(bytes)?),
            ObjectKind::Mutex => objects.mutexes.extend(self.each_new(|mutex: &Mutex, _| {
                mutex.init();
                Ok(())
            })?),
            ObjectKind::Spinlock(spinlock) => objects.spinlocks.extend(self.spinlocks(spinlock)?),
            ObjectKind::Condition => {
                objects
                    .conditions
                    .extend(self.each_new(|condition: &Condition, _| {
                        condition.init();
                        Ok(())
                    })?)
            }
            ObjectKind::Futex => objects
                .futexes
                .extend(self.each_new(|_: &Futex, _| Ok(()))?),
            ObjectKind::Semaphore { initial } => {
                objects.semaphores.extend(self.semaphores(initial)?);
            }
            ObjectKind::Barrier { tasks } => {
                objects
                    .barriers
                    .extend(self.each_new(|barrier: &Barrier, at| {
                        let tasks = self.bound.eval(tasks, at)?;
                        barrier.init(u32::try_from(tasks).unwrap_or(u32::MAX));
                        Ok(())
                    })?);
            }
            ObjectKind::Queue { holds } => objects.queues.extend(self.queues(holds)?),
            ObjectKind::Pipe { buffer } => objects.pipes.extend(self.pipes(buffer)?),
            ObjectKind::Stream {
                family,
                buffer,
                nagle,
            } => {
                let made = match family {
                    Family::Inet => self.streams(buffer.as_ref(), nagle)?,
                    Family::Unix => self.unix_pairs(buffer.as_ref())?,
                };
                objects.streams.extend(made);
            }
            ObjectKind::Datagram { buffer } => {
                objects.datagrams.extend(self.datagrams(buffer.as_ref())?);
            }
            ObjectKind::Timer { .. } => {
                objects
                    .timers
                    .extend(self.each_new(|_: &AtomicU64, _| Ok(()))?);
            }
            ObjectKind::File { path } => objects.files.extend(self.files(path)?),
            // Nothing that a step names by its number.
            ObjectKind::Source(_)
            | ObjectKind::Group { .. }
            | ObjectKind::Autogroup { .. }
            | ObjectKind::Process => {}
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        self.bound.objects(self.id)
    }

    fn at(&self, number: u64) -> Vec<u64> {
        self.bound.indexes_of_object(self.id, number)
    }

    fn refused(&self, error: &io::Error) -> PlayError {
        let what = format!("`{}` cannot be made", self.name);
        PlayError::refused(what, error, "make fewer or smaller objects")
    }

    /// Objects in shared memory, which `init` makes usable.
    fn each_new<T: Shared>(
        &self,
        init: impl Fn(&T, &[u64]) -> Result<(), EvalError>,
    ) -> Result<&'static [T], PlayError> {
        let made = shared::<T>(self.count() as usize).map_err(|error| self.refused(&error))?;
        for (number, object) in (0..).zip(made) {
            init(object, &self.at(number))?;
        }
        Ok(made)
    }

    fn regions(&self, bytes: &Expr) -> Result<Vec<&'static [Word]>, PlayError> {
        let sizes = (0..self.count()).map(|number| self.bound.eval(bytes, &self.at(number)));
        let sizes: Vec<u64> = sizes.collect::<Result<_, EvalError>>()?;
        let words = |bytes: u64| bytes as usize / size_of::<Word>();
        let pages = |bytes: u64| words(bytes.max(1).next_multiple_of(PAGE));
        let all = sizes.iter().map(|bytes| pages(*bytes)).sum();
        let mut left = shared::<Word>(all).map_err(|error| self.refused(&error))?;
        let regions = sizes.into_iter().map(|bytes| {
            let (region, rest) = left.split_at(pages(bytes));
            left = rest;
            &region[..words(bytes.max(1).next_multiple_of(LINE))]
        });
        Ok(regions.collect())
    }

    /// A set for each value of the indexes but the last.
    fn semaphores(&mut self, initial: &Expr) -> Result<Vec<Semaphore>, PlayError> {
        let of_set = self.bound.dimensions_of_object(self.id).last();
        let of_set = of_set.copied().unwrap_or(1).max(1);
        let mut made = Vec::new();
        for first in (0..self.count()).step_by(of_set as usize) {
            let count = u16::try_from(of_set).unwrap_or(u16::MAX);
            let set = new_set(count).map_err(|error| {
                let what = format!("`{}`: a set of {of_set} SysV semaphores", self.name);
                PlayError::refused(what, &error, "make fewer, or see /proc/sys/kernel/sem")
            })?;
            self.sets.0.push(set);
            for number in 0..of_set {
                let semaphore = Semaphore {
                    set,
                    number: number as u16,
                };
                let initial = self.bound.eval(initial, &self.at(first + number))?;
                let initial = i32::try_from(initial).unwrap_or(i32::MAX);
                semaphore
                    .set_value(initial)
                    .map_err(|error| self.refused(&error))?;
                made.push(semaphore);
            }
        }
        Ok(made)
    }

    fn spinlocks(
        &self,
        spinlock: &warmq_scenario::Spinlock,
    ) -> Result<Vec<SpinlockSet>, PlayError> {
        let of_each = if spinlock.per_cpu { self.cpus } else { 1 };
        let all = shared(self.count() as usize * of_each).map_err(|error| self.refused(&error))?;
        let one = |(number, locks)| {
            let spinning = Spinning::of(spinlock, self.bound, &self.at(number))?;
            Ok(SpinlockSet {
                locks,
                spinning,
                rounds: self.speed.loops(spinning.pause, Quantity::Time).max(1),
            })
        };
        (0..).zip(all.chunks(of_each)).map(one).collect()
    }

    fn queues(&self, holds: &Expr) -> Result<&'static [Queue], PlayError> {
        self.each_new(|queue: &Queue, at| {
            queue.mutex.init();
            queue.filled.init();
            queue.emptied.init();
            let holds = self.bound.eval(holds, at)?;
            queue
                .holds
                .store(holds, std::sync::atomic::Ordering::Relaxed);
            Ok(())
        })
    }

    fn pipes(&self, buffer: &Expr) -> Result<Vec<(i32, i32)>, PlayError> {
        let mut made = Vec::new();
        let mut other = None;
        for number in 0..self.count() {
            let bytes = self.bound.eval(buffer, &self.at(number))?;
            let (read, write, holds) = pipe(bytes).map_err(|error| self.refused(&error))?;
            if holds != bytes {
                other = Some((bytes, holds));
            }
            made.push((read, write));
        }
        if let Some((wanted, holds)) = other {
            let why =
                format!("it holds {holds} bytes, not {wanted}: the kernel rounds and limits it");
            self.notes.say(&format!("pipe `{}`", self.name), &why);
        }
        Ok(made)
    }

    fn streams(&self, buffer: Option<&Expr>, nagle: &Expr) -> Result<Vec<(i32, i32)>, PlayError> {
        let mut made = Vec::new();
        let mut maker: Option<(Option<u64>, sockets::Streams)> = None;
        for number in 0..self.count() {
            let bytes = self.buffer(buffer, number)?;
            if maker.as_ref().is_none_or(|(of, _)| *of != bytes) {
                let new = sockets::Streams::new(bytes).map_err(|error| self.refused(&error))?;
                maker = Some((bytes, new));
            }
            let nagle = self.bound.eval(nagle, &self.at(number))? != 0;
            if let Some((_, maker)) = &maker {
                made.push(maker.stream(nagle).map_err(|error| self.refused(&error))?);
            }
        }
        Ok(made)
    }

    fn unix_pairs(&self, buffer: Option<&Expr>) -> Result<Vec<(i32, i32)>, PlayError> {
        let one = |number| {
            let bytes = self.buffer(buffer, number)?;
            sockets::unix_pair(bytes).map_err(|error| self.refused(&error))
        };
        (0..self.count()).map(one).collect()
    }

    fn datagrams(&self, buffer: Option<&Expr>) -> Result<Vec<(i32, u16)>, PlayError> {
        let one = |number| {
            let bytes = self.buffer(buffer, number)?;
            sockets::datagram_socket(bytes).map_err(|error| self.refused(&error))
        };
        (0..self.count()).map(one).collect()
    }

    fn files(&self, path: &str) -> Result<Vec<i32>, PlayError> {
        let one = |_| {
            open_to_write(path).map_err(|error| {
                let what = format!("`{}` cannot be opened: {path}", self.name);
                PlayError::refused(
                    what,
                    &error,
                    "name a file or a device that you may write to",
                )
            })
        };
        (0..self.count()).map(one).collect()
    }

    fn buffer(&self, buffer: Option<&Expr>, number: u64) -> Result<Option<u64>, EvalError> {
        buffer
            .map(|expr| self.bound.eval(expr, &self.at(number)))
            .transpose()
    }
}

impl Sets {
    /// Removes all of them.
    pub fn remove(&self) {
        self.0
            .iter()
            .for_each(|set| crate::sys::ipc::remove_set(*set));
    }
}
