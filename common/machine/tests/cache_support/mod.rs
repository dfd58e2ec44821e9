//! Shared by the tests of the caches: made-up machines and a slow model to compare with.

#![allow(dead_code)] // each test uses a part of it

pub mod machines;
pub mod reference;
