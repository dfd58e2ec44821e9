//! Compiles a scenario that has values for its settings.

use std::sync::Arc;

use super::source::GapsOf;
use super::{Do, Draws, Edge, Lines, Link, Number, Op, Ops, Part, Parts, Program, Row};
use super::{SourceProgram, SpanEdge, StreamOf, TakeSpinlock, Timer, Touch, Wait, Which};
use crate::amount::{Amount, Draw, StreamName};
use crate::bind::Bound;
use crate::expr::{Expr, Spot};
use crate::object::{Arrivals, Class, Object, ObjectId, ObjectKind, Spinlock};
use crate::recorded::Recorded;
use crate::step::{Action, End, Fragment, Pattern, Reference, Share, Step};
use crate::task::TaskKind;

/// A scenario, compiled.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// By table of tasks.
    pub tasks: Vec<Program>,
    /// The tables of sources.
    pub sources: Vec<SourceProgram>,
    /// The names of the streams that tasks and sources share.
    pub shared: Vec<String>,
}

impl Bound {
    /// What its tasks and sources do.
    pub fn compile(&self) -> Compiled {
        let mut compiler = Compiler {
            bound: self,
            shared: Vec::new(),
        };
        let tasks = self.scenario().tasks().iter();
        let tasks = tasks.map(|kind| compiler.program(kind)).collect();
        let objects = (0..).map(ObjectId).zip(self.scenario().objects());
        let sources = objects.filter_map(|(id, object)| compiler.source(id, object));
        Compiled {
            tasks,
            sources: sources.collect(),
            shared: compiler.shared,
        }
    }
}

struct Compiler<'b> {
    bound: &'b Bound,
    shared: Vec<String>,
}

/// The stream of what is touched at random.
const OF_TOUCHES: &str = "touch";
/// The stream of how long tasks sleep that find a spin lock held.
const OF_SPINLOCKS: &str = "spinlock";

impl Compiler<'_> {
    fn program(&mut self, kind: &TaskKind) -> Program {
        let mut program = Program::default();
        let draws = |compiler: &mut Self, amount: Option<&Amount>, program: &mut Program| {
            amount.map(|amount| compiler.draws(amount, &mut program.streams))
        };
        program.start = draws(self, kind.start.as_ref(), &mut program);
        program.every = draws(self, kind.every.as_ref(), &mut program);
        let [times, end] =
            [&kind.times, &kind.end].map(|bound| bound.as_ref().map(|bound| self.number(bound)));
        let mut setup = Ops::default();
        self.append(&kind.setup, &mut setup, &mut program, 1);
        let mut body = Ops::default();
        self.append(&kind.body, &mut body, &mut program, 1);
        Program {
            setup,
            body,
            times,
            end,
            ..program
        }
    }

    fn source(&mut self, id: ObjectId, object: &Object) -> Option<SourceProgram> {
        let ObjectKind::Source(source) = &object.kind else {
            return None;
        };
        let mut streams = Vec::new();
        let gaps = match &source.arrivals {
            Arrivals::Every(amount) => GapsOf::Drawn(self.draws(amount, &mut streams)),
            Arrivals::Rate(rate) => GapsOf::Rate(rate.clone()),
            Arrivals::Listed(gaps) => GapsOf::Listed(gaps.clone()),
        };
        Some(SourceProgram {
            id,
            source: source.clone(),
            gaps,
            streams,
        })
    }

    /// Appends those of `steps` that the settings ask for.
    fn append(&mut self, steps: &[Step], ops: &mut Ops, program: &mut Program, depth: usize) {
        for step in steps.iter().filter(|step| self.bound.holds(step.when)) {
            match &step.action {
                Action::Repeat {
                    times,
                    except,
                    body,
                } => {
                    program.depth = program.depth.max(depth);
                    let at = ops.list.len();
                    // Replaced when the body is there.
                    ops.add(Op::Loop(Edge::Again { first: at }), &step.spot);
                    self.append(body, ops, program, depth + 1);
                    ops.add(Op::Loop(Edge::Again { first: at + 1 }), &step.spot);
                    ops.list[at] = Op::Loop(Edge::Repeat {
                        times: self.number(times),
                        except: except.as_ref().map(|except| self.number(except)),
                        after: ops.list.len(),
                    });
                }
                Action::Recorded(row) => ops.add(self.row(row, program), &step.spot),
                action => {
                    if let Some(action) = self.action(action, program) {
                        ops.add(Op::Do(action), &step.spot);
                    }
                }
            }
        }
    }

    fn row(&mut self, row: &Recorded, program: &mut Program) -> Op {
        let steps = row.steps.iter();
        let steps = steps.map(|step| match self.bound.holds(step.when) {
            true => self.action(&step.action, program),
            false => None,
        });
        Op::Row(Arc::new(Row {
            steps: steps.collect(),
            moments: row.moments.clone(),
            parts: Parts::of(row),
        }))
    }

    /// What a step does; none if it has steps of its own, which are ops of their own.
    fn action(&mut self, action: &Action, program: &mut Program) -> Option<Do> {
        Some(match action {
            Action::Run(amount) => {
                Do::Run(self.draws(amount, &mut program.streams), amount.quantity())
            }
            Action::Spin(span) => Do::Spin(self.draws(span, &mut program.streams)),
            Action::Timer { timer, period } => {
                Do::Timer(Box::new(self.timer(timer, period, program)))
            }
            Action::Touch(touch) => Do::Touch(Box::new(self.touch(touch, program))),
            Action::Sleep(span) => Do::Sleep(self.draws(span, &mut program.streams)),
            Action::Lock(lock) => self.lock(lock, program),
            Action::Unlock(lock) => match self.spinlock(lock) {
                Some(_) => Do::ReleaseSpinlock(self.which(lock)),
                None => Do::Unlock(self.which(lock)),
            },
            Action::Wait { on, mutex, timeout } => {
                let timeout = timeout.as_ref();
                let timeout = timeout.map(|span| self.draws(span, &mut program.streams));
                match mutex {
                    Some(mutex) => Do::Wait(Box::new(Wait {
                        condition: self.which(on),
                        mutex: self.which(mutex),
                        timeout,
                    })),
                    None => Do::WaitInFutex(self.which(on), timeout.map(Box::new)),
                }
            }
            Action::Signal { on, all } => match self.class(on) {
                Class::Futex => Do::WakeInFutex(self.which(on), *all),
                _ => Do::Signal(self.which(on), *all),
            },
            Action::Raise(semaphore) => Do::Raise(self.which(semaphore)),
            Action::Lower(semaphore) => Do::Lower(self.which(semaphore)),
            Action::Barrier(barrier) => Do::Barrier(self.which(barrier)),
            Action::Put(queue) => Do::Put(self.which(queue)),
            Action::Take(queue) => Do::Take(self.which(queue)),
            Action::Send { to, bytes } => {
                program.uses_buffer = true;
                Do::Send(self.which(to), self.link(to), self.number(bytes))
            }
            Action::Receive { from, bytes } => {
                program.uses_buffer = true;
                let bytes = bytes.as_ref().map(|bytes| self.number(bytes));
                let bytes = bytes.unwrap_or(Number::Fixed(0));
                Do::Receive(self.which(from), self.link(from), bytes)
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
            Action::Fragment(Fragment::Number(number)) => Do::Fragment(Some(self.number(number))),
            Action::Set(set) => Do::Set(set.clone()),
            Action::Begin { span, due: false } => Do::Span(span.clone(), SpanEdge::Begins),
            Action::Begin { span, due: true } => Do::Span(span.clone(), SpanEdge::BeganWhenDue),
            Action::End(span) => Do::Span(span.clone(), SpanEdge::Ends),
            Action::Count { counter, by } => Do::Count(*counter, self.number(by)),
            Action::Repeat { .. } | Action::Recorded(_) => return None,
        })
    }

    /// What locks a mutex or a spin lock.
    fn lock(&mut self, lock: &Reference, program: &mut Program) -> Do {
        let Some(counters) = self.spinlock(lock).map(|spinlock| spinlock.counters) else {
            return Do::Lock(self.which(lock));
        };
        let stream = StreamName::OfStep(OF_SPINLOCKS.to_owned());
        Do::TakeSpinlock(Box::new(TakeSpinlock {
            lock: self.which(lock),
            stream: self.stream(&stream, &mut program.streams),
            counters,
        }))
    }

    /// The spin lock that `reference` names, if it names one.
    fn spinlock(&self, reference: &Reference) -> Option<&Spinlock> {
        match &self.bound.scenario().object(reference.object).kind {
            ObjectKind::Spinlock(spinlock) => Some(spinlock),
            _ => None,
        }
    }

    fn class(&self, reference: &Reference) -> Class {
        self.bound.scenario().object(reference.object).kind.class()
    }

    fn link(&self, reference: &Reference) -> Link {
        match (self.class(reference), reference.end) {
            (Class::Pipe, _) => Link::Pipe,
            (Class::Datagram, _) => Link::Datagram,
            // What has ends is a stream.
            (_, end) => Link::Stream(end.unwrap_or(End::Near)),
        }
    }

    fn timer(&mut self, timer: &Reference, period: &Amount, program: &mut Program) -> Timer {
        let (shared, absolute) = match self.bound.scenario().object(timer.object).kind {
            ObjectKind::Timer { shared, absolute } => (shared, absolute),
            // No other object is a timer.
            _ => (false, false),
        };
        Timer {
            timer: self.which(timer),
            period: self.draws(period, &mut program.streams),
            own: (!shared).then(|| place(&mut program.timers, &timer.object)),
            absolute,
        }
    }

    fn touch(&mut self, touch: &crate::step::Touch, program: &mut Program) -> Touch {
        let stride = match &touch.pattern {
            Pattern::Sequential => Some(Number::Fixed(1)),
            Pattern::Stride(stride) => Some(self.number(stride)),
            Pattern::Random => None,
        };
        let first = touch.first.as_ref().map(|line| self.number(line));
        let lines = match stride {
            Some(stride) => Lines::Stride {
                first: first.unwrap_or(Number::Fixed(0)),
                stride,
            },
            None => {
                let stream = StreamName::OfStep(OF_TOUCHES.to_owned());
                Lines::Random(self.stream(&stream, &mut program.streams))
            }
        };
        Touch {
            region: self.which(&touch.region),
            part: match &touch.share {
                Share::Whole => Part::Whole,
                Share::Lines(lines) => Part::Lines(self.number(lines)),
                Share::Bytes(bytes) => Part::Bytes(self.number(bytes)),
            },
            lines,
            write_percent: self.number(&touch.write_percent),
        }
    }

    fn number(&self, expr: &Expr) -> Number {
        Number::of(expr, self.bound)
    }

    fn which(&self, reference: &Reference) -> Which {
        Which::of(reference, self.bound)
    }

    /// An amount; a stream of its own is added to `own`.
    fn draws(&mut self, amount: &Amount, own: &mut Vec<StreamName>) -> Draws {
        if let Draw::Constant(expr) = &amount.draw
            && let Number::Fixed(value) = self.number(expr)
        {
            return Draws::Fixed(value);
        }
        let stream = self.stream(&amount.stream, own);
        Draws::Drawn(Box::new(amount.clone()), stream)
    }

    fn stream(&mut self, name: &StreamName, own: &mut Vec<StreamName>) -> StreamOf {
        match name {
            StreamName::Shared(shared) => StreamOf::Shared(place(&mut self.shared, shared)),
            StreamName::OfStep(_) => StreamOf::Own(place(own, name)),
        }
    }
}

impl Ops {
    fn add(&mut self, op: Op, spot: &Arc<Spot>) {
        self.list.push(op);
        self.spots.push(spot.clone());
    }
}

/// The place of `wanted` in `list`, appended if it is not there.
fn place<T: PartialEq + Clone>(list: &mut Vec<T>, wanted: &T) -> usize {
    let found = list.iter().position(|known| known == wanted);
    found.unwrap_or_else(|| {
        list.push(wanted.clone());
        list.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Quantity;
    use crate::{Scenario, Site};
    use warmq_config::Chosen;

    fn bound(text: &str) -> Bound {
        let scenario =
            Scenario::read("test.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
        let defaults = Chosen::new(scenario.settings(), Default::default()).unwrap();
        let bound = scenario.bind(&defaults, &Site::default());
        bound.unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn what_depends_on_settings_alone_is_a_number() {
        let bound = bound(
            "
            [settings.n]
            default = 3
            [mutex.before]
            for = { i = 2 }
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
        let compiled = bound.compile();
        let program = &compiled.tasks[0];
        let list = &program.body.list;
        let run = Op::Do(Do::Run(Draws::Fixed(6_000_000), Quantity::Time));
        assert_eq!(format!("{:?}", list[0]), format!("{run:?}"));
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
        // The mutexes of the table before come first.
        let places = [fixed, free].map(|number| number.places(&bound));
        assert_eq!(places, [4..5, 2..5]);
        let repeat = &list[6];
        let Op::Loop(Edge::Repeat { times, after, .. }) = repeat else {
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
        let compiled = bound.compile();
        let streams = compiled.tasks.iter().map(|task| task.streams.len());
        assert_eq!(streams.collect::<Vec<_>>(), [2, 0]);
        assert_eq!(compiled.shared, ["both"]);
    }
}
