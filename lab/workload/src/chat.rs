//! Chat: rooms of users who send messages to one another through a server, all on one machine.
//!
//! Each user has four threads: on the client's side one sends and one receives, on the server's
//! side one reads what the user sends and puts it into the queue of every user of the room, and
//! one writes what is in the user's queue. Two processes, threads of one sharing memory.

use std::cell::Cell;
use std::rc::Rc;

use warmq_config::{Chosen, Setting};
use warmq_kernel::{Boot, Condition, Mm, Mutex, Region, Socket, Task, TaskSpec, Touch, Workload};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, Cycles};

use crate::counter::{Counter, Counters};

/// The number by which chat's threads name their application.
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
            "the data that a thread names before it serves: nothing, or its room",
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

/// A user's queue on the server.
///
/// Invariant: `queued` changes only while `mutex` is held.
struct Queue {
    mutex: Mutex,
    filled: Condition,
    queued: Cell<u64>,
    memory: Region,
    added: Cell<u64>,
    removed: Cell<u64>,
}

impl Queue {
    fn new(boot: &mut Boot<'_>) -> Result<Queue, OutOfMemory> {
        Ok(Queue {
            mutex: boot.mutex(),
            filled: boot.condition(),
            queued: Cell::new(0),
            memory: boot.region(Bytes::from_kb(4))?,
            added: Cell::new(0),
            removed: Cell::new(0),
        })
    }

    async fn put(&self, task: &Task) {
        task.lock(self.mutex).await;
        let slot = self.added.replace(self.added.get() + 1);
        task.touch(Touch::read(self.memory, slot, 1).writing())
            .await;
        self.queued.set(self.queued.get() + 1);
        task.notify_one(self.filled).await;
        task.unlock(self.mutex).await;
    }

    async fn take(&self, task: &Task) {
        task.lock(self.mutex).await;
        while self.queued.get() == 0 {
            task.wait(self.filled, self.mutex).await;
        }
        self.queued.set(self.queued.get() - 1);
        let slot = self.removed.replace(self.removed.get() + 1);
        task.touch(Touch::read(self.memory, slot, 1)).await;
        task.unlock(self.mutex).await;
    }
}

/// What every thread of a room knows.
struct Room {
    queues: Vec<Queue>,
    messages: u64,
    size: Bytes,
    work: Cycles,
    /// The fragment that its threads name, if they name one.
    fragment: Option<u32>,
    delivered: Counter,
}

impl Room {
    /// A thread says which data it is about to use.
    async fn enter(&self, task: &Task) {
        if let Some(fragment) = self.fragment {
            task.enter(APP, fragment).await;
        }
    }

    fn messages_to_each(&self) -> u64 {
        self.messages * self.queues.len() as u64
    }
}

async fn client_sends(task: Task, room: Rc<Room>, socket: Socket) {
    room.enter(&task).await;
    for _ in 0..room.messages {
        task.compute(room.work).await;
        task.send(socket, room.size).await;
    }
}

async fn client_receives(task: Task, room: Rc<Room>, socket: Socket) {
    room.enter(&task).await;
    for _ in 0..room.messages_to_each() {
        if task.receive_all(socket, room.size).await.is_err() {
            return;
        }
        task.compute(room.work).await;
        room.delivered.add(1);
    }
}

async fn server_reads(task: Task, room: Rc<Room>, socket: Socket) {
    room.enter(&task).await;
    for _ in 0..room.messages {
        if task.receive_all(socket, room.size).await.is_err() {
            return;
        }
        for queue in &room.queues {
            task.compute(room.work).await;
            queue.put(&task).await;
        }
    }
}

async fn server_writes(task: Task, room: Rc<Room>, user: usize, socket: Socket) {
    room.enter(&task).await;
    for _ in 0..room.messages_to_each() {
        room.queues[user].take(&task).await;
        task.compute(room.work).await;
        task.send(socket, room.size).await;
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

/// A thread that is to be started.
struct Thread {
    part: Part,
    room: Rc<Room>,
    user: usize,
    near: Socket,
    far: Socket,
}

impl Thread {
    fn start(self, boot: &mut Boot<'_>, client: Mm, server: Mm) -> Result<(), OutOfMemory> {
        let Thread {
            part,
            room,
            user,
            near,
            far,
        } = self;
        let spec = |name: &str, mm| TaskSpec::new(name, Some(mm));
        match part {
            Part::Receiver => boot.task(spec("receiver", client), move |task: Task| {
                client_receives(task, room, near)
            }),
            Part::Writer => boot.task(spec("writer", server), move |task: Task| {
                server_writes(task, room, user, far)
            }),
            Part::Reader => boot.task(spec("reader", server), move |task: Task| {
                server_reads(task, room, far)
            }),
            Part::Sender => boot.task(spec("sender", client), move |task: Task| {
                client_sends(task, room, near)
            }),
        }
        .map(|_| ())
    }
}

impl Chat {
    fn room(&self, boot: &mut Boot<'_>, number: u32) -> Result<Rc<Room>, OutOfMemory> {
        let queues = (0..self.users)
            .map(|_| Queue::new(boot))
            .collect::<Result<_, _>>()?;
        Ok(Rc::new(Room {
            queues,
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
                let (near, far) = boot.socket_pair(self.buffer)?;
                for part in [Part::Receiver, Part::Writer, Part::Reader, Part::Sender] {
                    threads.push(Thread {
                        part,
                        room: room.clone(),
                        user,
                        near,
                        far,
                    });
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
