//! What is played otherwise than the file of a scenario says, a sentence each.

use warmq_scenario::{Fidelity, Scenario, WorldKind};
use warmq_sched::{COMPILED, Entry, SCHEDULERS};

const APPROXIMATE: &str = "is approximate";
const REFUSED: &str = "is refused";

/// In the world of a real kernel and, of a file in another language, anywhere.
pub(super) fn notes(scenario: &Scenario, world: WorldKind) -> Vec<String> {
    let remarks = scenario.remarks().iter().map(ToString::to_string);
    fidelity(scenario, world)
        .into_iter()
        .chain(remarks)
        .collect()
}

/// The same in the lab, under the scheduler `entry`.
pub(super) fn notes_of_lab(scenario: &Scenario, entry: &Entry) -> Vec<String> {
    let own = entry.deviates.iter();
    let own = own.filter(|(used, _)| scenario.uses(used));
    let own = own.map(|(used, how)| under(used, entry.name, APPROXIMATE, how));
    own.chain(notes(scenario, WorldKind::Lab)).collect()
}

/// Why the lab's scheduler `entry` does not play `scenario`, if so.
pub fn refusal(scenario: &Scenario, entry: &Entry) -> Option<String> {
    let mut refused = entry.refuses.iter().filter(|(used, _)| scenario.uses(used));
    refused
        .next()
        .map(|(used, how)| under(used, entry.name, REFUSED, how))
}

/// What `world` plays otherwise than `scenario` says, whatever the scheduler.
pub fn fidelity(scenario: &Scenario, world: WorldKind) -> Vec<String> {
    let all = scenario.fidelity(world).into_iter();
    let said = all.filter_map(|note| {
        let (what, how) = match note.fidelity {
            Fidelity::Exact => return None,
            Fidelity::Approximate(how) => (APPROXIMATE, how),
            Fidelity::Refused(how) => (REFUSED, how),
        };
        Some(format!(
            "In the {}, `{}` {what}: {how}.",
            world.name(),
            note.what
        ))
    });
    said.collect()
}

/// What some schedulers of the lab play otherwise than `scenario` says.
pub fn fidelity_of_schedulers(scenario: &Scenario) -> Vec<String> {
    let mut found: Vec<([&str; 3], Vec<&str>)> = Vec::new();
    for entry in SCHEDULERS.iter().chain([&COMPILED]) {
        let deviates = entry.deviates.iter().map(|said| (APPROXIMATE, said));
        let refuses = entry.refuses.iter().map(|said| (REFUSED, said));
        for (is, (used, how)) in deviates.chain(refuses) {
            let said = [*used, is, *how];
            match found.iter_mut().find(|(known, _)| *known == said) {
                Some((_, names)) => names.push(entry.name),
                None => found.push((said, vec![entry.name])),
            }
        }
    }
    let used = found.iter().filter(|([used, ..], _)| scenario.uses(used));
    used.map(|([used, is, how], names)| under(used, &names.join(", "), is, how))
        .collect()
}

fn under(used: &str, names: &str, is: &str, how: &str) -> String {
    format!("In the lab under {names}, `{used}` {is}: {how}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL_TIME: &str = "[task.rt]\npolicy = \"fifo 50\"\nbody = [{ run = \"10ms\" }]\n";

    fn scenario(text: &str) -> Scenario {
        Scenario::read("t.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
    }

    #[test]
    fn what_schedulers_say_is_about_what_a_scenario_can_use() {
        let all = scenario(
            r#"
            [group.cgroup]
            quota = "6ms"
            period = "100ms"
            [group.session]
            autogroup = true
            [task.rt]
            policy = "fifo 50"
            body = [{ run = "1ms" }, { policy = "batch" }, { policy = "idle" }]
            [task.reserved]
            policy = "deadline 1ms 10ms"
            body = [{ run = "1ms" }]
            [task.grouped]
            group = "cgroup"
            body = [{ run = "1ms" }]
            [task.session]
            group = "session"
            uclamp_min = 100
            slice = "1ms"
            body = [{ run = "1ms" }]
            "#,
        );
        for entry in SCHEDULERS.iter().chain([&COMPILED]) {
            for (used, _) in entry.deviates.iter().chain(entry.refuses) {
                assert!(all.uses(used), "{}: {used}", entry.name);
            }
        }
    }

    #[test]
    fn a_run_notes_what_its_own_scheduler_plays_otherwise() {
        let real_time = scenario(REAL_TIME);
        let broken = warmq_sched::scheduler("broken").expect("a scheduler");
        let said = notes_of_lab(&real_time, broken);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("no class of their own"), "{said:?}");
        assert_eq!(notes_of_lab(&real_time, &COMPILED), [""; 0]);
        let linux24 = warmq_sched::scheduler("linux24").expect("a scheduler");
        let said = notes_of_lab(&real_time, linux24);
        assert_eq!(said, [""; 0], "nothing limits them there");
        let usual = scenario(&REAL_TIME.replace("fifo 50", "normal"));
        for entry in SCHEDULERS {
            assert_eq!(notes_of_lab(&usual, entry), [""; 0], "{}", entry.name);
        }
    }

    #[test]
    fn kernels_before_3_14_have_no_deadline_tasks() {
        let reserved = scenario(&REAL_TIME.replace("fifo 50", "deadline 1ms 10ms"));
        let plays = |entry: &&Entry| refusal(&reserved, entry).is_none();
        let names: Vec<&str> = SCHEDULERS
            .iter()
            .chain([&COMPILED])
            .filter(plays)
            .map(|entry| entry.name)
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name.contains("eevdf") || *name == COMPILED.name),
            "{names:?}"
        );
        let said = fidelity_of_schedulers(&reserved);
        let old = said
            .iter()
            .find(|note| note.contains("linux24"))
            .expect("a note");
        assert!(
            old.contains("o1") && old.contains("is refused: SCHED_DEADLINE came with"),
            "{old}"
        );
    }

    #[test]
    fn a_check_names_the_schedulers_once_for_each_sentence() {
        let said = fidelity_of_schedulers(&scenario(REAL_TIME));
        let of = |name: &str| said.iter().filter(|note| note.contains(name)).count();
        assert_eq!(
            (of("sched_ext"), of("broken"), of("linux24")),
            (0, 1, 0),
            "{said:?}"
        );
    }
}
