//! Whatever happens to the program, nothing of it stays behind.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::support::{cgroups_of, command, is_root, lives, nobodys, play, read};

/// Something of everything that the system keeps.
const ALL: &str = "
    [process.p]
    [pipe.pipe]
    [stream.stream]
    [datagram.d]
    [semaphore.s]
    for = { n = 3 }
    [region.r]
    bytes = \"1MB\"
    [source.source]
    to = \"d\"
    bytes = \"64B\"
    rate = \"2000 per s\"
    [task.hog]
    count = 2
    body = [{ run = \"1ms\" }, { touch = \"r\" }]
    [task.receiver]
    process = \"p\"
    body = [{ receive = \"d\" }, { raise = \"s[1]\" }]
    [task.lower]
    process = \"p\"
    body = [{ lower = \"s[1]\" }, { send = \"pipe\", bytes = \"1B\" }, { receive = \"pipe\", bytes = \"1B\" }]
    [task.forker]
    every = \"2ms\"
    body = [{ fork = \"orphan\" }]
    [task.orphan]
    spawned = true
    times = 2
    body = [{ fork = \"last\" }, { sleep = \"3ms\" }]
    [task.last]
    spawned = true
    body = [{ sleep = \"1s\" }]";

const GROUPED: &str = "
    [group.g]
    [task.grouped]
    group = \"g\"
    body = [{ run = \"1ms\" }]
    [[change]]
    at = \"5ms\"
    group = \"g\"
    set = { freeze = true }";

const SESSIONS: &str = "
    [group.desk]
    autogroup = true
    [group.other]
    autogroup = true
    [task.hog]
    count = 2
    group = \"desk\"
    body = [{ run = \"1ms\" }]
    [task.forker]
    group = \"other\"
    every = \"2ms\"
    body = [{ fork = \"orphan\" }]
    [task.orphan]
    spawned = true
    times = 2
    body = [{ fork = \"last\" }, { sleep = \"3ms\" }]
    [task.last]
    spawned = true
    body = [{ sleep = \"1s\" }]";

/// All living processes below `pid`.
pub fn descendants(pid: u32) -> Vec<u32> {
    let (mut all, mut left) = (Vec::new(), vec![pid]);
    while let Some(parent) = left.pop() {
        // Each thread has children of its own.
        let threads = std::fs::read_dir(format!("/proc/{parent}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            let children = children.split_whitespace();
            let children: Vec<u32> = children.filter_map(|word| word.parse().ok()).collect();
            all.extend(&children);
            left.extend(children);
        }
    }
    all
}

/// SysV sets of user `uid`.
fn sets(uid: u32) -> usize {
    let sets = std::fs::read_to_string("/proc/sysvipc/sem").unwrap_or_default();
    let owner = |line: &str| line.split_whitespace().nth(4)?.parse::<u32>().ok();
    sets.lines().filter(|line| owner(line) == Some(uid)).count()
}

pub fn signal(pid: u32, signal: i32) {
    let pid = i32::try_from(pid).expect("a pid");
    let signal = nix::sys::signal::Signal::try_from(signal).expect("a signal");
    // It may have ended by itself.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
}

/// Waits until the run has made at least `count` processes, if it ever does.
pub fn begun(run: &Child, count: usize) -> Vec<u32> {
    for _ in 0..500 {
        let there = descendants(run.id());
        if there.len() >= count {
            return there;
        }
        sleep(Duration::from_millis(2));
    }
    descendants(run.id())
}

pub fn start(text: &str) -> (Child, tempfile::TempPath) {
    let (mut command, file) = command(text, "--warmup 0s --time 2s");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    (command.spawn().expect("the program"), file)
}

/// Fails unless all of `processes` are gone soon, and the cgroups of `run`.
pub fn all_gone(run: u32, processes: &[u32], what: &str) {
    for _ in 0..1_000 {
        let left = processes.iter().any(|pid| lives(*pid));
        if !left && cgroups_of(run).is_empty() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    let left: Vec<_> = processes.iter().filter(|pid| lives(**pid)).collect();
    panic!("{what}: {left:?} and {:?} stay behind", cgroups_of(run));
}

#[test]
fn nothing_stays_behind_when_a_process_of_it_is_killed() {
    let before = sets(0);
    for text in [ALL, GROUPED, SESSIONS] {
        // At each moment of the run: while it makes the tasks, and when they are under way.
        for moment in 0..6 {
            // The controller, the crew, a task or a leader of a session, one of its tasks.
            for victim in 0..4 {
                let (mut run, _file) = start(text);
                let wanted = [0, 1, 2, 4, 7, 9][moment];
                let there = begun(&run, wanted);
                sleep(Duration::from_millis(moment as u64 * 7));
                let mut all: Vec<u32> = there;
                all.extend(descendants(run.id()));
                all.sort_unstable();
                all.dedup();
                let id = match victim {
                    0 => run.id(),
                    of_all => all.get(of_all - 1).copied().unwrap_or(run.id()),
                };
                signal(id, 9);
                let what = format!("victim {victim}, moment {moment}");
                let pid = run.id();
                run.stdout.take();
                run.wait().expect("an end");
                all_gone(pid, &all, &what);
            }
        }
    }
    // Namespaces of the kernel end a moment after their last process.
    assert!((0..500).any(|_| sets(0) <= before || {
        sleep(Duration::from_millis(10));
        false
    }));
}

#[test]
fn an_interrupted_run_gives_its_trace() {
    let (run, _file) =
        start("[task.one]\nbody = [{ begin = \"x\" }, { run = \"1ms\" }, { end = \"x\" }]");
    let there = begun(&run, 2);
    sleep(Duration::from_millis(30));
    signal(run.id(), 2);
    let pid = run.id();
    let played = read(run.wait_with_output().expect("an end"));
    assert_eq!(played.code, Some(3));
    assert!(played.said.contains("SIGINT"), "{}", played.said);
    all_gone(pid, &there, "SIGINT");
}

#[test]
fn a_killed_task_ends_the_run_and_is_named() {
    let (run, _file) = start("[task.victim]\nbody = [{ run = \"1ms\" }]");
    let there = begun(&run, 2);
    // The crew, then its child.
    signal(there[1], 9);
    let played = read(run.wait_with_output().expect("an end"));
    assert_eq!(played.code, Some(3));
    assert!(
        played.said.contains("`victim` was killed by signal 9"),
        "{}",
        played.said
    );
}

/// Waits until `process` ends.
fn gone_soon(process: u32) -> bool {
    (0..1_000).any(|_| {
        sleep(Duration::from_millis(10));
        !lives(process)
    })
}

#[test]
fn a_run_ends_with_the_process_that_asked_for_it() {
    for text in [ALL, GROUPED] {
        let (player, _file) = command(text, "--warmup 0s --time 60s");
        // A shell starts it in the background and is killed.
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "\"$0\" \"$@\" --parent $$ & wait"])
            .arg(player.get_program())
            .args(player.get_args())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut shell = shell.spawn().expect("a shell");
        let there = begun(&shell, 4);
        signal(shell.id(), 9);
        shell.wait().expect("an end");
        all_gone(there[0], &there, "its parent was killed");
    }
}

#[test]
fn what_a_killed_run_left_frozen_is_ended_by_the_next_one() {
    let (mut run, _file) = start(GROUPED);
    // The crew and the task; the change freezes it after 5 ms.
    let there = begun(&run, 2);
    sleep(Duration::from_millis(200));
    // Neither can clean up after the other.
    for process in [run.id(), there[0]] {
        signal(process, 19);
    }
    for process in [run.id(), there[0]] {
        signal(process, 9);
    }
    run.stdout.take();
    run.wait().expect("an end");
    assert!(gone_soon(there[0]), "the crew was killed");
    play(
        "[task.one]\ntimes = 1\nbody = [{ run = \"1us\" }]",
        "--warmup 0s --time 10ms",
    );
    all_gone(run.id(), &there, "frozen");
}

#[test]
fn real_time_hogs_on_each_cpu_do_not_outlive_the_run() {
    let hogs = |priority| {
        format!(
            "[task.hog]\ncount = \"2 per cpu\"\npolicy = \"fifo {priority}\"\nbody = [{{ run = \"10ms\" }}]"
        )
    };
    let refused = play(&hogs(99), "--warmup 0s --time 100ms");
    assert_eq!(refused.code, Some(4), "{}", refused.said);
    assert!(
        refused.said.contains("give it 98 or less"),
        "{}",
        refused.said
    );
    let change = "[task.hog]\nbody = [{ run = \"10ms\" }]\n[[change]]\nat = \"1ms\"\ntask = \"hog\"\nset = { policy = \"rr 99\" }";
    let refused = play(change, "--warmup 0s --time 100ms");
    assert_eq!(refused.code, Some(4), "{}", refused.said);
    if is_root() {
        let (mut run, _file) = command(&hogs(98), "--warmup 0s --time 300ms");
        let mut run = run.stdout(Stdio::null()).spawn().expect("the program");
        let there = begun(&run, 2);
        // The kernel leaves other tasks a twentieth of the CPUs, on which this process waits.
        assert!(gone_soon(run.id()) || run.try_wait().expect("an end").is_some());
        all_gone(run.id(), &there, "real-time hogs");
    }
}

/// The policy of a process, as `sched_setscheduler()` has it.
fn policy_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(38).map(str::to_owned)
}

#[test]
fn the_crew_is_above_all_tasks_again_once_it_has_reaped() {
    let text = "[task.brief]\ntimes = 1\nbody = [{ sleep = \"100ms\" }]\n[task.long]\nbody = [{ sleep = \"1ms\" }]";
    let (mut run, _file) = start(text);
    let there = begun(&run, 3);
    assert_eq!(there.len(), 3, "the crew, then its children");
    let reaped = |_| {
        sleep(Duration::from_millis(2));
        descendants(run.id()).len() == 2 && policy_of(there[0]) == policy_of(run.id())
    };
    assert!((0..500).any(reaped), "{:?}", policy_of(there[0]));
    signal(run.id(), 2);
    run.wait().expect("an end");
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let played = play("[task.one]\nbody = [{ runs = \"1ms\" }]", "");
    assert_eq!(played.code, Some(2));
    assert!(played.said.contains("task.one.body[0]"), "{}", played.said);
    let text = "[settings.n]\ndefault = 3\n[task.one]\nbody = [{ run = \"1ms\" }]";
    for (option, part) in [
        ("--set m=4", "no such setting"),
        ("--set n=many", "a whole number"),
        ("--time 5", "--time 5"),
        ("--scenario /nowhere/x.toml", "cannot be read"),
    ] {
        let played = play(text, option);
        assert_eq!(played.code, Some(2), "{option}: {}", played.said);
        assert!(played.said.contains(part), "{option}: {}", played.said);
    }
}

#[test]
fn a_warm_up_that_outlasts_the_work_is_said() {
    let played = play(
        "[task.one]\ntimes = 1\nbody = [{ run = \"1us\" }]",
        "--warmup 9s --time 9s",
    );
    assert_eq!(played.code, Some(3));
    assert!(played.said.contains("shorter --warmup"), "{}", played.said);
}

#[test]
fn a_run_in_which_nobody_gets_on_says_where_they_wait() {
    let text = "
        [mutex.m]
        [task.holder]
        body = [{ lock = \"m\" }, { sleep = \"60s\" }, { unlock = \"m\" }]
        [task.waiter]
        start = \"10ms\"
        body = [{ lock = \"m\" }, { run = \"1us\" }, { unlock = \"m\" }]";
    let played = play(text, "--warmup 300ms --time 300ms");
    assert_eq!(played.code, Some(0), "{}", played.said);
    assert!(
        played
            .said
            .contains("nothing was counted after the warm-up"),
        "{}",
        played.said
    );
    assert!(
        played
            .said
            .contains("`waiter` at `task.waiter.body[0].lock`"),
        "{}",
        played.said
    );
}

#[test]
fn without_rights_it_plays_what_it_can_and_says_what_it_cannot() {
    if !is_root() {
        println!("skipped: only root can give up its rights");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let as_nobody = |text: &str| {
        let mut command = nobodys(folder.path(), text, "--warmup 0s --time 50ms");
        read(command.output().expect("the program"))
    };
    let played = as_nobody(ALL);
    assert_eq!(played.code, Some(0), "{}", played.said);
    assert!(
        played.said.contains("note: the controller"),
        "{}",
        played.said
    );
    assert_eq!(sets(65_534), 0);
    let played = as_nobody(GROUPED);
    assert_eq!(played.code, Some(4), "{}", played.said);
    assert!(
        played.said.contains("a cgroup cannot be made"),
        "{}",
        played.said
    );
    let played = as_nobody("[task.one]\npolicy = \"fifo 5\"\nbody = [{ run = \"1ms\" }]");
    assert_eq!(played.code, Some(4), "{}", played.said);
    assert!(played.said.contains("CAP_SYS_NICE"), "{}", played.said);
}
