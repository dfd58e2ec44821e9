//! Sockets and cards: what is in them, without when it happens.

mod card;
mod pipe;
mod socket;
mod unix;

pub(crate) use self::unix::{PAGE, SHARED_INFO, SK_BUFF};
pub use self::{card::*, socket::*};

use crate::words::{Listener, Nic, Remote, Socket, Table};

/// All sockets, cards and remote peers.
#[derive(Default)]
pub(crate) struct Net {
    pub(crate) endpoints: Table<Socket, Endpoint>,
    pub(crate) backlogs: Table<Listener, Backlog>,
    /// The queues of all cards; those of a card with several follow each other.
    pub(crate) cards: Table<Nic, Card>,
    pub(crate) remotes: Table<Remote, RemoteState>,
    /// Endpoints that no connection uses any more.
    free: Vec<Socket>,
}

impl Net {
    /// Frees `socket` for another connection, if both ends have closed it and nothing that it sent
    /// is in transit. Called whenever one of the three becomes true.
    pub(crate) fn reuse_if_closed(&mut self, socket: Socket) {
        let endpoint = &self.endpoints[socket];
        if endpoint.closed && endpoint.peer_closed && endpoint.in_flight == 0 {
            self.free.push(socket);
        }
    }

    /// An endpoint that was freed.
    pub(crate) fn take_free(&mut self) -> Option<Socket> {
        self.free.pop()
    }
}
