//! What lies between sender and receivers: the loopback device, or a pair of virtual Ethernet
//! devices between two network namespaces.
//!
//! The namespaces have no name. They live as long as this program holds them open, so that nothing
//! is left to clean up however it ends.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::settings::LinkKind;
use crate::error::BenchError;

/// Addresses for documentation (RFC 5737): nothing else is in these namespaces.
const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const RECEIVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

const NEEDS_ROOT: &str =
    "run it as root (CAP_NET_ADMIN and CAP_SYS_ADMIN), or with --link loopback";
const NEEDS_IP: &str = "install iproute2, or use --link loopback";
const NEEDS_VETH: &str = "use a kernel with CONFIG_VETH as root, or --link loopback";

/// A network namespace that is held open.
type Namespace = File;

/// Where sockets of either end are made.
#[derive(Debug)]
pub struct Link {
    /// Sender's and receivers'; `None` for this program's own.
    namespaces: Option<(Namespace, Namespace)>,
}

impl Link {
    /// Lays the link.
    ///
    /// # Errors
    /// For virtual Ethernet: no privilege, no such device in the kernel, no `ip` command.
    pub fn lay(kind: LinkKind) -> Result<Link, BenchError> {
        let namespaces = match kind {
            LinkKind::Loopback => None,
            LinkKind::Veth => Some(veth()?),
        };
        Ok(Link { namespaces })
    }

    /// A socket at the receivers' end, on a port of the kernel's choice.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn receiving(&self) -> Result<UdpSocket, BenchError> {
        let address = self
            .namespaces
            .as_ref()
            .map_or(Ipv4Addr::LOCALHOST, |_| RECEIVER);
        let bound = move || UdpSocket::bind((address, 0));
        inside(
            self.namespaces.as_ref().map(|(_, receiver)| receiver),
            bound,
        )
    }

    /// A socket at the sender's end that sends to `receiver`.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn sending_to(&self, receiver: &UdpSocket) -> Result<UdpSocket, BenchError> {
        let address = self
            .namespaces
            .as_ref()
            .map_or(Ipv4Addr::LOCALHOST, |_| SENDER);
        let connected = move || {
            let socket = UdpSocket::bind((address, 0))?;
            socket.connect(receiver.local_addr()?)?;
            Ok(socket)
        };
        inside(
            self.namespaces.as_ref().map(|(sender, _)| sender),
            connected,
        )
    }
}

/// Makes a socket in `namespace`, where it stays. Only a thread can enter a namespace, so one does.
fn inside(
    namespace: Option<&Namespace>,
    make: impl FnOnce() -> io::Result<UdpSocket> + Send,
) -> Result<UdpSocket, BenchError> {
    let refused = |source| BenchError::System {
        action: "open a UDP socket".to_owned(),
        source,
        fix: "allow this program IPv4 sockets",
    };
    let Some(namespace) = namespace else {
        return make().map_err(refused);
    };
    in_thread(|| {
        enter(namespace)?;
        make().map_err(refused)
    })
}

/// Runs `work` in a thread of its own: what it does to its namespaces ends with it.
fn in_thread<T: Send>(
    work: impl FnOnce() -> Result<T, BenchError> + Send,
) -> Result<T, BenchError> {
    thread::scope(|scope| {
        let joined = scope.spawn(work).join();
        joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn enter(namespace: &Namespace) -> Result<(), BenchError> {
    setns(namespace, CloneFlags::CLONE_NEWNET)
        .map_err(|errno| BenchError::system("enter a network namespace", errno, NEEDS_ROOT))
}

/// Two new namespaces with a pair of devices between them, up and with addresses.
fn veth() -> Result<(Namespace, Namespace), BenchError> {
    let (sender, receiver) = (namespace()?, namespace()?);
    // Our descriptor, as the `ip` process will find it.
    let other = format!("/proc/{}/fd/{}", std::process::id(), receiver.as_raw_fd());
    let (from, to) = (format!("{SENDER}/24"), format!("{RECEIVER}/24"));
    in_thread(|| {
        enter(&sender)?;
        ip(&[
            "link", "add", "warmq0", "type", "veth", "peer", "name", "warmq1",
        ])?;
        ip(&["link", "set", "warmq1", "netns", &other])?;
        ip(&["address", "add", &from, "dev", "warmq0"])?;
        ip(&["link", "set", "warmq0", "up"])
    })?;
    in_thread(|| {
        enter(&receiver)?;
        ip(&["address", "add", &to, "dev", "warmq1"])?;
        ip(&["link", "set", "warmq1", "up"])
    })?;
    Ok((sender, receiver))
}

fn namespace() -> Result<Namespace, BenchError> {
    in_thread(|| {
        let action = "make a network namespace";
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|errno| BenchError::system(action, errno, NEEDS_ROOT))?;
        File::open("/proc/thread-self/ns/net").map_err(|source| BenchError::System {
            action: action.to_owned(),
            source,
            fix: "mount /proc",
        })
    })
}

/// Runs `ip` in the namespace of this thread.
fn ip(words: &[&str]) -> Result<(), BenchError> {
    let action = || format!("lay the virtual link (ip {})", words.join(" "));
    let output = Command::new("ip").args(words).output();
    let output = output.map_err(|source| BenchError::System {
        action: action(),
        source,
        fix: NEEDS_IP,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(BenchError::System {
        action: action(),
        source: io::Error::other(said),
        fix: NEEDS_VETH,
    })
}

/// Whether this program may make network namespaces at all: for tests that need to know.
#[cfg(test)]
pub fn may_make_namespaces() -> bool {
    let tried = || unshare(CloneFlags::CLONE_NEWNET).is_ok();
    thread::spawn(tried).join().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carries(link: &Link) {
        let receiver = link.receiving().unwrap();
        let sender = link.sending_to(&receiver).unwrap();
        let mut buffer = [0; 16];
        // The first frame may wait for the address of the other end; it is not lost.
        sender.send(b"warm").unwrap();
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"warm");
    }

    #[test]
    fn loopback_carries_datagrams() {
        carries(&Link::lay(LinkKind::Loopback).unwrap());
    }

    #[test]
    fn virtual_ethernet_carries_datagrams_or_says_what_it_needs() {
        match Link::lay(LinkKind::Veth) {
            Ok(link) => carries(&link),
            Err(error) => {
                let privileged = may_make_namespaces();
                let text = error.to_string();
                assert!(text.contains("--link loopback"), "{text}");
                assert_eq!(text.contains(NEEDS_ROOT), !privileged, "{text}");
            }
        }
    }
}
