//! What all processes of a run tell each other: how far it is, and how it ended.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use crate::error::PlayError;
use crate::sys::futex;
use crate::sys::memory::Shared;

/// The longest message about an early end, in bytes.
const LONGEST: usize = 4096;

/// Values of [`Board::verdict`]; others are exit codes of [`PlayError`].
const UNDECIDED: u32 = 0;
/// Someone is writing the message.
const WRITING: u32 = 100;
/// All tasks have ended.
const DONE: u32 = 101;

/// How a run ended before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All tasks have ended, the last of them then.
    Done {
        /// When, on the monotonic clock.
        at_ns: u64,
    },
    /// Something went wrong.
    Failed(PlayError),
}

/// The board. Zero bytes are a run that has not begun.
#[repr(C, align(128))]
pub struct Board {
    /// Counts news, for those who wait for some: it is a futex.
    news: AtomicU32,
    /// Tasks that wait for the start.
    ready: AtomicU32,
    /// Tasks that the run waits for and that have not ended yet.
    pub awaited: AtomicU32,
    /// Slots that were given to tasks.
    pub used: AtomicU32,
    /// When the run began, on the monotonic clock.
    pub start_ns: AtomicU64,
    /// The process group of all tasks; 0 before there is one.
    pub group: AtomicI32,
    /// A signal that asks the run to end; 0 for none.
    pub signal: AtomicI32,
    /// Opened at the start, for the sender of sources: a futex.
    sources: AtomicU32,
    /// Datagrams that sources sent, and those sent late.
    pub sent: AtomicU64,
    /// See [`Board::sent`].
    pub late: AtomicU64,
    verdict: AtomicU32,
    length: AtomicU32,
    done_ns: AtomicU64,
    text: UnsafeCell<[u8; LONGEST]>,
}

// SAFETY: zero bytes are a board, it holds no pointers, and `text` is written once, by the process
// that moved the verdict from UNDECIDED to WRITING, and read only after it has moved on.
unsafe impl Shared for Board {}
// SAFETY: see above.
unsafe impl Sync for Board {}

impl Board {
    /// One more task waits for the start; `all` of them make news.
    pub fn arrive(&self, all: u32) {
        if self.ready.fetch_add(1, Ordering::AcqRel) + 1 == all {
            self.tell();
        }
    }

    /// Whether `all` tasks wait for the start.
    pub fn are_ready(&self, all: u32) -> bool {
        self.ready.load(Ordering::Acquire) >= all
    }

    /// Waits for the start.
    pub fn wait_for_sources(&self) {
        while self.sources.load(Ordering::Acquire) == 0 {
            futex::wait(&self.sources, 0, None);
        }
    }

    /// Lets sources send.
    pub fn start_sources(&self) {
        futex::set(&self.sources, 1);
    }

    /// There is news. May be called in a signal handler.
    pub fn tell(&self) {
        self.news.fetch_add(1, Ordering::Release);
        futex::wake(&self.news, 1);
    }

    /// How much news there was.
    pub fn news(&self) -> u32 {
        self.news.load(Ordering::Acquire)
    }

    /// Waits for more news than `seen`, at most until `deadline_ns`.
    pub fn wait(&self, seen: u32, deadline_ns: u64) {
        futex::wait(&self.news, seen, Some(deadline_ns));
    }

    /// A task that the run waits for has ended; the last one ends the run.
    pub fn leave(&self, now_ns: u64) {
        if self.awaited.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done_ns.store(now_ns, Ordering::Relaxed);
            if self.decide(UNDECIDED, DONE) {
                self.tell();
            }
        }
    }

    /// Ends the run because of `error`, unless it has ended already.
    pub fn fail(&self, error: &PlayError) {
        if !self.decide(UNDECIDED, WRITING) {
            return;
        }
        let text = error.to_string();
        let mut length = text.len().min(LONGEST);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        // SAFETY: this process alone has moved the verdict to WRITING.
        let room = unsafe { &mut *self.text.get() };
        room[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length.store(length as u32, Ordering::Relaxed);
        self.decide(WRITING, error.exit_code().into());
        self.tell();
    }

    fn decide(&self, from: u32, to: u32) -> bool {
        let order = Ordering::AcqRel;
        let moved = self
            .verdict
            .compare_exchange(from, to, order, Ordering::Acquire);
        moved.is_ok()
    }

    /// How the run ended, if it did.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.verdict.load(Ordering::Acquire) {
            UNDECIDED | WRITING => None,
            DONE => Some(Verdict::Done {
                at_ns: self.done_ns.load(Ordering::Relaxed),
            }),
            code => Some(Verdict::Failed(PlayError::from_parts(code, self.message()))),
        }
    }

    fn message(&self) -> String {
        let length = self.length.load(Ordering::Relaxed) as usize;
        // SAFETY: the verdict is final, so that nobody writes any more.
        let text = unsafe { &*self.text.get() };
        String::from_utf8_lossy(&text[..length.min(LONGEST)]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::memory::shared;

    fn board() -> &'static Board {
        &shared::<Board>(1).expect("memory")[0]
    }

    #[test]
    fn the_first_failure_is_the_verdict() {
        let board = board();
        assert_eq!(board.verdict(), None);
        board.fail(&PlayError::Ended("first".to_owned()));
        board.fail(&PlayError::Input("second".to_owned()));
        let failed = Verdict::Failed(PlayError::Ended("first".to_owned()));
        assert_eq!(board.verdict(), Some(failed));
    }

    #[test]
    fn the_last_task_to_leave_ends_the_run_unless_it_failed() {
        let done = board();
        done.awaited.store(2, Ordering::Relaxed);
        done.leave(5);
        assert_eq!(done.verdict(), None);
        done.leave(7);
        assert_eq!(done.verdict(), Some(Verdict::Done { at_ns: 7 }));
        done.fail(&PlayError::Ended("late".to_owned()));
        assert_eq!(done.verdict(), Some(Verdict::Done { at_ns: 7 }));
    }

    #[test]
    fn a_message_that_is_too_long_is_cut_between_characters() {
        let board = board();
        board.fail(&PlayError::Ended("ä".repeat(LONGEST)));
        let Some(Verdict::Failed(PlayError::Ended(text))) = board.verdict() else {
            panic!("no message");
        };
        assert_eq!(text, "ä".repeat(LONGEST / 2));
    }
}
