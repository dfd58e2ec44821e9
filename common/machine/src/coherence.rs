//! Which caches hold a line, and what it costs to reach them.

mod links;
mod presence;

pub(crate) use links::{Links, Reach};
pub(crate) use presence::{Groups, Held, Presence};
