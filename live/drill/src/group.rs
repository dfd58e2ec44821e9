//! A group as the scheduler's statistics show it.

use serde::Deserialize;

/// The tasks of one fragment, as `scx_warmq --stats-json` has them.
#[derive(Clone, Debug, Deserialize)]
pub struct Group {
    /// Its number in the scheduler's table.
    pub slot: u64,
    /// The fragment that its tasks named; an inferred group has none.
    pub fragment: Option<u64>,
    /// Why its tasks are together.
    pub origin: String,
    /// The place where it lives.
    pub home: u64,
    /// Tasks in it.
    pub members: u64,
    /// CPU time of its tasks at home.
    pub ran_home_ns: u64,
    /// CPU time of its tasks elsewhere.
    pub ran_away_ns: u64,
    /// How many batches of its tasks there were.
    pub batches: u64,
    /// How many times its tasks ran in those.
    pub runs: u64,
    /// How often it got another home.
    pub moves: u64,
    /// How often one of its tasks was taken by another place.
    pub splits: u64,
}
