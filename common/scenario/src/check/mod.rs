//! What can be known to be wrong before a scenario is played. Names and kinds are checked while
//! reading; what is here looks at a whole scenario ([`structure`]) and at one with values for its
//! settings ([`limits`], [`values`]).

mod groups;
mod idle;
mod limits;
mod locks;
mod replies;
mod sessions;
mod spans;
mod spawns;
mod values;
mod waits;

use warmq_config::{Problem, Problems};

use crate::bind::Bound;
use crate::expr::Spot;
use crate::scenario::Scenario;

pub(crate) use limits::limits;

/// Collects problems.
pub(crate) struct Findings<'s> {
    scenario: &'s Scenario,
    list: Vec<Problem>,
}

impl<'s> Findings<'s> {
    pub(crate) fn new(scenario: &'s Scenario) -> Findings<'s> {
        let list = Vec::new();
        Findings { scenario, list }
    }

    pub(crate) fn report(&mut self, spot: &Spot, what: impl Into<String>, help: impl Into<String>) {
        let document = &self.scenario.document;
        self.add(document.problem(&spot.key, &spot.place, what, help));
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    /// Everything that was found, each once, in the order of the text.
    pub(crate) fn verdict(&mut self) -> Result<(), Problems> {
        let mut found = std::mem::take(&mut self.list);
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|problem| problem.span.start);
        let mut list: Vec<Problem> = Vec::new();
        for problem in found {
            // There are few at one place.
            let here = list.iter().rev();
            let mut here = here.take_while(|other| other.span.start == problem.span.start);
            if !here.any(|known| *known == problem) {
                list.push(problem);
            }
        }
        Err(Problems { list })
    }
}

/// What is wrong whatever the settings are.
pub(crate) fn structure(scenario: &Scenario) -> Result<(), Problems> {
    let mut findings = Findings::new(scenario);
    groups::check(scenario, &mut findings);
    sessions::check(scenario, &mut findings);
    waits::check(scenario, &mut findings);
    locks::check(scenario, &mut findings);
    replies::check(scenario, &mut findings);
    spans::check(scenario, &mut findings);
    spawns::check(scenario, &mut findings);
    findings.verdict()
}

/// What is wrong with the values of the settings, once the limits hold.
pub(crate) fn values(bound: &Bound, findings: &mut Findings<'_>) {
    values::check(bound, findings);
    sessions::bound(bound, findings);
    idle::check(bound, findings);
    waits::bound(bound, findings);
    spawns::count(bound, findings);
}
