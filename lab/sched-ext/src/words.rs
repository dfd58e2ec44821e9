//! Numbers of the kernel's interface (include/linux/sched/ext.h, kernel/sched/ext/internal.h), the
//! same in 6.18 and 7.3 where they are constants here.

use warmq_bpf::KernelTable;

/// `SCX_SLICE_DFL`, in ns.
pub(crate) const SLICE_DEFAULT: u64 = 20_000_000;
/// `SCX_SLICE_INF`: no slice ends.
pub(crate) const SLICE_ENDLESS: u64 = u64::MAX;
/// `SCX_DSP_MAX_LOOPS`: how often `ops.dispatch` is called for one pick.
pub(crate) const MOST_DISPATCHES: u32 = 32;
/// `SCX_DSP_DFL_MAX_BATCH`.
pub(crate) const BATCH_DEFAULT: u64 = 32;
/// `SCX_WATCHDOG_MAX_TIMEOUT`, in ms.
pub(crate) const TIMEOUT_DEFAULT: u64 = 30_000;

/// `enum scx_dsq_id_flags`.
pub(crate) mod dsq {
    pub(crate) const BUILTIN: u64 = 1 << 63;
    pub(crate) const INVALID: u64 = BUILTIN;
    pub(crate) const GLOBAL: u64 = BUILTIN | 1;
    pub(crate) const LOCAL: u64 = BUILTIN | 2;
    pub(crate) const LOCAL_ON: u64 = BUILTIN | 1 << 62;
    const CPU_MASK: u64 = 0xffff_ffff;

    /// The CPU whose own queue a number says, which the machine may not have.
    pub(crate) fn on_cpu(id: u64) -> Option<u64> {
        (id & LOCAL_ON == LOCAL_ON).then_some(id & CPU_MASK)
    }
}

/// `enum scx_enq_flags`, which differ from kernel to kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Enq {
    pub(crate) wakeup: u64,
    pub(crate) head: u64,
    pub(crate) cpu_selected: u64,
    pub(crate) preempt: u64,
    pub(crate) reenqueued: u64,
    /// `SCX_ENQ_IMMED`: run at once, or come back. 0 in kernels that do not have it.
    pub(crate) immediate: u64,
    /// `SCX_TASK_IMMED` of `scx.flags`.
    pub(crate) task_immediate: u64,
    /// `SCX_TASK_IN_CUSTODY`: the program is notified of each task that leaves it. 0 in kernels
    /// that notify it only of tasks that are dequeued while they are in no queue.
    pub(crate) custody: u64,
    /// `SCX_DEQ_SCHED_CHANGE`: a task that is dequeued does not sleep.
    pub(crate) change: u64,
    pub(crate) last: u64,
    /// `ENQUEUE_RESTORE`: an attribute has changed.
    pub(crate) restore: u64,
}

impl Enq {
    pub(crate) fn of(kernel: &KernelTable) -> Enq {
        let flag = |name: &str| kernel.enum_value(name).unwrap_or(0) as u64;
        Enq {
            wakeup: flag("SCX_ENQ_WAKEUP"),
            head: flag("SCX_ENQ_HEAD"),
            cpu_selected: flag("SCX_ENQ_CPU_SELECTED"),
            preempt: flag("SCX_ENQ_PREEMPT"),
            reenqueued: flag("SCX_ENQ_REENQ"),
            immediate: flag("SCX_ENQ_IMMED"),
            task_immediate: flag("SCX_TASK_IMMED"),
            custody: flag("SCX_TASK_IN_CUSTODY"),
            change: flag("SCX_DEQ_SCHED_CHANGE"),
            last: flag("SCX_ENQ_LAST"),
            restore: 1 << 1,
        }
    }
}

/// `enum scx_deq_flags`: `DEQUEUE_SLEEP`, and `DEQUEUE_SAVE` of a change of attributes.
pub(crate) mod deq {
    pub(crate) const SLEEP: u64 = 1;
    pub(crate) const SAVE: u64 = 1 << 1;
}

/// `SCX_ECODE_ACT_RESTART`, in the code of an exit: the loader is to start the program anew.
pub(crate) const ACT_RESTART: u64 = 1 << 48;

/// `enum scx_wake_flags`.
pub(crate) mod wake {
    pub(crate) const FORK: u64 = 1 << 2;
    pub(crate) const WAKEUP: u64 = 1 << 3;
    pub(crate) const SYNC: u64 = 1 << 4;
}

/// `enum scx_kick_flags`.
pub(crate) mod kick {
    pub(crate) const IDLE: u64 = 1;
    pub(crate) const PREEMPT: u64 = 1 << 1;
    pub(crate) const WAIT: u64 = 1 << 2;
}

/// `enum scx_pick_idle_cpu_flags`.
pub(crate) mod pick {
    pub(crate) const CORE: u64 = 1;
    pub(crate) const IN_NODE: u64 = 1 << 1;
}

/// `enum scx_ops_flags`.
pub(crate) mod ops {
    pub(crate) const KEEP_BUILTIN_IDLE: u64 = 1;
    pub(crate) const ENQ_LAST: u64 = 1 << 1;
    pub(crate) const ENQ_EXITING: u64 = 1 << 2;
    pub(crate) const ALLOW_QUEUED_WAKEUP: u64 = 1 << 5;
    pub(crate) const BUILTIN_IDLE_PER_NODE: u64 = 1 << 6;
    pub(crate) const ALWAYS_ENQ_IMMED: u64 = 1 << 7;
}

/// `PF_...` of `task_struct.flags`.
pub(crate) mod flags {
    pub(crate) const IDLE: u64 = 2;
    pub(crate) const EXITING: u64 = 4;
    pub(crate) const KTHREAD: u64 = 0x0020_0000;
}

/// `TASK_...` of `task_struct.__state`.
pub(crate) mod state {
    pub(crate) const RUNNING: u64 = 0;
    pub(crate) const INTERRUPTIBLE: u64 = 1;
    pub(crate) const UNINTERRUPTIBLE: u64 = 2;
    pub(crate) const DEAD: u64 = 0x80;
}

/// `SCHED_...` of `task_struct.policy`.
pub(crate) mod policy {
    pub(crate) const NORMAL: u64 = 0;
    pub(crate) const FIFO: u64 = 1;
    pub(crate) const ROUND_ROBIN: u64 = 2;
    pub(crate) const BATCH: u64 = 3;
    pub(crate) const IDLE: u64 = 5;
    pub(crate) const DEADLINE: u64 = 6;
}

pub(crate) const EINVAL: u64 = -22_i64 as u64;
pub(crate) const EEXIST: u64 = -17_i64 as u64;
pub(crate) const EBUSY: u64 = -16_i64 as u64;
pub(crate) const ENOENT: u64 = -2_i64 as u64;
