//! Checks what one user has received.

use thiserror::Error;

use super::message::Message;

/// A message that should not have come, or not so early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Surprise {
    /// From another room.
    #[error("a message of room {0} came to another")]
    Room(u32),
    /// From a user whom the room does not have.
    #[error("a message came from user {0}, whom the room does not have")]
    User(u32),
    /// Lost, doubled or overtaken: messages of one user stay in order.
    #[error("message {came} of user {user} came where {expected} was due")]
    Sequence {
        /// Who sent it.
        user: u32,
        /// Which was due; the number of messages for none.
        expected: u32,
        /// Which came.
        came: u32,
    },
}

/// Counts what a user receives: every message of every user of the room, once and in order.
///
/// Invariant: exactly the first `next[u]` messages of user `u` were received.
#[derive(Clone, Debug)]
pub struct Ledger {
    room: u32,
    messages: u32,
    next: Vec<u32>,
    left: u64,
}

impl Ledger {
    /// For one user of `room`, in which each of `users` users sends `messages`.
    pub fn new(room: u32, users: u32, messages: u32) -> Ledger {
        Ledger {
            room,
            messages,
            next: vec![0; users as usize],
            left: u64::from(users) * u64::from(messages),
        }
    }

    /// Messages still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Takes a message that came.
    ///
    /// # Errors
    /// [`Surprise`] for one that was not due; it is not counted.
    pub fn receive(&mut self, message: &Message) -> Result<(), Surprise> {
        if message.room != self.room {
            return Err(Surprise::Room(message.room));
        }
        let (user, came) = (message.user, message.sequence);
        let next = self
            .next
            .get_mut(user as usize)
            .ok_or(Surprise::User(user))?;
        if came != *next || came >= self.messages {
            let expected = *next;
            return Err(Surprise::Sequence {
                user,
                expected,
                came,
            });
        }
        *next += 1;
        self.left -= 1;
        Ok(())
    }
}
