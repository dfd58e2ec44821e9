//! A group as the scheduler's statistics show it.

use serde_json::Value;

/// The tasks of one fragment.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its number in the scheduler's table.
    pub slot: u64,
    /// The fragment that its tasks named; an inferred group has none.
    pub fragment: u64,
    /// Why its tasks are together.
    pub origin: String,
    /// The place where it lives.
    pub home: u64,
    /// Tasks in it.
    pub members: u64,
    /// CPU time of its tasks at home, ns.
    pub ran_home: u64,
    /// CPU time of its tasks elsewhere, ns.
    pub ran_away: u64,
    /// How many batches of its tasks there were.
    pub batches: u64,
    /// How many times its tasks ran in those.
    pub runs: u64,
    /// How often it got another home.
    pub moves: u64,
    /// How often one of its tasks was taken by another place.
    pub splits: u64,
}

impl Group {
    /// From the JSON of `scx_warmq --stats-json`.
    pub fn read(value: &Value) -> Group {
        let number = |name: &str| {
            value[name]
                .as_u64()
                .unwrap_or_else(|| panic!("no {name} in {value}"))
        };
        Group {
            slot: number("slot"),
            fragment: value["fragment"].as_u64().unwrap_or(u64::MAX),
            origin: value["origin"].as_str().unwrap_or_default().to_owned(),
            home: number("home"),
            members: number("members"),
            ran_home: number("ran_home_ns"),
            ran_away: number("ran_away_ns"),
            batches: number("batches"),
            runs: number("runs"),
            moves: number("moves"),
            splits: number("splits"),
        }
    }
}
