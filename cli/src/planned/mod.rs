//! Runs of a plan by their numbers and digests: made here, and collected that were made elsewhere.

mod collect;
mod lines;
mod only;

use warmq_experiment::planned::Unplanned;
use xxhash_rust::xxh3::xxh3_128;

pub use self::collect::collect;
pub use self::only::{Only, run};
use crate::failure::Failure;
use crate::machines;

/// The digest of this program's file: two builds of one version may give different results.
///
/// # Errors
/// When the file cannot be read.
pub fn build() -> Result<String, Failure> {
    let read = std::env::current_exe().and_then(std::fs::read);
    let bytes = read.map_err(|error| Failure::system("read the file of this program", &error))?;
    Ok(format!("{:032x}", xxh3_128(&bytes)))
}

impl From<Unplanned> for Failure {
    fn from(why: Unplanned) -> Failure {
        match why {
            Unplanned::Machine(name, error) => machines::not_found("machine", &name, error),
            Unplanned::Workload(problems) => Failure::Problems(vec![problems]),
            Unplanned::File(name, error) => Failure::system(format!("read {name}"), &error),
            Unplanned::Plan { file, what, help } => Failure::File { file, what, help },
        }
    }
}
