//! Random workloads and kernels, for the tests of the laboratory: those of the engine, of its
//! schedulers and of the real scheduler beside the simulated one draw from the same.

// Integers decide; floats only describe.
#![deny(clippy::float_arithmetic)]

mod configuration;
mod script;

pub use configuration::{Configuration, configurations};
pub use script::{Act, Bound, Flood, Part, Script, scripts};
