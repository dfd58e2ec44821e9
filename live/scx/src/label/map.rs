//! The pinned map of labels: one u64 per thread. The key is a descriptor of the thread.

use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, OwnedFd};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::pins::Pin;

/// PIDFD_THREAD of linux/pidfd.h: the thread itself, not its process.
const OF_THE_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(0o200);

/// The map cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// There is none.
    #[error("{0} does not exist: start scx_warmq first, which creates it")]
    Missing(String),
    /// The user may not open it.
    #[error("{0} cannot be opened ({1}): only root may set labels, so run this as root")]
    Forbidden(String, String),
}

/// The labels.
pub struct Labels(MapHandle);

/// What became of a label.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The thread had none, or another.
    Changed,
    /// The thread already had it.
    Same,
    /// The thread has exited.
    Gone,
    /// The kernel refused it.
    Refused(String),
}

impl Labels {
    /// Opens the pinned map.
    pub fn open() -> Result<Labels, MapError> {
        let path = Pin::Labels.path();
        let map = MapHandle::from_pinned_path(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => MapError::Missing(path.display().to_string()),
            _ => MapError::Forbidden(path.display().to_string(), error.to_string()),
        })?;
        Ok(Labels(map))
    }

    /// Labels a thread.
    pub fn set(&self, tid: i32, hint: NonZeroU64) -> Answer {
        if self.get(tid) == Some(hint) {
            return Answer::Same;
        }
        let Some(thread) = descriptor(tid) else {
            return Answer::Gone;
        };
        match self
            .0
            .update(&key(&thread), &hint.get().to_ne_bytes(), MapFlags::ANY)
        {
            Ok(()) => Answer::Changed,
            Err(_) if is_gone(tid) => Answer::Gone,
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// A thread's label.
    pub fn get(&self, tid: i32) -> Option<NonZeroU64> {
        let thread = descriptor(tid)?;
        let value = self.0.lookup(&key(&thread), MapFlags::ANY).ok()??;
        NonZeroU64::new(u64::from_ne_bytes(value.try_into().ok()?))
    }

    /// Removes a thread's label; false if it had none.
    pub fn remove(&self, tid: i32) -> bool {
        descriptor(tid).is_some_and(|thread| self.0.delete(&key(&thread)).is_ok())
    }
}

fn descriptor(tid: i32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(tid)?, OF_THE_THREAD).ok()
}

fn is_gone(tid: i32) -> bool {
    descriptor(tid).is_none()
}

fn key(thread: &OwnedFd) -> [u8; 4] {
    thread.as_raw_fd().to_ne_bytes()
}
