//! What all processes of a run share: the plan, which each has a copy of, and the memory that they
//! all see.

#![allow(
    unsafe_code,
    reason = "says which types may lie in memory that processes share"
)]

pub mod board;
pub mod objects;
pub mod plan;
pub mod slots;
pub mod streams;

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use warmq_scenario::program::{Cpus, Planned, Program, SourceProgram};
use warmq_scenario::{Bound, Scenario, TaskKindId};
use warmq_units::Seed;

use crate::error::PlayError;
use crate::groups::Groups;
use crate::sessions::Sessions;
use crate::source::{Orders, SenderThread};
use crate::speed::Speed;
use board::Board;
use objects::Objects;
use slots::{SETUP, Slot, Slots, TaskState};
use streams::Streams;

/// A process of tasks that start by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The slots of its tasks.
    pub slots: Vec<u32>,
    /// The place of its session among [`Stage::sessions`]; none: that of the player.
    pub session: Option<usize>,
}

/// A run. It is made before any process is forked, and never dropped.
pub struct Stage {
    /// The scenario with values for its settings.
    pub bound: Bound,
    /// By table of tasks.
    pub programs: Vec<Program>,
    /// The CPUs that the run may use.
    pub cpus: Cpus,
    /// The line of their caches, in bytes.
    pub line: u64,
    /// How fast they are.
    pub speed: Speed,
    /// What makes this run differ from the next.
    pub seed: Seed,
    /// True if what tasks wait for is logged: a recorder sees them leave their CPUs.
    pub marks: bool,
    /// The tasks that start by themselves, in the order of their start; by slot.
    pub first: Vec<(TaskKindId, u64)>,
    /// Their processes.
    pub processes: Vec<Process>,
    /// The sources, by table.
    pub sources: Vec<SourceProgram>,
    /// What changes meanwhile.
    pub changes: Vec<Planned>,
    /// What changes say of each source.
    pub orders: &'static [Orders],
    /// The threads that send for sources.
    pub senders: Vec<SenderThread>,
    /// Where those threads are, and what they log; by thread.
    pub sender_slots: Slots,
    /// The socket of each of those threads, and its port: made by the crew, before it forks the
    /// tasks.
    pub sender_sockets: OnceLock<Vec<(i32, u16)>>,
    /// The cgroups.
    pub groups: Groups,
    /// The autogroups.
    pub sessions: Sessions,
    /// Files that were not there before the run: they go with it.
    pub new_files: Vec<String>,
    /// How it goes.
    pub board: &'static Board,
    /// The tasks.
    pub slots: Slots,
    /// The streams that tasks share.
    pub streams: Streams,
    /// The objects: made by the crew, before it forks the tasks.
    pub objects: OnceLock<Objects>,
}

/// The run of this process and of all that it forks.
static STAGE: OnceLock<&'static Stage> = OnceLock::new();

impl Stage {
    /// Makes this the run of this process.
    pub fn enter(self) -> &'static Stage {
        let stage: &'static Stage = Box::leak(Box::new(self));
        // A second run in one process has a stage of its own in the processes it forks.
        let _ = STAGE.set(stage);
        stage
    }

    /// The run of this process.
    pub fn current() -> Option<&'static Stage> {
        STAGE.get().copied()
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        self.bound.scenario()
    }

    /// The objects; none before they are made.
    pub fn objects(&self) -> &Objects {
        self.objects.get_or_init(Objects::default)
    }

    /// The sockets from which sources send.
    pub fn sender_sockets(&self) -> &[(i32, u16)] {
        self.sender_sockets.get().map_or(&[], Vec::as_slice)
    }

    /// Whether sources send from `port` of this machine.
    pub fn is_source(&self, port: u16) -> bool {
        self.sender_sockets().iter().any(|(_, own)| *own == port)
    }

    /// The id of a thread that sends for sources: those of tasks come first.
    pub fn sender_id(&self, index: u32) -> u32 {
        self.used() + index
    }

    /// How many wait for the start: the first tasks, and the threads of sources.
    pub fn arrivals(&self) -> u32 {
        (self.first.len() + self.senders.len()) as u32
    }

    /// A slot for a task that a step starts.
    ///
    /// # Errors
    /// All slots are taken.
    pub fn take_slot(&self, kind: TaskKindId, number: u64) -> Result<u32, PlayError> {
        let index = self.board.used.fetch_add(1, Ordering::AcqRel);
        if index as usize >= self.slots.len() {
            // Nobody may look for a slot that is not there.
            self.board.used.fetch_sub(1, Ordering::AcqRel);
            let key = &self.scenario().task(kind).key;
            let most = self.slots.len();
            return Err(PlayError::Ended(format!(
                "`{key}` cannot be started: {most} tasks were started, and there is room for no more"
            )));
        }
        let slot = self.slots.of(index);
        slot.table.store(kind.0, Ordering::Relaxed);
        slot.number.store(number, Ordering::Relaxed);
        Ok(index)
    }

    /// The tasks in `slots` are in process `pid`: they are known by name even if it dies at once.
    pub fn seat_in(&self, slots: &[u32], pid: i32) {
        let tasks = slots.iter().map(|slot| self.slots.of(*slot));
        tasks.for_each(|slot| slot.pid.store(pid, Ordering::Relaxed));
    }

    /// How many slots are taken.
    pub fn used(&self) -> u32 {
        let used = self.board.used.load(Ordering::Acquire);
        used.min(self.slots.len() as u32)
    }

    /// Every slot that is taken, with its number.
    pub fn tasks(&self) -> impl Iterator<Item = (u32, &'static Slot)> {
        (0..self.used()).map(|index| (index, self.slots.of(index)))
    }

    /// Removes the files that only the run needed.
    pub fn remove_files(&self) {
        for path in &self.new_files {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Which task of the scenario is in a slot.
    pub fn role(&self, slot: &Slot) -> (TaskKindId, u64) {
        let table = TaskKindId(slot.table.load(Ordering::Relaxed));
        (table, slot.number.load(Ordering::Relaxed))
    }

    /// What people call the task in a slot: `worker 3`.
    pub fn name_of(&self, slot: &Slot) -> String {
        let (table, number) = self.role(slot);
        let key = &self.scenario().task(table).key;
        match self.bound.tasks(table) {
            1 => format!("`{key}`"),
            _ => format!("`{key}` {number}"),
        }
    }

    /// Where tasks are that have not ended, for messages: at most ten of them.
    pub fn standing(&self) -> String {
        let alive = self
            .tasks()
            .filter(|(_, slot)| slot.state() == TaskState::Started);
        let mut said: Vec<String> = alive
            .map(|(_, slot)| {
                let (kind, _) = self.role(slot);
                let key = key_at(&self.programs[kind.0 as usize], slot.at());
                format!("{} at `{}`", self.name_of(slot), key.unwrap_or("its start"))
            })
            .collect();
        let more = said.len().saturating_sub(10);
        said.truncate(10);
        if more > 0 {
            said.push(format!("{more} more"));
        }
        said.join(", ")
    }
}

/// The key of the step of `program` at an op, as [`Slot::at`] has it.
fn key_at(program: &Program, at: u32) -> Option<&str> {
    let ops = match at & SETUP {
        0 => &program.body,
        _ => &program.setup,
    };
    let spot = ops.spots.get((at & !SETUP) as usize)?;
    Some(&spot.key)
}
