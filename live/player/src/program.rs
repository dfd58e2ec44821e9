//! The steps of a table of tasks, compiled: loops are jumps, what depends on settings alone is a
//! number, and each amount that is drawn knows its stream. Running it allocates nothing.

use warmq_scenario::{
    Action, Amount, Bound, Draw, End, EvalError, Expr, Fragment, ObjectId, ObjectKind, Pattern,
    Quantity, Reference, Set, Share, SpanReference, Step, StreamName, TaskKind, TaskReference,
};

use crate::speed::Speed;
use crate::stage::slots::SETUP;

/// A number that is not negative.
#[derive(Clone, Debug)]
pub enum Number {
    /// Always the same.
    Fixed(u64),
    /// Computed from indexes each time.
    Computed(Expr),
}

impl Number {
    /// `expr` with the settings of `bound`. One that has no value stays as it is: it is an error
    /// only where a task comes to it.
    pub fn of(expr: &Expr, bound: &Bound) -> Number {
        match expr.uses_indexes() {
            false => bound
                .eval(expr, &[])
                .map_or_else(|_| Number::Computed(expr.clone()), Number::Fixed),
            true => Number::Computed(expr.clone()),
        }
    }

    /// Its value for `indexes`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    #[inline]
    pub fn get(&self, bound: &Bound, indexes: &[u64]) -> Result<u64, EvalError> {
        match self {
            Number::Fixed(value) => Ok(*value),
            Number::Computed(expr) => bound.eval(expr, indexes),
        }
    }
}

/// Which stream an amount is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOf {
    /// One of the task's own, by its place in [`Program::streams`].
    Own(usize),
    /// One that tasks share, by its place in [`Compiler::shared`].
    Shared(usize),
}

/// An amount.
#[derive(Clone, Debug)]
pub enum Draws {
    /// Always the same.
    Fixed(u64),
    /// Drawn each time, or computed from indexes.
    Drawn(Box<Amount>, StreamOf),
}

/// An object, of one table.
#[derive(Clone, Debug)]
pub struct Which {
    /// The reference.
    pub reference: Reference,
    /// The number within the table, if it is always the same.
    pub fixed: Option<usize>,
    /// The number of the table's first object among all objects.
    pub first_of_all: u32,
}

/// In which order lines are touched.
#[derive(Clone, Debug)]
pub enum Order {
    /// So many lines apart.
    Stride(Number),
    /// At random, by numbers from the stream.
    Random(StreamOf),
}

/// A part of a region.
#[derive(Clone, Debug)]
pub enum Lines {
    /// All.
    Whole,
    /// So many lines.
    Count(Number),
    /// So many bytes.
    Bytes(Number),
}

/// What a task does in one step.
#[derive(Clone, Debug)]
pub enum Do {
    /// Computes for so many rounds of the calibrated loop.
    Loops(u64),
    /// Computes for an amount of what the quantity says.
    Run(Draws, Quantity),
    /// Computes until so many picoseconds have passed.
    Spin(Draws),
    /// Accesses memory.
    Touch(Box<Touch>),
    /// Sleeps until a timer expires.
    Timer(Box<Timer>),
    /// Sleeps for picoseconds.
    Sleep(Draws),
    /// Locks a mutex.
    Lock(Which),
    /// Unlocks a mutex.
    Unlock(Which),
    /// Waits for a condition with a mutex.
    Wait(Box<(Which, Which)>),
    /// Wakes one or all that wait for a condition.
    Signal(Which, bool),
    /// Adds one to a semaphore.
    Raise(Which),
    /// Takes one from a semaphore.
    Lower(Which),
    /// Waits at a barrier.
    Barrier(Which),
    /// Puts an item into a queue.
    Put(Which),
    /// Takes an item out of a queue.
    Take(Which),
    /// Sends bytes.
    Send(Which, Number),
    /// Receives so many bytes, or a datagram.
    Receive(Which, Option<Number>),
    /// Answers the last datagram that was received on a socket.
    Reply(Which, Number),
    /// Writes bytes to a file.
    Write(Which, Number),
    /// Starts a thread (true) or a process.
    Start(TaskReference, bool),
    /// Ends the task.
    Exit,
    /// Gives the CPU away.
    Yield,
    /// Names data, or none.
    Fragment(Option<Number>),
    /// Sets the nice value.
    Nice(Expr),
    /// Sets CPUs, policy, slice or group of the task itself.
    Set(Box<Set>),
    /// Begins (true) or ends a span.
    Span(SpanReference, bool),
    /// Adds to a counter.
    Count(usize, Number),
}

/// Accesses to memory.
#[derive(Clone, Debug)]
pub struct Touch {
    /// The region.
    pub region: Which,
    /// How many lines.
    pub lines: Lines,
    /// The first line.
    pub first: Number,
    /// In which order.
    pub order: Order,
    /// How many of a hundred accesses write.
    pub write_percent: Number,
}

/// A sleep until a timer expires.
#[derive(Clone, Debug)]
pub struct Timer {
    /// The timer.
    pub timer: Which,
    /// How long after its last expiry it expires, in picoseconds.
    pub period: Draws,
    /// If each task has a timer of its own: the place of the table in [`Program::timers`].
    pub own: Option<usize>,
    /// Whether a task that comes too late leaves the timer as it is.
    pub absolute: bool,
}

/// One thing that a task does next.
#[derive(Clone, Debug)]
pub enum Op {
    /// A step other than a loop.
    Do(Do),
    /// Begins a loop: its counter takes a new index. `after` is the first op behind its
    /// [`Op::Again`].
    Repeat {
        /// How often.
        times: Number,
        /// A round that is left out.
        except: Option<Number>,
        /// Where it goes on.
        after: usize,
    },
    /// The end of a loop's body, which begins at `first`.
    Again {
        /// The first op of the body.
        first: usize,
    },
}

/// A list of ops, with the key of the step of each.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// The ops.
    pub list: Vec<Op>,
    /// The key of each op's step.
    pub keys: Vec<String>,
}

/// What the tasks of a table do.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Once.
    pub setup: Ops,
    /// Over and over.
    pub body: Ops,
    /// When it starts, in picoseconds.
    pub start: Option<Draws>,
    /// How long after a round the next begins, in picoseconds.
    pub every: Option<Draws>,
    /// The streams of each task.
    pub streams: Vec<StreamName>,
    /// The tables of which each task has timers of its own.
    pub timers: Vec<ObjectId>,
    /// The tables of sockets whose datagrams it answers.
    pub answered: Vec<ObjectId>,
    /// True if it sends, receives or writes.
    pub uses_buffer: bool,
    /// How deep its loops are.
    pub depth: usize,
}

impl Program {
    /// All ops.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.setup.list.iter().chain(&self.body.list)
    }

    /// Whether its tasks log more than their end. With `marks` they log what they wait for.
    pub fn logs(&self, marks: bool) -> bool {
        let sleeps = marks && (self.every.is_some() || self.start.is_some());
        sleeps
            || self
                .ops()
                .any(|op| matches!(op, Op::Do(action) if action.logs(marks)))
    }

    /// The key of the step at an op, as [`Slot::at`](crate::stage::slots::Slot::at) has it.
    pub fn key(&self, at: u32) -> Option<&str> {
        let ops = if at & SETUP == 0 {
            &self.body
        } else {
            &self.setup
        };
        ops.keys.get((at & !SETUP) as usize).map(String::as_str)
    }
}

impl Do {
    fn logs(&self, marks: bool) -> bool {
        match self {
            Do::Span(..) | Do::Nice(_) | Do::Set(_) | Do::Fragment(_) | Do::Start(..) => true,
            Do::Sleep(_)
            | Do::Timer(_)
            | Do::Lock(_)
            | Do::Wait(_)
            | Do::Lower(_)
            | Do::Barrier(_)
            | Do::Put(_)
            | Do::Take(_)
            | Do::Send(..)
            | Do::Receive(..)
            | Do::Write(..) => marks,
            Do::Loops(_)
            | Do::Run(..)
            | Do::Spin(_)
            | Do::Reply(..)
            | Do::Touch(_)
            | Do::Unlock(_)
            | Do::Signal(..)
            | Do::Raise(_)
            | Do::Exit
            | Do::Yield
            | Do::Count(..) => false,
        }
    }
}

/// Compiles the tables of a scenario.
pub struct Compiler<'b> {
    bound: &'b Bound,
    speed: Speed,
    /// The names of the streams that tasks share.
    pub shared: Vec<String>,
}

/// The stream of what is touched at random.
const OF_TOUCHES: &str = "touch";

impl<'b> Compiler<'b> {
    /// For a scenario and its settings on a CPU of this speed.
    pub fn new(bound: &'b Bound, speed: Speed) -> Compiler<'b> {
        let shared = Vec::new();
        Compiler {
            bound,
            speed,
            shared,
        }
    }

    /// The program of a table of tasks.
    pub fn program(&mut self, kind: &TaskKind) -> Program {
        let mut program = Program::default();
        program.start = kind.start.as_ref().map(|it| self.draws(it, &mut program));
        program.every = kind.every.as_ref().map(|it| self.draws(it, &mut program));
        let mut setup = Ops::default();
        self.append(&kind.setup, &mut setup, &mut program, 1);
        let mut body = Ops::default();
        self.append(&kind.body, &mut body, &mut program, 1);
        Program {
            setup,
            body,
            ..program
        }
    }

    fn append(&mut self, steps: &[Step], ops: &mut Ops, program: &mut Program, depth: usize) {
        for step in steps.iter().filter(|step| self.bound.holds(step.when)) {
            let at = ops.list.len();
            let key = step.spot.key.clone();
            let Action::Repeat {
                times,
                except,
                body,
            } = &step.action
            else {
                ops.list.push(Op::Do(self.action(&step.action, program)));
                ops.keys.push(key);
                continue;
            };
            program.depth = program.depth.max(depth);
            // Replaced when the body is there.
            ops.list.push(Op::Again { first: at });
            ops.keys.push(key.clone());
            self.append(body, ops, program, depth + 1);
            ops.list.push(Op::Again { first: at + 1 });
            ops.keys.push(key);
            ops.list[at] = Op::Repeat {
                times: self.number(times),
                except: except.as_ref().map(|it| self.number(it)),
                after: ops.list.len(),
            };
        }
    }

    fn action(&mut self, action: &Action, program: &mut Program) -> Do {
        match action {
            Action::Run(amount) => self.run(amount, program),
            Action::Spin(span) => Do::Spin(self.draws(span, program)),
            Action::Timer { timer, period } => {
                Do::Timer(Box::new(self.timer(timer, period, program)))
            }
            Action::Touch(touch) => Do::Touch(Box::new(self.touch(touch, program))),
            Action::Sleep(span) => Do::Sleep(self.draws(span, program)),
            Action::Lock(mutex) => Do::Lock(self.which(mutex)),
            Action::Unlock(mutex) => Do::Unlock(self.which(mutex)),
            Action::Wait { condition, mutex } => {
                Do::Wait(Box::new((self.which(condition), self.which(mutex))))
            }
            Action::Signal { condition, all } => Do::Signal(self.which(condition), *all),
            Action::Raise(semaphore) => Do::Raise(self.which(semaphore)),
            Action::Lower(semaphore) => Do::Lower(self.which(semaphore)),
            Action::Barrier(barrier) => Do::Barrier(self.which(barrier)),
            Action::Put(queue) => Do::Put(self.which(queue)),
            Action::Take(queue) => Do::Take(self.which(queue)),
            Action::Send { to, bytes } => {
                program.uses_buffer = true;
                Do::Send(self.which(to), self.number(bytes))
            }
            Action::Receive { from, bytes } => {
                program.uses_buffer = true;
                Do::Receive(self.which(from), bytes.as_ref().map(|it| self.number(it)))
            }
            Action::Reply { socket, bytes } => {
                program.uses_buffer = true;
                place(&mut program.answered, &socket.object);
                Do::Reply(self.which(socket), self.number(bytes))
            }
            Action::Write { file, bytes } => {
                program.uses_buffer = true;
                Do::Write(self.which(file), self.number(bytes))
            }
            Action::Spawn(task) => Do::Start(task.clone(), true),
            Action::Fork(task) => Do::Start(task.clone(), false),
            Action::Exit => Do::Exit,
            Action::Yield => Do::Yield,
            Action::Fragment(Fragment::None) => Do::Fragment(None),
            Action::Fragment(Fragment::Number(it)) => Do::Fragment(Some(self.number(it))),
            Action::Nice(nice) => Do::Nice(nice.clone()),
            Action::Set(set) => Do::Set(set.clone()),
            Action::Begin(span) => Do::Span(span.clone(), true),
            Action::End(span) => Do::Span(span.clone(), false),
            Action::Count { counter, by } => Do::Count(counter.0 as usize, self.number(by)),
            Action::Repeat { .. } => unreachable!("loops are ops of their own"),
            Action::Recorded(_) => unreachable!("a scenario with a row is not played"),
        }
    }

    fn run(&mut self, amount: &Amount, program: &mut Program) -> Do {
        let quantity = quantity(amount);
        match self.draws(amount, program) {
            Draws::Fixed(work) => Do::Loops(self.speed.loops(work, quantity)),
            drawn => Do::Run(drawn, quantity),
        }
    }

    fn timer(&mut self, timer: &Reference, period: &Amount, program: &mut Program) -> Timer {
        let (shared, absolute) = match self.bound.scenario().object(timer.object).kind {
            ObjectKind::Timer { shared, absolute } => (shared, absolute),
            _ => unreachable!("the reader resolves timers to timers"),
        };
        Timer {
            timer: self.which(timer),
            period: self.draws(period, program),
            own: (!shared).then(|| place(&mut program.timers, &timer.object)),
            absolute,
        }
    }

    fn touch(&mut self, touch: &warmq_scenario::Touch, program: &mut Program) -> Touch {
        let order = match &touch.pattern {
            Pattern::Sequential => Order::Stride(Number::Fixed(1)),
            Pattern::Stride(stride) => Order::Stride(self.number(stride)),
            Pattern::Random => {
                let stream = StreamName::OfStep(OF_TOUCHES.to_owned());
                Order::Random(self.stream(&stream, program))
            }
        };
        Touch {
            region: self.which(&touch.region),
            lines: match &touch.share {
                Share::Whole => Lines::Whole,
                Share::Lines(lines) => Lines::Count(self.number(lines)),
                Share::Bytes(bytes) => Lines::Bytes(self.number(bytes)),
            },
            first: touch
                .first
                .as_ref()
                .map_or(Number::Fixed(0), |it| self.number(it)),
            order,
            write_percent: self.number(&touch.write_percent),
        }
    }

    fn number(&self, expr: &Expr) -> Number {
        Number::of(expr, self.bound)
    }

    /// An amount; streams of its own are added to `program`.
    pub fn draws(&mut self, amount: &Amount, program: &mut Program) -> Draws {
        if let Draw::Constant(expr) = &amount.draw
            && let Number::Fixed(value) = self.number(expr)
        {
            return Draws::Fixed(value);
        }
        let stream = self.stream(&amount.stream, program);
        Draws::Drawn(Box::new(amount.clone()), stream)
    }

    fn stream(&mut self, name: &StreamName, program: &mut Program) -> StreamOf {
        match name {
            StreamName::Shared(shared) => StreamOf::Shared(place(&mut self.shared, shared)),
            StreamName::OfStep(_) => StreamOf::Own(place(&mut program.streams, name)),
        }
    }

    fn which(&self, reference: &Reference) -> Which {
        let fixed = match reference.indexes.iter().any(Expr::uses_indexes) {
            true => None,
            false => self.bound.object_number(reference, &[]).ok(),
        };
        Which {
            fixed: fixed.map(|number| number as usize),
            first_of_all: self.bound.object_of_all(reference.object, 0) as u32,
            reference: reference.clone(),
        }
    }
}

impl Which {
    /// The table of objects.
    pub fn table(&self) -> ObjectId {
        self.reference.object
    }

    /// Which end of a stream; the near one where none is named.
    pub fn end(&self) -> End {
        self.reference.end.unwrap_or(End::Near)
    }

    /// The number within the table.
    ///
    /// # Errors
    /// As [`Bound::object_number`].
    #[inline]
    pub fn get(&self, bound: &Bound, indexes: &[u64]) -> Result<usize, EvalError> {
        match self.fixed {
            Some(number) => Ok(number),
            None => bound
                .object_number(&self.reference, indexes)
                .map(|it| it as usize),
        }
    }
}

/// The place of `wanted` in `list`, appended if it is not there.
fn place<T: PartialEq + Clone>(list: &mut Vec<T>, wanted: &T) -> usize {
    let found = list.iter().position(|it| it == wanted);
    found.unwrap_or_else(|| {
        list.push(wanted.clone());
        list.len() - 1
    })
}

/// What an amount counts.
fn quantity(amount: &Amount) -> Quantity {
    match &amount.draw {
        Draw::Constant(it) | Draw::Exponential(it) | Draw::Uniform(it, _) => it.quantity,
        Draw::Pareto { least, .. } => least.quantity,
        Draw::Among(values) => values[0].quantity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bound;

    const SPEED: Speed = Speed {
        rounds_per_s: 1_000_000_000,
        hertz: 1_000_000_000,
        hertz_from: "a test",
    };

    #[test]
    fn what_depends_on_settings_alone_is_a_number() {
        let bound = bound(
            "
            [settings.n]
            default = 3
            [mutex.m]
            for = { i = \"n\" }
            [task.t]
            for = { i = 2 }
            body = [
              { run = \"n * 2us\" }, { run = \"i * 1us\" },
              { lock = \"m[n - 1]\" }, { unlock = \"m[n - 1]\" }, { lock = \"m[i]\" }, { unlock = \"m[i]\" },
              { repeat = \"n\", body = [{ count = \"c\", by = \"n\" }] },
            ]",
        );
        let mut compiler = Compiler::new(&bound, SPEED);
        let program = compiler.program(&bound.scenario().tasks()[0]);
        let list = &program.body.list;
        assert!(matches!(list[0], Op::Do(Do::Loops(6_000))), "{:?}", list[0]);
        assert!(matches!(
            list[1],
            Op::Do(Do::Run(Draws::Drawn(..), Quantity::Time))
        ));
        let Op::Do(Do::Lock(fixed)) = &list[2] else {
            panic!("{:?}", list[2]);
        };
        let Op::Do(Do::Lock(free)) = &list[4] else {
            panic!("{:?}", list[4]);
        };
        assert_eq!((fixed.fixed, free.fixed), (Some(2), None));
        let repeat = &list[6];
        let Op::Repeat { times, after, .. } = repeat else {
            panic!("{repeat:?}");
        };
        assert!(matches!(times, Number::Fixed(3)) && *after == list.len());
        assert_eq!(program.depth, 1);
    }

    #[test]
    fn equal_streams_of_a_task_are_one_and_shared_ones_are_known_to_all() {
        let bound = bound(
            "
            [region.r]
            bytes = \"4KB\"
            [task.a]
            body = [
              { run = { exponential = \"1us\" } },
              { run = { exponential = \"1us\", stream = \"both\" } },
              { touch = \"r\", pattern = \"random\" }, { touch = \"r\", pattern = \"random\" },
            ]
            [task.b]
            body = [{ run = { exponential = \"1us\", stream = \"both\" } }]",
        );
        let mut compiler = Compiler::new(&bound, SPEED);
        let tasks = bound.scenario().tasks();
        let (a, b) = (compiler.program(&tasks[0]), compiler.program(&tasks[1]));
        assert_eq!((a.streams.len(), b.streams.len()), (2, 0));
        assert_eq!(compiler.shared, ["both"]);
    }

    #[test]
    fn only_tasks_that_log_need_room_for_it() {
        let bound = bound(
            "
            [mutex.m]
            [task.quiet]
            body = [{ run = \"1us\" }, { count = \"c\" }, { yield = true }]
            [task.locks]
            body = [{ lock = \"m\" }, { run = \"1us\" }, { unlock = \"m\" }]
            [task.spans]
            body = [{ begin = \"s\" }, { run = \"1us\" }, { end = \"s\" }]
            [task.sleeps]
            every = \"1ms\"
            body = [{ run = \"1us\" }]",
        );
        let mut compiler = Compiler::new(&bound, SPEED);
        let programs: Vec<_> = bound
            .scenario()
            .tasks()
            .iter()
            .map(|it| compiler.program(it))
            .collect();
        let logs = |marks| programs.iter().map(|it| it.logs(marks)).collect::<Vec<_>>();
        assert_eq!(logs(false), [false, false, true, false]);
        assert_eq!(logs(true), [false, true, true, true]);
    }
}
