//! Wakeup preemption.

use std::fmt;
use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Figures, Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog, sleeper};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "sleepers/frequent-sleeper-refused",
        law: "a frequent sleeper does not preempt at each wakeup",
        run: frequent,
    },
    Drill {
        name: "sleepers/rare-sleeper-granted",
        law: "a rare sleeper preempts",
        run: rare,
    },
    Drill {
        name: "sleepers/preempt-interval",
        law: "a CPU has no more wakeup preemptions than --preempt-interval allows",
        run: interval,
    },
    Drill {
        name: "sleepers/min-sleep",
        law: "sleeps shorter than --min-sleep do not preempt, longer ones do",
        run: min_sleep,
    },
    Drill {
        name: "sleepers/no-preempt",
        law: "--no-preempt grants no wakeup preemption",
        run: none,
    },
];

const TIME: Duration = Duration::from_secs(3);

struct Counted {
    granted: u64,
    refused: u64,
}

impl fmt::Display for Counted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counted { granted, refused } = self;
        write!(formatter, "{granted} granted, {refused} refused")
    }
}

fn count(figures: &Figures) -> Counted {
    let refused = ["too_close", "too_soon", "short_sleep"];
    Counted {
        granted: figures.counter("granted"),
        refused: refused.iter().map(|name| figures.counter(name)).sum(),
    }
}

/// Counts what became of the wakeups of a sleeper that shares one CPU with a hog. Where there is
/// another CPU, the drill itself uses that one.
fn beside_a_hog(options: &[&str], busy: Duration, idle: Duration) -> Result<Counted, Failure> {
    let _scheduler = Scheduler::start(options)?;
    let mut crew = Crew::default();
    crew.add("hog", |shift| {
        sys::run_on(&[sys::last_cpu()]);
        hog(shift);
    });
    crew.add("sleeper", move |shift| {
        sys::run_on(&[sys::last_cpu()]);
        sleeper(shift, busy, idle);
    });
    thread::sleep(Duration::from_secs(1));
    let before = count(&figures()?);
    thread::sleep(TIME);
    let after = count(&figures()?);
    Ok(Counted {
        granted: after.granted - before.granted,
        refused: after.refused - before.refused,
    })
}

const SHORT: Duration = Duration::from_micros(100);
const RARE: Duration = Duration::from_millis(60);

fn frequent() -> Result<Outcome, Failure> {
    let seen = beside_a_hog(
        &["--preempt-interval", "0", "--alpha", "200us"],
        SHORT,
        Duration::from_micros(500),
    )?;
    must!(seen.refused > 200, "too few were refused: {seen}");
    must!(seen.refused > 2 * seen.granted, "{seen}");
    Ok(Outcome::Holds(seen.to_string()))
}

fn rare() -> Result<Outcome, Failure> {
    let seen = beside_a_hog(&["--alpha", "20us"], SHORT, RARE)?;
    must!(seen.granted >= 20, "{seen} in {TIME:?}");
    Ok(Outcome::Holds(seen.to_string()))
}

fn interval() -> Result<Outcome, Failure> {
    let options = ["--no-granularity", "--preempt-interval", "100ms"];
    let seen = beside_a_hog(&options, SHORT, Duration::from_millis(2))?;
    // Both CPUs together, over the time between the two looks, which is a little longer than TIME.
    let most = 2 * (TIME.as_millis() as u64 / 100 + 3);
    must!(
        seen.granted <= most && seen.granted >= 10,
        "{} granted, at most {most} are allowed",
        seen.granted
    );
    must!(seen.refused > 100, "{} refused", seen.refused);
    Ok(Outcome::Holds(format!(
        "{} granted of at most {most}, {} refused",
        seen.granted, seen.refused
    )))
}

fn min_sleep() -> Result<Outcome, Failure> {
    let options = [
        "--no-granularity",
        "--preempt-interval",
        "0",
        "--min-sleep",
        "20ms",
    ];
    let short = beside_a_hog(&options, SHORT, Duration::from_millis(3))?;
    let long = beside_a_hog(&options, SHORT, RARE)?;
    must!(
        short.refused > 10 * short.granted.max(1),
        "short sleeps: {short}"
    );
    must!(long.granted >= 20, "long sleeps: {long}");
    Ok(Outcome::Holds(format!(
        "short: {} of {}, long: {} of {}",
        short.granted,
        short.granted + short.refused,
        long.granted,
        long.granted + long.refused
    )))
}

fn none() -> Result<Outcome, Failure> {
    let usual = beside_a_hog(&[], SHORT, RARE)?;
    let seen = beside_a_hog(&["--no-preempt"], SHORT, RARE)?;
    must!(
        usual.granted >= 20 && seen.granted == 0,
        "{} granted, {} without the option",
        seen.granted,
        usual.granted
    );
    Ok(Outcome::Holds(format!(
        "none granted, and {} without the option",
        usual.granted
    )))
}
