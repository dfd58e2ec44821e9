use warmq_trace::{Context, Interrupt, Record, State};
use warmq_units::CpuId;

use super::event::{Known, of};
use super::line::{Line, lost};
use crate::contents::Contents;
use crate::event::{Name, Thread, What};
use crate::open::records_of;

#[test]
fn lines_of_all_tools_are_read() {
    let cases = [
        // tracefs: with flags, without, with processes, with names that have spaces and dashes.
        (
            "            bash-123     [007] d..2.  12.345678: sched_waking: x",
            (Some(123), None, 7, 12_345_678_000, false),
        ),
        (
            "            bash-123     [007]  12.345678: sched_waking: x",
            (Some(123), None, 7, 12_345_678_000, false),
        ),
        (
            " a b-c: d-9     (   42) [000] .....  0.000001: sched_waking: x",
            (Some(9), Some(42), 0, 1_000, false),
        ),
        (
            "          <idle>-0   (-----) [001] d.h3.  3.000000: sched_waking: x",
            (Some(0), None, 1, 3_000_000_000, false),
        ),
        // latency-format: the time is in us, with a mark behind it if it was long.
        (
            "    bash-3968    1d..2.    34us+: sched_waking: x",
            (Some(3968), None, 1, 34_000, false),
        ),
        (
            "    bash-3968    1d..2.    34us : sched_waking: x",
            (Some(3968), None, 1, 34_000, false),
        ),
        // trace-cmd report --ts-diff, and of several instances.
        (
            "  sh-31943 [000] 38682.416679: (+12)  sched_waking:     x",
            (Some(31_943), None, 0, 38_682_416_679_000, false),
        ),
        (
            "bar:   sh-31943 [000] 38682.416679: sched_waking:     x",
            (Some(31_943), None, 0, 38_682_416_679_000, false),
        ),
        // perf script without names.
        (
            " 27235 [000]  5.000000: sched:sched_waking: x",
            (Some(27_235), None, 0, 5_000_000_000, true),
        ),
        // The kernel's log.
        (
            "[   12.345678]     bash-3968    1d..2. 12345678us : sched_waking: x",
            (Some(3968), None, 1, 12_345_678_000, false),
        ),
        // trace-cmd report, with ns and with -l.
        (
            "  sh-31943 [000] 38682.416679001: sched_waking:     x",
            (Some(31_943), None, 0, 38_682_416_679_001, false),
        ),
        (
            "      sh-31943   0..... 38682.415618: sched_waking:   x",
            (Some(31_943), None, 0, 38_682_415_618_000, false),
        ),
        // perf script: the process as well, ns, a period, no system.
        (
            "swapper     0 [000]  1234.567890: sched:sched_waking: x",
            (Some(0), None, 0, 1_234_567_890_000, true),
        ),
        (
            "my app  12/34  [003] 99.000000001:  1  sched:sched_waking: x",
            (Some(34), Some(12), 3, 99_000_000_001, true),
        ),
        (
            ":-1    -1 [002] 5.000000: sched:sched_waking: x",
            (None, None, 2, 5_000_000_000, true),
        ),
    ];
    for (text, (tid, tgid, cpu, ns, by_perf)) in cases {
        let line = Line::parse(text).unwrap_or_else(|| panic!("{text}"));
        let found = (line.tid, line.tgid, line.cpu, line.ns, line.printed_by_perf);
        assert_eq!(found, (tid, tgid, CpuId(cpu), Some(ns), by_perf), "{text}");
        assert_eq!((line.event, line.values), ("sched_waking", "x"), "{text}");
    }
}

#[test]
fn what_is_no_event_is_none() {
    for text in [
        "",
        "# tracer: nop",
        "        ffffffff810b1234 schedule+0x34 ([kernel.kallsyms])",
        " => __schedule",
        "sh-12 [000] 1.0: ",
        "a line: of words [1] 2.5",
        "time 12.5: something",
    ] {
        assert_eq!(Line::parse(text), None, "{text}");
    }
    // A clock that counts.
    let line = Line::parse(" bash-1 [000] d..2.  18446744: sched_waking: x").unwrap();
    assert_eq!(line.ns, None);
}

#[test]
fn flags_say_what_the_cpu_was_doing() {
    // Without flags an interrupt looks as the thread that it interrupts.
    let bare = Line::parse(" bash-1 [000] 1.000000: sched_waking: x").unwrap();
    assert_eq!(bare.context, Context::Unknown);
    for (flags, context) in [
        ("d..2.", Context::Task),
        ("d.h2.", Context::Interrupt),
        ("d.H2.", Context::Interrupt),
        ("..s1.", Context::Softirq),
    ] {
        let text = format!(" bash-1 [000] {flags} 1.000000: sched_waking: x");
        assert_eq!(Line::parse(&text).unwrap().context, context, "{flags}");
    }
}

#[test]
fn gaps_are_found() {
    for (text, found) in [
        ("CPU:1 [LOST 123 EVENTS]", Some((CpuId(1), 123))),
        ("CPU:0 [77 EVENTS DROPPED]", Some((CpuId(0), 77))),
        ("CPU:3 [EVENTS DROPPED]", Some((CpuId(3), 0))),
        ("CPU:3 [something else]", None),
        ("CPU: 3", None),
    ] {
        assert_eq!(lost(text), found, "{text}");
    }
}

fn thread(tid: u32, comm: &str, priority: i16) -> Thread {
    Thread {
        tid,
        comm: Name::new(comm.as_bytes()),
        priority: Some(priority),
    }
}

fn what(name: &str, values: &str) -> Option<What> {
    match of(name, values, Some(7))? {
        Known::Event(what) => Some(what),
        Known::Grouped { .. } => None,
    }
}

#[test]
fn switches_and_wakeups_are_read_as_the_kernel_and_as_plugins_print_them() {
    let switch = |prev, state, next| What::Switch { prev, state, next };
    let wakeup = |thread, target, first| What::Wakeup {
        thread,
        target,
        first,
    };
    let (ab, two) = (thread(1, "a b", 120), thread(2, "c:d", 98));
    let cases = [
        (
            "sched_switch",
            "prev_comm=a b prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=c:d next_pid=2 next_prio=98",
            switch(ab, State::Interruptible, two),
        ),
        (
            "sched_switch",
            "a b:1 [120] S ==> c:d:2 [98]",
            switch(ab, State::Interruptible, two),
        ),
        (
            "sched_switch",
            "prev_comm=a b prev_pid=1 prev_prio=120 prev_state=2 next_comm=c:d next_pid=2 next_prio=98",
            switch(ab, State::Uninterruptible, two),
        ),
        // Preempted: the bit above all letters.
        (
            "sched_switch",
            "prev_comm=a b prev_pid=1 prev_prio=120 prev_state=256 next_comm=c:d next_pid=2 next_prio=98",
            switch(ab, State::Runnable, two),
        ),
        (
            "sched_switch",
            "a b:1 [120] R+ ==> c:d:2 [98]",
            switch(ab, State::Runnable, two),
        ),
        (
            "sched_switch",
            "a b:1 [120] D|K ==> c:d:2 [98]",
            switch(ab, State::Uninterruptible, two),
        ),
        (
            "sched_wakeup",
            "comm=a b pid=1 prio=120 target_cpu=003",
            wakeup(ab, 3, false),
        ),
        (
            "sched_wakeup",
            "comm=a b pid=1 prio=120 success=1 target_cpu=003",
            wakeup(ab, 3, false),
        ),
        ("sched_wakeup", "a b:1 [120] CPU:003", wakeup(ab, 3, false)),
        ("sched_wakeup", "a b:1 [120]<CPU:003>", wakeup(ab, 3, false)),
        (
            "sched_wakeup_new",
            "c:d:2 [98] success=1 CPU:000",
            wakeup(two, 0, true),
        ),
        (
            "sched_waking",
            "comm=a b pid=1 prio=120 target_cpu=003",
            What::Waking(ab),
        ),
        (
            "sched_migrate_task",
            "comm=a b pid=1 prio=120 orig_cpu=3 dest_cpu=4",
            What::Migrate {
                thread: ab,
                from: 3,
                to: 4,
            },
        ),
        (
            "sched_process_exec",
            "filename=/bin/x y pid=5 old_pid=6",
            What::Exec { tid: 5, old: 6 },
        ),
        (
            "softirq_entry",
            "vec=3 [action=NET_RX]",
            What::Enter(Interrupt::NetworkSoftirq),
        ),
        (
            "irq_handler_exit",
            "irq=24 ret=handled",
            What::Leave(Interrupt::Line(24)),
        ),
        ("cpu_idle", "state=4294967295 cpu_id=0", What::Idle(None)),
        (
            "ipi_send_cpu",
            "cpu=1 callsite=x+0x1 callback=0x0",
            What::RescheduleSent { to: 1 },
        ),
    ];
    for (name, values, expected) in cases {
        assert_eq!(what(name, values), Some(expected), "{name}: {values}");
    }
    assert_eq!(
        what("ipi_send_cpu", "cpu=1 callsite=x callback=generic_smp+0x0"),
        None
    );
    assert_eq!(what("sched_switch", "nothing of it"), None);
    assert_eq!(what("sched_stat_wait", "comm=a pid=1 delay=5 [ns]"), None);
}

#[test]
fn names_that_look_like_fields_or_arrows_are_names() {
    let odd = "prev_comm=x prev_pid=9 prev_pid=1 prev_prio=120 prev_state=S ==> next_comm= ==> y next_pid=2 next_prio=120";
    // Only the last arrow, and the last field of a name, count.
    let found = what("sched_switch", odd);
    assert!(
        !matches!(
            found,
            Some(What::Switch {
                prev: Thread { tid: 9, .. },
                ..
            })
        ),
        "{found:?}"
    );
    let forked = what(
        "sched_process_fork",
        "comm=a pid=1 child_comm=b child_pid=2",
    );
    let Some(What::Fork { parent, child }) = forked else {
        panic!("{forked:?}");
    };
    assert_eq!(
        (parent.tid, child.tid, child.comm.bytes()),
        (1, 2, b"b".as_slice())
    );
}

/// What is in a text.
fn contents(text: &str) -> Contents {
    let mut records = records_of(text.as_bytes().to_vec()).expect("it is one");
    records.by_ref().for_each(|entry| assert!(entry.is_ok()));
    records.contents().expect("it is of another program")
}

#[test]
fn lines_that_are_not_understood_or_left_out_are_counted() {
    let line = |before: &str, time: &str, cpu: &str| {
        format!("{before}sh-1 [{cpu}] {time}: sched_switch: sh:1 [120] S ==> b:2 [120]\n")
    };
    let plain = line("", "1.000000", "000");
    let text = format!("{plain}{}{}", line("bar: ", "2.000000", "000"), plain);
    let found = contents(&text);
    assert_eq!(found.count(crate::Kind::Switch), 2);
    assert!(
        found.notes[0].contains("1 lines of others"),
        "{:?}",
        found.notes
    );
    assert_eq!(found.partial, Vec::<String>::new());
    let strange = "sh 1.000000: sched_switch: sh:1 [120] S ==> b:2 [120]\n";
    let found = contents(&format!("{plain}{strange}{strange}"));
    assert!(
        found.notes[0].starts_with("2 lines have a time"),
        "{:?}",
        found.notes
    );
    assert_eq!(found.partial, ["most of its lines are not understood"]);
    let back = format!(
        "{}{}{}",
        line("", "0.5", "000"),
        line("", "0.2", "000"),
        line("", "0.4", "000")
    );
    assert!(contents(&back).partial[0].contains("1 of 3 times go back"));
}

#[test]
fn a_cpu_to_which_tasks_go_and_that_says_nothing_was_not_recorded() {
    let text = "sh-1 [000] 1.0: sched_switch: sh:1 [120] S ==> b:2 [120]\n\
                b-2 [000] 2.0: sched_wakeup: sh:1 [120] CPU:003\n";
    let found = contents(text);
    assert_eq!(
        found.partial,
        ["tasks went to CPUs that were not recorded: 3"]
    );
}

#[test]
fn who_wakes_is_unknown_where_text_does_not_say_what_the_cpu_was_doing() {
    // A timer wakes a task, which looks as if the hog that it interrupts did so.
    for (flags, waking, lacks) in [
        (" ", true, true),
        (" ", false, true),
        (" d.h2. ", true, false),
        (" d..2. ", true, false),
    ] {
        let wakes = |name| format!("hog-1 [000]{flags}2.0: {name}: comm=rt pid=2 prio=49 cpu=0\n");
        let text = format!(
            "rt-2 [000]{flags}1.0: sched_switch: rt:2 [49] S ==> hog:1 [120]\n{}{}",
            if waking {
                wakes("sched_waking")
            } else {
                String::new()
            },
            wakes("sched_wakeup").replace("cpu=0", "target_cpu=000"),
        );
        let mut records = records_of(text.into_bytes()).expect("it is one");
        let all: Vec<Record> = records.by_ref().map(|entry| entry.unwrap().1).collect();
        let wakers: Vec<bool> = all
            .iter()
            .filter_map(|record| match record {
                Record::Waking { waker, .. } => Some(waker.is_some()),
                _ => None,
            })
            .collect();
        assert_eq!(wakers, [!lacks], "{flags:?} {all:?}");
        let contents = records.contents().expect("it is of another program");
        assert_eq!(contents.lacks_contexts, lacks, "{flags:?}");
    }
}

#[test]
fn the_option_is_named_by_which_no_line_can_be_read() {
    for (line, option) in [
        (
            "sched_wakeup: comm=rt pid=7 prio=49 target_cpu=001",
            Some("nocontext-info"),
        ),
        (
            "  bash   13379   0 1 00000002 00000002 [aa05f82d] 8.691ms (+0.076ms): sched_wakeup_new: \
             comm=bash pid=13395 prio=120 target_cpu=000",
            Some("verbose"),
        ),
        ("13377 1 2853865964931 type: 363", Some("raw")),
        ("00003443 00000000 00000298a161aeef type: 366", Some("hex")),
        ("what is of this type: 3", None),
        ("", None),
    ] {
        let found = contents(&format!("# tracer: nop\n#\n{line}\n\n{line}\n"));
        assert!(found.is_empty());
        assert_eq!(found.option, option, "{line}");
    }
    let readable = "sh-1 [000] 1.0: sched_switch: sh:1 [120] S ==> b:2 [120]\n";
    let found = contents(&format!(
        "{readable}sched_wakeup: comm=rt pid=7 target_cpu=001\n"
    ));
    assert_eq!(found.option, None);
}
