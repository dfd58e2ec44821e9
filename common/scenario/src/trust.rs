//! What a scenario does to the machine that plays it beyond using its CPUs and memory.

use std::sync::Arc;

use warmq_config::Problems;

use crate::change::{SchedulerChoice, Set};
use crate::check::Findings;
use crate::expr::Spot;
use crate::object::ObjectKind;
use crate::scenario::Scenario;

impl Scenario {
    /// Refuses what nobody should play whose author is not trusted: real worlds play it with the
    /// rights of whoever runs them, often root's.
    ///
    /// # Errors
    /// Every file that it writes to and every program that it starts, each with its place.
    pub fn check_untrusted(&self) -> Result<(), Problems> {
        let mut findings = Findings::new(self);
        for (what, spot) in self.files().chain(self.programs()) {
            let help = "leave it out, or read what it does and play it without --untrusted";
            findings.report(spot, what, help);
        }
        findings.verdict()
    }

    fn files(&self) -> impl Iterator<Item = (String, &Arc<Spot>)> {
        self.objects.iter().filter_map(|object| match &object.kind {
            ObjectKind::File { path } => Some((
                format!(
                    "it writes to the file \"{}\" of the machine",
                    path.escape_debug()
                ),
                &object.spot,
            )),
            _ => None,
        })
    }

    fn programs(&self) -> impl Iterator<Item = (String, &Arc<Spot>)> {
        self.changes.iter().flat_map(|change| {
            change.set.iter().filter_map(|set| match set {
                Set::Scheduler(SchedulerChoice::Loaded { name, .. }) => Some((
                    format!(
                        "it starts the program \"{}\" on the machine",
                        name.escape_debug()
                    ),
                    &change.spot,
                )),
                _ => None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOG: &str = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";

    #[test]
    fn files_and_programs_are_refused_at_their_places() {
        let text = format!(
            "[file.log]\npath = \"/etc/passwd\"\n[task.writer]\nbody = [{{ write = \"log\", \
             bytes = \"1B\" }}]\n[[change]]\nat = \"1ms\"\nscheduler = \"evil\"\n{HOG}"
        );
        let scenario = Scenario::read("evil.toml", &text).unwrap();
        let refused = scenario.check_untrusted().unwrap_err();
        let lines: Vec<String> = refused
            .list
            .iter()
            .map(|problem| problem.headline())
            .collect();
        assert_eq!(
            lines,
            [
                "evil.toml:1: `file.log`: it writes to the file \"/etc/passwd\" of the machine",
                "evil.toml:5: `change[0]`: it starts the program \"evil\" on the machine",
            ]
        );
    }

    #[test]
    fn what_stays_within_its_tasks_is_played_whoever_wrote_it() {
        let unload = "[[change]]\nat = \"1ms\"\nscheduler = \"kernel\"\n";
        let scenario = Scenario::read("hog.toml", &format!("{HOG}{unload}")).unwrap();
        assert_eq!(scenario.check_untrusted(), Ok(()));
    }
}
