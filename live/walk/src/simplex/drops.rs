//! How many datagrams the kernel threw away because a socket was full.
#![allow(
    unsafe_code,
    reason = "no library at hand wraps getsockopt(SO_MEMINFO)"
)]

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Words of `SO_MEMINFO` up to the one that counts drops (`SK_MEMINFO_DROPS`), linux/sock_diag.h.
const WORDS: usize = 9;
const DROPS: usize = 8;

/// Datagrams that `socket` had no room for since it was opened; 0 on kernels before 4.12, which do
/// not tell.
pub fn dropped(socket: &UdpSocket) -> u32 {
    let mut words = [0_u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `words`; any bits are u32.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        );
    }
    words[DROPS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_socket_counts_what_it_has_no_room_for() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(dropped(&socket), 0);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sent = 20_000;
        for _ in 0..sent {
            sender
                .send_to(&[0; 1024], socket.local_addr().unwrap())
                .unwrap();
        }
        let dropped = dropped(&socket);
        assert!(dropped > 0 && dropped < sent, "{dropped} of {sent}");
    }
}
