//! Waits against the scheduler's own bound. What tasks get is for the laws (`laws/`).

use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::workers::{Crew, Gate, hog, work};

pub const DRILLS: &[Drill] = &[Drill {
    name: "fairness/storm",
    law: "in a storm of 2,000 tasks no task waits longer than the bound",
    run: storm,
}];

fn storm() -> Result<Outcome, Failure> {
    let mut scheduler = Scheduler::start(&[])?;
    let (mut crew, gate) = (Crew::default(), Gate::default());
    crew.add("hog", hog);
    for number in 0..2000_u64 {
        let gate = gate.clone();
        crew.add("storm", move |shift| {
            gate.pass();
            while shift.goes_on() {
                work(Duration::from_micros(100 + number % 7 * 100));
                if number % 3 == 0 {
                    thread::sleep(Duration::from_millis(number % 11));
                }
            }
        });
    }
    gate.open();
    thread::sleep(Duration::from_secs(8));
    let unlucky = crew.had().iter().filter(|had| had.is_zero()).count();
    crew.stop();
    let figures = figures()?;
    let (over, longest) = (
        figures.counter("over_bound"),
        figures.counter("longest_wait_ns"),
    );
    let bound = figures.counter("longest_bound_ns");
    must!(scheduler.runs(), "the scheduler has ended");
    must!(unlucky == 0, "{unlucky} tasks never ran");
    must!(
        over == 0 && longest < bound,
        "{over} waits over the bound; the longest {longest} of {bound} ns"
    );
    Ok(Outcome::Holds(format!(
        "longest wait {} of {} ms",
        longest / 1_000_000,
        bound / 1_000_000
    )))
}
