//! `schedule()`: from the request to reschedule to the switch.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::core::{Load, NeedResched, State};
use crate::face::{Callback, Pick};
use crate::paths::{Flow, System};
use crate::words::{Balance, Mode, Rule, Step, Waiting};

/// The number of retries of one pick after which the scheduler is reported to loop.
const TRIES: u32 = 1_000;

impl System {
    /// Puts `step` on the stack of `cpu`, to be performed under `locks`.
    pub(crate) fn push_locked(&mut self, cpu: CpuId, locks: [Option<LockId>; 2], step: Step) {
        let stack = &mut self.core.cpu(cpu).stack;
        let [first, second] = locks;
        stack.extend(first.map(Step::Release));
        stack.extend(second.map(Step::Release));
        stack.push(step);
        stack.extend(second.map(Step::Acquire));
        stack.extend(first.map(Step::Acquire));
    }

    pub(crate) fn begin_schedule(&mut self, cpu: CpuId) -> Flow {
        self.core.cpu(cpu).in_schedule = true;
        self.push_pick(cpu, 0);
        Flow::Next
    }

    /// Puts a pick on the stack, and the acquisition of its locks on top. The pick releases them.
    fn push_pick(&mut self, cpu: CpuId, tries: u32) {
        let locks = self.scheduler.locks(Callback::PickNext, cpu);
        let stack = &mut self.core.cpu(cpu).stack;
        stack.push(Step::Pick { locks, tries });
        let [first, second] = locks;
        stack.extend(second.map(Step::Acquire));
        stack.extend(first.map(Step::Acquire));
    }

    pub(crate) fn pick(&mut self, cpu: CpuId, locks: [Option<LockId>; 2], tries: u32) -> Flow {
        self.charge_at_pick(cpu);
        let prev = self.core.cpu(cpu).current;
        let leaves = prev.filter(|prev| {
            let task = self.core.task(*prev);
            task.queued && !task.is_runnable()
        });
        self.core.cpu(cpu).need_resched = NeedResched::No;
        let mut picked = Pick::Idle;
        let took = self.call(cpu, |scheduler, context| {
            if let Some(leaving) = leaves {
                scheduler.dequeue(context, leaving);
            }
            picked = scheduler.pick_next(context, prev);
        });
        if let Some(leaving) = leaves {
            self.core.task_mut(leaving).queued = false;
            self.core.leave_queues(leaving);
        }
        if let Err(rule) = self.act_on(cpu, picked, tries) {
            self.core.broke(cpu, rule);
            return Flow::Next;
        }
        let stack = &mut self.core.cpu(cpu).stack;
        let [first, second] = locks;
        stack.extend(first.map(Step::Release));
        stack.extend(second.map(Step::Release));
        Flow::Takes(took, Mode::System)
    }

    /// Puts the steps that follow from a pick on the stack.
    fn act_on(&mut self, cpu: CpuId, picked: Pick, tries: u32) -> Result<(), Rule> {
        let next = match picked {
            Pick::Retry if tries >= TRIES => return Err(Rule::TriedTooOften),
            Pick::Retry => {
                self.push_pick(cpu, tries + 1);
                self.core.cpu(cpu).stack.push(Step::Unlocked);
                return Ok(());
            }
            Pick::Idle => {
                self.core.cpu(cpu).chosen = None;
                None
            }
            Pick::Task(next) => {
                self.may_pick(cpu, next)?;
                self.claim(cpu, next);
                Some(next)
            }
        };
        let (stack, paid) = (&mut self.core.cpu(cpu).stack, false);
        stack.push(Step::Switch { next, paid });
        if next.is_none() && tries == 0 {
            stack.push(Step::Balance(Balance::NewlyIdle));
        }
        Ok(())
    }

    /// The newly idle balance found a queue to pull from: after the pull `schedule()` picks again
    /// instead of switching to the idle task.
    pub(crate) fn pick_after_pull(&mut self, cpu: CpuId) {
        let switch = self.core.cpu(cpu).stack.pop();
        debug_assert!(matches!(switch, Some(Step::Switch { next: None, .. })));
        self.core.cpu(cpu).stack.push(Step::PickAgain);
    }

    pub(crate) fn pick_again(&mut self, cpu: CpuId) -> Flow {
        self.push_pick(cpu, 1);
        Flow::Next
    }

    fn may_pick(&self, cpu: CpuId, next: TaskId) -> Result<(), Rule> {
        let known = self.core.tasks.get(next.index());
        let task = known.ok_or(Rule::PickedNobody(next))?;
        match (task.state, task.on_cpu) {
            (State::Dead, _) => Err(Rule::PickedNobody(next)),
            (State::New | State::Sleeping(_), _) => Err(Rule::PickedSleeper(next)),
            (_, Some(there)) if there != cpu => Err(Rule::PickedRunning(next, there)),
            _ if !self.core.view(next).may_run_on(cpu) => Err(Rule::CpuNotAllowed(next)),
            _ => Ok(()),
        }
    }

    /// Assigns `next` to `cpu`; the switch follows later.
    fn claim(&mut self, cpu: CpuId, next: TaskId) {
        let task = self.core.task_mut(next);
        task.on_cpu = Some(cpu);
        let from = task.moves_to(cpu);
        self.core.set_queue(next, cpu);
        self.core.cpu(cpu).chosen = Some(next);
        if let Some(from) = from {
            self.core.record(Record::Migrate {
                task: next,
                from,
                to: cpu,
            });
        }
    }

    pub(crate) fn switch(&mut self, cpu: CpuId, next: Option<TaskId>, paid: bool) -> Flow {
        let prev = self.core.cpu(cpu).current;
        if prev == next {
            self.core.cpu(cpu).in_schedule = false;
            return Flow::Next;
        }
        if paid {
            return self.switched(cpu, prev, next);
        }
        let mm_switch = self.switch_mm(cpu, next);
        let restart = self.core.restart_tick(cpu, next);
        let paid = true;
        self.core.cpu(cpu).stack.push(Step::Switch { next, paid });
        let took = self.core.times.context_switch + mm_switch + restart;
        Flow::Takes(took, Mode::System)
    }

    /// Loads the address space of `next`, unless it borrows the one that is loaded.
    fn switch_mm(&mut self, cpu: CpuId, next: Option<TaskId>) -> Duration {
        let Some(mm) = next.and_then(|next| self.core.task(next).mm) else {
            return Duration::ZERO;
        };
        let times = &self.core.times;
        let (kept, refill) = (times.mm_switch, times.mm_refill);
        match self.core.cpu(cpu).address_spaces.load(mm) {
            Load::No => Duration::ZERO,
            Load::Kept => kept,
            Load::Anew => kept + refill,
        }
    }

    fn switched(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) -> Flow {
        let now = self.core.now();
        self.core.charge_current(cpu);
        self.core.charge_bandwidth(cpu);
        let prev_runnable = prev.is_some_and(|prev| self.switch_out(cpu, prev));
        if prev.is_none() {
            let here = self.core.cpu(cpu);
            here.idle_stack = std::mem::take(&mut here.stack);
        }
        self.switch_in(cpu, next);
        if self.core.may_hold() {
            next.into_iter()
                .for_each(|next| self.core.begin_charges(cpu, next));
            self.core.cpu(cpu).has_work = next.is_some_and(|next| self.core.has_work(next));
        }
        self.core.record(Record::Switch {
            cpu,
            prev,
            prev_runnable,
            next,
        });
        let must_leave = prev.is_some_and(|prev| self.leave_forbidden_cpu(prev));
        if let Some(prev) = prev.filter(|prev| self.core.task(*prev).state == State::Dead) {
            self.bury(cpu, prev);
        }
        let stack = self.stack_touch(cpu, now);
        let wants =
            |prev: &TaskId| prev_runnable && (must_leave || self.scheduler.wants_put_prev(*prev));
        let put_prev = prev.filter(wants);
        let rest = self.call(cpu, |scheduler, context| {
            scheduler.switched(context, prev, next);
        });
        if let Some(prev) = put_prev {
            let locks = self.scheduler.locks(Callback::PutPrev, cpu);
            self.push_locked(cpu, locks, Step::PutPrev(prev));
        }
        Flow::Takes(stack + rest, Mode::System)
    }

    /// Moves a waiting task that may no longer use its last CPU to the first CPU that it may use.
    /// True if it was moved.
    pub(crate) fn leave_forbidden_cpu(&mut self, id: TaskId) -> bool {
        let task = self.core.task(id);
        let (waits, from) = (task.is_runnable() && task.on_cpu.is_none(), task.last_cpu);
        if !waits || self.core.view(id).may_run_on(from) {
            return false;
        }
        let to = self.core.first_allowed(id);
        if let Some(to) = to {
            self.core.set_queue(id, to);
        }
        if let Some(to) = to
            && let Some(from) = self.core.task_mut(id).moves_to(to)
        {
            self.core.record(Record::Migrate { task: id, from, to });
        }
        to.is_some()
    }

    /// Takes `prev` and its stack off `cpu`. True if `prev` is still runnable.
    fn switch_out(&mut self, cpu: CpuId, prev: TaskId) -> bool {
        let now = self.core.now();
        let stack = std::mem::take(&mut self.core.cpu(cpu).stack);
        let task = self.core.task_mut(prev);
        task.stack = stack;
        task.on_cpu = None;
        task.ran += now - task.switched_in;
        if task.is_runnable() {
            task.runnable_since = now;
        }
        task.is_runnable()
    }

    fn switch_in(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let now = self.core.now();
        let stack = match next {
            Some(next) => {
                let task = self.core.task_mut(next);
                task.switched_in = now;
                std::mem::take(&mut task.stack)
            }
            None => std::mem::take(&mut self.core.cpu(cpu).idle_stack),
        };
        let here = self.core.cpu(cpu);
        here.current = next;
        here.in_schedule = false;
        here.last_switch = now;
        here.stack = stack;
    }

    /// Puts `task` to sleep; the next step of the CPU is to pick another task.
    pub(crate) fn sleep(&mut self, cpu: CpuId, task: TaskId, waiting: Waiting) {
        self.core.task_mut(task).state = State::Sleeping(waiting);
        self.core.record_block(cpu, task, waiting);
        self.core.cpu(cpu).stack.push(Step::Schedule);
    }

    /// The task gives back what it has; it is a task until that is done.
    pub(crate) fn exit(&mut self, cpu: CpuId) -> Flow {
        let current = self.exiting(cpu);
        self.core.task_mut(current).exits = true;
        let here = self.core.cpu(cpu);
        here.stack.extend([Step::Exited, Step::LeaveAutogroup]);
        Flow::Takes(self.core.times.exit, Mode::System)
    }

    fn exiting(&mut self, cpu: CpuId) -> TaskId {
        let current = self.core.cpu(cpu).current;
        current.expect("the idle task does not exit")
    }

    /// Near its end: it may lose the CPU here once more (`sched_autogroup_exit_task()`).
    pub(crate) fn leave_autogroup(&mut self, cpu: CpuId) -> Flow {
        let current = self.exiting(cpu);
        self.callback(cpu, |scheduler, context| {
            scheduler.leave_autogroup(context, current);
        })
    }

    pub(crate) fn exited(&mut self, cpu: CpuId) -> Flow {
        let current = self.exiting(cpu);
        self.core.task_exited(current);
        self.core.record(Record::Exit { cpu, task: current });
        self.core.cpu(cpu).stack.push(Step::Schedule);
        Flow::Next
    }

    /// Frees a task that exited, after the switch away from it.
    fn bury(&mut self, cpu: CpuId, task: TaskId) {
        self.call(cpu, |scheduler, context| scheduler.exit(context, task));
        let state = self.core.task_mut(task);
        state.stack = Vec::new();
        let block = state.block;
        let bytes = self.core.settings.block;
        self.core.memory.free_block(block, bytes);
    }
}
