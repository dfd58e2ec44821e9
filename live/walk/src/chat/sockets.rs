//! Connections between users and the server.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::BenchError;

use super::settings::Case;

/// Descriptors of a process beside its connections.
const SPARE: u64 = 32;

/// How long one side waits for the other while they connect: then it is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Token, room and user: the first bytes of a connection.
const HELLO: usize = 16;

/// What the server answers to a hello.
const WELCOME: [u8; 1] = [1];

/// Lets this process have a connection for each user; asks for more descriptors where it must.
pub(super) fn allow(case: &Case) -> Result<(), BenchError> {
    let limits = getrlimit(Resource::RLIMIT_NOFILE);
    let (soft, hard) = limits.map_err(|errno| {
        BenchError::system(
            "ask for the limit of descriptors",
            errno,
            "try as another user",
        )
    })?;
    let needed = u64::from(case.all_users()) + SPARE;
    if needed <= soft {
        return Ok(());
    }
    let raised = needed <= hard && setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_ok();
    if raised {
        return Ok(());
    }
    let problem = format!(
        "with {} users in each that takes {needed} descriptors, and {hard} are allowed",
        case.users
    );
    let fix = "write fewer --rooms or --users, or allow more (ulimit -Hn)";
    Err(BenchError::setting("rooms", case.rooms, problem, fix))
}

/// Connects a user, who is in when this returns.
pub(super) fn connect(port: u16, token: u64, room: u32, user: u32) -> io::Result<Arc<TcpStream>> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut hello = [0; HELLO];
    hello[0..8].copy_from_slice(&token.to_le_bytes());
    hello[8..12].copy_from_slice(&room.to_le_bytes());
    hello[12..16].copy_from_slice(&user.to_le_bytes());
    (&stream).write_all(&hello)?;
    (&stream).read_exact(&mut [0; WELCOME.len()])?;
    stream.set_read_timeout(None)?;
    Ok(Arc::new(stream))
}

/// A user who came in, not yet welcome.
pub(super) struct Guest {
    pub stream: Arc<TcpStream>,
    pub room: u32,
    pub user: u32,
}

/// Who came.
pub(super) enum Caller {
    /// A user.
    Guest(Guest),
    /// Somebody else, who was sent away.
    Stranger,
    /// Nobody, and nobody will: the other process gave up.
    Nobody,
}

/// Waits for the next user, or for a word on `control`.
pub(super) fn accept(
    listener: &TcpListener,
    control: BorrowedFd<'_>,
    token: u64,
) -> io::Result<Caller> {
    let mut ready = [listener.as_fd(), control].map(|it| PollFd::new(it, PollFlags::POLLIN));
    poll(&mut ready, PollTimeout::NONE)?;
    if ready[1].any().unwrap_or(true) {
        return Ok(Caller::Nobody);
    }
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut hello = [0; HELLO];
    if (&stream).read_exact(&mut hello).is_err() || hello[0..8] != token.to_le_bytes() {
        return Ok(Caller::Stranger);
    }
    stream.set_read_timeout(None)?;
    let word = |at: usize| hello[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    Ok(Caller::Guest(Guest {
        stream: Arc::new(stream),
        room: word(8),
        user: word(12),
    }))
}

/// Tells a user that the server is ready for what he writes.
pub(super) fn welcome(guest: &Guest) -> io::Result<()> {
    (&*guest.stream).write_all(&WELCOME)
}

/// Ends both directions; whoever waits on the stream goes on.
pub(super) fn hang_up(stream: &TcpStream) {
    // The other side may have been faster.
    let _ = stream.shutdown(Shutdown::Both);
}
