//! What of a compiled program only this world asks.

use warmq_scenario::Quantity;
use warmq_scenario::program::{Do, Draws, Op, Program};

use crate::speed::Speed;

/// Counts what is computed, where it is always the same, in rounds of the calibrated loop, so that
/// a step does without a division.
pub fn in_rounds(program: &mut Program, speed: Speed) {
    for op in program.setup.list.iter_mut().chain(&mut program.body.list) {
        if let Op::Do(Do::Run(Draws::Fixed(work), quantity)) = op {
            *work = speed.loops(*work, *quantity);
            *quantity = Quantity::Count;
        }
    }
}

/// Whether tasks that do `program` log more than their end. With `marks` they log what they wait
/// for.
pub fn logs(program: &Program, marks: bool) -> bool {
    let sleeps = marks && (program.every.is_some() || program.start.is_some());
    let mut ops = program.ops();
    sleeps || ops.any(|op| matches!(op, Op::Do(step) if step_logs(step, marks)))
}

fn step_logs(step: &Do, marks: bool) -> bool {
    match step {
        Do::Span(..) | Do::Set(_) | Do::Fragment(_) | Do::Start(..) => true,
        Do::Sleep(_)
        | Do::Timer(_)
        | Do::Lock(_)
        | Do::TakeSpinlock(_)
        | Do::Wait(_)
        | Do::WaitInFutex(..)
        | Do::Lower(_)
        | Do::Barrier(_)
        | Do::Put(_)
        | Do::Take(_)
        | Do::Send(..)
        | Do::Receive(..)
        | Do::Write(..) => marks,
        Do::Run(..)
        | Do::Spin(_)
        | Do::Reply(..)
        | Do::Touch(_)
        | Do::Unlock(_)
        | Do::ReleaseSpinlock(_)
        | Do::Signal(..)
        | Do::WakeInFutex(..)
        | Do::Raise(_)
        | Do::Exit
        | Do::Yield
        | Do::Count(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bound;

    #[test]
    fn what_is_always_the_same_is_rounds_of_the_loop() {
        let text =
            "[task.t]\nbody = [{ run = \"6us\" }, { run = \"3 cycles\" }, { spin = \"1us\" }]";
        let speed = Speed {
            rounds_per_s: 2_000_000_000,
            hertz: 1_000_000_000,
            hertz_from: "a test",
        };
        let mut program = bound(text).compile().tasks.remove(0);
        in_rounds(&mut program, speed);
        let run = |rounds| Op::Do(Do::Run(Draws::Fixed(rounds), Quantity::Count));
        let spin = Op::Do(Do::Spin(Draws::Fixed(1_000_000)));
        let wanted = [run(12_000), run(6), spin];
        assert_eq!(format!("{:?}", program.body.list), format!("{wanted:?}"));
        // Whoever runs it again takes rounds as they are.
        assert_eq!(speed.loops(12_000, Quantity::Count), 12_000);
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
        let programs = bound.compile().tasks;
        let logs = |marks| {
            programs
                .iter()
                .map(|program| logs(program, marks))
                .collect::<Vec<_>>()
        };
        assert_eq!(logs(false), [false, false, true, false]);
        assert_eq!(logs(true), [false, true, true, true]);
    }
}
