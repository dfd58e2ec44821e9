//! How a task begins and ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use warmq_scenario::program::{APP, Loops};

use super::{Datagram, Left, Performer};
use crate::error::PlayError;
use crate::specs::{attributes, group_number};
use crate::stage::Stage;
use crate::stage::slots::{Mark, TaskState};
use crate::stage::streams::Drawn;
use crate::sys::clock::{now_ns, thread_cpu_ns};
use crate::sys::{futex, memory, process, sched};

/// What a task sends from and receives into: larger amounts go in pieces of this size.
pub(super) const BUFFER: usize = 64 << 10;

/// Plays the task in slot `index` on this thread, from its first step to its last.
pub fn perform(stage: &'static Stage, index: u32) {
    let slot = stage.slots.of(index);
    slot.tid.store(process::tid(), Ordering::Relaxed);
    slot.pid.store(process::pid(), Ordering::Relaxed);
    slot.set_state(TaskState::Started);
    let played = catch_unwind(AssertUnwindSafe(|| play(stage, index)));
    match played {
        Ok(Ok(()) | Err(Left::Exits)) => {}
        Ok(Err(Left::Failed(error))) => stage.board.fail(&error),
        Err(_) => {
            let who = stage.name_of(slot);
            stage.board.fail(&PlayError::Ended(format!(
                "{who}: the player itself failed"
            )));
        }
    }
    let ran_ns = thread_cpu_ns().saturating_sub(slot.base_ns.load(Ordering::Relaxed));
    slot.ran_ns.store(ran_ns, Ordering::Relaxed);
    slot.set_state(TaskState::Ended);
    if stage.bound.is_awaited(stage.role(slot).0) {
        stage.board.leave(now_ns());
    }
}

/// Spin locks of CPUs that a task holds at a time without an allocation.
const HELD: usize = 8;

fn play(stage: &'static Stage, index: u32) -> Result<(), Left> {
    let mut performer = Performer::new(stage, index);
    performer.prepare()?;
    if (index as usize) < stage.first.len() {
        performer.wait_for_the_start();
    }
    let result = performer.life();
    performer.tell(Mark::Ends, sched::cpu().0.into(), 0);
    result
}

impl Performer {
    pub(super) fn new(stage: &'static Stage, index: u32) -> Performer {
        let slot = stage.slots.of(index);
        let (kind, number) = stage.role(slot);
        let program = &stage.programs[kind.0 as usize];
        let objects = |table: &warmq_scenario::ObjectId| stage.bound.objects(*table) as usize;
        Performer {
            stage,
            objects: stage.objects(),
            index,
            slot,
            kind,
            log: stage.slots.log(index),
            loops: Loops::new(&stage.bound.indexes_of_task(kind, number), program),
            streams: Drawn::new(&program.streams, stage.seed, (kind, number), &stage.streams),
            buffer: vec![0; if program.uses_buffer { BUFFER } else { 0 }],
            sender: None,
            began: 0,
            due: 0,
            timers: program
                .timers
                .iter()
                .map(|id| vec![0; objects(id)])
                .collect(),
            received: program
                .answered
                .iter()
                .map(|id| vec![Datagram::default(); objects(id)])
                .collect(),
            fragment_turn: 0,
            holds: Vec::with_capacity(HELD),
        }
    }

    /// Gives this thread its name, its CPUs and its way of being scheduled.
    fn prepare(&mut self) -> Result<(), PlayError> {
        let stage = self.stage;
        let (kind, number) = stage.role(self.slot);
        process::set_name(&stage.scenario().task(kind).name);
        sched::sharp_timers();
        let spec = stage.bound.spec(&stage.cpus, kind, number)?;
        if let Some(group) = spec.group {
            stage
                .groups
                .join(group_number(group))
                .map_err(|error| self.refused("its group", &error, GROUP))?;
        }
        if let Some(cpus) = &spec.cpus {
            let set = sched::set_affinity(0, cpus);
            set.map_err(|error| self.refused(&format!("`cpus` ({cpus})"), &error, CPUS))?;
        }
        let attributes = attributes(&spec);
        self.slot
            .slice_ns
            .store(attributes.slice_ns, Ordering::Relaxed);
        let set = attributes.apply(0);
        set.map_err(|error| self.refused("policy, nice value and slice", &error, POLICY))?;
        self.set_uclamp(spec.uclamp_min, spec.uclamp_max)?;
        if let Some(fragment) = spec.fragment {
            warmq_hint::enter(APP, fragment);
        }
        if (self.index as usize) < stage.first.len() {
            self.touch_memory();
        }
        Ok(())
    }

    pub(super) fn refused(&self, what: &str, error: &std::io::Error, fix: &str) -> PlayError {
        let who = self.stage.name_of(self.slot);
        PlayError::refused(format!("{who} does not get {what}"), error, fix)
    }

    /// Maps what this task writes, so that no step waits for a page.
    fn touch_memory(&mut self) {
        memory::populate(self.log.entries);
        self.buffer.fill(1);
        self.stage.slots.count(self.index, 0, 0);
    }

    fn wait_for_the_start(&self) {
        let stage = self.stage;
        let cpu_ns = thread_cpu_ns();
        self.slot.base_ns.store(cpu_ns, Ordering::Relaxed);
        stage.board.arrive(stage.arrivals());
        while self.slot.gate.load(Ordering::Acquire) == 0 {
            futex::wait(&self.slot.gate, 0, None);
        }
    }
}

pub(super) const GROUP: &str = "play it as root, or in a cgroup that is delegated to you";
pub(super) const CPUS: &str = "name CPUs that this machine has and that you may use";
pub(super) const POLICY: &str = "nice values below 0, fifo, rr and deadline need CAP_SYS_NICE, and fifo and rr \
                      in a group of cgroup v1 a cpu.rt_runtime_us: play it as root, without the group; a kernel \
                      admits a deadline (else: busy) while all of them want less of the CPUs than \
                      sched_rt_runtime_us leaves, and only of a task that may use all CPUs: ask for less, without \
                      `cpus`";
