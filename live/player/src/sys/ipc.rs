//! Locks of user space that several processes share (pthreads), and SysV semaphores.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use super::checked;
use super::futex::after;
use super::memory::Shared;

/// A mutex of pthreads.
#[repr(C, align(64))]
pub struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

/// A condition variable of pthreads.
#[repr(C, align(64))]
pub struct Condition(UnsafeCell<libc::pthread_cond_t>);

/// A barrier of pthreads.
#[repr(C, align(64))]
pub struct Barrier(UnsafeCell<libc::pthread_barrier_t>);

// SAFETY: pthreads objects with the attribute PTHREAD_PROCESS_SHARED are made for memory that
// several processes share; zero bytes are what `init` overwrites.
unsafe impl Shared for Mutex {}
// SAFETY: as above.
unsafe impl Shared for Condition {}
// SAFETY: as above.
unsafe impl Shared for Barrier {}
// SAFETY: every access goes through pthreads, which synchronises.
unsafe impl Sync for Mutex {}
// SAFETY: as above.
unsafe impl Sync for Condition {}
// SAFETY: as above.
unsafe impl Sync for Barrier {}

impl Mutex {
    /// Makes it usable; once, before anybody uses it.
    pub fn init(&self) {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before they are used, and nobody uses the mutex
        // yet.
        unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            let shared = libc::PTHREAD_PROCESS_SHARED;
            libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), shared);
            libc::pthread_mutex_init(self.0.get(), attributes.as_ptr());
        }
    }

    /// Locks it if it is free.
    pub fn try_lock(&self) -> bool {
        // SAFETY: it was initialised.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    /// Waits until it is free and locks it.
    pub fn lock(&self) {
        // SAFETY: it was initialised.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
        }
    }

    /// Unlocks it.
    pub fn unlock(&self) {
        // SAFETY: it was initialised. To unlock what another thread has locked is allowed for
        // mutexes of this type on Linux: it becomes free.
        unsafe {
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

impl Condition {
    /// Makes it usable; once, before anybody uses it.
    pub fn init(&self) {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: as in `Mutex::init`.
        unsafe {
            libc::pthread_condattr_init(attributes.as_mut_ptr());
            let shared = libc::PTHREAD_PROCESS_SHARED;
            libc::pthread_condattr_setpshared(attributes.as_mut_ptr(), shared);
            libc::pthread_condattr_setclock(attributes.as_mut_ptr(), libc::CLOCK_MONOTONIC);
            libc::pthread_cond_init(self.0.get(), attributes.as_ptr());
        }
    }

    /// Unlocks `mutex`, waits for a signal, and locks it again.
    pub fn wait(&self, mutex: &Mutex) {
        // SAFETY: both were initialised.
        unsafe {
            libc::pthread_cond_wait(self.0.get(), mutex.0.get());
        }
    }

    /// The same, for `timeout_ns` at most.
    pub fn wait_at_most(&self, mutex: &Mutex, timeout_ns: u64) {
        let end_ns = after(timeout_ns);
        let end = libc::timespec {
            tv_sec: (end_ns / 1_000_000_000) as _,
            tv_nsec: (end_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: both were initialised, the condition with the clock that `end` is of.
        unsafe {
            libc::pthread_cond_timedwait(self.0.get(), mutex.0.get(), &raw const end);
        }
    }

    /// Wakes one that waits, or all.
    pub fn signal(&self, all: bool) {
        // SAFETY: it was initialised.
        unsafe {
            match all {
                true => libc::pthread_cond_broadcast(self.0.get()),
                false => libc::pthread_cond_signal(self.0.get()),
            };
        }
    }
}

impl Barrier {
    /// Makes it usable for `tasks` at a time, at least one.
    pub fn init(&self, tasks: u32) {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: as in `Mutex::init`.
        unsafe {
            libc::pthread_barrierattr_init(attributes.as_mut_ptr());
            let shared = libc::PTHREAD_PROCESS_SHARED;
            libc::pthread_barrierattr_setpshared(attributes.as_mut_ptr(), shared);
            libc::pthread_barrier_init(self.0.get(), attributes.as_ptr(), tasks.max(1));
        }
    }

    /// Waits until as many tasks wait as it is for.
    pub fn wait(&self) {
        // SAFETY: it was initialised.
        unsafe {
            libc::pthread_barrier_wait(self.0.get());
        }
    }
}

/// A semaphore of a SysV set.
#[derive(Clone, Copy, Debug)]
pub struct Semaphore {
    /// The set.
    pub set: i32,
    /// Which of the set.
    pub number: u16,
}

/// A new set of `count` SysV semaphores. It outlives all processes: [`remove_set`] removes it.
///
/// # Errors
/// The system's limits (`/proc/sys/kernel/sem`), or a kernel without SysV semaphores.
pub fn new_set(count: u16) -> io::Result<i32> {
    // SAFETY: no pointers.
    checked(unsafe { libc::semget(libc::IPC_PRIVATE, count.into(), libc::IPC_CREAT | 0o600) })
}

/// Removes a set; whoever waits for one of its semaphores stops waiting.
pub fn remove_set(set: i32) {
    // SAFETY: no pointers.
    unsafe {
        libc::semctl(set, 0, libc::IPC_RMID);
    }
}

/// From here on the SysV objects that this process and its children make are theirs alone, and end
/// with the last of them. False without the right to do so.
pub fn own_namespace() -> bool {
    // SAFETY: no pointers; this process has no SysV objects yet.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) == 0 }
}

impl Semaphore {
    /// Adds `by`: below zero it waits until there is as much.
    ///
    /// # Errors
    /// The set was removed, or the value would be too large.
    pub fn add(self, by: i16) -> io::Result<()> {
        let mut operation = libc::sembuf {
            sem_num: self.number,
            sem_op: by,
            sem_flg: 0,
        };
        loop {
            // SAFETY: one operation, which the kernel reads.
            match checked(unsafe { libc::semop(self.set, &raw mut operation, 1) }) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sets its value, before anybody uses it.
    ///
    /// # Errors
    /// A value above 32767.
    pub fn set_value(self, value: i32) -> io::Result<()> {
        // SAFETY: SETVAL takes an int as its fourth argument.
        let answer = unsafe { libc::semctl(self.set, self.number.into(), libc::SETVAL, value) };
        checked(answer).map(|_| ())
    }
}
