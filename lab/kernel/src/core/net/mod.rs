//! Sockets and cards: what is in them, without when it happens.

pub(crate) mod card;
pub(crate) mod socket;
