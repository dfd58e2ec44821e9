//! Random workloads that end: tasks that do a few operations each and never wait for nobody.

use std::rc::Rc;

use proptest::prelude::*;

use warmq_kernel::{
    Boot, Condition, Mutex, Policy, Region, Socket, Task, TaskSpec, Touch, Workload,
};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, CpuId, Cycles, Duration};

/// One thing that a task does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Compute(u64),
    Touch {
        first: u64,
        lines: u64,
        stride: u64,
        write: bool,
    },
    Sleep(u64),
    Yield,
    /// A mutex, held for so many cycles.
    Locked(usize, u64),
    /// Sends to a stream that an own task empties.
    Send(usize, u64),
    NotifyAll,
    Fork(u64),
    Nice(i8),
    /// Names a fragment, or none.
    Enter(Option<u32>),
    /// To one CPU (modulo those there are), or back to all.
    Bind(Option<u16>),
}

/// What a task is born with, and what it does.
#[derive(Clone, Debug)]
pub struct Part {
    pub acts: Vec<Act>,
    pub nice: i8,
    pub policy: Policy,
    pub mm: bool,
}

/// A whole workload.
#[derive(Clone, Debug)]
pub struct Script {
    pub parts: Vec<Part>,
    /// Sizes of the streams' buffers.
    pub streams: Vec<u64>,
}

const MUTEXES: usize = 2;

/// Any script.
pub fn scripts() -> impl Strategy<Value = Script> {
    let streams = prop::collection::vec(1u64..5_000, 1..4);
    (prop::collection::vec(parts(), 1..7), streams)
        .prop_map(|(parts, streams)| Script { parts, streams })
}

fn parts() -> impl Strategy<Value = Part> {
    let policy = prop_oneof![
        8 => Just(Policy::Other),
        1 => Just(Policy::Batch),
        1 => (1u8..99).prop_map(Policy::Fifo),
        1 => (1u8..99).prop_map(Policy::RoundRobin),
    ];
    (
        prop::collection::vec(acts(), 1..12),
        -20i8..20,
        policy,
        any::<bool>(),
    )
        .prop_map(|(acts, nice, policy, mm)| Part {
            acts,
            nice,
            policy,
            mm,
        })
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u64..3_000_000).prop_map(Act::Compute),
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
    ]
}

/// What all tasks of a run share.
struct Things {
    cpus: u16,
    region: Region,
    mutexes: Vec<Mutex>,
    condition: Condition,
    streams: Vec<Socket>,
}

async fn perform(task: Task, acts: Vec<Act>, things: Rc<Things>) {
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
            Act::Sleep(us) => task.sleep(Duration::from_us(us)).await,
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
            Act::Nice(nice) => task.set_nice(task.id(), nice).await,
            Act::Bind(to) => {
                let cpus = match to {
                    Some(cpu) => vec![CpuId(cpu % things.cpus)],
                    None => (0..things.cpus).map(CpuId).collect(),
                };
                task.set_affinity(task.id(), cpus).await;
            }
        }
    }
}

impl Workload for Script {
    /// Each stream has a task that empties it. One task waits for the condition again and again;
    /// another notifies it every tick, for ever, so that no run ends by a wait.
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        let mm = boot.mm();
        let mut streams = Vec::new();
        for capacity in &self.streams {
            let (near, far) = boot.socket_pair(Bytes(*capacity))?;
            streams.push(near);
            boot.task(
                TaskSpec::new("reader", Some(mm)),
                move |task: Task| async move {
                    while task.receive(far, Bytes(2_000)).await.0 > 0 {
                        task.compute(Cycles(3_000)).await;
                    }
                },
            )?;
        }
        let things = Rc::new(Things {
            cpus: boot.cpus(),
            region: boot.region(Bytes::from_kb(16))?,
            mutexes: (0..MUTEXES).map(|_| boot.mutex()).collect(),
            condition: boot.condition(),
            streams,
        });
        let (mutex, condition) = (things.mutexes[0], things.condition);
        boot.task(
            TaskSpec::new("waiter", None),
            move |task: Task| async move {
                loop {
                    task.lock(mutex).await;
                    task.wait(condition, mutex).await;
                    task.unlock(mutex).await;
                }
            },
        )?;
        boot.task(TaskSpec::new("bell", None), move |task: Task| async move {
            loop {
                task.sleep(Duration::from_ms(10)).await;
                task.notify_all(condition).await;
            }
        })?;
        for part in &self.parts {
            let (acts, things) = (part.acts.clone(), things.clone());
            let mm = part.mm.then(|| boot.mm());
            let spec = TaskSpec::new("part", mm)
                .nice(part.nice)
                .policy(part.policy);
            boot.task(spec, move |task: Task| perform(task, acts, things))?;
        }
        Ok(())
    }
}

impl Script {
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
        }
    }
}
