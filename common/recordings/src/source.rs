//! What every format is read as.

use warmq_trace::Header;

use crate::contents::Contents;
use crate::damage::Damage;
use crate::event::Said;

/// Somebody's recording that is being read.
pub(crate) trait Source {
    /// What it is of, as far as the file says before its events.
    fn header(&self) -> Header;

    /// What is said next, in the order of time; `None` at the end.
    ///
    /// # Errors
    /// The file is damaged here. What was said before is true.
    fn next(&mut self) -> Result<Option<Said>, Damage>;

    /// Adds what only the format knows: the clock, the command, events that are not read.
    fn describe(&self, contents: &mut Contents);
}
