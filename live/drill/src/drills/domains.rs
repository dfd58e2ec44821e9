//! Several cache domains.

use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures};
use crate::sys;
use crate::workers::{Crew, hog};

pub const DRILLS: &[Drill] = &[Drill {
    name: "domains/fragments-stay-in-their-cache",
    law: "with several caches fragments spread over them, and each runs in its own for 99 % of its time",
    run: stay,
}];

fn stay() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "llc"])?;
    let mut crew = Crew::new();
    for fragment in 0..4 {
        for _ in 0..3 {
            crew.add("member", move |shift| {
                sys::hint(Some((1, fragment)));
                hog(shift);
            });
        }
    }
    thread::sleep(Duration::from_secs(2));
    let sums = || -> Result<(u64, u64, usize), Failure> {
        let groups = figures()?.groups(std::process::id());
        let mut homes: Vec<u64> = groups.iter().map(|group| group.home).collect();
        homes.sort_unstable();
        homes.dedup();
        let home = groups.iter().map(|group| group.ran_home).sum();
        Ok((
            home,
            groups.iter().map(|group| group.ran_away).sum(),
            homes.len(),
        ))
    };
    let before = sums()?;
    thread::sleep(Duration::from_secs(3));
    let after = sums()?;
    let (home, away) = (after.0 - before.0, after.1 - before.1);
    must!(
        after.2 == 4,
        "four fragments live in {} of the caches",
        after.2
    );
    must!(
        home * 100 >= (home + away) * 99,
        "{away} of {} ns away from home",
        home + away
    );
    Ok(Outcome::Holds(format!(
        "{:.2} % at home",
        home as f64 * 100.0 / (home + away) as f64
    )))
}
