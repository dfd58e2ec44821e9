//! The interpreter of steps: what a CPU does next, and how long it takes.

use warmq_trace::Record;
use warmq_units::{CpuId, Duration, LockId, TaskId};

use crate::core::NeedResched;
use crate::face::{Context, Scheduler};
use crate::paths::System;
use crate::words::{BusyWait, Mode, Preemptible, Preemption, Rule, Step, Touch, resume, wake};

/// The result of a step.
pub(crate) enum Flow {
    /// Continue with the next step.
    Next,
    /// The CPU is busy in this mode for this long.
    Takes(Duration, Mode),
    /// The CPU spins until a lock is handed to it.
    Spins,
}

/// The accesses of one touch are made in chunks of this duration, so that CPUs interleave.
const CHUNK: Duration = Duration::from_us(4);

/// The number of steps at one point in time after which a program is reported to make no progress.
pub(crate) const STEPS_AT_ONCE: u32 = 1_000_000;

impl System {
    /// Runs the steps of `cpu` up to the next one that takes time.
    pub(crate) fn advance(&mut self, cpu: CpuId) {
        let mut now = self.core.now();
        self.core.end_bout(cpu);
        if self.core.cpu(cpu).shown_idle {
            self.core.record_busy(cpu);
        }
        while !self.core.has_ended() {
            let here = self.core.cpu(cpu);
            if here.count_step(now) > STEPS_AT_ONCE {
                return self.no_progress(cpu);
            }
            if here.takes_interrupts()
                && let Some(vector) = here.interrupts.take_first()
            {
                self.enter_interrupt(cpu, vector);
                continue;
            }
            let Some(step) = self.next_step(cpu) else {
                match self.core.cpu(cpu).current {
                    Some(current) => self.ask_program(cpu, current),
                    None => return self.go_idle(cpu),
                }
                continue;
            };
            match self.perform(cpu, step) {
                Flow::Next => {}
                Flow::Takes(Duration::ZERO, _) => {}
                Flow::Takes(span, mode) if self.passes(cpu, span, mode) => {
                    now = self.core.now();
                    self.core.end_bout(cpu);
                }
                Flow::Takes(span, mode) => return self.busy(cpu, span, mode),
                Flow::Spins => {
                    let now = self.core.now();
                    self.core.cpu(cpu).turn_to(now, Mode::Spin, None);
                    return;
                }
            }
        }
    }

    fn go_idle(&mut self, cpu: CpuId) {
        let now = self.core.now();
        let nohz = self.core.settings.nohz;
        let here = self.core.cpu(cpu);
        here.turn_to(now, Mode::Idle, None);
        self.core.occupy_core(cpu, false);
        self.core.record_idle(cpu);
        let here = self.core.cpu(cpu);
        if nohz || !here.online {
            here.stop_tick();
            self.end_if_stalled();
        }
    }

    /// Has the effect of [`System::busy`] and the end of the step, without an event, if nothing
    /// else happens on the machine until then. Returns true if so; the CPU continues at once.
    fn passes(&mut self, cpu: CpuId, span: Duration, mode: Mode) -> bool {
        self.core.occupy_core(cpu, true);
        let now = self.core.now();
        let until = now + self.core.stretched(cpu, span);
        // A run that is over ends at the present time, not after this step.
        let over = self.core.work_is_done() || self.core.has_ended();
        if over || !self.core.pass_until(until) {
            return false;
        }
        self.core.cpu(cpu).turn_to(now, mode, Some(until));
        true
    }

    pub(crate) fn busy(&mut self, cpu: CpuId, span: Duration, mode: Mode) {
        let now = self.core.now();
        let until = now + self.core.stretched(cpu, span);
        self.core.cpu(cpu).turn_to(now, mode, Some(until));
        self.core.schedule_step_end(cpu, until);
    }

    pub(crate) fn no_progress(&mut self, cpu: CpuId) {
        let task = self.core.cpu(cpu).current;
        let name = |task: TaskId| self.core.tasks[task.index()].comm.to_string();
        let comm = task.map_or_else(|| "idle".to_owned(), name);
        self.core.no_progress(task, comm);
    }

    /// The next step: the top of the stack, or, on the way back to user mode, pending softirqs and
    /// preemption. `None` when the kernel has nothing to do.
    fn next_step(&mut self, cpu: CpuId) -> Option<Step> {
        let here = self.core.cpu(cpu);
        if let Some(how) = here.waits_now() {
            return Some(self.begin_wait(cpu, how));
        }
        if here.may_schedule() {
            if here.current.is_none() && !here.wake_list.is_empty() {
                // Before it leaves idle, or idles on (flush_smp_call_function_queue() in
                // do_idle()).
                self.push_wake_list(cpu);
            }
            let here = self.core.cpu(cpu);
            if here.has_work
                && let Some(step) = self.work_of_current(cpu)
            {
                return Some(step);
            }
            let here = self.core.cpu(cpu);
            if here.need_resched != NeedResched::No && self.preempts(cpu) {
                return Some(Step::Schedule);
            }
            if !self.core.cpu(cpu).softirqs.is_empty()
                && let Some(step) = self.left_softirqs(cpu)
            {
                return Some(step);
            }
        }
        self.core.cpu(cpu).stack.pop()
    }

    /// Whether `cpu` reschedules before its next step.
    fn preempts(&self, cpu: CpuId) -> bool {
        let here = &self.core.cpus[cpu.index()];
        let next = here.stack.last();
        let class = next.map_or(Preemptible::User, Step::preemptible);
        // A task that is about to sleep calls schedule() by itself.
        let runs = here
            .current
            .is_some_and(|current| self.core.task(current).is_runnable());
        let now = here.need_resched == NeedResched::Now;
        match (class, self.core.settings.preemption) {
            // A lazy request is seen where the kernel is left, not within user code.
            (Preemptible::User, _) => now || !here.in_user,
            (Preemptible::No, _)
            | (_, Preemption::None)
            | (Preemptible::Kernel, Preemption::Voluntary) => false,
            (Preemptible::Point, Preemption::Voluntary)
            | (_, Preemption::Full | Preemption::Lazy) => now && runs,
        }
    }

    /// Handles softirqs that are still raised on the way back to user mode: wakes `ksoftirqd`, or
    /// runs them here if the kernel has none.
    fn left_softirqs(&mut self, cpu: CpuId) -> Option<Step> {
        let next = self.core.cpu(cpu).stack.last();
        if next.is_some_and(|step| step.preemptible() != Preemptible::User) {
            return None;
        }
        match self.core.ksoftirqd(cpu) {
            None => {
                self.begin_softirqs(cpu);
                self.core.cpu(cpu).stack.pop()
            }
            Some(thread) => self.core.task(thread).is_asleep().then(|| wake(thread)),
        }
    }

    /// Runs the program of `current` up to its next operation and puts that operation's steps on
    /// the stack.
    fn ask_program(&mut self, cpu: CpuId, current: TaskId) {
        let task = self.core.task_mut(current);
        let program = task.program.as_mut().expect("a running task has a program");
        let returned = resume(program);
        let asked = task.mailbox.take();
        match asked {
            Some(operation) if !returned => self.begin_operation(cpu, current, operation),
            _ => self.core.cpu(cpu).stack.extend([Step::Exit]),
        }
    }

    fn perform(&mut self, cpu: CpuId, step: Step) -> Flow {
        match step {
            Step::Busy { left, user } => Flow::Takes(left, self.mode(cpu, user)),
            Step::ReturnToUser(takes) => Flow::Takes(takes, self.mode(cpu, false)),
            Step::Touch { touch, user } => self.touch(cpu, touch, user),
            Step::Look(look) => self.look(cpu, look),
            Step::Acquire(lock) => self.acquire(cpu, lock),
            Step::Release(lock) => self.begin_release(cpu, lock),
            Step::Unlock(lock) => self.unlock(cpu, lock),
            Step::Schedule => self.begin_schedule(cpu),
            Step::Pick { locks, tries } => self.pick(cpu, locks, tries),
            Step::Unlocked => self.callback(cpu, |scheduler, context| scheduler.unlocked(context)),
            Step::Switch { next, paid } => self.switch(cpu, next, paid),
            Step::PutPrev(prev) => self.callback(cpu, |scheduler, context| {
                if context.task(prev).is_runnable() {
                    scheduler.put_prev(context, prev);
                }
            }),
            Step::BusyWait(how) => self.wait_busily(cpu, how),
            Step::Wake { task, sync } => self.begin_wake(cpu, task, sync),
            Step::Activate(task, target, why) => self.activate(cpu, task, target, why),
            Step::Fork(child) => self.forked(cpu, child),
            Step::Tick(running) => {
                self.callback(cpu, |scheduler, context| scheduler.tick(context, running))
            }
            Step::YieldTask(task) => self.yield_task(cpu, task),
            Step::SetWeight(task) => self.callback(cpu, |scheduler, context| {
                scheduler.set_weight(context, task)
            }),
            Step::CpumaskChanged(task) => self.set_cpumask(cpu, task),
            Step::SetCpumask(task) => self.callback(cpu, |scheduler, context| {
                scheduler.set_cpumask(context, task)
            }),
            Step::EndInterrupt(interrupt) => self.end_interrupt(cpu, interrupt),
            Step::Returned(span) => self.returned(cpu, span),
            Step::ScheduleNapi(nic) => self.schedule_napi(cpu, nic.0),
            Step::Softirqs(round, since) => self.softirqs(cpu, round, since),
            Step::BeginSoftirq(interrupt) => {
                self.core.record(Record::InterruptEnter { cpu, interrupt });
                Flow::Next
            }
            Step::EndSoftirq(interrupt) => {
                self.core.record(Record::InterruptExit { cpu, interrupt });
                Flow::Next
            }
            Step::NetRx(run) => self.net_rx(cpu, run),
            Step::EnableSoftirqs => {
                self.core.cpu(cpu).softirq_depth -= 1;
                self.run_pending_softirqs(cpu);
                Flow::Next
            }
            Step::Ksoftirqd => {
                let thread = self.core.cpu(cpu).current;
                self.run_ksoftirqd(cpu, thread.expect("a thread runs"))
            }
            Step::Balance(when) => self.balance(cpu, when),
            Step::Pull(from, when) => self.callback(cpu, |scheduler, context| {
                scheduler.pull(context, from, when)
            }),
            Step::PickAgain => self.pick_again(cpu),
            Step::SchedulerTimer(token) => {
                self.callback(cpu, |scheduler, context| scheduler.timer(context, token))
            }
            Step::SetGroupWeight(group) => self.callback(cpu, |scheduler, context| {
                scheduler.set_group_weight(context, group);
            }),
            Step::Changes => self.next_change(cpu),
            Step::Refill(group) => self.refill(cpu, group),
            Step::HandOutSlack(group) => self.hand_out_slack(cpu, group),
            Step::SetFragment(fragment) => self.set_fragment(cpu, fragment),
            Step::DeliverDatagram(socket, bytes) => self.deliver_datagram(cpu, socket, bytes),
            Step::TransmitAnswer(to, bytes) => self.transmit_answer(cpu, to, bytes),
            Step::Perform(operation) => self.perform_operation(cpu, operation),
            Step::Deliver(socket, bytes, arrival) => self.deliver(cpu, socket, bytes, arrival),
            Step::Take(socket, bytes, arrival) => self.take(cpu, socket, bytes, arrival),
            Step::WritePipe(socket) => Flow::Takes(self.core.write_pipe(cpu, socket), Mode::System),
            Step::ReleaseSocket(socket) => self.release_socket(cpu, socket),
            Step::CancelTimeout(timeout) => self.cancel_timeout(timeout),
            Step::Semop(semaphore, up) => self.semop_locked(cpu, semaphore, up),
            Step::Answer(answer) => {
                let current = self.core.current(cpu);
                self.core.tasks[current.index()].mailbox.answer(answer);
                Flow::Next
            }
            Step::Exit => self.exit(cpu),
            Step::LeaveAutogroup => self.leave_autogroup(cpu),
            Step::Exited => self.exited(cpu),
        }
    }

    pub(crate) fn mode(&mut self, cpu: CpuId, user: bool) -> Mode {
        let here = self.core.cpu(cpu);
        match (user, here.irq_depth, here.softirq_depth) {
            (true, ..) => Mode::User,
            (false, 0, 0) => Mode::System,
            (false, 0, _) => Mode::Softirq,
            (false, ..) => Mode::Interrupt,
        }
    }

    fn yield_task(&mut self, cpu: CpuId, task: TaskId) -> Flow {
        let mut gives_way = true;
        let took = self.call(cpu, |scheduler, context| {
            gives_way = scheduler.yield_task(context, task);
        });
        if gives_way {
            self.core.cpu(cpu).need_resched = NeedResched::Now;
        }
        Flow::Takes(took, self.mode(cpu, false))
    }

    fn touch(&mut self, cpu: CpuId, mut touch: Touch, user: bool) -> Flow {
        let now = self.core.now();
        let work = self.core.hardware.clock.time_of(touch.work);
        let took = self.core.memory.touch(cpu, &mut touch, work, now, CHUNK);
        if touch.lines > 0 {
            self.core.cpu(cpu).stack.push(Step::Touch { touch, user });
        }
        Flow::Takes(took, self.mode(cpu, user))
    }

    /// Calls the scheduler on `cpu`, which is busy for as long as the callback takes.
    pub(crate) fn callback(
        &mut self,
        cpu: CpuId,
        call: impl FnOnce(&mut dyn Scheduler, &mut Context<'_>),
    ) -> Flow {
        let took = self.call(cpu, call);
        Flow::Takes(took, self.mode(cpu, false))
    }

    // Waits for other CPUs.

    /// This CPU is not through with `schedule()` until it has waited.
    fn begin_wait(&mut self, cpu: CpuId, how: BusyWait) -> Step {
        let here = self.core.cpu(cpu);
        here.is_to_wait = None;
        here.in_schedule = true;
        here.irq_off += u32::from(how == BusyWait::InterruptsOff);
        Step::BusyWait(how)
    }

    fn wait_busily(&mut self, cpu: CpuId, how: BusyWait) -> Flow {
        let mut goes_on = false;
        let took = self.call(cpu, |scheduler, context| {
            goes_on = scheduler.keeps_waiting(context);
        });
        let here = self.core.cpu(cpu);
        if goes_on {
            here.stack.push(Step::BusyWait(how));
            return Flow::Spins;
        }
        here.in_schedule = false;
        here.irq_off -= u32::from(how == BusyWait::InterruptsOff);
        Flow::Takes(took, self.mode(cpu, false))
    }

    // Locks.

    fn acquire(&mut self, cpu: CpuId, lock: LockId) -> Flow {
        let now = self.core.now();
        self.core.cpu(cpu).irq_off += 1;
        match self.core.word(lock).request(cpu, now) {
            Some(took) => Flow::Takes(took, self.mode(cpu, false)),
            None => Flow::Spins,
        }
    }

    fn begin_release(&mut self, cpu: CpuId, lock: LockId) -> Flow {
        let now = self.core.now();
        let Some(read) = self.core.word(lock).before_release(cpu, now) else {
            return self.unlock(cpu, lock);
        };
        self.core.cpu(cpu).stack.push(Step::Unlock(lock));
        Flow::Takes(read, self.mode(cpu, false))
    }

    fn unlock(&mut self, cpu: CpuId, lock: LockId) -> Flow {
        self.core.cpu(cpu).irq_off -= 1;
        let store = self.release(lock, cpu);
        Flow::Takes(store, self.mode(cpu, false))
    }

    /// `cpu` releases `lock`; the next owner continues when the lock reaches it. Returns how long
    /// the releasing store takes.
    pub(crate) fn release(&mut self, lock: LockId, cpu: CpuId) -> Duration {
        let now = self.core.now();
        let Some(released) = self.core.word(lock).release(cpu, now) else {
            self.core.broke(cpu, Rule::NotTheHolder);
            return Duration::ZERO;
        };
        let (waited, held) = (released.waited, released.held);
        self.core.record(Record::Lock {
            cpu,
            lock,
            waited,
            held,
        });
        if let Some((next, goes_on)) = released.next_owner {
            let mode = self.mode(next, false);
            // Even a move that takes no time needs an event, so that the next owner continues after
            // this CPU.
            self.busy(next, goes_on - now, mode);
        }
        released.store
    }
}
