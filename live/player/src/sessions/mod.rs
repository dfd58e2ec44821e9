//! The sessions of a run: the autogroups of its scenario.
//!
//! The kernel makes an autogroup for each process that calls `setsid()`, and all that this process
//! forks is in it. So each autogroup of a scenario has a *leader*, a process of the crew that
//! starts a session and forks the processes of the autogroup's tasks (`crew/leader.rs`). The leader
//! lives until the run is over: its pid is the id of the session and of its process group, by which
//! everything in it is killed, and `/proc/PID/autogroup` takes the nice value of the group.

mod effect;

use std::fs;
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

use warmq_scenario::Bound;
use warmq_scenario::program::{Cpus, Group, GroupSpec};

pub use effect::say_if_without;

use crate::error::PlayError;
use crate::specs::group_number;
use crate::sys::clock::{now_ns, sleep_ns};
use crate::sys::memory::shared;

/// An autogroup of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Its number among all groups of the scenario, from 1.
    pub number: u32,
    /// What people call it: `desk`, or `desk 1`.
    pub name: String,
    /// The nice value of the whole group.
    pub nice: i8,
}

/// The autogroups of a run.
#[derive(Debug, Default)]
pub struct Sessions {
    /// By number.
    list: Vec<Session>,
    /// The pid of the leader of each; 0 before there is one.
    leaders: &'static [AtomicI32],
}

/// How long the kernel may refuse a nice value because it has just taken another one: it takes one
/// in 100 ms, in the whole system, from those without CAP_SYS_ADMIN.
const PATIENCE_NS: u64 = 10_000_000_000;
/// How long to wait between two tries.
const PAUSE_NS: u64 = 5_000_000;

impl Sessions {
    /// Those of a scenario.
    ///
    /// # Errors
    /// A number that cannot be computed; no memory.
    pub fn plan(bound: &Bound, cpus: &Cpus) -> Result<Sessions, PlayError> {
        let session = |(place, group): (usize, Group)| {
            let GroupSpec::Autogroup { nice } = group.spec else {
                return None;
            };
            let name = &bound.scenario().object(group.table).name;
            Some(Session {
                number: group_number(place),
                name: match bound.objects(group.table) {
                    1 => format!("`{name}`"),
                    _ => format!("`{name}` {}", group.number),
                },
                nice,
            })
        };
        let groups = bound.groups(cpus)?.into_iter().enumerate();
        let list: Vec<Session> = groups.filter_map(session).collect();
        let leaders = shared(list.len()).map_err(|error| {
            let fix = "play fewer groups";
            PlayError::refused("memory for the sessions cannot be mapped", &error, fix)
        })?;
        Ok(Sessions { list, leaders })
    }

    /// All of them.
    pub fn list(&self) -> &[Session] {
        &self.list
    }

    /// The place in [`Sessions::list`] of group `number`; none if it is a cgroup.
    pub fn place_of(&self, number: u32) -> Option<usize> {
        let found = self
            .list
            .binary_search_by_key(&number, |session| session.number);
        found.ok()
    }

    /// Process `pid` leads the session at `place`.
    pub fn lead(&self, place: usize, pid: i32) {
        self.leaders[place].store(pid, Ordering::Release);
    }

    /// The leaders that there are, each with its session; their pids are also process groups.
    pub fn leaders(&self) -> impl Iterator<Item = (&Session, i32)> {
        let pids = self.leaders.iter().map(|pid| pid.load(Ordering::Acquire));
        self.list.iter().zip(pids).filter(|(_, pid)| *pid != 0)
    }

    /// Sets the nice value of the session at `place`, if it has processes. True if the kernel made
    /// it wait.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set_nice(&self, place: usize, nice: i8) -> Result<bool, PlayError> {
        match self.leaders[place].load(Ordering::Acquire) {
            0 => Ok(false),
            leader => write_nice(leader, nice).map_err(|error| {
                let what = format!(
                    "the autogroup {} does not get the nice value {nice}",
                    self.list[place].name
                );
                let fix = match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        "without CAP_SYS_ADMIN the kernel takes one in 100 ms: play it as root, or \
                         give fewer groups a nice value"
                    }
                    _ => "values below 0 need CAP_SYS_NICE: play it as root",
                };
                PlayError::refused(what, &error, fix)
            }),
        }
    }
}

/// Sets the nice value of the autogroup of process `pid`; true if the kernel made it wait.
fn write_nice(pid: i32, nice: i8) -> io::Result<bool> {
    let (file, text) = (format!("/proc/{pid}/autogroup"), nice.to_string());
    let deadline = now_ns() + PATIENCE_NS;
    let mut waited = false;
    loop {
        match fs::write(&file, &text) {
            Ok(()) => return Ok(waited),
            // A kernel without autogroups, which is said elsewhere; or the session has ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(waited),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && now_ns() < deadline => {
                waited = true;
                sleep_ns(PAUSE_NS);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bound;

    #[test]
    fn autogroups_are_numbered_among_all_groups() {
        let bound = bound(
            "[group.first]\ncount = 2\n[group.desk]\nfor = { n = 2 }\nautogroup = true\nnice = \"n - 1\"\n\
             [group.then]\n[group.last]\nautogroup = true\n[task.t]\nbody = [{ run = \"1ms\" }]",
        );
        let sessions = Sessions::plan(&bound, &Cpus::default()).expect("numbers");
        let found = sessions.list().iter();
        let found: Vec<(u32, &str, i8)> = found
            .map(|session| (session.number, session.name.as_str(), session.nice))
            .collect();
        let wanted = [(3, "`desk` 0", -1), (4, "`desk` 1", 0), (6, "`last`", 0)];
        assert_eq!(found, wanted);
        assert_eq!(
            (sessions.place_of(4), sessions.place_of(5)),
            (Some(1), None)
        );
        assert_eq!(sessions.leaders().count(), 0);
        sessions.lead(1, 77);
        let leaders: Vec<i32> = sessions.leaders().map(|(_, pid)| pid).collect();
        assert_eq!(leaders, [77]);
    }
}
