//! Stacks for fibers whose tops share no sets.
//!
//! ```text
//!     | guard |            stack 0          ·| guard |            stack 1        · | guard | ...
//!     |       |<------------- size -------->||       |<------------- size -------->|
//!             |<-------- usable ----------->|                                    top
//!                                           top: color 0                         color 1
//! ```
//!
//! A guard page below each stack is never opened; the color is taken from the upper end, so that a
//! stack never reaches into the next guard page, and it costs at most a line a color.
#![allow(unsafe_code)]

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use warmq_coloring::{Blocks, Cache, Coloring};

use crate::error::Error;
use crate::machine;
use crate::system::{Mapping, page};

/// The least that a stack has beside its color: what corosensei asks for at least, and a signal
/// handler needs.
const LEAST: usize = 4096;

/// Stacks that are reserved at a time. Address space only.
const AT_A_TIME: usize = 64;

/// The same without guard pages: so many pages as a huge page has, so that a region is whole huge
/// pages whatever the stride, and its stacks begin at all pages of one alike. With fewer, many
/// regions would have their stacks at the same places of huge pages, and these share sets of TLBs.
const AT_A_TIME_IN_HUGE_PAGES: usize = 512;

/// Free stacks that keep their pages, so that fibers that come and go cost no page faults.
const KEEP: usize = 256;

/// Lines that a fiber touches when it is switched to: what the switch saved, and a small frame.
const HOT_LINES: u64 = 2;

/// How a pool makes its stacks.
#[derive(Clone, Debug)]
pub struct Options {
    size: usize,
    fibers: u64,
    hot_lines: u64,
    colors: Option<u64>,
    caches: Option<Vec<Cache>>,
    keep: usize,
    huge: bool,
}

impl Options {
    /// For about `fibers` fibers that run in turn: [`Coloring::of`] chooses the colors by this
    /// number, for stacks that are stored to. Without it, half of the lines of a page are used, so
    /// that frames of up to half a page end in the page that they begin in.
    pub fn fibers(self, fibers: u64) -> Options {
        Options { fibers, ..self }
    }

    /// How many lines a fiber touches when it is switched to (2 unless said).
    pub fn hot_lines(self, hot_lines: u64) -> Options {
        Options { hot_lines, ..self }
    }

    /// So many colors, whatever the caches say. 1 is no coloring.
    pub fn colors(self, colors: u64) -> Options {
        Options {
            colors: Some(colors),
            ..self
        }
    }

    /// Data caches, the nearest first, instead of this machine's.
    pub fn caches(self, caches: Vec<Cache>) -> Options {
        Options {
            caches: Some(caches),
            ..self
        }
    }

    /// How many free stacks keep their pages (256 unless said). Of those that are free for longer
    /// than so many others, the kernel may take the pages.
    pub fn keep(self, keep: usize) -> Options {
        Options { keep, ..self }
    }

    /// Stacks in huge pages, **without guard pages**: one guard page would split a huge page.
    ///
    /// Fewer misses of the TLB, and addresses that say which sets of level 2 a stack uses: an odd
    /// number of pages from stack to stack makes them use all. But each stack has all its memory
    /// from the start.
    ///
    /// # Safety
    /// No fiber may use more stack than it has: it would write into the next stack.
    pub unsafe fn huge_without_guards(self) -> Options {
        Options { huge: true, ..self }
    }

    /// Makes the pool. It maps no stack yet.
    ///
    /// # Errors
    /// A size that leaves less than 4 KB beside the color, or that is larger than any memory.
    pub fn pool(self) -> Result<Pool, Error> {
        let layout = Layout::new(&self)?;
        let shared = Shared {
            layout,
            keep: self.keep,
            state: Mutex::default(),
        };
        Ok(Pool {
            shared: Arc::new(shared),
        })
    }
}

/// Where stacks lie in their regions, in bytes; `guard`, `size` and so `stride` are whole pages.
#[derive(Clone, Copy, Debug)]
struct Layout {
    guard: usize,
    size: usize,
    stride: usize,
    coloring: Coloring,
    huge: bool,
    /// Stacks of a region.
    at_a_time: usize,
}

impl Layout {
    fn new(options: &Options) -> Result<Layout, Error> {
        let too_large = || Error::new(format!("stack of {} bytes", options.size), "ask for less");
        let page = page();
        let size = options
            .size
            .checked_next_multiple_of(page)
            .ok_or_else(too_large)?;
        let pages = size.checked_add(page).ok_or_else(too_large)? / page;
        // Without guards a page may be needed to make the stride odd; with guards it has one more.
        let (guard, stride) = if options.huge {
            (0, size + (pages % 2) * page)
        } else {
            (page, size + page)
        };
        let at_a_time = if options.huge {
            AT_A_TIME_IN_HUGE_PAGES
        } else {
            AT_A_TIME
        };
        stride.checked_mul(2 * at_a_time).ok_or_else(too_large)?;
        let coloring = coloring(options, stride as u64, page as u64);
        let least = coloring.reach() as usize + LEAST;
        if size < least {
            return Err(Error::new(
                format!(
                    "a stack of {size} bytes is too small for {} colors",
                    coloring.colors()
                ),
                format!("ask for {least} bytes at least, or for fewer colors"),
            ));
        }
        Ok(Layout {
            guard,
            size,
            stride,
            coloring,
            huge: options.huge,
            at_a_time,
        })
    }

    /// In which region stack `index` lies, and how many bytes from its start, guard included.
    fn place(&self, index: usize) -> (usize, usize) {
        (index / self.at_a_time, index % self.at_a_time * self.stride)
    }

    fn reserve(&self) -> Result<Mapping, Error> {
        let length = self.stride * self.at_a_time;
        if self.huge {
            Mapping::huge(length)
        } else {
            // One guard more, so that a region also ends with one.
            Mapping::closed(length + self.guard)
        }
    }
}

/// The colors of a pool: those asked for, those that its fibers need, or half a page.
fn coloring(options: &Options, stride: u64, page: u64) -> Coloring {
    let caches = options.caches.clone();
    let caches = caches.unwrap_or_else(|| machine::caches(Path::new("/")));
    let Some(nearest) = caches.first() else {
        return Coloring::NONE;
    };
    let blocks = Blocks::new(options.fibers, stride).with_hot_lines(options.hot_lines);
    match options.colors {
        Some(colors) => Coloring::new(colors, stride, *nearest),
        None if options.fibers > 0 => Coloring::of(blocks.that_are_stored_to(), &caches),
        None => Coloring::new(page / 2 / nearest.line(), stride, *nearest),
    }
}

/// Colored stacks of one size. Clones share their stacks; any thread may use one.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    layout: Layout,
    keep: usize,
    state: Mutex<State>,
}

/// Invariant: a place is in use by one [`Stack`], or in `free` once, or not below `made`.
#[derive(Default)]
struct State {
    regions: Vec<Mapping>,
    /// How many stacks were made.
    made: usize,
    /// The one that was used last is at the end.
    free: Vec<usize>,
    /// How many of `free`, from its start on, have no pages to give any more.
    forgotten: usize,
}

impl Pool {
    /// Options for stacks of `size` bytes, rounded up to whole pages. The color is a part of it: a
    /// stack has at most a line less for each color.
    pub fn of_size(size: usize) -> Options {
        Options {
            size,
            fibers: 0,
            hot_lines: HOT_LINES,
            colors: None,
            caches: None,
            keep: KEEP,
            huge: false,
        }
    }

    /// A stack: the one that was given back last, or a new one.
    ///
    /// # Errors
    /// The system has no more memory or mappings to give.
    pub fn stack(&self) -> Result<Stack, Error> {
        let (index, low) = self.shared.take()?;
        let layout = &self.shared.layout;
        let high = low.get() + layout.guard + layout.size;
        let top = NonZeroUsize::new(high - layout.coloring.offset(index as u64) as usize);
        Ok(Stack {
            shared: Arc::clone(&self.shared),
            index,
            low,
            top: top.expect("above the lowest address"),
        })
    }

    /// Which colors the stacks have.
    pub fn coloring(&self) -> Coloring {
        self.shared.layout.coloring
    }

    /// From one stack to the next, in bytes.
    pub fn stride(&self) -> usize {
        self.shared.layout.stride
    }

    /// How many stacks were made so far; all of them are in use or free.
    pub fn made(&self) -> usize {
        self.shared.state().made
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pool")
            .field("layout", &self.shared.layout)
            .field("made", &self.made())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Nothing panics while the lock is held, except where memory for a list is lacking; the lists
    /// are as before then.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a stack that nobody uses, and its lowest address, the guard page included.
    fn take(&self) -> Result<(usize, NonZeroUsize), Error> {
        let state = &mut *self.state();
        let index = match state.free.pop() {
            Some(index) => index,
            None => self.make(state)?,
        };
        state.forgotten = state.forgotten.min(state.free.len());
        let (region, offset) = self.layout.place(index);
        Ok((index, state.regions[region].at(offset).expose_provenance()))
    }

    fn make(&self, state: &mut State) -> Result<usize, Error> {
        let index = state.made;
        let (region, offset) = self.layout.place(index);
        if region == state.regions.len() {
            state.regions.push(self.layout.reserve()?);
        }
        let (guard, size) = (self.layout.guard, self.layout.size);
        if guard > 0 {
            state.regions[region].open(offset + guard, size)?;
        }
        state.made += 1;
        Ok(index)
    }

    fn give_back(&self, index: usize) {
        let state = &mut *self.state();
        state.free.push(index);
        if state.free.len() - state.forgotten > self.keep {
            let oldest = state.free[state.forgotten];
            let (region, offset) = self.layout.place(oldest);
            let (guard, size) = (self.layout.guard, self.layout.size);
            state.regions[region].forget(offset + guard, size);
            state.forgotten += 1;
        }
    }
}

/// A stack. It returns to its pool on drop, and keeps the pool's memory.
///
/// Invariant: the bytes from `low + guard` to `top` are mapped and this value's own; no page from
/// `low` to `low + guard` may be touched.
pub struct Stack {
    shared: Arc<Shared>,
    index: usize,
    low: NonZeroUsize,
    top: NonZeroUsize,
}

impl Stack {
    /// The highest address, where the stack begins to grow down: a multiple of the line.
    pub fn top(&self) -> NonZeroUsize {
        self.top
    }

    /// The lowest address, the guard page included.
    pub fn low(&self) -> NonZeroUsize {
        self.low
    }

    /// Bytes between the guard page and the top.
    pub fn usable(&self) -> usize {
        self.top.get() - self.low.get() - self.shared.layout.guard
    }

    /// Its number in the pool, which chooses its color.
    pub fn index(&self) -> usize {
        self.index
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stack")
            .field("index", &self.index)
            .field("low", &self.low)
            .field("top", &self.top)
            .finish_non_exhaustive()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.shared.give_back(self.index);
    }
}
