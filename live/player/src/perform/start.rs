//! `spawn` and `fork`: a task starts another.

use std::sync::atomic::Ordering;

use warmq_scenario::TaskReference;

use super::{Left, Performer, perform};
use crate::error::PlayError;
use crate::stage::Stage;
use crate::stage::slots::Mark;
use crate::sys::process::{self, Side};
use crate::sys::thread;

/// The stack of a task's thread. Steps need little; a thousand threads should not need much.
pub const STACK: usize = 256 << 10;

/// A thread of a process that has others: it plays the task in the slot that is its argument.
pub extern "C" fn thread_of_slot(index: *mut libc::c_void) -> *mut libc::c_void {
    if let Some(stage) = Stage::current() {
        perform(stage, index.addr() as u32);
    }
    std::ptr::null_mut()
}

impl Performer {
    /// Starts a thread of this process, or a process.
    pub(super) fn start(&mut self, task: &TaskReference, as_thread: bool) -> Result<(), Left> {
        let stage = self.stage;
        let number = stage.bound.task_number(task, &self.loops.indexes)?;
        let child = stage.take_slot(task.task, number)?;
        if stage.bound.is_awaited(task.task) {
            stage.board.awaited.fetch_add(1, Ordering::AcqRel);
        }
        self.tell(Mark::Starts, child, 0);
        let started = match as_thread {
            true => thread::start(STACK, thread_of_slot, child as usize),
            false => process::fork().map(|side| match side {
                Side::Child => {
                    perform(stage, child);
                    process::exit_thread();
                }
                Side::Parent(pid) => {
                    // It is known even if the run ends before it runs.
                    let slot = stage.slots.of(child);
                    slot.pid.store(pid, Ordering::Relaxed);
                    slot.tid.store(pid, Ordering::Relaxed);
                }
            }),
        };
        started.map_err(|error| {
            let key = &stage.scenario().task(task.task).key;
            let who = stage.name_of(self.slot);
            PlayError::Ended(format!("{who} cannot start `{key}`: {error}")).into()
        })
    }
}
