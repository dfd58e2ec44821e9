//! The client: two threads a user.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::compare::{APP_OF_CHAT, Limit, Placing, Usage};
use crate::error::BenchError;

use super::control::Order;
use super::gate::Gate;
use super::ledger::Ledger;
use super::message::{Message, now_ns};
use super::server::{STACK, no_thread};
use super::sockets;

/// What latencies are told apart: from 1 us to 1000 s, to two digits.
const LEAST_NS: u64 = 1_000;
const MOST_NS: u64 = 1_000_000_000_000;
const DIGITS: u8 = 2;

/// What the client saw.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    pub elapsed: Duration,
    pub usage: Usage,
    /// From a message's write to its read, of every message at every user, in ns.
    pub latency: Histogram<u64>,
    pub heard: u64,
}

/// A thread that receives, and gives the latencies.
type Reader<'scope> = ScopedJoinHandle<'scope, Histogram<u32>>;

/// How long it took, what was used, and who received.
type Timed<'scope> = ((Duration, Usage), Vec<Reader<'scope>>);

/// What all threads of the client share.
pub(super) struct Client {
    order: Order,
    placing: Placing,
    gate: Gate,
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// What the client waits for.
struct Waiting {
    /// The number of users who have not received everything.
    users: u32,
    failed: Option<BenchError>,
}

impl Client {
    pub(super) fn new(order: Order) -> Result<Client, BenchError> {
        sockets::allow(&order.case)?;
        let waiting = Waiting {
            users: order.case.all_users(),
            failed: None,
        };
        Ok(Client {
            order,
            placing: Placing::new(order.mode, APP_OF_CHAT)?,
            gate: Gate::default(),
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
        })
    }

    /// Connects everybody, waits until `ready` says that the server is, and lets all write. `None`
    /// where the time was up before everybody had received everything.
    pub(super) fn run(
        &self,
        port: u16,
        limit: &Limit,
        ready: impl FnOnce() -> Result<(), BenchError>,
    ) -> Result<Option<Delivered>, BenchError> {
        let mut streams = Vec::new();
        let timed = std::thread::scope(|scope| {
            let connected = self.connect(scope, port, limit, &mut streams);
            let timed = connected.and_then(|readers| self.chat(readers, limit, ready));
            self.gate.open(false);
            streams.iter().for_each(|stream| sockets::hang_up(stream));
            timed.map(|timed| timed.map(|(timed, readers)| (timed, merged(readers))))
        })?;
        Ok(timed.map(|((elapsed, usage), latency)| Delivered {
            elapsed,
            usage,
            latency,
            heard: self.placing.heard(),
        }))
    }

    fn connect<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        port: u16,
        limit: &Limit,
        streams: &mut Vec<Arc<TcpStream>>,
    ) -> Result<Option<Vec<Reader<'scope>>>, BenchError> {
        let case = self.order.case;
        let mut readers = Vec::new();
        for room in 0..case.rooms {
            for user in 0..case.users {
                if limit.is_over() {
                    return Ok(None);
                }
                let stream =
                    sockets::connect(port, self.order.token, room, user).map_err(no_way)?;
                streams.push(stream.clone());
                readers.push(self.start(scope, room, user, &stream)?);
            }
        }
        Ok(Some(readers))
    }

    /// The two threads of a user.
    fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        room: u32,
        user: u32,
        stream: &Arc<TcpStream>,
    ) -> Result<Reader<'scope>, BenchError> {
        let thread = |part: &str| {
            Builder::new()
                .name(format!("room-{room}-{part}"))
                .stack_size(STACK)
        };
        let to = stream.clone();
        let sends = move || {
            if let Err(error) = self.send(room, user, &to) {
                self.fail(error);
            }
        };
        thread("send")
            .spawn_scoped(scope, sends)
            .map_err(no_thread)?;
        let from = stream.clone();
        let receives = move || {
            let mut latency = histogram();
            match self.receive(room, &from, &mut latency) {
                Ok(()) => self.is_through(),
                Err(error) => self.fail(error),
            }
            latency
        };
        thread("receive")
            .spawn_scoped(scope, receives)
            .map_err(no_thread)
    }

    /// Lets all begin once the server is ready, and waits for the last of `readers`.
    fn chat<'scope>(
        &self,
        readers: Option<Vec<Reader<'scope>>>,
        limit: &Limit,
        ready: impl FnOnce() -> Result<(), BenchError>,
    ) -> Result<Option<Timed<'scope>>, BenchError> {
        let Some(readers) = readers else {
            return Ok(None);
        };
        ready()?;
        let (before, began) = (Usage::now()?, Instant::now());
        self.gate.open(true);
        let complete = self.wait(limit)?;
        let elapsed = began.elapsed();
        let usage = Usage::now()? - before;
        Ok(complete.then_some(((elapsed, usage), readers)))
    }

    fn send(&self, room: u32, user: u32, mut stream: &TcpStream) -> Result<(), BenchError> {
        let _placed = self.placing.enter(room)?;
        if !self.gate.pass() {
            return Ok(());
        }
        let mut bytes = vec![0; self.order.case.size as usize];
        for sequence in 0..self.order.case.messages {
            let sent_ns = now_ns();
            let message = Message {
                room,
                user,
                sequence,
                sent_ns,
            };
            message.write(&mut bytes);
            stream.write_all(&bytes).map_err(no_way)?;
        }
        Ok(())
    }

    fn receive(
        &self,
        room: u32,
        mut stream: &TcpStream,
        latency: &mut Histogram<u32>,
    ) -> Result<(), BenchError> {
        let _placed = self.placing.enter(room)?;
        let case = self.order.case;
        let mut ledger = Ledger::new(room, case.users, case.messages);
        let mut bytes = vec![0; case.size as usize];
        while ledger.left() > 0 {
            stream.read_exact(&mut bytes).map_err(no_way)?;
            let now = now_ns();
            let message = Message::read(&bytes).expect("the size was checked");
            let right = ledger.receive(&message);
            right.map_err(|surprise| BenchError::Astray(surprise.to_string()))?;
            latency.saturating_record(now.saturating_sub(message.sent_ns));
        }
        Ok(())
    }

    /// Waits until everybody has received everything; false where the time is up before.
    fn wait(&self, limit: &Limit) -> Result<bool, BenchError> {
        let mut waiting = self.waiting();
        while waiting.users > 0 {
            if let Some(error) = waiting.failed.take() {
                return Err(error);
            }
            let left = limit.left();
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.changed.wait_timeout(waiting, left);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(true)
    }

    fn is_through(&self) {
        self.waiting().users -= 1;
        self.changed.notify_one();
    }

    fn fail(&self, error: BenchError) {
        // Later failures are consequences of the first.
        self.waiting().failed.get_or_insert(error);
        self.changed.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(LEAST_NS, MOST_NS, DIGITS).expect("the bounds are in order")
}

fn merged(readers: Vec<Reader<'_>>) -> Histogram<u64> {
    let mut all = Histogram::new_with_bounds(LEAST_NS, MOST_NS, DIGITS).expect("as above");
    for reader in readers {
        let one = reader
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for same in one.iter_recorded() {
            all.saturating_record_n(same.value_iterated_to(), same.count_at_value().into());
        }
    }
    all
}

fn no_way(error: io::Error) -> BenchError {
    let fix = "see whether the loopback interface is up, and whether memory is left";
    BenchError::system("chat over the loopback", error, fix)
}
