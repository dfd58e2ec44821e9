//! A task: a thread that does the steps of its program until it is stopped.

mod act;
mod birth;
mod clocks;
mod spinlocks;
mod start;
mod touch;

pub use birth::perform;
pub use start::{STACK, thread_of_slot};
pub use touch::populate_regions;

use warmq_scenario::program::{Draws, Loops, Number, Op, Ops, Program, StreamOf, Which};
use warmq_scenario::{EvalError, TaskKindId};
use warmq_trace::Cause;
use warmq_units::Stream;

use crate::error::PlayError;
use crate::source::Stamp;
use crate::stage::Stage;
use crate::stage::objects::Objects;
use crate::stage::slots::{Log, Logged, Mark, SETUP, Slot};
use crate::stage::streams::Drawn;
use crate::sys::clock::{now_ns, sleep_until_ns};

const PS_PER_NS: u64 = 1_000;

/// Why a task leaves its steps.
#[derive(derive_more::From)]
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
    objects: &'static Objects,
    /// Its slot, which is also its id in the trace.
    index: u32,
    slot: &'static Slot,
    kind: TaskKindId,
    log: Log,
    loops: Loops,
    streams: Drawn,
    /// What it sends from and receives into.
    buffer: Vec<u8>,
    /// A socket to send datagrams from; opened by who needs it.
    sender: Option<i32>,
    /// When its first round began; before that, when it began.
    began: u64,
    /// When its round, or the last timer that it waited for, was due, on the monotonic clock.
    due: u64,
    /// When its own timers expired last: those of each table of [`Program::timers`], 0 for never.
    timers: Vec<Vec<u64>>,
    /// What came last on each socket that it answers, by table of [`Program::answered`].
    received: Vec<Vec<Datagram>>,
    /// The last request for a fragment that it has followed.
    fragment_turn: u32,
    /// The spin locks of CPUs that it holds: the place of the set, and which of it.
    holds: Vec<(usize, usize)>,
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
        let program: &Program = &stage.programs[self.kind.0 as usize];
        let number =
            |number: &Option<Number>| number.as_ref().map(|number| self.get(number)).transpose();
        let (times, end) = (number(&program.times)?, number(&program.end)?);
        let end = end.map(|end| self.start_ns() + end / PS_PER_NS);
        let rounds = stage.scenario().counters().len();
        self.began = now_ns();
        let mut begins = self.began;
        for _ in 0..times.unwrap_or(u64::MAX) {
            self.due = begins;
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
            at = match op {
                Op::Loop(edge) => self.loops.pass(edge, at, &self.stage.bound)?,
                Op::Do(step) => {
                    self.act(step)?;
                    at + 1
                }
                Op::Row(_) => {
                    let why = "a task does what was recorded, which only the lab can play";
                    return Err(PlayError::Ended(why.to_owned()).into());
                }
            };
        }
        Ok(())
    }

    // Numbers and objects.

    #[inline]
    fn get(&self, number: &Number) -> Result<u64, EvalError> {
        number.get(&self.stage.bound, &self.loops.indexes)
    }

    /// The place of the object that `which` names among all of its class.
    #[inline]
    fn place(&self, which: &Which) -> Result<usize, EvalError> {
        which.place(&self.stage.bound, &self.loops.indexes)
    }

    fn draw(&mut self, amount: &Draws) -> Result<u64, EvalError> {
        amount.next(&self.stage.bound, &self.loops.indexes, &mut self.streams)
    }

    /// A random number, for what draws no amount.
    fn random(&mut self, from: StreamOf) -> u64 {
        self.streams.with(from, Stream::next)
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

    /// Does `what`, in which the task may sleep because of `cause`, for the object of `which` at a
    /// place.
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
        let object = which.map_or(0, |(which, place)| 1 + which.of_all(place) as u64);
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
        [spinlock.l]
        for = { n = 4 }
        then = \"futex\"
        spins = \"n\"
        [condition.c]
        [queue.q]
        holds = 3
        [barrier.b]
        tasks = 1
        [pipe.p]
        [stream.s]
        for = { n = 2 }
        [datagram.d]
        [futex.f]
        [stream.u]
        family = \"unix\"
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
            { lock = \"l[i]\" }, { unlock = \"l[i]\" },
            { put = \"q\" }, { take = \"q\" }, { barrier = \"b\" },
            { send = \"p\", bytes = \"i * 10B + 1B\" }, { receive = \"p\", bytes = \"i * 10B + 1B\" },
            { send = \"s[i % 2].near\", bytes = \"9B\" }, { receive = \"s[i % 2].far\", bytes = \"9B\" },
            { send = \"d\", bytes = \"9B\" }, { receive = \"d\" },
            { send = \"u.far\", bytes = \"9B\" }, { receive = \"u.near\", bytes = \"9B\" },
            { signal = \"f\", all = true }, { wait = \"f\", timeout = \"1ns\" },
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
        // After the three counters of the spin locks.
        assert_eq!(stage.slots.total(1, 3), 11 * (1 + 4));
    }
}
