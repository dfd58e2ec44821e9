//! TCP streams and UDP sockets over loopback, and pairs of Unix sockets, as raw descriptors that
//! forked processes inherit.

use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};

use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_send_buffer_size, set_tcp_congestion,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, recvfrom, send,
    sendto, socket_with, socketpair,
};

use super::files::{opened, progress, received};

/// Sets the receive buffer of `socket`, as the option SO_RCVBUF has it: the kernel doubles it.
fn set_receive_buffer(socket: impl AsFd, bytes: Option<u64>) -> io::Result<()> {
    if let Some(bytes) = bytes {
        set_socket_recv_buffer_size(socket, bytes.min(i32::MAX as u64) as usize)?;
    }
    Ok(())
}

/// Sets how the protocol of `socket` answers to losses. Over loopback there are none, but what a
/// machine is set to may send by a timer (BBR paces), which takes a third of the time of a chat;
/// every kernel has this one and lets every program choose it.
fn set_congestion_control(socket: impl AsFd) -> io::Result<()> {
    Ok(set_tcp_congestion(socket, "reno")?)
}

/// Makes streams: one listener for all of one buffer size.
pub struct Streams {
    listener: TcpListener,
    to: SocketAddrV4,
    buffer: Option<u64>,
}

impl Streams {
    /// For streams whose ends have receive buffers of `buffer` bytes, or the kernel's own.
    ///
    /// # Errors
    /// No loopback, or no descriptor is left.
    pub fn new(buffer: Option<u64>) -> io::Result<Streams> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        // Accepted sockets inherit both. They must be set before they are connected: who was BBR's
        // once goes on pacing.
        set_congestion_control(&listener)?;
        set_receive_buffer(&listener, buffer)?;
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port());
        Ok(Streams {
            listener,
            to,
            buffer,
        })
    }

    /// A stream: its near and its far end. With `nagle`, short segments wait for one another.
    ///
    /// # Errors
    /// No descriptor or no port is left, or another program connected in between.
    pub fn stream(&self, nagle: bool) -> io::Result<(i32, i32)> {
        let near = socket(SocketType::STREAM)?;
        set_congestion_control(&near)?;
        set_receive_buffer(&near, self.buffer)?;
        connect(&near, &self.to)?;
        let (far, from) = self.listener.accept()?;
        let near = TcpStream::from(near);
        if near.local_addr()? != from {
            return Err(Error::other(
                "another program connected to a port of this run",
            ));
        }
        near.set_nodelay(!nagle)?;
        far.set_nodelay(!nagle)?;
        Ok((near.into_raw_fd(), far.into_raw_fd()))
    }
}

/// A pair of Unix stream sockets, whose send buffers are `bytes` as the option SO_SNDBUF has it,
/// which the kernel doubles, or the kernel's own.
///
/// # Errors
/// No descriptor is left.
pub fn unix_pair(bytes: Option<u64>) -> io::Result<(i32, i32)> {
    let flags = SocketFlags::CLOEXEC;
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = bytes {
        let bytes = bytes.min(i32::MAX as u64) as usize;
        set_socket_send_buffer_size(&near, bytes)?;
        set_socket_send_buffer_size(&far, bytes)?;
    }
    Ok((near.into_raw_fd(), far.into_raw_fd()))
}

/// A UDP socket that tasks receive from, and the port that others send to.
///
/// # Errors
/// No loopback, or no descriptor is left.
pub fn datagram_socket(buffer: Option<u64>) -> io::Result<(i32, u16)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    set_receive_buffer(&socket, buffer)?;
    let port = socket.local_addr()?.port();
    Ok((socket.into_raw_fd(), port))
}

/// A UDP socket to send from.
///
/// # Errors
/// No descriptor is left.
pub fn sender() -> io::Result<i32> {
    socket(SocketType::DGRAM).map(IntoRawFd::into_raw_fd)
}

/// A UDP socket that sources send from and hear answers on, and its port.
///
/// # Errors
/// No loopback, or no descriptor is left.
pub fn source_socket() -> io::Result<(i32, u16)> {
    // Answers must not be lost while the sender has no CPU; the kernel cuts what is too much.
    datagram_socket(Some(4 << 20))
}

fn socket(kind: SocketType) -> io::Result<OwnedFd> {
    let (internet, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    Ok(socket_with(internet, kind, flags, None)?)
}

/// Writes all of `bytes` to the stream `fd`.
///
/// # Errors
/// The other end is closed.
pub fn send_all(fd: i32, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        left = &left[progress(send(opened(fd), left, SendFlags::NOSIGNAL))?..];
    }
    Ok(())
}

/// Fills `bytes` from the stream `fd`.
///
/// # Errors
/// The other end is closed.
pub fn receive_all(fd: i32, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = &mut bytes[filled..];
        filled += received(recv(opened(fd), left, RecvFlags::WAITALL).map(|(got, _)| got))?;
    }
    Ok(())
}

/// Waits for a datagram on `fd` and says from which port it came; what does not fit into `bytes` is
/// dropped.
///
/// # Errors
/// What the kernel answers.
pub fn receive_datagram(fd: i32, bytes: &mut [u8]) -> io::Result<u16> {
    let from = || Ok(recvfrom(opened(fd), &mut *bytes, RecvFlags::empty())?.2);
    let from = retry_on_intr(from)?;
    let from = from.and_then(|from| SocketAddrV4::try_from(from).ok());
    Ok(from.map_or(0, |from| from.port()))
}

/// The length of a datagram that is there on `fd`, without waiting for one.
///
/// # Errors
/// What the kernel answers.
pub fn take_datagram(fd: i32, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    match recv(opened(fd), bytes, RecvFlags::DONTWAIT) {
        Ok((_, length)) => Ok(Some(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends `bytes` from `fd` to `port` of this machine.
///
/// # Errors
/// What the kernel answers, such as a datagram that is too long.
pub fn send_datagram(fd: i32, port: u16, bytes: &[u8]) -> io::Result<()> {
    let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    retry_on_intr(|| sendto(opened(fd), bytes, SendFlags::NOSIGNAL, &to))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_pace_whatever_the_machine_is_set_to() {
        let (near, far) = Streams::new(None).unwrap().stream(false).unwrap();
        for end in [near, far] {
            let name = rustix::net::sockopt::tcp_congestion(opened(end)).unwrap();
            assert_eq!(name, "reno");
        }
    }
}
