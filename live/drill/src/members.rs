//! Processes of a drill that may be in a cgroup of their own, and how long each has waited for a CPU. They are
//! forked, not threads, since threads of one process share their cgroup.

use std::fs;
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
    longest: Duration,
}

impl Member {
    /// The longest wait until now. A wait that has ended is in what the kernel adds up; ask ten times a second, and
    /// waits of a few tenths of a second are not taken for one.
    fn look(&mut self) -> Duration {
        let seen = fs::read_to_string(format!("/proc/{}/schedstat", self.pid)).unwrap_or_default();
        let mut fields = seen.split(' ').map_while(|field| field.parse().ok());
        let (Some(ran), Some(waited)) = (fields.next(), fields.next()) else {
            return self.longest; // it has ended
        };
        if ran != self.ran || !self.is_runnable() {
            self.since = Instant::now();
        }
        let ended = Duration::from_nanos(waited - self.waited);
        self.longest = self.longest.max(ended).max(self.since.elapsed());
        (self.ran, self.waited) = (ran, waited);
        self.longest
    }

    fn is_runnable(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('R'))
    }
}

/// Forked processes, killed when this is dropped.
pub struct Members(Vec<Member>);

impl Members {
    /// Forks `count` of them.
    pub fn start(count: usize, place: Where<'_>, work: Work) -> Result<Members, Failure> {
        let mut members = Members(Vec::new());
        for _ in 0..count {
            let forked = sys::fork(|| live(place, work));
            members.0.push(Member {
                pid: forked.map_err(|error| Failure(format!("a member of a drill: {error}")))?,
                ran: 0,
                waited: 0,
                since: Instant::now(),
                longest: Duration::ZERO,
            });
        }
        Ok(members)
    }

    /// Confines all of them to `cpus`.
    pub fn confine(&self, cpus: &[usize]) {
        for member in &self.0 {
            sys::confine(member.pid, cpus);
        }
    }

    /// The longest that one of them has waited for a CPU so far.
    pub fn longest_wait(&mut self) -> Duration {
        let waits = self.0.iter_mut().map(Member::look);
        waits.max().unwrap_or_default()
    }

    /// Kills all of them and waits for their ends, for at most `time`. Returns whether all ended.
    pub fn kill(&mut self, time: Duration) -> bool {
        for member in &self.0 {
            sys::signal(member.pid.unsigned_abs(), libc::SIGKILL);
        }
        let members = &mut self.0;
        crate::workers::wait_until(time, || {
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
        sys::run_on(place.cpus);
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

    /// Microseconds of CPU time that its tasks have had.
    pub fn used(&self) -> u64 {
        let seen = fs::read_to_string(format!("{}/cpu.stat", self.folder)).unwrap_or_default();
        let usage = seen
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        usage.and_then(|usage| usage.parse().ok()).unwrap_or(0)
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
