//! What the whole tree keeps to. Like arrows.rs this is kept in the crate at the bottom, which
//! builds without any other.
//!
//! `cargo test --test tidy -- --nocapture` prints the lines of production Rust of each crate.

mod dependencies;
mod lines;
mod pages;
mod tree;
mod words;
