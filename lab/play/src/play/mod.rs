//! Plays a scenario as simulated tasks.
//!
//! Purpose: what `common/scenario` reads becomes objects and tasks of the simulated kernel. A task
//! runs through its compiled steps (`warmq_scenario::program`) and asks the kernel for what each
//! says ([`player`]).

mod actions;
mod cards;
mod changes;
mod clocks;
mod inbox;
mod objects;
mod orders;
mod phases;
mod player;
mod row;
mod source;
mod specs;
mod spinlocks;
mod stage;

use std::rc::Rc;

use warmq_kernel::{Boot, Task, TaskSpec, Workload};
use warmq_machine::OutOfMemory;
use warmq_scenario::{Bound, EvalError, ObjectKind, Scenario, Target};

use self::stage::Stage;
use crate::counter::Counters;

/// Why a scenario cannot begin.
#[derive(derive_more::From)]
enum Trouble {
    Memory(OutOfMemory),
    /// A number could not be computed.
    Number(EvalError),
    /// It has something that cannot be played, or not on this machine.
    Lacking(String),
}

/// A scenario, with values for its settings, as a workload.
pub(crate) struct Play {
    bound: Bound,
    counters: Counters,
}

impl Play {
    pub(crate) fn new(bound: Bound, counters: &Counters) -> Play {
        Play {
            bound,
            counters: counters.clone(),
        }
    }

    fn begin(&self, boot: &mut Boot<'_>) -> Result<(), Trouble> {
        not_played(self.bound.scenario())
            .map_or(Ok(()), |what| Err(Trouble::Lacking(what.to_owned())))?;
        let stage = Rc::new(Stage::new(self.bound.clone(), &self.counters, boot)?);
        phases::start(&stage, boot)?;
        changes::start(&stage, boot)?;
        source::start(&stage, boot)?;
        stage.start_tasks(boot)
    }
}

/// What `scenario` has that the lab cannot play.
fn not_played(scenario: &Scenario) -> Option<&'static str> {
    let file = |object: &warmq_scenario::Object| matches!(object.kind, ObjectKind::File { .. });
    let mut changes = scenario.changes().iter();
    match scenario {
        _ if changes.any(|change| matches!(change.target, Target::Scheduler)) => {
            Some("a change of the scheduler")
        }
        _ if scenario.objects().iter().any(file) => Some("a file"),
        _ => None,
    }
}

impl Workload for Play {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        let error = match self.begin(boot) {
            Ok(()) => return Ok(()),
            Err(Trouble::Memory(full)) => return Err(full),
            Err(Trouble::Number(error)) => error.to_string(),
            Err(Trouble::Lacking(what)) => format!("has {what}, which cannot be played here"),
        };
        let gives_up = |task: Task| async move { task.give_up(&error).await };
        boot.task(TaskSpec::new("scenario", None), gives_up)?;
        Ok(())
    }
}
