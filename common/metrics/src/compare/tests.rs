//! Records made by hand, in which the first difference is known.

use warmq_trace::{Context, Header, Names, Record};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use super::*;

const CPU: CpuId = CpuId(0);
/// Of no scenario.
const OTHER: u32 = 99;

fn ms(ms: u64) -> Instant {
    Instant::START + Duration::from_ms(ms)
}

/// A recording of the tables `hog` and `nap`, whose tasks have these ids in the order of tables.
fn of(ids: &[(u32, u32)], records: Vec<(Instant, Record)>) -> Recording {
    let role = |(table, ids): (usize, &(u32, u32))| {
        let (task, number) = (TaskId(ids.0), ids.1);
        let table = table.min(1) as u32;
        let role = Record::Role {
            task,
            table,
            number,
        };
        (Instant::START, role)
    };
    let roles = ids.iter().enumerate().map(role);
    let header = Header {
        names: Names {
            tasks: vec!["hog".to_owned(), "nap".to_owned()],
            ..Names::default()
        },
        ..Header::default()
    };
    Recording {
        header,
        records: roles.chain(records).collect(),
    }
}

fn switch(at: u64, prev: Option<u32>, prev_runnable: bool, next: Option<u32>) -> (Instant, Record) {
    let record = Record::Switch {
        cpu: CPU,
        prev: prev.map(TaskId),
        prev_runnable,
        next: next.map(TaskId),
    };
    (ms(at), record)
}

fn wakeup(at: u64, task: u32) -> [(Instant, Record); 2] {
    let (task, cpu) = (TaskId(task), CPU);
    let waking = Record::Waking {
        cpu,
        waker: None,
        task,
        context: Context::Interrupt,
        synchronous: false,
    };
    let woken = Record::Wakeup {
        waker: cpu,
        task,
        target: cpu,
    };
    [(ms(at), waking), (ms(at), woken)]
}

/// The hog runs, the napper (of id `nap`) preempts it at 4 ms and sleeps at 5, and is woken at 7;
/// at 8 ms `last` follows.
fn story(hog: u32, nap: u32, last: Vec<(Instant, Record)>) -> Recording {
    let mut records = vec![switch(0, None, false, Some(hog))];
    records.extend(wakeup(3, nap));
    records.push(switch(4, Some(hog), true, Some(nap)));
    records.push(switch(5, Some(nap), false, Some(hog)));
    records.extend(wakeup(7, nap));
    records.extend(last);
    of(&[(hog, 0), (nap, 0)], records)
}

fn compared(a: &Recording, b: &Recording) -> Comparison {
    compare([a, b], Extent::default()).unwrap()
}

#[test]
fn tasks_are_the_same_by_name_whatever_their_ids() {
    let last = |hog, nap| vec![switch(8, Some(hog), true, Some(nap))];
    let (a, b) = (story(1, 2, last(1, 2)), story(7, 3, last(7, 3)));
    let compared = compared(&a, &b);
    assert!(compared.agrees() && !compared.identical);
    let agreement = Agreement {
        decisions: [4, 4],
        same: 4,
        in_order: 4,
        time_difference: Duration::ZERO,
        late: None,
    };
    assert_eq!(compared.cpus, [(CPU, agreement)].into());
}

#[test]
fn the_first_difference_is_where_it_is_with_who_waited_and_who_was_woken() {
    let a = story(1, 2, vec![switch(8, Some(1), true, Some(2))]);
    // The hog sleeps here instead of being preempted.
    let b = story(1, 2, vec![switch(9, Some(1), false, Some(2))]);
    let compared = compared(&a, &b);
    let found = compared.first.unwrap();
    assert_eq!((found.cpu, found.place), (CPU, 3));
    assert_eq!(found.before.each_ref().map(Vec::len), [3, 3]);
    let [Some(a), Some(b)] = found.sides else {
        panic!("both decide");
    };
    assert_eq!((a.decision.at, b.decision.at), (ms(8), ms(9)));
    let left = |side: &Side| side.decision.prev.as_ref().map(|(_, left)| *left);
    assert_eq!(
        (left(&a), left(&b)),
        (Some(Left::Preempted), Some(Left::Slept))
    );
    let waiting = |side: &Side| -> Vec<(String, Duration)> {
        let all = side.waiting.iter();
        all.map(|wait| (wait.who.to_string(), wait.span)).collect()
    };
    let one = |name: &str, ms| (name.to_owned(), Duration::from_ms(ms));
    assert_eq!(waiting(&a), [one("nap", 1), one("hog", 0)]);
    assert_eq!(waiting(&b), [one("nap", 2)]);
    let woken: Vec<Instant> = a.wakeups.iter().map(|wakeup| wakeup.at).collect();
    assert_eq!(woken, [ms(3), ms(7)]);
    assert!(
        a.wakeups
            .iter()
            .all(|wakeup| wakeup.context == Context::Interrupt && wakeup.by.is_none())
    );
}

#[test]
fn other_tasks_and_idling_are_no_decisions_but_are_counted() {
    let plain = story(1, 2, vec![switch(8, Some(1), true, Some(2))]);
    let disturbed = story(
        1,
        2,
        vec![
            switch(7, Some(1), true, Some(OTHER)),
            switch(7, Some(OTHER), false, Some(1)),
            switch(8, Some(1), true, Some(OTHER)),
            switch(8, Some(OTHER), false, None),
            switch(8, None, false, Some(2)),
        ],
    );
    let compared = compared(&plain, &disturbed);
    assert!(compared.agrees());
    let left_out = LeftOut {
        others: 2,
        idle: 1,
        lost: 0,
    };
    assert_eq!(compared.left_out, [LeftOut::default(), left_out]);
}

#[test]
fn the_same_at_another_time_is_counted_separately() {
    let a = story(1, 2, vec![switch(8, Some(1), true, Some(2))]);
    let b = story(1, 2, vec![switch(11, Some(1), true, Some(2))]);
    let agreement = compared(&a, &b).cpus[&CPU];
    assert_eq!(
        (agreement.time_difference, agreement.late),
        (Duration::from_ms(3), Some(3))
    );
}

#[test]
fn who_keeps_the_cpu_differs_from_who_gives_it_up_in_that_time() {
    let short = story(1, 2, vec![]);
    let long = story(1, 2, vec![switch(8, Some(1), true, Some(2))]);
    // Its last record is of 7 ms: nobody knows what it does at 8.
    assert!(compared(&short, &long).agrees());
    let kept = story(1, 2, vec![wakeup(9, 2)[1]]);
    let found = compared(&kept, &long).first.unwrap();
    assert!(found.sides[0].is_none() && found.sides[1].is_some());
}

#[test]
fn decisions_that_slipped_are_found_again_in_order() {
    let turns = |first: bool| {
        let mut records = vec![switch(0, None, false, Some(1))];
        if first {
            records.push(switch(1, Some(1), true, Some(3)));
            records.push(switch(2, Some(3), true, Some(1)));
        }
        for round in 0..10 {
            records.push(switch(4 + 2 * round, Some(1), true, Some(2)));
            records.push(switch(5 + 2 * round, Some(2), true, Some(1)));
        }
        of(&[(1, 0), (2, 0), (3, 1)], records)
    };
    let compared = compared(&turns(true), &turns(false));
    let agreement = compared.cpus[&CPU];
    assert_eq!((agreement.same, agreement.in_order), (1, 21));
    assert_eq!(agreement.decisions, [23, 21]);
    // One of two tasks of a table has its number with its name.
    let found = compared.first.unwrap();
    let next = |side: &Option<Side>| side.as_ref().unwrap().decision.next.to_string();
    assert_eq!(found.sides.each_ref().map(next), ["nap[1]", "nap[0]"]);
}

#[test]
fn what_shows_no_task_of_a_scenario_is_refused() {
    let a = story(1, 2, vec![]);
    let none = Recording::default();
    let refused = |both, extent| compare(both, extent).unwrap_err();
    assert_eq!(
        refused([&a, &none], Extent::default()),
        (1, Incomparable::NoScenario)
    );
    let mut renamed = a.clone();
    renamed.header.names.tasks = vec!["other".to_owned(), "names".to_owned()];
    assert_eq!(
        refused([&a, &renamed], Extent::default()),
        (1, Incomparable::OtherScenario)
    );
    let later = Extent {
        from: ms(100),
        ..Extent::default()
    };
    assert_eq!(refused([&a, &a], later), (0, Incomparable::NoSwitches));
    let elsewhere = Extent {
        cpu: Some(CpuId(4)),
        ..Extent::default()
    };
    assert_eq!(refused([&a, &a], elsewhere), (0, Incomparable::NoSwitches));
}
