//! Guests: what is given to them, and how they ended.

pub mod ended;
pub mod given;
pub mod kernel;
