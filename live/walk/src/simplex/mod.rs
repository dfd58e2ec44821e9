//! Simplex and receivers of datagrams on one CPU, a sender on another.
//!
//! Purpose: to see on this machine's kernel what the thesis saw on those of 2006: what is left of
//! the CPU for a program that only computes while others sleep and wake with every datagram. The
//! same work is done alone and beside receivers, whose policy and whose scheduler change in turn.
//!
//! Key decision: the sender stamps each datagram with whether it counts, so that both ends agree to
//! a datagram on what was sent, received and lost while Simplex worked.
//!
//! Not here: the laboratory's model of the same experiment (docs/experiments.md).

mod clock;
mod clusters;
mod cpus;
mod datagram;
mod drops;
mod link;
mod measure;
mod pace;
mod plan;
mod policy;
mod receiver;
mod result;
mod run;
mod scheduler;
mod sender;
mod sequence;
mod settings;
mod usage;
mod work;

pub use clusters::{Cluster, clusters, histogram};
pub use policy::Policy;
pub use result::{
    Latency, Receivers, Repetition, Simplex, SimplexFacts, SimplexReport, SimplexRow,
};
pub use run::{SimplexProgress, compare};
pub use sender::Sent;
pub use settings::{LinkKind, SimplexSettings};
pub use usage::Usage;
