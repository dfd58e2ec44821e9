//! One task of a scenario, from its first step to its last.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use warmq_kernel::{Condition, GroupId, Mm, Mutex, Semaphore, Sender, Span, Task};
use warmq_scenario::{
    Amount, Draw, EvalError, Expr, Indexes, ObjectId, Reference, SpanReference, StreamName,
    TaskKindId,
};
use warmq_units::{Duration, Instant, Stream};

use super::clocks::OwnTimers;
use super::objects::Made;
use super::program::{Op, Program};
use super::row::Row;
use super::specs::APP;
use super::stage::Stage;

/// Why a task leaves its steps.
pub(super) enum Left {
    /// It exits.
    Exits,
    /// A number could not be computed: the run is over.
    Error(EvalError),
}

impl From<EvalError> for Left {
    fn from(error: EvalError) -> Left {
        Left::Error(error)
    }
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

/// A loop that is under way; its counter is the last index.
struct Loop {
    times: u64,
    except: Option<u64>,
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
    /// Those of the task, then a counter for each loop that is under way.
    pub(super) indexes: Indexes,
    loops: Vec<Loop>,
    /// When its first round began.
    pub(super) began: Instant,
    /// How far it is in what was recorded of it.
    pub(super) row: Row,
    /// When its own timers expired last.
    pub(super) timers: OwnTimers,
    /// Who sent the datagram that it received last, by socket of those that it answers.
    pub(super) senders: BTreeMap<(ObjectId, usize), Sender>,
    pace: Pace,
    /// The streams that it has drawn from.
    streams: Vec<(StreamName, Rc<RefCell<Stream>>)>,
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
        Player {
            indexes: stage.bound.indexes_of_task(kind, number),
            task,
            stage,
            shared,
            kind,
            number,
            loops: Vec::new(),
            began: Instant::START,
            row: Row::default(),
            timers: OwnTimers::default(),
            senders: BTreeMap::new(),
            pace: Pace::default(),
            streams: Vec::new(),
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
        let kind = stage.scenario().task(self.kind);
        if let Some(start) = &kind.start {
            let start = Duration(self.draw(start)?);
            self.task.sleep(start).await;
        }
        if let Some(fragment) = &kind.fragment {
            let fragment = self.eval(fragment)? as u32;
            self.task.enter(APP, fragment).await;
        }
        self.began = self.task.now().await;
        self.run(&stage.programs(self.kind).setup).await?;
        self.rounds(&stage).await
    }

    async fn rounds(&mut self, stage: &Stage) -> Result<(), Left> {
        let kind = stage.scenario().task(self.kind);
        let times = match &kind.times {
            Some(times) => self.eval(times)?,
            None => u64::MAX,
        };
        let end = match &kind.end {
            Some(end) => self.eval(end)?,
            None => u64::MAX,
        };
        let mut begins = self.task.now().await;
        self.began = begins;
        for _ in 0..times {
            self.step_is_done().await;
            self.run(&stage.programs(self.kind).body).await?;
            stage.count_round();
            if self.task.now().await.0 >= end {
                return Ok(());
            }
            if let Some(every) = &kind.every {
                begins += Duration(self.draw(every)?);
                let now = self.task.now().await;
                if begins > now {
                    self.task.sleep(begins - now).await;
                }
            }
        }
        Ok(())
    }

    async fn run(&mut self, program: &Program) -> Result<(), Left> {
        let mut at = 0;
        while let Some(op) = program.ops.get(at) {
            at += 1;
            self.step_is_done().await;
            match op {
                Op::Do(action) => self.act(action).await?,
                Op::Row {
                    moments,
                    parts,
                    actions,
                } => self.row(moments, parts, actions).await?,
                Op::Repeat {
                    times,
                    except,
                    after,
                } => {
                    let times = self.eval(times)?;
                    let except = except.as_ref().map(|it| self.eval(it)).transpose()?;
                    self.loops.push(Loop { times, except });
                    self.indexes.push(0);
                    if !self.enters() {
                        at = *after;
                    }
                }
                Op::Again { first } => {
                    self.count();
                    if self.enters() {
                        at = *first;
                    }
                }
            }
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

    /// The counter of the innermost loop.
    fn count(&mut self) -> u64 {
        let counter = self.indexes.last_mut().expect("a loop is under way");
        *counter += 1;
        *counter
    }

    /// Whether the innermost loop has another round; leaves the loop if not.
    fn enters(&mut self) -> bool {
        let inner = self.loops.last().expect("a loop is under way");
        let (times, except) = (inner.times, inner.except);
        let counter = match self.indexes.last().copied() {
            left_out if left_out == except => self.count(),
            counter => counter.unwrap_or(0),
        };
        if counter >= times {
            self.loops.pop();
            self.indexes.pop();
        }
        counter < times
    }

    /// Whether some step of it answers what comes to the sockets of table `id`.
    pub(super) fn answers(&self, id: ObjectId) -> bool {
        self.stage.programs(self.kind).answered.contains(&id)
    }

    // Numbers and objects.

    pub(super) fn eval(&self, expr: &Expr) -> Result<u64, EvalError> {
        self.stage.bound.eval(expr, &self.indexes)
    }

    pub(super) fn draw(&mut self, amount: &Amount) -> Result<u64, EvalError> {
        // Most amounts are constant: they need no stream, which takes longer to find.
        if let Draw::Constant(value) = &amount.draw {
            return self.eval(value);
        }
        let stream = self.stream(&amount.stream);
        let stream = &mut stream.borrow_mut();
        self.stage.bound.draw(amount, &self.indexes, stream)
    }

    fn stream(&mut self, name: &StreamName) -> Rc<RefCell<Stream>> {
        if let Some((_, stream)) = self.streams.iter().find(|(known, _)| known == name) {
            return stream.clone();
        }
        let stream = self.stage.stream(name, self.kind, self.number);
        self.streams.push((name.clone(), stream.clone()));
        stream
    }

    /// A random number below `bound`, for what the scenario names no stream.
    pub(super) fn random(&mut self, bound: u64) -> u64 {
        let name = StreamName::OfStep("touch".to_owned());
        self.stream(&name).borrow_mut().below(bound)
    }

    /// Which of its table `reference` names.
    pub(super) fn number(&self, reference: &Reference) -> Result<usize, EvalError> {
        let number = self.stage.bound.object_number(reference, &self.indexes)?;
        Ok(number as usize)
    }

    /// The span that `reference` names: this task's own, unless it has indexes.
    pub(super) fn span(&self, reference: &SpanReference) -> Result<Span, EvalError> {
        let (bound, task) = (&self.stage.bound, self.task.id().0);
        Ok(Span {
            span: reference.span.0,
            number: bound.span_number(reference, &self.indexes, task)?,
        })
    }

    pub(super) fn mutex(&self, reference: &Reference) -> Result<Mutex, EvalError> {
        match self.stage.made(reference) {
            Made::Mutexes(made) => Ok(made[self.number(reference)?]),
            _ => unreachable!("the reader resolves mutexes to mutexes"),
        }
    }

    pub(super) fn condition(&self, reference: &Reference) -> Result<Condition, EvalError> {
        match self.stage.made(reference) {
            Made::Conditions(made) => Ok(made[self.number(reference)?]),
            _ => unreachable!("the reader resolves conditions to conditions"),
        }
    }

    pub(super) fn semaphore(&self, reference: &Reference) -> Result<Semaphore, EvalError> {
        match self.stage.made(reference) {
            Made::Semaphores(made) => Ok(made[self.number(reference)?]),
            _ => unreachable!("the reader resolves semaphores to semaphores"),
        }
    }
}
