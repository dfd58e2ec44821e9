//! What scx_warmq decides.
