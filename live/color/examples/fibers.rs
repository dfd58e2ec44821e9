//! Fibers that yield in turn, on colored stacks and on plain ones: ns a switch.
//!
//!     cargo run --release -p warmq-color --features corosensei --example fibers -- --help
#![allow(missing_docs)]
#[path = "fibers/grid.rs"]
mod grid;
#[path = "fibers/ring.rs"]
mod ring;

fn main() -> Result<(), String> {
    grid::main()
}
