//! The invariants. Each checks a record against the state of the machine before it.

use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use super::seen::{Seen, Wait};
use super::{Breach, Promise, Queues, Violation};
use crate::{Doing, Interrupt, Record, State};

/// The longest time for which a CPU may have interrupts off: two ticks of a kernel of 100 Hz, the
/// second of which would be lost.
const INTERRUPTS_OFF: Duration = Duration::from_ms(20);

/// Checks that `record`, at time `at`, is lawful in the state of `seen`.
pub(super) fn judge(
    seen: &Seen,
    promise: Promise,
    at: Instant,
    record: &Record,
) -> Result<(), Violation> {
    let case = Case { seen, at, promise };
    case.time_never_back()?;
    if !seen.board.is_certain() {
        return Ok(());
    }
    match *record {
        Record::Fork { child, .. } => case.fork(child),
        Record::Exit { cpu, task } => case.alive(task, Some(cpu)),
        Record::Wakeup { task, target, .. } => case.alive(task, Some(target)),
        Record::Migrate { task, to, .. } => {
            case.alive(task, Some(to))?;
            case.queue_changes(task)
        }
        Record::Affinity { task, .. } => {
            case.alive(task, None)?;
            case.wait_ends(task)
        }
        Record::Hotplug { cpu, .. } => case.idle_ends(cpu),
        Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        } => {
            case.not_in_interrupt(cpu)?;
            case.not_in_idle_state(cpu)?;
            case.leaves(cpu, prev, prev_runnable)?;
            case.idle_ends(cpu)?;
            match next {
                None => Ok(()),
                // A task that is switched to itself must have been running here.
                Some(task) if next == prev => case.alive(task, Some(cpu)),
                Some(task) => case.runs(cpu, task),
            }
        }
        Record::InterruptExit { cpu, interrupt } => case.interrupt_ends(cpu, interrupt),
        Record::InterruptEnter {
            cpu,
            interrupt: Interrupt::Reschedule,
        } => case.reschedule_taken(cpu),
        Record::Lock {
            cpu,
            lock,
            waited,
            held,
        } => case.lock_released(cpu, lock, waited, held),
        Record::InterruptEnter { .. }
        | Record::RescheduleSent { .. }
        | Record::LockBusy { .. }
        | Record::Recalculate { .. } => Ok(()),
        Record::Block {
            cpu, task, state, ..
        } => case.blocks(cpu, task, state),
        Record::Waking { task, .. } => case.alive(task, None),
        Record::SpanEnd {
            task, span, number, ..
        } => case.span_ends(task, span, number),
        Record::Count { counter, total } => case.counts(counter, total),
        // What tasks and CPUs are like changes no schedule, and whatever is said may be so.
        Record::Ids { .. }
        | Record::Renamed { .. }
        | Record::Nice { .. }
        | Record::Policy { .. }
        | Record::Slice { .. }
        | Record::Group { .. }
        | Record::Cgroup { .. }
        | Record::Limit { .. }
        | Record::Throttled { .. }
        | Record::Quota { .. }
        | Record::Owed { .. }
        | Record::KernelThread { .. }
        | Record::Fragment { .. }
        | Record::Packet { .. }
        | Record::Drop { .. }
        | Record::Poll { .. }
        | Record::Idle { .. }
        | Record::Steal { .. }
        | Record::Lost { .. }
        | Record::Role { .. }
        | Record::SpanBegin { .. }
        | Record::SpanBegan { .. }
        | Record::Phase { .. }
        | Record::Ran { .. } => Ok(()),
    }
}

/// Checks, at the end of a run, the invariants that have a deadline.
pub(super) fn judge_end(seen: &Seen, end: Instant, promise: Promise) -> Result<(), Violation> {
    if !seen.board.is_certain() {
        return Ok(());
    }
    let case = Case {
        seen,
        at: end,
        promise,
    };
    for task in seen.board.tasks() {
        case.wait_ends(task)?;
    }
    for cpu in seen.rescheduled() {
        case.reschedule_in_time(cpu)?;
    }
    Ok(())
}

/// The machine before a record, and the record's time.
struct Case<'a> {
    seen: &'a Seen,
    at: Instant,
    promise: Promise,
}

impl Case<'_> {
    fn broken(
        &self,
        task: Option<TaskId>,
        cpu: Option<CpuId>,
        breach: Breach,
    ) -> Result<(), Violation> {
        Err(Violation {
            at: self.at,
            record: self.seen.records,
            task,
            cpu,
            breach,
        })
    }

    fn time_never_back(&self) -> Result<(), Violation> {
        let before = self.seen.now;
        match self.at < before {
            true => self.broken(None, None, Breach::TimeWentBack { before }),
            false => Ok(()),
        }
    }

    fn fork(&self, child: TaskId) -> Result<(), Violation> {
        match self.seen.board.doing(child) {
            Doing::Unknown => Ok(()),
            _ => self.broken(Some(child), None, Breach::ForkedAgain),
        }
    }

    /// Only a task that runs can go to sleep.
    fn runs_here(&self, cpu: CpuId, task: TaskId) -> Result<(), Violation> {
        match self.seen.running(cpu) {
            Some(running) if running != Some(task) => {
                self.broken(Some(task), Some(cpu), Breach::AnotherRan { running })
            }
            _ => Ok(()),
        }
    }

    /// Who waits for a CPU may leave its queue, if it stays runnable: it is throttled.
    fn blocks(&self, cpu: CpuId, task: TaskId, state: State) -> Result<(), Violation> {
        match (state, self.seen.board.doing(task)) {
            (State::Runnable, Doing::Waits(_)) => Ok(()),
            _ => self.runs_here(cpu, task),
        }
    }

    fn alive(&self, task: TaskId, cpu: Option<CpuId>) -> Result<(), Violation> {
        match self.seen.board.doing(task) {
            Doing::Unknown if !self.seen.is_whole() => Ok(()),
            Doing::Unknown | Doing::Exited => self.broken(Some(task), cpu, Breach::NotAlive),
            Doing::Sleeps | Doing::Throttled | Doing::Waits(_) | Doing::Runs(_) => Ok(()),
        }
    }

    fn leaves(&self, cpu: CpuId, prev: Option<TaskId>, runnable: bool) -> Result<(), Violation> {
        if let Some(running) = self.seen.running(cpu)
            && running != prev
        {
            return self.broken(prev, Some(cpu), Breach::AnotherRan { running });
        }
        let gone = prev.is_some_and(|task| self.seen.board.doing(task) == Doing::Exited);
        if gone && runnable {
            return self.broken(prev, Some(cpu), Breach::RunnableAfterExit);
        }
        if runnable && prev.is_some_and(|task| self.seen.blocks(task)) {
            return self.broken(prev, Some(cpu), Breach::RunnableAfterBlock);
        }
        Ok(())
    }

    fn runs(&self, cpu: CpuId, task: TaskId) -> Result<(), Violation> {
        self.alive(task, Some(cpu))?;
        match self.seen.board.doing(task) {
            Doing::Runs(other) => self.broken(Some(task), Some(cpu), Breach::OnTwoCpus { other }),
            // Kernels that call it runnable put it back without a wakeup.
            Doing::Throttled if self.seen.board.block(task).is_none() => Ok(()),
            Doing::Sleeps | Doing::Throttled => self.broken(Some(task), Some(cpu), Breach::Asleep),
            Doing::Waits(_) => self.wait_ends(task),
            Doing::Unknown | Doing::Exited => Ok(()),
        }
    }

    // No CPU idles while a task waits that it could run. Each such overlap of an idle CPU and a
    // waiting task is judged when it ends, since its length is known only then, or at the end of
    // the run.

    /// `cpu` stops idling, if it was idle: checks every waiting task against it.
    fn idle_ends(&self, cpu: CpuId) -> Result<(), Violation> {
        let long = |since| self.at.since(since) > self.promise.patience;
        if !self.seen.idle_since(cpu).is_some_and(long) {
            return Ok(());
        }
        for task in self.seen.board.tasks() {
            self.promise_kept(task, cpu)?;
        }
        Ok(())
    }

    /// `task` stops waiting, if it was waiting: checks every idle CPU against it.
    fn wait_ends(&self, task: TaskId) -> Result<(), Violation> {
        let Some(Wait { cpu, since, .. }) = self.seen.wait(task) else {
            return Ok(());
        };
        if self.at.since(since) <= self.promise.patience {
            return Ok(());
        }
        match self.promise.queues {
            Queues::PerCpu => self.promise_kept(task, cpu),
            Queues::Shared => {
                let mut cpus = self.seen.board.cpus();
                cpus.try_for_each(|cpu| self.promise_kept(task, cpu))
            }
        }
    }

    /// `task` moves to the queue of another CPU: the wait in the old queue is checked.
    fn queue_changes(&self, task: TaskId) -> Result<(), Violation> {
        match self.promise.queues {
            Queues::PerCpu => self.wait_ends(task),
            Queues::Shared => Ok(()),
        }
    }

    fn promise_kept(&self, task: TaskId, cpu: CpuId) -> Result<(), Violation> {
        let Some(wait) = self.seen.wait(task) else {
            return Ok(());
        };
        let waits_since = match self.promise.queues {
            Queues::PerCpu if wait.cpu != cpu => return Ok(()),
            Queues::PerCpu => wait.queued,
            Queues::Shared => wait.since,
        };
        let Some(idle_since) = self.seen.idle_since(cpu) else {
            return Ok(());
        };
        let since = waits_since.max(idle_since);
        if self.seen.is_reserved(task) {
            return Ok(());
        }
        if self.at.since(since) <= self.promise.patience || !self.seen.allows(task, cpu) {
            return Ok(());
        }
        self.broken(Some(task), Some(cpu), Breach::LeftWaiting { since })
    }

    fn lock_released(
        &self,
        cpu: CpuId,
        lock: LockId,
        waited: Duration,
        held: Duration,
    ) -> Result<(), Violation> {
        let before = |at: Instant, span: Duration| Instant(at.0.saturating_sub(span.0));
        let granted = before(self.at, held);
        let released = self.seen.released(lock);
        if let Some(released) = released.filter(|released| *released > granted) {
            return self.broken(None, Some(cpu), Breach::HeldByTwo { lock, released });
        }
        let switched = self.seen.switched(cpu);
        if switched > before(granted, waited) {
            return self.broken(None, Some(cpu), Breach::SwitchUnderLock { lock, switched });
        }
        Ok(())
    }

    /// In a recording one may come that no record shows: a kernel has ways to send them without a
    /// tracepoint, and two that merge may be taken one by one after all.
    fn reschedule_taken(&self, cpu: CpuId) -> Result<(), Violation> {
        if self.seen.is_whole() && self.seen.reschedule(cpu).is_none() {
            return self.broken(None, Some(cpu), Breach::NobodySent);
        }
        self.reschedule_in_time(cpu)
    }

    /// Checks that no reschedule interrupt has been pending on `cpu` for longer than a CPU may have
    /// interrupts off.
    /// In a recording it may be late without anybody's fault: a hypervisor had the CPU.
    fn reschedule_in_time(&self, cpu: CpuId) -> Result<(), Violation> {
        if !self.seen.is_whole() {
            return Ok(());
        }
        let late = |sent: &Instant| self.at.since(*sent) > INTERRUPTS_OFF;
        match self.seen.reschedule(cpu).filter(late) {
            Some(sent) => self.broken(None, Some(cpu), Breach::NotTaken { sent }),
            None => Ok(()),
        }
    }

    fn not_in_interrupt(&self, cpu: CpuId) -> Result<(), Violation> {
        match self.seen.open(cpu) {
            None => Ok(()),
            Some(open) => self.broken(None, Some(cpu), Breach::SwitchInInterrupt { open }),
        }
    }

    fn not_in_idle_state(&self, cpu: CpuId) -> Result<(), Violation> {
        match self.seen.in_idle_state(cpu) {
            true => self.broken(None, Some(cpu), Breach::SwitchInIdle),
            false => Ok(()),
        }
    }

    /// A recording may begin in the middle of a span.
    fn span_ends(&self, task: TaskId, span: u32, number: u64) -> Result<(), Violation> {
        if !self.seen.is_whole() || self.seen.has_begun(span, number) {
            return Ok(());
        }
        self.broken(Some(task), None, Breach::NeverBegan { span, number })
    }

    fn counts(&self, counter: u32, total: u64) -> Result<(), Violation> {
        let before = self.seen.counted(counter);
        match total < before {
            true => self.broken(None, None, Breach::CountedMore { counter, before }),
            false => Ok(()),
        }
    }

    fn interrupt_ends(&self, cpu: CpuId, interrupt: Interrupt) -> Result<(), Violation> {
        let open = self.seen.open(cpu);
        let from_before = open.is_none() && self.seen.may_be_in_unknown_interrupt(cpu);
        if open == Some(interrupt) || from_before {
            return Ok(());
        }
        self.broken(None, Some(cpu), Breach::NotInInterrupt { open })
    }
}
