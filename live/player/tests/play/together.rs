//! Steps by which tasks act on one another.

use warmq_trace::Record;
use warmq_units::TaskId;

use crate::support::{play, play_ms};

#[test]
fn a_mutex_is_held_by_one_task_at_a_time() {
    let text = "
        [mutex.m]
        [task.one]
        count = 4
        times = 50
        body = [
          { lock = \"m\" }, { begin = \"held\" }, { run = \"20us\" }, { yield = true }, { end = \"held\" }, { unlock = \"m\" },
        ]";
    let played = play_ms(text, 20_000);
    let spans = played.spans("held");
    assert_eq!(spans.len(), 200);
    for pair in spans.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
    }
}

#[test]
fn a_condition_wakes_who_waits() {
    let text = "
        [mutex.m]
        [condition.c]
        [semaphore.ready]
        [semaphore.done]
        [task.waiter]
        count = 3
        times = 20
        body = [
          { lock = \"m\" }, { raise = \"ready\" }, { wait = \"c\", mutex = \"m\" }, { unlock = \"m\" },
          { count = \"woken\" }, { raise = \"done\" },
        ]
        [task.waker]
        times = 20
        body = [
          { repeat = 3, body = [{ lower = \"ready\" }] },
          { lock = \"m\" }, { count = \"signals\" }, { signal = \"c\", all = true }, { unlock = \"m\" },
          { repeat = 3, body = [{ lower = \"done\" }] },
        ]";
    let played = play_ms(text, 60_000);
    assert_eq!(
        (played.counted("signals"), played.counted("woken")),
        (20, 60)
    );
}

#[test]
fn a_semaphore_is_lowered_no_more_often_than_it_is_raised() {
    let text = "
        [semaphore.s]
        for = { room = 2, user = 3 }
        initial = \"room * 10 + user\"
        [task.lower]
        for = { room = 2, user = 3 }
        times = \"room * 10 + user + 7 * ((room * 3 + user) / 5)\"
        body = [{ lower = \"s[room, user]\" }, { count = \"lowered\" }]
        [task.raise]
        times = 7
        body = [{ raise = \"s[1, 2]\" }, { count = \"raised\" }]";
    let played = play_ms(text, 60_000);
    let initial: u64 = (0..2)
        .flat_map(|room| (0..3).map(move |user| room * 10 + user))
        .sum();
    assert_eq!(played.counted("raised"), 7);
    assert_eq!(played.counted("lowered"), initial + 7);
}

#[test]
fn a_barrier_lets_nobody_be_a_round_ahead() {
    let text = "
        [barrier.b]
        tasks = 3
        [task.one]
        count = 3
        times = 40
        body = [{ begin = \"round\" }, { run = { uniform = [\"1us\", \"50us\"] } }, { end = \"round\" }, { barrier = \"b\" }]";
    let played = play_ms(text, 20_000);
    let mut spans = played.spans("round");
    assert_eq!(spans.len(), 120);
    spans.sort_unstable();
    for rounds in spans.chunks(3).collect::<Vec<_>>().windows(2) {
        let last_end = rounds[0].iter().map(|(_, end)| end).max();
        let first_begin = rounds[1].iter().map(|(begin, _)| begin).min();
        assert!(last_end <= first_begin, "{rounds:?}");
    }
}

#[test]
fn a_semaphore_that_nobody_raises_is_never_lowered() {
    let text = "
        [semaphore.s]
        initial = 2
        [task.lower]
        count = 3
        body = [{ lower = \"s\" }, { count = \"lowered\" }]
        [task.raise]
        start = \"1s\"
        times = 1
        body = [{ raise = \"s\" }]";
    assert!(play_ms(text, 50).counted("lowered") <= 2);
}

#[test]
fn what_is_put_into_a_queue_is_taken_out_of_it() {
    let text = "
        [queue.q]
        holds = 4
        [task.put]
        count = 2
        times = 100
        body = [{ put = \"q\" }, { count = \"puts\" }]
        [task.take]
        times = 197
        body = [{ take = \"q\" }, { count = \"takes\" }]";
    let played = play_ms(text, 60_000);
    assert_eq!(
        (played.counted("puts"), played.counted("takes")),
        (200, 197)
    );
}

#[test]
fn a_queue_holds_no_more_than_it_can() {
    let text = "
        [queue.q]
        holds = 4
        [task.put]
        count = 2
        body = [{ put = \"q\" }, { count = \"puts\" }]
        [task.take]
        start = \"1s\"
        times = 1
        body = [{ take = \"q\" }]";
    assert!(play_ms(text, 50).counted("puts") <= 4);
}

#[test]
fn a_thread_shares_its_process_and_a_fork_does_not() {
    let text = "
        [task.parent]
        times = 1
        body = [{ spawn = \"thread[0]\" }, { fork = \"child[1]\" }, { run = \"1ms\" }]
        [task.thread]
        for = { n = 2 }
        spawned = true
        times = 2
        body = [{ count = \"threads\" }]
        [task.child]
        for = { n = 2 }
        spawned = true
        nice = 3
        times = 1
        body = [{ count = \"children\" }, { fork = \"grandchild\" }]
        [task.grandchild]
        spawned = true
        times = 1
        body = [{ count = \"grandchildren\" }]";
    let played = play_ms(text, 20_000);
    assert_eq!(played.counted("threads"), 2);
    assert_eq!(
        (played.counted("children"), played.counted("grandchildren")),
        (1, 1)
    );
    let [parent] = played.tasks("parent")[..] else {
        panic!("one parent");
    };
    let ([thread], [child]) = (&played.tasks("thread")[..], &played.tasks("child")[..]) else {
        panic!("one of each");
    };
    let of_parent = played.ids(parent).1;
    assert_eq!(played.ids(*thread).1, of_parent);
    let of_child = played.ids(*child);
    assert!(of_child.0 == of_child.1 && of_child.1 != of_parent);
    let forks: Vec<(Option<TaskId>, TaskId)> = played
        .all()
        .filter_map(|record| match record {
            Record::Fork { parent, child, .. } => Some((*parent, *child)),
            _ => None,
        })
        .collect();
    let grandchild = played.tasks("grandchild")[0];
    let wanted = [
        (None, parent),
        (Some(parent), *thread),
        (Some(parent), *child),
        (Some(*child), grandchild),
    ];
    for fork in wanted {
        assert!(forks.contains(&fork), "{fork:?} of {forks:?}");
    }
    let role = Record::Role {
        task: *child,
        table: 2,
        number: 1,
    };
    assert!(played.all().any(|record| *record == role));
}

#[test]
fn a_task_that_starts_others_for_ever_ends_with_all_of_them() {
    let text = "
        [task.parent]
        times = 5
        body = [{ fork = \"child\" }, { count = \"forks\" }]
        [task.child]
        spawned = true
        body = [{ sleep = \"60s\" }]";
    let played = play_ms(text, 1_000);
    assert!(played.counted("forks") > 1);
    let children = played.tasks("child");
    assert!(children.len() > 1);
    // One that was forked at the very end may not be known by its number.
    let known = children.iter().filter_map(|child| played.ids_of(*child));
    assert!(
        known
            .into_iter()
            .all(|(_, process)| !crate::support::lives(process))
    );
}

#[test]
fn tasks_of_a_process_are_its_threads() {
    let text = "
        [process.p]
        for = { n = 2 }
        [task.one]
        for = { n = 6 }
        process = \"p[n % 2]\"
        times = 1
        body = [{ count = \"done\" }]";
    let played = play_ms(text, 10_000);
    assert_eq!(played.counted("done"), 6);
    let processes: Vec<u32> = played
        .tasks("one")
        .iter()
        .map(|task| played.ids(*task).1)
        .collect();
    assert!(
        processes
            .iter()
            .step_by(2)
            .all(|process| *process == processes[0])
    );
    assert!(
        processes
            .iter()
            .skip(1)
            .step_by(2)
            .all(|process| *process == processes[1])
    );
    assert_ne!(processes[0], processes[1]);
}

#[test]
fn a_span_may_begin_in_one_task_and_end_in_another() {
    let text = "
        [semaphore.woken]
        for = { n = 2 }
        [semaphore.done]
        [task.waker]
        times = 10
        body = [{ each = \"n\", of = 2, body = [
          { begin = \"wakeup[n]\" }, { raise = \"woken[n]\" }, { lower = \"done\" },
        ] }]
        [task.worker]
        for = { n = 2 }
        times = 10
        body = [{ lower = \"woken[n]\" }, { end = \"wakeup[n]\" }, { raise = \"done\" }]";
    assert_eq!(play_ms(text, 20_000).spans("wakeup").len(), 20);
}

#[test]
fn equal_seeds_draw_equal_amounts() {
    let text = "
        order = \"random\"
        [task.one]
        count = 5
        times = 30
        body = [{ repeat = { uniform = [1, 9] }, body = [{ count = \"n\" }] }]";
    // `repeat` takes no amount: the number of rounds is drawn by who is first in a random order.
    let refused = play(text, "--warmup 0s --time 5s");
    assert_eq!(refused.code, Some(2), "{}", refused.said);
    let text = "order = \"random\"\n[task.one]\ncount = 9\ntimes = 1\nbody = [{ run = \"1us\" }]";
    let roles = |seed: u32| {
        let played = play(text, &format!("--warmup 0s --time 5s --seed {seed}"));
        played.tasks("one")
    };
    assert_eq!(roles(3), roles(3));
    assert_ne!(roles(3), roles(4));
}
