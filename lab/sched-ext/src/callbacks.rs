//! The kernel's part of sched_ext as a scheduler of the lab.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use warmq_bpf_run::{Ending, Guest, Program, Shape};
use warmq_kernel::{
    Attach, Callback, Context, Fragment, GroupId, Locks, Pick, Scheduler, UnknownCost, Why,
};
use warmq_units::{Bytes, CpuId, Cycles, Duration, Instant, LockId, TaskId};

use crate::call::{self, Code};
use crate::idle::Idle;
use crate::kfuncs;
use crate::layout;
use crate::lines::Lines;
use crate::load::Loaded;
use crate::masks;
use crate::profile::{Hint, Run};
use crate::queue::Queue;
use crate::run_queue::{Callbacks, Machine};
use crate::state::{Costs, Cpu, During, Layouts, State};
use crate::variables::Variables;
use crate::words::{BATCH_DEFAULT, Enq, TIMEOUT_DEFAULT, flags, ops, wake};

/// What the program's work takes, in cycles.
#[derive(Clone, Copy, Debug)]
pub struct Expenses {
    /// Of 100 instructions.
    pub instructions: u64,
    /// Of a call of a kfunc, besides the lines that it touches.
    pub kfunc: u64,
    /// Of a call of a helper.
    pub helper: u64,
    /// Of a callback: the call, and what sched_ext does around it.
    pub callback: u64,
}

/// Why an object cannot be attached to a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAttached {
    /// The machine has no such cost.
    #[error("{0}")]
    Cost(UnknownCost),
    /// Its memory does not fit.
    #[error("{0}")]
    Memory(Ending),
}

impl From<Ending> for NotAttached {
    fn from(ending: Ending) -> NotAttached {
        NotAttached::Memory(ending)
    }
}

/// A compiled scheduler that is attached to a machine.
pub struct SchedExt {
    machine: Machine,
    /// `ops.init` has run.
    begun: bool,
    runs: Vec<Run>,
    hint: Option<Hint>,
    /// The longest that a task may wait (`timeout_ms`), and when that was last looked at.
    timeout: Duration,
    watched: Instant,
}

/// Bytes of maps and objects at most.
pub(crate) const MEMORY: u64 = 2 << 30;

impl SchedExt {
    /// Attaches an object. `ops.init` runs when the first task is forked. `seed` is that of
    /// `bpf_get_prandom_u32()`.
    ///
    /// # Errors
    /// If the machine lacks a cost, or the program's memory does not fit.
    pub fn attach(
        loaded: &Loaded,
        attach: &mut Attach<'_>,
        expenses: Expenses,
        seed: u64,
    ) -> Result<SchedExt, NotAttached> {
        let image = loaded.image.clone();
        let shape = Shape {
            memory: MEMORY,
            ..Shape::of(attach.cpus().into())
        };
        let mut guest = Guest::new(image.clone(), shape)?;
        let found = image.ops.clone().unwrap_or_default();
        let callbacks = callbacks(&found.callbacks);
        let number = |name: &str| found.numbers.get(name).copied().unwrap_or(0);
        let state = state(loaded, attach, &mut guest, expenses, seed, &found)?;
        let code = Code {
            program: Arc::new(Program::new(&guest)),
            table: call::table(&image.kfuncs),
        };
        let timeout = match number("timeout_ms") {
            0 => TIMEOUT_DEFAULT,
            ms => ms.min(TIMEOUT_DEFAULT),
        };
        Ok(SchedExt {
            machine: Machine {
                code,
                guest,
                state,
                callbacks,
            },
            begun: false,
            runs: loaded.runs.clone(),
            hint: loaded.hint.clone(),
            timeout: Duration::from_ms(timeout),
            watched: Instant::START,
        })
    }

    /// Why the program was ejected, if it was.
    pub fn ejected(&self) -> Option<&str> {
        self.machine.state.ejected.as_deref()
    }

    /// Runs what runs before the first task: `ops.init`, and the callbacks of cgroups.
    fn begin(&mut self, context: &mut Context<'_>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let machine = &mut self.machine;
        let code = machine.code.clone();
        self.loader_runs(context, false);
        let machine = &mut self.machine;
        let init = machine.callbacks.init;
        let returned = machine.here(context).call_for_free(&code, init, &[]);
        if let Some(error) = returned
            .map(|value| value as i32)
            .filter(|value| *value < 0)
        {
            let text = format!("ops.init() failed ({error})");
            machine.here(context).eject(text);
        }
        machine.here(context).send_kicks();
        machine.know(context, GroupId::ROOT);
        self.loader_runs(context, true);
    }

    /// Runs the programs that the loader runs, in no time.
    fn loader_runs(&mut self, context: &mut Context<'_>, after: bool) {
        for run in self.runs.clone() {
            if run.after == after {
                self.loader_run(context, &run);
            }
        }
    }

    fn loader_run(&mut self, context: &mut Context<'_>, run: &Run) {
        let machine = &mut self.machine;
        let code = machine.code.clone();
        let program = code.program.image().program(&run.program);
        let function = program.map(|program| program.function);
        let size = run.argument.len() as u64;
        let (Some(function), Ok(argument)) = (function, machine.guest.allocate(size)) else {
            let text = format!("its loader runs {}, which is not there", run.program);
            return machine.here(context).eject(text);
        };
        if let Some(bytes) = machine.guest.bytes_mut(argument, size) {
            bytes.copy_from_slice(&run.argument);
        }
        let mut here = machine.here(context);
        here.call_syscall(&code, function, argument);
        machine.guest.free(argument, size);
    }

    /// Hands an ejection over to the lab, which ends the run.
    fn report(&self, context: &mut Context<'_>) {
        if let Some(why) = &self.machine.state.ejected {
            context.eject(why);
        }
    }

    /// What is to be done after callbacks: kicks, queues to enqueue again, an ejection.
    fn finish(&mut self, context: &mut Context<'_>) {
        self.machine.reenqueue(context);
        self.machine.here(context).send_kicks();
        self.report(context);
    }

    /// Ejects the program if a task has waited for longer than it allows
    /// (`check_rq_for_timeouts()`).
    fn watch(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        if now.since(self.watched).0 < self.timeout.0 / 2 {
            return;
        }
        self.watched = now;
        let tasks = self.machine.state.tasks.iter().enumerate();
        let waited = |since: Instant| now.since(since);
        let mut waits = tasks.filter_map(|(at, task)| Some((at, waited(task.waits_since?))));
        if let Some((at, waited)) = waits.find(|(_, waited)| *waited > self.timeout) {
            let text = format!(
                "task {at} failed to run for {}.{:03} s",
                waited.as_us() / 1_000_000,
                waited.as_us() / 1_000 % 1_000
            );
            self.machine.here(context).eject(text);
        }
    }
}

/// Period, quota and burst of a group in us, as `cgroup_set_bandwidth` gets them.
fn limits(context: &Context<'_>, group: GroupId) -> [u64; 3] {
    /// `RUNTIME_INF`
    const NONE: u64 = u64::MAX;
    let limits = context.group(group).limits;
    limits.map_or([100_000, NONE, 0], |limits| {
        let quota = limits.quota.as_us();
        [limits.period.as_us(), quota, limits.burst.as_us()]
    })
}

fn callbacks(named: &BTreeMap<String, u32>) -> Callbacks {
    let of = |name: &str| named.get(name).copied();
    Callbacks {
        select_cpu: of("select_cpu"),
        enqueue: of("enqueue"),
        dequeue: of("dequeue"),
        dispatch: of("dispatch"),
        tick: of("tick"),
        runnable: of("runnable"),
        running: of("running"),
        stopping: of("stopping"),
        quiescent: of("quiescent"),
        yields: of("yield"),
        set_weight: of("set_weight"),
        set_cpumask: of("set_cpumask"),
        update_idle: of("update_idle"),
        init_task: of("init_task"),
        exit_task: of("exit_task"),
        enable: of("enable"),
        disable: of("disable"),
        cgroup_init: of("cgroup_init"),
        cgroup_move: of("cgroup_move"),
        cgroup_set_weight: of("cgroup_set_weight"),
        cgroup_set_bandwidth: of("cgroup_set_bandwidth"),
        cpu_offline: of("cpu_offline"),
        cpu_online: of("cpu_online"),
        init: of("init"),
    }
}

fn state(
    loaded: &Loaded,
    attach: &mut Attach<'_>,
    guest: &mut Guest,
    expenses: Expenses,
    seed: u64,
    found: &warmq_bpf::StructOps,
) -> Result<State, NotAttached> {
    let kernel = &*loaded.kernel;
    let layouts = Layouts {
        task: layout::TaskFields::of(kernel),
        css_set: layout::CssSetFields::of(kernel),
        cgroup: layout::CgroupFields::of(kernel),
        node: layout::NodeFields::of(kernel),
        task_group: layout::TaskGroupFields::of(kernel),
        signal: layout::SignalFields::of(kernel),
        queue: layout::QueueFields::of(kernel),
        init_task: layout::InitTaskArgs::of(kernel),
        exit_task: layout::ExitTaskArgs::of(kernel),
        cgroup_init: layout::CgroupInitArgs::of(kernel),
        insert: layout::InsertArgs::of(kernel),
        select: layout::SelectArgs::of(kernel),
    };
    let number = |name: &str| found.numbers.get(name).copied().unwrap_or(0);
    let flags = number("flags") | loaded.flags;
    let updates = found.callbacks.contains_key("update_idle");
    let idle = Idle::new(attach, guest, flags, updates)?;
    let mut cpus = Vec::new();
    for cpu in (0..attach.cpus()).map(CpuId) {
        cpus.push(new_cpu(attach, guest, &layouts, cpu)?);
    }
    let nodes = 1 + cpus.iter().map(|cpu| cpu.node).max().unwrap_or(0);
    let globals: Result<Vec<Queue>, Ending> = (0..nodes)
        .map(|_| Ok(Queue::new(layouts.queue.allocate(guest)?)))
        .collect();
    let (possible, online) = (masks::allocate(guest)?, masks::allocate(guest)?);
    masks::write(guest, possible, None);
    masks::write(guest, online, None);
    Ok(State {
        layouts,
        enq: Enq::of(kernel),
        flags,
        tasks: Vec::new(),
        by_address: BTreeMap::new(),
        cpus,
        globals: globals?,
        users: BTreeMap::new(),
        groups: BTreeMap::new(),
        idle: Rc::new(idle),
        lines: Lines::new(attach.line()),
        costs: costs(attach, expenses).map_err(NotAttached::Cost)?,
        during: During::Other,
        batch: Vec::new(),
        most_batch: match number("dispatch_max_batch") {
            0 => BATCH_DEFAULT,
            most => most,
        },
        dispatched: 0,
        picking: None,
        leaving: Vec::new(),
        timers: BTreeMap::new(),
        walks: BTreeMap::new(),
        leaders: BTreeMap::new(),
        kicks: Vec::new(),
        reenqueue: Vec::new(),
        variables: Variables::new(attach, guest, kernel)?,
        cred: cred(kernel, guest)?,
        possible,
        online,
        random: seed | 1,
        ejected: None,
        paid: 0,
    })
}

/// The credentials of all tasks: root's, in the first user namespace.
fn cred(kernel: &warmq_bpf::KernelTable, guest: &mut Guest) -> Result<u64, Ending> {
    let fields = layout::CredFields::of(kernel);
    let cred = fields.allocate(guest)?;
    let namespace = layout::NamespaceFields::of(kernel).allocate(guest)?;
    fields.namespace.set(guest, cred, namespace);
    Ok(cred)
}

fn costs(attach: &Attach<'_>, expenses: Expenses) -> Result<Costs, UnknownCost> {
    Ok(Costs {
        instructions: expenses.instructions,
        kfunc: Cycles(expenses.kfunc),
        helper: Cycles(expenses.helper),
        callback: Cycles(expenses.callback),
        wakeup: attach.cost("wakeup")?,
        pick: attach.cost("schedule_fixed")?,
    })
}

fn new_cpu(
    attach: &mut Attach<'_>,
    guest: &mut Guest,
    layouts: &Layouts,
    cpu: CpuId,
) -> Result<Cpu, Ending> {
    let word = attach.data(Bytes(attach.line()));
    let idle_task = layouts.task.allocate(guest)?;
    let kind = flags::IDLE | flags::KTHREAD;
    layouts.task.flags.set(guest, idle_task, kind);
    layouts.task.cpu.set(guest, idle_task, cpu.0.into());
    let comm = format!("swapper/{}", cpu.0);
    layouts.task.comm.set_text(guest, idle_task, &comm);
    Ok(Cpu {
        lock: attach.lock_at("run queue", word),
        word,
        node: attach.node(cpu),
        local: Queue::new(layouts.queue.allocate(guest)?),
        current: None,
        exec_start: Instant::START,
        known_idle: false,
        idle_task,
        turn: 0,
    })
}

impl Machine {
    /// Makes a group known to the program, and those that it is in.
    pub(crate) fn know(&mut self, context: &mut Context<'_>, group: GroupId) -> GroupId {
        let group = self.here(context).visible(group);
        let new = match self.here(context).know_group(group) {
            Ok(new) => new,
            Err(ending) => {
                self.here(context).eject(ending.to_string());
                return group;
            }
        };
        for group in new {
            self.init_group(context, group);
        }
        group
    }

    fn init_group(&mut self, context: &mut Context<'_>, group: GroupId) {
        let (Some(init), Some(known)) = (
            self.callbacks.cgroup_init,
            self.state.groups.get(&group).copied(),
        ) else {
            return;
        };
        let fields = self.state.layouts.cgroup_init;
        let Ok(args) = fields.allocate(&mut self.guest) else {
            return;
        };
        fields
            .weight
            .set(&mut self.guest, args, known.weight.into());
        let limits = limits(context, group);
        let [period, quota, burst] = limits;
        if let Some(known) = self.state.groups.get_mut(&group) {
            known.limits = limits;
        }
        fields.period.set(&mut self.guest, args, period);
        fields.quota.set(&mut self.guest, args, quota);
        fields.burst.set(&mut self.guest, args, burst);
        let code = self.code.clone();
        let mut here = self.here(context);
        here.call_for_free(&code, Some(init), &[known.address, args]);
        self.guest.free(args, fields.size);
    }

    /// A task is in a group from now on.
    fn join(&mut self, context: &mut Context<'_>, task: TaskId) -> Option<GroupId> {
        let group = context.task(task).group();
        let group = self.know(context, group);
        let before = self.state.task_mut(task).group.replace(group);
        let known = self.state.groups.get(&group).copied().unwrap_or_default();
        let (fields, address) = (self.state.layouts.task, self.state.task(task).address);
        fields.cgroups.set(&mut self.guest, address, known.css_set);
        fields
            .task_group
            .set(&mut self.guest, address, known.task_group);
        before.filter(|before| *before != group)
    }

    /// Tasks in the own queue of a CPU go back to the program (`reenq_local()`).
    pub(crate) fn reenqueue(&mut self, context: &mut Context<'_>) {
        for cpu in std::mem::take(&mut self.state.reenqueue) {
            let tasks = self.state.cpu(cpu).local.in_order(false);
            for task in tasks {
                self.here(context).unlink(task);
                self.give(context, task, self.state.enq.reenqueued);
            }
        }
    }

    fn init_task(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, task: TaskId) {
        if let Err(ending) = self.here(context).make_task(task, parent) {
            return self.here(context).eject(ending.to_string());
        }
        self.join(context, task);
        let address = self.state.task(task).address;
        let fields = self.state.layouts.init_task;
        let Ok(args) = fields.allocate(&mut self.guest) else {
            return;
        };
        let group = self.state.task(task).group.unwrap_or(GroupId::ROOT);
        let cgroup = self
            .state
            .groups
            .get(&group)
            .map_or(0, |known| known.address);
        fields.fork.set(&mut self.guest, args, 1);
        fields.cgroup.set(&mut self.guest, args, cgroup);
        let callbacks = self.callbacks;
        self.call(
            context,
            callbacks.init_task,
            During::Other,
            &[address, args],
        );
        self.guest.free(args, fields.size);
        self.call(context, callbacks.enable, During::Other, &[address]);
        let weight = self.state.task(task).weight;
        self.call(
            context,
            callbacks.set_weight,
            During::Other,
            &[address, weight],
        );
    }

    fn exit_task(&mut self, context: &mut Context<'_>, task: TaskId) {
        let address = self.state.task(task).address;
        if address == 0 {
            return;
        }
        let callbacks = self.callbacks;
        self.call(context, callbacks.disable, During::Other, &[address]);
        let fields = self.state.layouts.exit_task;
        if let Ok(args) = fields.allocate(&mut self.guest) {
            self.call(
                context,
                callbacks.exit_task,
                During::Other,
                &[address, args],
            );
            self.guest.free(args, fields.size);
        }
        self.here(context).leave_process(task);
        self.guest.drop_owner(address);
        self.guest.free(address, self.state.layouts.task.size);
        self.state.by_address.remove(&address);
        self.state.task_mut(task).address = 0;
        self.state.leaving.retain(|(leaving, _)| *leaving != task);
    }

    fn weight_changed(&mut self, context: &mut Context<'_>, task: TaskId) {
        let group = context.task(task).group();
        let group = self.here(context).visible(group);
        if self.state.task(task).group != Some(group) {
            return self.change(context, task, |machine, context| {
                machine.move_group(context, task);
            });
        }
        self.change(context, task, |machine, context| {
            if machine.here(context).write_weight(task) {
                let state = machine.state.task(task);
                let (address, weight) = (state.address, state.weight);
                let set = machine.callbacks.set_weight;
                machine.call(context, set, During::Other, &[address, weight]);
            }
        });
    }

    fn move_group(&mut self, context: &mut Context<'_>, task: TaskId) {
        let Some(from) = self.join(context, task) else {
            return;
        };
        let of = |group: Option<GroupId>| {
            let known = group.and_then(|group| self.state.groups.get(&group));
            known.map_or(0, |known| known.address)
        };
        let state = self.state.task(task);
        let args = [state.address, of(Some(from)), of(state.group)];
        let moved = self.callbacks.cgroup_move;
        self.call(context, moved, During::Other, &args);
        self.here(context).write_weight(task);
    }
}

/// The CPU that a task last ran on, or the first that it may run on.
fn may_run_near(context: &Context<'_>, task: TaskId) -> CpuId {
    let view = context.task(task);
    let others = (0..context.cpus()).map(CpuId);
    let mut cpus = std::iter::once(view.last_cpu()).chain(others);
    let found = cpus.find(|cpu| view.may_run_on(*cpu));
    found.unwrap_or(view.last_cpu())
}

impl Scheduler for SchedExt {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.machine.state.cpu(cpu).lock
    }

    /// A change of attributes takes the task off its run queue, under that queue's lock, as ticks
    /// and yields are under theirs.
    fn locks(&self, callback: Callback<'_>, cpu: CpuId) -> Locks {
        match callback {
            Callback::Pull { from } => Locks::Two(self.lock_for(cpu), self.lock_for(from)),
            _ => Locks::One(self.lock_for(cpu)),
        }
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.begin(context);
        self.machine.init_task(context, parent, child);
        self.finish(context);
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        let wakes = match why {
            Why::Fork => wake::FORK,
            Why::Wakeup(wakeup) if wakeup.sync => wake::WAKEUP | wake::SYNC,
            Why::Wakeup(_) => wake::WAKEUP,
        };
        let cpu = self.machine.select(context, task, wakes);
        self.finish(context);
        cpu
    }

    /// At exec the program is not asked (`WF_EXEC` in `select_task_rq_scx()`).
    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        may_run_near(context, task)
    }

    fn leaves_wakeup(&mut self, context: &mut Context<'_>, _: TaskId, target: CpuId) -> bool {
        let allowed = self.machine.state.flags & ops::ALLOW_QUEUED_WAKEUP != 0;
        let cache = |cpu: CpuId| self.machine.state.idle.shares_cache(cpu, context.cpu());
        allowed && !cache(target)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        context.compute(self.machine.state.costs.wakeup);
        let enq = self.machine.state.enq;
        let selected = std::mem::take(&mut self.machine.state.task_mut(task).cpu_selected);
        let flags = match why {
            Why::Fork => 0,
            Why::Wakeup(_) => enq.wakeup,
        };
        let flags = flags | if selected { enq.cpu_selected } else { 0 };
        self.machine.enqueue(context, task, cpu, flags);
        self.finish(context);
    }

    /// A CPU that idles picks again whenever a task comes onto its run queue.
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, _: TaskId, cpu: CpuId, _: Why) {
        if context.running_on(cpu).is_none() {
            context.reschedule(cpu);
        }
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.machine
            .dequeue(context, task, crate::words::deq::SLEEP);
        self.report(context);
    }

    fn pick_next(&mut self, context: &mut Context<'_>, previous: Option<TaskId>) -> Pick {
        let pick = self.machine.pick(context, previous);
        self.machine.reenqueue(context);
        self.report(context);
        pick
    }

    fn wants_put_prev(&self, previous: TaskId) -> bool {
        let mut leaving = self.machine.state.leaving.iter();
        leaving.any(|(task, _)| *task == previous)
    }

    /// CPUs that would have taken this task while it left its own look again.
    fn put_prev(&mut self, context: &mut Context<'_>, previous: TaskId) {
        let state = &mut self.machine.state;
        let wanted = std::mem::take(&mut state.leaving);
        for (task, cpu) in wanted {
            if task != previous {
                state.leaving.push((task, cpu));
            } else if context.running_on(cpu).is_none() {
                context.reschedule(cpu);
            }
        }
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        if context.cpu() == CpuId(0) {
            self.watch(context);
        }
        let cpu = context.cpu();
        let current = self.machine.state.cpu(cpu).current;
        if let Some(task) = running.filter(|task| current == Some(*task)) {
            self.machine.tick(context, cpu, task);
        }
        self.finish(context);
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        match self.machine.callbacks.yields {
            Some(yields) => {
                let address = self.machine.state.task(task).address;
                let args = [address, 0];
                self.machine
                    .call(context, Some(yields), During::Other, &args);
            }
            None => self.machine.here(context).set_slice(task, 0),
        }
        self.finish(context);
        true
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.machine.weight_changed(context, task);
        self.finish(context);
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.machine.change(context, task, |machine, context| {
            machine.here(context).write_affinity(task);
            let fields = machine.state.layouts.task;
            let address = machine.state.task(task).address;
            let set = machine.callbacks.set_cpumask;
            let mask = fields.cpus_mask.within(address);
            machine.call(context, set, During::Other, &[address, mask]);
        });
        let cpu = self.machine.state.task(task).cpu;
        let runs = self.machine.state.cpu(cpu).current == Some(task);
        if runs && !context.task(task).may_run_on(cpu) {
            context.reschedule(cpu);
        }
        self.finish(context);
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.machine.offline(context, cpu);
        self.finish(context);
    }

    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        self.machine.timer(context, token);
        self.finish(context);
    }

    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.machine.group_changed(context, group);
        self.finish(context);
    }

    fn set_fragment(
        &mut self,
        context: &mut Context<'_>,
        task: TaskId,
        fragment: Option<Fragment>,
    ) {
        if let Some(hint) = self.hint.clone()
            && self.machine.hears(context, &hint, fragment)
        {
            self.yield_task(context, task);
            context.reschedule(context.cpu());
        }
        self.finish(context);
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.machine.exit_task(context, task);
        self.finish(context);
    }
}

impl Machine {
    /// `select_task_rq()`, and `select_task_rq_scx()` for tasks that have a choice.
    fn select(&mut self, context: &mut Context<'_>, task: TaskId, wakes: u64) -> CpuId {
        let previous = may_run_near(context, task);
        let view = context.task(task);
        let all = usize::from(context.cpus());
        if view.allowed().map_or(all, warmq_units::CpuSet::len) == 1 {
            return previous;
        }
        self.state.task_mut(task).cpu_selected = true;
        let Some(function) = self.callbacks.select_cpu else {
            let mut here = self.here(context);
            return kfuncs::select_without_program(&mut here, task, previous, wakes);
        };
        self.here(context).write_state(task);
        let args = [self.state.task(task).address, u64::from(previous.0), wakes];
        let chosen = self.call(context, Some(function), During::Placing(task), &args);
        let there = chosen.map(|cpu| cpu as i32);
        let Some(cpu) = there.filter(|cpu| (0..i32::from(context.cpus())).contains(cpu)) else {
            if let Some(cpu) = there {
                let text = format!("invalid CPU {cpu} from ops.select_cpu()");
                self.here(context).eject(text);
            }
            return previous;
        };
        let cpu = CpuId(cpu as u16);
        let (selected, address) = (
            self.state.layouts.task.selected_cpu,
            self.state.task(task).address,
        );
        selected.set(&mut self.guest, address, cpu.0.into());
        // select_fallback_rq(), where the program's answer is not allowed.
        match context.task(task).may_run_on(cpu) {
            true => cpu,
            false => previous,
        }
    }

    /// `task_tick_scx()`.
    fn tick(&mut self, context: &mut Context<'_>, cpu: CpuId, task: TaskId) {
        let mut here = self.here(context);
        here.update_current(cpu);
        here.write_interrupt(true);
        let address = self.state.task(task).address;
        let tick = self.callbacks.tick;
        self.call(context, tick, During::Other, &[address]);
        self.here(context).write_interrupt(false);
        if self.here(context).slice(task) == 0 {
            context.reschedule(cpu);
        }
    }

    /// The task that runs here names its data by a prctl; whether it should yield.
    fn hears(
        &mut self,
        context: &mut Context<'_>,
        hint: &Hint,
        fragment: Option<Fragment>,
    ) -> bool {
        let value = fragment.map_or(0, |fragment| {
            (u64::from(fragment.app) << 32 | u64::from(fragment.number)) + 1
        });
        let program = self.code.program.image().program(&hint.program);
        let function = program.map(|program| program.function);
        // The other arguments of prctl, and what it would return.
        let args = [hint.option, value, 0, 0, 0, 0];
        let answer = self.call(context, function, During::Other, &args);
        answer.is_some_and(|answer| answer as i32 as u64 == hint.yields_at)
    }

    /// A timer of the program has expired on this CPU.
    fn timer(&mut self, context: &mut Context<'_>, timer: u64) {
        self.state.timers.remove(&timer);
        let known = self.guest.timer(timer).copied();
        let Some((known, function)) = known.and_then(|known| Some((known, known.function?))) else {
            return;
        };
        let args = [known.map, known.key, known.value];
        let code = self.code.clone();
        let mut here = self.here(context);
        here.write_interrupt(true);
        here.call_timer(&code, function, &args);
        here.write_interrupt(false);
    }

    /// The weight or the limits of a group have changed.
    fn group_changed(&mut self, context: &mut Context<'_>, group: GroupId) {
        let (weight, limits) = (context.group(group).weight, limits(context, group));
        let Some(known) = self.state.groups.get_mut(&group) else {
            return;
        };
        let before = (known.weight, known.limits);
        (known.weight, known.limits) = (weight, limits);
        let address = known.address;
        if before.0 != weight {
            let set = self.callbacks.cgroup_set_weight;
            self.call(context, set, During::Other, &[address, weight.into()]);
        }
        if before.1 != limits {
            let [period, quota, burst] = limits;
            let set = self.callbacks.cgroup_set_bandwidth;
            let args = [address, period, quota, burst];
            self.call(context, set, During::Other, &args);
        }
    }

    /// A CPU has gone offline: what waits in its own queue goes back to the program.
    fn offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        masks::put(&mut self.guest, self.state.online, cpu, false);
        let variables = self.state.variables;
        variables.write_online(&mut self.guest, cpu, false);
        let (function, args) = (self.callbacks.cpu_offline, [u64::from(cpu.0)]);
        self.call(context, function, During::Other, &args);
        for task in self.state.cpu(cpu).local.in_order(false) {
            let mut here = self.here(context);
            here.unlink(task);
            let mut cpus = (0..here.context.cpus()).map(CpuId);
            let to = cpus.find(|cpu| here.context.task(task).may_run_on(*cpu));
            here.move_to_cpu(task, to.unwrap_or(cpu));
            self.give_moved(context, task);
        }
    }
}
