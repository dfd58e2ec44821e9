//! What must hold of a scenario that was read, and of the reasons why one was refused.

use warmq_config::{Chosen, Problems};
use warmq_scenario::{Scenario, Site, WorldKind};
use warmq_units::Bytes;

/// One CPU, and a server: a scenario need not work on either, but binding it answers.
const SITES: [Site; 2] = [
    Site {
        cpus: 1,
        llcs: 1,
        nodes: 1,
        sockets: 1,
        cores: 1,
    },
    Site {
        cpus: 512,
        llcs: 64,
        nodes: 8,
        sockets: 2,
        cores: 256,
    },
];

pub fn check(text: &str, read: Result<Scenario, Problems>) {
    match read {
        Ok(scenario) => {
            let defaults = Chosen::new(scenario.settings(), Default::default());
            let defaults = defaults.expect("none is chosen");
            let bound = scenario.bind(&defaults, &Site::default());
            let _ = bound.expect("it was read").memory(Bytes(4096));
            for site in &SITES {
                let _ = scenario.bind(&defaults, site);
            }
            scenario.fidelity(WorldKind::Host);
            let remarks = scenario.remarks();
            assert!(remarks.iter().all(|remark| text.get(remark.span.clone()).is_some()));
        }
        Err(problems) => {
            assert!(!problems.list.is_empty());
            let mut spans = problems.list.iter().map(|problem| problem.span.clone());
            assert!(spans.all(|span| text.get(span).is_some()));
        }
    }
}
