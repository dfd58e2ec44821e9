//! A receiver: reads datagrams one by one, as the receivers of the thesis did.

use std::net::UdpSocket;
use std::sync::mpsc::Sender;

use hdrhistogram::Histogram;
use warmq_units::CpuId;

use super::clock::Clock;
use super::datagram::{Datagram, LARGEST, Purpose};
use super::drops::dropped;
use super::policy::Policy;
use super::sequence::Sequence;
use super::usage::Usage;
use crate::error::BenchError;

/// The longest latency that is told apart: 100 s.
const LONGEST_NS: u64 = 100_000_000_000;
/// Latencies are kept to 1 %.
const DIGITS: u8 = 2;

/// What a receiver saw of the datagrams that count.
#[derive(Clone, Debug)]
pub struct Received {
    /// Numbers that arrived and that did not.
    pub sequence: Sequence,
    /// From the stamp to the program, in nanoseconds.
    pub latency: Histogram<u64>,
    /// What the thread used while they came.
    pub usage: Usage,
    /// Nanoseconds over which `usage` is taken.
    pub over_ns: u64,
    /// Datagrams for which the socket had no room meanwhile.
    pub dropped: u32,
}

/// A moment in a receiver's life.
#[derive(Clone, Copy)]
struct Moment {
    at_ns: u64,
    usage: Usage,
    dropped: u32,
}

/// An empty histogram of latencies.
pub fn no_latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are our own")
}

/// Receives on the calling thread until a datagram says that it is the last, and tells by `ready`
/// when it begins.
///
/// # Errors
/// When the thread cannot be pinned or put under `policy`, or the socket fails.
pub fn receive(
    socket: &UdpSocket,
    cpu: CpuId,
    policy: Policy,
    clock: Clock,
    ready: &Sender<()>,
) -> Result<Received, BenchError> {
    crate::thread::bind(cpu)?;
    policy.apply()?;
    // Nobody waits any more if another thread failed; the last datagram comes all the same.
    let _ = ready.send(());
    let now = || Moment::now(socket, clock);
    let (mut sequence, mut latency) = (Sequence::default(), no_latencies());
    let (mut first, mut end) = (None, None);
    loop {
        let Some(datagram) = next(socket)? else {
            continue;
        };
        match datagram.purpose {
            Purpose::Measured => {
                first.get_or_insert_with(now);
                sequence.see(datagram.number);
                latency.saturating_record(clock.now_ns().saturating_sub(datagram.sent_ns));
            }
            Purpose::Unmeasured if first.is_some() => {
                end.get_or_insert_with(now);
            }
            Purpose::Unmeasured => {}
            Purpose::Last => break,
        }
    }
    let end = end.unwrap_or_else(now);
    let first = first.unwrap_or(end);
    Ok(Received {
        sequence,
        latency,
        usage: end.usage.since(first.usage),
        over_ns: end.at_ns - first.at_ns,
        dropped: end.dropped.saturating_sub(first.dropped),
    })
}

/// The next datagram; `None` for one that is not ours.
fn next(socket: &UdpSocket) -> Result<Option<Datagram>, BenchError> {
    let mut payload = [0; LARGEST];
    let length = socket
        .recv(&mut payload)
        .map_err(|source| BenchError::System {
            action: "receive a datagram".to_owned(),
            source,
            fix: "try again",
        })?;
    Ok(Datagram::read(&payload[..length]))
}

impl Moment {
    fn now(socket: &UdpSocket, clock: Clock) -> Moment {
        Moment {
            at_ns: clock.now_ns(),
            usage: Usage::of_this_thread(),
            dropped: dropped(socket),
        }
    }
}
