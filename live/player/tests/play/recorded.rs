//! With a recorder of the kernel, a trace says who ran when and why each task slept.

use std::collections::BTreeMap;

use warmq_trace::{Cause, Record, State};
use warmq_units::TaskId;

use crate::support::{Played, command, read};

/// Plays with a recorder; none, with a printed reason, where there is none.
fn recorded(text: &str, ms: u64) -> Option<Played> {
    let (mut command, _file) = command(text, &format!("--record --warmup 0s --time {ms}ms"));
    let played = read(command.output().expect("the program"));
    assert_eq!(played.code, Some(0), "{}", played.said);
    if played.said.contains("note: no record") {
        println!("skipped: {}", played.said);
        return None;
    }
    Some(played)
}

/// Why a task slept: causes and objects, with how often.
fn causes(played: &Played, wanted: TaskId) -> BTreeMap<(Cause, Option<u32>), u32> {
    let mut causes = BTreeMap::new();
    for record in played.all() {
        if let Record::Block {
            task,
            cause,
            state: State::Interruptible | State::Uninterruptible,
            object,
            ..
        } = record
            && *task == wanted
        {
            *causes.entry((*cause, *object)).or_insert(0) += 1;
        }
    }
    causes
}

#[test]
fn each_task_sleeps_for_the_reason_that_its_step_says() {
    let text = "
        [mutex.m]
        [condition.c]
        [semaphore.s]
        [barrier.b]
        tasks = 2
        [queue.q]
        holds = 1
        [pipe.p]
        [stream.t]
        [datagram.d]
        [futex.f]
        [stream.u]
        family = \"unix\"
        [task.clock]
        every = \"1ms\"
        body = [
          { lock = \"m\" }, { signal = \"c\", all = true }, { unlock = \"m\" }, { raise = \"s\" }, { put = \"q\" },
          { send = \"p\", bytes = \"1B\" }, { send = \"t.near\", bytes = \"1B\" }, { send = \"d\", bytes = \"1B\" }, { barrier = \"b\" },
          { signal = \"f\" }, { send = \"u.near\", bytes = \"1B\" },
        ]
        [task.condition]
        body = [{ lock = \"m\" }, { wait = \"c\", mutex = \"m\" }, { unlock = \"m\" }]
        [task.semaphore]
        body = [{ lower = \"s\" }]
        [task.futex]
        body = [{ wait = \"f\" }]
        [task.unix]
        body = [{ receive = \"u.far\", bytes = \"1B\" }]
        [task.queue]
        body = [{ take = \"q\" }]
        [task.pipe]
        body = [{ receive = \"p\", bytes = \"1B\" }]
        [task.stream]
        body = [{ receive = \"t.far\", bytes = \"1B\" }]
        [task.datagram]
        body = [{ receive = \"d\" }]
        [task.barrier]
        body = [{ barrier = \"b\" }]
        [task.timer]
        body = [{ sleep = \"1ms\" }]";
    let Some(played) = recorded(text, 1_000) else {
        return;
    };
    for (task, cause, object) in [
        ("condition", Cause::Condition, Some(1)),
        ("semaphore", Cause::Semaphore, Some(3)),
        ("futex", Cause::Futex, Some(2)),
        ("unix", Cause::Socket, Some(8)),
        ("barrier", Cause::Barrier, Some(4)),
        ("queue", Cause::Queue, Some(5)),
        ("pipe", Cause::Pipe, Some(6)),
        ("stream", Cause::Socket, Some(7)),
        ("datagram", Cause::Socket, Some(9)),
        ("timer", Cause::Timer, None),
    ] {
        let causes = causes(&played, played.tasks(task)[0]);
        assert!(causes.contains_key(&(cause, object)), "{task}: {causes:?}");
        let known = causes
            .keys()
            .filter(|(cause, _)| *cause != Cause::Unknown && *cause != Cause::Mutex);
        assert_eq!(known.count(), 1, "{task}: {causes:?}");
    }
}

#[test]
fn a_task_that_waits_for_a_mutex_says_which() {
    // A mutex is not fair: who gave it back sleeps, so that each has it at some time.
    let text = "
        [mutex.m]
        for = { n = 2 }
        [task.t]
        for = { n = 2, i = 3 }
        body = [{ lock = \"m[n]\" }, { sleep = \"200us\" }, { unlock = \"m[n]\" }, { sleep = \"200us\" }]";
    let Some(played) = recorded(text, 1_000) else {
        return;
    };
    for (number, task) in (0..).zip(played.tasks("t")) {
        let causes = causes(&played, task);
        assert!(
            causes.contains_key(&(Cause::Mutex, Some(number / 3))),
            "{number}: {causes:?}"
        );
        assert!(
            causes.contains_key(&(Cause::Timer, None)),
            "{number}: {causes:?}"
        );
    }
}

/// A task that waits for a CPU stops when it has one, and not at all if it is continued before.
#[test]
fn a_stopped_task_waits_to_be_continued() {
    let text = "
        [task.t]
        body = [{ run = \"100us\" }]
        [[change]]
        at = \"10ms\"
        task = \"t\"
        set = { stop = true }
        [[change]]
        at = \"150ms\"
        task = \"t\"
        set = { continue = true }";
    let Some(played) = recorded(text, 200) else {
        return;
    };
    let stopped = played.all().any(|record| {
        matches!(
            record,
            Record::Block {
                task: TaskId(0),
                cause: Cause::Continue,
                state: State::Stopped,
                ..
            }
        )
    });
    assert!(stopped);
}

#[test]
fn every_task_is_born_once_and_before_it_runs() {
    let text = "
        [task.parent]
        every = \"1ms\"
        body = [{ fork = \"child\" }, { spawn = \"thread\" }]
        [task.child]
        spawned = true
        times = 1
        body = [{ run = \"50us\" }]
        [task.thread]
        spawned = true
        times = 1
        body = [{ run = \"50us\" }]";
    let Some(played) = recorded(text, 500) else {
        return;
    };
    let mut born = BTreeMap::new();
    for record in played.all() {
        match record {
            Record::Fork { child, .. } => *born.entry(*child).or_insert(0) += 1,
            Record::Role { task, .. } => assert!(born.contains_key(task), "{task}"),
            Record::Switch {
                next: Some(task), ..
            } if played.tasks("child").contains(task) => {
                assert!(born.contains_key(task), "{task} runs before it is born");
            }
            _ => {}
        }
    }
    assert!(born.values().all(|times| *times == 1), "{born:?}");
    assert!(born.len() > 3);
}

#[test]
fn a_killed_controller_leaves_no_tracing_instance() {
    let text = "[task.t]\nbody = [{ run = \"1ms\" }]";
    let (mut command, _file) = command(text, "--record --warmup 0s --time 5s");
    let mut run = command.spawn().expect("the program");
    let instance =
        std::path::PathBuf::from(format!("/sys/kernel/tracing/instances/warmq-{}", run.id()));
    let moment = std::time::Duration::from_millis(10);
    let soon = |is: &dyn Fn() -> bool| {
        (0..200).any(|_| {
            std::thread::sleep(moment);
            is()
        })
    };
    let is_there = soon(&|| instance.exists());
    run.kill().expect("killed");
    run.wait().expect("an end");
    if !is_there {
        println!("skipped: there is no recorder, or tracefs is mounted for it alone");
        return;
    }
    assert!(
        soon(&|| !instance.exists()),
        "{} stays behind",
        instance.display()
    );
}
