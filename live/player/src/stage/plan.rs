//! What is decided before anything is made: who starts when and in which process, and how much room
//! there is.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::Ordering as Memory;

use warmq_scenario::program::{Compiled, Cpus, Program};
use warmq_scenario::{Bound, EvalError, ObjectKind, TaskKindId};
use warmq_units::Seed;

use super::board::Board;
use super::slots::{Entry, Room, Slots};
use super::streams::Streams;
use super::{Process, Stage};
use crate::error::PlayError;
use crate::groups::Groups;
use crate::program::{in_rounds, logs};
use crate::sessions::Sessions;
use crate::source::{self, SenderThread};
use crate::specs::group_number;
use crate::speed::Speed;
use crate::sys::memory::shared;

/// What a run is made from.
pub struct Wanted {
    /// The scenario with values for its settings.
    pub bound: Bound,
    /// What makes this run differ from the next.
    pub seed: Seed,
    /// The CPUs that it may use.
    pub cpus: Cpus,
    /// The line of their caches, in bytes.
    pub line: u64,
    /// How fast they are.
    pub speed: Speed,
    /// Memory for the logs of tasks, in bytes.
    pub log_bytes: u64,
    /// True if what tasks wait for is logged.
    pub marks: bool,
    /// The cgroups.
    pub groups: Groups,
    /// The autogroups.
    pub sessions: Sessions,
}

/// Tasks that steps can start in one run.
const MORE: u32 = 1 << 16;
/// Entries of the log of a task that a step starts.
const ENTRIES_OF_MORE: u32 = 1 << 10;
/// Entries of the log of a task whose steps log nothing: its end, and changes of its fragment.
const FEW: u32 = 1 << 7;
/// The most entries of the log of a task.
const MOST: u64 = 1 << 22;

impl Stage {
    /// Decides everything about a run.
    ///
    /// # Errors
    /// A number that cannot be computed, or no memory.
    pub fn plan(wanted: Wanted) -> Result<Stage, PlayError> {
        let (bound, seed, speed) = (&wanted.bound, wanted.seed, wanted.speed);
        let first = bound.first_tasks(seed);
        let processes = processes(bound, &wanted.cpus, &first, &wanted.sessions)?;
        let changes = bound.planned(&wanted.cpus)?;
        let Compiled {
            tasks: mut programs,
            sources,
            shared: names,
        } = bound.compile();
        programs
            .iter_mut()
            .for_each(|program| in_rounds(program, speed));
        let spawns = bound.scenario().tasks().iter().any(|kind| kind.spawned);
        let senders = source::plan(bound, &wanted.cpus, &sources, &changes)?;
        let (of_tasks, of_senders) = log_entries(&first, &programs, &senders, &wanted);
        let all_sources = sources
            .iter()
            .map(|source| bound.objects(source.id) as usize)
            .sum();
        let room = Room {
            first: of_tasks,
            more: if spawns { MORE } else { 0 },
            counters: bound.scenario().counters().len() + 1,
            entries_of_more: ENTRIES_OF_MORE,
        };
        let no_memory = |error| {
            let fix = "play fewer tasks, or give a smaller --log";
            PlayError::refused("memory for the tasks cannot be mapped", &error, fix)
        };
        let new_files = new_files(bound);
        let board: &'static [Board] = shared(1).map_err(no_memory)?;
        let stage = Stage {
            streams: Streams::new(&names, seed).map_err(no_memory)?,
            slots: Slots::new(room).map_err(no_memory)?,
            board: &board[0],
            bound: wanted.bound,
            programs,
            sources,
            orders: shared(all_sources).map_err(no_memory)?,
            sender_slots: Slots::new(Room {
                first: of_senders,
                ..Room::default()
            })
            .map_err(no_memory)?,
            senders,
            sender_sockets: OnceLock::new(),
            cpus: wanted.cpus,
            line: wanted.line,
            changes,
            speed,
            seed,
            marks: wanted.marks,
            first,
            processes,
            groups: wanted.groups,
            sessions: wanted.sessions,
            new_files,
            objects: OnceLock::new(),
        };
        stage.seat();
        Ok(stage)
    }

    /// Gives the first tasks their slots.
    fn seat(&self) {
        for (index, (kind, number)) in (0..).zip(&self.first) {
            let slot = self.slots.of(index);
            slot.table.store(kind.0, Memory::Relaxed);
            slot.number.store(*number, Memory::Relaxed);
        }
        let is_awaited = |(kind, _): &&(TaskKindId, u64)| self.bound.is_awaited(*kind);
        let awaited = self.first.iter().filter(is_awaited).count() as u32;
        let all = self.first.len() as u32;
        self.board.used.store(all, Memory::Release);
        self.board.awaited.store(awaited, Memory::Release);
    }
}

/// How many entries the logs of the first tasks have, and those of the threads of sources: those
/// that log share the memory.
fn log_entries(
    first: &[(TaskKindId, u64)],
    programs: &[Program],
    senders: &[SenderThread],
    wanted: &Wanted,
) -> (Vec<u32>, Vec<u32>) {
    let tasks = first.iter();
    let tasks = tasks.map(|(kind, _)| logs(&programs[kind.0 as usize], wanted.marks));
    let tasks: Vec<bool> = tasks.collect();
    let senders: Vec<bool> = senders.iter().map(|sender| sender.echoes).collect();
    let sharing = tasks.iter().chain(&senders).filter(|logs| **logs).count();
    let share = wanted.log_bytes / size_of::<Entry>() as u64 / sharing.max(1) as u64;
    let share = share.clamp(FEW.into(), MOST) as u32;
    let of = |logs: bool| if logs { share } else { FEW };
    let entries = |all: Vec<bool>| all.into_iter().map(of).collect();
    (entries(tasks), entries(senders))
}

/// The files that tasks write to and that are not there yet.
fn new_files(bound: &Bound) -> Vec<String> {
    let objects = bound.scenario().objects().iter();
    let paths = objects.filter_map(|object| match &object.kind {
        ObjectKind::File { path } => Some(path),
        _ => None,
    });
    // A link that leads nowhere is there: it is not this run's.
    let is_new = |path: &&String| std::fs::symlink_metadata(path).is_err();
    paths.filter(is_new).cloned().collect()
}

/// The processes, in the order of their first tasks. All tasks of one are in the same session: the
/// scenario was checked for that.
fn processes(
    bound: &Bound,
    cpus: &Cpus,
    first: &[(TaskKindId, u64)],
    sessions: &Sessions,
) -> Result<Vec<Process>, EvalError> {
    let mut processes: Vec<Process> = Vec::new();
    let mut named = BTreeMap::new();
    for (slot, (kind, number)) in (0..).zip(first) {
        let spec = bound.spec(cpus, *kind, *number)?;
        let next = processes.len();
        let named = spec
            .process
            .map(|process| *named.entry(process).or_insert(next));
        match processes.get_mut(named.unwrap_or(next)) {
            Some(process) => process.slots.push(slot),
            None => processes.push(Process {
                slots: vec![slot],
                session: spec
                    .group
                    .and_then(|group| sessions.place_of(group_number(group))),
            }),
        }
    }
    Ok(processes)
}
