//! scx_warmq's own source, compiled by the clang that compiles it: each callback is called as the
//! kernel calls it, when a test says, and is interrupted where that says so.

mod alone;
mod crowd;
mod groups;
mod moments;
mod mutants;
mod nodes;
mod object;
mod play;
mod quotas;
