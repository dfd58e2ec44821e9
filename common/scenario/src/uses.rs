//! What a scenario uses some keys for, where a world or a scheduler plays that otherwise under
//! certain values only.

use crate::change::{Set, Target};
use crate::expr::Expr;
use crate::object::ObjectKind;
use crate::scenario::Scenario;
use crate::task::Policy;

type Test = fn(&Scenario) -> bool;

/// Each use, and whether a scenario has it. A value that settings or indexes decide counts as every
/// value that it may have.
pub(crate) const BY_VALUE: &[(&str, Test)] = &[
    ("policy batch", |scenario| {
        any_policy(scenario, |policy| matches!(policy, Policy::Batch))
    }),
    ("policy idle", |scenario| {
        any_policy(scenario, |policy| matches!(policy, Policy::Idle))
    }),
    ("policy deadline", |scenario| {
        any_policy(scenario, |policy| matches!(policy, Policy::Deadline(_)))
    }),
    ("policy fifo or rr", |scenario| {
        any_policy(scenario, is_real_time)
    }),
    ("nice below 0", |scenario| {
        nice_values(scenario)
            .iter()
            .any(|nice| may_be(nice, |nice| nice < 0))
    }),
    ("nice of an autogroup", |scenario| {
        nice_of_autogroups(scenario)
            .iter()
            .any(|nice| may_be(nice, |nice| nice != 0))
    }),
    ("quota", has_quota),
    ("uclamp", has_uclamp),
];

/// The uses of `scenario`.
pub(crate) fn by_value(scenario: &Scenario) -> impl Iterator<Item = &'static str> {
    let used = BY_VALUE.iter().filter(|(_, test)| test(scenario));
    used.map(|(name, _)| *name)
}

fn may_be(value: &Expr, test: impl Fn(i64) -> bool) -> bool {
    value.literal().is_none_or(test)
}

fn is_real_time(policy: &Policy) -> bool {
    matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_))
}

fn any_policy(scenario: &Scenario, test: impl Fn(&Policy) -> bool) -> bool {
    let set = scenario.sets().any(|set| match set {
        Set::Policy(policy) => test(policy),
        _ => false,
    });
    set || scenario.tasks().iter().any(|task| test(&task.policy))
}

/// The nice values of tasks.
fn nice_values(scenario: &Scenario) -> Vec<&Expr> {
    let tasks = scenario.tasks();
    let mut found: Vec<&Expr> = tasks.iter().filter_map(|task| task.nice.as_ref()).collect();
    found.extend(scenario.set_by_steps().filter_map(nice_of));
    found.extend(changed_nice(scenario, false));
    found
}

fn nice_of_autogroups(scenario: &Scenario) -> Vec<&Expr> {
    let own = scenario
        .objects()
        .iter()
        .filter_map(|object| match &object.kind {
            ObjectKind::Autogroup { nice } => Some(nice),
            _ => None,
        });
    own.chain(changed_nice(scenario, true)).collect()
}

/// The nice values that changes set, of groups or of tasks.
fn changed_nice(scenario: &Scenario, of_groups: bool) -> impl Iterator<Item = &Expr> {
    let changes = scenario.changes().iter().filter(move |change| {
        matches!(change.target, Target::Group(_) | Target::Groups(_)) == of_groups
    });
    changes.flat_map(|change| &change.set).filter_map(nice_of)
}

fn nice_of(set: &Set) -> Option<&Expr> {
    match set {
        Set::Nice(nice) => Some(nice),
        _ => None,
    }
}

fn has_uclamp(scenario: &Scenario) -> bool {
    let mut tasks = scenario.tasks().iter();
    let own = tasks.any(|task| task.uclamp_min.is_some() || task.uclamp_max.is_some());
    let is_clamp = |set: &Set| matches!(set, Set::UclampMin(_) | Set::UclampMax(_));
    own || scenario.sets().any(is_clamp)
}

fn has_quota(scenario: &Scenario) -> bool {
    let mut groups = scenario.objects().iter();
    let own = groups.any(|object| matches!(object.kind, ObjectKind::Group { quota: Some(_), .. }));
    own || scenario.sets().any(|set| matches!(set, Set::Quota(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(task: &str, rest: &str) -> Vec<&'static str> {
        let text = format!("[task.t]\n{task}\nbody = [{{ run = \"1ms\" }}]\n{rest}");
        let scenario =
            Scenario::read("t.toml", &text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        by_value(&scenario).collect()
    }

    #[test]
    fn it_goes_by_values_and_not_by_keys() {
        let nothing: [&str; 0] = [];
        for harmless in ["", "policy = \"normal\"", "nice = 5", "nice = 0"] {
            assert_eq!(used(harmless, ""), nothing, "{harmless}");
        }
        assert_eq!(used("policy = \"batch\"", ""), ["policy batch"]);
        assert_eq!(used("policy = \"idle\"", ""), ["policy idle"]);
        assert_eq!(used("nice = -1", ""), ["nice below 0"]);
        assert_eq!(used("policy = \"rr 1\"", ""), ["policy fifo or rr"]);
        assert_eq!(used("policy = \"fifo 50\"", ""), ["policy fifo or rr"]);
    }

    #[test]
    fn steps_changes_and_settings_count_as_the_keys_of_tables_do() {
        let step = "setup = [{ policy = \"fifo 1\" }, { nice = -5 }]\ncpus = \"cpu 0\"";
        assert_eq!(used(step, ""), ["policy fifo or rr", "nice below 0"]);
        let change =
            "[[change]]\nat = \"1s\"\ntask = \"t\"\nset = { nice = -5, policy = \"idle\" }";
        assert_eq!(used("", change), ["policy idle", "nice below 0"]);
        let setting = "[settings]\nhow_nice = { default = 3, least = 0, most = 19 }";
        assert_eq!(used("nice = \"how_nice\"", setting), ["nice below 0"]);
    }

    #[test]
    fn groups_differ_by_what_they_are_given() {
        let autogroup = |nice: &str| format!("[group.g]\nautogroup = true\n{nice}");
        assert_eq!(used("group = \"g\"", &autogroup("")), [""; 0]);
        let nicer = used("group = \"g\"", &autogroup("nice = 5"));
        assert_eq!(nicer, ["nice of an autogroup"]);
        assert_eq!(used("group = \"g\"", "[group.g]\nweight = 20"), [""; 0]);
        let quota = "[group.g]\nquota = \"6ms\"\nperiod = \"100ms\"";
        assert_eq!(used("group = \"g\"", quota), ["quota"]);
        let later = "[group.g]\nquota = \"6ms\"\nperiod = \"100ms\"\n[[change]]\nat = \"1s\"\ngroup = \"g\"\nset = { quota = \"9ms\" }";
        assert_eq!(used("group = \"g\"", later), ["quota"]);
    }
}
