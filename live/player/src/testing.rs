//! What several unit tests need.

use std::path::Path;

use warmq_config::Chosen;
use warmq_scenario::{Bound, Scenario};
use warmq_units::Seed;

use crate::groups::Groups;
use crate::notes::Notes;
use crate::places;
use crate::sessions::Sessions;
use crate::speed::Speed;
use crate::stage::Stage;
use crate::stage::objects::{Sets, make};
use crate::stage::plan::Wanted;
use crate::sys::sched;

/// A scenario with its defaults.
pub fn bound(text: &str) -> Bound {
    let scenario =
        Scenario::read("test.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let defaults = Chosen::new(scenario.settings(), Default::default()).expect("defaults");
    scenario
        .bind(&defaults, &warmq_scenario::Site::default())
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// A run of a scenario without groups, with its objects, whose tasks are not started.
pub fn stage(text: &str) -> &'static Stage {
    let stage = Stage::plan(Wanted {
        bound: bound(text),
        seed: Seed(1),
        cpus: places::cpus(Path::new("/"), &sched::allowed()),
        line: places::line(Path::new("/")),
        speed: Speed::measure(Some(1_000_000_000)),
        log_bytes: 1 << 20,
        marks: true,
        groups: Groups::default(),
        sessions: Sessions::default(),
    });
    let stage = stage.expect("a plan");
    let mut sets = Sets::default();
    let made = make(
        &stage.bound,
        (stage.speed, &stage.cpus),
        &mut sets,
        &Notes::default(),
    );
    assert!(stage.objects.set(made.expect("objects")).is_ok());
    // Semaphores that are in use live on until their set is removed, which tests do not need.
    sets.remove();
    Box::leak(Box::new(stage))
}
