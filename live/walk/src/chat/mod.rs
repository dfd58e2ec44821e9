//! Chat: rooms of users who send messages to one another through a server, all on one machine.
//!
//! Purpose: the second benchmark of the affinity paper, after VolanoMark. Each user has four
//! threads: at the client one that sends and one that receives, at the server one that reads what
//! the user sends and puts it into the queue of every user of the room (also of the one who sent
//! it), and one that writes out the user's queue. A room is a fragment.
//!
//! Key decision: server and client are two processes, as in the paper. Hints are scoped by process,
//! so that a room has a fragment in each.
//!
//! One write and one read per message, as in VolanoMark: batching would hide the scheduler. Nagle's
//! algorithm, which delays small writes, is switched off. What waits is bounded: the queues of the
//! server by number, the sockets by the kernel.
//!
//! Not here: users who pause, arrive and leave.

mod client;
mod control;
mod gate;
mod ledger;
mod measure;
mod message;
mod outbox;
mod run;
mod server;
mod settings;
mod sockets;

pub use ledger::{Ledger, Surprise};
pub use measure::{ChatReport, ChatRow, Latency, measure_chat};
pub use message::{LEAST_SIZE, Message};
pub use outbox::Outbox;
pub use run::ServerProgram;
pub use server::serve;
pub use settings::ChatSettings;
