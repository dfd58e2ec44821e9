//! Streams of randomness that tasks of several processes share.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use warmq_scenario::program::SharedStreams;
use warmq_units::{Seed, Stream};

use crate::sys::ipc::Mutex;
use crate::sys::memory::{Shared, shared};

/// A stream behind a lock.
#[repr(C, align(64))]
struct Cell {
    mutex: Mutex,
    stream: UnsafeCell<MaybeUninit<Stream>>,
}

// SAFETY: a stream is a number without pointers; it is put there before anybody else looks, and
// after that it is used under the mutex alone.
unsafe impl Shared for Cell {}
// SAFETY: see above.
unsafe impl Sync for Cell {}

/// The shared streams, by their place among the names.
pub struct Streams {
    cells: &'static [Cell],
}

impl Streams {
    /// The streams `names` of `seed`.
    ///
    /// # Errors
    /// No memory is left.
    pub fn new(names: &[String], seed: Seed) -> io::Result<Streams> {
        let cells: &[Cell] = shared(names.len())?;
        for (cell, name) in cells.iter().zip(names) {
            cell.mutex.init();
            // SAFETY: nobody else knows the cell yet; what was there needs no drop.
            unsafe { cell.stream.get().write(MaybeUninit::new(seed.stream(name))) };
        }
        Ok(Streams { cells })
    }
}

impl SharedStreams for &Streams {
    fn with<T>(&self, place: usize, draw: impl FnOnce(&mut Stream) -> T) -> T {
        let cell = &self.cells[place];
        cell.mutex.lock();
        // SAFETY: the mutex is held, and `new` has put a stream there.
        let result = draw(unsafe { (*cell.stream.get()).assume_init_mut() });
        cell.mutex.unlock();
        result
    }
}

/// The streams that a task or a source draws from.
pub type Drawn = warmq_scenario::program::Drawn<&'static Streams>;
