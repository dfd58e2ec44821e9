//! The events: their names, and what is written of each.
//!
//! This table is where everything about the form of events comes from: the C structs that the BPF
//! program fills (`build.rs` writes them), and the texts by which a recording's reader finds its
//! way in them. Names and fields are those of the kernel's own events (`events/SYSTEM/NAME/format`
//! of tracefs), as far as they are read; types may be smaller.

// Both the program and its build script use this file, and each only a part of it.
#![allow(dead_code)]

use std::fmt::Write as _;

/// A field of an event.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its type in C.
    pub kind: Kind,
    /// Its name in the kernel.
    pub name: &'static str,
}

/// The types of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    U8,
    U16,
    U32,
    S32,
    /// The name of a task.
    Comm,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub system: &'static str,
    pub name: &'static str,
    pub fields: &'static [Field],
    /// How the kernel prints it, where the names of numbers are in that.
    pub print: &'static str,
}

/// Fields, each with its type.
macro_rules! fields {
    ($($field:ident: $kind:ident),*) => {
        &[$(Field { kind: Kind::$kind, name: stringify!($field) }),*]
    };
}

/// A table of events, a row each: system, name, fields, and how it is printed if that is read.
macro_rules! events {
    (printed) => { "" };
    (printed $print:ident) => { $print };
    ($($system:ident $name:ident { $($fields:tt)* } $($print:ident)?;)*) => {
        &[$(Event {
            system: stringify!($system),
            name: stringify!($name),
            fields: fields!($($fields)*),
            print: events!(printed $($print)?),
        }),*]
    };
}

/// The fields that begin all events.
pub const COMMON: &[Field] = fields!(
    common_type: U16,
    common_flags: U8,
    common_preempt_count: U8,
    common_pid: S32
);

/// The bits of `prev_state` (`TASK_REPORT` in the kernel's `include/linux/sched.h`).
const STATES: &str = "__print_flags(REC->prev_state, \"|\", { 0x0001, \"S\" }, { 0x0002, \"D\" }, \
    { 0x0004, \"T\" }, { 0x0008, \"t\" }, { 0x0010, \"X\" }, { 0x0020, \"Z\" }, { 0x0040, \"P\" }, \
    { 0x0080, \"I\" })";

/// All events.
pub const EVENTS: &[Event] = events! {
    sched sched_switch { prev_comm: Comm, prev_pid: S32, prev_state: U32, next_comm: Comm, next_pid: S32 } STATES;
    sched sched_waking { comm: Comm, pid: S32, target_cpu: S32 };
    sched sched_wakeup { comm: Comm, pid: S32, target_cpu: S32 };
    sched sched_wakeup_new { comm: Comm, pid: S32, target_cpu: S32 };
    sched sched_migrate_task { comm: Comm, pid: S32, orig_cpu: S32, dest_cpu: S32 };
    sched sched_process_fork { parent_comm: Comm, parent_pid: S32, child_comm: Comm, child_pid: S32 };
    sched sched_process_exec { pid: S32, old_pid: S32 };
    task task_rename { pid: S32, newcomm: Comm };
    irq irq_handler_entry { irq: S32 };
    irq irq_handler_exit { irq: S32 };
    irq softirq_entry { vec: U32 };
    irq softirq_exit { vec: U32 };
    irq_vectors local_timer_entry { vector: S32 };
    irq_vectors local_timer_exit { vector: S32 };
    irq_vectors reschedule_entry { vector: S32 };
    irq_vectors reschedule_exit { vector: S32 };
    irq_vectors call_function_entry { vector: S32 };
    irq_vectors call_function_exit { vector: S32 };
    irq_vectors call_function_single_entry { vector: S32 };
    irq_vectors call_function_single_exit { vector: S32 };
    // The callback is only asked for whether there is one.
    ipi ipi_send_cpu { cpu: U32, callback: U32 };
    napi napi_poll { work: S32, budget: S32 };
    net netif_receive_skb { len: U32 };
    // Those without a reason are left out.
    skb kfree_skb { reason: U32 };
    power cpu_idle { state: U32 };
};

impl Kind {
    fn size(self) -> usize {
        match self {
            Kind::U8 => 1,
            Kind::U16 => 2,
            Kind::U32 | Kind::S32 => 4,
            Kind::Comm => 16,
        }
    }

    fn align(self) -> usize {
        match self {
            Kind::Comm => 1,
            other => other.size(),
        }
    }

    fn in_c(self) -> &'static str {
        match self {
            Kind::U8 => "u8",
            Kind::U16 => "u16",
            Kind::U32 => "u32",
            Kind::S32 => "s32",
            Kind::Comm => "char",
        }
    }
}

impl Field {
    /// `char comm[16]`.
    fn declared(&self) -> String {
        match self.kind {
            Kind::Comm => format!("char {}[{}]", self.name, self.kind.size()),
            other => format!("{} {}", other.in_c(), self.name),
        }
    }
}

impl Event {
    /// `SYSTEM/NAME`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.system, self.name)
    }

    /// Its fields and their offsets, aligned as C aligns them.
    fn places(&self) -> Vec<(Field, usize)> {
        let (mut places, mut end) = (Vec::new(), 0_usize);
        for field in COMMON.iter().chain(self.fields) {
            let offset = end.next_multiple_of(field.kind.align());
            places.push((*field, offset));
            end = offset + field.kind.size();
        }
        places
    }

    /// Its description, as tracefs has one for each event. `id` is its `common_type`.
    pub fn format(&self, id: u16) -> String {
        let mut text = format!("name: {}\nID: {id}\nformat:\n", self.name);
        for (field, offset) in self.places() {
            let (declared, size) = (field.declared(), field.kind.size());
            let signed = u8::from(field.kind == Kind::S32);
            let _ = writeln!(
                text,
                "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
            );
        }
        let _ = writeln!(text, "\nprint fmt: \"\", {}", self.print);
        text
    }

    /// Its struct in C, which says itself where its fields must be.
    fn c_struct(&self) -> String {
        let name = self.name;
        let mut text = format!("struct {name}_event {{\n\tstruct event_head head;\n");
        for field in self.fields {
            let _ = writeln!(text, "\t{};", field.declared());
        }
        text.push_str("};\n");
        for (field, offset) in self.places().into_iter().skip(COMMON.len()) {
            let _ = writeln!(
                text,
                "_Static_assert(__builtin_offsetof(struct {name}_event, {}) == EVENT_AT + {offset}, \"\");",
                field.name
            );
        }
        text
    }
}

/// The number of an event, its `common_type`: from 1 on.
pub fn id(index: usize) -> u16 {
    index as u16 + 1
}

/// What the BPF program knows of all this, in C.
pub fn c_header() -> String {
    let mut text =
        String::from("/* Written by build.rs from src/table.rs. */\n\nenum event_type {\n");
    for (index, event) in EVENTS.iter().enumerate() {
        let _ = writeln!(text, "\tEVENT_{} = {},", event.name, id(index));
    }
    text.push_str("};\n\n");
    for event in EVENTS {
        text.push_str(&event.c_struct());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use warmq_record::{Gatherer, Tasks, Wanted};
    use warmq_trace::Record;
    use warmq_units::{Instant, TaskId};

    use super::*;

    fn formats() -> Vec<(String, String)> {
        let events = EVENTS.iter().enumerate();
        events
            .map(|(index, event)| (event.path(), event.format(id(index))))
            .collect()
    }

    /// The bytes of an event, its fields by name; others are 0, and names are `task`.
    fn bytes(name: &str, values: &[(&str, u32)]) -> Vec<u8> {
        let index = EVENTS.iter().position(|event| event.name == name).unwrap();
        let event = &EVENTS[index];
        let mut bytes = Vec::new();
        for (field, offset) in event.places() {
            bytes.resize(offset + field.kind.size(), 0);
            let value = match field.name {
                "common_type" => id(index).into(),
                name => {
                    let given = values.iter().find(|(known, _)| *known == name);
                    given.map_or(0, |(_, value)| *value)
                }
            };
            match field.kind {
                Kind::Comm => bytes[offset..offset + 4].copy_from_slice(b"task"),
                kind => {
                    let size = kind.size();
                    bytes[offset..].copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
        }
        bytes
    }

    #[test]
    fn the_reader_understands_every_event_that_is_wanted() {
        let names: Vec<String> = EVENTS.iter().map(Event::path).collect();
        for wanted in Wanted::default().events() {
            assert!(names.iter().any(|name| name == wanted), "{wanted}");
        }
        let mut gatherer = Gatherer::start(&Wanted::default(), formats(), Vec::new());
        gatherer.note_end();
        let recording = gatherer.finish(0).unwrap();
        let unread = |missing: &&String| missing.contains("format");
        assert_eq!(recording.missing().iter().find(unread), None);
    }

    /// Threads that no machine has: their numbers are above all that a kernel gives.
    const A: u32 = 5_000_001;
    const B: u32 = 5_000_002;

    #[test]
    fn what_is_written_by_the_table_is_read_as_it_was_meant() {
        let mut gatherer = Gatherer::start(&Wanted::default(), formats(), Vec::new());
        let switch = |prev, state, next| {
            let values = [
                ("common_pid", prev),
                ("prev_pid", prev),
                ("prev_state", state),
                ("next_pid", next),
            ];
            bytes("sched_switch", &values)
        };
        gatherer.event(0, 1_000, &switch(0, 0, A));
        gatherer.event(0, 2_000, &switch(A, 1, B));
        gatherer.event(
            0,
            3_000,
            &bytes(
                "sched_waking",
                &[("common_pid", B), ("common_flags", 0x08), ("pid", A)],
            ),
        );
        gatherer.event(
            0,
            4_000,
            &bytes(
                "sched_wakeup",
                &[("common_pid", B), ("pid", A), ("target_cpu", 1)],
            ),
        );
        gatherer.event(
            0,
            5_000,
            &bytes("cpu_idle", &[("common_pid", B), ("state", u32::MAX)]),
        );
        gatherer.note_end();
        let (recording, mut tasks) = (gatherer.finish(0).unwrap(), Tasks::new());
        let mut lines = String::new();
        let mut print = |at: Instant, record: Record| {
            if !matches!(record, Record::Steal { .. }) {
                let _ = writeln!(lines, "{:>5} {record:?}", at.0 / 1_000);
            }
        };
        recording.records(&mut tasks, 0, &mut print);
        let names: Vec<(TaskId, u32, _)> = tasks.iter().collect();
        let _ = writeln!(lines, "{names:?}");
        insta::assert_snapshot!(lines);
    }

    #[test]
    fn a_format_is_written_as_tracefs_writes_it() {
        insta::assert_snapshot!(EVENTS[0].format(id(0)));
    }
}
