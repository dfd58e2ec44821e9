use proptest::prelude::*;
use warmq_trace::{Cause, Checker, Comm, Context, Interrupt, Observer, State};
use warmq_units::TaskId;

use super::*;
use crate::page::tests::{HEADER_PAGE, Pages};

/// A kernel of our own, whose fields are at other places than those of the kernels that there are.
const FIELDS: &[(&str, u16, &[&str])] = &[
    (
        "sched/sched_switch",
        300,
        &[
            "next_comm",
            "next_pid",
            "prev_state",
            "prev_comm",
            "prev_pid",
        ],
    ),
    ("sched/sched_waking", 301, &["pid", "comm"]),
    ("sched/sched_wakeup", 302, &["target_cpu", "pid", "comm"]),
    (
        "sched/sched_migrate_task",
        303,
        &["pid", "comm", "orig_cpu", "dest_cpu"],
    ),
    (
        "sched/sched_process_fork",
        304,
        &["child_pid", "child_comm", "parent_pid", "parent_comm"],
    ),
    ("sched/sched_process_exec", 305, &["old_pid", "pid"]),
    ("task/task_rename", 306, &["newcomm", "pid"]),
    ("irq/irq_handler_entry", 307, &["irq"]),
    ("irq/irq_handler_exit", 308, &["irq"]),
    ("skb/kfree_skb", 309, &["reason"]),
    ("power/cpu_idle", 310, &["state"]),
    ("ipi/ipi_send_cpu", 311, &["callback", "cpu"]),
    ("irq_vectors/call_function_entry", 312, &["vector"]),
];
const STATES: &str = "{ 0x1, \"S\" }, { 0x2, \"D\" }, { 0x10, \"X\" }, { 0x20, \"Z\" }";
const REASONS: &str = "{ 2, \"NOT_SPECIFIED\" }, { 6, \"SOCKET_RCVBUFF\" }";

/// A field's place: ids are words of four bytes behind the common ones, names have 16.
fn format(fields: &[&str], id: u16) -> String {
    let mut text = format!(
        "name: x\nID: {id}\nformat:\n\
         \tfield:unsigned char common_flags;\toffset:0;\tsize:1;\tsigned:0;\n\
         \tfield:unsigned short common_type;\toffset:2;\tsize:2;\tsigned:0;\n\
         \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    );
    let mut offset = 8;
    for name in fields {
        let (kind, size) = match name.ends_with("comm") {
            true => (format!("char {name}[16]"), 16),
            false => (format!("int {name}"), 4),
        };
        text += &format!("\tfield:{kind};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
        offset += size;
    }
    let symbols = if fields.contains(&"reason") {
        REASONS
    } else {
        STATES
    };
    text + &format!("\nprint fmt: \"x\", {symbols}\n")
}

/// The machine while it is recorded.
#[derive(Default)]
struct Machine {
    cpus: [Pages; 2],
}

impl Machine {
    /// An event, in the context of `flags`, while `tid` runs.
    fn says(&mut self, (ns, cpu, flags, tid): (u64, usize, u8, i32), name: &str, values: &[i32]) {
        let known = FIELDS.iter().find(|(known, _, _)| known.ends_with(name));
        let (_, id, fields) = known.unwrap();
        let mut event = vec![flags, 0];
        event.extend_from_slice(&id.to_le_bytes());
        event.extend_from_slice(&tid.to_le_bytes());
        let mut values = values.iter();
        for field in *fields {
            let value = values.next().unwrap();
            match field.ends_with("comm") {
                true => {
                    let mut comm = format!("t{value}").into_bytes();
                    comm.resize(16, 0);
                    event.extend_from_slice(&comm);
                }
                false => event.extend_from_slice(&value.to_le_bytes()),
            }
        }
        self.cpus[cpu].event(ns, &event);
    }

    /// `prev` leaves in `state`, and `next` runs.
    fn switch(&mut self, ns: u64, cpu: usize, prev: i32, state: i32, next: i32) {
        self.says(
            (ns, cpu, 1, prev),
            "sched_switch",
            &[next, next, state, prev, prev],
        );
    }

    fn wakes(&mut self, ns: u64, cpu: usize, tid: i32, task: i32, target: i32) {
        self.says((ns, cpu, 1, tid), "sched_waking", &[task, task]);
        self.says((ns + 1, cpu, 1, tid), "sched_wakeup", &[target, task, task]);
    }

    fn recorded(mut self) -> Recording {
        self.cpus.iter_mut().for_each(Pages::end);
        let cpus = self.cpus.into_iter().zip(0..);
        let raw = Raw {
            header_page: HEADER_PAGE.to_owned(),
            formats: FIELDS
                .iter()
                .map(|(name, id, fields)| ((*name).to_owned(), format(fields, *id)))
                .collect(),
            missing: vec!["net/x: this kernel has no such event".to_owned()],
            clock: "mono".to_owned(),
            end_ns: 9_000,
            processes: BTreeMap::from([(10, 9)]),
            network_lines: vec![44],
            ..Raw::default()
        };
        let cpus = cpus.map(|(pages, cpu)| CpuPages {
            cpu,
            dropped: 0,
            pieces: vec![pages.bytes],
        });
        Recording::new(raw, cpus.collect(), 0).unwrap()
    }

    /// The records from `start_ns` on, with times in ns, without introductions.
    fn records(self, tasks: &mut Tasks, start_ns: u64) -> Vec<(u64, Record)> {
        let all = all(&self.recorded(), tasks, start_ns);
        let introduces =
            |record: &Record| matches!(record, Record::Ids { .. } | Record::Renamed { .. });
        all.into_iter()
            .filter(|(_, record)| !introduces(record))
            .collect()
    }
}

fn all(recording: &Recording, tasks: &mut Tasks, start_ns: u64) -> Vec<(u64, Record)> {
    let mut all = Vec::new();
    recording.records(tasks, start_ns, &mut |at, record| {
        all.push((at.0 / 1_000, record))
    });
    all
}

/// Tasks 10, 11... are known as tasks 0, 1...
fn known() -> Tasks {
    let mut tasks = Tasks::new();
    (0..5).for_each(|id| tasks.know(10 + id, TaskId(id)));
    tasks
}

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

fn task(id: u32) -> Option<TaskId> {
    Some(TaskId(id))
}

fn switch(cpu: CpuId, prev: Option<TaskId>, prev_runnable: bool, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu,
        prev,
        prev_runnable,
        next,
    }
}

fn block(cpu: CpuId, task: u32, state: State) -> Record {
    Record::Block {
        cpu,
        task: TaskId(task),
        cause: Cause::Unknown,
        state,
        object: None,
    }
}

fn wakeup(waker: CpuId, task: u32, target: CpuId) -> Record {
    Record::Wakeup {
        waker,
        task: TaskId(task),
        target,
    }
}

fn waking(cpu: CpuId, waker: Option<TaskId>, task: u32, context: Context) -> Record {
    Record::Waking {
        cpu,
        waker,
        task: TaskId(task),
        context,
        synchronous: false,
    }
}

#[test]
fn a_task_sleeps_is_woken_and_is_preempted() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 10, 1, 11);
    machine.wakes(200, 0, 11, 10, 0);
    machine.switch(300, 0, 11, 0x100, 10);
    machine.switch(400, 0, 10, 0x2, 0);
    let expected = vec![
        (100, block(CPU0, 0, State::Interruptible)),
        (100, switch(CPU0, task(0), false, task(1))),
        (200, waking(CPU0, task(1), 0, Context::Task)),
        (201, wakeup(CPU0, 0, CPU0)),
        (300, switch(CPU0, task(1), true, task(0))),
        (400, block(CPU0, 0, State::Uninterruptible)),
        (400, switch(CPU0, task(0), false, None)),
    ];
    assert_eq!(machine.records(&mut known(), 0), expected);
}

#[test]
fn a_thread_id_that_was_another_threads_is_the_tasks_from_its_time_on() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 10, 0, 20);
    machine.switch(200, 0, 20, 0x10, 10);
    machine.switch(300, 0, 10, 0, 20);
    machine.switch(400, 0, 20, 0x10, 10);
    machine.switch(500, 0, 10, 0, 20);
    let mut tasks = known();
    tasks.know_from(450, 20, TaskId(6));
    tasks.know_from(250, 20, TaskId(5));
    let runs = machine.records(&mut tasks, 0).into_iter();
    let runs = runs.filter_map(|(_, record)| match record {
        Record::Switch { next, .. } => next.map(|next| next.0),
        _ => None,
    });
    assert_eq!(runs.collect::<Vec<_>>(), [7, 0, 5, 0, 6]);
}

#[test]
fn the_waker_is_the_cpu_that_began_to_wake_and_not_the_one_that_was_asked_to() {
    let mut machine = Machine::default();
    machine.switch(100, 1, 10, 1, 0);
    machine.says((200, 0, 0x18, 11), "sched_waking", &[10, 10]);
    machine.says((250, 1, 0x09, 0), "sched_wakeup", &[1, 10, 10]);
    machine.switch(300, 1, 0, 0, 10);
    let records = machine.records(&mut known(), 0);
    assert_eq!(
        records[2],
        (200, waking(CPU0, task(1), 0, Context::Interrupt))
    );
    assert_eq!(records[3], (250, wakeup(CPU0, 0, CPU1)));
}

#[test]
fn a_task_that_was_about_to_sleep_does_not_become_runnable() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 11, 0, 10);
    machine.wakes(200, 1, 12, 10, 0);
    machine.wakes(300, 1, 12, 11, 0);
    let records = machine.records(&mut known(), 0);
    let woken = records
        .iter()
        .filter(|(_, record)| matches!(record, Record::Wakeup { .. }));
    assert_eq!(woken.count(), 0, "{records:?}");
}

#[test]
fn a_task_exits_when_it_leaves_its_cpu_dead_and_its_id_is_free() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 10, 0x20, 11);
    machine.says((200, 0, 0, 11), "sched_process_fork", &[10, 10, 11, 11]);
    machine.says((300, 0, 0, 11), "sched_wakeup", &[1, 10, 10]);
    let mut tasks = known();
    let recorded = all(&machine.recorded(), &mut tasks, 0);
    let (cpu, first, second) = (CPU0, TaskId(0), TaskId(5));
    let comm = Comm::new("t10");
    let expected = vec![
        (100, Record::Exit { cpu, task: first }),
        (100, switch(CPU0, task(0), false, task(1))),
        (
            200,
            Record::Fork {
                parent: task(1),
                child: second,
                comm,
            },
        ),
        (
            200,
            Record::Ids {
                task: second,
                tid: 10,
                tgid: 9,
            },
        ),
        (300, wakeup(CPU0, 5, CPU1)),
    ];
    assert_eq!(recorded, expected);
    assert_eq!(tasks.id(10), Some(second));
}

#[test]
fn strangers_are_introduced_when_they_are_first_named_and_only_once() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 77, 0, 78);
    machine.says((150, 0, 0, 78), "task_rename", &[5, 78]);
    machine.switch(200, 0, 78, 0, 77);
    let mut tasks = Tasks::with_strangers_from(TaskId(9));
    let records = all(&machine.recorded(), &mut tasks, 0);
    let ids = |task, tid| Record::Ids {
        task: TaskId(task),
        tid,
        tgid: 0,
    };
    let named = |task, name| Record::Renamed {
        task: TaskId(task),
        comm: Comm::new(name),
    };
    let expected = vec![
        (100, ids(9, 77)),
        (100, named(9, "t77")),
        (100, ids(10, 78)),
        (100, named(10, "t78")),
        (100, switch(CPU0, task(9), true, task(10))),
        (150, named(10, "t5")),
        (200, switch(CPU0, task(10), true, task(9))),
    ];
    assert_eq!(records, expected);
}

#[test]
fn what_was_before_the_start_is_recorded_as_the_state_at_the_start() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 10, 0, 11);
    machine.switch(110, 1, 13, 1, 12);
    machine.says((120, 1, 9, 12), "irq_handler_entry", &[3]);
    machine.says((150, 1, 9, 12), "irq_handler_exit", &[3]);
    machine.says((160, 1, 9, 12), "irq_handler_entry", &[44]);
    machine.says((500, 1, 9, 12), "irq_handler_exit", &[44]);
    let (cpu, interrupt) = (CPU1, Interrupt::Network);
    let expected = vec![
        (0, switch(CPU0, None, false, task(1))),
        (0, switch(CPU1, None, false, task(2))),
        (0, wakeup(CPU0, 0, CPU0)),
        (0, Record::InterruptEnter { cpu, interrupt }),
        (300, Record::InterruptExit { cpu, interrupt }),
    ];
    assert_eq!(machine.records(&mut known(), 200), expected);
}

#[test]
fn a_switch_that_is_missing_is_recorded_as_lost_and_made_up_for() {
    let lost = Record::Lost {
        cpu: CPU1,
        events: 1,
    };
    // The idle task of CPU 1 says nothing: task 0 is woken, and the next event is its own.
    let mut machine = Machine::default();
    machine.switch(100, 1, 10, 1, 0);
    machine.wakes(200, 0, 11, 10, 1);
    machine.switch(900, 1, 10, 1, 0);
    let records = machine.records(&mut known(), 0);
    assert_eq!(records[3], (201, wakeup(CPU0, 0, CPU1)));
    assert_eq!(records[4], (201, lost));
    assert_eq!(records[5], (201, switch(CPU1, None, false, task(0))));
    assert_eq!(records[6], (900, block(CPU1, 0, State::Interruptible)));
    // The wakeup is missing as well.
    let mut machine = Machine::default();
    machine.switch(100, 1, 10, 1, 0);
    machine.switch(900, 1, 10, 1, 0);
    let records = machine.records(&mut known(), 0);
    assert_eq!(records[2..4], [(900, lost), (900, wakeup(CPU1, 0, CPU1))]);
    assert_eq!(
        records[4..6],
        [(900, lost), (900, switch(CPU1, None, false, task(0)))]
    );
    // A child runs on CPU 1 after its fork on CPU 0, and is not mistaken for an older task.
    let mut machine = Machine::default();
    machine.switch(100, 1, 11, 1, 0);
    machine.says((200, 0, 0, 12), "sched_process_fork", &[70, 70, 12, 12]);
    machine.says((300, 0, 0, 12), "sched_wakeup", &[1, 70, 70]);
    machine.switch(900, 1, 70, 1, 0);
    let records = machine.records(&mut known(), 0);
    let (_, fork) = records[2];
    let is_of_5 = matches!(fork, Record::Fork { child, .. } if child == TaskId(5));
    assert!(is_of_5, "{records:?}");
    assert_eq!(
        records[3..6],
        [
            (300, wakeup(CPU0, 5, CPU1)),
            (300, lost),
            (300, switch(CPU1, None, false, task(5))),
        ]
    );
}

#[test]
fn after_a_gap_nothing_is_known_of_what_was_before() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 10, 0, 11);
    machine.cpus[0].lose(7);
    machine.wakes(900, 0, 12, 10, 0);
    let records = machine.records(&mut known(), 0);
    let lost = Record::Lost {
        cpu: CPU0,
        events: 7,
    };
    assert_eq!(records[1], (100, lost));
    assert_eq!(
        records[3],
        (901, wakeup(CPU0, 0, CPU0)),
        "it may have slept in the gap"
    );
}

#[test]
fn other_events_are_recorded_as_they_are() {
    let mut machine = Machine::default();
    machine.says((100, 0, 0, 10), "kfree_skb", &[2]);
    machine.says((110, 0, 0, 10), "kfree_skb", &[6]);
    machine.says((120, 0, 0, 10), "kfree_skb", &[3 << 16]);
    machine.says((130, 0, 0, 10), "cpu_idle", &[3]);
    machine.says((140, 0, 0, 10), "cpu_idle", &[-1]);
    machine.says((150, 0, 0, 10), "ipi_send_cpu", &[4711, 1]);
    machine.says((160, 0, 0, 10), "ipi_send_cpu", &[0, 1]);
    machine.says((170, 0, 0, 10), "call_function_entry", &[0xfb]);
    machine.says((180, 0, 0, 10), "sched_migrate_task", &[11, 11, 0, 1]);
    let (cpu, to) = (CPU0, CPU1);
    let interrupt = Interrupt::Line(crate::VECTORS + 0xfb);
    let expected = vec![
        (110, Record::Drop { cpu, reason: 6 }),
        (120, Record::Drop { cpu, reason: 0 }),
        (
            130,
            Record::Idle {
                cpu,
                state: Some(3),
            },
        ),
        (140, Record::Idle { cpu, state: None }),
        (160, Record::RescheduleSent { from: cpu, to }),
        (170, Record::InterruptEnter { cpu, interrupt }),
        (
            180,
            Record::Migrate {
                task: TaskId(1),
                from: cpu,
                to,
            },
        ),
    ];
    assert_eq!(machine.records(&mut known(), 0), expected);
}

#[test]
fn a_thread_that_executes_a_program_takes_the_id_of_its_process() {
    let mut machine = Machine::default();
    machine.switch(100, 0, 12, 0, 11);
    machine.says((200, 0, 0, 10), "sched_process_exec", &[11, 10]);
    machine.switch(300, 0, 10, 1, 0);
    let mut tasks = known();
    let records = all(&machine.recorded(), &mut tasks, 0);
    let ids = Record::Ids {
        task: TaskId(1),
        tid: 10,
        tgid: 10,
    };
    assert!(records.contains(&(200, ids)), "{records:?}");
    assert_eq!(
        records.last(),
        Some(&(300, switch(CPU0, task(1), false, None)))
    );
}

#[test]
fn a_recording_comes_back_from_its_bytes() {
    let mut machine = Machine::default();
    (0..300).for_each(|turn| machine.switch(100 + turn, turn as usize % 2, 10, 0, 10));
    let recording = machine.recorded();
    let back = Recording::from_bytes(&recording.to_bytes()).unwrap();
    assert_eq!((&back.raw, &back.cpus), (&recording.raw, &recording.cpus));
    assert_eq!(back.missing(), recording.missing());
    assert_eq!(
        all(&back, &mut known(), 0),
        all(&recording, &mut known(), 0)
    );
}

#[test]
fn an_event_without_its_fields_is_reported_as_missing() {
    let recording = Machine::default().recorded();
    let mut raw = recording.raw;
    let switch = raw.formats.get_mut("sched/sched_switch").unwrap();
    *switch = switch.replace("prev_pid", "previous");
    let recording = Recording::new(raw.clone(), Vec::new(), 0).unwrap();
    let expected = "sched/sched_switch: its format is not understood";
    assert_eq!(
        recording.missing().last().map(String::as_str),
        Some(expected)
    );
    raw.formats.clear();
    assert!(Recording::new(raw, Vec::new(), 0).is_err());
}

/// What happens on the machine: who wakes, forks and switches, lawfully or not.
fn happening() -> impl Strategy<Value = (usize, u8, [i32; 3])> {
    let tid = || prop_oneof![0..15_i32, any::<i32>()];
    (0..2_usize, 0..13_u8, [tid(), tid(), tid()])
}

proptest! {
    #[test]
    fn whatever_a_kernel_says_time_never_goes_back(happenings in prop::collection::vec(happening(), 0..200)) {
        let mut machine = Machine::default();
        for (ns, (cpu, kind, [a, b, c])) in (100..).zip(happenings) {
            let (name, _, fields) = FIELDS[usize::from(kind)];
            let name = name.split('/').next_back().unwrap();
            let values: Vec<i32> = [a, b, c, a, b].into_iter().take(fields.len()).collect();
            machine.says((ns * 10, cpu, 0, c), name, &values);
        }
        let recording = machine.recorded();
        let mut last = 0;
        recording.records(&mut Tasks::new(), 1_000, &mut |at, _| {
            assert!(at.0 >= last, "time never goes back");
            last = at.0;
        });
    }

    #[test]
    fn damaged_bytes_are_refused_or_read(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut machine = Machine::default();
        (0..20).for_each(|turn| machine.switch(100 + turn, 0, 10, 0, 11));
        let mut bytes = machine.recorded().to_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.truncate(cut.index(2 * bytes.len()));
        if let Ok(recording) = Recording::from_bytes(&bytes) {
            all(&recording, &mut Tasks::new(), 0);
        }
    }
}

/// What the checker of recordings says of it, and its records.
fn checked(machine: Machine) -> (Result<(), String>, Vec<(u64, Record)>) {
    let mut checker = Checker::of_a_recording();
    let records = machine.records(&mut known(), 0);
    let mut last = Instant::START;
    for (ns, record) in &records {
        last = Instant(ns * 1_000);
        checker.see(last, record);
    }
    let verdict = checker.finish(last);
    (verdict.map_err(|violation| violation.to_string()), records)
}

/// Task 0 runs on CPU 0 when events of CPU 1 are lost, and runs on CPU 1 by the next event there,
/// with no switch to it: it did not come before it left CPU 0.
#[test]
fn a_task_does_not_come_to_a_cpu_before_it_left_another() {
    let gap = |leaves: i32| {
        let mut machine = Machine::default();
        machine.switch(100, 0, 0, 0, 10);
        machine.switch(110, 1, 0, 0, 11);
        machine.cpus[1].lose(5);
        machine.wakes(200, 1, 11, 12, 1);
        machine.switch(500, 0, 10, leaves, 0);
        if leaves != 0 {
            machine.wakes(600, 0, 0, 10, 1);
        }
        machine.switch(900, 1, 10, 1, 0);
        checked(machine)
    };
    for (leaves, comes) in [(1, 601), (0, 500)] {
        let (verdict, records) = gap(leaves);
        assert_eq!(verdict, Ok(()), "{records:?}");
        let expected = (comes, switch(CPU1, None, false, task(0)));
        assert!(records.contains(&expected), "{records:?}");
    }
    // Nothing says that it left CPU 0.
    let mut machine = Machine::default();
    machine.switch(100, 0, 0, 0, 10);
    machine.switch(110, 1, 0, 0, 11);
    machine.switch(900, 1, 11, 1, 10);
    let (verdict, records) = checked(machine);
    assert_eq!(verdict, Ok(()), "{records:?}");
    let expected = (900, switch(CPU0, task(0), true, None));
    assert!(records.contains(&expected), "{records:?}");
}

/// Two tasks that take turns on two CPUs, some of whose events are not recorded.
#[test]
fn a_machine_with_silent_idle_tasks_breaks_no_law() {
    let mut machine = Machine::default();
    machine.switch(50, 0, 0, 0, 10);
    machine.switch(60, 1, 11, 1, 0);
    for round in 1..100 {
        let ns = round * 1_000;
        machine.wakes(ns, 0, 10, 11, 1);
        machine.switch(ns + 100, 0, 10, 1, 0);
        machine.wakes(ns + 500, 1, 11, 10, 0);
        machine.switch(ns + 600, 1, 11, 1, 0);
        if round % 3 == 0 {
            machine.switch(ns + 700, 0, 0, 0, 10);
        }
    }
    let (verdict, records) = checked(machine);
    assert_eq!(verdict, Ok(()));
    let inferred = records.iter();
    let inferred = inferred.filter(|(_, record)| matches!(record, Record::Lost { events: 1, .. }));
    assert_eq!(
        inferred.count(),
        99 + 66,
        "each switch of an idle task but those that were recorded"
    );
}
