//! How a thread binds itself or hints before it touches its data.

use std::sync::atomic::{AtomicU64, Ordering};

use warmq_hint::Scope;
use warmq_units::CpuId;

use crate::error::BenchError;
use crate::thread;

use super::mode::Mode;

/// The app of the hints of `warmq bench fragments`. It differs from that of the chat, so that a
/// room and a fragment of the same number are never the same.
pub(crate) const APP_OF_FRAGMENTS: u32 = 1;

/// The app of the hints of `warmq bench chat`.
pub(crate) const APP_OF_CHAT: u32 = 2;

/// How the threads of one run are placed.
#[derive(Debug)]
pub struct Placing {
    mode: Mode,
    app: u32,
    cpus: Vec<CpuId>,
    heard: AtomicU64,
}

impl Placing {
    /// For threads of `app` on the CPUs that this
    /// process may use.
    ///
    /// # Errors
    /// [`BenchError::System`] where the kernel does not tell the CPUs.
    pub fn new(mode: Mode, app: u32) -> Result<Placing, BenchError> {
        Ok(Placing {
            mode,
            app,
            cpus: thread::allowed_cpus()?,
            heard: AtomicU64::new(0),
        })
    }

    /// The CPU that threads of `fragment` are bound to.
    pub fn cpu_of(&self, fragment: u32) -> CpuId {
        self.cpus[fragment as usize % self.cpus.len()]
    }

    /// Called by a thread that is about to use `fragment`; holds until what is returned is dropped.
    ///
    /// # Errors
    /// [`BenchError::System`] where the thread may not be bound.
    pub fn enter(&self, fragment: u32) -> Result<Placed, BenchError> {
        let scope = match self.mode {
            Mode::Plain => None,
            Mode::Bound => {
                thread::bind(self.cpu_of(fragment))?;
                None
            }
            Mode::Hinted => Some(self.hint(fragment)),
        };
        Ok(Placed { _scope: scope })
    }

    /// Hints that a scheduler heard.
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    fn hint(&self, fragment: u32) -> Scope {
        let scope = Scope::enter(self.app, fragment);
        let heard = u64::from(scope.answer().is_heard());
        self.heard.fetch_add(heard, Ordering::Relaxed);
        scope
    }
}

/// A thread in its place. What binds it stays; what hints ends with this value.
#[derive(Debug)]
pub struct Placed {
    _scope: Option<Scope>,
}
