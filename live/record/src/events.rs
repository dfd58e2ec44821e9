//! Which events of the kernel are recorded.

/// What to record. Switches, wakeups, migrations and the lives of tasks always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The kernel's buffer for each CPU, in KiB. While it is less than half full, nothing of the
    /// recorder runs. A switch needs about 70 bytes, and a wakeup 80.
    pub buffer_kb_per_cpu: u32,
    /// Interrupts and softirqs.
    pub interrupts: bool,
    /// Packets, drops, and polls of network cards.
    pub network: bool,
    /// Idle states.
    pub idle: bool,
    /// Spin locks. No tracepoint says for how long one is held, so this only adds a line to
    /// [`crate::Recording::missing`].
    pub locks: bool,
}

impl Default for Wanted {
    /// 4 MiB for each CPU, and all but the locks.
    fn default() -> Wanted {
        Wanted {
            buffer_kb_per_cpu: 4096,
            interrupts: true,
            network: true,
            idle: true,
            locks: false,
        }
    }
}

/// Who runs, and who wakes whom. `sched_process_exit` is not among them: it comes when a task
/// begins to exit and may still sleep; the switch away from a dead task says when it is over.
const TASKS: &[&str] = &[
    "sched/sched_switch",
    "sched/sched_waking",
    "sched/sched_wakeup",
    "sched/sched_wakeup_new",
    "sched/sched_migrate_task",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "task/task_rename",
];
const INTERRUPTS: &[&str] = &[
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq_vectors/local_timer_entry",
    "irq_vectors/local_timer_exit",
    "irq_vectors/reschedule_entry",
    "irq_vectors/reschedule_exit",
    "irq_vectors/call_function_entry",
    "irq_vectors/call_function_exit",
    "irq_vectors/call_function_single_entry",
    "irq_vectors/call_function_single_exit",
    "ipi/ipi_send_cpu",
];
const NETWORK: &[&str] = &["napi/napi_poll", "net/netif_receive_skb", "skb/kfree_skb"];
const IDLE: &[&str] = &["power/cpu_idle"];

impl Wanted {
    /// The events, as `SYSTEM/NAME`.
    pub fn events(&self) -> impl Iterator<Item = &'static str> {
        let chosen = |wanted: bool, events: &'static [&'static str]| match wanted {
            true => events,
            false => &[],
        };
        [
            TASKS,
            chosen(self.interrupts, INTERRUPTS),
            chosen(self.network, NETWORK),
            chosen(self.idle, IDLE),
        ]
        .into_iter()
        .flatten()
        .copied()
    }
}
