//! The server: two threads a user.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};

use crate::compare::{APP_OF_CHAT, Placing, Usage};
use crate::error::BenchError;

use super::control::{self, Account, Answer, Order};
use super::outbox::Outbox;
use super::sockets::{self, Caller, Guest};

/// A thread here calls next to nothing; thousands of them must fit.
pub(super) const STACK: usize = 128 << 10;

/// Bytes of messages that wait for a user, about.
const WAITING: usize = 64 << 10;

/// The most and the fewest messages that wait for a user.
const MOST_WAITING: usize = 128;
const FEWEST_WAITING: usize = 2;

/// Serves one run of the chat, as the client orders through `input`, and answers through `output`.
///
/// # Errors
/// What it could not do; the client has been told.
pub fn serve(input: impl Read + AsFd, output: &mut dyn Write) -> Result<(), BenchError> {
    let mut input = BufReader::new(input);
    let served = control::hear::<Order>(&mut input).and_then(|order| {
        let server = Server::new(order)?;
        server.run(&mut input, output)
    });
    match served {
        Ok(account) => control::say(output, &Answer::Ended(account)),
        Err(error) => {
            control::say(output, &Answer::Failed(error.to_string()))?;
            Err(error)
        }
    }
}

type Text = Arc<[u8]>;

/// What all threads of the server share.
struct Server {
    order: Order,
    placing: Placing,
    /// By room and user.
    outboxes: Vec<Vec<Outbox<Text>>>,
    connected: Mutex<Vec<Arc<TcpStream>>>,
    read: AtomicU64,
    written: AtomicU64,
    failed: Mutex<Option<BenchError>>,
}

impl Server {
    fn new(order: Order) -> Result<Server, BenchError> {
        sockets::allow(&order.case)?;
        let capacity =
            (WAITING / order.case.size.max(1) as usize).clamp(FEWEST_WAITING, MOST_WAITING);
        let room = |_| {
            (0..order.case.users)
                .map(|_| Outbox::new(capacity))
                .collect()
        };
        Ok(Server {
            order,
            placing: Placing::new(order.mode, APP_OF_CHAT)?,
            outboxes: (0..order.case.rooms).map(room).collect(),
            connected: Mutex::default(),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            failed: Mutex::default(),
        })
    }

    fn run<I: Read + AsFd>(
        &self,
        input: &mut BufReader<I>,
        output: &mut dyn Write,
    ) -> Result<Account, BenchError> {
        let before = std::thread::scope(|scope| {
            let before = self.open(scope, input.get_ref().as_fd(), output);
            if matches!(before, Ok(Some(_))) {
                control::wait_for_end(input);
            }
            // Also where not everybody came: those who did must not be waited for.
            self.close();
            before
        })?;
        if let Some(error) = self.failure().take() {
            return Err(error);
        }
        let Some(before) = before else {
            return Ok(Account::default());
        };
        Ok(Account {
            read: self.read.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            usage: Usage::now()? - before,
            heard: self.placing.heard(),
        })
    }

    /// Lets everybody in; answers what had been used up to then. `None` where the client gave up
    /// before all were in.
    fn open<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        client: BorrowedFd<'_>,
        output: &mut dyn Write,
    ) -> Result<Option<Usage>, BenchError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(unheard)?;
        let port = listener.local_addr().map_err(unheard)?.port();
        control::say(output, &Answer::Listening(port))?;
        let mut missing = self.order.case.all_users();
        while missing > 0 {
            match sockets::accept(&listener, client, self.order.token).map_err(unheard)? {
                Caller::Guest(guest) if self.outbox(guest.room, guest.user).is_some() => {
                    self.let_in(scope, guest)?;
                    missing -= 1;
                }
                Caller::Guest(_) | Caller::Stranger => {}
                Caller::Nobody => return Ok(None),
            }
        }
        let before = Usage::now()?;
        control::say(output, &Answer::Ready)?;
        Ok(Some(before))
    }

    fn let_in<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        guest: Guest,
    ) -> Result<(), BenchError> {
        self.streams().push(guest.stream.clone());
        let (room, user) = (guest.room, guest.user);
        let thread = |part: &str| {
            Builder::new()
                .name(format!("room-{room}-{part}"))
                .stack_size(STACK)
        };
        let stream = guest.stream.clone();
        let reader = move || self.settle(room, || self.read(room, user, &stream));
        thread("read")
            .spawn_scoped(scope, reader)
            .map_err(no_thread)?;
        let stream = guest.stream.clone();
        let writer = move || self.settle(room, || self.write(room, user, &stream));
        thread("write")
            .spawn_scoped(scope, writer)
            .map_err(no_thread)?;
        sockets::welcome(&guest).map_err(unheard)
    }

    /// Does `work` in the place of `room`.
    fn settle(&self, room: u32, work: impl FnOnce()) {
        match self.placing.enter(room) {
            Ok(_placed) => work(),
            Err(error) => {
                self.failure().get_or_insert(error);
                self.close();
            }
        }
    }

    /// Puts what a user sends into the outbox of everybody in the room, until he hangs up.
    fn read(&self, room: u32, user: u32, mut stream: &TcpStream) {
        let mut message = vec![0; self.order.case.size as usize];
        while stream.read_exact(&mut message).is_ok() {
            self.read.fetch_add(1, Ordering::Relaxed);
            let text = Text::from(message.as_slice());
            let room = &self.outboxes[room as usize];
            room.iter().for_each(|outbox| outbox.put(text.clone()));
        }
        self.outboxes[room as usize][user as usize].close();
    }

    /// Writes out a user's outbox, until it is closed.
    fn write(&self, room: u32, user: u32, mut stream: &TcpStream) {
        let outbox = &self.outboxes[room as usize][user as usize];
        while let Some(text) = outbox.take() {
            if stream.write_all(&text).is_err() {
                return outbox.close();
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn outbox(&self, room: u32, user: u32) -> Option<&Outbox<Text>> {
        self.outboxes.get(room as usize)?.get(user as usize)
    }

    fn close(&self) {
        self.streams()
            .iter()
            .for_each(|stream| sockets::hang_up(stream));
        self.outboxes.iter().flatten().for_each(Outbox::close);
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Vec<Arc<TcpStream>>> {
        self.connected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<BenchError>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unheard(error: io::Error) -> BenchError {
    let fix = "see whether the loopback interface is up";
    BenchError::system("let users in over the loopback", error, fix)
}

/// That there is no thread for a user.
pub(super) fn no_thread(error: io::Error) -> BenchError {
    let fix = "write fewer --rooms or --users, or allow more threads (ulimit -u)";
    BenchError::system("start the threads of a user", error, fix)
}
