//! An experiment as a list of runs, each with a number and a digest, and any of them alone: what
//! sweeps on several machines stand on (docs/sweeps.md).

mod collect;
mod identity;
mod line;
mod lines;
mod only;
mod wanted;

pub use self::collect::collect;
pub use self::identity::{Identity, build};
pub use self::line::Planned;
pub use self::only::{Only, run};
pub use self::wanted::Wanted;
