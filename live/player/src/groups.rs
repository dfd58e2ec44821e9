//! The cgroups of a run.

use std::io;

use crate::error::PlayError;

/// None yet.
pub struct Groups;

impl Groups {
    /// Makes them.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn make(&self) -> Result<(), PlayError> {
        Ok(())
    }

    /// Moves this thread into group `number`.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn join(&self, _number: u32) -> io::Result<()> {
        Ok(())
    }

    /// Thaws all.
    pub fn thaw_all(&self) {}

    /// Removes them.
    pub fn remove(&self) {}
}
