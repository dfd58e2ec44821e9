//! Threads that behave in one way until they are stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::sys;

/// The part of its crew that a thread can see.
pub struct Shift {
    stop: Arc<AtomicBool>,
}

impl Shift {
    /// Whether to go on. Call it often.
    pub fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Threads of a drill, stopped when this is dropped.
#[derive(Default)]
pub struct Crew {
    stop: Arc<AtomicBool>,
    members: Vec<JoinHandle<()>>,
}

impl Crew {
    /// One more thread, which does `work`.
    pub fn add(&mut self, name: &str, work: impl FnOnce(&Shift) + Send + 'static) {
        let shift = Shift {
            stop: Arc::clone(&self.stop),
        };
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(64 << 10);
        let handle = thread.spawn(move || work(&shift)).expect("a thread");
        self.members.push(handle);
    }

    /// Stops all threads and waits for them.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for handle in self.members.drain(..) {
            let _ = handle.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Works for `time` of CPU time.
pub fn work(time: Duration) {
    let until = sys::cpu_time() + time;
    while sys::cpu_time() < until {
        std::hint::spin_loop();
    }
}

/// Works all the time.
pub fn hog(shift: &Shift) {
    while shift.goes_on() {
        work(Duration::from_micros(200));
    }
}

/// Works for `busy`, sleeps for `idle`, and so on.
pub fn sleeper(shift: &Shift, busy: Duration, idle: Duration) {
    while shift.goes_on() {
        work(busy);
        thread::sleep(idle);
    }
}

/// Waits until `done` returns true, for at most `time`. Returns whether it did.
pub fn wait_until(time: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if done() {
            return true;
        }
        thread::sleep(Duration::from_millis(50));
    }
    done()
}

/// The longest time that something took which a thread does again and again.
#[derive(Clone)]
pub struct Longest {
    since: Instant,
    /// ns after `since`, when it last began.
    begun: Arc<AtomicU64>,
    /// ns
    took: Arc<AtomicU64>,
}

impl Longest {
    /// A thread of `crew` that does `work`.
    pub fn of(crew: &mut Crew, name: &str, work: fn()) -> Longest {
        let longest = Longest {
            since: Instant::now(),
            begun: Arc::default(),
            took: Arc::default(),
        };
        let noted = longest.clone();
        crew.add(name, move |shift| {
            while shift.goes_on() {
                work();
                noted.took.fetch_max(noted.present(), Ordering::Relaxed);
                noted.begun.store(noted.now(), Ordering::Relaxed);
            }
        });
        longest
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_nanos() as u64
    }

    /// How long the present one has taken, in ns.
    fn present(&self) -> u64 {
        self.now()
            .saturating_sub(self.begun.load(Ordering::Relaxed))
    }

    /// The longest so far.
    pub fn so_far(&self) -> Duration {
        let took = self.took.load(Ordering::Relaxed);
        Duration::from_nanos(took.max(self.present()))
    }
}
