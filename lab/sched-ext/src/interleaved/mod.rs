//! The kernel's part of sched_ext where several CPUs are in it at the same time: callbacks are
//! interrupted, and others come in.
//!
//! ```text
//! let mut kernel = Interleaved::new(&loaded, &machine, seed)?;
//! let task = kernel.fork(TaskSpec::new("a", None), CpuId(0))?;
//! let path = kernel.begin(CpuId(0), Event::Wake(task), Some(3));   // interrupted later
//! kernel.go_on();                                                  // until nothing can go on
//! kernel.begin(CpuId(1), Event::Sleep, None);                      // what comes in
//! kernel.go_on();
//! kernel.release(path);                                            // the first goes on
//! kernel.go_on();
//! ```
//!
//! A path is what a CPU does from the beginning of an event to its end: the rules of run_queue.rs,
//! pick.rs and events.rs, and paths.rs around them. It comes back where a callback is interrupted
//! (before each access to memory that others see, and before each call), and where it waits for a
//! lock that another path has. State, queues, kfuncs and masks are those of the rest of this crate.
//!
//! Locks are those of Linux 7.3, under which it calls callbacks (read once more in 7.3.4):
//!
//! ```text
//! select_cpu                            pi_lock (try_to_wake_up(), wake_up_new_task())
//! runnable, enqueue                     run queue; at a wakeup and a change pi_lock, too
//! stopping, running, quiescent, tick    run queue
//! update_idle                           run queue
//! dequeue                               run queue (ops_dequeue()); at a dispatch that of the CPU in
//!                                       whose queue the task is then, or of who dispatches
//! dispatch                              run queue, given up while tasks move between others
//! yield                                 run queue (1)
//! set_weight, set_cpumask, disable      pi_lock, run queue (task_rq_lock())
//! cgroup_move                           cgroup_mutex, pi_lock, run queue (sched_move_task())
//! cgroup_set_weight, _idle, _bandwidth  none that excludes another: of scx_cgroup_ops_rwsem they
//!                                       are readers (scx_group_set_weight()) (2)
//! timers                                none (2)
//! a prctl                               none; interrupts come in
//! init_task, enable, exit_task,         scx_fork_rwsem; pi_lock and run queue; cgroup_mutex (3)
//!     cgroup_init, cgroup_exit
//! ```
//!
//! What differs here:
//!
//! 1. The run queue's lock is kept until the pick is over; `do_sched_yield()` gives it up before.
//! 2. No interrupt comes in, which it does in the softirq of timers and in writes to files of
//!    cgroups. (In all others but a prctl interrupts are off: a CPU does one thing at a time.)
//! 3. They are one piece, with nothing beside them.
//!
//! A dispatch waits until `enqueue` of its task is over; a dequeue of the task, and its pick, wait
//! until it is dispatched and `dequeue` is over (`SCX_OPSS_QUEUEING`, `SCX_OPSS_DISPATCHING`; the
//! wait of `scx_wait_dispatching()` comes at the pick here). A wakeup that is left to another CPU
//! (`SCX_OPS_ALLOW_QUEUED_WAKEUP`) has its `pi_lock` until the end, as all others. A CPU that moves
//! a task between two run queues has the lock of one after the other in 7.3, and both at once here;
//! its own it gives up in either case. A kick waits for the lock of the CPU that it is for.
//!
//! Different from a kernel: memory is sequentially consistent; callbacks of `bpf_loop` and of trees
//! are one piece; programs at tracepoints are not run.

mod locks;
mod on;
mod paths;
mod task;
mod world;

use std::cell::{Ref, RefCell, RefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use warmq_bpf::Image;
use warmq_kernel::{BootError, ByHand, GroupId, Scheduler, Settings, TaskSpec};
use warmq_machine::MachineDescription;
use warmq_units::{CpuId, Duration, Seed, TaskId};

use self::on::On;
use self::world::World;
pub use self::{
    paths::Event,
    world::{Note, Place as At, Waits, What},
};
use crate::callbacks::SchedExt;
use crate::cgroups::id_of;
pub use crate::execution::Lock;
use crate::expenses::Expenses;
use crate::load::Loaded;
use crate::tasks::pid_of;

/// A program of kind syscall that says whether all that the scheduler counts is right: not, if it
/// returns another number than 0.
const CHECK: &str = "race_check";

/// sched_ext on a machine, with paths that are interrupted.
pub struct Interleaved {
    world: Rc<RefCell<World>>,
    paths: Vec<Option<Path>>,
    image: Arc<Image>,
}

/// What a CPU does.
struct Path {
    cpu: CpuId,
    /// Interrupts may come in.
    in_task: bool,
    rest: Pin<Box<dyn Future<Output = ()>>>,
}

impl Interleaved {
    /// Attaches an object to a machine on which nothing takes time. `ops.init` runs when the first
    /// task is forked.
    ///
    /// # Errors
    /// If its memory does not fit.
    pub fn new(
        loaded: &Loaded,
        machine: &MachineDescription,
        seed: Seed,
    ) -> Result<Interleaved, BootError> {
        let settings = Settings {
            caches: false,
            ..Settings::linux6(seed)
        };
        let mut hand = ByHand::new(machine, settings)?;
        let expenses = Expenses {
            instructions: 0,
            kfunc: 0,
            helper: 0,
            callback: 0,
        };
        let number = seed.stream("bpf_get_prandom_u32").next();
        let attached = SchedExt::attach(loaded, &mut hand.attach(), expenses, number);
        let mut scheduler = attached.map_err(|error| BootError::Scheduler(error.to_string()))?;
        scheduler.machine.state.interleaved = true;
        Ok(Interleaved {
            world: Rc::new(RefCell::new(World::new(scheduler, hand))),
            paths: Vec::new(),
            image: loaded.image.clone(),
        })
    }

    fn world(&self) -> Ref<'_, World> {
        self.world.borrow()
    }

    fn world_mut(&self) -> RefMut<'_, World> {
        self.world.borrow_mut()
    }

    /// The object.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// From now on all that happens is noted.
    pub fn take_notes(&mut self) {
        self.world_mut().notes = Some(Vec::new());
    }

    /// What has happened since the last call.
    pub fn notes(&mut self) -> Vec<Note> {
        let mut world = self.world_mut();
        world.notes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A new task, which sleeps, in an address space of its own. It was last on a CPU.
    ///
    /// # Errors
    /// If memory is used up.
    pub fn fork(&mut self, spec: TaskSpec, last: CpuId) -> Result<TaskId, BootError> {
        let world = &mut *self.world_mut();
        let mm = Some(world.hand.mm());
        let task = world.hand.task(&TaskSpec { mm, ..spec }, last)?;
        let mut context = world.hand.context(last);
        world.scheduler.fork(&mut context, None, task);
        Ok(task)
    }

    /// A new group in another one.
    pub fn group(&mut self, name: &str, parent: GroupId) -> GroupId {
        let world = &mut *self.world_mut();
        let group = world.hand.group(name, parent);
        let mut context = world.hand.context(CpuId(0));
        world.scheduler.machine.know(&mut context, group);
        group
    }

    /// Something happens on a CPU that is free, from the next [`Self::go_on`] on. Others come in
    /// after `passes` places where they may, if it is to be interrupted. Its number.
    pub fn begin(&mut self, cpu: CpuId, event: Event, passes: Option<u64>) -> usize {
        debug_assert!(self.takes(cpu, &event), "{cpu} does something else");
        let path = self.world_mut().new_path(cpu, passes);
        let on = On {
            world: Rc::clone(&self.world),
            path,
            cpu,
        };
        let in_task = matches!(event, Event::Hint(_));
        let rest = Box::pin(on.happens(event));
        self.paths.push(Some(Path { cpu, in_task, rest }));
        path
    }

    /// Whether an event may happen on a CPU: an interrupt comes in while a task is in a prctl.
    fn takes(&self, cpu: CpuId, event: &Event) -> bool {
        let is_interrupt = matches!(event, Event::Tick(_) | Event::Timer(_) | Event::Wake(_));
        let mut others = self.paths.iter().flatten().filter(|path| path.cpu == cpu);
        others.all(|path| path.in_task && is_interrupt)
    }

    /// All paths that can go on do, in the order in which they began, until none can.
    pub fn go_on(&mut self) {
        loop {
            self.world_mut().moved = false;
            for path in 0..self.paths.len() {
                self.poll(path);
            }
            if !self.world().moved {
                return;
            }
        }
    }

    fn poll(&mut self, path: usize) {
        let Some(known) = &mut self.paths[path] else {
            return;
        };
        if !self.world.borrow_mut().may_go_on(path) {
            return;
        }
        let mut context = Context::from_waker(Waker::noop());
        self.world.borrow_mut().exchange(path);
        let over = known.rest.as_mut().poll(&mut context).is_ready();
        self.world.borrow_mut().exchange(path);
        if over {
            self.paths[path] = None;
            let mut world = self.world_mut();
            world.locks.release_all(path);
            world.moved = true;
        }
    }

    /// A path goes on, and is not interrupted any more.
    pub fn release(&mut self, path: usize) {
        self.world_mut().release(path);
    }

    /// Why a path does not go on; `None` if it is over.
    pub fn waits(&self, path: usize) -> Option<Waits> {
        let there = self.paths.get(path)?.is_some();
        there.then(|| self.world().waits(path).clone())
    }

    /// How many places a path has come to where others may come in.
    pub fn places(&self, path: usize) -> u64 {
        self.world().places(path)
    }

    /// Paths that are not over.
    pub fn paths(&self) -> impl Iterator<Item = usize> {
        let paths = self.paths.iter().enumerate();
        paths.filter_map(|(path, known)| known.is_some().then_some(path))
    }

    /// Whether a CPU does nothing of the kernel's.
    pub fn is_free(&self, cpu: CpuId) -> bool {
        self.paths.iter().flatten().all(|path| path.cpu != cpu)
    }

    /// Who runs on a CPU.
    pub fn runs(&self, cpu: CpuId) -> Option<TaskId> {
        self.world().scheduler.machine.state.cpu(cpu).current
    }

    /// Whether a task sleeps, and is on no CPU.
    pub fn sleeps(&self, task: TaskId) -> bool {
        let world = self.world();
        let view = world.hand.view(task);
        !view.is_runnable() && view.on_cpu().is_none()
    }

    /// Whether a task waits for a CPU.
    pub fn waits_for_cpu(&self, task: TaskId) -> bool {
        let world = self.world();
        let state = &world.scheduler.machine.state;
        let known = state.task(task);
        known.queued && state.cpu(known.cpu).current != Some(task)
    }

    /// Whether a task may run on a CPU.
    pub fn may_run(&self, task: TaskId, cpu: CpuId) -> bool {
        self.world().may_run(task, cpu)
    }

    /// Whether a CPU has been asked to pick again.
    pub fn is_to_pick(&self, cpu: CpuId) -> bool {
        self.world().hand.is_to_pick(cpu)
    }

    /// Time goes on; timers of the program that expire, and where.
    pub fn pass(&mut self, span: Duration) -> Vec<(CpuId, u64)> {
        self.world_mut().hand.pass(span)
    }

    /// Why the program was ejected, if it was.
    pub fn ejected(&self) -> Option<String> {
        self.world().ejected().map(str::to_owned)
    }

    /// Runs the program's own check, if it has one, which ejects it if something is wrong. It gets
    /// the pid of the first task, and how many there are.
    pub fn check(&mut self) {
        let tasks = self.world().scheduler.machine.state.tasks.len() as u64;
        let returned = self.ask(CHECK, &[pid_of(TaskId(0)), tasks]);
        if let Some(wrong) = returned.filter(|returned| *returned != 0) {
            let world = &mut *self.world.borrow_mut();
            let mut context = world.hand.context(CpuId(0));
            let mut here = world.scheduler.machine.here(&mut context);
            here.eject(format!("{CHECK} returns {wrong}"));
        }
    }

    /// Runs a program of kind syscall, whose argument are these numbers, as user space may; what it
    /// returns, if there is one of that name.
    pub fn ask(&mut self, program: &str, numbers: &[u64]) -> Option<i32> {
        let world = &mut *self.world.borrow_mut();
        let mut argument: Vec<u8> = numbers.iter().flat_map(|of| of.to_le_bytes()).collect();
        let (machine, mut context) = (&mut world.scheduler.machine, world.hand.context(CpuId(0)));
        machine.call_syscall(&mut context, program, &mut argument)?
    }

    /// The process id of a task.
    pub fn pid(&self, task: TaskId) -> u64 {
        pid_of(task)
    }

    /// The number of a group (`cgroup_id()`).
    pub fn cgroup(&self, group: GroupId) -> u64 {
        id_of(group)
    }

    /// The longest that a task may wait.
    pub fn timeout(&self) -> Duration {
        self.world().scheduler.timeout
    }
}
