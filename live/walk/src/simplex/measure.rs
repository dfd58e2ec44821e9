//! One measurement: Simplex beside receivers.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use warmq_units::CpuId;

use super::clock::Clock;
use super::cpus::Cpus;
use super::link::Link;
use super::pace::Pace;
use super::policy::Policy;
use super::receiver::{Received, receive};
use super::sender::{Sent, Signals, dismiss, send};
use super::work::{Done, Work};
use crate::error::BenchError;

/// The stream runs for so long before Simplex begins.
const WARM_UP: Duration = Duration::from_millis(60);
/// Between two times that the receivers are told to go.
const DISMISSAL: Duration = Duration::from_millis(2);

/// What is the same in all measurements.
#[derive(Debug)]
pub struct Bench<'link> {
    /// Where everybody runs.
    pub cpus: Cpus,
    /// What lies between them.
    pub link: &'link Link,
    /// What Simplex does.
    pub work: Work,
    /// How many receive.
    pub receivers: u32,
    /// Bytes in a datagram.
    pub payload: usize,
}

/// What one measurement saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of Simplex.
    pub done: Done,
    /// Of the sender.
    pub sent: Sent,
    /// Of each receiver.
    pub received: Vec<Received>,
}

impl Bench<'_> {
    /// Lets Simplex work beside receivers under `policy` that get datagrams at `pace`, or none; for
    /// `limit` at most.
    ///
    /// # Errors
    /// What a thread or a socket answers.
    pub fn measure(
        &self,
        policy: Policy,
        pace: Option<Pace>,
        limit: Duration,
    ) -> Result<Seen, BenchError> {
        let receiving: Vec<UdpSocket> = (0..self.receivers)
            .map(|_| self.link.receiving())
            .collect::<Result<_, _>>()?;
        let sending: Vec<UdpSocket> = receiving
            .iter()
            .map(|socket| self.link.sending_to(socket))
            .collect::<Result<_, _>>()?;
        let (clock, signals) = (Clock::start(), Signals::default());
        thread::scope(|scope| {
            let (ready, all_ready) = mpsc::channel();
            let receivers: Vec<Running<'_, Received>> = receiving
                .iter()
                .map(|socket| {
                    let ready = ready.clone();
                    scope.spawn(move || receive(socket, self.cpus.receiver, policy, clock, &ready))
                })
                .collect();
            let (sockets, told) = (&sending[..], &signals);
            let (payload, cpu) = (self.payload, self.cpus.sender);
            let sender =
                scope.spawn(move || send(sockets, payload, pace, cpu, clock, told, &ready));
            // Whoever failed dropped its end: then fewer are ready, and the join tells why.
            let complete = all_ready.iter().take(receivers.len() + 1).count() > receivers.len();
            let done = complete.then(|| self.work_beside(scope, clock, limit, told));
            signals.stop.store(true, Ordering::Relaxed);
            let sent = join(sender);
            let received = dismissed(receivers, &sending, self.payload);
            let (sent, received) = (sent?, received?);
            let done = done.unwrap_or_else(|| Err(vanished()))?;
            Ok(Seen {
                done,
                sent,
                received,
            })
        })
    }

    fn work_beside<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        clock: Clock,
        limit: Duration,
        signals: &'scope Signals,
    ) -> Result<Done, BenchError> {
        thread::sleep(WARM_UP);
        let (work, cpu) = (self.work, self.cpus.receiver);
        join(scope.spawn(move || simplex(work, cpu, clock, limit, signals)))
    }
}

/// Does the work on `cpu`, and says meanwhile that it counts.
fn simplex(
    work: Work,
    cpu: CpuId,
    clock: Clock,
    limit: Duration,
    signals: &Signals,
) -> Result<Done, BenchError> {
    crate::thread::bind(cpu)?;
    signals.measured.store(true, Ordering::Relaxed);
    let done = work.act(clock, limit);
    signals.measured.store(false, Ordering::Relaxed);
    Ok(done)
}

/// A thread of a measurement.
type Running<'scope, T> = ScopedJoinHandle<'scope, Result<T, BenchError>>;

fn join<T>(running: Running<'_, T>) -> Result<T, BenchError> {
    let joined = running.join();
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Sends the receivers away, however full their sockets are, and takes what they saw.
fn dismissed(
    receivers: Vec<Running<'_, Received>>,
    sending: &[UdpSocket],
    payload: usize,
) -> Result<Vec<Received>, BenchError> {
    while !receivers.iter().all(ScopedJoinHandle::is_finished) {
        sending.iter().for_each(|socket| dismiss(socket, payload));
        thread::sleep(DISMISSAL);
    }
    receivers.into_iter().map(join).collect()
}

/// Threads that fail say why; this is for one that does not.
fn vanished() -> BenchError {
    BenchError::System {
        action: "start sender and receivers".to_owned(),
        source: std::io::Error::other("one of them ended early"),
        fix: "try again",
    }
}

impl Work {
    /// As much as `cpu` does in `time`; measured in a thread there.
    ///
    /// # Errors
    /// When no thread can be pinned there.
    pub fn calibrated(cpu: CpuId, time: Duration) -> Result<Work, BenchError> {
        let calibrate = || {
            crate::thread::bind(cpu)?;
            Ok(Work::lasting(time))
        };
        thread::scope(|scope| join(scope.spawn(calibrate)))
    }
}
