//! One task of a scenario, from its first step to its last.

use std::collections::BTreeMap;
use std::rc::Rc;

use warmq_kernel::{GroupId, Mm, Sender, Span, Spinlock, Task};
use warmq_scenario::program::{
    APP, Drawn, Draws, Loops, Number, Op, Ops, Program, StreamOf, Which,
};
use warmq_scenario::{EvalError, SpanReference, TaskKindId};
use warmq_units::{Duration, Instant};

use super::row::Row;
use super::stage::{self, Stage};

/// Why a task leaves its steps.
#[derive(derive_more::From)]
pub(super) enum Left {
    /// It exits.
    Exits,
    /// A number could not be computed: the run is over.
    Error(EvalError),
}

/// Steps after which a task looks at the clock: if it has not moved meanwhile, the task makes no
/// progress. As many as the kernel allows operations at one point in time.
const STEPS_BETWEEN_LOOKS: u32 = 1_000_000;

/// What finds out a task whose steps take no time.
#[derive(Default)]
struct Pace {
    /// Steps since the last look.
    steps: u32,
    /// The time at the last look.
    looked: Option<Instant>,
}

/// What the threads of a process share, and what it passes on to those that it starts.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub(super) mm: Option<Mm>,
    /// The session that it is in.
    pub(super) autogroup: Option<GroupId>,
}

/// A task that is under way.
pub(super) struct Player {
    pub(super) task: Task,
    pub(super) stage: Rc<Stage>,
    pub(super) shared: Shared,
    pub(super) kind: TaskKindId,
    number: u64,
    pub(super) loops: Loops,
    /// When its first round began.
    pub(super) began: Instant,
    /// How far it is in what was recorded of it.
    pub(super) row: Row,
    /// When its round, or the last timer that it waited for, was due.
    pub(super) due: Instant,
    /// When its own timers expired last.
    pub(super) timers: BTreeMap<usize, Instant>,
    /// Who sent the datagram that it received last, by socket of those that it answers.
    pub(super) senders: BTreeMap<usize, Sender>,
    /// The spin locks of CPUs that it holds, each with the place of its set.
    pub(super) holds: Vec<(usize, Spinlock)>,
    pace: Pace,
    streams: stage::Drawn,
}

impl Player {
    pub(super) fn new(
        task: Task,
        stage: Rc<Stage>,
        kind: TaskKindId,
        number: u64,
        shared: Shared,
    ) -> Player {
        stage.starts(kind, number, task.id());
        let program = stage.program(kind);
        Player {
            loops: Loops::new(&stage.bound.indexes_of_task(kind, number), program),
            streams: Drawn::new(
                &program.streams,
                stage.seed,
                (kind, number),
                stage.shared.clone(),
            ),
            task,
            stage,
            shared,
            kind,
            number,
            began: Instant::START,
            row: Row::default(),
            timers: BTreeMap::new(),
            due: Instant::START,
            senders: BTreeMap::new(),
            holds: Vec::new(),
            pace: Pace::default(),
        }
    }

    /// Plays the task to its end.
    pub(super) async fn play(mut self) {
        if let Err(Left::Error(error)) = self.life().await {
            self.task.give_up(&error.to_string()).await;
        }
        self.stage.ends(self.kind, self.number, self.task.id());
    }

    async fn life(&mut self) -> Result<(), Left> {
        let stage = self.stage.clone();
        let program = stage.program(self.kind);
        if let Some(start) = &program.start {
            let start = Duration(self.draw(start)?);
            self.task.sleep(start).await;
        }
        let spec = stage.bound.spec(&stage.cpus, self.kind, self.number)?;
        if let Some(fragment) = spec.fragment {
            self.task.enter(APP, fragment).await;
        }
        self.began = self.task.now().await;
        self.run(&program.setup).await?;
        self.rounds(program).await
    }

    async fn rounds(&mut self, program: &Program) -> Result<(), Left> {
        let most = |number: &Option<Number>| {
            number
                .as_ref()
                .map_or(Ok(u64::MAX), |number| self.get(number))
        };
        let (times, end) = (most(&program.times)?, most(&program.end)?);
        let mut begins = self.task.now().await;
        self.began = begins;
        for _ in 0..times {
            self.due = begins;
            self.step_is_done().await;
            self.run(&program.body).await?;
            self.stage.count_round();
            if self.task.now().await.0 >= end {
                return Ok(());
            }
            if let Some(every) = &program.every {
                begins += Duration(self.draw(every)?);
                let now = self.task.now().await;
                if begins > now {
                    self.task.sleep(begins - now).await;
                }
            }
        }
        Ok(())
    }

    async fn run(&mut self, ops: &Ops) -> Result<(), Left> {
        let mut at = 0;
        while let Some(op) = ops.list.get(at) {
            self.step_is_done().await;
            at = match op {
                Op::Loop(edge) => self.loops.pass(edge, at, &self.stage.bound)?,
                Op::Do(step) => {
                    self.act(step).await?;
                    at + 1
                }
                Op::Row(row) => {
                    self.row(row).await?;
                    at + 1
                }
            };
        }
        Ok(())
    }

    /// Counts a step, and ends the run where many of them took no time.
    async fn step_is_done(&mut self) {
        self.pace.steps += 1;
        if self.pace.steps < STEPS_BETWEEN_LOOKS {
            return;
        }
        let now = self.task.now().await;
        if self.pace.looked == Some(now) {
            self.task.no_progress().await;
        }
        self.pace = Pace {
            steps: 0,
            looked: Some(now),
        };
    }

    /// Whether some step of it answers what comes to the sockets of the table of `socket`.
    pub(super) fn answers(&self, socket: &Which) -> bool {
        let program = self.stage.program(self.kind);
        program.answered.contains(&socket.table())
    }

    // Numbers and objects.

    pub(super) fn get(&self, number: &Number) -> Result<u64, EvalError> {
        number.get(&self.stage.bound, &self.loops.indexes)
    }

    pub(super) fn draw(&mut self, amount: &Draws) -> Result<u64, EvalError> {
        amount.next(&self.stage.bound, &self.loops.indexes, &mut self.streams)
    }

    /// A random number below `bound`.
    pub(super) fn random(&mut self, from: StreamOf, bound: u64) -> u64 {
        self.streams.with(from, |stream| stream.below(bound))
    }

    /// The place of the object that `which` names among all of its class.
    pub(super) fn place(&self, which: &Which) -> Result<usize, EvalError> {
        which.place(&self.stage.bound, &self.loops.indexes)
    }

    /// The span that `reference` names: this task's own, unless it has indexes.
    pub(super) fn span(&self, reference: &SpanReference) -> Result<Span, EvalError> {
        let (bound, task) = (&self.stage.bound, self.task.id().0);
        Ok(Span {
            span: reference.span.0,
            number: bound.span_number(reference, &self.loops.indexes, task)?,
        })
    }
}
