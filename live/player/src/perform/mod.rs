//! A task: a thread that does the steps of its program until it is stopped.

mod act;
mod birth;
mod clocks;
mod start;
mod touch;

pub use birth::perform;
pub use start::{STACK, thread_of_slot};
pub use touch::populate_regions;

use warmq_scenario::{EvalError, Expr, TaskKindId};
use warmq_trace::Cause;
use warmq_units::Stream;

use crate::error::PlayError;
use crate::program::{Draws, Number, Op, Ops, StreamOf, Which};
use crate::source::Stamp;
use crate::stage::Stage;
use crate::stage::slots::{Log, Logged, Mark, SETUP, Slot};
use crate::sys::clock::{now_ns, sleep_until_ns};

const PS_PER_NS: u64 = 1_000;

/// Why a task leaves its steps.
enum Left {
    /// It exits.
    Exits,
    /// It cannot go on: the run is over.
    Failed(PlayError),
}

impl From<EvalError> for Left {
    fn from(error: EvalError) -> Left {
        Left::Failed(PlayError::Ended(error.to_string()))
    }
}

impl From<PlayError> for Left {
    fn from(error: PlayError) -> Left {
        Left::Failed(error)
    }
}

/// A loop that is under way; its counter is the last index.
struct Loop {
    times: u64,
    except: Option<u64>,
}

/// A datagram that was received.
#[derive(Clone, Copy, Debug, Default)]
struct Datagram {
    /// The port that it came from; 0 for none.
    port: u16,
    /// Its first bytes: a source's number and time.
    stamp: Stamp,
}

/// A task that is under way. Everything is allocated before it begins.
struct Performer {
    stage: &'static Stage,
    /// Its slot, which is also its id in the trace.
    index: u32,
    slot: &'static Slot,
    kind: TaskKindId,
    log: Log,
    /// Those of the task, then a counter for each loop that is under way.
    indexes: Vec<u64>,
    loops: Vec<Loop>,
    /// Its own streams.
    streams: Vec<Stream>,
    /// What it sends from and receives into.
    buffer: Vec<u8>,
    /// A socket to send datagrams from; opened by who needs it.
    sender: Option<i32>,
    /// When its first round began; before that, when it began.
    began: u64,
    /// When its own timers expired last: those of each table of [`Program::timers`], 0 for never.
    ///
    /// [`Program::timers`]: crate::program::Program::timers
    timers: Vec<Vec<u64>>,
    /// What came last on each socket that it answers, by table of
    /// [`Program::answered`](crate::program::Program::answered).
    received: Vec<Vec<Datagram>>,
    /// The last request for a fragment that it has followed.
    fragment_turn: u32,
}

impl Performer {
    fn life(&mut self) -> Result<(), Left> {
        let program = &self.stage.programs[self.kind.0 as usize];
        if let Some(start) = &program.start {
            let start = self.draw(start)? / PS_PER_NS;
            self.sleep_until(self.start_ns() + start);
        }
        self.began = now_ns();
        self.run(&program.setup, SETUP)?;
        self.rounds()
    }

    /// When the run began.
    fn start_ns(&self) -> u64 {
        let start = &self.stage.board.start_ns;
        start.load(std::sync::atomic::Ordering::Acquire)
    }

    fn rounds(&mut self) -> Result<(), Left> {
        let stage = self.stage;
        let kind = stage.scenario().task(self.kind);
        let program = &stage.programs[self.kind.0 as usize];
        let times = kind
            .times
            .as_ref()
            .map(|times| self.eval(times))
            .transpose()?;
        let end = kind.end.as_ref().map(|end| self.eval(end)).transpose()?;
        let end = end.map(|end| self.start_ns() + end / PS_PER_NS);
        let rounds = stage.scenario().counters().len();
        self.began = now_ns();
        let mut begins = self.began;
        for _ in 0..times.unwrap_or(u64::MAX) {
            self.run(&program.body, 0)?;
            stage.slots.count(self.index, rounds, 1);
            if end.is_some_and(|end| now_ns() >= end) {
                return Ok(());
            }
            if let Some(every) = &program.every {
                begins += self.draw(every)? / PS_PER_NS;
                self.sleep_until(begins);
            }
        }
        Ok(())
    }

    fn run(&mut self, ops: &Ops, first_number: u32) -> Result<(), Left> {
        let mut at = 0;
        while let Some(op) = ops.list.get(at) {
            self.slot.enter(first_number + at as u32);
            at += 1;
            match op {
                Op::Do(action) => self.act(action)?,
                Op::Repeat {
                    times,
                    except,
                    after,
                } => {
                    let times = self.get(times)?;
                    let except = except.as_ref().map(|it| self.get(it)).transpose()?;
                    self.loops.push(Loop { times, except });
                    self.indexes.push(0);
                    if !self.enters() {
                        at = *after;
                    }
                }
                Op::Again { first } => {
                    self.advance();
                    if self.enters() {
                        at = *first;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds one to the counter of the innermost loop.
    fn advance(&mut self) {
        if let Some(counter) = self.indexes.last_mut() {
            *counter += 1;
        }
    }

    /// Whether the innermost loop has another round; leaves the loop if not.
    fn enters(&mut self) -> bool {
        let Some((times, except)) = self.loops.last().map(|it| (it.times, it.except)) else {
            return false;
        };
        if except.is_some() && self.indexes.last().copied() == except {
            self.advance();
        }
        let goes_on = self.indexes.last().is_some_and(|counter| *counter < times);
        if !goes_on {
            self.loops.pop();
            self.indexes.pop();
        }
        goes_on
    }

    // Numbers and objects.

    fn eval(&self, expr: &Expr) -> Result<u64, EvalError> {
        self.stage.bound.eval(expr, &self.indexes)
    }

    #[inline]
    fn get(&self, number: &Number) -> Result<u64, EvalError> {
        number.get(&self.stage.bound, &self.indexes)
    }

    /// The number within its table of the object that `which` names.
    #[inline]
    fn number(&self, which: &Which) -> Result<usize, EvalError> {
        which.get(&self.stage.bound, &self.indexes)
    }

    fn draw(&mut self, quota: &Draws) -> Result<u64, EvalError> {
        let (amount, from) = match quota {
            Draws::Fixed(value) => return Ok(*value),
            Draws::Drawn(amount, from) => (amount, from),
        };
        let (bound, indexes) = (&self.stage.bound, &self.indexes);
        match *from {
            StreamOf::Own(own) => bound.draw(amount, indexes, &mut self.streams[own]),
            StreamOf::Shared(shared) => {
                let streams = &self.stage.streams;
                streams.with(shared, |stream| bound.draw(amount, indexes, stream))
            }
        }
    }

    /// A random number, for what draws no amount.
    fn random(&mut self, from: StreamOf) -> u64 {
        match from {
            StreamOf::Own(own) => self.streams[own].next(),
            StreamOf::Shared(shared) => self.stage.streams.with(shared, Stream::next),
        }
    }

    // The log.

    fn tell(&self, mark: Mark, id: u32, number: u64) {
        self.log.put(Logged {
            time_ns: now_ns(),
            mark,
            id,
            number,
        });
    }

    /// Does `what`, in which the task may sleep because of `cause`, for the object `number` of the
    /// table of `which`.
    #[inline]
    fn waiting<T>(
        &self,
        cause: Cause,
        which: Option<(&Which, usize)>,
        what: impl FnOnce() -> T,
    ) -> T {
        if !self.stage.marks {
            return what();
        }
        let object = which.map_or(0, |(which, number)| {
            1 + u64::from(which.first_of_all) + number as u64
        });
        self.tell(Mark::Waits, cause as u32, object);
        let result = what();
        self.tell(Mark::GoesOn, 0, 0);
        result
    }

    fn sleep_until(&self, ns: u64) {
        self.waiting(Cause::Timer, None, || sleep_until_ns(ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{allocations, testing};

    /// Every step that waits for nobody else, with numbers that depend on indexes and streams.
    const STEPS: &str = "
        [region.data]
        for = { n = 4 }
        bytes = \"8KB\"
        [mutex.m]
        for = { n = 4 }
        [condition.c]
        [queue.q]
        holds = 3
        [barrier.b]
        tasks = 1
        [pipe.p]
        [stream.s]
        for = { n = 2 }
        [datagram.d]
        [task.one]
        nice = 0
        every = { uniform = [\"1ns\", \"2ns\"] }
        body = [
          { run = \"10ns\" },
          { run = { uniform = [\"10ns\", \"20ns\"] } },
          { run = { pareto = \"10ns\", shape = \"1.5\", stream = \"shared\" } },
          { sleep = \"1ns\" },
          { yield = true },
          { fragment = 3 },
          { begin = \"all\" },
          { repeat = 3, as = \"i\", body = [
            { each = \"j\", of = \"i + 1\", except = \"i\", body = [
              { touch = \"data[i]\", lines = \"3 * j\", pattern = \"random\", write = \"20%\" },
              { touch = \"data[j]\", pattern = \"stride 3\" },
            ] },
            { begin = \"part[i]\" },
            { lock = \"m[(i + 1) % 4]\" }, { signal = \"c\" }, { unlock = \"m[(i + 1) % 4]\" },
            { put = \"q\" }, { take = \"q\" }, { barrier = \"b\" },
            { send = \"p\", bytes = \"i * 10B + 1B\" }, { receive = \"p\", bytes = \"i * 10B + 1B\" },
            { send = \"s[i % 2].near\", bytes = \"9B\" }, { receive = \"s[i % 2].far\", bytes = \"9B\" },
            { send = \"d\", bytes = \"9B\" }, { receive = \"d\" },
            { count = \"n\", by = \"i * i\" },
            { end = \"part[i]\" },
          ] },
          { end = \"all\" },
        ]";

    #[test]
    fn steps_allocate_nothing() {
        let stage = testing::stage(STEPS);
        let mut performer = Performer::new(stage, 0);
        let body = &stage.programs[0].body;
        let mut round = || assert!(performer.run(body, 0).is_ok());
        // The first round opens the socket that datagrams are sent from.
        round();
        assert_eq!(allocations::of(|| (0..10).for_each(|_| round())), 0);
        assert_eq!(stage.slots.total(1, 0), 11 * (1 + 4));
    }
}
