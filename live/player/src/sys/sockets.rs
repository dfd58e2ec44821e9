//! TCP streams and UDP sockets over loopback, as raw descriptors that forked processes inherit.

use std::io::{self, Error};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use super::checked;
use super::files::{progress, some};

/// Sets the receive buffer of `fd`, as the option SO_RCVBUF has it: the kernel doubles it.
fn set_receive_buffer(fd: i32, bytes: u64) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
}

/// Sets how the protocol of `fd` answers to losses. Over loopback there are none, but what a
/// machine is set to may send by a timer (BBR paces), which takes a third of the time of a chat;
/// every kernel has this one and lets every program choose it.
fn set_congestion_control(fd: i32) -> io::Result<()> {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, *b"reno")
}

fn set_option<T: Copy>(fd: i32, level: i32, option: i32, value: T) -> io::Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes, all of them of `value`.
    checked(unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) })
        .map(|_| ())
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
        set_congestion_control(listener.as_raw_fd())?;
        if let Some(bytes) = buffer {
            set_receive_buffer(listener.as_raw_fd(), bytes)?;
        }
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
        let near = socket(libc::SOCK_STREAM)?;
        set_congestion_control(near.as_raw_fd())?;
        if let Some(bytes) = self.buffer {
            set_receive_buffer(near.as_raw_fd(), bytes)?;
        }
        let address = raw(self.to);
        let size = size_of_val(&address) as libc::socklen_t;
        // SAFETY: a complete address of the size given.
        let answer = unsafe { libc::connect(near.as_raw_fd(), (&raw const address).cast(), size) };
        checked(answer)?;
        let (far, from) = self.listener.accept()?;
        let near = std::net::TcpStream::from(near);
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

/// A UDP socket that tasks receive from, and the port that others send to.
///
/// # Errors
/// No loopback, or no descriptor is left.
pub fn datagram_socket(buffer: Option<u64>) -> io::Result<(i32, u16)> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    if let Some(bytes) = buffer {
        set_receive_buffer(socket.as_raw_fd(), bytes)?;
    }
    let port = socket.local_addr()?.port();
    Ok((socket.into_raw_fd(), port))
}

/// A UDP socket to send from.
///
/// # Errors
/// No descriptor is left.
pub fn sender() -> io::Result<i32> {
    socket(libc::SOCK_DGRAM).map(IntoRawFd::into_raw_fd)
}

/// A UDP socket that sources send from and hear answers on, and its port.
///
/// # Errors
/// No loopback, or no descriptor is left.
pub fn source_socket() -> io::Result<(i32, u16)> {
    // Answers must not be lost while the sender has no CPU; the kernel cuts what is too much.
    datagram_socket(Some(4 << 20))
}

fn socket(kind: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = checked(unsafe { libc::socket(libc::AF_INET, kind | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn raw(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(address.ip().octets()),
        },
        sin_zero: [0; 8],
    }
}

/// Writes all of `bytes` to the stream `fd`.
///
/// # Errors
/// The other end is closed.
pub fn send_all(fd: i32, bytes: &[u8]) -> io::Result<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: `left` is readable for its length.
        let sent = unsafe { libc::send(fd, left.as_ptr().cast(), left.len(), flags) };
        left = &left[progress(sent)?..];
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
        let whole = libc::MSG_WAITALL;
        // SAFETY: `left` is writable for its length.
        let got = unsafe { libc::recv(fd, left.as_mut_ptr().cast(), left.len(), whole) };
        filled += some(progress(got)?, got)?;
    }
    Ok(())
}

/// Waits for a datagram on `fd` and says from which port it came; what does not fit into `bytes` is
/// dropped.
///
/// # Errors
/// What the kernel answers.
pub fn receive_datagram(fd: i32, bytes: &mut [u8]) -> io::Result<u16> {
    loop {
        if let Some((_, port)) = receive_from(fd, bytes, 0)? {
            return Ok(port);
        }
    }
}

/// The length of a datagram that is there on `fd`, without waiting for one.
///
/// # Errors
/// What the kernel answers.
pub fn take_datagram(fd: i32, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    match receive_from(fd, bytes, libc::MSG_DONTWAIT) {
        Ok(got) => Ok(got.map(|(length, _)| length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Length and port of a datagram; none if a signal came first.
fn receive_from(fd: i32, bytes: &mut [u8], flags: i32) -> io::Result<Option<(usize, u16)>> {
    let mut address = raw(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
    let mut size = size_of_val(&address) as libc::socklen_t;
    // SAFETY: `bytes` is writable for its length, and the address for its size.
    let got = unsafe {
        let from = (&raw mut address).cast();
        let room = bytes.as_mut_ptr().cast();
        libc::recvfrom(fd, room, bytes.len(), flags, from, &raw mut size)
    };
    let length = progress(got)?;
    Ok((got >= 0).then(|| (length, u16::from_be(address.sin_port))))
}

/// Sends `bytes` from `fd` to `port` of this machine.
///
/// # Errors
/// What the kernel answers, such as a datagram that is too long.
pub fn send_datagram(fd: i32, port: u16, bytes: &[u8]) -> io::Result<()> {
    let address = raw(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
    let size = size_of_val(&address) as libc::socklen_t;
    loop {
        // SAFETY: `bytes` is readable for its length, and the address is complete.
        let sent = unsafe {
            let to = (&raw const address).cast();
            libc::sendto(
                fd,
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_NOSIGNAL,
                to,
                size,
            )
        };
        if sent >= 0 {
            return Ok(());
        }
        progress(sent)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_pace_whatever_the_machine_is_set_to() {
        let (near, far) = Streams::new(None).unwrap().stream(false).unwrap();
        for end in [near, far] {
            let mut name = [0u8; 16];
            let mut size = name.len() as libc::socklen_t;
            // SAFETY: `name` is writable for `size` bytes.
            let answer = unsafe {
                let to = name.as_mut_ptr().cast();
                libc::getsockopt(
                    end,
                    libc::IPPROTO_TCP,
                    libc::TCP_CONGESTION,
                    to,
                    &raw mut size,
                )
            };
            checked(answer).unwrap();
            assert!(name.starts_with(b"reno\0"), "{name:?}");
        }
    }
}
