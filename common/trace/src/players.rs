//! What the processes of the player are called in traces (`warmq-player`), so that nobody takes
//! them for others who have the CPUs. Other programs of WarmQ are others: a second `warmq run`
//! disturbs the first.

use crate::Comm;

/// The player itself, which controls a play.
pub const PLAYER: &str = "warmq-player";
/// The process that makes the tasks of a scenario.
pub const CREW: &str = "warmq-crew";
/// The first process of a session of its own.
pub const SESSION: &str = "warmq-session";
/// A thread that sends for sources.
pub const SOURCE: &str = "warmq-source";

/// A thread that takes records, or the program that does where tracefs cannot be had.
pub const RECORDER: &str = "warmq-record";

/// Whether a task of this name is one of the player's.
pub fn is_one(comm: Comm) -> bool {
    [PLAYER, CREW, SESSION, SOURCE, RECORDER].contains(&comm.raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_no_other_program_has_one() {
        for name in [PLAYER, CREW, SESSION, SOURCE, RECORDER] {
            assert!(is_one(Comm::new(name)), "{name}");
        }
        for name in ["warmq", "warmq-vm", ""] {
            assert!(!is_one(Comm::new(name)), "{name}");
        }
    }
}
