//! Random workloads that end: tasks that do a few operations each and never wait for nobody.

use std::rc::Rc;

use proptest::prelude::*;

use warmq_kernel::{
    Boot, Change, Condition, Mutex, Nic, Policy, Region, Reserved, Socket, Task, TaskSpec, Touch,
    Workload,
};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, CpuId, CpuSet, Cycles, Duration};

/// One thing that a task does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Computes for so many cycles.
    Compute(u64),
    /// Reads or writes lines of the memory that all tasks share.
    Touch {
        /// The first line.
        first: u64,
        /// How many.
        lines: u64,
        /// Lines from one access to the next.
        stride: u64,
        /// Whether they are written.
        write: bool,
    },
    /// Sleeps for so many microseconds.
    Sleep(u64),
    /// Yields the CPU.
    Yield,
    /// A mutex, held for so many cycles.
    Locked(usize, u64),
    /// Sends to a stream that an own task empties.
    Send(usize, u64),
    /// Wakes all that wait for the condition.
    NotifyAll,
    /// Creates a task that computes for so many cycles.
    Fork(u64),
    /// Sets its own nice value.
    Nice(i8),
    /// Names a fragment, or none.
    Enter(Option<u32>),
    /// To one CPU (modulo those there are), or back to all.
    Bind(Option<u16>),
    /// A CPU (modulo those there are) goes offline, or comes back.
    Online(u16, bool),
}

/// What a task is born with, and what it does.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it does, one after the other.
    pub acts: Vec<Act>,
    /// Its nice value.
    pub nice: i8,
    /// Its policy.
    pub policy: Policy,
    /// Whether it has an address space of its own.
    pub mm: bool,
}

/// Datagrams from another machine, and a task that receives them.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// How many there are.
    pub packets: u32,
    /// The payload of each.
    pub bytes: u64,
    /// Microseconds from one to the next.
    pub gap: u64,
    /// Packets that the card's ring holds.
    pub ring: usize,
    /// Bytes of the receive buffer.
    pub buffer: u64,
    /// Cycles that the receiver works on each.
    pub work: u64,
}

/// Every task is bound to one CPU, and begins late.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// The n-th task has CPU n + `rotation`, modulo those there are.
    pub rotation: u16,
    /// When the first task begins; each other one begins 1 ms later than the one before.
    pub begins: Duration,
}

/// A whole workload.
#[derive(Clone, Debug)]
pub struct Script {
    /// Its tasks.
    pub parts: Vec<Part>,
    /// Sizes of the streams' buffers.
    pub streams: Vec<u64>,
    /// Datagrams from another machine, if there are any.
    pub flood: Option<Flood>,
    /// Where tasks are bound, if they are.
    pub bound: Option<Bound>,
    /// All sleeps, gaps and links are so many times longer or slower. What takes cycles is not:
    /// that depends on the machine's clock.
    pub slower: u64,
}

const MUTEXES: usize = 2;

/// Any script.
pub fn scripts() -> impl Strategy<Value = Script> {
    let streams = prop::collection::vec(1u64..5_000, 1..4);
    let flood = prop::option::of(floods());
    (prop::collection::vec(parts(), 1..7), streams, flood).prop_map(|(parts, streams, flood)| {
        Script {
            parts,
            streams,
            flood,
            bound: None,
            slower: 1,
        }
    })
}

fn floods() -> impl Strategy<Value = Flood> {
    let rates = (1u32..300, 1u64..1_400, 0u64..500);
    (rates, 1usize..20, 1u64..20_000, 0u64..100_000).prop_map(
        |((packets, bytes, gap), ring, buffer, work)| Flood {
            packets,
            bytes,
            gap,
            ring,
            buffer,
            work,
        },
    )
}

fn parts() -> impl Strategy<Value = Part> {
    let policy = prop_oneof![
        8 => Just(Policy::Other),
        1 => Just(Policy::Batch),
        1 => (1u8..99).prop_map(Policy::Fifo),
        1 => (1u8..99).prop_map(Policy::RoundRobin),
        1 => (1u64..20, 0u64..20, 0u64..20).prop_map(reserved),
    ];
    (
        prop::collection::vec(acts(), 1..12),
        -20i8..20,
        policy,
        any::<bool>(),
    )
        .prop_map(|(acts, nice, policy, mm)| Part {
            acts: acts.into_iter().map(|act| briefly(act, policy)).collect(),
            nice,
            policy,
            mm,
        })
}

/// A runtime, how much later it is due, and how much after that the period ends, in ms.
fn reserved((runtime, later, after): (u64, u64, u64)) -> Policy {
    Policy::Deadline(Reserved {
        runtime: Duration::from_ms(runtime),
        deadline: Duration::from_ms(runtime + later),
        period: Duration::from_ms(runtime + later + after),
    })
}

/// Real-time tasks compute in short bursts, since nobody is promised anything beside them.
fn briefly(act: Act, policy: Policy) -> Act {
    match (act, policy) {
        (Act::Compute(cycles), Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline(_)) => {
            Act::Compute(cycles % 3_000_000)
        }
        (act, _) => act,
    }
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u64..3_000_000).prop_map(Act::Compute),
        1 => (0u64..60_000_000).prop_map(Act::Compute),
        2 => (0u64..500, 0u64..400, 0u64..40, any::<bool>())
            .prop_map(|(first, lines, stride, write)| Act::Touch { first, lines, stride, write }),
        2 => (0u64..25_000).prop_map(Act::Sleep),
        1 => Just(Act::Yield),
        3 => (0..MUTEXES, 0u64..200_000).prop_map(|(mutex, held)| Act::Locked(mutex, held)),
        4 => (0usize..4, 0u64..9_000).prop_map(|(stream, bytes)| Act::Send(stream, bytes)),
        1 => Just(Act::NotifyAll),
        1 => (0u64..500_000).prop_map(Act::Fork),
        1 => (-20i8..20).prop_map(Act::Nice),
        2 => prop::option::weighted(0.8, 0u32..4).prop_map(Act::Enter),
        1 => prop::option::of(0u16..8).prop_map(Act::Bind),
        1 => (0u16..8, any::<bool>()).prop_map(|(cpu, online)| Act::Online(cpu, online)),
    ]
}

/// What all tasks of a run share.
struct Things {
    cpus: u16,
    region: Region,
    mutexes: Vec<Mutex>,
    condition: Condition,
    streams: Vec<Socket>,
    slower: u64,
}

async fn perform(task: Task, acts: Vec<Act>, things: Rc<Things>, late: Duration) {
    begin(&task, late).await;
    for act in acts {
        match act {
            Act::Compute(cycles) => task.compute(Cycles(cycles)).await,
            Act::Touch {
                first,
                lines,
                stride,
                write,
            } => {
                let touch = Touch::read(things.region, first, lines).stride(stride);
                task.touch(if write { touch.writing() } else { touch })
                    .await;
            }
            Act::Sleep(us) => task.sleep(Duration::from_us(us * things.slower)).await,
            Act::Yield => task.yield_now().await,
            Act::Locked(mutex, held) => {
                task.lock(things.mutexes[mutex]).await;
                task.compute(Cycles(held)).await;
                task.unlock(things.mutexes[mutex]).await;
            }
            Act::Send(stream, bytes) => {
                let socket = things.streams[stream % things.streams.len()];
                task.send(socket, Bytes(bytes)).await;
            }
            Act::NotifyAll => task.notify_all(things.condition).await,
            Act::Fork(cycles) => {
                let child = move |child: Task| async move { child.compute(Cycles(cycles)).await };
                task.spawn(TaskSpec::new("child", None), child).await;
            }
            Act::Enter(Some(fragment)) => task.enter(0, fragment).await,
            Act::Enter(None) => task.leave().await,
            Act::Nice(nice) => _ = task.change(Change::Nice(task.id(), nice)).await,
            Act::Bind(to) => {
                let cpus = match to {
                    Some(cpu) => vec![CpuId(cpu % things.cpus)],
                    None => (0..things.cpus).map(CpuId).collect(),
                };
                task.change(Change::Affinity(task.id(), CpuSet::from_iter(cpus)))
                    .await;
            }
            Act::Online(cpu, online) => {
                task.change(Change::Online(CpuId(cpu % things.cpus), online))
                    .await;
            }
        }
    }
}

async fn begin(task: &Task, late: Duration) {
    if late > Duration::ZERO {
        task.sleep(late).await;
    }
}

impl Workload for Script {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        self.start_with(boot).map(|_| ())
    }
}

/// Hands out what the tasks of a script are born with, one after the other.
struct Births {
    bound: Option<Bound>,
    cpus: u16,
    born: u16,
}

impl Births {
    /// The next task: `spec`, bound where all are, and how late it begins.
    fn next(&mut self, spec: TaskSpec) -> (TaskSpec, Duration) {
        let index = self.born;
        self.born += 1;
        let Some(Bound { rotation, begins }) = self.bound else {
            return (spec, Duration::ZERO);
        };
        let late = begins + Duration::from_ms(index.into());
        let cpu = CpuId((index + rotation) % self.cpus);
        (spec.bound([cpu]), late)
    }
}

impl Script {
    /// Each stream has a task that empties it. One task waits for the condition again and again;
    /// another notifies it every tick, for ever, so that no run ends by a wait. The answer is where
    /// the datagrams of the flood go, if there is one.
    pub fn start_with(&self, boot: &mut Boot<'_>) -> Result<Option<(Nic, Socket)>, OutOfMemory> {
        let mm = boot.mm();
        let mut births = Births {
            bound: self.bound,
            cpus: boot.cpus(),
            born: 0,
        };
        let mut streams = Vec::new();
        for capacity in &self.streams {
            let (near, far) = boot.socket_pair(Bytes(*capacity))?;
            streams.push(near);
            let (spec, late) = births.next(TaskSpec::new("reader", Some(mm)));
            boot.task(spec, move |task: Task| async move {
                begin(&task, late).await;
                while task.receive(far, Bytes(2_000)).await.0 > 0 {
                    task.compute(Cycles(3_000)).await;
                }
            })?;
        }
        let things = Rc::new(Things {
            cpus: boot.cpus(),
            region: boot.region(Bytes::from_kb(16))?,
            mutexes: (0..MUTEXES).map(|_| boot.mutex()).collect(),
            condition: boot.condition(),
            streams,
            slower: self.slower,
        });
        self.start_bell(boot, &mut births, &things)?;
        for part in &self.parts {
            let (acts, things) = (part.acts.clone(), things.clone());
            let mm = part.mm.then(|| boot.mm());
            let spec = TaskSpec::new("part", mm)
                .nice(part.nice)
                .policy(part.policy);
            let (spec, late) = births.next(spec);
            boot.task(spec, move |task: Task| perform(task, acts, things, late))?;
        }
        let flood = self.flood.map(|flood| self.start_flood(boot, flood));
        flood.transpose()
    }

    fn start_bell(
        &self,
        boot: &mut Boot<'_>,
        births: &mut Births,
        things: &Things,
    ) -> Result<(), OutOfMemory> {
        let (mutex, condition) = (things.mutexes[0], things.condition);
        let (spec, late) = births.next(TaskSpec::new("waiter", None));
        boot.task(spec, move |task: Task| async move {
            begin(&task, late).await;
            loop {
                task.lock(mutex).await;
                task.wait(condition, mutex).await;
                task.unlock(mutex).await;
            }
        })?;
        let every = Duration::from_ms(10 * self.slower);
        let (spec, late) = births.next(TaskSpec::new("bell", None));
        boot.task(spec, move |task: Task| async move {
            begin(&task, late).await;
            loop {
                task.sleep(every).await;
                task.notify_all(condition).await;
            }
        })?;
        Ok(())
    }

    /// Datagrams come over a link of 100 Mbit/s, on which a datagram takes some 0.1 ms at most.
    fn start_flood(&self, boot: &mut Boot<'_>, flood: Flood) -> Result<(Nic, Socket), OutOfMemory> {
        let slower = self.slower;
        let delay = Duration::from_us(50 * slower);
        let nic = boot.nic_with_ring(100_000_000 / slower, delay, flood.ring);
        let socket = boot.datagram_socket(Bytes(flood.buffer))?;
        let receiver = TaskSpec::new("receiver", None);
        boot.task(receiver, move |task: Task| async move {
            loop {
                task.receive_datagram(socket).await;
                task.compute(Cycles(flood.work)).await;
            }
        })?;
        boot.remote(move |peer| async move {
            for _ in 0..flood.packets {
                peer.send_datagram(socket, nic, Bytes(flood.bytes)).await;
                peer.pause(Duration::from_us(flood.gap * slower)).await;
            }
        });
        Ok((nic, socket))
    }

    /// Tasks that all walk over the same memory again and again.
    #[allow(dead_code)] // not every test that reads this file needs it
    pub fn walkers(tasks: usize) -> Script {
        let walk = Act::Touch {
            first: 0,
            lines: 500,
            stride: 1,
            write: false,
        };
        let part = Part {
            acts: vec![walk; 200],
            nice: 0,
            policy: Policy::Other,
            mm: true,
        };
        Script {
            parts: vec![part; tasks],
            streams: vec![100],
            flood: None,
            bound: None,
            slower: 1,
        }
    }
}
