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
//! Nothing to set up and no privilege. Without a scheduler a call is a comparison or two, except
//! for one call in 64, which asks the kernel again. Everything here may be called from any thread
//! and from signal handlers; `errno` is kept.
//!
//! This crate is the header `warmq.h`, compiled. So there is one implementation, and in a program
//! of several languages one state per thread. The header and the README say how it works and what
//! it costs.

#![no_std]

pub mod abi;
mod calls;
mod scope;

pub use scope::Scope;

use core::num::NonZeroU64;

/// What became of a hint. A program need not look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A scheduler knows of it.
    Heard,
    /// No scheduler listens, as far as this thread knows. It asks again at every 64th call, and in
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

    /// Whether a scheduler knows of the hint.
    pub fn is_heard(self) -> bool {
        self == Answer::Heard
    }
}

/// From here on this thread uses the data of `fragment` of `app`, until it enters another or
/// leaves.
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

/// The app and fragment that this thread named last, heard or not.
pub fn current() -> Option<(u32, u32)> {
    NonZeroU64::new(calls::warmq_hint_current()).map(unpack)
}

/// Whether a scheduler listens. Asks the kernel at once and gives it this thread's hint. So a
/// program that was started before the scheduler need not wait for its 64th call.
pub fn listening() -> bool {
    calls::warmq_hint_listening() != 0
}

/// The hint for `fragment` of `app`, as the scheduler gets it and as a label holds it. `None` for
/// the pair `(u32::MAX, u32::MAX)`, whose number would be that of "no hint".
pub fn pack(app: u32, fragment: u32) -> Option<NonZeroU64> {
    NonZeroU64::new(calls::warmq_hint_pack(app, fragment))
}

/// App and fragment of a hint.
pub fn unpack(hint: NonZeroU64) -> (u32, u32) {
    let hint = hint.get();
    (
        calls::warmq_hint_app(hint),
        calls::warmq_hint_fragment(hint),
    )
}
