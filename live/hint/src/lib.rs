//! A thread tells the scheduler `scx_warmq` which data it is about to use.
//!
//! Threads that use the same data should run where that data is already in a cache. A program names
//! each such piece of data by two numbers of its own choice, an *app* and a *fragment* of it:
//!
//! ```
//! const ROOMS: u32 = 1;
//!
//! fn serve(room: u32) {
//!     let _scope = warmq_hint::Scope::enter(ROOMS, room);
//!     // Here the thread uses the data of `room`; at the end of the block it is what it was before.
//! }
//! # serve(7);
//! ```
//!
//! Nothing to set up and no privilege. Where no scheduler listens, a call is a comparison or two, but
//! for one in 64, which asks the kernel again. All of it may be called from any thread and from
//! signal handlers; `errno` is kept.
//!
//! This crate is the header `warmq.h`, compiled: one implementation and, in a program of several
//! languages, one state a thread. How it works, and what it costs, is said there and in the README.

#![no_std]

mod calls;
mod scope;

pub use scope::Scope;

use core::num::NonZeroU64;

/// What became of a hint. A program need not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A scheduler knows.
    Heard,
    /// Nobody listens, as far as this thread knows: it asks at every 64th call, and in
    /// [`listening`].
    Unheard,
    /// The pair `(u32::MAX, u32::MAX)` is reserved; nothing has changed.
    Reserved,
}

impl Answer {
    fn of(answer: i32) -> Answer {
        if answer == 0 {
            Answer::Heard
        } else {
            Answer::Unheard
        }
    }

    /// Whether a scheduler knows.
    pub fn is_heard(self) -> bool {
        self == Answer::Heard
    }
}

/// From here on this thread uses the data of `fragment` of `app`, until it enters another or leaves.
///
/// A loop over work items need not leave between them. The pair `(u32::MAX, u32::MAX)` is reserved.
pub fn enter(app: u32, fragment: u32) -> Answer {
    match pack(app, fragment) {
        Some(hint) => Answer::of(calls::warmq_hint_return_to(hint.get())),
        None => Answer::Reserved,
    }
}

/// From here on this thread uses no data in particular.
pub fn leave() -> Answer {
    Answer::of(calls::warmq_hint_return_to(0))
}

/// What this thread said last, heard or not: app and fragment.
pub fn current() -> Option<(u32, u32)> {
    NonZeroU64::new(calls::warmq_hint_current()).map(unpack)
}

/// Whether a scheduler listens. Asks the kernel at once, and tells it this thread's hint; so it also
/// ends the silence that follows when a scheduler was found missing.
pub fn listening() -> bool {
    calls::warmq_hint_listening() != 0
}

/// The hint for `fragment` of `app`, as the scheduler gets it and as a label holds it: the pair as one
/// number, plus one. `None` for the pair `(u32::MAX, u32::MAX)`, which would wrap to 0, "no hint".
pub const fn pack(app: u32, fragment: u32) -> Option<NonZeroU64> {
    let pair = ((app as u64) << 32) | fragment as u64;
    NonZeroU64::new(pair.wrapping_add(1))
}

/// App and fragment of a hint.
pub const fn unpack(hint: NonZeroU64) -> (u32, u32) {
    let pair = hint.get() - 1;
    ((pair >> 32) as u32, pair as u32)
}
