//! Whether the kernel groups tasks by session at all.

use std::path::Path;

use warmq_record::{running_scheduler, sessions_obstacle};
use warmq_scenario::{Bound, Set};

use super::Sessions;
use crate::notes::Notes;

/// Says why autogroups have no effect, if the scenario has some and they have none. `loads` is true
/// if a scheduler of sched_ext is loaded for the run.
pub fn say_if_without(sessions: &Sessions, bound: &Bound, loads: bool, notes: &Notes) {
    if sessions.list().is_empty() {
        return;
    }
    if let Some(why) = sessions_obstacle(Path::new("/")) {
        notes.say("autogroups", &format!("they have no effect: {why}"));
    }
    let mut sets = bound.scenario().sets();
    if loads || running_scheduler() != "kernel" || sets.any(|set| matches!(set, Set::Scheduler(_)))
    {
        let why = "a scheduler of sched_ext sees their tasks in the root cgroup";
        notes.say("autogroups", why);
    }
}
