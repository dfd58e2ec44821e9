//! The compiled scheduler and the native program side by side, as one scheduler of the laboratory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;

use warmq_decide::Policy;
use warmq_kernel::{
    Attach, Callback, Context, Fragment, GroupId, Locks, Pick, Scheduler, View, WakeContext, Why,
    group_weight_of_nice,
};
use warmq_native::{Birth, Cpus, Kicks, Machine, Program, Waker};
use warmq_units::{CpuId, Instant, LockId, TaskId};

pub struct Pair {
    compiled: Box<dyn Scheduler>,
    program: Program,
    /// What the program asked for when the task was queued that wakes.
    asked: Kicks,
    /// The CPUs that were asked before.
    before: Cpus,
    /// By CPU, what the program has picked already where the compiled one looks once more.
    picked: Vec<Option<u32>>,
    /// The cgroups that the program knows, and the tasks' nice values and cgroups.
    cgroups: BTreeSet<usize>,
    tasks: BTreeMap<TaskId, (i8, GroupId)>,
    /// What happened last, for the message when they differ.
    events: VecDeque<String>,
}

fn machine(attach: &Attach<'_>, place_is_cpu: bool) -> Machine {
    let cpus = || (0..attach.cpus()).map(CpuId);
    Machine {
        domain_of: cpus().map(|cpu| attach.place(cpu).llc.into()).collect(),
        core_of: cpus().map(|cpu| attach.place(cpu).core.into()).collect(),
        place_is_cpu,
        node_of: cpus().map(|cpu| attach.node(cpu).into()).collect(),
        ..Machine::default()
    }
}

/// When runs begin, by the programs' clock, in ns: as in lab/sched-ext (`UP`).
const BOOTED: u64 = 100_000_000_000;

/// ns, by the program's clock.
fn now(context: &Context<'_>) -> u64 {
    BOOTED + context.now().since(Instant::START).as_ns()
}

fn here(context: &Context<'_>) -> u32 {
    context.cpu().0.into()
}

/// The CPUs that will reschedule, as a mask.
fn rescheduling(context: &Context<'_>) -> Cpus {
    let cpus = (0..context.cpus()).filter(|cpu| context.will_reschedule(CpuId(*cpu)));
    Cpus::from(cpus.fold(0, |mask, cpu| mask | 1 << cpu))
}

fn allowed(context: &Context<'_>, view: View<'_>) -> u64 {
    let cpus = (0..context.cpus()).filter(|cpu| view.may_run_on(CpuId(*cpu)));
    cpus.fold(0, |mask, cpu| mask | 1 << cpu)
}

/// The waker, and whether it is about to sleep.
fn waker(why: Why) -> (Waker, bool) {
    match why {
        Why::Fork => (Waker::Fork, false),
        Why::Wakeup(wakeup) => match wakeup
            .current
            .filter(|_| wakeup.context == WakeContext::Task)
        {
            Some(task) => (Waker::Task(task.0), wakeup.sync),
            None => (Waker::Interrupt, wakeup.sync),
        },
    }
}

impl Pair {
    pub fn new(attach: &Attach<'_>, place_is_cpu: bool, compiled: Box<dyn Scheduler>) -> Pair {
        Pair {
            compiled,
            program: Program::load(&machine(attach, place_is_cpu), Policy::default()),
            asked: Kicks::default(),
            before: Cpus::default(),
            picked: vec![None; attach.cpus().into()],
            cgroups: BTreeSet::from([GroupId::ROOT.index()]),
            tasks: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    fn note(&mut self, context: &Context<'_>, what: std::fmt::Arguments<'_>) {
        if self.events.len() == 40 {
            self.events.pop_front();
        }
        let (at, cpu) = (context.now(), context.cpu());
        self.events.push_back(format!("{at} {cpu}: {what}"));
    }

    /// Both decided, the compiled one and the program.
    fn must_agree<T: PartialEq + Debug>(&self, compiled: T, native: T) {
        if compiled != native {
            let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
            panic!(
                "the compiled one says {compiled:?}, the native one {native:?}, last of\n{}",
                events.join("\n")
            );
        }
    }

    /// The number of a cgroup, which is made known to the program with those that it is in.
    fn cgroup(&mut self, context: &Context<'_>, group: GroupId) -> u32 {
        let number = group.index() as u32;
        if self.cgroups.insert(group.index()) {
            let (parent, weight) = (context.group(group).parent, context.group(group).weight);
            let parent = self.cgroup(context, parent.unwrap_or(GroupId::ROOT));
            self.program.make_cgroup(number, parent, weight);
        }
        number
    }

    /// A task was changed: both must ask the same CPUs to reschedule, besides that where it runs.
    fn must_kick_alike(&mut self, context: &Context<'_>, task: TaskId, before: Cpus, asked: Kicks) {
        let own = context.task(task).on_cpu().map_or(0, |cpu| 1 << cpu.0);
        let own = Cpus::from(own);
        self.note(context, format_args!("for {task}, changed: {asked:?}"));
        let native = (asked.idle | asked.preempted) & !before & !own;
        self.must_agree(rescheduling(context) & !before & !own, native);
    }
}

impl Scheduler for Pair {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.compiled.lock_for(cpu)
    }

    /// None: where nothing takes time nobody waits for a lock, and the program has none of its own.
    fn locks(&self, _: Callback<'_>, _: CpuId) -> Locks {
        Locks::None
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.compiled.fork(context, parent, child);
        let view = context.task(child);
        let weight = group_weight_of_nice(view.nice());
        let allowed = allowed(context, view);
        let cpu = view.last_cpu().0.into();
        let (nice, group) = (view.nice(), view.group());
        self.tasks.insert(child, (nice, group));
        let birth = Birth {
            parent: parent.map(|parent| parent.0),
            weight,
            allowed,
            cgroup: self.cgroup(context, group),
        };
        self.program.fork(child.0, birth, cpu, now(context));
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        let prev = context.task(task).last_cpu().0.into();
        let compiled = self.compiled.select_cpu(context, task, why);
        let cpus = (here(context), prev);
        let native = self.program.select(task.0, cpus, waker(why), now(context));
        self.note(
            context,
            format_args!("a CPU for {task}, last on {prev}: {why:?}"),
        );
        self.must_agree(u32::from(compiled.0), native);
        compiled
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.before = rescheduling(context);
        self.note(context, format_args!("{task} is queued on {cpu}"));
        self.compiled.enqueue(context, task, cpu, why);
        let (waker, _) = waker(why);
        let cpus = (here(context), cpu.0.into());
        self.asked = self.program.enqueue(task.0, cpus, waker, now(context));
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.compiled.wakeup_preempt(context, task, cpu, why);
        let compiled = rescheduling(context) & !self.before;
        let native = (self.asked.idle | self.asked.preempted) & !self.before;
        let asked = self.asked;
        self.note(
            context,
            format_args!("for {task}, {cpu} or another: {asked:?}"),
        );
        self.must_agree(compiled, native);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.compiled.dequeue(context, task);
        let exits = context.task(task).has_exited();
        self.note(context, format_args!("{task} sleeps"));
        self.program
            .sleep(task.0, here(context), exits, now(context));
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let before = rescheduling(context);
        let awake = prev.filter(|prev| context.task(*prev).is_runnable());
        let forbidden = |task: &TaskId| !context.task(*task).may_run_on(context.cpu());
        if let Some(task) = awake.filter(forbidden) {
            self.note(context, format_args!("{task} is moved elsewhere"));
            self.program.migrate(here(context), now(context));
        }
        let pick = self.compiled.pick_next(context, prev);
        let once_more = self.picked[context.cpu().index()].take();
        let native = match once_more {
            Some(picked) => Some(picked),
            None => self.program.pick(here(context), now(context)),
        };
        let compiled = match pick {
            Pick::Task(task) => Some(task.0),
            Pick::Idle | Pick::Retry => None,
        };
        let kicks = self.program.kicks();
        self.note(
            context,
            format_args!("picks {native:?} after {prev:?}, {kicks:?}"),
        );
        let own = Cpus::from(1 << here(context));
        // It asked itself to look once more, which the program beside it has done already.
        if compiled.is_none() && native.is_some() && context.will_reschedule(context.cpu()) {
            self.picked[context.cpu().index()] = native;
            return pick;
        }
        self.must_agree(compiled, native);
        let before = before | own;
        let native = (kicks.idle | kicks.preempted) & !before;
        self.must_agree(rescheduling(context) & !before, native);
        pick
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.compiled.unlocked(context);
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.compiled.wants_put_prev(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.compiled.put_prev(context, prev);
    }

    /// The balance timer is the only one, without quotas.
    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        let before = rescheduling(context);
        self.compiled.timer(context, token);
        let kicks = self.program.timer(here(context), now(context));
        self.note(context, format_args!("the balance timer: {kicks:?}"));
        let native = (kicks.idle | kicks.preempted) & !before;
        self.must_agree(rescheduling(context) & !before, native);
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.compiled.tick(context, running);
        if running.is_none() {
            return;
        }
        let compiled = context.will_reschedule(context.cpu());
        let native = self.program.tick(here(context), now(context));
        self.note(
            context,
            format_args!("a tick of {running:?}: it gives way: {native}"),
        );
        self.must_agree(compiled, native);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.note(context, format_args!("{task} yields"));
        self.program.yield_task(here(context), now(context));
        self.compiled.yield_task(context, task)
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        let before = rescheduling(context);
        self.compiled.set_weight(context, task);
        let view = context.task(task);
        let (nice, group) = (view.nice(), view.group());
        let was = self.tasks.insert(task, (nice, group));
        let was = was.expect("every task is forked");
        let (here, now) = (here(context), now(context));
        if was.0 != nice {
            self.note(context, format_args!("{task} gets nice {nice}"));
            let weight = group_weight_of_nice(nice);
            let asked = self.program.set_weight(task.0, here, weight, now);
            self.must_kick_alike(context, task, before, asked);
        }
        if was.1 != group {
            self.note(context, format_args!("{task} moves to {group:?}"));
            let cgroups = (self.cgroup(context, was.1), self.cgroup(context, group));
            let asked = self.program.move_to_cgroup(task.0, here, cgroups, now);
            self.must_kick_alike(context, task, before, asked);
        }
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        let before = rescheduling(context);
        self.compiled.set_cpumask(context, task);
        let allowed = allowed(context, context.task(task));
        self.note(context, format_args!("{task} may run on {allowed:#b}"));
        let (here, now) = (here(context), now(context));
        let asked = self.program.set_cpumask(task.0, here, allowed, now);
        self.must_kick_alike(context, task, before, asked);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.compiled.set_group_weight(context, group);
        let weight = context.group(group).weight;
        self.note(context, format_args!("{group:?} weighs {weight}"));
        let number = self.cgroup(context, group);
        self.program.set_cgroup_weight(number, weight);
    }

    fn set_fragment(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        let hint = fragment.map_or(0, |fragment| {
            (u64::from(fragment.app) << 32 | u64::from(fragment.number)) + 1
        });
        self.note(context, format_args!("{task} names {fragment:?}"));
        let native = self.program.hint(here(context), hint, now(context));
        self.compiled.set_fragment(context, task, fragment);
        self.must_agree(context.will_reschedule(context.cpu()), native);
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.compiled.exit(context, task);
        self.program.exit(task.0, here(context), now(context));
    }
}
