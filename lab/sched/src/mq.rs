//! MQ: the multi-queue scheduler of IBM for Linux 2.4, a run queue and a lock for each CPU.
//!
//! Purpose: shorter walks and locks that hardly anybody shares. Each queue publishes its best task
//! that waits, with its goodness without the bonuses for CPU and address space. A CPU walks its own
//! queue; where another queue publishes more than its local best, it tries that queue's lock, looks
//! again, and takes the task without a walk. A woken or preempted task goes to the CPU that runs
//! the least good one. It does badly where few tasks run on few CPUs: the looking around costs more
//! than the walk that it saves.
//!
//! A queue's lock, its list's head and what it publishes share one line of cache, as in the patch:
//! whoever reads the published value takes the line from the lock's owner.

use warmq_config::Chosen;
use warmq_kernel::{Attach, Context, Pick, Within};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId, Cycles, Instant, LockId, TaskId};

use crate::family::goodness::{AFFINITY, IDLE};
use crate::family::idle::{gain, preempt, wake};
use crate::family::list::Lists;
use crate::family::scheduler::{Family, Queues};
use crate::family::state::{Here, is_idle, may_go_on};

/// What a queue publishes that has no task to give.
const NOTHING: i32 = -10_000;

/// The multi-queue scheduler.
pub(crate) type Mq = Family<QueuePerCpu>;

/// A queue for each CPU.
///
/// Invariant: a task is in the list of `queue_of` it from `enqueue` to `dequeue`, also while it
/// runs, and then it runs on that CPU.
pub(crate) struct QueuePerCpu {
    queues: Vec<Queue>,
    /// What others read of each queue without its lock: written by the last local scan, raised by a
    /// better task that joins.
    offers: Vec<Offer>,
    /// Goodness without bonuses of the task that runs on each CPU, as of the last pick or tick
    /// (`curr_na_goodness`, in `aligned_data`).
    current: Vec<i32>,
    /// One list a CPU.
    lists: Lists,
    queue_of: Vec<CpuId>,
}

struct Queue {
    lock: LockId,
    /// The line of the lock, the list's head and the offer.
    line: Address,
    /// The last pick here found a lock taken and nothing to run: it is to be repeated as it was.
    premature_idle: bool,
}

/// A task that waits, and its goodness without bonuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    goodness: i32,
    task: Option<TaskId>,
}

impl Offer {
    const NONE: Offer = Offer {
        goodness: NOTHING,
        task: None,
    };
}

/// What a scan of the own queue found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scan {
    /// The best for this CPU, without the bonus for having run here unless it is `prev`.
    best: (i32, Option<TaskId>),
    /// The best two to offer to others; the first of equals.
    offers: [Offer; 2],
}

impl Scan {
    /// Begins with `prev`, at its full goodness, or with the idle task.
    fn new(best: (i32, Option<TaskId>)) -> Scan {
        let offers = [Offer::NONE; 2];
        Scan { best, offers }
    }

    /// A task that waits, with its goodness here and without any bonus.
    fn see(&mut self, task: TaskId, here: i32, goodness: i32) {
        if here > self.best.0 {
            self.best = (here, Some(task));
        }
        let offer = Offer {
            goodness,
            task: Some(task),
        };
        if goodness > self.offers[0].goodness {
            self.offers = [offer, self.offers[0]];
        } else if goodness > self.offers[1].goodness {
            self.offers[1] = offer;
        }
    }

    /// What the best is worth against other queues' offers: the bonus for having run here comes on
    /// top, even where `prev` has it already, which so counts twice (as in the patch).
    fn against_others(&self) -> i32 {
        match self.best.0 {
            best if best > 0 => best + AFFINITY,
            best => best,
        }
    }

    /// The best to offer once `chosen` is gone.
    fn offer_without(&self, chosen: Option<TaskId>) -> Offer {
        match self.offers {
            [first, second] if first.task.is_some() && first.task == chosen => second,
            [first, _] => first,
        }
    }
}

/// How an attempt to take another queue's offer ended.
enum Attempt {
    Took(TaskId),
    /// Its lock is held.
    Busy,
    /// The offer is no longer good enough.
    Gone,
}

impl QueuePerCpu {
    /// Walks the queue of this CPU.
    fn scan(&self, here: &mut Here<'_, '_>, mut scan: Scan) -> Scan {
        let cpu = here.context.cpu();
        let mut visits = 0;
        here.context.within(Within::RunQueueWalk);
        let mut next = self.lists.first(cpu.index());
        while let Some(task) = next {
            next = self.lists.after(task);
            visits += 1;
            if here.visit(task, None) {
                let candidate = here.common.candidate(here.context, task, cpu);
                let goodness = here.common.slices.without_bonuses(here.context, task);
                scan.see(task, candidate.without_affinity().goodness(), goodness);
            }
        }
        here.context.within(Within::Elsewhere);
        here.context.walked(visits);
        scan
    }

    fn publish(&mut self, context: &mut Context<'_>, of: CpuId, offer: Offer) {
        if self.offers[of.index()] != offer {
            self.offers[of.index()] = offer;
            context.touch(self.queues[of.index()].line, Access::Write);
        }
    }

    /// Looks at what the other queues publish, best first, and takes a task that beats `best`.
    /// Returns it with its goodness, and whether a lock was found taken on the way.
    fn take_from_others(
        &mut self,
        here: &mut Here<'_, '_>,
        best: i32,
    ) -> (Option<(i32, TaskId)>, bool) {
        let mut busy = false;
        for (goodness, from) in self.offers(here.context, best) {
            match self.take(here, from, best) {
                Attempt::Took(task) => return (Some((goodness, task)), busy),
                Attempt::Busy => busy = true,
                Attempt::Gone => {}
            }
        }
        (None, busy)
    }

    /// The offers of other CPUs that beat `best` and may run here, the best first.
    fn offers(&self, context: &mut Context<'_>, best: i32) -> Vec<(i32, CpuId)> {
        let (here, cpus) = (context.cpu(), context.cpus());
        let others = (0..cpus).map(CpuId).filter(|cpu| *cpu != here);
        let lines = others.map(|cpu| self.queues[cpu.index()].line);
        context.touch_all(lines, Access::Read);
        let mut offers = Vec::new();
        for (cpu, offer) in (0..cpus).map(CpuId).zip(&self.offers) {
            let allowed = |task| context.task(task).may_run_on(here);
            if offer.goodness > best && cpu != here && offer.task.is_some_and(allowed) {
                offers.push((offer.goodness, cpu));
            }
        }
        offers.sort_by_key(|(goodness, cpu)| (-goodness, *cpu));
        offers
    }

    fn take(&mut self, here: &mut Here<'_, '_>, from: CpuId, best: i32) -> Attempt {
        let lock = self.queues[from.index()].lock;
        if !here.context.try_lock(lock) {
            return Attempt::Busy;
        }
        let offer = self.offers[from.index()];
        let waits = |task: &TaskId| {
            here.context
                .touch(here.common.layout.hot(*task), Access::Read);
            here.context.task(*task).on_cpu().is_none() && self.queue_of[task.index()] == from
        };
        let taken = offer.task.filter(|_| offer.goodness > best).filter(waits);
        if let Some(task) = taken {
            let to = here.context.cpu();
            self.move_to(here, task, to);
            let next = self.first_to_give(here, from);
            self.publish(here.context, from, next);
        }
        here.context.unlock(lock);
        taken.map_or(Attempt::Gone, Attempt::Took)
    }

    /// What a queue publishes after its offer was taken: the first that can run at all.
    fn first_to_give(&self, here: &mut Here<'_, '_>, of: CpuId) -> Offer {
        let mut next = self.lists.first(of.index());
        while let Some(task) = next {
            next = self.lists.after(task);
            here.context
                .touch(here.common.layout.hot(task), Access::Read);
            let goodness = here.common.slices.without_bonuses(here.context, task);
            if goodness > 0 && here.context.task(task).on_cpu().is_none() {
                let task = Some(task);
                return Offer { goodness, task };
            }
        }
        Offer::NONE
    }

    fn move_to(&mut self, here: &mut Here<'_, '_>, task: TaskId, to: CpuId) {
        self.lists.remove(here, task);
        self.lists.add_first(here, to.index(), task);
        self.queue_of[task.index()] = to;
    }

    /// `task` joins the queue of `cpu`, whose lock is held, and may be its best offer.
    fn offer(&mut self, here: &mut Here<'_, '_>, task: TaskId, cpu: CpuId) {
        let goodness = here.common.slices.without_bonuses(here.context, task);
        if goodness > self.offers[cpu.index()].goodness {
            let task = Some(task);
            self.publish(here.context, cpu, Offer { goodness, task });
        }
    }

    /// CPUs where `task` would run better than who runs there, the least good first.
    fn targets(&self, here: &mut Here<'_, '_>, task: TaskId) -> Vec<CpuId> {
        let home = self.queue_of[task.index()];
        let goodness = here.common.slices.without_bonuses(here.context, task);
        let cpus = (0..here.context.cpus()).map(CpuId);
        let allowed: Vec<CpuId> = cpus
            .filter(|cpu| here.context.task(task).may_run_on(*cpu))
            .collect();
        let lines = allowed.iter().map(|cpu| here.common.globals.cpu(*cpu));
        here.context.touch_all(lines, Access::Read);
        let mut targets = Vec::new();
        for cpu in allowed {
            // What is published of an idle CPU is less than any task's.
            let rank = match self.current[cpu.index()] {
                IDLE => Some((NOTHING, here.context.last_switch(cpu))),
                current => {
                    rank_of_busy(current, cpu == home, goodness).map(|rank| (rank, Instant::START))
                }
            };
            targets.extend(rank.map(|rank| (rank, cpu)));
        }
        targets.sort_unstable();
        targets.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// The last CPU if it idles; else that of the least good task that is worth less than `task`.
    /// One that a CPU still switches away from stays there; that CPU asks again when it is done.
    fn place(&mut self, here: &mut Here<'_, '_>, task: TaskId, home: CpuId) {
        if here.context.task(task).on_cpu().is_some() {
            return;
        }
        let may_stay = here.context.task(task).may_run_on(home);
        if may_stay && is_idle(here.context, home) {
            return wake(here, home);
        }
        let targets = self.targets(here, task);
        let mut tried = targets.into_iter();
        if tried.any(|cpu| self.settle_on(here, task, cpu)) || may_stay {
            return;
        }
        // It must leave the CPU that its affinity forbids, whatever runs elsewhere; 2.4.4 had no
        // such call. No lock of the other queue is taken.
        let allowed = |cpu: &CpuId| here.context.task(task).may_run_on(*cpu);
        if let Some(cpu) = (0..here.context.cpus()).map(CpuId).find(allowed) {
            self.move_to(here, task, cpu);
            self.offer(here, task, cpu);
            here.context.reschedule(cpu);
        }
    }

    /// Tries to get `task` onto `cpu`. Its own CPU must be preempted; another's lock must be free.
    fn settle_on(&mut self, here: &mut Here<'_, '_>, task: TaskId, cpu: CpuId) -> bool {
        let Some(running) = here.context.running_on(cpu) else {
            return self.push(here, task, cpu);
        };
        if cpu != self.queue_of[task.index()] {
            return self.push(here, task, cpu);
        }
        let preempts = gain(here, task, running, cpu) > 1;
        if preempts {
            preempt(here, cpu);
        }
        preempts
    }

    /// Moves `task` to another CPU's queue, if its lock is free and it is still worth it.
    fn push(&mut self, here: &mut Here<'_, '_>, task: TaskId, cpu: CpuId) -> bool {
        let lock = self.queues[cpu.index()].lock;
        if !here.context.try_lock(lock) {
            return false;
        }
        self.move_to(here, task, cpu);
        self.offer(here, task, cpu);
        here.context.unlock(lock);
        match is_idle(here.context, cpu) {
            true => wake(here, cpu),
            false => preempt(here, cpu),
        }
        true
    }
}

/// How good the task on a busy CPU is against one of `goodness`, without bonuses but for the one of
/// its own CPU; `None` if it is not worth asking.
fn rank_of_busy(current: i32, own: bool, goodness: i32) -> Option<i32> {
    let rank = match own {
        true => current,
        false => current + AFFINITY,
    };
    (rank < goodness - 1).then_some(rank)
}

impl Queues for QueuePerCpu {
    fn new(attach: &mut Attach<'_>, _: &Chosen) -> QueuePerCpu {
        let line = Bytes(attach.line());
        let queue = |attach: &mut Attach<'_>| {
            let line = attach.data(line);
            Queue {
                lock: attach.lock_at("mq_lock", line),
                line,
                premature_idle: false,
            }
        };
        let queues: Vec<Queue> = (0..attach.cpus()).map(|_| queue(attach)).collect();
        let heads = queues.iter().map(|queue| queue.line).collect();
        QueuePerCpu {
            offers: vec![Offer::NONE; queues.len()],
            current: vec![IDLE; queues.len()],
            queues,
            lists: Lists::new(heads),
            queue_of: Vec::new(),
        }
    }

    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.queues[cpu.index()].lock
    }

    fn admit(&mut self, task: TaskId) {
        self.lists.admit(task);
        let known = self.queue_of.len().max(task.index() + 1);
        self.queue_of.resize(known, CpuId(0));
    }

    fn enqueue(&mut self, here: &mut Here<'_, '_>, task: TaskId, cpu: CpuId) {
        self.lists.add_first(here, cpu.index(), task);
        self.queue_of[task.index()] = cpu;
    }

    fn dequeue(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        self.lists.remove(here, task);
    }

    fn pick_next(&mut self, here: &mut Here<'_, '_>, prev: Option<TaskId>) -> Pick {
        let cpu = here.context.cpu();
        let mut best = (IDLE, None);
        if let Some(prev) = may_go_on(here.context, prev) {
            if here.common.slices.renew_round_robin(here.context, prev) {
                // Last in the queue, the walk gives its equals their turn.
                self.lists.remove(here, prev);
                self.lists.add_last(here, cpu.index(), prev);
            } else {
                best = (
                    here.common.candidate(here.context, prev, cpu).goodness(),
                    Some(prev),
                );
            }
        }
        let scan = self.scan(here, Scan::new(best));
        let (taken, busy) = self.take_from_others(here, scan.against_others());
        let (weight, next) = match taken {
            Some((goodness, task)) => (goodness, Some(task)),
            None => scan.best,
        };
        if next.is_none() && busy {
            self.queues[cpu.index()].premature_idle = true;
            self.publish(here.context, cpu, Offer::NONE);
            return Pick::Retry;
        }
        if weight == 0 {
            return Pick::Retry;
        }
        self.publish(here.context, cpu, scan.offer_without(next));
        self.current[cpu.index()] = match next {
            Some(next) => here.common.slices.without_bonuses(here.context, next),
            None => IDLE,
        };
        next.map_or(Pick::Idle, Pick::Task)
    }

    /// A task that stays in the queue of its CPU may be the best that this has to offer.
    fn find_cpu(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        let home = self.queue_of[task.index()];
        self.place(here, task, home);
        if self.queue_of[task.index()] == home {
            self.offer(here, task, home);
        }
    }

    /// A preempted task is pushed like a woken one, but offered only by the next local scan.
    fn put_prev(&mut self, here: &mut Here<'_, '_>, prev: TaskId) {
        self.place(here, prev, self.queue_of[prev.index()]);
    }

    fn unlocked(&mut self, here: &mut Here<'_, '_>) {
        let cpu = here.context.cpu().index();
        match std::mem::take(&mut self.queues[cpu].premature_idle) {
            // However little a scan costs, time must pass: two CPUs that hold what the other one
            // tries would scan again at the same point of time without end.
            true => here.context.compute(Cycles(1)),
            false => here.recalculate(),
        }
    }

    /// Tasks that were pushed here never ran here, so that nobody else knows of them.
    fn vacate(&mut self, here: &mut Here<'_, '_>, cpu: CpuId) {
        let mut waiting = Vec::new();
        let mut next = self.lists.first(cpu.index());
        while let Some(task) = next {
            next = self.lists.after(task);
            waiting.extend(Some(task).filter(|task| here.context.task(*task).on_cpu().is_none()));
        }
        for task in waiting {
            self.find_cpu(here, task);
        }
    }

    fn ticked(&mut self, here: &mut Here<'_, '_>, running: Option<TaskId>) {
        if let Some(running) = running {
            let current = here.common.slices.without_bonuses(here.context, running);
            self.current[here.context.cpu().index()] = current;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(1);
    const B: TaskId = TaskId(2);

    /// Decision case 19 of the coloring paper's specification: a local best of 27 counts 42 against
    /// other queues, and only more than that is worth a lock.
    #[test]
    fn the_bonus_for_having_run_here_comes_on_top_of_the_local_best() {
        let mut scan = Scan::new((IDLE, None));
        scan.see(A, 27, 26);
        assert_eq!(scan.best, (27, Some(A)));
        assert_eq!(scan.against_others(), 42);
        // Nobody with ticks left here: any offer above 0 is better, one of 0 is not.
        let mut used_up = Scan::new((IDLE, None));
        used_up.see(A, 0, 0);
        assert_eq!(used_up.against_others(), 0);
    }

    /// Decision case 20: a runnable prev with 6 ticks counts 42 against a local 27, and 57 against
    /// other queues' offers.
    #[test]
    fn a_runnable_prev_gets_its_bonus_twice() {
        let mut scan = Scan::new((42, Some(B)));
        scan.see(A, 27, 26);
        assert_eq!(scan.best, (42, Some(B)));
        assert_eq!(scan.against_others(), 57);
    }

    /// Decision case 20: a queue whose chosen task was its only one offers nothing.
    #[test]
    fn what_is_chosen_is_not_offered() {
        let mut scan = Scan::new((IDLE, None));
        scan.see(A, 27, 26);
        assert_eq!(scan.offer_without(Some(A)).goodness, -10_000);
        assert_eq!(scan.offer_without(None).task, Some(A));
        scan.see(B, 26, 26);
        assert_eq!(scan.offer_without(Some(A)).task, Some(B));
        assert_eq!(
            scan.offer_without(Some(B)).task,
            Some(A),
            "the first of equals"
        );
    }

    /// Decision case 21: a woken task of 26 looks at its own CPU if that runs less than 25, at
    /// another if that and 15 is less.
    #[test]
    fn which_cpus_a_woken_task_considers() {
        let table = [
            (24, true, Some(24)),
            (25, true, None),
            (9, false, Some(24)),
            (10, false, None),
            (0, false, Some(15)),
        ];
        for (current, own, expected) in table {
            assert_eq!(rank_of_busy(current, own, 26), expected, "{current} {own}");
        }
    }
}
