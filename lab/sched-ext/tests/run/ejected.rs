//! What a scheduler is ejected for, and what the kernel says then.

use warmq_kernel::*;
use warmq_sched_ext::{Facts, NotLoaded, Profile, Source, Value};

use crate::stage::*;

fn three(boot: &mut Boot<'_>) -> Started {
    hog(boot, called("a"))?;
    hog(boot, called("b"))?;
    boot.task(called("c"), |task: Task| async move {
        loop {
            task.sleep(ms(3)).await;
            task.compute_for(ms(1)).await;
        }
    })?;
    Ok(())
}

fn ejected(fault: i128, time: u64) -> Played {
    let loaded = load(FAULTS, "7.3", &[("fault", fault)]);
    play(loaded, 2, time, &three)
}

#[test]
fn one_without_a_fault_is_not_ejected() {
    let played = ejected(0, 5_000);
    assert_eq!(played.ending, Ending::TimeUp);
    assert_eq!(played.violation, None);
}

#[test]
fn each_fault_is_named() {
    let table = [
        (1, "non-existent DSQ 0x63"),
        (2, "invalid CPU 4711 from ops.select_cpu()"),
        (3, "already direct-dispatched"),
        (4, "cannot use vtime ordering for built-in DSQs"),
        (5, "already had FIFO-enqueued tasks"),
        (6, "it ran more than 1000000 instructions"),
        (7, "task 0 failed to run for 2."),
        (8, "it wrote 4 bytes at 0xffff900000000000"),
        (9, "task 1 of beef%"),
        (10, "ops.init() failed (-12)"),
        (11, "invalid DSQ ID 0x0000000000000063"),
        (12, "it wrote 4 bytes at 0xffff88f000000000"),
        (13, "it wrote 4 bytes at 0xfffffffffffffffe"),
        (14, "SCX_ENQ_IMMED on a non-local DSQ 0x7"),
        (15, "PREEMPT/WAIT cannot be used with SCX_KICK_IDLE"),
        (16, "non-existent DSQ 0x63"),
    ];
    for (fault, text) in table {
        let said = said(&ejected(fault, 5_000));
        assert!(said.contains(text), "fault {fault}: {said}, not {text}");
    }
}

/// The function and the line of the source are in what is said of an ending within the program.
#[test]
fn the_place_is_named() {
    let Ending::SchedulerBroke(violation) = ejected(6, 5_000).ending else {
        panic!("not ejected");
    };
    let text = violation.rule.to_string();
    assert!(text.contains("faults_enqueue"), "{text}");
    assert!(text.contains("faults.bpf.c:"), "{text}");
}

/// What a loader does and what the lab cannot play, by profiles.
#[test]
fn profiles_say_what_a_loader_does() {
    let load = |text: &str| {
        let text = format!("name = \"faults\"\nsource = \"ours\"\n{text}");
        let profile = Profile::read(&text).expect("a profile");
        let source = Source::read(FAULTS, |_| Some(profile)).expect("an object");
        let loaded = source.load("7.3", &Facts::default(), &[]);
        loaded.map_err(|error| error.to_string())
    };
    // -1 is the greatest u32: no fault of that number.
    let loaded = load("[set]\nfault = -1").expect("it fits");
    assert_eq!(play(loaded, 2, 100, &three).ending, Ending::TimeUp);
    let refused = load("refused = \"it decides in user space\"").unwrap_err();
    assert_eq!(refused, "it decides in user space");
    let program = load("programs = [\"on_switch\"]").unwrap_err();
    assert!(
        program.contains("there is no program on_switch"),
        "{program}"
    );
    let array = load("[resize]\nfault = 4").unwrap_err();
    assert!(array.contains("there is no map or array fault"), "{array}");
    let arena = load("[arena]\ntask = \"task_ctx\"").unwrap_err();
    assert!(arena.contains("there is no struct task_ctx"), "{arena}");
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let no_object = Source::read(b"#!/bin/sh", |_| None).unwrap_err();
    assert!(no_object.to_string().contains("no compiled BPF program"));
    let plain = include_bytes!("../../../bpf-run/tests/programs/values.bpf.o");
    let no_scheduler = Source::read(plain, |_| None).unwrap_err();
    assert!(matches!(no_scheduler, NotLoaded::NoScheduler));
    // The same callbacks, in a struct of another name.
    let mut other = FAULTS.to_vec();
    let name = b"sched_ext_ops\0";
    let at = other.windows(name.len()).position(|bytes| bytes == name);
    let at = at.expect("the name is in its BTF");
    other[at..at + 9].copy_from_slice(b"other_ext");
    let other = Source::read(&other, |_| None).unwrap_err();
    assert!(
        other.to_string().contains("a struct other_ext_ops"),
        "{other}"
    );
    let source = Source::read(FAULTS, |_| None).expect("an object");
    let load = |series: &str, variables: &[(String, Value)]| {
        let refused = source.load(series, &Facts::default(), variables);
        refused.map(|_| ()).unwrap_err().to_string()
    };
    assert!(load("5.4", &[]).contains("it knows 7.3 and 6.18"));
    let variable = |name: &str, number| vec![(name.to_owned(), Value::Number(number))];
    assert!(load("7.3", &variable("falt", 1)).contains("there is no falt"));
    assert!(load("7.3", &variable("fault", 1 << 32)).contains("does not fit"));
}
