//! Autogroups: tasks in sessions of their own.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use warmq_trace::Record;
use warmq_units::TaskId;

use crate::robust::{all_gone, begun, descendants, signal, start};
use crate::support::{command, is_root, nobodys, play_ms, read};

const SESSIONS: &str = "
    [group.desk]
    autogroup = true
    nice = 5
    [group.other]
    for = { n = 2 }
    autogroup = true
    nice = \"n + 1\"
    [process.p]
    [task.first]
    process = \"p\"
    group = \"desk\"
    body = [{ sleep = \"20ms\" }]
    [task.second]
    process = \"p\"
    group = \"desk\"
    body = [{ sleep = \"20ms\" }]
    [task.forker]
    group = \"desk\"
    times = 1
    body = [{ fork = \"child\" }]
    [task.child]
    spawned = true
    times = 1
    body = [{ spawn = \"thread\" }, { fork = \"last\" }]
    [task.thread]
    spawned = true
    body = [{ sleep = \"20ms\" }]
    [task.last]
    spawned = true
    body = [{ sleep = \"20ms\" }]
    [task.apart]
    for = { n = 2 }
    group = \"other[n]\"
    name = \"apart\"
    body = [{ sleep = \"20ms\" }]
    [task.free]
    body = [{ sleep = \"20ms\" }]";

/// A thread of a run: its session and its autogroup as the kernel shows it, such as
/// `/autogroup-26 nice 0`; empty where the kernel has none.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    session: u32,
    autogroup: String,
}

fn text(file: &str) -> String {
    std::fs::read_to_string(file)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The session of a process, by the text of its `stat`.
fn session(pid: u32) -> u32 {
    let stat = text(&format!("/proc/{pid}/stat"));
    // After the name: state, parent, process group, session.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let session = fields.split_whitespace().nth(3);
    session
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// All threads below `run`, by name.
fn threads(run: u32) -> BTreeMap<String, Vec<Seen>> {
    let mut seen: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    for pid in descendants(run) {
        let folder = format!("/proc/{pid}/task");
        for thread in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = text(&thread.path().join("comm").display().to_string());
            seen.entry(name).or_default().push(Seen {
                session: session(pid),
                autogroup: text(&format!("/proc/{pid}/autogroup")),
            });
        }
    }
    seen
}

/// All threads of `run` by name, once there are all of the tasks `wanted` and `is_done` says so.
fn all_there(
    run: &Child,
    wanted: &[&str],
    is_done: impl Fn(&BTreeMap<String, Vec<Seen>>) -> bool,
) -> BTreeMap<String, Vec<Seen>> {
    for _ in 0..1_000 {
        let seen = threads(run.id());
        if wanted.iter().all(|name| seen.contains_key(*name)) && is_done(&seen) {
            return seen;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("there are only {:?}", threads(run.id()));
}

/// A run that lasts until it is ended.
fn lasting(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program")
}

/// Ends a run in which everything was seen, and says what it said.
fn end(run: Child) -> String {
    let (pid, processes) = (run.id(), descendants(run.id()));
    signal(pid, 2);
    let played = read(run.wait_with_output().expect("an end"));
    assert!(played.said.contains("SIGINT"), "{}", played.said);
    all_gone(pid, &processes, "an interrupted run");
    played.said
}

const TASKS: [&str; 6] = ["first", "second", "thread", "last", "apart", "free"];

#[test]
fn each_autogroup_is_a_session_that_all_its_tasks_inherit() {
    let options = "--warmup 0s --time 60s";
    let folder = tempfile::tempdir().expect("a folder");
    let (mine, _file) = command(SESSIONS, options);
    // As root, and as an ordinary user, whose nice values the kernel takes one by one.
    let mut commands = vec![mine];
    if is_root() {
        commands.push(nobodys(folder.path(), SESSIONS, options));
    }
    for command in commands {
        let run = lasting(command);
        let has_autogroups = !text("/proc/self/autogroup").is_empty();
        let told = |seen: &BTreeMap<String, Vec<Seen>>| seen["apart"].len() == 2;
        let seen = all_there(&run, &TASKS, told);
        let desk = &seen["first"][0];
        for name in ["first", "second", "thread", "last"] {
            assert!(
                seen[name].iter().all(|session| session == desk),
                "{name}: {seen:?}"
            );
        }
        assert_ne!(desk.session, session(run.id()));
        let apart = &seen["apart"];
        let mut sessions = vec![desk.session, session(run.id())];
        sessions.extend(apart.iter().map(|one| one.session));
        sessions.sort_unstable();
        sessions.dedup();
        assert_eq!(sessions.len(), 4, "{seen:?}");
        assert_eq!(seen["free"][0].session, session(run.id()));
        assert_eq!(seen["warmq-session"].len(), 3);
        if has_autogroups {
            let nice = |task: &Seen| {
                task.autogroup
                    .split_once(" nice ")
                    .map(|task| task.1.to_owned())
            };
            assert_eq!(nice(desk).as_deref(), Some("5"));
            let mut others: Vec<_> = apart.iter().filter_map(nice).collect();
            others.sort_unstable();
            assert_eq!(others, ["1", "2"]);
            let mut names: Vec<&str> = [desk, &apart[0], &apart[1], &seen["free"][0]]
                .map(|task| task.autogroup.split(' ').next().unwrap_or_default())
                .to_vec();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), 4, "{seen:?}");
        } else {
            println!("skipped: this kernel has no autogroups");
        }
        end(run);
    }
}

#[test]
fn a_change_sets_the_nice_value_of_an_autogroup() {
    if text("/proc/self/autogroup").is_empty() {
        println!("skipped: this kernel has no autogroups");
        return;
    }
    let change = "
        [[change]]
        at = \"20ms\"
        group = \"other\"
        set = { nice = 7 }
        [[change]]
        every = \"30ms\"
        group = \"desk\"
        set = { nice = 9 }";
    let folder = tempfile::tempdir().expect("a folder");
    let (scenario, options) = (format!("{SESSIONS}{change}"), "--warmup 0s --time 60s");
    let (command, _file) = match is_root() {
        true => (nobodys(folder.path(), &scenario, options), None),
        false => {
            let (command, file) = command(&scenario, options);
            (command, Some(file))
        }
    };
    let run = lasting(command);
    let seen = all_there(&run, &TASKS, |seen| {
        let nice =
            |name: &str, nice: &str| seen[name].iter().all(|task| task.autogroup.ends_with(nice));
        nice("apart", " nice 7") && nice("last", " nice 9")
    });
    assert!(seen["free"][0].autogroup.ends_with(" nice 0"), "{seen:?}");
    // Values every 30 ms, from one who may set one in 100 ms: what was late comes at once.
    sleep(Duration::from_millis(500));
    let said = end(run);
    assert!(said.contains("one in 100 ms"), "{said}");
}

#[test]
fn what_an_ordinary_user_may_not_set_is_refused() {
    if !is_root() || text("/proc/self/autogroup").is_empty() {
        println!("skipped: this needs autogroups, and root, who can give up its rights");
        return;
    }
    let text = SESSIONS.replace("nice = 5", "nice = \"-5\"");
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = nobodys(folder.path(), &text, "--warmup 0s --time 5s");
    let played = read(command.output().expect("the program"));
    assert_eq!(played.code, Some(4), "{}", played.said);
    let part = "the autogroup `desk` does not get the nice value -5";
    assert!(played.said.contains(part), "{}", played.said);
    assert!(played.said.contains("CAP_SYS_NICE"), "{}", played.said);
}

#[test]
fn who_of_a_session_is_killed_ends_the_run_and_is_named() {
    let scenario = "
        [group.desk]
        autogroup = true
        [task.victim]
        group = \"desk\"
        body = [{ sleep = \"20ms\" }]";
    for (name, part) in [
        (
            "warmq-session",
            "the leader of the autogroup `desk` was killed by signal 9",
        ),
        ("victim", "`victim` was killed by signal 9"),
    ] {
        let (run, _file) = start(scenario);
        // The crew, the leader, the task.
        let there = begun(&run, 3);
        let is_victim = |pid: &&u32| text(&format!("/proc/{pid}/comm")) == name;
        for _ in 0..500 {
            if let Some(victim) = there.iter().find(is_victim) {
                signal(*victim, 9);
                break;
            }
            sleep(Duration::from_millis(2));
        }
        let pid = run.id();
        let played = read(run.wait_with_output().expect("an end"));
        assert_eq!(played.code, Some(3), "{}", played.said);
        assert!(played.said.contains(part), "{}", played.said);
        all_gone(pid, &there, name);
    }
}

#[test]
fn tasks_that_a_step_starts_are_told_with_the_autogroup_that_they_are_in() {
    let text = "
        [group.desk]
        for = { n = 2 }
        autogroup = true
        [task.first]
        group = \"desk[1]\"
        times = 1
        body = [{ fork = \"child\" }]
        [task.free]
        times = 1
        body = [{ fork = \"child\" }]
        [task.child]
        spawned = true
        times = 1
        body = [{ spawn = \"thread\" }]
        [task.thread]
        spawned = true
        times = 1
        body = [{ run = \"1us\" }]";
    let played = play_ms(text, 60_000);
    let groups = |table: &str| -> Vec<Option<u32>> {
        let of = |wanted: TaskId| {
            played.all().find_map(|record| match *record {
                Record::Group { task, group } if task == wanted => Some(group),
                _ => None,
            })
        };
        played.tasks(table).into_iter().map(of).collect()
    };
    assert_eq!(groups("first"), [Some(2)]);
    assert_eq!(groups("free"), [None]);
    for table in ["child", "thread"] {
        let mut found = groups(table);
        found.sort_unstable();
        assert_eq!(found, [None, Some(2)], "{table}");
    }
}

/// With cgroups beside them: those would keep autogroups from having an effect.
#[test]
fn an_autogroup_is_not_put_into_a_cgroup() {
    let scenario = "
        [group.desk]
        autogroup = true
        [group.cgroup]
        [task.inside]
        group = \"cgroup\"
        body = [{ sleep = \"20ms\" }]
        [task.apart]
        group = \"desk\"
        body = [{ sleep = \"20ms\" }]";
    let (run, _file) = start(scenario);
    let there = begun(&run, 4);
    let of = |name: &str| {
        let named = |pid: &&u32| text(&format!("/proc/{pid}/comm")) == name;
        let pid = there.iter().find(named)?;
        Some(text(&format!("/proc/{pid}/cgroup")))
    };
    // Tasks get their names a moment after they are forked.
    let found = (0..500).find_map(|_| {
        sleep(Duration::from_millis(2));
        let (inside, apart) = (of("inside")?, of("apart")?);
        inside.contains("warmq-").then_some((inside, apart))
    });
    let own = text("/proc/self/cgroup");
    let pid = run.id();
    let played = read(run.wait_with_output().expect("an end"));
    all_gone(pid, &there, "an ordinary end");
    if played.code == Some(4) {
        println!("skipped: {}", played.said);
        return;
    }
    let (_, apart) = found.expect("both tasks");
    assert_eq!(apart, own, "it is where the player was started");
}

/// The player says so where it was put into a cgroup with the controller `cpu`.
#[test]
fn autogroups_without_an_effect_are_said() {
    let cpu = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"];
    let folder = cpu.map(|folder| format!("{folder}/test-of-sessions-{}", std::process::id()));
    let Some(folder) = folder
        .iter()
        .find(|folder| std::fs::create_dir(folder).is_ok())
    else {
        println!("skipped: no cgroup of version 1 with the controller `cpu` can be made here");
        return;
    };
    let (player, _file) = command(SESSIONS, "--warmup 0s --time 50ms");
    let mut shell = Command::new("sh");
    // The shell moves itself, and becomes the player.
    shell.args(["-c", "echo $$ > \"$0/tasks\" && exec \"$@\"", folder]);
    shell.arg(player.get_program()).args(player.get_args());
    let played = read(shell.output().expect("the shell"));
    let _ = std::fs::remove_dir(folder);
    assert_eq!(played.code, Some(0), "{}", played.said);
    let off = text("/proc/sys/kernel/sched_autogroup_enabled") != "1";
    let part = format!("they are for tasks of the root cgroup, and this process is in {folder}");
    assert!(
        played
            .said
            .contains("note: autogroups: they have no effect: ")
            && (off || played.said.contains(&part)),
        "{}",
        played.said
    );
}
