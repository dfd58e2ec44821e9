//! Threads whose stacks and control blocks are colored.
//!
//! glibc puts a thread's control block and its thread-local variables at the end of the mapping
//! that holds its stack, and the stack below. It does not round the size of that mapping to pages
//! when it computes the place; so the size of the stack is a place for the color, and nothing has
//! to be allocated, kept and freed here. A stack by `pthread_attr_setstack` would be the program's
//! to free after the thread has ended, which it cannot know for a detached thread.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;

use warmq_coloring::Coloring;

use crate::machine;
use crate::system::page;

/// A page full of colors, as how many threads there will be is not known.
static COLORING: LazyLock<Coloring> = LazyLock::new(|| {
    let caches = machine::caches(Path::new("/"));
    let page = page() as u64;
    let nearest = caches.first();
    nearest.map_or(Coloring::NONE, |cache| {
        Coloring::new(page / cache.line(), page, *cache)
    })
});

static THREADS: AtomicU64 = AtomicU64::new(0);

/// A builder of a thread with a stack of at least `stack_size` bytes whose top has a color of its
/// own: the next in turn.
///
/// ```
/// let thread = warmq_color::threads::builder(256 << 10).spawn(|| 7);
/// assert_eq!(thread.unwrap().join().unwrap(), 7);
/// ```
pub fn builder(stack_size: usize) -> Builder {
    let index = THREADS.fetch_add(1, Ordering::Relaxed);
    Builder::new().stack_size(colored_size(stack_size, index))
}

/// The size of the stack of thread `index` that gives it its color, for whoever creates threads
/// (`pthread_attr_setstacksize`): `stack_size`, rounded up to pages, and less than a page more.
pub fn colored_size(stack_size: usize, index: u64) -> usize {
    let whole = stack_size
        .checked_next_multiple_of(page())
        .unwrap_or(stack_size);
    whole.saturating_add(COLORING.offset(index) as usize)
}
