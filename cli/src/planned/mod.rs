//! Runs of a plan by their numbers and digests: made here, and collected that were made elsewhere.

mod collect;
mod lines;
mod only;

use xxhash_rust::xxh3::xxh3_128;

pub use self::collect::collect;
pub use self::only::{Only, run};
use crate::failure::Failure;

/// The digest of this program's file: two builds of one version may give different results.
///
/// # Errors
/// When the file cannot be read.
pub fn build() -> Result<String, Failure> {
    let read = std::env::current_exe().and_then(std::fs::read);
    let bytes = read.map_err(|error| Failure::system("read the file of this program", &error))?;
    Ok(format!("{:032x}", xxh3_128(&bytes)))
}
