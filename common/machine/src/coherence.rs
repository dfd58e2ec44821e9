//! Who holds a line, and what it costs to reach the holder.

mod links;
mod presence;

pub(crate) use links::{Links, Reach};
pub(crate) use presence::{Groups, Held, Presence};
