//! The sender: spins until a datagram is due, stamps it, sends it.

use std::hint::spin_loop;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use serde::Serialize;
use warmq_units::CpuId;

use super::clock::Clock;
use super::datagram::{Datagram, Purpose};
use super::pace::{MOST_BEHIND, Pace};
use crate::error::BenchError;

/// What the threads of a measurement tell each other.
#[derive(Debug, Default)]
pub struct Signals {
    /// Simplex is at work: what is sent now counts.
    pub measured: AtomicBool,
    /// The sender may go.
    pub stop: AtomicBool,
}

/// What was sent while Simplex worked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sent {
    /// Datagrams.
    pub count: u64,
    /// Of these, sent more than a period after they were due.
    pub late: u64,
    /// How often the stream was so far behind that it began anew.
    pub restarts: u64,
    /// Datagrams that the kernel would not take; they count as sent.
    pub refused: u64,
    /// From the first to the last.
    pub over_ns: u64,
}

impl Sent {
    /// The rate really sent in thousand datagrams a second; `None` for fewer than two.
    pub fn kpps(&self) -> Option<f64> {
        let spaces = self.count.checked_sub(1).filter(|spaces| *spaces > 0)?;
        Some(spaces as f64 * 1e6 / self.over_ns.max(1) as f64)
    }
}

/// Sends to `sockets` in turn at `pace` until told to stop, on the calling thread. Without a pace
/// it spins and sends nothing, so that a core that is shared with Simplex is as busy.
///
/// # Errors
/// When the thread cannot be pinned.
pub fn send(
    sockets: &[UdpSocket],
    payload: usize,
    pace: Option<Pace>,
    cpu: CpuId,
    clock: Clock,
    signals: &Signals,
    ready: &Sender<()>,
) -> Result<Sent, BenchError> {
    crate::thread::bind(cpu)?;
    let _ = ready.send(());
    let Some(pace) = pace else {
        while !signals.stop.load(Ordering::Relaxed) {
            spin_loop();
        }
        return Ok(Sent::default());
    };
    Ok(Stream::new(sockets, payload, pace, clock).send_until(signals))
}

/// An evenly spaced stream under way.
struct Stream<'sockets> {
    sockets: &'sockets [UdpSocket],
    pace: Pace,
    clock: Clock,
    payload: Vec<u8>,
    /// When number 0 of the present start was due, and how many came since.
    start_ns: u64,
    since_start: u64,
    /// All datagrams so far.
    number: u64,
    first_ns: Option<u64>,
    sent: Sent,
}

impl<'sockets> Stream<'sockets> {
    fn new(sockets: &'sockets [UdpSocket], payload: usize, pace: Pace, clock: Clock) -> Self {
        Stream {
            sockets,
            pace,
            clock,
            payload: vec![0; payload],
            start_ns: clock.now_ns(),
            since_start: 0,
            number: 0,
            first_ns: None,
            sent: Sent::default(),
        }
    }

    fn send_until(mut self, signals: &Signals) -> Sent {
        while !signals.stop.load(Ordering::Relaxed) {
            let due = self.start_ns + self.pace.due_ns(self.since_start);
            let now = self.spin_until(due);
            let measured = signals.measured.load(Ordering::Relaxed);
            let behind = now - due;
            self.send_one(now, measured);
            if measured {
                self.sent.late += u64::from(behind > self.pace.period_ns());
            }
            self.since_start += 1;
            if behind > MOST_BEHIND.as_nanos() as u64 {
                self.sent.restarts += u64::from(measured);
                (self.start_ns, self.since_start) = (now, 1);
            }
        }
        self.sent
    }

    /// Spins until `due`; the time then.
    fn spin_until(&self, due: u64) -> u64 {
        loop {
            let now = self.clock.now_ns();
            if now >= due {
                return now;
            }
            spin_loop();
        }
    }

    fn send_one(&mut self, now: u64, measured: bool) {
        let receivers = self.sockets.len() as u64;
        let purpose = if measured {
            Purpose::Measured
        } else {
            Purpose::Unmeasured
        };
        let datagram = Datagram {
            number: self.number / receivers,
            sent_ns: now,
            purpose,
        };
        datagram.write(&mut self.payload);
        let socket = &self.sockets[(self.number % receivers) as usize];
        let refused = socket.send(&self.payload).is_err();
        self.number += 1;
        if measured {
            let first = *self.first_ns.get_or_insert(now);
            self.sent.count += 1;
            self.sent.refused += u64::from(refused);
            self.sent.over_ns = now - first;
        }
    }
}

/// Tells the receiver behind `socket` that it may go. It may have no room: say it until it goes.
pub fn dismiss(socket: &UdpSocket, payload: usize) {
    let mut bytes = vec![0; payload];
    let last = Datagram {
        number: 0,
        sent_ns: 0,
        purpose: Purpose::Last,
    };
    last.write(&mut bytes);
    // A receiver that is gone already refuses, and that is fine.
    let _ = socket.send(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_counts_the_spaces_between_datagrams() {
        let sent = |count, over_ns| Sent {
            count,
            over_ns,
            ..Sent::default()
        };
        assert_eq!(sent(41, 1_000_000).kpps(), Some(40.0));
        assert_eq!(sent(1, 0).kpps(), None);
        assert_eq!(sent(0, 0).kpps(), None);
    }
}
