//! How threads are placed on CPUs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How the threads of a program are placed on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The scheduler chooses, without hints.
    Plain,
    /// Threads of fragment i may run on CPU i modulo the number of CPUs, and nowhere else.
    Bound,
    /// The scheduler chooses, and each thread names its fragment by a hint.
    Hinted,
}

impl Mode {
    /// All modes, in the order in which they are shown.
    pub const ALL: [Mode; 3] = [Mode::Plain, Mode::Bound, Mode::Hinted];

    /// The name, as it is typed and shown.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Bound => "bound",
            Mode::Hinted => "hinted",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let known = Mode::ALL.into_iter().find(|mode| mode.name() == text);
        known.ok_or_else(|| "write plain, bound or hinted".to_owned())
    }
}
