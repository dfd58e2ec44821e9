//! A fragment for the length of a block.

use core::marker::PhantomData;

use crate::{Answer, calls, enter};

/// Enters a fragment, and goes back to what was before when it is dropped.
///
/// Scopes nest; they must end in the opposite order of their beginning, as those of blocks do. A
/// scope belongs to its thread. In an `async` function it must not live across an `await`: the
/// thread would go on with other work under its hint.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// send(warmq_hint::Scope::enter(1, 2));
/// ```
#[derive(Debug)]
#[must_use = "a scope that is not kept ends at once"]
pub struct Scope {
    before: u64,
    answer: Answer,
    /// The hint is the thread's: neither `Send` nor `Sync`.
    thread: PhantomData<*const ()>,
}

impl Scope {
    /// As [`enter`], until the end of the block.
    pub fn enter(app: u32, fragment: u32) -> Scope {
        let before = calls::warmq_hint_current();
        Scope {
            before,
            answer: enter(app, fragment),
            thread: PhantomData,
        }
    }

    /// What became of the hint.
    pub fn answer(&self) -> Answer {
        self.answer
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        calls::warmq_hint_return_to(self.before);
    }
}
