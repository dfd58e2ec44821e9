//! Several cache domains.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::affinity::{at_home, during, hogs};
use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::Scheduler;
use crate::workers::Crew;

pub const DRILLS: &[Drill] = &[Drill {
    name: "domains/fragments-stay-in-their-cache",
    law: "with several caches fragments spread over them, and each runs in its own for 99 % of its time",
    run: stay,
}];

fn stay() -> Result<Outcome, Failure> {
    let _scheduler = Scheduler::start(&["--place", "llc"])?;
    let mut crew = Crew::new();
    (0..4).for_each(|fragment| hogs(&mut crew, fragment, 3));
    thread::sleep(Duration::from_secs(2));
    let groups = during(Duration::from_secs(3))?;
    let homes: BTreeSet<u64> = groups.iter().map(|group| group.home).collect();
    must!(
        homes.len() == 4,
        "four fragments live in {} of the caches",
        homes.len()
    );
    at_home(&groups)
}
