//! What the system gives tasks, and changes while they are under way.

use warmq_trace::{Policy, Record};
use warmq_units::{CpuId, Duration, TaskId};

use crate::support::{Played, cgroups_of, ms, play, play_ms};

/// True, with a printed reason, if the system refuses what a test needs.
fn is_refused(played: &Played) -> bool {
    let refused = played.code == Some(4);
    if refused {
        println!("skipped: {}", played.said);
    }
    refused
}

fn time_of(played: &Played, wanted: impl Fn(&Record) -> bool) -> Option<warmq_units::Instant> {
    played
        .records
        .iter()
        .find(|(_, record)| wanted(record))
        .map(|(at, _)| *at)
}

#[test]
fn tasks_are_told_with_what_they_are_given() {
    let text = "
        [task.one]
        name = \"with-a-name\"
        cpus = \"cpu 0\"
        policy = \"batch\"
        nice = 2
        slice = \"1ms\"
        times = 1
        body = [{ run = \"1us\" }]";
    let played = play_ms(text, 5_000);
    let task = TaskId(0);
    let wanted = [
        Record::Affinity {
            task,
            from: CpuId(0),
            cpus: 1,
        },
        Record::Nice { task, nice: 2 },
        Record::Policy {
            task,
            policy: Policy::Batch,
            priority: 0,
        },
        Record::Slice {
            task,
            slice: Duration::from_ms(1),
        },
    ];
    for record in wanted {
        assert!(played.all().any(|other| *other == record), "{record:?}");
    }
    let Some(Record::Fork { comm, .. }) = played.all().next() else {
        panic!("a fork comes first");
    };
    assert_eq!(comm.raw(), "with-a-name");
    assert_eq!(
        (played.header.world.as_str(), played.header.clock.as_str()),
        ("host", "monotonic")
    );
    assert!(!played.header.kernel.is_empty() && !played.header.machine.is_empty());
}

#[test]
fn cpus_that_the_machine_lacks_are_refused() {
    let played = play(
        "[task.one]\ncpus = \"cpu 4000\"\nbody = [{ run = \"1us\" }]",
        "",
    );
    assert_eq!(played.code, Some(4));
    assert!(
        played
            .said
            .contains("`one` 0 is bound to CPUs that this machine lacks"),
        "{}",
        played.said
    );
}

#[test]
fn what_is_otherwise_than_asked_is_said() {
    let text = "
        [process.here]
        [process.there]
        [task.one]
        process = \"here\"
        slice = \"10s\"
        times = 1
        body = [{ spawn = \"other\" }, { run = \"1us\" }]
        [task.other]
        process = \"there\"
        spawned = true
        times = 1
        body = [{ run = \"1us\" }]";
    let played = play_ms(text, 5_000);
    assert!(
        played.said.contains("note: slice of `one`: "),
        "{}",
        played.said
    );
    let process = "note: process of `other`: a thread is in the process of `one`";
    assert!(played.said.contains(process), "{}", played.said);
}

#[test]
fn real_time_tasks_are_what_they_say() {
    // A deadline task may start others, which have policies of their own.
    let table = [
        ("rr 7", Policy::RoundRobin, 7),
        ("deadline 1ms 50ms", Policy::Deadline, 0),
    ];
    for (asked, policy, priority) in table {
        let text = format!(
            "[task.one]\npolicy = \"{asked}\"\ntimes = 1\nbody = [{{ run = \"1us\" }}, {{ spawn = \"other\" }}]\n\
             [task.other]\nspawned = true\ntimes = 1\nbody = [{{ run = \"1us\" }}]"
        );
        let played = play(&text, "--warmup 0s --time 5s");
        if is_refused(&played) {
            return;
        }
        let said: Vec<&Record> = played
            .all()
            .filter(|record| matches!(record, Record::Policy { .. }))
            .collect();
        let record = Record::Policy {
            task: TaskId(0),
            policy,
            priority,
        };
        assert!(said.contains(&&record), "{asked}: {said:?}");
        let others = |record: &&&Record| {
            !matches!(
                record,
                Record::Policy {
                    task: TaskId(0),
                    ..
                }
            )
        };
        assert_eq!(said.iter().filter(others).count(), 0, "{asked}: {said:?}");
    }
}

#[test]
fn changes_take_place_at_their_times_and_phases_are_sampled() {
    let text = "
        [task.hog]
        count = 2
        times = 1000
        body = [{ run = \"100us\" }]
        [[change]]
        at = \"10ms\"
        task = \"hog[1]\"
        set = { cpus = \"cpu 0\", nice = 5, policy = \"batch\", slice = \"2ms\", fragment = 3 }
        [[change]]
        every = \"10ms\"
        start = \"15ms\"
        end = \"40ms\"
        task = \"hog\"
        set = { nice = 6 }
        [[phase]]
        name = \"later\"
        at = \"30ms\"";
    let text = text.replace("count = 2", "for = { n = 2 }");
    // It ends when the work is done, of which there is more than until the last change.
    let played = play_ms(&text, 60_000);
    let task = TaskId(1);
    let changed = |record: Record, at: u64| {
        let found = time_of(&played, |other| *other == record);
        assert!(
            found.is_some_and(|found| found >= ms(at)),
            "{record:?} at {found:?} of {:?}",
            played.records
        );
    };
    changed(
        Record::Affinity {
            task,
            from: CpuId(0),
            cpus: 1,
        },
        10,
    );
    changed(Record::Nice { task, nice: 5 }, 10);
    changed(
        Record::Policy {
            task,
            policy: Policy::Batch,
            priority: 0,
        },
        10,
    );
    let slice = Duration::from_ms(2);
    changed(Record::Slice { task, slice }, 10);
    let fragment = Some((1, 3));
    changed(Record::Fragment { task, fragment }, 10);
    let again = played
        .all()
        .filter(|record| matches!(record, Record::Nice { nice: 6, .. }));
    assert_eq!(again.count(), 6, "three times for two tasks");
    let phase = time_of(&played, |record| {
        matches!(record, Record::Phase { phase: 0 })
    })
    .expect("a phase");
    assert!(phase >= ms(30));
    let of_time = played.records.iter().filter(|(at, _)| *at == phase);
    let before = of_time.take_while(|(_, record)| !matches!(record, Record::Phase { .. }));
    let sampled = before.filter(|(_, record)| matches!(record, Record::Ran { .. }));
    assert_eq!(sampled.count(), 2, "sampled before the phase begins");
}

#[test]
fn a_stopped_task_does_nothing_until_it_continues() {
    let text = "
        [task.one]
        every = \"1ms\"
        times = 120
        body = [{ begin = \"round\" }, { end = \"round\" }]
        [[change]]
        at = \"20ms\"
        task = \"one\"
        set = { stop = true }
        [[phase]]
        name = \"stopped\"
        at = \"25ms\"
        [[change]]
        at = \"100ms\"
        task = \"one\"
        set = { continue = true }
        [[phase]]
        name = \"continued\"
        at = \"101ms\"";
    let played = play_ms(text, 60_000);
    let phase = |wanted| {
        time_of(&played, |record| *record == Record::Phase { phase: wanted }).expect("a phase")
    };
    let within = |(begin, _): &&(warmq_units::Instant, warmq_units::Instant)| {
        *begin > phase(0) && *begin < ms(100)
    };
    let spans = played.spans("round");
    assert_eq!(spans.iter().filter(within).count(), 0);
    assert_eq!(spans.len(), 120, "it has continued");
    assert!(spans[119].0 >= ms(100));
}

const GROUPS: &str = "
    [group.outer]
    weight = 300
    [group.inner]
    for = { n = 2 }
    parent = \"outer\"
    quota = \"1ms\"
    period = \"10ms\"
    [task.free]
    every = \"1ms\"
    body = [{ run = \"10us\" }]
    [task.grouped]
    for = { n = 2 }
    group = \"inner[n]\"
    body = [{ run = \"100us\" }]
    [[change]]
    at = \"20ms\"
    task = \"free\"
    set = { group = \"outer\" }
    [[change]]
    at = \"40ms\"
    group = \"inner\"
    set = { freeze = true, weight = 20, quota = \"2ms\" }
    [[phase]]
    name = \"frozen\"
    at = \"60ms\"
    [[phase]]
    name = \"still\"
    at = \"100ms\"
    [[change]]
    at = \"101ms\"
    group = \"inner\"
    set = { thaw = true }";

#[test]
fn groups_limit_freeze_and_disappear() {
    let (mut command, _file) = crate::support::command(GROUPS, "--warmup 0s --time 200ms");
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("the program");
    let pid = child.id();
    let played = crate::support::read(child.wait_with_output().expect("an end"));
    assert_eq!(cgroups_of(pid), Vec::<std::path::PathBuf>::new());
    if is_refused(&played) {
        return;
    }
    assert_eq!(played.code, Some(0), "{}", played.said);
    let group = |task, group| Record::Group { task, group };
    let grouped = played.tasks("grouped");
    let born = [group(grouped[0], 2), group(grouped[1], 3)];
    assert!(
        born.iter()
            .all(|record| played.all().any(|other| other == record))
    );
    let moved = time_of(&played, |record| *record == group(TaskId(0), 1));
    assert!(moved.is_some_and(|at| at >= ms(20)), "{moved:?}");
    let first = grouped[0];
    let ran = |phase| {
        let at = time_of(&played, |record| *record == Record::Phase { phase }).expect("a phase");
        let ran = played
            .records
            .iter()
            .filter_map(move |(when, record)| match record {
                Record::Ran { task, total } if *when == at && *task == first => Some(*total),
                _ => None,
            });
        (at, ran.collect::<Vec<_>>()[0])
    };
    let ((from, before), (to, after)) = (ran(0), ran(1));
    // A tenth of a CPU is allowed; frozen, it gets nothing. Some kernels freeze a throttled task
    // only when it is let run again.
    assert!(
        after.saturating_sub(before) <= Duration(to.since(from).0 / 4),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_scheduler_is_loaded_only_where_the_kernel_can() {
    if std::path::Path::new("/sys/kernel/sched_ext").exists() {
        println!("skipped: this kernel has sched_ext");
        return;
    }
    let text = "[task.one]\nbody = [{ run = \"1us\" }]";
    let change = "\n[[change]]\nat = \"1ms\"\nscheduler = \"scx_some\"";
    for (text, options) in [
        (text.to_owned(), "--load /bin/true"),
        (format!("{text}{change}"), ""),
    ] {
        let played = play(&text, options);
        assert_eq!(played.code, Some(4), "{}", played.said);
        assert!(played.said.contains("no sched_ext"), "{}", played.said);
    }
}

#[test]
fn cpus_of_this_machine_stay_online() {
    let text = "[task.one]\nbody = [{ run = \"1us\" }]\n[[change]]\nat = \"1ms\"\ncpu = \"cpu 1\"\nset = { online = false }";
    let played = play(text, "");
    assert_eq!(played.code, Some(4));
    assert!(
        played.said.contains("is not taken from other programs"),
        "{}",
        played.said
    );
}
