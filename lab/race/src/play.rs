//! Plays plans.

use warmq_kernel::{BootError, Mode};
use warmq_sched_ext::interleaved::{Event, Lock, Note, Waits};
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::Race;
use crate::draw::Draw;
use crate::fault::Fault;
use crate::plan::{Act, Hold, PICK, Plan, Setup, Step};
use crate::stage::Stage;

/// How often CPUs pick within one step: one that waits for what is interrupted may ask itself to
/// look again and again.
const ROUNDS: usize = 16;

/// The same once nothing is interrupted.
const LAST_ROUNDS: usize = 1_000;

/// For how long a path is interrupted at most, each time that time goes on.
const WHILE_HELD: Duration = Duration::from_us(1);

/// From one tick to the next, at first, and when many have passed.
const TICK: Duration = Duration::from_ms(4);
const LONG_TICK: Duration = Duration::from_ms(40);
const TICKS: u64 = 100;

/// A plan that is played.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    /// Paths that are interrupted, and how many steps still come in.
    held: Vec<(usize, u8)>,
    /// Timers that have expired, where the CPU did something else.
    expired: Vec<(CpuId, u64)>,
    /// Whether a path was interrupted since no CPU slept beside a task.
    raced: bool,
    /// What was found at a time when nothing was interrupted.
    fault: Option<Fault>,
    /// What had happened before a CPU looked whether it slept beside a task.
    pub(crate) before_look: Vec<Note>,
}

impl Play {
    /// A stage on which all CPUs have looked for a task once.
    pub(crate) fn new(race: &Race<'_>, setup: &Setup) -> Result<Play, BootError> {
        let mut play = Play {
            stage: Stage::new(race, setup)?,
            held: Vec::new(),
            expired: Vec::new(),
            raced: false,
            fault: None,
            before_look: Vec::new(),
        };
        for cpu in play.stage.cpus() {
            play.stage.kernel.begin(cpu, Event::Pick, None);
            play.stage.kernel.go_on();
        }
        play.settle(None, ROUNDS);
        Ok(play)
    }

    /// Plays steps as they are drawn; the plan that they make.
    pub(crate) fn draw(&mut self, draw: &mut Draw) -> Plan {
        let mut plan = Plan {
            setup: draw.setup(),
            steps: Vec::new(),
        };
        while !self.is_over()
            && let Some(step) = draw.next(&self.stage)
        {
            self.step(&step);
            plan.steps.push(step);
        }
        plan
    }

    /// Plays all steps of a plan.
    pub(crate) fn all(&mut self, plan: &Plan) {
        for step in &plan.steps {
            if self.is_over() {
                return;
            }
            self.step(step);
        }
    }

    fn is_over(&self) -> bool {
        self.fault.is_some() || self.stage.kernel.ejected().is_some()
    }

    /// Plays a step, if it can happen: what is not interrupted comes to its end.
    pub(crate) fn step(&mut self, step: &Step) {
        if let Act::Pass(us) = step.act {
            self.pass(Duration::from_us(us.into()));
        } else if let Some(event) = self.event(step)
            && self.stage.kernel.is_free(step.cpu)
        {
            let hold = step.hold.filter(|hold| hold.path == 0);
            let path = self.begin(step.cpu, event, hold);
            self.note_places(step.act.kind(), path);
        }
        self.settle(step.hold, ROUNDS);
        let kernel = &self.stage.kernel;
        self.held.retain(|(path, _)| kernel.waits(*path).is_some());
        self.count_step();
        if self.held.is_empty() && self.settle(None, LAST_ROUNDS) {
            self.fault = self.ejected().or_else(|| self.asleep());
            self.raced &= self.fault.is_some();
        }
    }

    /// Of those that are interrupted, some go on.
    fn count_step(&mut self) {
        for (_, steps) in &mut self.held {
            *steps = steps.saturating_sub(1);
        }
        let due = |(_, steps): &mut (usize, u8)| *steps == 0;
        let due: Vec<(usize, u8)> = self.held.extract_if(.., due).collect();
        for (path, _) in due {
            self.release(path);
        }
        self.settle(None, ROUNDS);
    }

    fn release(&mut self, path: usize) {
        // One that still waits for a lock is not interrupted later, either.
        if self.stage.kernel.waits(path).is_some() {
            self.stage.kernel.release(path);
            self.stage.kernel.go_on();
        }
    }

    /// How long paths of a kind are.
    fn note_places(&mut self, kind: &'static str, path: usize) {
        if self.stage.kernel.waits(path).is_none() {
            let places = self.stage.kernel.places(path);
            let most = self.stage.places.entry(kind).or_default();
            *most = places.max(*most);
        }
    }

    fn begin(&mut self, cpu: CpuId, event: Event, hold: Option<Hold>) -> usize {
        let passes = hold.map(|hold| u64::from(hold.passes));
        let path = self.stage.kernel.begin(cpu, event, passes);
        // This step is counted, too.
        self.held
            .extend(hold.map(|hold| (path, hold.steps.saturating_add(1))));
        self.stage.kernel.go_on();
        self.raced |= matches!(self.stage.kernel.waits(path), Some(Waits::Held(_)));
        path
    }

    /// Time goes on: not much, where a path is interrupted, since these are short.
    fn pass(&mut self, span: Duration) {
        let most = if self.held.is_empty() {
            span
        } else {
            WHILE_HELD
        };
        let span = span.min(most);
        let expired = self.stage.kernel.pass(span);
        self.expired.extend(expired);
    }

    /// What a step is at the moment; `None` if it cannot happen.
    fn event(&self, step: &Step) -> Option<Event> {
        let task = |task: u16| self.stage.tasks.get(usize::from(task)).copied();
        let group = |group: u16| self.stage.groups.get(usize::from(group)).copied();
        let runs = self.stage.kernel.runs(step.cpu).is_some();
        Some(match step.act {
            Act::Wake(of) => {
                let task = task(of)?;
                self.stage
                    .kernel
                    .sleeps(task)
                    .then_some(Event::Wake(task))?
            }
            Act::Sleep => runs.then_some(Event::Sleep)?,
            Act::Tick => runs.then_some(Event::Tick(Mode::User))?,
            Act::Yield => runs.then_some(Event::Yield)?,
            Act::Nice(of, nice) => Event::Nice(task(of)?, nice),
            Act::Affinity(of, cpus) => Event::Affinity(task(of)?, self.cpu_set(cpus)?),
            Act::Move(of, to) => Event::Move(task(of)?, group(to)?),
            Act::Weigh(of, weight) => Event::Weigh(group(of)?, weight.into()),
            Act::Idle(of, idle) => Event::Idle(group(of)?, idle),
            Act::Hint(value) => runs.then_some(Event::Hint(value.into()))?,
            Act::Pass(_) => return None,
        })
    }

    fn cpu_set(&self, bits: u8) -> Option<CpuSet> {
        let all = self.stage.cpus();
        let cpus: CpuSet = all.filter(|cpu| bits >> cpu.0 & 1 != 0).collect();
        (!cpus.is_empty()).then_some(cpus)
    }

    /// Whatever is to be done is done: picks, timers. The picks that follow from a step may be
    /// interrupted. Whether all is done.
    fn settle(&mut self, hold: Option<Hold>, rounds: usize) -> bool {
        let mut number = 0_u32;
        for _ in 0..rounds {
            let picks: Vec<CpuId> = self
                .stage
                .cpus()
                .filter(|cpu| self.is_to_pick(*cpu))
                .collect();
            let timers: Vec<(CpuId, u64)> = self.due().collect();
            if self.is_over() || picks.is_empty() && timers.is_empty() {
                return true;
            }
            for cpu in picks {
                number += 1;
                if self.is_to_pick(cpu) {
                    let hold = hold.filter(|hold| u32::from(hold.path) == number);
                    let path = self.begin(cpu, Event::Pick, hold);
                    self.note_places(PICK, path);
                }
            }
            for (cpu, timer) in timers {
                if self.stage.kernel.is_free(cpu) {
                    self.expired.retain(|one| *one != (cpu, timer));
                    self.begin(cpu, Event::Timer(timer), None);
                }
            }
        }
        false
    }

    fn is_to_pick(&self, cpu: CpuId) -> bool {
        self.stage.kernel.is_to_pick(cpu) && self.stage.kernel.is_free(cpu)
    }

    /// Timers that have expired, whose CPUs are free.
    fn due(&self) -> impl Iterator<Item = (CpuId, u64)> {
        let expired = self.expired.iter().copied();
        expired.filter(|(cpu, _)| self.stage.kernel.is_free(*cpu))
    }

    /// Lets all come to rest; what is wrong then, if anything is.
    pub(crate) fn end(&mut self) -> Option<Fault> {
        for (path, _) in std::mem::take(&mut self.held) {
            self.release(path);
        }
        let quiet = self.settle(None, LAST_ROUNDS);
        let fault = self.fault.take().or_else(|| self.ejected());
        let fault = fault.or_else(|| self.endless(quiet));
        let fault = fault.or_else(|| self.checked());
        let fault = fault.or_else(|| self.asleep());
        let fault = fault.or_else(|| self.lost());
        fault.or_else(|| self.checked())
    }

    fn ejected(&self) -> Option<Fault> {
        self.stage.kernel.ejected().map(Fault::Ejected)
    }

    fn checked(&mut self) -> Option<Fault> {
        self.stage.kernel.check();
        self.ejected()
    }

    /// Paths that wait for each other, or CPUs that ask themselves to look again without end.
    fn endless(&self, quiet: bool) -> Option<Fault> {
        let first = self.stage.kernel.paths().next();
        let waits = first.and_then(|path| self.stage.kernel.waits(path));
        let text = |waits| match waits {
            Waits::For(locks) => format!(
                "for {}",
                locks.iter().map(name).collect::<Vec<_>>().join(", ")
            ),
            Waits::Kicked(cpus) => format!(
                "for {} to switch, after SCX_KICK_WAIT",
                cpus.iter()
                    .map(CpuId::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            _ => "in a loop".to_owned(),
        };
        let kicks = || "a CPU looks for a task again and again".to_owned();
        let waits = waits.map(text).or_else(|| (!quiet).then(kicks));
        waits.map(Fault::Endless)
    }

    /// A CPU that idles beside a task that waits, and takes one if it looks.
    fn asleep(&mut self) -> Option<Fault> {
        for cpu in self.stage.cpus() {
            let beside = |task: &TaskId| self.stage.kernel.may_run(*task, cpu);
            let waits = self.stage.waiting().iter().any(beside);
            let kernel = &self.stage.kernel;
            if !waits || kernel.runs(cpu).is_some() || !kernel.is_free(cpu) {
                continue;
            }
            let notes = self.stage.kernel.notes();
            self.before_look.extend(notes);
            self.begin(cpu, Event::Pick, None);
            if let Some(task) = self.stage.kernel.runs(cpu) {
                let raced = self.raced;
                return Some(Fault::Asleep { cpu, task, raced });
            }
        }
        self.settle(None, LAST_ROUNDS);
        self.ejected()
    }

    /// A task that waits, and does not run although time goes on.
    fn lost(&mut self) -> Option<Fault> {
        let mut left = self.stage.waiting();
        let (mut passed, timeout) = (Duration::ZERO, self.stage.kernel.timeout());
        for tick in 0.. {
            left.retain(|task| self.stage.kernel.waits_for_cpu(*task));
            let task = *left.first()?;
            if passed >= timeout {
                let seconds = timeout.as_us() / 1_000_000;
                return Some(Fault::Lost { task, seconds });
            }
            let span = if tick < TICKS { TICK } else { LONG_TICK };
            passed += span;
            self.tick(span);
            if let Some(fault) = self.ejected() {
                return Some(fault);
            }
        }
        None
    }

    /// Time passes, and each CPU that runs a task has a tick.
    fn tick(&mut self, span: Duration) {
        self.pass(span);
        for cpu in self.stage.cpus() {
            let kernel = &self.stage.kernel;
            if kernel.runs(cpu).is_some() && kernel.is_free(cpu) {
                self.begin(cpu, Event::Tick(Mode::User), None);
            }
        }
        self.settle(None, LAST_ROUNDS);
    }
}

fn name(lock: &Lock) -> String {
    match lock {
        Lock::Task(task) => format!("the lock of {task}"),
        Lock::RunQueue(cpu) => format!("the run queue of {cpu}"),
        Lock::Groups => "the lock of cgroups".to_owned(),
        Lock::Handover(task) => format!("the transfer of {task} to or from the program"),
        Lock::Spin(address) => format!("the spin lock at {address:#x}"),
    }
}
