//! Reads what a running scheduler pinned. The copy is made while the scheduler runs, so numbers in
//! it may not fit each other exactly.

use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::BPF_F_RDONLY;
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle};

use crate::bpf_skel::types::{bss, rodata};
use crate::pins::Pin;
use crate::refuse;
use crate::stop::Stop;

/// How long a restart of the scheduler may take, most of it in the verifier.
const RESTART: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(100);

/// A copy of the state and settings of a scheduler.
pub struct State {
    /// What it was started with.
    pub settings: Box<rodata>,
    /// What it counts and knows.
    pub state: Box<bss>,
}

/// The state cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// No scheduler runs, or another.
    #[error("no scx_warmq is running here{}; start it with: scx_warmq", other(.0))]
    NotRunning(Option<String>),
    /// It runs, but its pins cannot be reached.
    #[error(
        "{path} cannot be opened ({problem}): run this as root, or let other users into the folder: \
         chmod o+x /sys/fs/bpf"
    )]
    Forbidden {
        /// The pin.
        path: String,
        /// What the kernel says.
        problem: String,
    },
    /// It runs, but its pins are gone.
    #[error(
        "scx_warmq is running, but {path} is missing ({problem}); restart scx_warmq to observe it"
    )]
    Missing {
        /// The pin.
        path: String,
        /// What the kernel says.
        problem: String,
    },
    /// Its tables have another size.
    #[error(
        "the running scx_warmq is of another version: {path} has {found} bytes, and this program \
         expects {expected}; use the program that was started"
    )]
    OtherVersion {
        /// The pin.
        path: String,
        /// Its size.
        found: usize,
        /// The size that is understood.
        expected: usize,
    },
}

fn other(name: &Option<String>) -> String {
    match name {
        Some(name) => format!(" (the scheduler that is loaded is {name})"),
        None => String::new(),
    }
}

impl State {
    /// A copy of what runs here.
    pub fn read() -> Result<State, StateError> {
        match refuse::loaded_scheduler("/".as_ref()) {
            Some(name) if refuse::is_ours(&name) => {}
            other => return Err(StateError::NotRunning(other)),
        }
        Ok(State {
            settings: raw::settings(&value(Pin::Settings)?)?,
            state: raw::state(&value(Pin::State)?)?,
        })
    }

    /// As [`State::read`], but waits for a scheduler that restarts. `None` when it is time to stop.
    pub fn read_again(stop: &Stop) -> Result<Option<State>, StateError> {
        let until = Instant::now() + RESTART;
        loop {
            match State::read() {
                Err(StateError::NotRunning(_) | StateError::Missing { .. })
                    if Instant::now() < until => {}
                read => return read.map(Some),
            }
            if stop.within(GLANCE) {
                return Ok(None);
            }
        }
    }
}

/// The one value of an array map.
fn value(pin: Pin) -> Result<Vec<u8>, StateError> {
    let path = pin.path();
    let wrong = |error: libbpf_rs::Error| {
        let (path, problem) = (path.display().to_string(), error.to_string());
        match error.kind() {
            ErrorKind::PermissionDenied => StateError::Forbidden { path, problem },
            _ => StateError::Missing { path, problem },
        }
    };
    let map = MapHandle::from_pinned_path_with_file_flags(&path, BPF_F_RDONLY).map_err(wrong)?;
    let value = map
        .lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(wrong)?;
    Ok(value.unwrap_or_default())
}

/// Copies bytes of the kernel into the types of the skeleton.
pub mod raw {
    #![allow(
        unsafe_code,
        reason = "copies bytes into plain C types, whose size is checked"
    )]

    use super::*;

    /// The settings in a copy of .rodata.
    pub fn settings(bytes: &[u8]) -> Result<Box<rodata>, StateError> {
        check::<rodata>(Pin::Settings, bytes)?;
        // SAFETY: the size is checked. rodata is integers and bools, and the latter were written by
        // Rust or by C as such.
        Ok(unsafe { copy(bytes) })
    }

    /// The state in a copy of .bss.
    pub fn state(bytes: &[u8]) -> Result<Box<bss>, StateError> {
        check::<bss>(Pin::State, bytes)?;
        // SAFETY: the size is checked. bss is integers, pointers that nobody follows, and a bool
        // that C wrote as such.
        Ok(unsafe { copy(bytes) })
    }

    /// Checks the size. A section may be longer than its variables, and may lack the padding after
    /// the last one.
    fn check<T>(pin: Pin, bytes: &[u8]) -> Result<(), StateError> {
        let (found, expected) = (bytes.len(), size_of::<T>());
        if found + align_of::<T>() > expected && found < expected + 64 {
            return Ok(());
        }
        let path = pin.path().display().to_string();
        Err(StateError::OtherVersion {
            path,
            found,
            expected,
        })
    }

    /// A `T` made of these bytes. It is built on the heap, as half a megabyte is much for a stack.
    ///
    /// # Safety
    /// The bytes, followed by zeros if they are too few, must be a valid `T`.
    unsafe fn copy<T: Copy>(bytes: &[u8]) -> Box<T> {
        let mut copy = Box::<T>::new_zeroed();
        let length = bytes.len().min(size_of::<T>());
        // SAFETY: both have room for `length` bytes and do not overlap; the caller ensures that the
        // result is valid.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy.as_mut_ptr().cast::<u8>(), length);
            copy.assume_init()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_read_whatever_its_alignment() {
        let mut bytes = vec![0; 1 + size_of::<rodata>()];
        let at = 1 + std::mem::offset_of!(rodata, nr_cpus);
        bytes[at..at + 4].copy_from_slice(&7_u32.to_ne_bytes());
        let settings = raw::settings(&bytes[1..]).expect("it has the size");
        assert_eq!(settings.nr_cpus, 7);
    }

    #[test]
    fn a_section_of_another_size_is_another_version() {
        for size in [0, size_of::<bss>() - 8, size_of::<bss>() + 64] {
            let refused = raw::state(&vec![0; size]).err();
            let is_size = matches!(refused, Some(StateError::OtherVersion { .. }));
            assert!(is_size, "{size}: {refused:?}");
        }
        for size in [size_of::<bss>() - 7, size_of::<bss>() + 63] {
            assert!(raw::state(&vec![0; size]).is_ok(), "{size}");
        }
    }
}
