//! What a run is from outside: switched on, going on, measured.

pub(crate) mod boot;
pub(crate) mod by_hand;
pub(crate) mod kernel;
pub(crate) mod measured;
