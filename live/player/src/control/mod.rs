//! The controller: it starts all tasks at one instant, samples what they did, and ends the run.

mod agenda;
mod changes;
mod exchange;
mod sample;

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicPtr, Ordering};

use warmq_scenario::SchedulerChoice;
use warmq_scenario::program::To;
use warmq_trace::Record;
use warmq_units::Duration;

use crate::crew::{Lines, end_tasks, hang};
use crate::error::PlayError;
use crate::notes::Notes;
use crate::scheduler::{Counting, Schedulers};
use crate::specs::{ABOVE_TASKS, attributes};
use crate::stage::Stage;
use crate::stage::board::{Board, Verdict};
use crate::stage::slots::Slot;
use crate::sys::clock::{now_ns, sleep_until_ns};
use crate::sys::process::End;
use crate::sys::sched::Attributes;
use crate::sys::{futex, process};
use crate::trace::Moment;
use agenda::{Agenda, Event};
use changes::Changes;

const NS_PER_S: u64 = 1_000_000_000;
/// How long making and starting all tasks may take.
const PATIENCE_NS: u64 = 120 * NS_PER_S;

/// A run that takes this much longer than it should is given up.
const SPARE_S: u32 = 10;

/// What the controller saw.
#[derive(Debug, Default)]
pub struct Seen {
    /// What was counted at the warm-up's end, at each phase, and at the end.
    pub moments: Vec<Moment>,
    /// Other records, with their times on the monotonic clock.
    pub records: Vec<(u64, Record)>,
    /// When the run ended.
    pub end_ns: u64,
    /// True if a recorder sees how long tasks run. Then nobody asks them, which ten thousand feel.
    pub recorded: bool,
    /// What the scheduler counts.
    pub counting: Option<Counting>,
}

impl Seen {
    fn sample(&self, stage: &Stage) -> Moment {
        let counting = self.counting.as_ref();
        Moment {
            of_scheduler: counting.map(Counting::read).unwrap_or_default(),
            ..sample::now(stage, !self.recorded)
        }
    }

    /// What a scheduler counted that is no longer the one of the beginning, nobody knows.
    fn drop_other_counters(&mut self, notes: &Notes) {
        if self
            .counting
            .take_if(|counting| !counting.is_current())
            .is_some()
        {
            let moments = self.moments.iter_mut();
            moments.for_each(|moment| moment.of_scheduler.clear());
            let why = "it was loaded anew, or another one was, while it played";
            notes.say("counters of the scheduler", why);
        }
    }
}

/// For how long a run is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Before anything is measured.
    pub warmup: Duration,
    /// After that.
    pub time: Duration,
}

/// A run whose tasks wait for their start.
pub struct Control {
    stage: &'static Stage,
    lines: Lines,
    /// The crew's process; none if it was killed.
    crew: Cell<Option<i32>>,
    schedulers: RefCell<Schedulers>,
    /// When the run should end, on the monotonic clock.
    last_ns: Cell<u64>,
    /// Whether the run begins as the kernel ticks, so that its ticks are where the lab's are.
    pub on_a_tick: bool,
    over: bool,
}

/// The board of the run, for the signal handler.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(std::ptr::null_mut());

extern "C" fn heard(signal: i32) {
    let board = BOARD.load(Ordering::Acquire);
    // SAFETY: null, or the board of a run, which is never unmapped.
    #[allow(unsafe_code, reason = "a signal handler has no other way to the board")]
    if let Some(board) = unsafe { board.as_ref() } {
        let set = |now: i32| (signal != libc::SIGCHLD || now == 0).then_some(signal);
        // That a child has ended must not hide that the run is to end.
        let order = Ordering::AcqRel;
        let _ = board.signal.fetch_update(order, Ordering::Acquire, set);
        board.tell();
    }
}

/// How far a run is.
struct Course<'r> {
    agenda: Agenda,
    changes: Changes<'r>,
    seen: &'r mut Seen,
}

impl Course<'_> {
    /// Does what an event says, which is no exchange of schedulers.
    fn happen(&mut self, stage: &'static Stage, event: Event) -> Result<(), PlayError> {
        match event {
            Event::WarmedUp => {
                let moment = self.seen.sample(stage);
                self.seen.moments.push(moment);
            }
            Event::Change(change) => {
                self.changes.make(&stage.changes[change as usize])?;
            }
            Event::Phase(phase) => {
                let moment = self.seen.sample(stage);
                self.seen
                    .records
                    .push((moment.at_ns, Record::Phase { phase }));
                self.seen.moments.push(moment);
            }
            Event::End => {
                let moment = self.seen.sample(stage);
                self.seen.end_ns = moment.at_ns;
                self.seen.moments.push(moment);
            }
        }
        Ok(())
    }
}

impl Control {
    /// Takes over a run from its beginning; `crew` is the process that makes it.
    pub fn new(stage: &'static Stage, lines: Lines, crew: i32, schedulers: Schedulers) -> Control {
        let board: *const Board = stage.board;
        BOARD.store(board.cast_mut(), Ordering::Release);
        let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD];
        process::on_signals(&signals, heard);
        // The crew may have been killed before this process could hear of it.
        heard(libc::SIGCHLD);
        // If the crew is killed, its children become ours.
        process::adopt_orphans();
        Control {
            stage,
            lines,
            crew: Cell::new(Some(crew)),
            schedulers: RefCell::new(schedulers),
            last_ns: Cell::new(0),
            on_a_tick: false,
            over: false,
        }
    }

    /// Waits until all tasks are there.
    ///
    /// # Errors
    /// What the system refused the crew, or that it takes too long.
    pub fn wait_until_ready(&self) -> Result<(), PlayError> {
        let (board, all) = (self.stage.board, self.stage.arrivals());
        let deadline = now_ns() + PATIENCE_NS;
        loop {
            let seen = board.news();
            self.early_end()?;
            if board.are_ready(all) {
                return Ok(());
            }
            if now_ns() >= deadline {
                let there = self.stage.standing();
                let text = format!("not all of {all} tasks were there after 120 s; {there}");
                return Err(PlayError::Ended(text));
            }
            board.wait(seen, deadline);
        }
    }

    /// Says which slices the kernel did not give as they were asked for.
    pub fn say_other_slices(&self, notes: &Notes) {
        let stage = self.stage;
        for (index, (kind, number)) in (0..).zip(&stage.first) {
            let Ok(spec) = stage.bound.spec(&stage.cpus, *kind, *number) else {
                continue;
            };
            let attributes = attributes(&spec);
            let wanted = attributes.slice_ns;
            let tid = stage.slots.of(index).tid.load(Ordering::Relaxed);
            let given = Attributes::of(tid).map_or(wanted, |attributes| attributes.slice_ns);
            if attributes.is_fair() && wanted > 0 && given != wanted {
                let what = format!("slice of `{}`", stage.scenario().task(*kind).key);
                let why = match given {
                    0 => "this kernel takes none from tasks (Linux 6.12 does)".to_owned(),
                    given => format!("the kernel gives {given} ns, not {wanted} ns"),
                };
                notes.say(&what, &why);
            }
        }
    }

    /// Why the run must end before its time, other than that all tasks are done.
    fn early_end(&self) -> Result<(), PlayError> {
        self.interrupted()?;
        match self.schedulers.borrow_mut().thrown_out() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// As [`early_end`](Control::early_end), whatever the scheduler does.
    fn interrupted(&self) -> Result<(), PlayError> {
        if let Some(Verdict::Failed(error)) = self.stage.board.verdict() {
            return Err(error);
        }
        let ended = |text: &str| Err(PlayError::Ended(text.to_owned()));
        match self.stage.board.signal.swap(0, Ordering::AcqRel) {
            0 => Ok(()),
            // The crew, or the program of a scheduler.
            libc::SIGCHLD => match self.crew.get().map(process::bury_one) {
                Some(None) => Ok(()),
                _ => {
                    self.crew.set(None);
                    ended("the player's crew was killed")
                }
            },
            libc::SIGINT => ended("interrupted (SIGINT)"),
            signal => ended(&format!("ended by signal {signal}")),
        }
    }

    /// Opens the gates, does what the agenda says, and samples.
    ///
    /// # Errors
    /// Why the run ended early; what was seen until then is in `seen`.
    pub fn conduct(&self, times: Times, notes: &Notes, seen: &mut Seen) -> Result<(), PlayError> {
        let mut course = Course {
            agenda: Agenda::new(&self.stage.bound, &self.stage.changes, times)?,
            changes: Changes::new(self.stage, notes),
            seen,
        };
        process::on_signals(&[libc::SIGALRM], hangs);
        let length_ns = (times.warmup + times.time).as_ns();
        self.last_ns.set(now_ns().saturating_add(length_ns));
        self.give_up_late(0);
        self.start();
        let result = self.follow(&mut course, notes);
        let result = result.and_then(|()| self.scheduler_stayed());
        let Course {
            mut changes, seen, ..
        } = course;
        seen.records.append(&mut changes.records);
        if result.is_ok() {
            self.say_if_nothing_happened(notes, seen);
        }
        seen.drop_other_counters(notes);
        if seen.end_ns == 0 {
            // It ended early: what was counted until now is the last that is known.
            let moment = seen.sample(self.stage);
            seen.end_ns = moment.at_ns;
            seen.moments.push(moment);
        }
        let throttled = self.stage.groups.throttled().into_iter();
        let end_ns = seen.end_ns;
        seen.records
            .extend(throttled.map(|record| (end_ns, record)));
        result
    }

    /// Gives the run up if it does not end in time, or `more_s` seconds later.
    fn give_up_late(&self, more_s: u32) {
        let seconds = self.last_ns.get().saturating_sub(now_ns()) / NS_PER_S;
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        process::alarm(seconds.saturating_add(SPARE_S).saturating_add(more_s));
    }

    /// A run in which nobody counts anything is hardly what was wanted.
    fn say_if_nothing_happened(&self, notes: &Notes, seen: &Seen) {
        let (first, last) = (seen.moments.first(), seen.moments.last());
        let counts = |moment: Option<&Moment>| moment.map(|moment| moment.counts.clone());
        let standing = self.stage.standing();
        if seen.moments.len() > 1 && counts(first) == counts(last) && !standing.is_empty() {
            notes.say("nothing was counted after the warm-up", &standing);
        }
    }

    fn start(&self) {
        let stage = self.stage;
        let start_ns = match self.on_a_tick {
            true => next_tick_ns(now_ns()),
            false => now_ns(),
        };
        sleep_until_ns(start_ns);
        stage.board.start_ns.store(start_ns, Ordering::Release);
        stage.board.start_sources();
        for (_, slot) in stage.tasks() {
            open(slot);
        }
    }

    fn follow(&self, course: &mut Course<'_>, notes: &Notes) -> Result<(), PlayError> {
        while let Some(at_ns) = course.agenda.due() {
            if let Some(done_ns) = self.wait_until(self.start_ns() + at_ns)? {
                return self.all_done(done_ns, &course.agenda, course.seen);
            }
            let Some(event) = course.agenda.take() else {
                break;
            };
            match self.scheduler_of(event) {
                Some(choice) => self.exchange(choice, at_ns, course, notes)?,
                None => course.happen(self.stage, event)?,
            }
        }
        Ok(())
    }

    fn start_ns(&self) -> u64 {
        self.stage.board.start_ns.load(Ordering::Acquire)
    }

    /// The scheduler that takes over by this event.
    fn scheduler_of(&self, event: Event) -> Option<&'static SchedulerChoice> {
        let Event::Change(change) = event else {
            return None;
        };
        match &self.stage.changes[change as usize].set[..] {
            [To::Scheduler(choice)] => Some(choice),
            _ => None,
        }
    }

    /// The scheduler that was loaded is there to the end.
    fn scheduler_stayed(&self) -> Result<(), PlayError> {
        self.give_up_late(self.schedulers.borrow().longest_s());
        let missing = self
            .schedulers
            .borrow_mut()
            .missing(&mut || self.look_again());
        match missing {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Waits until that time; if all tasks end before, says when.
    fn wait_until(&self, until_ns: u64) -> Result<Option<u64>, PlayError> {
        let board = self.stage.board;
        loop {
            let seen = board.news();
            self.early_end()?;
            if let Some(Verdict::Done { at_ns }) = board.verdict() {
                return Ok(Some(at_ns));
            }
            if now_ns() >= until_ns {
                return Ok(None);
            }
            board.wait(seen, until_ns);
        }
    }

    /// The last task has ended at `done_ns`: there is nothing more to see.
    fn all_done(&self, done_ns: u64, agenda: &Agenda, seen: &mut Seen) -> Result<(), PlayError> {
        let moment = Moment {
            at_ns: done_ns,
            ..seen.sample(self.stage)
        };
        seen.end_ns = done_ns;
        seen.moments.push(moment);
        match agenda.is_warm() {
            true => Ok(()),
            false => Err(PlayError::Ended(
                "all tasks ended before the warm-up was over: nothing is left to measure; play it with a \
                 shorter --warmup, such as 0s"
                    .to_owned(),
            )),
        }
    }

    /// Ends all tasks and removes everything that was made. Done only once.
    ///
    /// # Errors
    /// Tasks that cannot be ended.
    pub fn end(&mut self) -> Result<(), PlayError> {
        if std::mem::replace(&mut self.over, true) {
            return Ok(());
        }
        process::on_signals(&[libc::SIGCHLD], ignored);
        process::notify(self.lines.finish_fd);
        // It may be reaping, as usual tasks do.
        let _ = self.crew.get().map(|crew| ABOVE_TASKS.apply(crew));
        for _ in 0..1_500 {
            let Some(crew) = self.crew.get() else {
                // Its program is a child, too, and tasks are ended until there are no children.
                let _ = self.unload();
                // Its orphans are children of this process now.
                let ended = end_tasks(self.stage);
                self.stage.groups.remove();
                self.stage.remove_files();
                return ended;
            };
            match process::bury_one(crew) {
                Some(End::Exit(0)) => return Ok(()),
                Some(_) => self.crew.set(None),
                None => {
                    process::readable([-1], 10);
                }
            }
        }
        Err(hang(self.stage))
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.end();
        process::alarm(0);
    }
}

extern "C" fn ignored(_: i32) {}

/// The controller itself hangs: it gives up, and the crew cleans up.
extern "C" fn hangs(_: i32) {
    process::complain("error: the run did not end in time: the player hangs in the kernel\n");
    process::exit_now(3);
}

/// A time after `now` at which kernels of 100, 250 and 1000 Hz have a tick: they tick at multiples
/// of the period on the monotonic clock (`tick_init_jiffy_update()`).
fn next_tick_ns(now: u64) -> u64 {
    const TICKS_NS: u64 = 20_000_000;
    // There is some time left for what the controller does before it sleeps.
    (now + TICKS_NS / 4).next_multiple_of(TICKS_NS)
}

/// Lets a task begin.
fn open(slot: &Slot) {
    futex::set(&slot.gate, 1);
}

/// Puts the controller above all tasks, so that it is in time however busy the machine is. Where it
/// may not, it says so.
pub fn rise(notes: &Notes) {
    if let Err(error) = ABOVE_TASKS.apply(0) {
        let why =
            format!("it does not run at SCHED_FIFO ({error}) and may be late where CPUs are busy");
        notes.say("the controller", &why);
    }
}
