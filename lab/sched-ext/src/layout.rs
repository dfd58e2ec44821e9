//! Where fields of the kernel's structs are that the lab keeps up to date.

use std::collections::BTreeSet;

use warmq_bpf::KernelTable;
use warmq_bpf_run::Guest;

/// A field: its offset and its size in bytes. Of size 0, if this kernel does not have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    offset: u64,
    size: u64,
}

impl At {
    fn of(kernel: &KernelTable, of: &str, path: &str) -> At {
        let (offset, size) = kernel.field(of, path).unwrap_or_default();
        At { offset, size }
    }

    /// The field's address in an object.
    pub(crate) fn within(self, object: u64) -> u64 {
        object + self.offset
    }

    pub(crate) fn get(self, guest: &Guest, object: u64) -> u64 {
        guest.peek(self.within(object), self.size).unwrap_or(0)
    }

    pub(crate) fn set(self, guest: &mut Guest, object: u64, value: u64) {
        if matches!(self.size, 1 | 2 | 4 | 8) {
            // The object was allocated with all its fields.
            let stored = guest.store(self.within(object), self.size, value);
            debug_assert!(stored.is_ok(), "{self:?}");
        }
    }

    /// Writes text with its 0, cut off where the field ends.
    pub(crate) fn set_text(self, guest: &mut Guest, object: u64, text: &str) {
        let Some(bytes) = guest.bytes_mut(self.within(object), self.size) else {
            return;
        };
        bytes.fill(0);
        let most = bytes.len().saturating_sub(1).min(text.len());
        bytes[..most].copy_from_slice(&text.as_bytes()[..most]);
    }
}

/// Declares structs of fields: the lab's name of each, and its path in the kernel's struct. Those
/// with `size` the lab makes itself.
macro_rules! layouts {
    ($($of_all:ident: $name:ident of $of:literal $($size:ident)? {
        $($field:ident: $path:literal,)*
    })*) => {
        $(
            #[derive(Clone, Copy, Debug, Default)]
            pub(crate) struct $name {
                $(
                    /// Bytes of the whole struct.
                    pub(crate) $size: u64,
                )?
                $(pub(crate) $field: At,)*
            }

            impl $name {
                fn of(kernel: &KernelTable) -> $name {
                    $name {
                        $($size: kernel.structs.get($of).map_or(0, |layout| layout.size),)?
                        $($field: At::of(kernel, $of, $path),)*
                    }
                }
            }
        )*

        /// Layouts of the structs that are kept.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Layouts {
            $(pub(crate) $of_all: $name,)*
        }

        impl Layouts {
            pub(crate) fn of(kernel: &KernelTable) -> Layouts {
                Layouts {
                    $($of_all: $name::of(kernel),)*
                }
            }
        }

        /// All fields that are kept up to date, as `Offer::fields` names them.
        pub(crate) fn offered() -> BTreeSet<(String, String)> {
            let kept = [$($(($of, $path),)*)*];
            let all = kept.iter().chain(ALSO);
            all.map(|(of, path)| ((*of).to_owned(), (*path).to_owned())).collect()
        }
    };
}

layouts! {
    task: TaskFields of "task_struct" size {
        flags: "flags",
        pid: "pid",
        tgid: "tgid",
        comm: "comm",
        state: "__state",
        on_cpu: "on_cpu",
        cpu: "thread_info.cpu",
        prio: "prio",
        static_prio: "static_prio",
        policy: "policy",
        nr_cpus_allowed: "nr_cpus_allowed",
        cpus_ptr: "cpus_ptr",
        cpus_mask: "cpus_mask",
        mm: "mm",
        real_parent: "real_parent",
        group_leader: "group_leader",
        signal: "signal",
        cgroups: "cgroups",
        task_group: "sched_task_group",
        sum_exec_runtime: "se.sum_exec_runtime",
        run_delay: "sched_info.run_delay",
        pcount: "sched_info.pcount",
        last_queued: "sched_info.last_queued",
        selected_cpu: "scx.selected_cpu",
        cred: "cred",
        nvcsw: "nvcsw",
        utime: "utime",
        start_time: "start_time",
        weight: "scx.weight",
        scx_flags: "scx.flags",
        slice: "scx.slice",
        dsq_vtime: "scx.dsq_vtime",
        dsq: "scx.dsq",
        direct_dsq: "scx.ddsp_dsq_id",
        direct_flags: "scx.ddsp_enq_flags",
    }
    run_queue: RunQueueFields of "rq" {
        clock: "clock",
        clock_task: "clock_task",
        clock_pelt: "clock_pelt",
        real_time: "rt.rt_nr_running",
    }
    css_set: CssSetFields of "css_set" size {
        cgroup: "dfl_cgrp",
    }
    cgroup: CgroupFields of "cgroup" size {
        own_cgroup: "self.cgroup",
        parent: "self.parent",
        kn: "kn",
        level: "level",
        ancestors: "ancestors",
        subsys: "subsys",
    }
    node: NodeFields of "kernfs_node" size {
        id: "id",
        name: "name",
    }
    task_group: TaskGroupFields of "task_group" size {
        cgroup: "css.cgroup",
        idle: "idle",
    }
    cred: CredFields of "cred" size {
        namespace: "user_ns",
    }
    namespace: NamespaceFields of "user_namespace" size {
    }
    signal: SignalFields of "signal_struct" size {
        threads: "nr_threads",
    }
    queue: QueueFields of "scx_dispatch_q" size {
        id: "id",
    }
    init_task: InitTaskArgs of "scx_init_task_args" size {
        fork: "fork",
        cgroup: "cgroup",
    }
    exit_task: ExitTaskArgs of "scx_exit_task_args" size {
    }
    cgroup_init: CgroupInitArgs of "scx_cgroup_init_args" size {
        weight: "weight",
        period: "bw_period_us",
        quota: "bw_quota_us",
        burst: "bw_burst_us",
        idle: "sched_idle",
    }
    release: ReleaseArgs of "scx_cpu_release_args" size {
        reason: "reason",
        task: "task",
    }
    events: EventStats of "scx_event_stats" size {
        fallback: "SCX_EV_SELECT_CPU_FALLBACK",
        offline: "SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE",
        keep_last: "SCX_EV_DISPATCH_KEEP_LAST",
        skip_exiting: "SCX_EV_ENQ_SKIP_EXITING",
        refill: "SCX_EV_REFILL_SLICE_DFL",
    }
    insert: InsertArgs of "scx_bpf_dsq_insert_vtime_args" {
        dsq_id: "dsq_id",
        slice: "slice",
        vtime: "vtime",
        enq_flags: "enq_flags",
    }
    select: SelectArgs of "scx_bpf_select_cpu_and_args" {
        prev_cpu: "prev_cpu",
        wake_flags: "wake_flags",
        flags: "flags",
    }
}

/// Fields that nothing changes here, and are 0 as they are allocated: nothing disables migration,
/// and no program is in a section that softirqs may not interrupt, or that readers of RCU are in.
/// All users are root. Nobody has a policy for memory. No CPU was ever busy for so long at a
/// reduced speed that it lost idle time. No driver sets frequencies, and the device of the tick is
/// not there. No program is bypassed. A cgroup's own css begins it, and is written
/// with it. Masks and variables of the kernel have code of their own.
/// Those of performance counters and of locks in its arena the program has itself.
const ALSO: &[(&str, &str)] = &[
    ("scx_event_stats", "SCX_EV_BYPASS_ACTIVATE"),
    ("scx_event_stats", "SCX_EV_BYPASS_DISPATCH"),
    ("scx_event_stats", "SCX_EV_BYPASS_DURATION"),
    ("task_struct", "rcu_read_lock_nesting"),
    ("cgroup", "self"),
    ("cgroup_subsys_state", "cgroup"),
    ("cgroup_subsys_state", "parent"),
    ("task_struct", "mempolicy"),
    ("mempolicy", "mode"),
    ("mempolicy", "home_node"),
    ("mempolicy", "nodes.bits"),
    ("atomic_t", "counter"),
    ("rq", "lost_idle_time"),
    ("cpufreq_policy", "cpuinfo.max_freq"),
    ("cpufreq_policy", "max"),
    ("tick_device", "evtdev"),
    ("clock_event_device", "next_event"),
    ("cpumask", "bits"),
    ("cpuhp_cpu_state", "target"),
    ("cred", "uid.val"),
    ("cred", "euid.val"),
    ("cred", "egid.val"),
    ("user_namespace", "level"),
    ("user_namespace", "parent"),
    ("user_namespace", "owner.val"),
    ("bpf_perf_event_value", "counter"),
    ("bpf_perf_event_value", "enabled"),
    ("bpf_perf_event_value", "running"),
    ("scx_exit_task_args", "cancelled"),
    ("task_struct", "migration_disabled"),
    ("task_struct", "softirq_disable_cnt"),
    ("task_struct", "stime"),
    ("task_struct", "scx.disallow"),
];
