//! What can go wrong when a report is written.

use std::io;

/// A report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The place it was written to failed.
    #[error("cannot write: {0}")]
    Io(#[from] io::Error),
    /// A row could not be turned into JSON.
    #[error("cannot write as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A sweep key has the name of a column that every row has.
    #[error("the sweep key `{key}` has the name of a column of every row; rename the key")]
    KeyTaken {
        /// The sweep key.
        key: String,
    },
    /// A plot could not be drawn.
    #[error("cannot draw the plot `{plot}`: {reason}")]
    Plot {
        /// The title of the plot.
        plot: String,
        /// What the drawing library said.
        reason: String,
    },
}
