//! Timers as those know them who armed one.

/// A handle of an armed timer, with which it can be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}
