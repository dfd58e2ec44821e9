//! Who is held back by a quota, a reservation, real-time tasks or interrupts.

use super::*;

/// No record says whom a scheduler holds back that keeps quotas by itself; that the group has used
/// up what it may is in the recording.
#[test]
fn a_real_time_task_waits_for_others_of_its_priority_and_above() {
    for priority in [40, 50] {
        let text = format!(
            "[task.first]\npolicy = \"fifo 50\"\nbody = [{{ run = \"10ms\" }}]\n\
             [task.second]\npolicy = \"fifo {priority}\"\n\
             body = [{{ run = \"10ms\" }}]\n"
        );
        let found = story(&text, "eevdf-6.18", "cpus = 1");
        only(&found, Kind::Realtime, &["second"]);
    }
}

#[test]
fn a_quota_that_a_scheduler_keeps_by_itself_is_one() {
    let Some(fair) = fair() else {
        return;
    };
    let text = "[group.pod]\nquota = \"30ms\"\nperiod = \"100ms\"\n[task.hog]\ncount = 2\ngroup = \"pod\"\n\
                body = [{ run = \"1ms\" }]\n";
    only(&story(text, fair, ""), Kind::Quota, &["hog 0", "hog 1"]);
}

#[test]
fn a_quota_that_other_cpus_hold_slices_of_is_reported_with_what_the_kernel_counts() {
    let text = include_str!("../../../tests/verdicts/quota-stranded.toml");
    for kernel in ["eevdf-6.12", "eevdf-6.18", "eevdf-7.3"] {
        let slices = "bandwidth_slice = \"90ms\"";
        let found = story(text, kernel, slices);
        let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
        assert_eq!(kinds, [Kind::QuotaStranded.name()], "{kernel}: {found:#?}");
        let verdict = &found.verdicts[0];
        assert!(
            verdict.because.contains("nr_throttled"),
            "{}",
            verdict.because
        );
        // Its cures are ones.
        let short_slices = story(text, kernel, "");
        assert_eq!(verdicts(&short_slices), BTreeMap::new(), "{kernel}");
        let more = text.replace("= \"100ms\"\nperiod", "= \"200ms\"\nperiod");
        assert_eq!(
            verdicts(&story(&more, kernel, slices)),
            BTreeMap::new(),
            "{kernel}"
        );
    }
}

#[test]
fn a_real_time_task_that_never_sleeps_is_reported() {
    let urgent = "[task.urgent]\npolicy = \"fifo 50\"\ncpus = \"cpu 0\"\nbody = [{ run = \"10ms\" }]\n\
                  [task.hog]\ncpus = \"cpu 0\"\nbody = [{ run = \"1ms\" }]\n";
    let found = story(urgent, "eevdf-6.18", "");
    only(&found, Kind::Realtime, &["hog"]);
    let because = &found.verdicts[0].because;
    assert!(because.contains("of CPU 0, and left 5."), "{because}");
}

#[test]
fn a_deadline_task_whose_runtime_is_used_up_is_reported() {
    let reserved =
        "[task.reserved]\npolicy = \"deadline 10ms 50ms\"\nbody = [{ run = \"10ms\" }]\n";
    for scheduler in fair().into_iter().chain(["eevdf-6.18"]) {
        let found = story(reserved, scheduler, "");
        only(&found, Kind::Reservation, &["reserved"]);
    }
}

#[test]
fn interrupts_that_have_the_cpu_are_reported() {
    let flood = "[datagram.socket]\n[source.network]\nto = \"socket\"\nbytes = \"64B\"\n\
                 rate = \"400000 per s\"\n[task.receiver]\nbody = [{ receive = \"socket\" }]\n\
                 [task.hog]\nbody = [{ run = \"1ms\" }]\n";
    let Some(fair) = fair() else {
        return;
    };
    let found = story(flood, fair, "cpus = 1");
    let kinds: Vec<&str> = verdicts(&found).into_keys().collect();
    assert_eq!(kinds, [Kind::Interrupts.name()], "{found:#?}");
}

#[test]
fn a_quota_that_holds_a_group_back_is_reported() {
    let limited = "[group.limited]\nquota = \"20ms\"\nperiod = \"100ms\"\n[task.hog]\ncount = 2\n\
                   group = \"limited\"\nbody = [{ run = \"1ms\" }]\n";
    // A compiled scheduler keeps quotas by itself, and nothing records whom it holds back.
    let found = story(limited, "eevdf-7.1", "");
    only(&found, Kind::Quota, &["hog 0", "hog 1"]);
}
