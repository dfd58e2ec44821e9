//! What is kept of a task (`struct task_struct`), and where that lies.

use warmq_kernel::{Policy, View};
use warmq_units::{Address, Bytes, CpuId, TaskId};

use super::credit::Activated;
use super::interactive_credit::Account;
use super::local::Sleeps;
use super::rules::{Rules, static_priority};

/// About `sizeof(struct task_struct)` on i386; 2.6 allocates it in slabs, not beside the stack.
pub(super) const STRUCTURE: Bytes = Bytes(1_344);
/// Offsets about where i386 has them: `state` and the flags; `prio`, `run_list`, `array`,
/// `sleep_avg` and `timestamp`; `activated`, `policy` and `time_slice`.
const STATE: u64 = 0x00;
const RUN_LIST: u64 = 0x20;
const TIME_SLICE: u64 = 0x58;

/// A task.
///
/// Invariant: `array` is the index of the array of the queue of `cpu` in which the task is, in the
/// list of `priority`, from `enqueue` to `dequeue`, also while it runs.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskState {
    // Set at fork.
    pub(super) structure: Address,
    /// Where its last slice goes when it exits; a thread's is that of its process.
    pub(super) parent: Option<TaskId>,
    /// It has an address space.
    pub(super) user: bool,

    // Changed by system calls, and copied here to see what changed.
    pub(super) nice: i8,
    pub(super) policy: Policy,

    // Changed by sleeping, waking and running.
    /// `prio`.
    pub(super) priority: usize,
    /// In ns.
    pub(super) sleep_avg: u64,
    /// Of 2.6.4.
    pub(super) interactive_credit: i32,
    /// What the clock read when it was woken, picked or left its CPU last, in ns.
    pub(super) timestamp: u64,
    /// What the clock read when it left its CPU last, in ns.
    pub(super) last_ran: u64,
    pub(super) activated: Activated,
    /// What it slept in last was data on a socket.
    pub(super) network: bool,
    /// Its recent sleeps, where local thresholds are estimated.
    pub(super) sleeps: Sleeps,

    // Changed by the tick, forks and exits.
    /// What is left of its slice, in jiffies (`time_slice`).
    pub(super) slice: u64,
    /// The slice is the one that it got at fork (`first_time_slice`).
    pub(super) first_slice: bool,
    pub(super) exited: bool,

    // Changed by queueing.
    pub(super) cpu: CpuId,
    pub(super) array: Option<usize>,
    /// It was queued here while another CPU still switched away from it, which offers it again when
    /// it is through.
    pub(super) displaced: bool,
}

impl TaskState {
    /// A task that nothing is known of but where its structure lies.
    pub(super) fn new(structure: Address) -> TaskState {
        TaskState {
            structure,
            policy: Policy::Other,
            priority: static_priority(0),
            activated: Activated::No,
            ..TaskState::default()
        }
    }

    /// Takes over what system calls have set.
    pub(super) fn follow(&mut self, view: View<'_>) {
        self.policy = view.policy();
        self.nice = nice_of(view);
        self.user = view.mm().is_some();
    }

    /// What sleeps and runs change in 2.6.4.
    pub(super) fn account(&self) -> Account {
        Account {
            sleep_avg: self.sleep_avg,
            credit: self.interactive_credit,
        }
    }

    pub(super) fn set_account(&mut self, account: Account) {
        self.sleep_avg = account.sleep_avg;
        self.interactive_credit = account.credit;
    }

    /// Whether its sleeps earn nothing (`SCHED_BATCH`; 2.6.16 has no `SCHED_IDLE`).
    pub(super) fn is_batch(&self) -> bool {
        matches!(self.policy, Policy::Batch | Policy::Idle)
    }

    /// Whether it is real-time (`rt_task()`).
    pub(super) fn is_real_time(&self) -> bool {
        real_time_priority(self.policy).is_some()
    }

    /// What its priority would be if it were computed now (`effective_prio()`).
    pub(super) fn effective_priority(&self, rules: &Rules) -> usize {
        let dynamic = || rules.priority(self.nice, self.sleep_avg);
        real_time_priority(self.policy).unwrap_or_else(dynamic)
    }

    /// The line of `state`.
    pub(super) fn state_line(&self) -> Address {
        self.structure + STATE
    }

    /// The line of the links, `sleep_avg` and `timestamp`.
    pub(super) fn list_line(&self) -> Address {
        self.structure + RUN_LIST
    }

    /// The line of the slice.
    pub(super) fn slice_line(&self) -> Address {
        self.structure + TIME_SLICE
    }
}

/// The nice value of a task. One of `SCHED_IDLE`, which 2.6.16 does not have, has the worst.
pub(super) fn nice_of(view: View<'_>) -> i8 {
    match view.policy() {
        Policy::Idle => 19,
        _ => view.nice(),
    }
}

/// The priority of a real-time policy: 0 is the best of 0 to 98.
pub(super) fn real_time_priority(policy: Policy) -> Option<usize> {
    Some(99 - usize::from(policy.real_time()?.clamp(1, 99)))
}
