//! The few of Perfetto's messages that are read, of which some are written, too, by hand: field
//! numbers and types are those of `protos/perfetto/trace/` in Perfetto's repository, where they
//! never change. Texts are bytes: names of tasks need not be text.

// The messages and their fields are Perfetto's, whose repository says what they mean.
#![allow(missing_docs)]

use prost::Message;

/// `trace_packet.proto`, without its events, which are found by their places.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    #[prost(message, optional, tag = "2")]
    pub process_tree: Option<ProcessTree>,
    #[prost(message, optional, tag = "34")]
    pub ftrace_stats: Option<FtraceStats>,
    #[prost(message, optional, tag = "45")]
    pub system_info: Option<SystemInfo>,
}

/// `ps/process_tree.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub ppid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub cmdline: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub tid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub name: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "3")]
    pub tgid: Option<i32>,
}

/// `ftrace/ftrace_stats.proto`: what the kernel's buffers counted at the beginning or the end.
#[derive(Clone, PartialEq, Message)]
pub struct FtraceStats {
    #[prost(int32, optional, tag = "1")]
    pub phase: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub cpus: Vec<CpuStats>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CpuStats {
    #[prost(uint64, optional, tag = "3")]
    pub overrun: Option<u64>,
}

/// `system_info.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    pub utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Utsname {
    #[prost(string, optional, tag = "3")]
    pub release: Option<String>,
}

/// `ftrace/ftrace_event_bundle.proto`: events of a CPU, in the order of time.
#[derive(Clone, PartialEq, Message)]
pub struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    pub cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub events: Vec<Event>,
    #[prost(bool, optional, tag = "3")]
    pub lost_events: Option<bool>,
    #[prost(message, optional, tag = "4")]
    pub compact: Option<Compact>,
    #[prost(int32, optional, tag = "5")]
    pub clock: Option<i32>,
}

/// Switches and wakings as columns; times are differences to the one before, and names places in
/// the table.
#[derive(Clone, PartialEq, Message)]
pub struct Compact {
    #[prost(uint64, repeated, tag = "1")]
    pub switch_timestamp: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub switch_prev_state: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    pub switch_next_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "4")]
    pub switch_next_prio: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "5")]
    pub names: Vec<Vec<u8>>,
    #[prost(uint32, repeated, tag = "6")]
    pub switch_next_name: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub waking_timestamp: Vec<u64>,
    #[prost(int32, repeated, tag = "8")]
    pub waking_pid: Vec<i32>,
    #[prost(int32, repeated, tag = "10")]
    pub waking_prio: Vec<i32>,
    #[prost(uint32, repeated, tag = "11")]
    pub waking_name: Vec<u32>,
    #[prost(uint32, repeated, tag = "12")]
    pub waking_flags: Vec<u32>,
}

/// `ftrace/ftrace_event.proto`; `pid` is the thread that ran.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(uint64, optional, tag = "1")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub sched_switch: Option<Switch>,
    #[prost(uint32, optional, tag = "5")]
    pub common_flags: Option<u32>,
    #[prost(message, optional, tag = "13")]
    pub cpu_idle: Option<CpuIdle>,
    #[prost(message, optional, tag = "17")]
    pub sched_wakeup: Option<Wakeup>,
    #[prost(message, optional, tag = "20")]
    pub sched_waking: Option<Wakeup>,
    #[prost(message, optional, tag = "24")]
    pub softirq_entry: Option<Number>,
    #[prost(message, optional, tag = "25")]
    pub softirq_exit: Option<Number>,
    #[prost(message, optional, tag = "36")]
    pub irq_handler_entry: Option<Number>,
    #[prost(message, optional, tag = "37")]
    pub irq_handler_exit: Option<Number>,
    #[prost(message, optional, tag = "67")]
    pub cgroup_attach_task: Option<Attach>,
    #[prost(message, optional, tag = "114")]
    pub sched_wakeup_new: Option<Wakeup>,
    #[prost(message, optional, tag = "235")]
    pub task_newtask: Option<NewTask>,
    #[prost(message, optional, tag = "236")]
    pub task_rename: Option<Rename>,
    #[prost(message, optional, tag = "237")]
    pub sched_process_exec: Option<Exec>,
    #[prost(message, optional, tag = "238")]
    pub sched_process_exit: Option<Nothing>,
    #[prost(message, optional, tag = "239")]
    pub sched_process_fork: Option<Fork>,
    #[prost(message, optional, tag = "491")]
    pub sched_migrate_task: Option<Migrate>,
}

/// An event of which only its being there counts.
#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

/// An event whose first field is an interrupt or a vector.
#[derive(Clone, PartialEq, Message)]
pub struct Number {
    #[prost(int32, optional, tag = "1")]
    pub number: Option<i32>,
}

/// `ftrace/sched.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct Switch {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub prev_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    pub prev_state: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub next_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    pub next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    pub next_prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Wakeup {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub target_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Migrate {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    pub orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    pub dest_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Fork {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub parent_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "2")]
    pub parent_pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub child_comm: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "4")]
    pub child_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Exec {
    #[prost(int32, optional, tag = "2")]
    pub pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    pub old_pid: Option<i32>,
}

/// `ftrace/task.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct NewTask {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub comm: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "3")]
    pub clone_flags: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Rename {
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub newcomm: Option<Vec<u8>>,
}

/// `ftrace/cgroup.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct Attach {
    #[prost(int32, optional, tag = "3")]
    pub pid: Option<i32>,
    #[prost(string, optional, tag = "7")]
    pub dst_path: Option<String>,
}

/// `ftrace/power.proto`.
#[derive(Clone, PartialEq, Message)]
pub struct CpuIdle {
    #[prost(uint32, optional, tag = "1")]
    pub state: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub cpu_id: Option<u32>,
}
