//! Who waits by its weight, its group's, or the number of tasks.

use super::*;

/// What is due is by the groups that the scheduler knows: with its weight alone in its session a
/// task is due as much as any other session, and with nobody beside it the whole CPU.
#[test]
fn the_least_weight_alone_in_its_session_is_due_what_its_session_is() {
    let text = "[group.a]\nautogroup = true\n[group.b]\nautogroup = true\n[task.nice]\nnice = 10\n\
                group = \"a\"\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n[task.hog]\ngroup = \"b\"\n\
                cpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n[task.alone]\nnice = 10\ngroup = \"b\"\n\
                cpus = \"cpu 1\"\nbody = [{ run = \"1ms\" }]\n";
    let due = |scheduler: &str, name: &str| {
        let found = story(text, scheduler, "");
        let mut all = found.activity.waiting.into_iter();
        let waiting = all.find(|task| task.about.name == name).expect("it waits");
        waiting.due_ns * 100 / (waiting.ran_ns + waiting.waited_ns)
    };
    assert!((45..=55).contains(&due("eevdf-7.1", "nice")));
    // Where sessions have no groups, it is due what its weight is worth: a tenth of the other's.
    assert!((8..=11).contains(&due("o1", "nice")));
}

#[test]
fn whoever_has_the_least_weight_waits_for_it() {
    let nice = "[task.hog]\nbody = [{ run = \"1ms\" }]\n[task.least]\nnice = 19\n\
                body = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        only(
            &story(nice, scheduler, "cpus = 1"),
            Kind::LeastWeight,
            &["least"],
        );
    }
    let idle = nice.replace("nice = 19", "policy = \"idle\"");
    only(
        &story(&idle, "eevdf-7.1", "cpus = 1"),
        Kind::LeastWeight,
        &["least"],
    );
    let group = "[group.heavy]\nweight = 1000\n[group.light]\nweight = 50\n[task.hog]\n\
                 group = \"heavy\"\nbody = [{ run = \"1ms\" }]\n[task.least]\ngroup = \"light\"\n\
                 body = [{ run = \"1ms\" }]\n";
    only(
        &story(group, "eevdf-7.1", "cpus = 1"),
        Kind::LeastWeight,
        &["least"],
    );
}

/// Between sessions the weights of tasks count for nothing, and within its own all weigh the same.
#[test]
fn a_nice_value_without_effect_is_no_least_weight() {
    let text = "[group.s1]\nautogroup = true\n[group.s2]\nautogroup = true\n[task.important]\n\
                group = \"s1\"\nnice = -10\nbody = [{ run = \"10ms\" }]\n[task.other]\ncount = 4\n\
                group = \"s2\"\nnice = 10\nbody = [{ run = \"10ms\" }]\n";
    let found = story(text, "eevdf-6.18", "cpus = 1");
    let found = verdicts(&found);
    assert!(!found.contains_key("least-weight"), "{found:?}");
    assert!(found.contains_key("nice-without-effect"), "{found:?}");
}

/// An idle group weighs 3, less than any `cpu.weight`.
#[test]
fn a_group_that_is_idle_is_due_next_to_nothing() {
    let text = "[group.i]\nidle = true\n[group.n]\n[task.a]\ngroup = \"i\"\n\
                body = [{ run = \"10ms\" }]\n[task.b]\ngroup = \"n\"\nbody = [{ run = \"10ms\" }]\n";
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story(text, kernel, "cpus = 1");
        let found = verdicts(&found);
        assert!(!found.contains_key("unexplained"), "{kernel}: {found:?}");
    }
}

#[test]
fn a_service_beside_containers_of_much_weight_on_few_cpus_is_outweighed() {
    let text = include_str!("../../../tests/verdicts/outweighed.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let found = story(text, kernel, "cpus = 1");
        let found = verdicts(&found);
        assert_eq!(
            found.keys().copied().collect::<Vec<_>>(),
            ["outweighed"],
            "{kernel}: {found:?}"
        );
    }
    // Eight CPUs of containers divide the weight that kubelet gives them for eight.
    let spread = text.replace(
        "cpus = \"cpu 0\"\nbody = [{ run = \"10ms\" }]",
        "count = 8\nbody = [{ run = \"10ms\" }]",
    );
    let spread = spread.replace("2500", "313");
    for kernel in ["eevdf-6.12", "eevdf-6.18"] {
        let found = verdicts(&story_on("small-4llc", &spread, kernel, ""));
        assert!(!found.contains_key("outweighed"), "{kernel}: {found:?}");
    }
}

#[test]
fn a_nice_value_that_has_no_effect_in_another_session_is_reported() {
    let text = include_str!("../../../tests/verdicts/nice-in-session.toml");
    let one_session = text.replace("group = \"build\"\n", "group = \"desk\"\n");
    let weighted = text.replacen("[group.build]\n", "[group.build]\nnice = 19\n", 1);
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        only(
            &story(text, kernel, "cpus = 1"),
            Kind::NiceWithoutEffect,
            &["program"],
        );
        for cured in [&one_session, &weighted] {
            only(
                &story(cured, kernel, "cpus = 1"),
                Kind::LeastWeight,
                &["compiler"],
            );
        }
    }
    // O(1) knows no groups: nice has its effect.
    let found = verdicts(&story(text, "o1", "cpus = 1"));
    assert!(
        !found.contains_key(Kind::NiceWithoutEffect.name()),
        "{found:?}"
    );
}

/// What a task's nice value was last says nothing of one that sets it all the time.
#[test]
fn a_nice_value_that_changes_all_the_time_is_no_reason() {
    let text = include_str!("../../../tests/verdicts/nice-in-session.toml");
    let body = "{ run = \"10ms\" }";
    let changing = format!("{body}, {{ nice = 18 }}, {body}, {{ nice = 19 }}");
    let changing = text.replace(body, &changing);
    let found = verdicts(&story(&changing, "eevdf-7.3", "cpus = 1"));
    assert!(
        !found.contains_key(Kind::NiceWithoutEffect.name()),
        "{found:?}"
    );
}

/// Of many who run beside a task two dozen are listed by name, and all count.
#[test]
fn a_nice_value_is_no_reason_where_others_have_most_of_the_cpu() {
    let text = "[group.desk]\nautogroup = true\n[group.build]\nautogroup = true\n\
                [group.others]\nweight = 1000\n\
                [task.program]\ngroup = \"desk\"\nbody = [{ run = \"1ms\" }]\n\
                [task.compiler]\ncount = 12\nnice = 10\ngroup = \"build\"\nbody = [{ run = \"1ms\" }]\n\
                [task.other]\ncount = 40\nstart = \"300ms\"\ngroup = \"others\"\n\
                body = [{ run = \"1ms\" }, { sleep = \"60ms\" }]\n";
    let few = text.replace("count = 40", "count = 4");
    let has = |text: &str, kernel| {
        let found = story(text, kernel, "cpus = 1");
        verdicts(&found).contains_key(Kind::NiceWithoutEffect.name())
    };
    for kernel in ["eevdf-6.12", "eevdf-7.3"] {
        assert_eq!([has(text, kernel), has(&few, kernel)], [false, true]);
    }
}

#[test]
fn too_many_tasks_that_have_their_turns_are_reported() {
    let many = "[task.hog]\ncount = 12\nbody = [{ run = \"1ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-7.1"]) {
        let found = story(many, scheduler, "");
        let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
        assert_eq!(kinds, [Kind::TooMany.name()], "{found:#?}");
        assert_eq!(found.verdicts[0].tasks.len(), 12);
    }
}
