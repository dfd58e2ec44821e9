//! The paths through the kernel that meet the scheduler: schedule, switch, wake, fork, exit.

use warmq_trace::{Observer, Record};
use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::ending::{Rule, Waiting};
use crate::execute::Flow;
use crate::kernel::Kernel;
use crate::scheduler::{Pick, Why};
use crate::step::{Mode, Step};
use crate::task::{Life, State};

/// Retries of one pick after which the scheduler is said to loop.
const TRIES: u32 = 1_000;

impl<O: Observer> Kernel<O> {
    pub(crate) fn life(&mut self, task: TaskId) -> &mut Life {
        &mut self.core.lives[task.index()]
    }

    pub(crate) fn begin_schedule(&mut self, cpu: CpuId) -> Flow {
        let lock = self.scheduler.lock_for(cpu);
        let here = self.cpu(cpu);
        here.need_resched = false;
        here.stack
            .extend([Step::Pick { lock, tries: 0 }, Step::Acquire(lock)]);
        Flow::Next
    }

    pub(crate) fn pick(&mut self, cpu: CpuId, lock: LockId, tries: u32) -> Flow {
        let prev = self.cpu(cpu).current;
        let leaves = prev.filter(|prev| {
            let life = &self.core.lives[prev.index()];
            life.queued && !life.is_runnable()
        });
        let mut picked = Pick::Idle;
        let took = self.call(cpu, |scheduler, context| {
            if let Some(leaving) = leaves {
                scheduler.dequeue(context, leaving);
            }
            picked = scheduler.pick_next(context, prev);
        });
        if let Some(leaving) = leaves {
            self.life(leaving).queued = false;
        }
        match picked {
            Pick::Retry if tries >= TRIES => {
                self.broke(cpu, Rule::TriedTooOften);
                return Flow::Next;
            }
            Pick::Retry => self.cpu(cpu).stack.extend([
                Step::Pick {
                    lock,
                    tries: tries + 1,
                },
                Step::Acquire(lock),
                Step::Unlocked,
            ]),
            Pick::Idle => {
                let (next, paid) = (None, false);
                let here = self.cpu(cpu);
                here.chosen = next;
                here.stack.push(Step::Switch { next, paid });
            }
            Pick::Task(next) => {
                if let Err(rule) = self.may_pick(cpu, next) {
                    self.broke(cpu, rule);
                    return Flow::Next;
                }
                self.claim(cpu, next);
                self.cpu(cpu).stack.push(Step::Switch {
                    next: Some(next),
                    paid: false,
                });
            }
        }
        self.cpu(cpu).stack.push(Step::Release(lock));
        Flow::Takes(took, Mode::System)
    }

    fn may_pick(&self, cpu: CpuId, next: TaskId) -> Result<(), Rule> {
        let life = self
            .core
            .lives
            .get(next.index())
            .ok_or(Rule::PickedNobody(next))?;
        match (life.state, life.on_cpu) {
            (State::Dead, _) => Err(Rule::PickedNobody(next)),
            (State::New | State::Sleeping(_), _) => Err(Rule::PickedSleeper(next)),
            (_, Some(there)) if there != cpu => Err(Rule::PickedRunning(next, there)),
            _ if !life.may_run_on(cpu) => Err(Rule::CpuNotAllowed(next)),
            _ => Ok(()),
        }
    }

    /// From here on `next` belongs to `cpu`, though the switch is still to come.
    fn claim(&mut self, cpu: CpuId, next: TaskId) {
        let at = self.now();
        let life = self.life(next);
        life.on_cpu = Some(cpu);
        let from = std::mem::replace(&mut life.last_cpu, cpu);
        self.cpu(cpu).chosen = Some(next);
        if from != cpu {
            self.core.migrations += 1;
            self.record(
                at,
                Record::Migrate {
                    task: next,
                    from,
                    to: cpu,
                },
            );
        }
    }

    pub(crate) fn switch(&mut self, cpu: CpuId, next: Option<TaskId>, paid: bool) -> Flow {
        let prev = self.cpu(cpu).current;
        if prev == next {
            return Flow::Next;
        }
        if paid {
            return self.switched(cpu, prev, next);
        }
        let mm = |task: Option<TaskId>| task.and_then(|task| self.core.lives[task.index()].mm);
        let another_mm = mm(next).is_some() && mm(next) != mm(prev);
        let mm_switch = if another_mm {
            self.times.mm_switch
        } else {
            Duration::ZERO
        };
        self.cpu(cpu).stack.push(Step::Switch { next, paid: true });
        Flow::Takes(self.times.context_switch + mm_switch, Mode::System)
    }

    fn switched(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) -> Flow {
        let now = self.now();
        let prev_runnable = prev.is_some_and(|prev| self.switch_out(cpu, prev));
        if prev.is_none() {
            let here = self.cpu(cpu);
            here.idle_stack = std::mem::take(&mut here.stack);
        }
        self.switch_in(cpu, next);
        self.core.switches += 1;
        self.record(
            now,
            Record::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            },
        );
        if let Some(prev) = prev {
            self.leave_forbidden_cpu(prev);
        }
        if let Some(prev) = prev.filter(|prev| self.life(*prev).state == State::Dead) {
            self.bury(cpu, prev);
        }
        let stack = self.stack_touch(cpu, now);
        if let Some(prev) = prev.filter(|_| prev_runnable && self.scheduler.wants_put_prev()) {
            let lock = self.scheduler.lock_for(cpu);
            let steps = [
                Step::Release(lock),
                Step::PutPrev(prev),
                Step::Acquire(lock),
            ];
            self.cpu(cpu).stack.extend(steps);
        }
        Flow::Takes(stack, Mode::System)
    }

    /// A task that waits and may no longer use its last CPU waits for the first one that it may use.
    pub(crate) fn leave_forbidden_cpu(&mut self, task: TaskId) {
        let life = &self.core.lives[task.index()];
        let (waits, from) = (life.is_runnable() && life.on_cpu.is_none(), life.last_cpu);
        let first = life
            .allowed
            .as_ref()
            .and_then(|allowed| allowed.first().copied());
        if let Some(to) = first.filter(|_| waits && !life.may_run_on(from)) {
            let now = self.now();
            self.life(task).last_cpu = to;
            self.record(now, Record::Migrate { task, from, to });
        }
    }

    /// Takes `prev` off `cpu`, stack and all. True when it could have gone on.
    fn switch_out(&mut self, cpu: CpuId, prev: TaskId) -> bool {
        let now = self.now();
        let stack = std::mem::take(&mut self.cpu(cpu).stack);
        let life = self.life(prev);
        life.stack = stack;
        life.on_cpu = None;
        life.ran += now - life.switched_in;
        if life.is_runnable() {
            life.involuntary_switches += 1;
            life.runnable_since = now;
        } else {
            life.voluntary_switches += 1;
        }
        life.is_runnable()
    }

    fn switch_in(&mut self, cpu: CpuId, next: Option<TaskId>) {
        let now = self.now();
        let stack = match next {
            Some(next) => {
                let life = self.life(next);
                life.switched_in = now;
                std::mem::take(&mut life.stack)
            }
            None => std::mem::take(&mut self.cpu(cpu).idle_stack),
        };
        let here = self.cpu(cpu);
        here.current = next;
        here.last_switch = now;
        here.stack = stack;
    }

    /// `task` sleeps from here on; the CPU picks another as its next step.
    pub(crate) fn sleep(&mut self, cpu: CpuId, task: TaskId, waiting: Waiting) {
        self.runnable.leaves(self.core.timeline.now());
        self.life(task).state = State::Sleeping(waiting);
        self.cpu(cpu).stack.push(Step::Schedule);
    }

    /// Wakes `task`, or starts a new one; nothing when it is awake already.
    pub(crate) fn begin_wake(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        if !matches!(self.life(task).state, State::Sleeping(_) | State::New) {
            return Flow::Next;
        }
        let mut target = cpu;
        let took = self.call(cpu, |scheduler, context| {
            target = scheduler.select_cpu(context, task);
        });
        if target.index() >= self.core.cpus.len() {
            self.broke(cpu, Rule::NoSuchCpu(target));
        } else if !self.life(task).may_run_on(target) {
            self.broke(cpu, Rule::CpuNotAllowed(task));
        } else {
            let lock = self.scheduler.lock_for(target);
            let steps = [
                Step::Release(lock),
                Step::Activate { task, target },
                Step::Acquire(lock),
            ];
            self.cpu(cpu).stack.extend(steps);
        }
        Flow::Takes(took, self.mode(cpu, false))
    }

    /// Under the lock: `task` becomes runnable, unless somebody was faster.
    pub(crate) fn activate(&mut self, cpu: CpuId, task: TaskId, target: CpuId) -> Flow {
        let now = self.now();
        let why = match self.life(task).state {
            State::Sleeping(_) => Why::Wakeup,
            State::New => Why::Fork,
            State::Runnable | State::Dead => return Flow::Next,
        };
        self.runnable.joins(now);
        let life = self.life(task);
        life.state = State::Runnable;
        life.runnable_since = now;
        // A task that is on its way to sleep is still queued: it just stays.
        let queued = std::mem::replace(&mut life.queued, true);
        self.record(
            now,
            Record::Wakeup {
                waker: cpu,
                task,
                target,
            },
        );
        if queued {
            return Flow::Next;
        }
        self.callback(cpu, |scheduler, context| {
            scheduler.enqueue(context, task, target, why);
            scheduler.woken(context, task, target);
        })
    }

    pub(crate) fn forked(&mut self, cpu: CpuId, child: TaskId) -> Flow {
        let parent = self.cpu(cpu).current;
        let comm = self.life(child).comm;
        self.record(
            self.now(),
            Record::Fork {
                parent,
                child,
                comm,
            },
        );
        self.callback(cpu, |scheduler, context| {
            scheduler.fork(context, parent, child)
        })
    }

    pub(crate) fn exit(&mut self, cpu: CpuId) -> Flow {
        let current = self.cpu(cpu).current.expect("the idle task does not exit");
        self.alive -= 1;
        self.runnable.leaves(self.core.timeline.now());
        let life = self.life(current);
        life.state = State::Dead;
        life.program = None;
        self.record(self.now(), Record::Exit { cpu, task: current });
        self.cpu(cpu).stack.push(Step::Schedule);
        Flow::Takes(self.times.exit, Mode::System)
    }

    /// The last of a task that exited, after the switch away from it.
    fn bury(&mut self, cpu: CpuId, task: TaskId) {
        self.call(cpu, |scheduler, context| scheduler.exit(context, task));
        self.life(task).stack = Vec::new();
        let (block, bytes) = (self.life(task).block, self.settings.block);
        self.core.memory.free_block(block, bytes);
    }
}
