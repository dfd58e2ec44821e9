//! Machines of several memory nodes, and CPUs of unlike capacity: who goes where, and when.

use warmq_sched_ext::interleaved::Event;

use crate::warmq::play::{ALL, Play, Site, is_missing};

/// Nodes of `caches` of `cpus` each, where nobody preempts whoever runs, which is not what these
/// tests are about.
fn nodes(nodes: u16, caches: u16, cpus: u16) -> Site {
    Site::nodes(nodes, caches, cpus).set("policy.preempt_interval", 1 << 60)
}

/// The same, where cache 0 is near to the others in this order.
fn with_order(mut site: Site, order: &[i128]) -> Site {
    for (rank, other) in order.iter().enumerate() {
        site = site.set(&format!("domain_near[0][{rank}]"), *other);
    }
    site
}

/// The same, where these CPUs are fast, and others are half as fast.
fn with_fast(mut site: Site, fast: &[u16]) -> Site {
    for (cpu, place) in (0..).zip(&mut site.places) {
        place.capacity /= if fast.contains(&cpu) { 1 } else { 2 };
    }
    site
}

/// Two nodes of two caches of two CPUs; the first node is full.
fn beside_an_idle_node() -> Play {
    let mut play = Play::on(&nodes(2, 2, 2));
    let cpus = [0, 1, 2, 3].map(|task| play.starts(task, 0));
    assert_eq!(cpus, [0, 1, 2, 3].map(Some), "the cache, then the node");
    play
}

/// Each CPU runs the task of its number.
fn all_busy(site: &Site) -> Play {
    let mut play = Play::on(site);
    for cpu in 0..site.places.len() as u16 {
        assert_eq!(play.starts(cpu.into(), cpu), Some(cpu));
    }
    play
}

#[test]
fn a_task_that_wakes_stays_in_its_node_while_few_wait() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    assert_eq!([4, 5].map(|task| play.starts(task, 0)), [None, None]);
    assert_eq!(play.busy(4..8), 0);
    // A third one waits for two CPUs.
    play.starts(6, 0);
    assert_eq!((play.busy(4..8), play.runs(4).is_some()), (1, true));
    // And so does one that wakes then, as long as three wait.
    assert_eq!(play.starts(7, 0), None);
    assert_eq!(play.busy(4..8), 2);
}

#[test]
fn a_task_that_wakes_where_many_wait_runs_elsewhere_at_once() {
    if is_missing() {
        return;
    }
    let mut play = all_busy(&nodes(2, 1, 1));
    (2..5).for_each(|task| assert_eq!(play.starts(task, 0), None));
    assert_eq!(play.sleeps(1), Some(2), "three waited for one CPU");
    assert_eq!(play.sleeps(1), Some(3), "two did");
    assert_eq!(play.sleeps(1), None, "only one does");
}

#[test]
fn a_new_task_has_no_memory_and_goes_to_any_node() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    play.born(4, 0, ALL);
    let starts = Event::Start(play.id(4));
    play.all_of(0, starts);
    assert_eq!(play.cpu_of(4), Some(4));
    // One that wakes has some.
    assert_eq!(play.starts(5, 0), None);
}

/// Not only those that wait at first: whoever lost its CPU since waits as well.
#[test]
fn no_task_waits_beside_an_idle_node_for_longer_than_patience_and_two_rounds() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    play.later(5); // between two rounds of the timer
    assert_eq!(play.starts(4, 0), None);
    play.passes(24);
    assert_eq!(play.busy(0..8), 4, "a CPU has idled beside it for 19 ms");
    play.passes(10);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 1));
    play.passes(100);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 1));
}

/// CPUs without ticks queue nobody again, and look no more. Node 2 is nearer to node 0 than node 1
/// is.
#[test]
fn the_timer_wakes_a_cpu_of_the_nearest_node_when_patience_is_over() {
    if is_missing() {
        return;
    }
    let mut play = all_busy(&with_order(nodes(3, 1, 1), &[0, 2, 1]));
    assert_eq!(play.starts(3, 0), None);
    assert_eq!([1, 2].map(|cpu| play.sleeps(cpu)), [None, None]);
    let mut woken = || {
        play.later(10);
        play.timers();
        play.kicked()
    };
    let nobody: [u16; 0] = [];
    assert_eq!([woken(), woken()], [nobody, nobody]);
    assert_eq!(woken(), [2]);
    assert_eq!(play.pick(2), Some(3));
}

/// No CPU idles. Four tasks share the two CPUs of a cache, beside two that have two; both nodes are
/// alike in that.
#[test]
fn the_timer_balances_between_the_caches_of_each_node() {
    if is_missing() {
        return;
    }
    for busy in [0, 4] {
        let mut play = all_busy(&nodes(2, 2, 2));
        (8..10).for_each(|task| assert_eq!(play.starts(task, busy), None));
        let mut ran = [[false; 10]; 8];
        for _ in 0..200 {
            play.passes(1);
            for (cpu, ran) in (0..).zip(&mut ran) {
                ran[play.runs(cpu).expect("no CPU idles") as usize] = true;
            }
        }
        for (cpu, tasks) in ran.iter().enumerate() {
            let first = usize::from(busy);
            let of_busy = tasks[8] || tasks[9] || tasks[first] || tasks[first + 1];
            assert_eq!(of_busy, cpu / 4 == first / 4, "{busy}, {cpu}: {tasks:?}");
        }
    }
}

/// It would take one task after the other from a node that has no less to do.
#[test]
fn a_node_that_is_as_busy_gives_nothing_however_long_its_tasks_wait() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    (4..8).for_each(|task| assert!(play.starts(task, 4).is_some()));
    play.starts(8, 0);
    play.passes(200);
    let sleeper = play.runs(7).expect("all CPUs are busy");
    assert_eq!(play.sleeps(7), None);
    assert_eq!(play.woken(sleeper, 7), Some(7));
}

#[test]
fn a_queue_that_was_empty_or_beside_no_idle_cpu_begins_to_wait_anew() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    play.later(5);
    play.starts(4, 0);
    play.passes(14);
    // For two rounds none idles.
    (5..9).for_each(|task| assert!(play.starts(task, 4).is_some()));
    play.passes(20);
    (4..8).for_each(|cpu| assert_eq!(play.sleeps(cpu), None));
    play.passes(14);
    assert_eq!(play.busy(4..8), 0);
    play.passes(20);
    assert_eq!(play.busy(4..8), 1);
}

/// Four nodes of two caches of one CPU. Node 0 is near to node 2, then 3, then 1.
#[test]
fn an_idle_cpu_takes_what_waits_in_its_node_and_then_in_the_nearest() {
    if is_missing() {
        return;
    }
    let site = with_order(nodes(4, 2, 1), &[0, 1, 4, 5, 6, 7, 2, 3]);
    let mut play = all_busy(&site);
    // Three wait for each of the others; of those of another node, two come.
    for cpu in 1..8 {
        (1..=3).for_each(|number| assert_eq!(play.starts(cpu + 10 * number, cpu as u16), None));
    }
    let from: Vec<u32> = std::iter::from_fn(|| play.sleeps(0))
        .map(|task| task % 10)
        .collect();
    assert_eq!(from, [1, 1, 1, 4, 4, 5, 5, 6, 6, 7, 7, 2, 2, 3, 3]);
}

#[test]
fn who_may_not_run_everywhere_at_home_goes_to_any_node_at_once() {
    if is_missing() {
        return;
    }
    let mut play = beside_an_idle_node();
    play.born(4, 0, 1 | 1 << 6);
    assert_eq!(play.woken(4, 0), Some(6));
    // Who may waits with the others.
    play.born(5, 0, 0b11 | 1 << 7);
    assert_eq!(play.woken(5, 0), None);
}

/// The tasks of a group run where it lives.
fn names(play: &mut Play, task: u32, hint: u64) -> u16 {
    let cpu = play.starts(task, 0).expect("a CPU idles");
    play.names(cpu, hint);
    play.cpu_of(task).expect("a CPU idles at its home")
}

#[test]
fn new_groups_live_in_their_node_until_all_its_cpus_have_work() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&nodes(2, 2, 2));
    let homes = [1, 2, 3, 4].map(|hint| names(&mut play, hint, hint.into()) / 2);
    assert_eq!(homes, [0, 1, 2, 3]);
}

/// A member of a group wakes.
fn joins(play: &mut Play, task: u32, hint: u64) -> Option<u16> {
    play.born(task, 0, ALL);
    play.write_slot(task, hint);
    play.woken(task, 0)
}

#[test]
fn a_group_leaves_its_node_after_patience() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&nodes(2, 2, 2));
    let homes = [1, 2].map(|hint| names(&mut play, hint, hint.into()) / 2);
    assert_eq!(homes, [0, 1]);
    joins(&mut play, 3, 1);
    joins(&mut play, 4, 2);
    assert_eq!(joins(&mut play, 5, 2), None, "a third task of two CPUs");
    play.passes(19);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 0));
    play.passes(31);
    assert!(play.busy(4..8) > 0);
}

/// No CPU idles. What is too much for a node is more than a cache has CPUs.
#[test]
fn the_timer_balances_between_nodes_where_many_wait() {
    if is_missing() {
        return;
    }
    for (waiting, goes) in [(2, false), (3, true)] {
        let mut play = all_busy(&nodes(2, 1, 2));
        (4..4 + waiting).for_each(|task| assert_eq!(play.starts(task, 0), None));
        let mut others = 0;
        for _ in 0..100 {
            play.passes(1);
            let running = [2, 3].map(|cpu| play.runs(cpu));
            let is_other = |task: &u32| ![2, 3].contains(task);
            others += running
                .iter()
                .flatten()
                .filter(|task| is_other(task))
                .count();
        }
        assert_eq!(others > 0, goes, "{waiting} wait");
    }
}

/// Two nodes of two CPUs; a group has those of the first, and so many tasks of another wait there,
/// and of none. What an idle CPU of the second node takes.
fn taken_of(waiting: u32, unmanaged: u32) -> Option<u32> {
    let mut play = Play::on(&nodes(2, 1, 2));
    assert_eq!(names(&mut play, 1, 1), 0);
    play.passes(25); // it is no newcomer any more
    assert_eq!(names(&mut play, 2, 2), 1);
    assert_eq!(play.sleeps(1), None);
    assert_eq!(joins(&mut play, 3, 1), Some(1));
    for task in 4..4 + waiting {
        assert_eq!(joins(&mut play, task, 2), None);
    }
    for task in 20..20 + unmanaged {
        assert_eq!(play.starts(task, 0), None);
    }
    play.pick(2)
}

#[test]
fn a_group_that_lets_many_wait_leaves_its_node_at_once() {
    if is_missing() {
        return;
    }
    assert_eq!(taken_of(2, 0), None);
    assert!(taken_of(3, 0).is_some_and(|task| task < 20));
}

#[test]
fn what_waits_beside_groups_stays_in_its_node_as_well() {
    if is_missing() {
        return;
    }
    assert_eq!(taken_of(1, 1), None);
    assert_eq!(taken_of(1, 2), None);
}

/// The other node idles, and would be a better home still.
#[test]
fn an_idle_cpu_takes_a_group_of_its_node() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&nodes(2, 2, 2));
    let starts = [2, 3].map(|cpu| play.starts(u32::from(cpu) + 10, cpu));
    assert_eq!(starts, [Some(2), Some(3)]);
    assert_eq!(names(&mut play, 1, 1) / 2, 0);
    play.passes(25); // it is no newcomer any more
    assert_eq!(names(&mut play, 2, 2), 1);
    assert_eq!(play.sleeps(1), None);
    assert_eq!(joins(&mut play, 3, 1), Some(1));
    assert_eq!(joins(&mut play, 4, 2), None);
    assert_eq!(play.sleeps(3), Some(4));
}

#[test]
fn a_core_is_left_for_another_node_late_only() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&nodes(2, 1, 2).cores(&[0, 0, 1, 1]));
    assert_eq!([play.starts(0, 0), play.starts(1, 1)], [Some(0), Some(1)]);
    play.passes(190);
    assert_eq!(play.busy(0..2), 2);
    play.passes(30);
    assert_eq!((play.busy(0..2), play.busy(2..4)), (1, 1));
}

#[test]
fn fast_cpus_are_taken_first_and_the_previous_one_of_equals() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&with_fast(nodes(1, 1, 4), &[2, 3]));
    assert_eq!(play.starts(0, 3), Some(3), "the previous one is fast");
    assert_eq!(play.starts(1, 1), Some(2), "it is not");
    assert_eq!(play.starts(2, 1), Some(1), "no fast one idles");
    assert_eq!(play.starts(3, 1), Some(0));
}

#[test]
fn fast_cpus_are_woken_first_for_what_waits() {
    if is_missing() {
        return;
    }
    let mut play = Play::on(&with_fast(nodes(1, 1, 6), &[1, 3, 5]));
    play.born(0, 0, ALL);
    let [wakes, changes] = [Event::Wake(play.id(0)), Event::Nice(play.id(0), 1)];
    let fast = |play: &Play| play.kicked().iter().filter(|cpu| **cpu % 2 == 1).count();
    play.happens(0, wakes);
    assert_eq!((play.kicked().len(), fast(&play)), (1, 1));
    // That CPU does not look. The task is queued once more.
    play.happens(0, changes);
    assert_eq!((play.kicked().len(), fast(&play)), (2, 2));
    // Nor does this one. The timer wakes another.
    play.later(10);
    play.timers();
    assert_eq!((play.kicked().len(), fast(&play)), (3, 3));
}

#[test]
fn a_fast_core_comes_before_a_slow_one_and_that_before_half_a_core() {
    if is_missing() {
        return;
    }
    // Fast CPUs 0 and 1 are a core, and so are 2 and 3; 4 and 5 are slow.
    let site = nodes(1, 1, 6).cores(&[0, 0, 1, 1, 2, 3]);
    let mut play = Play::on(&with_fast(site.clone(), &[0, 1, 2, 3]));
    let cores = [0, 1, 2, 3, 4, 5].map(|task| {
        let cpu = play.starts(task, 4).expect("all idle");
        site.places[usize::from(cpu)].core
    });
    // Which of equals comes first is the kernel's.
    let mut fast = [cores[0], cores[1]];
    fast.sort_unstable();
    assert_eq!((fast, &cores[2..4]), ([0, 1], &[2, 3][..]));
    assert!(cores[4..].iter().all(|core| *core < 2));
}
