//! The leader of a session: a child of the crew that starts a session, forks the processes of its
//! tasks, and reaps them.
//!
//! It dies with the crew, and its children with it. As long as it is there, its pid is the id of
//! the session and of its process group, so it stays after its last child has ended, until the
//! whole group is killed.

use std::collections::BTreeMap;
use std::io;

use warmq_trace::players;

use super::{no_process, play, reaped};
use crate::error::PlayError;
use crate::stage::{Process, Stage};
use crate::sys::process::{self, Reaped, Side};

/// Forks a leader for each session that has processes.
///
/// # Errors
/// The limit of processes or of memory.
pub fn start_all(stage: &'static Stage) -> io::Result<()> {
    let mut sessions: BTreeMap<usize, Vec<&Process>> = BTreeMap::new();
    for process in &stage.processes {
        if let Some(place) = process.session {
            sessions.entry(place).or_default().push(process);
        }
    }
    let mut sessions = sessions.iter();
    sessions.try_for_each(|(place, members)| start(stage, *place, members))
}

fn start(stage: &'static Stage, place: usize, members: &[&Process]) -> io::Result<()> {
    let crew = process::pid();
    match process::fork()? {
        Side::Parent(pid) => {
            // Whoever cleans up knows it even if it has not run yet.
            stage.sessions.lead(place, pid);
            Ok(())
        }
        Side::Child => {
            process::die_with(crew);
            process::set_name(players::SESSION);
            if let Err(error) = process::new_session() {
                let fix = "report it: this cannot be";
                let error = PlayError::refused("a session cannot be started", &error, fix);
                stage.board.fail(&error);
                process::exit_now(1);
            }
            if let Err(error) = lead(stage, place, members) {
                stage.board.fail(&error);
            }
            attend(stage)
        }
    }
}

/// Makes the session as the scenario says, and forks its processes.
fn lead(stage: &'static Stage, place: usize, members: &[&Process]) -> Result<(), PlayError> {
    // The crew is where tasks without a group are: a cgroup, if the scenario has cgroups, too.
    stage.groups.leave().map_err(|error| {
        let fix = "play it as root, or without cgroups";
        PlayError::refused("a session cannot leave the cgroup of the run", &error, fix)
    })?;
    stage.sessions.lead(place, process::pid());
    let nice = stage.sessions.list()[place].nice;
    // That of a new session is 0.
    if nice != 0 {
        stage.sessions.set_nice(place, nice)?;
    }
    for member in members {
        fork(stage, member).map_err(|error| no_process(&error))?;
    }
    Ok(())
}

/// A process of the session; it is in the process group of its leader.
fn fork(stage: &'static Stage, member: &Process) -> io::Result<()> {
    let leader = process::pid();
    match process::fork()? {
        Side::Parent(pid) => {
            stage.seat_in(&member.slots, pid);
            Ok(())
        }
        Side::Child => {
            process::unblock_signals();
            process::die_with(leader);
            play(stage, &member.slots)
        }
    }
}

/// Reaps who dies, for good.
fn attend(stage: &Stage) -> ! {
    loop {
        match process::wait() {
            Reaped::One(pid, end) => reaped(stage, pid, end),
            Reaped::NotYet => {}
            // There will be no more: only children fork here.
            Reaped::NoChildren => process::sleep_for_good(),
        }
    }
}
