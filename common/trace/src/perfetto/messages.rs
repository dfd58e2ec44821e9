//! The few of Perfetto's messages that are read, of which some are written, too, by hand: field
//! numbers and types are those of `protos/perfetto/trace/` in Perfetto's repository, where they
//! never change. Texts are bytes: names of tasks need not be text.

// The messages and their fields are Perfetto's, whose repository says what they mean.
#![allow(missing_docs)]

use prost::Message;

/// Declares messages as their `.proto` files do: each field with its label, type and number.
macro_rules! messages {
    ($($(#[$doc:meta])* $seen:vis $name:ident { $($fields:tt)* })*) => {
        $(messages!(@ [$(#[$doc])* $seen $name] {} $($fields)*);)*
    };
    (@ [$(#[$doc:meta])* $seen:vis $name:ident] { $($made:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Message)]
        $seen struct $name {
            $($made)*
        }
    };
    (@ $of:tt $made:tt $field:ident: $label:ident $kind:ident = $tag:tt, $($more:tt)*) => {
        messages!($kind: $of $made [$label $field $tag] $($more)*);
    };
    (int32: $($all:tt)*) => { messages!(= [int32] [i32] $($all)*); };
    (int64: $($all:tt)*) => { messages!(= [int64] [i64] $($all)*); };
    (uint32: $($all:tt)*) => { messages!(= [uint32] [u32] $($all)*); };
    (uint64: $($all:tt)*) => { messages!(= [uint64] [u64] $($all)*); };
    (bool: $($all:tt)*) => { messages!(= [bool] [bool] $($all)*); };
    (string: $($all:tt)*) => { messages!(= [string] [String] $($all)*); };
    (bytes: $($all:tt)*) => { messages!(= [bytes = "vec"] [Vec<u8>] $($all)*); };
    ($message:ident: $($all:tt)*) => { messages!(= [message] [$message] $($all)*); };
    (= $kind:tt [$($of:tt)*] $all:tt $made:tt [optional $($field:tt)*] $($more:tt)*) => {
        messages!(+ optional $kind [Option<$($of)*>] $all $made [$($field)*] $($more)*);
    };
    (= $kind:tt [$($of:tt)*] $all:tt $made:tt [repeated $($field:tt)*] $($more:tt)*) => {
        messages!(+ repeated $kind [Vec<$($of)*>] $all $made [$($field)*] $($more)*);
    };
    (+ $label:ident [$($kind:tt)*] [$($type:tt)*] $all:tt { $($made:tt)* }
        [$field:ident $tag:tt] $($more:tt)*) => {
        messages!(@ $all {
            $($made)*
            #[prost($($kind)*, $label, tag = $tag)]
            pub $field: $($type)*,
        } $($more)*);
    };
}
pub(super) use messages;

messages! {
    /// `trace_packet.proto`, without what is in its bundle of events.
    pub Packet {
        events: optional bytes = 1,
        process_tree: optional ProcessTree = 2,
        ftrace_stats: optional FtraceStats = 34,
        system_info: optional SystemInfo = 45,
        compressed: optional bytes = 50,
        machine: optional uint32 = 98,
    }

    /// When the events of a bundle were.
    pub BundleTimes {
        cpu: optional uint32 = 1,
        events: repeated EventTime = 2,
        compact: optional CompactTimes = 4,
    }

    pub EventTime {
        timestamp: optional uint64 = 1,
    }

    pub CompactTimes {
        switch_timestamp: repeated uint64 = 1,
        waking_timestamp: repeated uint64 = 7,
    }

    /// `trace_packet.proto`, of which only the events are wanted.
    pub PacketEvents {
        events: optional Bundle = 1,
    }

    /// `ps/process_tree.proto`.
    pub ProcessTree {
        processes: repeated Process = 1,
        threads: repeated Thread = 2,
    }

    pub Process {
        pid: optional int32 = 1,
        ppid: optional int32 = 2,
        cmdline: repeated string = 3,
    }

    pub Thread {
        tid: optional int32 = 1,
        name: optional bytes = 2,
        tgid: optional int32 = 3,
    }

    /// `ftrace/ftrace_stats.proto`: what the kernel's buffers counted at the beginning or the end.
    pub FtraceStats {
        phase: optional int32 = 1,
        cpus: repeated CpuStats = 2,
    }

    pub CpuStats {
        overrun: optional uint64 = 3,
    }

    /// `system_info.proto`.
    pub SystemInfo {
        utsname: optional Utsname = 1,
    }

    pub Utsname {
        release: optional string = 3,
    }

    /// `ftrace/ftrace_event_bundle.proto`: events of a CPU, in the order of time.
    pub Bundle {
        cpu: optional uint32 = 1,
        events: repeated Event = 2,
        lost_events: optional bool = 3,
        compact: optional Compact = 4,
        clock: optional int32 = 5,
    }

    /// Switches and wakings as columns; times are differences to the one before, and names places
    /// in the table.
    pub Compact {
        switch_timestamp: repeated uint64 = 1,
        switch_prev_state: repeated int64 = 2,
        switch_next_pid: repeated int32 = 3,
        switch_next_prio: repeated int32 = 4,
        names: repeated bytes = 5,
        switch_next_name: repeated uint32 = 6,
        waking_timestamp: repeated uint64 = 7,
        waking_pid: repeated int32 = 8,
        waking_prio: repeated int32 = 10,
        waking_name: repeated uint32 = 11,
        waking_flags: repeated uint32 = 12,
    }

    /// `ftrace/ftrace_event.proto`; `pid` is the thread that ran.
    pub Event {
        timestamp: optional uint64 = 1,
        pid: optional uint32 = 2,
        sched_switch: optional Switch = 4,
        common_flags: optional uint32 = 5,
        cpu_idle: optional CpuIdle = 13,
        sched_wakeup: optional Wakeup = 17,
        sched_waking: optional Wakeup = 20,
        softirq_entry: optional Number = 24,
        softirq_exit: optional Number = 25,
        irq_handler_entry: optional Number = 36,
        irq_handler_exit: optional Number = 37,
        cgroup_attach_task: optional Attach = 67,
        sched_wakeup_new: optional Wakeup = 114,
        task_newtask: optional NewTask = 235,
        task_rename: optional Rename = 236,
        sched_process_exec: optional Exec = 237,
        sched_process_exit: optional Nothing = 238,
        sched_process_fork: optional Fork = 239,
        sched_migrate_task: optional Migrate = 491,
    }

    /// An event of which only its being there counts.
    pub Nothing {}

    /// An event whose first field is an interrupt or a vector.
    pub Number {
        number: optional int32 = 1,
    }

    /// `ftrace/sched.proto`.
    pub Switch {
        prev_comm: optional bytes = 1,
        prev_pid: optional int32 = 2,
        prev_prio: optional int32 = 3,
        prev_state: optional int64 = 4,
        next_comm: optional bytes = 5,
        next_pid: optional int32 = 6,
        next_prio: optional int32 = 7,
    }

    pub Wakeup {
        comm: optional bytes = 1,
        pid: optional int32 = 2,
        prio: optional int32 = 3,
        success: optional int32 = 4,
        target_cpu: optional int32 = 5,
    }

    pub Migrate {
        comm: optional bytes = 1,
        pid: optional int32 = 2,
        prio: optional int32 = 3,
        orig_cpu: optional int32 = 4,
        dest_cpu: optional int32 = 5,
    }

    pub Fork {
        parent_comm: optional bytes = 1,
        parent_pid: optional int32 = 2,
        child_comm: optional bytes = 3,
        child_pid: optional int32 = 4,
    }

    pub Exec {
        pid: optional int32 = 2,
        old_pid: optional int32 = 3,
    }

    /// `ftrace/task.proto`.
    pub NewTask {
        pid: optional int32 = 1,
        comm: optional bytes = 2,
        clone_flags: optional uint64 = 3,
    }

    pub Rename {
        pid: optional int32 = 1,
        newcomm: optional bytes = 3,
    }

    /// `ftrace/cgroup.proto`.
    pub Attach {
        pid: optional int32 = 3,
        dst_path: optional string = 7,
    }

    /// `ftrace/power.proto`.
    pub CpuIdle {
        state: optional uint32 = 1,
        cpu_id: optional uint32 = 2,
    }
}
