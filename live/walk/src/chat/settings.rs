//! What to measure: plain data, a reason on every field, checked before anything runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compare::{
    Mode, check_list, check_modes, check_number, check_repetitions, check_time_limit,
};
use crate::error::BenchError;

use super::message::LEAST_SIZE;

/// The most users in all rooms: each has a connection, and two threads in each process.
const MOST_USERS: u64 = 10_000;

/// The largest message: that of the laboratory's chat.
const LARGEST: u64 = 64 << 10;

/// The most messages that are delivered in a run; at a million a second that takes days.
const MOST_DELIVERED: u64 = 1 << 40;

/// A measurement of the chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatSettings {
    /// Rooms; each number is measured on its own. The paper has 10, 20 and 30.
    pub rooms: Vec<u32>,
    /// Users in a room, 1 to 1000. The paper has 20.
    pub users: u32,
    /// Messages that each user sends, at least 1. The paper has 500, 1000 and 1500.
    pub messages: u32,
    /// Bytes of a message, 20 to 65536. The paper has 100.
    pub size: u32,
    /// How threads are placed; each mode at most once.
    pub modes: Vec<Mode>,
    /// Rounds, 1 to 1000, in each of which every mode is run; medians are reported.
    pub repetitions: u32,
    /// Time after which the measurement ends with the rounds that are complete.
    pub time_limit: Duration,
}

impl Default for ChatSettings {
    fn default() -> ChatSettings {
        ChatSettings {
            rooms: vec![5, 10],
            users: 20,
            messages: 60,
            size: 100,
            modes: Mode::ALL.to_vec(),
            repetitions: 6,
            time_limit: Duration::from_secs(300),
        }
    }
}

/// One number of rooms, and all that both processes must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    pub rooms: u32,
    pub users: u32,
    pub messages: u32,
    pub size: u32,
}

impl Case {
    /// Users in all rooms.
    pub fn all_users(&self) -> u32 {
        self.rooms * self.users
    }

    /// Messages that all users send.
    pub fn sent(&self) -> u64 {
        u64::from(self.all_users()) * u64::from(self.messages)
    }

    /// Messages that all users receive: each goes to every user of its room.
    pub fn delivered(&self) -> u64 {
        self.sent() * u64::from(self.users)
    }
}

impl ChatSettings {
    /// Refuses settings that no measurement can be made of.
    ///
    /// # Errors
    /// [`BenchError::Setting`] with the field, its value, and what to write instead.
    pub fn check(&self) -> Result<(), BenchError> {
        check_list("rooms", &self.rooms, 1..=MOST_USERS, "rooms")?;
        check_number("users", self.users.into(), 1..=1000, "users in a room")?;
        check_number("messages", self.messages.into(), 1..=1 << 31, "messages")?;
        let least = LEAST_SIZE as u64;
        check_number(
            "size",
            self.size.into(),
            least..=LARGEST,
            "bytes in a message",
        )?;
        check_modes(&self.modes)?;
        check_repetitions(self.repetitions)?;
        check_time_limit(self.time_limit)?;
        self.cases().iter().try_for_each(check_case)
    }

    /// Runs in all.
    pub fn runs(&self) -> usize {
        self.rooms.len() * self.modes.len() * self.repetitions as usize
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let case = |rooms: &u32| Case {
            rooms: *rooms,
            users: self.users,
            messages: self.messages,
            size: self.size,
        };
        self.rooms.iter().map(case).collect()
    }
}

fn check_case(case: &Case) -> Result<(), BenchError> {
    let users = u64::from(case.rooms) * u64::from(case.users);
    if users > MOST_USERS {
        let problem = format!("{users} users in all, each with four threads, are too many");
        let fix = format!(
            "write at most {}, or fewer --users",
            MOST_USERS / u64::from(case.users)
        );
        return Err(BenchError::setting("rooms", case.rooms, problem, fix));
    }
    if case.delivered() > MOST_DELIVERED {
        let problem = format!("{} messages would have to be delivered", case.delivered());
        let fix = "write fewer, or fewer --users";
        return Err(BenchError::setting("messages", case.messages, problem, fix));
    }
    Ok(())
}
