//! Processes of a drill that may be in a cgroup of their own, and how long each has waited for a
//! CPU. They are forked, not threads, since threads of one process share their cgroup.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::report::Failure;
use crate::sys;

/// What a member does again and again.
pub type Work = fn();

/// Where members run.
#[derive(Clone, Copy)]
pub struct Where<'a> {
    /// Their cgroup's folder; `None`: that of the drill.
    pub cgroup: Option<&'a str>,
    /// Their CPUs; none: all.
    pub cpus: &'a [usize],
}

/// One process, and what the kernel says of it (/proc/PID/schedstat).
struct Member {
    pid: i32,
    /// ns that it has run.
    ran: u64,
    /// ns that it has waited for a CPU, up to when it last got one.
    waited: u64,
    /// Since when it has been seen waiting.
    since: Instant,
}

impl Member {
    fn new(pid: i32) -> Member {
        Member {
            pid,
            ran: 0,
            waited: 0,
            since: Instant::now(),
        }
    }

    /// The longest wait since the last look, or how long it has waited so far. A wait that has
    /// ended is in what the kernel adds up, so all that end between two looks are taken for one:
    /// look often.
    fn look(&mut self) -> Duration {
        let seen = fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).unwrap_or_default();
        let mut fields = seen.split(' ').map_while(|field| field.parse().ok());
        let (Some(ran), Some(waited)) = (fields.next(), fields.next()) else {
            return Duration::ZERO; // it has ended
        };
        if ran != self.ran || !self.is_runnable() {
            self.since = Instant::now();
        }
        let ended = Duration::from_nanos(waited - self.waited);
        (self.ran, self.waited) = (ran, waited);
        ended.max(self.since.elapsed())
    }

    fn is_runnable(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('R'))
    }
}

/// How often members are looked at.
const LOOKS: Duration = Duration::from_millis(50);

/// Those of a drill that have not ended, and the longest that one has waited so far.
#[derive(Default)]
struct Seen {
    members: Vec<Member>,
    longest: Duration,
}

impl Seen {
    fn look(&mut self) {
        for member in &mut self.members {
            self.longest = self.longest.max(member.look());
        }
    }
}

/// Before the real-time tasks of drills.
const PRIORITY: i32 = 99;

/// A thread that looks at members until this is dropped, whatever the drill waits for meanwhile. It
/// is a real-time one: what it looks at must not delay it, or it would take all the waits of a
/// member meanwhile for one.
struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn begin(seen: &Arc<Mutex<Seen>>) -> Watch {
        let (over, seen) = (Arc::new(AtomicBool::new(false)), Arc::clone(seen));
        let is_over = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let _ = sys::be_real_time(PRIORITY); // as root, which drills need
            while !is_over.load(Ordering::Relaxed) {
                locked(&seen).look();
                thread::sleep(LOOKS);
            }
        });
        Watch {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forked processes, killed when this is dropped.
pub struct Members {
    seen: Arc<Mutex<Seen>>,
    _watch: Watch,
}

impl Members {
    /// Forks `count` of them.
    pub fn start(count: usize, place: Where<'_>, work: Work) -> Result<Members, Failure> {
        let seen = Arc::default();
        let members = Members {
            _watch: Watch::begin(&seen),
            seen,
        };
        for _ in 0..count {
            let forked = sys::fork(|| live(place, work));
            let pid = forked.map_err(|error| Failure(format!("a member of a drill: {error}")))?;
            locked(&members.seen).members.push(Member::new(pid));
        }
        Ok(members)
    }

    /// Confines all of them to `cpus`.
    pub fn confine(&self, cpus: &[usize]) {
        for member in &locked(&self.seen).members {
            sys::confine(member.pid, cpus);
        }
    }

    /// The longest that one of them has waited for a CPU so far.
    pub fn longest_wait(&self) -> Duration {
        locked(&self.seen).longest
    }

    /// Kills all of them and waits for their ends, for at most `time`. Returns whether all ended.
    pub fn kill(&self, time: Duration) -> bool {
        for member in &locked(&self.seen).members {
            sys::signal(member.pid.unsigned_abs(), libc::SIGKILL);
        }
        crate::workers::wait_until(time, || {
            let members = &mut locked(&self.seen).members;
            members.retain(|member| !sys::has_ended(member.pid));
            members.is_empty()
        })
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        self.kill(Duration::from_secs(10));
    }
}

/// The life of a member: it ends when it is killed.
fn live(place: Where<'_>, work: Work) {
    if let Some(folder) = place.cgroup
        && fs::write(format!("{folder}/cgroup.procs"), "0").is_err()
    {
        return;
    }
    if !place.cpus.is_empty() {
        sys::confine(0, place.cpus);
    }
    loop {
        work();
    }
}

/// A cgroup with a quota, removed when this is dropped.
pub struct Limited {
    /// Its folder.
    pub folder: String,
}

impl Limited {
    /// Makes it: `quota` us of CPU time in each `period` us.
    pub fn new(name: &str, quota: u32, period: u32) -> Result<Limited, Failure> {
        let root = "/sys/fs/cgroup";
        let limited = Limited {
            folder: format!("{root}/{name}"),
        };
        let made = fs::write(format!("{root}/cgroup.subtree_control"), "+cpu")
            .and_then(|()| fs::create_dir_all(&limited.folder));
        made.map_err(|error| Failure(format!("{}: {error}", limited.folder)))?;
        limited.set(&format!("{quota} {period}"))?;
        Ok(limited)
    }

    /// Sets its quota.
    pub fn set(&self, quota: &str) -> Result<(), Failure> {
        let path = format!("{}/cpu.max", self.folder);
        fs::write(&path, quota).map_err(|error| Failure(format!("{path}: {error}")))
    }

    /// Removes it, once the last task has left.
    pub fn remove(&self, time: Duration) -> bool {
        crate::workers::wait_until(time, || fs::remove_dir(&self.folder).is_ok())
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
