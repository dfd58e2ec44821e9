//! Closes loops: what a task was answered while it was awake is not in a trace, and is put back.
//!
//! Tasks that wake each other ask and answer. An answer that finds the asker asleep wakes it, which
//! is recorded. One that finds it awake leaves no record, though the asker needs it for its next
//! question. Where a replay lacks it, the asker goes on asking whoever still works on the last
//! question, and many questions are answered at once: wakeups are lost. In the recording the one
//! asked had gone to sleep before it was woken by the next question. So it is taken to answer
//! before it sleeps, and the asker to take that answer before it asks again.
//!
//! A task that serves several in turn may wait for the next of them while others have asked. It
//! waits for each by itself; of any other the messages are taken in whatever order they come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use warmq_trace::Table;
use warmq_units::{Duration, TaskId};

use crate::row::{Kind, Moment};
use crate::task::Task;

/// Chooses the inbox of each task and puts in the answers that found the asker awake.
pub(crate) fn close(tasks: &mut Table<TaskId, Task>) {
    own_what_nobody_else_waits_for(tasks);
    let wakeups = Wakeups::of(tasks);
    let ids: Vec<TaskId> = tasks.iter().map(|(id, _)| id).collect();
    let mut in_turn = BTreeSet::new();
    for id in ids {
        let task = tasks.touch(id);
        task.inbox = inbox(&task.row.moments);
        let asks = |other| wakeups.close_a_loop(other, id);
        if serves_in_turn(&task.row.moments, asks) {
            in_turn.insert(id);
        }
        let edits = edits(&task.row.moments, asks);
        task.row.moments = edited(std::mem::take(&mut task.row.moments), edits);
    }
    wait_in_turn(tasks, &in_turn);
}

/// Of a hundred answers so many are in turn where a task serves in turn: the others are those
/// around the beginning of the recording, and around answers that are not in it.
const IN_TURN_PERCENT: u64 = 95;

/// Whether a task answers several askers in turn: each time the one whose last answer is longest
/// ago. It may have to wait for the next of them while others have asked.
fn serves_in_turn(moments: &[Moment], asks: impl Fn(TaskId) -> bool) -> bool {
    let mut served: VecDeque<TaskId> = VecDeque::new();
    let (mut in_turn, mut others) = (0_u64, 0_u64);
    for moment in moments {
        match *moment {
            Moment::Post(to, kind) if kind.is_inbox() && asks(to) => {
                match served.iter().position(|other| *other == to) {
                    Some(0) => in_turn += 1,
                    Some(_) => others += 1,
                    None => {}
                }
                served.retain(|other| *other != to);
                served.push_back(to);
            }
            _ => {}
        }
    }
    // Less than two rounds after the first say nothing of an order.
    let rounds = in_turn.checked_div(served.len() as u64).unwrap_or(0);
    served.len() > 1 && rounds > 1 && in_turn * 100 > (in_turn + others) * IN_TURN_PERCENT
}

/// Has tasks that serve in turn wait for each asker by itself.
fn wait_in_turn(tasks: &mut Table<TaskId, Task>, in_turn: &BTreeSet<TaskId>) {
    let ids: Vec<TaskId> = tasks.iter().map(|(id, _)| id).collect();
    for id in ids {
        for moment in &mut tasks.touch(id).row.moments {
            match moment {
                Moment::Await(kind, Some(of)) if kind.is_inbox() && in_turn.contains(&id) => {
                    *kind = Kind::Turn(*of);
                }
                Moment::Post(to, kind) if kind.is_inbox() && in_turn.contains(to) => {
                    *kind = Kind::Turn(id);
                }
                _ => {}
            }
        }
    }
}

/// A semaphore of a scenario for which one task waits only is as good as its inbox.
fn own_what_nobody_else_waits_for(tasks: &mut Table<TaskId, Task>) {
    let mut waiting: BTreeMap<u32, BTreeSet<TaskId>> = BTreeMap::new();
    for (id, task) in tasks.iter() {
        for moment in &task.row.moments {
            if let Moment::Await(Kind::Shared(object), _) = moment {
                waiting.entry(*object).or_default().insert(id);
            }
        }
    }
    let own = |object: &u32| waiting.get(object).is_some_and(|tasks| tasks.len() == 1);
    for task in tasks.values_mut() {
        for moment in &mut task.row.moments {
            if let Moment::Await(kind, _) | Moment::Post(_, kind) = moment
                && let Kind::Shared(object) = kind
                && own(object)
            {
                *kind = Kind::Semaphore;
            }
        }
    }
}

/// How often tasks woke each other.
#[derive(Default)]
struct Wakeups {
    /// By waker and who was woken.
    pairs: BTreeMap<(TaskId, TaskId), u64>,
    /// By who was woken.
    all: BTreeMap<TaskId, u64>,
}

impl Wakeups {
    fn of(tasks: &Table<TaskId, Task>) -> Wakeups {
        let mut wakeups = Wakeups::default();
        for (id, task) in tasks.iter() {
            for moment in &task.row.moments {
                if let Moment::Post(to, kind) = moment
                    && kind.is_inbox()
                {
                    *wakeups.pairs.entry((id, *to)).or_default() += 1;
                    *wakeups.all.entry(*to).or_default() += 1;
                }
            }
        }
        wakeups
    }

    /// Whether two tasks ask and answer each other: both wake the other, which is what mostly wakes
    /// one of them. Tasks that happen to compete for a lock wake each other, too, but do not live
    /// on it.
    fn close_a_loop(&self, one: TaskId, other: TaskId) -> bool {
        let wakes = |waker, woken| self.pairs.get(&(waker, woken)).copied().unwrap_or(0);
        let mostly =
            |waker, woken| 2 * wakes(waker, woken) > self.all.get(&woken).copied().unwrap_or(0);
        wakes(one, other) > 0 && wakes(other, one) > 0 && (mostly(one, other) || mostly(other, one))
    }
}

/// What a task waits for most often where others wake it.
fn inbox(moments: &[Moment]) -> Kind {
    let mut counts: BTreeMap<Kind, u64> = BTreeMap::new();
    for moment in moments {
        if let Moment::Await(kind, Some(_)) = moment
            && kind.is_inbox()
        {
            *counts.entry(*kind).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(Kind::default(), |(kind, _)| kind)
}

/// What is changed in a row, by places in it.
#[derive(Default)]
struct Edits {
    /// Moments that are put in, each before the moment at a place.
    put_in: Vec<(usize, Moment)>,
    taken_out: BTreeSet<usize>,
}

/// What the answers change that a task gives and takes.
fn edits(moments: &[Moment], asks: impl Fn(TaskId) -> bool) -> Edits {
    let mut edits = taken(moments, &asks);
    edits.put_in.extend(given(moments, &asks));
    edits.put_in.sort_by_key(|(place, _)| *place);
    edits
}

/// The answers that a task gives: before its first sleep after it was asked, where it did not wake
/// the asker until it was asked again.
fn given(moments: &[Moment], asks: impl Fn(TaskId) -> bool) -> Vec<(usize, Moment)> {
    // Who asked and was not answered, with the place of the next sleep once it is known.
    let mut asked: BTreeMap<TaskId, Option<usize>> = BTreeMap::new();
    let mut asked_now: Vec<TaskId> = Vec::new();
    let mut answers = Vec::new();
    for (place, moment) in moments.iter().enumerate() {
        if sleeps(moment) {
            for other in asked_now.drain(..) {
                asked.entry(other).and_modify(|sleep| *sleep = Some(place));
            }
        }
        match *moment {
            Moment::Await(kind, Some(other)) if kind.is_inbox() && asks(other) => {
                if let Some(Some(sleep)) = asked.insert(other, None) {
                    answers.push((sleep, Moment::Post(other, Kind::Semaphore)));
                }
                asked_now.push(other);
            }
            Moment::Post(other, kind) if kind.is_inbox() => {
                asked.remove(&other);
            }
            _ => {}
        }
    }
    answers
}

/// What a task has asked another one.
#[derive(Default)]
struct Asked {
    /// When it asked last, in its CPU time; none after an answer that woke it.
    last: Option<Duration>,
    /// When it asked whatever was answered while it was awake, as far as it has not taken the
    /// answer.
    open: VecDeque<Duration>,
    /// The place of the answer that woke it, as long as it has not asked again.
    woken_at: Option<usize>,
}

/// The answers that a task takes. One that found it awake is taken before it computes what it asks
/// next, at the earliest when it has computed since its question for as long as it may without an
/// answer. One that woke it is taken there, too, if it asked others first.
fn taken(moments: &[Moment], asks: impl Fn(TaskId) -> bool) -> Edits {
    let may_run = tails(moments);
    let mut others: BTreeMap<TaskId, Asked> = BTreeMap::new();
    let mut edits = Edits::default();
    // The CPU time, and the place behind the last moment that is no computation and when that was.
    let (mut now, mut before) = (Duration::ZERO, (0, Duration::ZERO));
    // Where it asked anybody last.
    let mut asked_at = None;
    for (place, moment) in moments.iter().enumerate() {
        match *moment {
            Moment::Run(span) => {
                now += span;
                continue;
            }
            Moment::Await(kind, Some(other)) if kind.is_inbox() => {
                let asked = others.entry(other).or_default();
                (asked.last, asked.woken_at) = (None, Some(place));
            }
            Moment::Post(other, kind) if kind.is_inbox() && asks(other) => {
                let asked = others.entry(other).or_default();
                asked.open.extend(asked.last.replace(now));
                let ahead = may_run.get(&other).copied().unwrap_or_default();
                let due = |at: Duration, since: &Duration| *since + ahead <= at;
                while let Some(since) = asked.open.pop_front_if(|since| due(now, since)) {
                    let place = if due(before.1, &since) {
                        before.0
                    } else {
                        place
                    };
                    let taken = Moment::Await(Kind::Semaphore, Some(other));
                    edits.put_in.push((place, taken));
                }
                let woken_at = asked.woken_at.take();
                if let Some(woken_at) = woken_at.filter(|woken_at| asked_at > Some(*woken_at)) {
                    edits.taken_out.insert(woken_at);
                    edits.put_in.push((before.0, moments[woken_at]));
                }
                asked_at = Some(place);
            }
            _ => {}
        }
        before = (place + 1, now);
    }
    edits
}

/// For how long a task computes after it asked another one until it sleeps for lack of an answer:
/// the median. Whoever has many questions under way goes on for long, whoever has one does not.
fn tails(moments: &[Moment]) -> BTreeMap<TaskId, Duration> {
    let mut tails: BTreeMap<TaskId, Vec<Duration>> = BTreeMap::new();
    let (mut asked, mut ran) = (None, Duration::ZERO);
    for moment in moments {
        match *moment {
            Moment::Run(span) => ran += span,
            Moment::Post(other, _) => (asked, ran) = (Some(other), Duration::ZERO),
            Moment::Await(_, Some(other)) if asked == Some(other) => {
                tails.entry(other).or_default().push(ran);
                asked = None;
            }
            _ => asked = None,
        }
    }
    let median = |mut of: Vec<Duration>| {
        of.sort_unstable();
        of[of.len() / 2]
    };
    tails
        .into_iter()
        .map(|(other, of)| (other, median(of)))
        .collect()
}

fn sleeps(moment: &Moment) -> bool {
    match moment {
        Moment::Await(..) | Moment::Timer { .. } | Moment::Sleep(_) => true,
        Moment::Run(_) | Moment::Post(..) => false,
    }
}

fn edited(moments: Vec<Moment>, edits: Edits) -> Vec<Moment> {
    let mut edited = Vec::with_capacity(moments.len() + edits.put_in.len());
    let mut put_in = edits.put_in.into_iter().peekable();
    for (place, moment) in moments.into_iter().enumerate() {
        while let Some((_, other)) = put_in.next_if(|(before, _)| *before <= place) {
            edited.push(other);
        }
        if !edits.taken_out.contains(&place) {
            edited.push(moment);
        }
    }
    edited.extend(put_in.map(|(_, other)| other));
    edited
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);
    const C: TaskId = TaskId(3);

    fn run(us: u64) -> Moment {
        Moment::Run(Duration::from_us(us))
    }

    fn wait(from: TaskId) -> Moment {
        Moment::Await(Kind::Semaphore, Some(from))
    }

    fn post(to: TaskId) -> Moment {
        Moment::Post(to, Kind::Semaphore)
    }

    fn closed(rows: &[(TaskId, &[Moment])]) -> Vec<Vec<Moment>> {
        let mut tasks: Table<TaskId, Task> = Table::default();
        for (id, row) in rows {
            tasks.touch(*id).row.moments = row.to_vec();
        }
        close(&mut tasks);
        let row = |id: TaskId| tasks.get(id).map(|task| task.row.moments.clone());
        rows.iter().filter_map(|(id, _)| row(*id)).collect()
    }

    #[test]
    fn an_answer_that_found_the_asker_awake_is_put_back() {
        let asker = [post(B), run(10), post(B), run(10), wait(B)];
        let asked = [wait(A), run(5), wait(A), run(5), post(A), wait(A)];
        let rows = closed(&[(A, &asker), (B, &asked)]);
        // The asker may run for 10 us without an answer, and has just done so.
        let asker = [post(B), run(10), wait(B), post(B), run(10), wait(B)];
        let asked = [wait(A), run(5), post(A), wait(A), run(5), post(A), wait(A)];
        assert_eq!(rows, [asker.to_vec(), asked.to_vec()]);
    }

    #[test]
    fn an_asker_with_many_questions_under_way_takes_answers_late() {
        let mut asker = [post(B), run(10)].repeat(3);
        asker.extend([run(20), wait(B)]);
        asker.extend([post(B), run(10), post(B)]);
        let asked: Vec<Moment> = [wait(A), run(5)]
            .repeat(3)
            .into_iter()
            .chain([post(A)])
            .collect();
        let asked = [asked, [wait(A), run(5)].repeat(2)].concat();
        let rows = closed(&[(A, &asker), (B, &asked)]);
        let waits =
            |moments: &[Moment]| moments.iter().filter(|moment| **moment == wait(B)).count();
        // It was seen to run for 30 us: the first answer is 50 us old at its fourth question, the
        // second 40 us, the third question has woken it.
        assert_eq!(waits(&rows[0][..8]), 1, "{:?}", rows[0]);
        assert_eq!(rows[0][8..12], [wait(B), wait(B), post(B), run(10)]);
    }

    #[test]
    fn parts_of_others_come_before_what_an_answer_is_for() {
        // C woke it, but it asked B first, whose answer had found it awake.
        let asker = [
            post(B),
            post(C),
            wait(C),
            run(10),
            post(B),
            run(20),
            post(C),
        ];
        let asked = [wait(A), run(5), wait(A)];
        let woke = [wait(A), run(5), post(A), wait(A), post(A)];
        let again = [asked.to_vec(), vec![post(A)]].concat();
        let rows = closed(&[(A, &asker), (B, &again), (C, &woke)]);
        let wanted = [
            post(B),
            post(C),
            wait(B),
            run(10),
            post(B),
            wait(C),
            run(20),
            post(C),
        ];
        assert_eq!(rows[0], wanted);
    }

    #[test]
    fn a_task_that_serves_in_turn_waits_for_each_asker_by_itself() {
        let turn = |of| Moment::Await(Kind::Turn(of), Some(of));
        let to_turn = |of| Moment::Post(A, Kind::Turn(of));
        let serves = [wait(B), run(5), post(B), wait(C), run(5), post(C)].repeat(3);
        let asks = [wait(A), run(9), post(A)].repeat(3);
        let rows = closed(&[(A, &serves), (B, &asks), (C, &asks)]);
        let first = [turn(B), run(5), post(B), turn(C), run(5), post(C)];
        assert_eq!(rows[0], first.repeat(3));
        assert_eq!(rows[1], [wait(A), run(9), to_turn(B)].repeat(3));
        assert_eq!(rows[2], [wait(A), run(9), to_turn(C)].repeat(3));
        // B is served twice as often as C.
        let by_arrival = [wait(B), post(B), wait(B), post(B), wait(C), post(C)].repeat(3);
        let rows = closed(&[(A, &by_arrival), (B, &asks.repeat(2)), (C, &asks)]);
        assert_eq!(rows[0], by_arrival);
    }

    #[test]
    fn tasks_that_compete_for_a_lock_do_not_answer() {
        let one = [wait(C), post(B), wait(C), wait(C), post(B), wait(B)];
        let other = [wait(C), wait(A), wait(C), wait(C), wait(A), post(A)];
        let client: Vec<Moment> = [post(A), post(B)].repeat(3);
        let rows = [(A, &one[..]), (B, &other[..]), (C, &client[..])];
        assert_eq!(closed(&rows)[..2], [one.to_vec(), other.to_vec()]);
    }
}
