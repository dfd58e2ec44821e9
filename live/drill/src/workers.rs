//! Threads that behave in one way until they are stopped, and how much CPU time each of them got.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::sys;

/// The part of its crew that a thread can see.
pub struct Shift {
    stop: Arc<AtomicBool>,
    had: Arc<AtomicU64>,
}

impl Shift {
    /// Whether to go on. Call it often: it also records the CPU time so far.
    pub fn goes_on(&self) -> bool {
        self.had
            .store(sys::cpu_time().as_nanos() as u64, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Holds threads back until all are started. Otherwise the thread that starts thousands would not
/// get to run.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Waits until it is opened.
    pub fn pass(&self) {
        let (open, opened) = &*self.0;
        let guard = open.lock().expect("nobody panics with it");
        drop(opened.wait_while(guard, |open| !*open));
    }

    /// Lets all threads through.
    pub fn open(&self) {
        let (open, opened) = &*self.0;
        *open.lock().expect("nobody panics with it") = true;
        opened.notify_all();
    }
}

/// Threads of a drill, stopped when this is dropped.
#[derive(Default)]
pub struct Crew {
    stop: Arc<AtomicBool>,
    members: Vec<(JoinHandle<()>, Arc<AtomicU64>)>,
}

impl Crew {
    /// One more thread, which does `work`.
    pub fn add(&mut self, name: &str, work: impl FnOnce(&Shift) + Send + 'static) {
        let had = Arc::new(AtomicU64::new(0));
        let shift = Shift {
            stop: Arc::clone(&self.stop),
            had: Arc::clone(&had),
        };
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .stack_size(64 << 10);
        let handle = thread.spawn(move || work(&shift)).expect("a thread");
        self.members.push((handle, had));
    }

    /// CPU time that each member has had since it began.
    pub fn had(&self) -> Vec<Duration> {
        self.members
            .iter()
            .map(|(_, had)| Duration::from_nanos(had.load(Ordering::Relaxed)))
            .collect()
    }

    /// CPU time that each member gets during `time`.
    pub fn during(&self, time: Duration) -> Vec<Duration> {
        let before = self.had();
        thread::sleep(time);
        self.had()
            .iter()
            .zip(before)
            .map(|(after, before)| *after - before)
            .collect()
    }

    /// Stops all threads and waits for them.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (handle, _) in self.members.drain(..) {
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
