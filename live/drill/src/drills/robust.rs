//! Robustness: scx_warmq survives load and hotplug, and ends cleanly.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::must;
use crate::report::{Drill, Failure, Outcome};
use crate::scheduler::{Scheduler, figures, state};
use crate::sys;
use crate::workers::{Crew, hog, wait_until, work};

pub const DRILLS: &[Drill] = &[
    Drill {
        name: "robust/leaves-cleanly",
        law: "SIGINT and SIGTERM end it with status 0, and the kernel's scheduler runs all tasks again",
        run: leaves,
    },
    Drill {
        name: "robust/each-option",
        law: "it loads with each option by which the verifier sees another program",
        run: each_option,
    },
    Drill {
        name: "robust/one-at-a-time",
        law: "a second scx_warmq does not start, says why, and does not disturb the first",
        run: one_at_a_time,
    },
    Drill {
        name: "robust/ejected",
        law: "if the kernel stops it, it says why, exits with its own status, and can be loaded again",
        run: ejected,
    },
    Drill {
        name: "robust/without-hooks",
        law: "where the hook in prctl does not work it schedules, and says that programs cannot hint",
        run: without_hooks,
    },
    Drill {
        name: "robust/hotplug",
        law: "it still schedules after a CPU went offline and online under load",
        run: hotplug,
    },
    Drill {
        name: "robust/churn",
        law: "forks, exits, affinity changes and cgroup moves in any state do not stop it",
        run: churn,
    },
    Drill {
        name: "stress/ten-thousand-tasks",
        law: "10,000 tasks all get to run",
        run: ten_thousand,
    },
    Drill {
        name: "stress/stress-ng",
        law: "after 60 s of stress-ng it is still enabled",
        run: stress,
    },
];

fn leaves() -> Result<Outcome, Failure> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut crew = Crew::default();
        (0..4).for_each(|_| crew.add("hog", hog));
        let mut scheduler = Scheduler::start(&[])?;
        let status = scheduler
            .end(signal)
            .ok_or_else(|| Failure(format!("signal {signal} does not end it")))?;
        must!(status.success(), "signal {signal}: {status}");
        must!(
            wait_until(Duration::from_secs(5), || state() == "disabled"),
            "sched_ext is {} after signal {signal}",
            state()
        );
        let had = crew.during(Duration::from_secs(1));
        must!(
            had.iter().all(|had| !had.is_zero()),
            "a task does not run any more: {had:?}"
        );
    }
    Ok(Outcome::Holds("both signals".to_owned()))
}

fn each_option() -> Result<Outcome, Failure> {
    // Other drills load it with --infer, --group-by, --task-hint-map, --place cpu and --no-preempt.
    const OPTIONS: &[&[&str]] = &[
        &["--infer", "--place", "llc"],
        &["--no-groups"],
        &["--scope", "user"],
        &["--scope", "system"],
    ];
    for options in OPTIONS {
        let scheduler = Scheduler::start(options);
        scheduler.map_err(|failure| Failure(format!("{options:?}: {failure}")))?;
    }
    Ok(Outcome::Holds(format!("{} of them", OPTIONS.len())))
}

fn without_hooks() -> Result<Outcome, Failure> {
    // Whether the kernel attaches programs to its functions.
    let allow = |allow: u8| fs::write("/proc/sys/kernel/ftrace_enabled", allow.to_string());
    if let Err(error) = allow(0) {
        return Ok(Outcome::Skipped(format!(
            "ftrace cannot be switched off here ({error})"
        )));
    }
    let scheduler = Scheduler::start(&[]);
    let heard = sys::hint(Some((1, 1)));
    allow(1)?;
    let said = scheduler?.said();
    must!(!heard, "a hint was heard");
    must!(said.contains("programs cannot hint"), "it says: {said}");
    Ok(Outcome::Holds("it says what is missing".to_owned()))
}

fn one_at_a_time() -> Result<Outcome, Failure> {
    let mut first = Scheduler::start(&[])?;
    let second = Command::new("scx_warmq").output()?;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    must!(
        !second.status.success(),
        "the second one ended with {}",
        second.status
    );
    must!(
        said.contains("warmq"),
        "it does not name the one that is loaded: {said}"
    );
    first.still_there()?;
    Ok(Outcome::Holds(format!(
        "status {}",
        second.status.code().unwrap_or(-1)
    )))
}

fn ejected() -> Result<Outcome, Failure> {
    let mut scheduler = Scheduler::start(&[])?;
    // By SysRq-S the kernel stops a scheduler (kernel/sched/ext.c, sysrq_handle_sched_ext_reset).
    fs::write("/proc/sysrq-trigger", "S")
        .map_err(|error| Failure(format!("/proc/sysrq-trigger: {error}")))?;
    let status = scheduler
        .wait()
        .ok_or_else(|| Failure("it does not end".to_owned()))?;
    must!(
        !status.success() && status.signal().is_none(),
        "ejected, it ended with {status}"
    );
    let said = scheduler.complaint();
    must!(
        said.to_lowercase().contains("sysrq"),
        "it does not say why: {said}"
    );
    let mut again = Scheduler::start(&[])?;
    again.still_there()?;
    Ok(Outcome::Holds(format!(
        "status {}, loaded again",
        status.code().unwrap_or(-1)
    )))
}

fn hotplug() -> Result<Outcome, Failure> {
    let online = "/sys/devices/system/cpu/cpu1/online";
    let mut scheduler = Scheduler::start(&["--place", "cpu"])?;
    let mut crew = Crew::default();
    for fragment in 0..4 {
        crew.add("hog", move |shift| {
            sys::hint(Some((1, fragment)));
            hog(shift);
        });
    }
    // A hint that is given while no scheduler is loaded is nobody's: each task must have given its
    // own first.
    wait_until(Duration::from_secs(60), || fragments_known() == Some(4));
    for value in ["0", "1"] {
        fs::write(online, value).map_err(|error| Failure(format!("{online}: {error}")))?;
        let back = wait_until(Duration::from_secs(180), || {
            state() == "enabled" && figures().is_ok()
        });
        must!(
            back && scheduler.runs(),
            "it does not come back after cpu1 = {value}; sched_ext is {}: {}",
            state(),
            scheduler.complaint()
        );
        thread::sleep(Duration::from_secs(1));
        let had = crew.during(Duration::from_secs(2));
        must!(
            had.iter().all(|had| !had.is_zero()),
            "a task does not run after cpu1 = {value}: {had:?}"
        );
    }
    let known = fragments_known();
    must!(
        known == Some(4),
        "{known:?} of 4 fragments are known after it restarted"
    );
    Ok(Outcome::Holds(
        "off and on; 4 of 4 fragments known afterwards".to_owned(),
    ))
}

/// How many fragments of this process have members, if the scheduler can be asked.
fn fragments_known() -> Option<usize> {
    let groups = figures().ok()?.groups(std::process::id());
    Some(groups.iter().filter(|group| group.members > 0).count())
}

fn cgroup(name: &str) -> Result<String, Failure> {
    let path = format!("/sys/fs/cgroup/{name}");
    let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
    fs::create_dir_all(&path).map_err(|error| Failure(format!("{path}: {error}")))?;
    Ok(path)
}

fn churn() -> Result<Outcome, Failure> {
    let mut scheduler = Scheduler::start(&["--infer"])?;
    let paths = [cgroup("drill-a")?, cgroup("drill-b")?];
    let mut crew = Crew::default();
    for number in 0..8_usize {
        crew.add("turncoat", move |shift| {
            let mut turn = number;
            while shift.goes_on() {
                sys::run_on(if turn % 3 == 0 {
                    &[0]
                } else if turn % 3 == 1 {
                    &[1]
                } else {
                    &[0, 1]
                });
                sys::hint((turn % 5 != 0).then_some((1, turn as u32 % 7)));
                sys::nice((turn % 4) as i32);
                work(Duration::from_micros(300));
                thread::sleep(Duration::from_micros(turn as u64 % 900));
                turn += 1;
            }
        });
    }
    for _ in 0..2 {
        crew.add("forks", |shift| {
            while shift.goes_on() {
                let _ = Command::new("/bin/true").status();
            }
        });
    }
    for turn in 0..40 {
        let mut child = Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .spawn()?;
        for step in 0..4 {
            let _ = fs::write(
                format!("{}/cgroup.procs", paths[(turn + step) % 2]),
                child.id().to_string(),
            );
            thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
    crew.stop();
    thread::sleep(Duration::from_millis(500));
    paths.iter().for_each(|path| drop(fs::remove_dir(path)));
    scheduler.still_there()?;
    // The process that reads the statistics is runnable meanwhile; others may be at one time or
    // another.
    let (mut left, mut one) = (u64::MAX, 0);
    for _ in 0..20 {
        let figures = figures()?;
        left = left.min(figures.weights().iter().sum());
        one = figures.weight_nice_0();
        thread::sleep(Duration::from_millis(50));
    }
    must!(
        left <= 2 * one,
        "weight {left} is left although no task runs; one task of nice 0 weighs {one}"
    );
    Ok(Outcome::Holds(format!(
        "weight {left} left, of the tasks that read the statistics"
    )))
}

fn ten_thousand() -> Result<Outcome, Failure> {
    let mut scheduler = Scheduler::start(&[])?;
    let mut crew = Crew::default();
    for _ in 0..10_000 {
        crew.add("one-of-many", |shift| {
            while shift.goes_on() {
                work(Duration::from_micros(100));
                thread::sleep(Duration::from_secs(10));
            }
        });
    }
    let all = wait_until(Duration::from_secs(30), || {
        crew.had().iter().all(|had| !had.is_zero())
    });
    must!(
        all,
        "{} tasks never ran",
        crew.had().iter().filter(|had| had.is_zero()).count()
    );
    scheduler.still_there()?;
    crew.stop();
    let over = figures()?.counter("over_bound");
    must!(over == 0, "{over} waits over the bound");
    Ok(Outcome::Holds("all ran".to_owned()))
}

fn stress() -> Result<Outcome, Failure> {
    let present = Command::new("stress-ng")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if present.is_err() {
        return Ok(Outcome::Skipped(
            "stress-ng is not in this guest".to_owned(),
        ));
    }
    let mut scheduler = Scheduler::start(&["--infer"])?;
    let stressors = [
        "--cpu",
        "4",
        "--switch",
        "2",
        "--pipe",
        "2",
        "--fork",
        "2",
        "--futex",
        "2",
        "--yield",
        "2",
        "--affinity",
        "2",
        "--timer",
        "1",
    ];
    let output = Command::new("stress-ng")
        .args(stressors)
        .args(["--timeout", "60", "--temp-path", "/tmp"])
        .output();
    let output = output.map_err(|error| Failure(format!("stress-ng: {error}")))?;
    scheduler.still_there()?;
    must!(
        output.status.success(),
        "stress-ng: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let figures = figures()?;
    let (over, all) = (figures.counter("over_bound"), figures.waits());
    // Interrupts and kernel threads take CPU time that no task is charged for.
    must!(
        over * 1_000 <= all,
        "{over} of {all} waits over the bound: {}",
        figures.overdue()
    );
    Ok(Outcome::Holds(format!(
        "still enabled; {over} of {all} waits over the bound: {}",
        figures.overdue()
    )))
}
