//! The crew: a process between the controller and the tasks. It makes the objects, forks the
//! tasks, reaps them, and takes everything away when the run is over.
//!
//! It has one thread, so that what it forks is a clean copy. It watches the controller: if that is
//! killed, it kills all tasks and removes what would stay behind. The controller watches the crew
//! in the same way, so that one of them is always there to clean up.

mod leader;

use std::iter::repeat_with;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use warmq_trace::players;

use crate::error::PlayError;
use crate::notes::Notes;
use crate::perform::{STACK, perform, populate_regions, thread_of_slot};
use crate::source;
use crate::specs::ABOVE_TASKS;
use crate::stage::Stage;
use crate::stage::objects::{Sets, make};
use crate::sys::process::{self, End, Reaped, Side};
use crate::sys::sched::Attributes;
use crate::sys::{ipc, memory, sockets, thread};

/// How the controller and the crew reach each other.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Readable when the controller has ended.
    pub controller_fd: i32,
    /// Readable when the crew is to finish.
    pub finish_fd: i32,
}

impl Lines {
    /// From this process, which will be the controller.
    ///
    /// # Errors
    /// No descriptors, or a kernel before 5.3.
    pub fn open() -> std::io::Result<Lines> {
        Ok(Lines {
            controller_fd: memory::pid_fd(process::pid())?,
            finish_fd: memory::event_fd()?,
        })
    }
}

/// How long the last of the tasks may take to die, in steps of 10 ms.
const PATIENCE: u32 = 1_000;

/// Does the whole work of the crew, and never returns.
pub fn work(stage: &'static Stage, lines: Lines) -> ! {
    // A group of its own: what is typed at the terminal is for the controller.
    process::set_group(0, 0);
    process::adopt_orphans();
    process::set_name(players::CREW);
    let crew = Crew {
        stage,
        lines,
        // Before there are any: who dies early must not be missed.
        children: process::children_fd().unwrap_or(-1),
        sets: OnceLock::new(),
    };
    if let Err(error) = crew.start() {
        stage.board.fail(&error);
    }
    // After all is forked that must not inherit it. Tasks may take all of the CPU from its group,
    // and it is the crew that ends them. Where it may not, the controller says so for both.
    let _ = ABOVE_TASKS.apply(0);
    crew.watch();
    crew.finish();
    process::exit_now(0)
}

struct Crew {
    stage: &'static Stage,
    lines: Lines,
    /// Readable when a child has ended.
    children: i32,
    sets: OnceLock<Sets>,
}

impl Crew {
    /// Makes everything and forks the tasks, which wait for the start then.
    fn start(&self) -> Result<(), PlayError> {
        let (stage, notes) = (self.stage, Notes::default());
        // Where it may be, SysV objects of a namespace go with its last process, whatever happens.
        ipc::own_namespace();
        let mut sets = Sets::default();
        let made = make(&stage.bound, (stage.speed, &stage.cpus), &mut sets, &notes);
        // What was made before something failed must be removed, too.
        let _ = self.sets.set(sets);
        let _ = stage.objects.set(made?);
        self.open_sender_sockets()?;
        stage.groups.make()?;
        let own = stage
            .processes
            .iter()
            .filter(|process| process.session.is_none());
        for process in own {
            self.fork(&process.slots, || play(stage, &process.slots))?;
        }
        leader::start_all(stage).map_err(|error| no_process(&error))?;
        for index in 0..stage.senders.len() as u32 {
            self.fork(&[], || source::work(stage, index, &notes))?;
        }
        Ok(())
    }

    /// Tasks must know the ports before they begin: they answer to them alone.
    fn open_sender_sockets(&self) -> Result<(), PlayError> {
        let open = self.stage.senders.iter().map(|_| sockets::source_socket());
        let open: std::io::Result<Vec<(i32, u16)>> = open.collect();
        let open = open.map_err(|error| {
            let fix = "allow more descriptors (ulimit -n)";
            PlayError::refused("a socket to send from", &error, fix)
        })?;
        let _ = self.stage.sender_sockets.set(open);
        Ok(())
    }

    /// A process for the tasks in `slots`, which does `work`.
    fn fork(&self, slots: &[u32], work: impl FnOnce()) -> Result<(), PlayError> {
        let board = self.stage.board;
        let group = board.group.load(Ordering::Acquire);
        let crew = process::pid();
        match process::fork().map_err(|error| no_process(&error))? {
            Side::Parent(pid) => {
                self.stage.seat_in(slots, pid);
                process::set_group(pid, if group == 0 { pid } else { group });
                if group == 0 {
                    board.group.store(pid, Ordering::Release);
                }
                Ok(())
            }
            Side::Child => {
                process::set_group(0, group);
                process::unblock_signals();
                process::die_with(crew);
                work();
                process::exit_now(0)
            }
        }
    }

    /// Reaps who dies, until the run is over or the controller has ended.
    fn watch(&self) {
        let children = self.children;
        loop {
            // Before the first wait, too: the descriptor does not report who died before it was
            // there.
            as_usual(|| {
                while let Reaped::One(pid, end) = process::reap() {
                    reaped(self.stage, pid, end);
                }
            });
            let fds = [self.lines.controller_fd, self.lines.finish_fd, children];
            let [ended, finish, child] = process::readable(fds, -1);
            if child {
                process::drain(children);
            }
            if ended {
                // The next recorder would do so, but there may be none for long.
                let _ = warmq_record::sweep_now();
            }
            if ended || finish {
                return;
            }
        }
    }

    /// Kills all tasks and removes what would stay behind.
    fn finish(&self) {
        if let Err(error) = end_tasks(self.stage) {
            self.stage.board.fail(&error);
        }
        if let Some(sets) = self.sets.get() {
            sets.remove();
        }
        self.stage.groups.remove();
        self.stage.remove_files();
    }
}

/// Does `reaping` as usual tasks do, not from above all tasks: the kernel looks again and again
/// whether the last thread of a process is through (`shrink_dcache_parent()`), and that may have to
/// run on the same CPU, which it would get back when real-time tasks are throttled. All that have
/// died are reaped at once, however long a CPU is waited for: they may die faster than that.
fn as_usual<R>(reaping: impl FnOnce() -> R) -> R {
    let _ = Attributes::USUAL.apply(0);
    let reaped = reaping();
    let _ = ABOVE_TASKS.apply(0);
    reaped
}

/// A thread of this process for each slot; the first thread is the first task.
fn play(stage: &'static Stage, slots: &[u32]) -> ! {
    populate_regions(stage, slots);
    let (first, others) = slots.split_first().unwrap_or((&0, &[]));
    for slot in others {
        if let Err(error) = thread::start(STACK, thread_of_slot, *slot as usize) {
            stage.board.fail(&no_process(&error));
        }
    }
    perform(stage, *first);
    process::exit_thread()
}

/// Who is killed from outside takes the run with it.
fn reaped(stage: &Stage, pid: i32, end: End) {
    let End::Signal(signal) = end else {
        return;
    };
    let mut tasks = stage.tasks();
    let task = tasks.find(|(_, slot)| slot.pid.load(Ordering::Relaxed) == pid);
    let task = task.map(|(_, slot)| stage.name_of(slot));
    let leader = || {
        let found = stage.sessions.leaders().find(|(_, leader)| *leader == pid);
        found.map(|(session, _)| format!("the leader of the autogroup {}", session.name))
    };
    let who = task.or_else(leader);
    let who = who.unwrap_or_else(|| "a process".to_owned());
    let text = format!("{who} was killed by signal {signal}");
    stage.board.fail(&PlayError::Ended(text));
}

/// Kills all tasks of the run, and waits until they are gone. They must be children of this
/// process, or become so when their parents die.
///
/// # Errors
/// Tasks that hang in the kernel.
pub fn end_tasks(stage: &Stage) -> Result<(), PlayError> {
    let group = stage.board.group.load(Ordering::Acquire);
    for _ in 0..PATIENCE {
        stage.groups.thaw_all();
        if group != 0 {
            // No member is left when there is nobody to kill.
            let _ = process::kill(-group, libc::SIGKILL);
        }
        for (_, leader) in stage.sessions.leaders() {
            let _ = process::kill(-leader, libc::SIGKILL);
        }
        let is_none = |reaped: &Reaped| !matches!(reaped, Reaped::One(..));
        let left = as_usual(|| repeat_with(process::reap).find(is_none));
        if left == Some(Reaped::NoChildren) {
            return Ok(());
        }
        process::readable([-1], 10);
    }
    Err(hang(stage))
}

/// Tasks that cannot be killed.
pub fn hang(stage: &Stage) -> PlayError {
    let standing = stage.standing();
    PlayError::Ended(format!(
        "tasks cannot be ended, they hang in the kernel: {standing}"
    ))
}

fn no_process(error: &std::io::Error) -> PlayError {
    let fix = "play fewer tasks, or allow more (ulimit -u)";
    PlayError::refused("a task's thread or process cannot be made", error, fix)
}
