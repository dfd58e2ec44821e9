//! Chat: rooms of users who send messages to one another through a server, all on one machine.
//!
//! Each user has four threads, as in Chat 1.0.1. On the client's side one thread sends all its
//! messages and another receives those of the other users. On the server's side one thread reads
//! what the user sends and raises the user's semaphore; another lowers the semaphore and sends the
//! message to all other users in turn. Client and server are two processes; the threads of a
//! process share memory. A message counts when the server receives it and when each of the other
//! users does.

use std::rc::Rc;

use warmq_config::{Chosen, Setting};
use warmq_kernel::{
    Boot, ClosedEarly, Mm, Region, Semaphore, Socket, Task, TaskSpec, Touch, Workload,
};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, Cycles};

use crate::counter::{Counter, Counters};

/// The application number of chat's fragments.
const APP: u32 = 1;
const PAPER: &str = "coloring paper, how it was measured";

pub(crate) fn settings() -> Vec<Setting> {
    vec![
        Setting::count("rooms", (1, 10_000), 30, "rooms").says("chat rooms", PAPER),
        Setting::count("users", (1, 1_000), 20, "users").says("users in a room", PAPER),
        Setting::count("messages", (1, 1_000_000), 300, "messages")
            .says("messages that each user sends to its room", PAPER),
        Setting::bytes("size", (Bytes(1), Bytes::from_kb(64)), Bytes(100))
            .says("size of a message", PAPER),
        Setting::bytes(
            "buffer",
            (Bytes(256), Bytes::from_kb(1_024)),
            Bytes::from_kb(1),
        )
        .says(
            "receive buffer of a socket, in bytes of messages",
            "calibrated on what the coloring paper says of figure 10: how often threads wait for one \
             another, and so walk",
        ),
        Setting::count("work", (0, 100_000_000), 2_000, "cycles").says(
            "a thread's own work on a message",
            "assumed: the paper gives no figure",
        ),
        Setting::choice("fragments", &["none", "room"]).says(
            "the fragment that a thread names before it serves: none, or its room",
            "affinity paper: the fragment is the room",
        ),
    ]
}

pub(crate) struct Chat {
    rooms: u64,
    users: u64,
    messages: u64,
    size: Bytes,
    buffer: Bytes,
    work: Cycles,
    names_rooms: bool,
    delivered: Counter,
}

impl Chat {
    pub(crate) fn new(chosen: &Chosen, counters: &Counters) -> Chat {
        Chat {
            rooms: chosen.count("rooms"),
            users: chosen.count("users"),
            messages: chosen.count("messages"),
            size: chosen.bytes("size"),
            buffer: chosen.bytes("buffer"),
            work: Cycles(chosen.count("work")),
            names_rooms: chosen.choice("fragments") == "room",
            delivered: counters.counter("messages"),
        }
    }
}

/// The memory in which the server keeps a user's messages.
const MESSAGES: Bytes = Bytes::from_kb(4);

/// A user's connection to the server, and what the server keeps of the user.
struct User {
    near: Socket,
    far: Socket,
    /// Counts the messages read from the user that are still to be passed on.
    unread: Semaphore,
    messages: Region,
}

/// What the threads of a room share.
struct Room {
    users: Vec<User>,
    messages: u64,
    size: Bytes,
    work: Cycles,
    /// The fragment that its threads name, if any.
    fragment: Option<u32>,
    delivered: Counter,
}

impl Room {
    /// Names the room's fragment, before a thread uses its data.
    async fn enter(&self, task: &Task) {
        if let Some(fragment) = self.fragment {
            task.enter(APP, fragment).await;
        }
    }

    fn messages_to_each(&self) -> u64 {
        self.messages * (self.users.len() as u64 - 1)
    }

    /// Receives a whole message; an error says that the other end has closed the connection.
    async fn receive(&self, task: &Task, socket: Socket) -> Result<(), ClosedEarly> {
        task.receive_all(socket, self.size).await?;
        task.compute(self.work).await;
        self.delivered.add(1);
        Ok(())
    }

    async fn send(&self, task: &Task, socket: Socket) {
        task.compute(self.work).await;
        task.send(socket, self.size).await;
    }
}

async fn client_sends(task: Task, room: Rc<Room>, user: usize) {
    room.enter(&task).await;
    for _ in 0..room.messages {
        room.send(&task, room.users[user].near).await;
    }
}

async fn client_receives(task: Task, room: Rc<Room>, user: usize) {
    room.enter(&task).await;
    for _ in 0..room.messages_to_each() {
        if room.receive(&task, room.users[user].near).await.is_err() {
            return;
        }
    }
}

async fn server_reads(task: Task, room: Rc<Room>, user: usize) {
    room.enter(&task).await;
    let own = &room.users[user];
    for message in 0..room.messages {
        if room.receive(&task, own.far).await.is_err() {
            return;
        }
        task.touch(Touch::read(own.messages, message, 1).writing())
            .await;
        task.raise(own.unread).await;
    }
}

async fn server_writes(task: Task, room: Rc<Room>, user: usize) {
    room.enter(&task).await;
    let own = &room.users[user];
    for message in 0..room.messages {
        task.lower(own.unread).await;
        task.touch(Touch::read(own.messages, message, 1)).await;
        for (_, other) in room.users.iter().enumerate().filter(|(it, _)| *it != user) {
            room.send(&task, other.far).await;
        }
    }
}

/// One of a user's four threads.
#[derive(Clone, Copy)]
enum Part {
    Receiver,
    Writer,
    Reader,
    Sender,
}

/// A thread that is yet to be started.
struct Thread {
    part: Part,
    room: Rc<Room>,
    user: usize,
}

impl Thread {
    fn start(self, boot: &mut Boot<'_>, client: Mm, server: Mm) -> Result<(), OutOfMemory> {
        let Thread { part, room, user } = self;
        let spec = |name: &str, mm| TaskSpec::new(name, Some(mm));
        match part {
            Part::Receiver => boot.task(spec("receiver", client), move |task: Task| {
                client_receives(task, room, user)
            }),
            Part::Writer => boot.task(spec("writer", server), move |task: Task| {
                server_writes(task, room, user)
            }),
            Part::Reader => boot.task(spec("reader", server), move |task: Task| {
                server_reads(task, room, user)
            }),
            Part::Sender => boot.task(spec("sender", client), move |task: Task| {
                client_sends(task, room, user)
            }),
        }
        .map(|_| ())
    }
}

impl Chat {
    fn room(&self, boot: &mut Boot<'_>, number: u32) -> Result<Rc<Room>, OutOfMemory> {
        let semaphores = boot.semaphores(self.users as u32)?;
        let user = |unread| {
            let (near, far) = boot.socket_pair(self.buffer)?;
            Ok(User {
                near,
                far,
                unread,
                messages: boot.region(MESSAGES)?,
            })
        };
        Ok(Rc::new(Room {
            users: semaphores.into_iter().map(user).collect::<Result<_, _>>()?,
            messages: self.messages,
            size: self.size,
            work: self.work,
            fragment: self.names_rooms.then_some(number),
            delivered: self.delivered.clone(),
        }))
    }

    fn threads(&self, boot: &mut Boot<'_>) -> Result<Vec<Thread>, OutOfMemory> {
        let mut threads = Vec::new();
        for number in 0..self.rooms as u32 {
            let room = self.room(boot, number)?;
            for user in 0..self.users as usize {
                for part in [Part::Receiver, Part::Writer, Part::Reader, Part::Sender] {
                    let room = room.clone();
                    threads.push(Thread { part, room, user });
                }
            }
        }
        Ok(threads)
    }
}

impl Workload for Chat {
    /// Threads start in a random order, which also spreads them over the CPUs at random: in the
    /// order of users, threads of one kind would share a CPU wherever the CPUs are a multiple of
    /// four.
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        let (client, server) = (boot.mm(), boot.mm());
        let mut threads = self.threads(boot)?;
        boot.seed().stream("order of threads").shuffle(&mut threads);
        threads
            .into_iter()
            .try_for_each(|thread| thread.start(boot, client, server))
    }
}
