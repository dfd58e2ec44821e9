//! Shared by the tests of the caches: made-up machines and a slow model to compare with.

pub mod machines;
pub mod reference;
