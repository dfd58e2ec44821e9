//! What changes while a scenario is played. A tick is 10 ms, and a letter stands for each.

use warmq_kernel::Ending;

use crate::scenarios::{chart, play_under, story};
use crate::stage::stage;

#[test]
fn a_stopped_task_does_not_run_until_it_continues() {
    let text = r#"
        [task.hog]
        body = [{ run = "10ms" }]

        [task.beat]
        cpus = "cpu 1"
        every = "20ms"
        body = [{ run = "10ms" }]

        [[change]]
        at = "30ms"
        task = "hog"
        set = { stop = true, cpus = "cpu 0" }

        [[change]]
        at = "60ms"
        task = "hog"
        set = { continue = true }

        # It sleeps, and is woken at 80 ms: then it stays stopped.
        [[change]]
        at = "75ms"
        task = "beat"
        set = { stop = true }

        [[change]]
        at = "110ms"
        task = "beat"
        set = { continue = true }
    "#;
    let chart = chart(text, 2, 14);
    // The hog starts on CPU 0, the beat on CPU 1. What a beat missed it makes up for.
    assert_eq!(chart, ["hhh...hhhhhhhh", "b.b.b.b....bbb"]);
}

#[test]
fn policies_nice_values_and_affinities_change_at_their_times() {
    let text = r#"
        [task.a]
        cpus = "cpu 0"
        body = [{ run = "10ms" }]
        [task.b]
        cpus = "cpu 0"
        body = [{ run = "10ms" }]
        [task.c]
        cpus = "cpu 1"
        body = [{ run = "10ms" }]

        [[change]]
        at = "35ms"
        task = "a"
        set = { policy = "fifo 50" }

        [[change]]
        at = "65ms"
        task = "a"
        set = { policy = "idle", nice = 5 }

        [[change]]
        at = "85ms"
        task = "a"
        set = { policy = "normal", cpus = "cpu 1", nice = -20 }
    "#;
    // Of those on CPU 0, a preempts b as a real-time task, and keeps the CPU for the rest of its
    // slice; then it preempts c by its nice value.
    assert_eq!(chart(text, 2, 14), ["bbbbaaaaabbbbb", "cccccccccaaaac"]);
}

#[test]
fn a_group_runs_no_longer_than_its_quota_in_each_period() {
    let text = r#"
        [group.g]
        quota = "20ms"
        period = "50ms"
        [task.in]
        group = "g"
        body = [{ run = "10ms" }]
        [task.out]
        start = "120ms"
        body = [{ run = "10ms" }]

        [[change]]
        at = "200ms"
        group = "g"
        set = { quota = "40ms" }
    "#;
    // The fifth period begins while the other task has the longer rest of its slice, which grew
    // while it slept; from 200 ms on the group has 40 ms in each 50.
    assert_eq!(chart(text, 1, 32), ["ii...ii...iiooooooooiiiiooooooii"]);
}

#[test]
fn a_group_in_a_group_has_what_both_leave_it() {
    let text = r#"
        [group.outer]
        quota = "50ms"
        period = "100ms"
        [group.inner]
        parent = "outer"
        quota = "10ms"
        period = "20ms"
        [task.inner]
        group = "inner"
        body = [{ run = "10ms" }]
        [task.other]
        group = "outer"
        start = "130ms"
        body = [{ run = "10ms" }]
    "#;
    // The inner group has 10 ms in each 20, and 50 ms in each 100 are for both tasks: at 90 ms they
    // are used up, then at 160 ms.
    let wanted = "i.i.i.i.i.i.iooo....ioooo.....iooii.....";
    assert_eq!(chart(text, 1, 40), [wanted]);
}

#[test]
fn a_frozen_group_does_not_run_with_all_that_is_in_it() {
    let text = r#"
        [group.outer]
        [group.inner]
        parent = "outer"
        [task.x]
        group = "outer"
        cpus = "cpu 0"
        body = [{ run = "10ms" }]
        [task.y]
        group = "inner"
        cpus = "cpu 1"
        body = [{ run = "10ms" }]

        [[change]]
        at = "20ms"
        group = "outer"
        set = { freeze = true }
        [[change]]
        at = "40ms"
        task = "x"
        set = { stop = true }
        [[change]]
        at = "60ms"
        group = "outer"
        set = { thaw = true }
        [[change]]
        at = "90ms"
        task = "x"
        set = { continue = true }
        # Out of a frozen group it runs again.
        [[change]]
        every = "120ms"
        end = "130ms"
        group = "inner"
        set = { freeze = true }
        [[change]]
        at = "140ms"
        task = "y"
        set = { group = "outer" }
    "#;
    assert_eq!(chart(text, 2, 16), ["xx.......xxxxxxx", "yy....yyyyyy..yy"]);
}

/// A CPU that goes offline may be switching away from a task that can run: that moves when the
/// switch is over, and no other CPU runs it before.
#[test]
fn who_is_being_switched_away_from_stays_until_that_is_done() {
    let toggled = |cpu: u16, every_us: u64| {
        let change = |online: bool| {
            format!(
                "[[change]]\nevery = \"{every_us}us\"\ncpu = \"cpu {cpu}\"\n\
                 set = {{ online = {online} }}\n"
            )
        };
        change(false) + &change(true)
    };
    let tasks = "[pipe.s]\n\
        [task.w]\nbody = [{ send = \"s\", bytes = \"13B\" }]\n\
        [task.r]\nbody = [{ receive = \"s\", bytes = \"13B\" }]\n";
    for every_us in [83, 89, 97, 101] {
        let text = format!(
            "{tasks}{}{}",
            toggled(0, every_us),
            toggled(1, every_us + 2)
        );
        for name in ["cfs", "eevdf-6.12", "eevdf-7.3"] {
            let (ending, ..) = play_under(name, &story(&text), stage(2).real(), 10);
            assert_eq!(ending, Ending::TimeUp, "{name}, each {every_us} us");
        }
    }
}

#[test]
fn cpus_go_offline_and_come_back() {
    let text = r#"
        [task.a]
        body = [{ run = "10ms" }]
        [task.b]
        body = [{ run = "10ms" }]

        [[change]]
        at = "35ms"
        cpu = "cpu 0"
        set = { online = false }
        # The last one stays.
        [[change]]
        at = "45ms"
        cpu = "cpu 1"
        set = { online = false }
        [[change]]
        at = "150ms"
        cpu = "all"
        set = { online = true }
    "#;
    // A slice is 60 ms: b has the rest of its own, then a that of its own and a new one.
    assert_eq!(
        chart(text, 2, 20),
        ["aaaa...........bbbbb", "bbbbbbaaaaaaaaaaaaaa"]
    );
}
