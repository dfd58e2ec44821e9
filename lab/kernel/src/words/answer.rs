//! Who sent a datagram, which an answer goes back to.

use std::cell::Cell;
use std::rc::Rc;

use crate::words::{Nic, Remote};

/// Who sent a datagram to this machine, as `recvfrom()` reports it by the address. By default
/// nobody who could be answered: a task of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Sender(pub(crate) Option<Origin>);

/// Where [`Operation::ReceiveDatagram`](crate::words::operation::Operation::ReceiveDatagram) puts
/// the sender.
pub(crate) type SenderSlot = Rc<Cell<Sender>>;

/// A datagram of a remote peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) remote: Remote,
    /// The card over which it came.
    pub(crate) nic: Nic,
    /// Which of the peer's datagrams, as the peer numbers them.
    pub(crate) number: u64,
}
