//! One pass over the records of a trace.

use warmq_trace::{
    Board, Cause, Comm, Context, Doing, Ended, Groups, Header, Observer, Policy, Record, State,
    Stretch, Table, Who,
};
use warmq_units::{CpuId, Duration, Instant, TaskId};

use crate::cpu::{Cpus, Waker};
use crate::loops;
use crate::missing::Missing;
use crate::row::{Kind, Moment};
use crate::taken::Taken;
use crate::task::{Birth, Task};

/// More moments than these are not kept, of all tasks together: some 400 MB.
const MOST: u64 = 16_000_000;

/// Takes what a trace recorded.
#[derive(Debug, Default)]
pub struct Taker {
    header: Header,
    board: Board,
    /// What ended by the record that is looked at.
    ended: Vec<Ended>,
    tasks: Table<TaskId, Task>,
    cpus: Cpus,
    groups: Groups,
    missing: Missing,
    from: Instant,
    until: Instant,
    last: Instant,
    began: bool,
    moments: u64,
    full: Option<Instant>,
}

impl Taker {
    /// Takes what happens from `from` to `until` in a trace of this header.
    pub fn new(header: &Header, from: Instant, until: Instant) -> Taker {
        Taker {
            header: header.clone(),
            board: Board::of_a_recording(),
            from,
            until,
            last: from,
            ..Taker::default()
        }
    }

    /// All that was taken.
    pub fn finish(mut self) -> Taken {
        let end = self
            .full
            .unwrap_or(self.last.min(self.until))
            .max(self.from);
        self.begin();
        let all: Vec<TaskId> = self.tasks.iter().map(|(id, _)| id).collect();
        for id in all {
            self.advance(end, id);
            let task = self.tasks.touch(id);
            finish(task, self.board.doing(id), (self.from, end));
            // One whose name was recorded only after it had woken others stays, for they wait for
            // it.
            if task.is_stopper() && !task.row.wakes_others() {
                self.missing.stoppers += 1;
                task.row.moments.clear();
            }
        }
        loops::close(&mut self.tasks);
        let cpus = self.cpus.count().max(self.header.places.len());
        self.missing.changes = self.tasks.iter().map(|(_, task)| task.who.changes).sum();
        Taken {
            header: self.header,
            tasks: self.tasks,
            groups: self.groups,
            missing: self.missing,
            cpus,
            from: self.from,
            until: end,
            full: self.full.is_some(),
        }
    }

    /// The time begins from which on is taken.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.began, true) {
            return;
        }
        let from = self.from;
        for task in self.tasks.values_mut() {
            task.row = Default::default();
            task.timer = Some(from);
            task.arrivals.clear();
            task.wants_since = Some(from);
            task.counted = from;
        }
    }

    fn push(&mut self, at: Instant, task: TaskId, moment: Moment) {
        if !self.began {
            return;
        }
        self.moments += 1;
        if self.moments > MOST {
            self.full.get_or_insert(at);
        }
        self.advance(at, task);
        let task = self.tasks.touch(task);
        task.wants_since = Some(at);
        task.row.push(moment);
    }

    /// What `id` has run until now is taken into its row.
    fn advance(&mut self, at: Instant, id: TaskId) {
        if let Doing::Runs(_) = self.board.doing(id) {
            let since = self.board.since(id);
            self.tasks.touch(id).ran(since, at);
        }
    }

    /// Takes in what ended; `first` if by the first switch of a CPU.
    fn take(&mut self, ended: &Ended, first: bool) {
        let Stretch::Task { task, did, then } = ended.stretch else {
            return;
        };
        match did {
            Doing::Runs(_) => self.tasks.touch(task).ran(ended.from, ended.to),
            // Who ran before the first switch has run from the beginning.
            Doing::Unknown if first && !seen(ended) && !matches!(then, Doing::Runs(_)) => {
                let from = self.from;
                let task = self.tasks.touch(task);
                task.ran(from, ended.to);
                task.wants_since = Some(from);
            }
            _ => {}
        }
        match then {
            Doing::Runs(_) => self.runs(ended, task, did),
            Doing::Exited => self.tasks.touch(task).row.flush(),
            _ => {}
        }
    }

    /// `id` runs from now on.
    fn runs(&mut self, ended: &Ended, id: TaskId, did: Doing) {
        let at = ended.to;
        let task = self.tasks.touch(id);
        let woken = task.wants_since.is_some_and(|since| since >= ended.from);
        let slept = match (did, task.birth.take()) {
            // Whoever runs was woken, though no record says so. Of one that left unseen nobody
            // knows whether it slept: as if it did.
            (Doing::Sleeps, None) => true,
            (Doing::Unknown, None) => seen(ended) && !woken,
            _ => false,
        };
        match slept && self.began {
            true => self.push(at, id, Moment::Sleep(ended.since(self.from))),
            false => {
                self.tasks.touch(id).wants_since.get_or_insert(at);
            }
        }
        self.tasks.touch(id).counted = at;
    }

    fn waking(&mut self, cpu: CpuId, task: TaskId, waker: Option<TaskId>, context: Context) {
        self.tasks.touch(task).waking = Some(self.cpus.get(cpu).waker(waker, context));
    }

    /// `id` is woken on `cpu`; the board does not know it yet.
    fn wakeup(&mut self, at: Instant, cpu: CpuId, id: TaskId) {
        let now = self
            .cpus
            .get(cpu)
            .waker(self.board.running(cpu), Context::Unknown);
        let (doing, since) = (self.board.doing(id), self.board.since(id).max(self.from));
        let block = self.board.block(id);
        let task = self.tasks.touch(id);
        let by = task.waking.take().unwrap_or(now);
        let birth = task.birth.take();
        let cause = block.map_or((Cause::Unknown, None), |block| (block.cause, block.object));
        let (since, cause) = match (doing, birth) {
            (_, Some(Birth::First)) => {
                task.wants_since = Some(at);
                return;
            }
            (Doing::Sleeps, None) => (since, cause),
            (Doing::Exited, _) => (since, (Cause::Unknown, None)),
            (_, Some(Birth::Forked)) => (self.from, (Cause::Unknown, None)),
            (Doing::Unknown, None) => (since, (Cause::Unknown, None)),
            (Doing::Runs(_) | Doing::Waits(_) | Doing::Throttled, None) => return,
        };
        if self.began {
            self.woken(at, id, (by, since, cause), cpu);
        }
    }

    /// `id` was woken, having slept since then for this cause.
    fn woken(
        &mut self,
        at: Instant,
        id: TaskId,
        (by, since, (cause, object)): (Waker, Instant, (Cause, Option<u32>)),
        cpu: CpuId,
    ) {
        if self.is_stopper(id) {
            return;
        }
        let slept = at.since(since);
        match by {
            Waker::Task(waker) if waker != id && !self.is_stopper(waker) => {
                let kind = Kind::of(cause, object);
                self.push(at, waker, Moment::Post(id, kind));
                self.push(at, id, Moment::Await(kind, Some(waker)));
            }
            Waker::Network => {
                self.cpus.get(cpu).packets.pop();
                self.push(at, id, Moment::Await(Kind::Outside, None));
                self.arrives(at, id, cpu);
            }
            Waker::Timer => self.expires(at, id, slept),
            _ if cause == Cause::Timer => self.expires(at, id, slept),
            Waker::Device => {
                self.missing.devices += 1;
                self.push(at, id, Moment::Sleep(slept));
            }
            Waker::Task(_) | Waker::Unknown => {
                self.missing.unknown += 1;
                self.push(at, id, Moment::Sleep(slept));
            }
        }
    }

    fn expires(&mut self, at: Instant, id: TaskId, slept: Duration) {
        let last = self.tasks.touch(id).timer.replace(at);
        let since = at.since(last.unwrap_or(self.from));
        self.push(at, id, Moment::Timer { slept, since });
    }

    /// A datagram came for `id` from outside.
    fn arrives(&mut self, at: Instant, id: TaskId, cpu: CpuId) {
        let task = self.tasks.touch(id);
        task.arrivals.push(at);
        let before = task.arrives_on.replace(cpu.index());
        task.arrives_everywhere |= before.is_some_and(|before| before != cpu.index());
    }

    fn is_stopper(&self, id: TaskId) -> bool {
        let task = self.tasks.get(id);
        task.is_some_and(Task::is_stopper)
    }

    /// A softirq ends: packets that woke nobody were for somebody who was awake.
    fn polled(&mut self, cpu: CpuId) {
        let packets = std::mem::take(&mut self.cpus.get(cpu).packets);
        if !self.began || packets.is_empty() {
            return;
        }
        let Some(receiver) = self.only_receiver() else {
            self.missing.packets += packets.len() as u64;
            return;
        };
        for at in packets {
            self.arrives(at, receiver, cpu);
            self.tasks.touch(receiver).row.more += 1;
        }
    }

    /// The task that receives from outside, if there is one only, and the trace is of a scenario:
    /// on a machine at large many a packet is for nobody.
    fn only_receiver(&self) -> Option<TaskId> {
        if self.header.names.tasks.is_empty() {
            return None;
        }
        let mut all = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.arrivals.is_empty());
        let (first, _) = all.next()?;
        all.next().is_none().then_some(first)
    }

    fn fork(&mut self, parent: Option<TaskId>, child: TaskId, comm: Comm) {
        let before = parent.and_then(|parent| self.tasks.get(parent));
        let who = Who::of_child(before.map(|parent| &parent.who), comm);
        self.missing.forks += u64::from(self.began && parent.is_some());
        let from = self.from;
        let task = self.tasks.touch(child);
        task.who = who;
        task.timer = Some(from);
        task.birth = Some(match parent {
            None => Birth::First,
            Some(_) => Birth::Forked,
        });
    }

    /// What is said of tasks and groups, and not done by them.
    fn learn(&mut self, record: &Record) {
        self.groups.learn(record);
        match *record {
            Record::Throttled { span, .. } => self.missing.throttled += span,
            Record::Steal { span, .. } if self.began => self.missing.stolen += span,
            Record::Hotplug { .. } => self.missing.hotplug += 1,
            Record::Policy {
                policy: Policy::Deadline,
                ..
            } => self.missing.deadlines += 1,
            _ => {}
        }
        if let Some(task) = Who::described(record) {
            self.tasks.touch(task).who.learn(record);
        }
    }

    /// What says how records beside it are to be understood.
    fn understand(&mut self, at: Instant, record: &Record) {
        match *record {
            Record::Block {
                state: State::Runnable,
                ..
            } => self.missing.holds += u64::from(self.began),
            Record::InterruptEnter { cpu, interrupt } => self.cpus.get(cpu).enters(at, interrupt),
            Record::InterruptExit { cpu, interrupt } => {
                self.cpus.get(cpu).exits(at, interrupt);
                if interrupt.is_softirq() {
                    self.polled(cpu);
                }
            }
            Record::Packet { cpu, .. } => {
                let here = self.cpus.get(cpu);
                if here.receives_from_outside() {
                    here.packets.push(at);
                }
            }
            Record::Lost { events: 1, .. } => self.missing.inferred += 1,
            Record::Lost { events, .. } => self.missing.lost += events.max(1),
            _ => self.learn(record),
        }
    }
}

impl Observer for Taker {
    fn see(&mut self, at: Instant, record: &Record) {
        if at > self.until || self.full.is_some() {
            return;
        }
        if at >= self.from {
            self.begin();
            self.last = self.last.max(at);
        }
        let mut first = false;
        match *record {
            Record::Switch { cpu, next, .. } => first = self.cpus.get(cpu).switches(next),
            Record::Waking {
                cpu,
                waker,
                task,
                context,
                ..
            } => self.waking(cpu, task, waker, context),
            Record::Wakeup { waker, task, .. } => self.wakeup(at, waker, task),
            Record::Fork {
                parent,
                child,
                comm,
            } => self.fork(parent, child, comm),
            Record::Exit { .. } => self.missing.exits += u64::from(self.began),
            _ => self.understand(at, record),
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.extend_from_slice(self.board.see(at, record));
        ended.drain(..).for_each(|ended| self.take(&ended, first));
        self.ended = ended;
    }
}

/// Whether a record named the task before.
fn seen(ended: &Ended) -> bool {
    ended.from > Instant::START
}

/// Ends the row of a task when the recording ends.
fn finish(task: &mut Task, doing: Doing, (from, end): (Instant, Instant)) {
    task.rests = true;
    if let Doing::Runs(_) | Doing::Waits(_) | Doing::Throttled = doing {
        // What it computes is not over: it may take as long as it has wanted a CPU.
        let since = task.wants_since.unwrap_or(from).max(from);
        task.row.unfinished(end.since(since));
        // Nobody repeats without end what takes no time.
        task.rests = !task.row.takes_time();
    }
    task.row.flush();
}
