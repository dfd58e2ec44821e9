//! The rules of the board, and that time is neither lost nor counted twice.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::arbitrary::records;
use crate::{Cause, Interrupt};

const A: TaskId = TaskId(1);
const B: TaskId = TaskId(2);
const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

fn switch(cpu: CpuId, prev: Option<TaskId>, prev_runnable: bool, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu,
        prev,
        prev_runnable,
        next,
    }
}

fn woken(task: TaskId) -> Record {
    Record::Wakeup {
        waker: OTHER,
        task,
        target: CPU,
    }
}

fn throttled(task: TaskId) -> Record {
    Record::Block {
        cpu: CPU,
        task,
        cause: Cause::Quota,
        state: State::Runnable,
        object: None,
    }
}

fn waking(task: TaskId) -> Record {
    Record::Waking {
        cpu: OTHER,
        waker: Some(B),
        task,
        context: Context::Task,
        synchronous: false,
    }
}

fn lost(cpu: CpuId, events: u64) -> Record {
    Record::Lost { cpu, events }
}

/// A board of these records.
fn board(story: &[(u64, Record)]) -> Board {
    let mut board = Board::of_a_recording();
    for (at, record) in story {
        board.see(Instant(*at), record);
    }
    board
}

/// What `task` did until when, and what it does at last.
fn life(task: TaskId, story: &[(u64, Record)]) -> (Vec<(Doing, u64)>, Doing) {
    let mut board = Board::of_a_recording();
    let mut life = Vec::new();
    for (at, record) in story {
        let ended = board.see(Instant(*at), record).iter();
        life.extend(ended.filter_map(|ended| match ended.stretch {
            Stretch::Task { task: id, did, .. } if id == task => Some((did, ended.to.0)),
            _ => None,
        }));
    }
    (life, board.doing(task))
}

use Doing::{Exited, Runs, Sleeps, Throttled, Unknown, Waits};

#[test]
fn a_life_in_stretches() {
    let fork = Record::Fork {
        parent: None,
        child: A,
        comm: crate::Comm::new("A"),
    };
    let story = [
        (5, fork),
        (10, woken(A)),
        (12, switch(CPU, None, false, Some(A))),
        (20, switch(CPU, Some(A), true, Some(B))),
        (
            25,
            Record::Migrate {
                task: A,
                from: CPU,
                to: OTHER,
            },
        ),
        (30, switch(OTHER, None, false, Some(A))),
        (
            40,
            Record::Exit {
                cpu: OTHER,
                task: A,
            },
        ),
        (41, switch(OTHER, Some(A), false, None)),
    ];
    let expected = vec![
        (Unknown, 5),
        (Sleeps, 10),
        (Waits(CPU), 12),
        (Runs(CPU), 20),
        (Waits(OTHER), 30),
        (Runs(OTHER), 40),
    ];
    assert_eq!(life(A, &story), (expected, Exited));
    let before = board(&story[..5]);
    assert_eq!(
        (before.since(A), before.queued(A)),
        (Instant(20), Instant(25)),
        "one wait in two queues"
    );
    assert_eq!(
        board(&story[..7]).work(OTHER),
        Work::Runs(A),
        "to its switch"
    );
    assert_eq!(board(&story[..3]).served(), Some((A, Instant(10))));
    assert_eq!(board(&story[..6]).served(), None, "it was preempted");
}

#[test]
fn where_events_of_a_cpu_are_missing_only_other_cpus_are_known() {
    let story = [
        (0, switch(OTHER, None, false, Some(B))),
        (5, switch(CPU, None, false, Some(A))),
        (10, lost(CPU, 7)),
        (20, woken(A)),
        (30, switch(CPU, None, false, Some(A))),
        (35, switch(OTHER, Some(B), true, None)),
    ];
    let (of_a, _) = life(A, &story);
    assert_eq!(
        of_a,
        [(Unknown, 5), (Runs(CPU), 10), (Unknown, 20), (Unknown, 30)]
    );
    assert_eq!(life(B, &story).0, [(Unknown, 0), (Runs(OTHER), 35)]);
    let silent = board(&story[..4]);
    assert!(!silent.is_certain() && silent.work(CPU) == Work::Unknown);
    assert_eq!(silent.missing_since(Instant(15), Instant(25)), Duration(10));
    let found = board(&story);
    assert!(found.is_certain());
    assert_eq!(
        found.missing_since(Instant(0), Instant(40)),
        Duration::ZERO,
        "it has ended"
    );
}

#[test]
fn who_leaves_by_an_inferred_switch_neither_waits_nor_sleeps() {
    let runs = (0, switch(CPU, None, false, Some(A)));
    let left = (9, switch(CPU, Some(A), true, Some(B)));
    let after = |between: &[(u64, Record)]| {
        let story = [&[runs], between, &[left]].concat();
        (life(A, &story).1, board(&story).infers())
    };
    assert_eq!(after(&[]), (Waits(CPU), false));
    assert_eq!(after(&[(9, lost(CPU, 1))]), (Unknown, true));
    assert_eq!(after(&[(8, lost(CPU, 1))]), (Waits(CPU), false), "another");
    assert_eq!(
        after(&[(9, lost(CPU, 1)), (9, woken(B))]),
        (Waits(CPU), false),
        "the wakeup was inferred"
    );
}

#[test]
fn a_throttled_task_waits_for_no_cpu() {
    let runs = (0, switch(CPU, None, false, Some(A)));
    for runnable in [false, true] {
        let leaves = [(5, throttled(A)), (6, switch(CPU, Some(A), runnable, None))];
        let story = [&[runs], &leaves[..], &[(9, woken(A))]].concat();
        let expected = vec![(Unknown, 0), (Runs(CPU), 6), (Throttled, 9)];
        assert_eq!(life(A, &story), (expected, Waits(CPU)));
        let served = [&story[..], &[(11, switch(CPU, None, false, Some(A)))]].concat();
        assert_eq!(board(&served).served(), None, "no wakeup");
    }
    let queued = [(0, woken(A)), (3, throttled(A)), (9, woken(A))];
    let expected = vec![(Unknown, 0), (Waits(CPU), 3), (Throttled, 9)];
    assert_eq!(life(A, &queued), (expected, Waits(CPU)));
    let served = [&queued[..], &[(11, switch(CPU, None, false, Some(A)))]].concat();
    assert_eq!(
        board(&served).served(),
        Some((A, Instant(0))),
        "woken before"
    );
}

#[test]
fn who_is_about_to_be_woken_though_woken_already_has_run_unseen() {
    let story = [
        (5, waking(A)),
        (5, woken(A)),
        (50, waking(A)),
        (51, woken(A)),
    ];
    let expected = vec![(Unknown, 5), (Waits(CPU), 50), (Unknown, 51)];
    assert_eq!(life(A, &story), (expected, Waits(CPU)));
    // A preempted task may be about to sleep, and is woken then.
    let preempted = [
        (0, switch(CPU, None, false, Some(A))),
        (5, switch(CPU, Some(A), true, None)),
        (9, waking(A)),
    ];
    assert_eq!(life(A, &preempted).1, Waits(CPU));
}

#[test]
fn who_wakes_and_why_a_task_sleeps_is_kept_with_the_task() {
    let block = Record::Block {
        cpu: CPU,
        task: A,
        cause: Cause::Pipe,
        state: State::Interruptible,
        object: Some(3),
    };
    let enter = Record::InterruptEnter {
        cpu: OTHER,
        interrupt: Interrupt::Timer,
    };
    let story = [
        (0, switch(CPU, None, false, Some(A))),
        (0, switch(OTHER, None, false, Some(B))),
        (5, block),
        (5, switch(CPU, Some(A), false, None)),
        (7, enter),
        (8, woken(A)),
    ];
    let asleep = board(&story[..4]);
    let why = asleep.block(A).map(|block| (block.cause, block.object));
    assert_eq!(why, Some((Cause::Pipe, Some(3))));
    let by = board(&story).waking(A).map(|by| (by.waker, by.context));
    assert_eq!(
        by,
        Some((Some(B), Context::Interrupt)),
        "nobody announced it"
    );
    let announced = [&story[..5], &[(7, waking(A)), (8, woken(A))]].concat();
    let by = board(&announced).waking(A).map(|by| (by.at, by.context));
    assert_eq!(by, Some((Instant(7), Context::Task)));
    let ran = [&story[..], &[(9, switch(CPU, None, false, Some(A)))]].concat();
    assert_eq!(board(&ran).block(A), None);
}

#[test]
fn a_cpu_that_goes_offline_idles_no_more() {
    let hotplug = |online| Record::Hotplug { cpu: CPU, online };
    let mut board = Board::of_a_run();
    assert_eq!(board.work(CPU), Work::Idle);
    board.see(Instant(3), &hotplug(false));
    assert_eq!(board.work(CPU), Work::Offline);
    board.see(Instant(4), &switch(CPU, None, false, Some(A)));
    board.see(Instant(5), &switch(CPU, Some(A), false, None));
    assert_eq!(board.work(CPU), Work::Offline, "its last task has left");
    board.see(Instant(9), &hotplug(true));
    assert_eq!(
        (board.work(CPU), board.work_since(CPU)),
        (Work::Idle, Instant(9))
    );
}

#[test]
fn a_stretch_counts_in_a_window_with_what_is_inside() {
    let ended = Ended {
        from: Instant(10),
        to: Instant(30),
        stretch: Stretch::Gap,
    };
    assert_eq!(
        (ended.since(Instant(0)), ended.since(Instant(25))),
        (Duration(20), Duration(5))
    );
    assert_eq!(ended.since(Instant(40)), Duration::ZERO);
    assert_eq!(ended.within(Instant(15), Instant(20)), Duration(5));
}

proptest! {
    /// Of each task, of each CPU and of its interrupts, a stretch begins where the one before
    /// ended.
    #[test]
    fn stretches_leave_no_time_out_and_overlap_nowhere(run in records()) {
        let mut board = Board::of_a_run();
        let mut ends: BTreeMap<(u8, u32), Instant> = BTreeMap::new();
        let mut last = Instant::START;
        for (at, record) in &run {
            last = last.max(*at);
            let ended: Vec<Ended> = board.see(last, record).to_vec();
            for ended in ended.into_iter().filter(|ended| ended.stretch != Stretch::Gap) {
                let begins = ends.insert(key(&ended), ended.to).unwrap_or(Instant::START);
                prop_assert_eq!(ended.from, begins);
                prop_assert_eq!(ended.to, last);
            }
        }
        for open in board.open(last).filter(|open| open.stretch != Stretch::Gap) {
            let begins = ends.get(&key(&open)).copied().unwrap_or(Instant::START);
            prop_assert!(open.from == begins || open.from == open.to);
        }
    }
}

fn key(ended: &Ended) -> (u8, u32) {
    match ended.stretch {
        Stretch::Task { task, .. } => (0, task.0),
        Stretch::Cpu { cpu, .. } => (1, cpu.0.into()),
        Stretch::Spent { cpu, .. } => (2, cpu.0.into()),
        Stretch::Gap => (3, 0),
    }
}
