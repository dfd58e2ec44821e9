//! Waits until there is something to read, or until it is time to stop.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

const STOP: u64 = 1;
const INPUT: u64 = 2;
const RINGS: u64 = 3;

/// What is waited for.
pub struct Waiter {
    all: OwnedFd,
    // Signals write to it.
    _stop: Arc<OwnedFd>,
}

impl Waiter {
    /// Waits for SIGINT, SIGTERM, SIGHUP, the end of standard input, and `rings` from now on.
    ///
    /// # Errors
    /// The system's answer.
    pub fn new<'a>(rings: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<Waiter> {
        let all = epoll::create(CreateFlags::CLOEXEC)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        epoll::add(&all, &stop, EventData::new_u64(STOP), EventFlags::IN)?;
        let stopped = Arc::clone(&stop);
        ctrlc::set_handler(move || {
            let _ = rustix::io::write(&stopped, &1_u64.to_ne_bytes());
        })
        .map_err(io::Error::other)?;
        // A file or /dev/null cannot be waited for, and never closes.
        let input = epoll::add(&all, io::stdin(), EventData::new_u64(INPUT), EventFlags::IN);
        match input {
            Ok(()) | Err(rustix::io::Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        for ring in rings {
            // By the edge: a ring that is woken for is read, and then sleeps until it is half full
            // again, whatever is in it.
            let flags = EventFlags::IN | EventFlags::ET;
            epoll::add(&all, ring, EventData::new_u64(RINGS), flags)?;
        }
        Ok(Waiter { all, _stop: stop })
    }

    /// Waits until a ring is half full, or not at all if there is `more` to read. False if it is
    /// time to stop.
    ///
    /// # Errors
    /// The system's answer.
    pub fn goes_on(&self, more: bool) -> io::Result<bool> {
        let mut events = Vec::with_capacity(16);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(self.all.as_fd(), spare, more.then_some(&now)) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            let has = |what| {
                events
                    .iter()
                    .any(|event: &epoll::Event| event.data.u64() == what)
            };
            if has(STOP) || (has(INPUT) && input_ended()?) {
                return Ok(false);
            }
            if more || has(RINGS) {
                return Ok(true);
            }
        }
    }
}

/// Reads what is there of standard input, which says nothing. True if that was its end.
fn input_ended() -> io::Result<bool> {
    match rustix::io::read(rustix::stdio::stdin(), &mut [0; 4096]) {
        Ok(0) => Ok(true),
        Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
