//! What the real programs share: running modes in turn, what a run used, and the verdict on a
//! difference.
//!
//! Key decision: all modes are run within each round, in an order that rotates from round to round,
//! and modes are compared within the round. So a drift of the machine affects all modes alike.

mod against;
mod checks;
mod compared;
mod host;
mod limit;
mod mode;
mod others;
mod placing;
mod report;
mod rounds;
mod sample;
mod spread;
mod usage;

pub use against::{Against, FEWEST_ROUNDS, Verdict};
pub(crate) use checks::{
    check_list, check_modes, check_number, check_repetitions, check_time_limit,
};
pub use compared::{Compared, compared};
pub use host::{Host, scheduler_below};
pub use limit::Limit;
pub use mode::Mode;
pub(crate) use others::{Others, busy_s};
pub(crate) use placing::{APP_OF_CHAT, APP_OF_FRAGMENTS};
pub use placing::{Placed, Placing};
pub use report::Report;
pub use rounds::{Plan, Rounds, Step, in_turn, turn};
pub use sample::{Sample, Summary};
pub use spread::Spread;
pub use usage::Usage;
