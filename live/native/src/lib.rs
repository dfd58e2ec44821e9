//! The BPF program of scx_warmq in a process of its own: compiled by a C compiler as it is, with a
//! small model of sched_ext around it (`sched_ext.h`), called as the kernel calls it (`native.c`).
//!
//! Purpose: tests. Whoever has another implementation of the same policy can feed both the same
//! events and compare what they decide; the simulated scx_warmq is one.
//!
//! What the model has: dispatch queues, idle CPUs (the lowest wins), kicks, slices, the order of
//! callbacks, task storage and maps, tasks that change their nice value, affinity or cgroup, and
//! weights of cgroups, quotas, and two CPUs at the same time: what [`Meanwhile`] names, at any
//! moment of a call. What it leaves out: hotplug, real-time tasks.
//!
//! It also counts which cache lines CPUs take from each other ([`Program::lines`]).

mod cpus;
mod lines;

use std::sync::{Mutex, MutexGuard, PoisonError};

use warmq_decide::{Policy, nearest_first};

pub use self::cpus::Cpus;
pub use self::lines::Lines;

/// The most CPUs that the model has.
pub const MOST_CPUS: usize = 512;

/// The most tasks that the model has.
pub const MOST_TASKS: u32 = 2048;

/// The most cgroups that the model has, the root included.
pub const MOST_CGROUPS: u32 = 64;

/// The most domains that the model has.
pub const MOST_DOMAINS: usize = 128;

/// CPUs and what they share; lists have an entry for each CPU.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The number of a CPU's last-level cache.
    pub domain_of: Vec<u32>,
    /// The number of a CPU's core.
    pub core_of: Vec<u32>,
    /// Groups live on CPUs instead of under caches.
    pub place_is_cpu: bool,
    /// The number of a CPU's memory node; empty: there is one.
    pub node_of: Vec<u32>,
    /// The distances between nodes, 10 within one; empty: 20 between any two.
    pub distances: Vec<Vec<u32>>,
    /// Whether a CPU has a high capacity; empty: all are alike.
    pub fast: Vec<bool>,
}

impl Machine {
    fn domains(&self) -> u32 {
        self.domain_of.iter().max().map_or(0, |last| last + 1)
    }

    /// The node of a domain.
    fn node_of(&self, domain: u32) -> u32 {
        let first = self.domain_of.iter().position(|of| *of == domain);
        let node = first.and_then(|cpu| self.node_of.get(cpu));
        node.copied().unwrap_or(0)
    }

    fn distance(&self, domain: u32, other: u32) -> u32 {
        let (from, to) = (self.node_of(domain), self.node_of(other));
        let usual = if from == to { 10 } else { 20 };
        let row = self.distances.get(from as usize);
        row.map_or(usual, |row| row[to as usize])
    }

    /// Row by domain: all of them, the nearest first.
    fn near(&self) -> [[u8; MOST_DOMAINS]; MOST_DOMAINS] {
        let mut near = [[0; MOST_DOMAINS]; MOST_DOMAINS];
        for (domain, row) in (0..self.domains()).zip(&mut near) {
            let order = nearest_first(domain, self.domains(), |other| self.distance(domain, other));
            for (place, other) in row.iter_mut().zip(order) {
                *place = other as u8;
            }
        }
        near
    }
}

/// Who wakes a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A task, which also runs where the program is called.
    Task(u32),
    /// An interrupt.
    Interrupt,
    /// Nobody: it is new.
    Fork,
}

impl Waker {
    fn number(self) -> i32 {
        match self {
            Waker::Task(task) => task as i32,
            Waker::Interrupt => -1,
            Waker::Fork => -2,
        }
    }
}

/// What a task is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The task that makes it.
    pub parent: Option<u32>,
    /// sched_ext's, 1 to 10,000.
    pub weight: u32,
    /// The CPUs that it may run on, as a mask of the first 64; all its bits: every CPU.
    pub allowed: u64,
    /// The number of its cgroup; 0 is the root.
    pub cgroup: u32,
}

/// What another CPU does while a call is under way; see [`Program::meanwhile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// The kernel queues a task again that waits: its nice value has changed.
    Requeue(u32),
    /// The last quota, that of this cgroup, is lifted, and its timer expires for the last time.
    Lift(u32),
    /// The other timer releases tasks, too.
    Release,
    /// The task of this CPU sleeps, and the CPU looks for another.
    GoIdle(u32),
    /// This CPU, which somebody has kicked while it idled, looks for a task.
    Look(u32),
    /// An interrupt on CPU 0 wakes this task, which was last there.
    Wake(u32),
    /// This cgroup gets this weight.
    Weigh(u32, u32),
    /// A tick interrupts the task that runs where the call is made.
    Tick,
}

/// CPUs that were asked to reschedule, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kicks {
    /// Idle ones, which are to look for work.
    pub idle: Cpus,
    /// Those whose task is preempted.
    pub preempted: Cpus,
}

#[repr(C)]
struct NativeMachine {
    cpus: u32,
    domains: u32,
    nodes: u32,
    place_is_cpu: bool,
    unlike_cpus: bool,
    domain_of: [u32; MOST_CPUS],
    core_of: [u32; MOST_CPUS],
    fast: [bool; MOST_CPUS],
    node_of: [u32; MOST_DOMAINS],
    near: [[u8; MOST_DOMAINS]; MOST_DOMAINS],
    policy: Policy,
}

// SAFETY of all: native.c keeps its state in statics, and `Program` is the only caller, one at a
// time (`ONLY`). Numbers are checked by `Program` where a wrong one would leave an array.
#[allow(unsafe_code, reason = "the program is C")]
unsafe extern "C" {
    fn native_load(machine: *mut NativeMachine);
    safe fn native_fork(
        task: u32,
        parent: i32,
        weight: u32,
        allowed: u64,
        cgroup: u32,
        cpu: u32,
        now: u64,
    );
    safe fn native_select(task: u32, here: u32, prev: i32, waker: i32, sync: bool, now: u64)
    -> i32;
    safe fn native_enqueue(task: u32, here: u32, cpu: u32, waker: i32, now: u64);
    safe fn native_sleep(task: u32, here: u32, exits: bool, now: u64);
    safe fn native_sleep_deeply(task: u32, here: u32, now: u64);
    safe fn native_exit(task: u32, here: u32, now: u64);
    safe fn native_pick(here: u32, now: u64) -> i32;
    safe fn native_tick(here: u32, inside: bool, now: u64) -> bool;
    safe fn native_set_quota(cgroup: u32, quota: u64, period: u64, burst: u64, now: u64);
    safe fn native_cgroup_set_idle(cgroup: u32, idle: bool);
    safe fn native_cgroup_leave_one();
    safe fn native_quotas_refused() -> u64;
    safe fn native_core_sched_before(task: u32, other: u32) -> bool;
    safe fn native_quota_timer(here: u32, now: u64);
    safe fn native_requeue_meanwhile(task: u32, moments: u32);
    safe fn native_lift_meanwhile(cgroup: u32, moments: u32);
    safe fn native_release_meanwhile(moments: u32);
    safe fn native_go_idle_meanwhile(cpu: u32, moments: u32);
    safe fn native_look_meanwhile(cpu: u32, moments: u32);
    safe fn native_wake_meanwhile(task: u32, moments: u32);
    safe fn native_cgroup_weight_meanwhile(cgroup: u32, weight: u32, moments: u32);
    safe fn native_tick_meanwhile(moments: u32);
    safe fn native_came_in() -> bool;
    safe fn native_write_slot(task: u32, hint: u64);
    safe fn native_hint_of(task: u32) -> u64;
    safe fn native_limit_groups(most: u32, of_user: u32);
    safe fn native_set_user(task: u32, uid: u32, owner: u32);
    safe fn native_counts_are_right() -> bool;
    safe fn native_timer(here: u32, now: u64);
    safe fn native_yield(here: u32, now: u64);
    safe fn native_hint(here: u32, hint: u64, now: u64) -> bool;
    safe fn native_set_weight(task: u32, here: u32, weight: u32, now: u64);
    safe fn native_set_cpumask(task: u32, here: u32, allowed: u64, now: u64);
    safe fn native_migrate(here: u32, now: u64);
    safe fn native_leave_class(task: u32, here: u32, now: u64);
    safe fn native_taken_by_realtime(here: u32, now: u64);
    safe fn native_cgroup_init(cgroup: u32, parent: u32, weight: u32);
    safe fn native_cgroup_exit(cgroup: u32);
    safe fn native_cgroup_set_weight(cgroup: u32, weight: u32);
    safe fn native_cgroup_move(task: u32, here: u32, from: u32, to: u32, now: u64);
    fn native_kicks(idle: *mut Cpus, preempted: *mut Cpus);
    safe fn native_count_lines();
    safe fn native_groups_used() -> u32;
    safe fn native_looks() -> u64;
    safe fn native_passed() -> u64;
    safe fn native_speed(cpu: u32) -> u32;
    safe fn native_timers_started() -> u64;
    fn lines_taken(counts: *mut Lines);
}

fn check_cgroup(cgroup: u32) {
    assert!(cgroup < MOST_CGROUPS, "cgroup {cgroup}");
}

/// The program keeps its state in statics, as BPF programs do: there is one at a time.
static ONLY: Mutex<()> = Mutex::new(());

/// The loaded program. Times are ns since any start, and never fall.
pub struct Program {
    cpus: u32,
    _only: MutexGuard<'static, ()>,
}

impl Program {
    /// Loads the program for `machine`, all of whose CPUs idle. Waits until no other is loaded.
    ///
    /// # Panics
    /// When the machine has no CPU, more than [`MOST_CPUS`], or lists of different lengths.
    pub fn load(machine: &Machine, policy: Policy) -> Program {
        let cpus = machine.domain_of.len();
        assert!((1..=MOST_CPUS).contains(&cpus) && machine.core_of.len() == cpus);
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let mut native = NativeMachine {
            cpus: cpus as u32,
            domains: machine.domains(),
            nodes: machine.node_of.iter().max().map_or(1, |last| last + 1),
            place_is_cpu: machine.place_is_cpu,
            unlike_cpus: !machine.fast.is_empty(),
            domain_of: [0; MOST_CPUS],
            core_of: [0; MOST_CPUS],
            fast: [false; MOST_CPUS],
            node_of: std::array::from_fn(|domain| machine.node_of(domain as u32)),
            near: machine.near(),
            policy,
        };
        native.fast[..machine.fast.len()].copy_from_slice(&machine.fast);
        native.domain_of[..cpus].copy_from_slice(&machine.domain_of);
        native.core_of[..cpus].copy_from_slice(&machine.core_of);
        #[allow(unsafe_code, reason = "the program is C")]
        // SAFETY: a valid machine, read before the call returns; see above.
        unsafe {
            native_load(&raw mut native);
        }
        Program {
            cpus: cpus as u32,
            _only: only,
        }
    }

    fn check(&self, task: u32, cpu: u32) {
        assert!(
            task < MOST_TASKS && cpu < self.cpus,
            "task {task}, CPU {cpu}"
        );
    }

    /// A task is made, on `cpu`.
    pub fn fork(&mut self, task: u32, birth: Birth, cpu: u32, now: u64) {
        let Birth {
            parent,
            weight,
            allowed,
            cgroup,
        } = birth;
        self.check(task.max(parent.unwrap_or(0)), cpu);
        check_cgroup(cgroup);
        let parent = parent.map_or(-1, |parent| parent as i32);
        native_fork(task, parent, weight, allowed, cgroup, cpu, now);
    }

    /// The CPU for a task that was last on `prev` and is woken, or made, by code on `here`. `sync`:
    /// its waker is about to sleep.
    pub fn select(
        &mut self,
        task: u32,
        (here, prev): (u32, u32),
        (waker, sync): (Waker, bool),
        now: u64,
    ) -> u32 {
        self.check(task, here.max(prev));
        native_select(task, here, prev as i32, waker.number(), sync, now) as u32
    }

    /// The task is queued on `cpu`, by code on `here`; on the CPU that was selected, if one was.
    pub fn enqueue(&mut self, task: u32, (here, cpu): (u32, u32), waker: Waker, now: u64) -> Kicks {
        self.check(task, here.max(cpu));
        native_enqueue(task, here, cpu, waker.number(), now);
        self.kicks()
    }

    /// The task that runs on `here` sleeps, or exits.
    pub fn sleep(&mut self, task: u32, here: u32, exits: bool, now: u64) {
        self.check(task, here);
        native_sleep(task, here, exits, now);
    }

    /// The task that runs on `here` sleeps so that no signal wakes it.
    pub fn sleep_deeply(&mut self, task: u32, here: u32, now: u64) {
        self.check(task, here);
        native_sleep_deeply(task, here, now);
    }

    /// The task is gone.
    pub fn exit(&mut self, task: u32, here: u32, now: u64) {
        self.check(task, here);
        native_exit(task, here, now);
    }

    /// The task that `here` runs next; `None`: it idles.
    pub fn pick(&mut self, here: u32, now: u64) -> Option<u32> {
        self.check(0, here);
        u32::try_from(native_pick(here, now)).ok()
    }

    /// A tick on `here`, where a task runs. Returns whether that has to give way.
    pub fn tick(&mut self, here: u32, now: u64) -> bool {
        self.check(0, here);
        native_tick(here, false, now)
    }

    /// The same, where the task is inside the kernel.
    pub fn tick_inside(&mut self, here: u32, now: u64) -> bool {
        self.check(0, here);
        native_tick(here, true, now)
    }

    /// A cgroup may run for `quota` us in each period of 100 ms; `None`: for as long as it likes.
    pub fn set_quota(&mut self, cgroup: u32, quota: Option<u64>, now: u64) {
        check_cgroup(cgroup);
        native_set_quota(cgroup, quota.unwrap_or(u64::MAX), 100_000, 0, now);
    }

    /// The same, and it may keep `burst` us of earlier quotas.
    pub fn set_quota_with_burst(&mut self, cgroup: u32, quota: u64, burst: u64, now: u64) {
        check_cgroup(cgroup);
        native_set_quota(cgroup, quota, 100_000, burst, now);
    }

    /// Anything else comes before the tasks of a cgroup (cpu.idle), or no longer does.
    pub fn set_cgroup_idle(&mut self, cgroup: u32, idle: bool) {
        check_cgroup(cgroup);
        native_cgroup_set_idle(cgroup, idle);
    }

    /// Whether a task comes before another where they may not share a core.
    #[must_use]
    pub fn core_sched_before(&self, task: u32, other: u32) -> bool {
        self.check(task.max(other), 0);
        native_core_sched_before(task, other)
    }

    /// From now on the program has room for one more cgroup only.
    pub fn leave_one_cgroup(&mut self) {
        native_cgroup_leave_one();
    }

    /// For how many cgroups that it has no room for a quota was set.
    #[must_use]
    pub fn quotas_refused(&self) -> u64 {
        native_quotas_refused()
    }

    /// The timer at which periods begin, on `here`.
    pub fn quota_timer(&mut self, here: u32, now: u64) -> Kicks {
        self.check(0, here);
        native_quota_timer(here, now);
        self.kicks()
    }

    /// Has another CPU do something in the next call, after so many of its moments: atomic
    /// operations, and looks at what CPUs share. The caller sees to it that no lock of the kernel's
    /// forbids that.
    pub fn meanwhile(&mut self, what: Meanwhile, moments: u32) {
        match what {
            Meanwhile::Requeue(task) => {
                self.check(task, 0);
                native_requeue_meanwhile(task, moments);
            }
            Meanwhile::Lift(cgroup) => {
                check_cgroup(cgroup);
                native_lift_meanwhile(cgroup, moments);
            }
            Meanwhile::Release => native_release_meanwhile(moments),
            Meanwhile::GoIdle(cpu) => {
                self.check(0, cpu);
                native_go_idle_meanwhile(cpu, moments);
            }
            Meanwhile::Look(cpu) => {
                self.check(0, cpu);
                native_look_meanwhile(cpu, moments);
            }
            Meanwhile::Wake(task) => {
                self.check(task, 0);
                native_wake_meanwhile(task, moments);
            }
            Meanwhile::Weigh(cgroup, weight) => {
                check_cgroup(cgroup);
                native_cgroup_weight_meanwhile(cgroup, weight, moments);
            }
            Meanwhile::Tick => native_tick_meanwhile(moments),
        }
    }

    /// Whether the other CPU has done its part; if not, there were not so many moments, and it will
    /// not.
    pub fn came_in(&mut self) -> bool {
        native_came_in()
    }

    /// A task writes a hint into its slot; from then on it has one.
    pub fn write_slot(&mut self, task: u32, hint: u64) {
        self.check(task, 0);
        native_write_slot(task, hint);
    }

    /// From now on the program has room for so many groups, and for so many of a user, and hints
    /// are those of a process.
    pub fn limit_groups(&mut self, most: u32, of_user: u32) {
        native_limit_groups(most, of_user);
    }

    /// A task is of user `uid`, in a user namespace that user `owner` has made.
    pub fn set_user(&mut self, task: u32, uid: u32, owner: u32) {
        self.check(task, 0);
        native_set_user(task, uid, owner);
    }

    /// The hint whose group a task is in; 0: it is in none.
    #[must_use]
    pub fn hint_of(&self, task: u32) -> u64 {
        self.check(task, 0);
        native_hint_of(task)
    }

    /// Whether each queue counts the tasks that are in it, each cgroup the weights in it, each
    /// group its members.
    #[must_use]
    pub fn counts_are_right(&self) -> bool {
        native_counts_are_right()
    }

    /// The balance timer, on `here`.
    pub fn timer(&mut self, here: u32, now: u64) -> Kicks {
        self.check(0, here);
        native_timer(here, now);
        self.kicks()
    }

    /// The task that runs on `here` yields.
    pub fn yield_task(&mut self, here: u32, now: u64) {
        self.check(0, here);
        native_yield(here, now);
    }

    /// The task that runs on `here` names its data; 0: none in particular. Returns whether it is
    /// asked to yield, as it then does.
    pub fn hint(&mut self, here: u32, hint: u64, now: u64) -> bool {
        self.check(0, here);
        native_hint(here, hint, now)
    }

    /// Code on `here` changes the nice value of a task, and so its weight.
    pub fn set_weight(&mut self, task: u32, here: u32, weight: u32, now: u64) -> Kicks {
        self.check(task, here);
        native_set_weight(task, here, weight, now);
        self.kicks()
    }

    /// Code on `here` changes the affinity of a task. If that runs where it no longer may,
    /// [`Program::migrate`] follows.
    pub fn set_cpumask(&mut self, task: u32, here: u32, allowed: u64, now: u64) -> Kicks {
        self.check(task, here);
        native_set_cpumask(task, here, allowed, now);
        self.kicks()
    }

    /// The kernel's migration thread takes `here` from its task, which may no longer run there, and
    /// queues the task on the first CPU where it may.
    pub fn migrate(&mut self, here: u32, now: u64) {
        self.check(0, here);
        native_migrate(here, now);
    }

    /// The task that runs on `here` makes itself a real-time one.
    pub fn leave_class(&mut self, task: u32, here: u32, now: u64) {
        self.check(task, here);
        native_leave_class(task, here, now);
    }

    /// A real-time task takes `here`, which idles, and keeps it.
    pub fn taken_by_realtime(&mut self, here: u32, now: u64) {
        self.check(0, here);
        native_taken_by_realtime(here, now);
    }

    /// A cgroup is made in `parent`; 0 is the root, which is there.
    pub fn make_cgroup(&mut self, cgroup: u32, parent: u32, weight: u32) {
        check_cgroup(cgroup.max(parent));
        native_cgroup_init(cgroup, parent, weight);
    }

    /// A cgroup is removed.
    pub fn remove_cgroup(&mut self, cgroup: u32) {
        check_cgroup(cgroup);
        native_cgroup_exit(cgroup);
    }

    /// The weight of a cgroup changes.
    pub fn set_cgroup_weight(&mut self, cgroup: u32, weight: u32) {
        check_cgroup(cgroup);
        native_cgroup_set_weight(cgroup, weight);
    }

    /// Code on `here` moves a task to another cgroup.
    pub fn move_to_cgroup(
        &mut self,
        task: u32,
        here: u32,
        (from, to): (u32, u32),
        now: u64,
    ) -> Kicks {
        self.check(task, here);
        check_cgroup(from.max(to));
        native_cgroup_move(task, here, from, to, now);
        self.kicks()
    }

    /// The kicks since the last call, as those that [`Program::pick`] leads to.
    pub fn kicks(&mut self) -> Kicks {
        let mut kicks = Kicks::default();
        #[allow(unsafe_code, reason = "the program is C")]
        // SAFETY: both are written before the call returns.
        unsafe {
            native_kicks(&raw mut kicks.idle, &raw mut kicks.preempted);
        }
        kicks
    }

    /// The number behind that of the last group that is in use, or was so lately.
    #[must_use]
    pub fn groups_used(&self) -> u32 {
        native_groups_used()
    }

    /// How often the program has armed a timer.
    #[must_use]
    pub fn timers_started(&self) -> u64 {
        native_timers_started()
    }

    /// The speed that a CPU was asked for, of 1024.
    #[must_use]
    pub fn speed(&self, cpu: u32) -> u32 {
        self.check(0, cpu);
        native_speed(cpu)
    }

    /// How often the program has looked into a dispatch queue for its first task.
    #[must_use]
    pub fn looks(&self) -> u64 {
        native_looks()
    }

    /// How many tasks CPUs have passed that waited in a queue, but may not run there.
    #[must_use]
    pub fn passed(&self) -> u64 {
        native_passed()
    }

    /// From now on the lines count that CPUs take from each other ([`Program::lines`]).
    pub fn count_lines(&mut self) {
        native_count_lines();
    }

    /// Lines that were taken since the last call.
    pub fn lines(&mut self) -> Lines {
        let mut lines = Lines::default();
        #[allow(unsafe_code, reason = "the program is C")]
        // SAFETY: they are written before the call returns.
        unsafe {
            lines_taken(&raw mut lines);
        }
        lines
    }
}

#[cfg(test)]
mod cost_tests;
#[cfg(test)]
mod crowd_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod quota_tests;
#[cfg(test)]
mod race_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn one_cpu() -> Program {
        let machine = Machine {
            domain_of: vec![0],
            core_of: vec![0],
            ..Machine::default()
        };
        Program::load(&machine, Policy::default())
    }

    fn born(program: &mut Program, task: u32, weight: u32) {
        let birth = Birth {
            parent: None,
            weight,
            allowed: 1,
            cgroup: 0,
        };
        program.fork(task, birth, 0, 0);
    }

    fn wake(program: &mut Program, task: u32, now: u64) -> Kicks {
        program.select(task, (0, 0), (Waker::Interrupt, false), now);
        program.enqueue(task, (0, 0), Waker::Interrupt, now)
    }

    #[test]
    fn an_idle_cpu_is_kicked_and_runs_the_task() {
        let mut program = one_cpu();
        born(&mut program, 0, 100);
        assert_eq!(wake(&mut program, 0, 5).idle, 1);
        assert_eq!(program.pick(0, 6), Some(0));
    }

    #[test]
    fn a_cpu_runs_fast_while_it_has_work_and_slowly_when_it_sleeps() {
        let mut program = one_cpu();
        born(&mut program, 0, 100);
        wake(&mut program, 0, 1_000_000_000);
        program.pick(0, 1_000_000_000);
        for ms in (1_004..1_040).step_by(4) {
            program.tick(0, ms * 1_000_000);
        }
        assert_eq!(program.speed(0), 1_024);
        // From now on it has a tenth of the CPU.
        let mut now = 1_040_000_000;
        for _ in 0..40 {
            program.sleep(0, 0, false, now);
            program.pick(0, now);
            wake(&mut program, 0, now + 9_000_000);
            program.pick(0, now + 9_000_000);
            now += 10_000_000;
        }
        assert!(
            (100..160).contains(&program.speed(0)),
            "{}",
            program.speed(0)
        );
    }

    #[test]
    fn the_balance_timer_stops_where_nothing_runs() {
        let mut program = one_cpu();
        born(&mut program, 0, 100);
        let timer = |program: &mut Program, now| {
            let before = program.timers_started();
            program.timer(0, now);
            program.timers_started() > before
        };
        assert!(!timer(&mut program, 10), "nothing runs");
        let before = program.timers_started();
        wake(&mut program, 0, 11);
        assert!(program.timers_started() > before, "a task waits");
        assert!(timer(&mut program, 12), "a task waits");
        program.pick(0, 13);
        assert!(timer(&mut program, 14), "a task runs");
        program.sleep(0, 0, false, 15);
        program.pick(0, 16);
        assert!(!timer(&mut program, 17), "nothing runs again");
    }

    #[test]
    fn two_tasks_take_turns_by_weight() {
        let mut program = one_cpu();
        for (task, weight) in [(0, 100), (1, 300)] {
            born(&mut program, task, weight);
            wake(&mut program, task, 0);
        }
        let ran = shares(&mut program);
        assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
    }

    /// How much of 4 s two tasks get that take turns on one CPU.
    fn shares(program: &mut Program) -> [u64; 2] {
        let mut ran = [0, 0];
        let mut running = program.pick(0, 0).expect("two are runnable") as usize;
        for ms in 1..=4_000_u64 {
            ran[running] += 1;
            if program.tick(0, ms * 1_000_000) {
                running = program.pick(0, ms * 1_000_000).expect("two are runnable") as usize;
            }
        }
        ran
    }

    #[test]
    fn of_two_tasks_that_share_no_core_the_one_with_the_earlier_deadline_comes_first() {
        let mut program = one_cpu();
        for (task, weight) in [(0, 100), (1, 10_000), (2, 100)] {
            born(&mut program, task, weight);
            wake(&mut program, task, 0);
        }
        assert!(program.core_sched_before(1, 0) && !program.core_sched_before(0, 1));
        assert!(!program.core_sched_before(0, 2) && !program.core_sched_before(2, 0));
    }

    /// A task of one CPU is made in a cgroup.
    fn born_in(program: &mut Program, task: u32, cgroup: u32) {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed: 1,
            cgroup,
        };
        program.fork(task, birth, 0, 0);
    }

    /// Two tasks of one CPU, each in a cgroup, the first of which is idle.
    fn beside_an_idle_cgroup() -> Program {
        let mut program = one_cpu();
        for (task, cgroup) in [(0, 1), (1, 2)] {
            program.make_cgroup(cgroup, 0, 100);
            born_in(&mut program, task, cgroup);
        }
        program.set_cgroup_idle(1, true);
        program
    }

    #[test]
    fn an_idle_cgroup_gets_what_others_leave_and_gives_way_to_whatever_wakes() {
        let mut program = beside_an_idle_cgroup();
        wake(&mut program, 0, 0);
        assert_eq!(program.pick(0, 0), Some(0));
        assert_eq!(wake(&mut program, 1, 1).preempted, 1);
        let ran = shares(&mut program);
        assert!(ran[0] < 100, "{ran:?}");
    }

    #[test]
    fn a_cgroup_that_is_no_longer_idle_gets_its_share() {
        let mut program = beside_an_idle_cgroup();
        wake(&mut program, 0, 0);
        assert_eq!(program.pick(0, 0), Some(0));
        program.set_cgroup_idle(1, false);
        wake(&mut program, 1, 0);
        let ran = shares(&mut program);
        assert!((1_950..2_050).contains(&ran[0]), "{ran:?}");
    }

    /// A new task of a cgroup wakes on CPU 0.
    fn starts_in(program: &mut Program, task: u32, cgroup: u32) {
        born_in(program, task, cgroup);
        wake(program, task, 0);
    }

    #[test]
    fn a_cgroup_beyond_all_room_counts_as_the_one_it_is_in() {
        let mut program = one_cpu();
        program.leave_one_cgroup();
        program.make_cgroup(1, 0, 300);
        program.make_cgroup(2, 1, 100);
        program.set_quota(2, Some(1_000), 0);
        assert_eq!(program.quotas_refused(), 1);
        for (task, cgroup) in [(0, 0), (1, 2)] {
            starts_in(&mut program, task, cgroup);
        }
        let ran = shares(&mut program);
        assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
        program.remove_cgroup(2);
        assert!(program.counts_are_right());
    }

    #[test]
    fn a_cgroup_shares_by_its_weight_also_in_the_place_of_one_that_was_removed() {
        let mut program = one_cpu();
        program.make_cgroup(1, 0, 500);
        program.remove_cgroup(1);
        program.make_cgroup(2, 0, 300);
        for (task, cgroup) in [(0, 0), (1, 2)] {
            starts_in(&mut program, task, cgroup);
        }
        let ran = shares(&mut program);
        assert!((2_950..3_050).contains(&ran[1]), "{ran:?}");
    }
}
