//! Programs of our own, compiled by scripts/bpf-programs.sh: what they compute, and how they end if
//! they break a rule.

mod common;
mod mutated;

use common::{Loaded, TIMER_START};
use warmq_bpf::Object;
use warmq_bpf_run::{Access, Callee, Ending, Guest, STACK, Shape};

const VALUES: &[u8] = include_bytes!("../programs/values.bpf.o");
const MAPS: &[u8] = include_bytes!("../programs/maps.bpf.o");
const ARENA: &[u8] = include_bytes!("../programs/arena.bpf.o");
const GRAPH: &[u8] = include_bytes!("../programs/graph.bpf.o");
const BROKEN: &[u8] = include_bytes!("../programs/broken.bpf.o");

/// Each program says itself which of its steps went wrong.
#[test]
fn values_are_as_in_c() {
    let programs = [
        "arithmetic",
        "atomics",
        "iterator",
        "returned",
        "looped",
        "may_goto",
        "calls",
        "texts",
    ];
    let mut loaded = Loaded::new(VALUES);
    for program in programs {
        assert_eq!(loaded.run(program, 77), Ok(0), "{program}");
    }
    assert_eq!(loaded.run("arithmetic", 78), Ok(1), "the argument is read");
}

#[test]
fn maps_are_as_in_the_kernel() {
    let programs = [
        "in_array",
        "in_percpu",
        "in_hash",
        "in_queue",
        "in_ring",
        "in_storage",
        "in_maps",
        "in_kptr",
    ];
    let mut loaded = Loaded::new(MAPS);
    let task = loaded.guest.allocate(64).expect("memory");
    for program in programs {
        assert_eq!(loaded.run(program, task), Ok(0), "{program}");
    }
    assert_eq!(loaded.guest.faults(), 0);
}

#[test]
fn a_timer_knows_its_callback_its_key_and_its_value() {
    let mut loaded = Loaded::new(MAPS);
    assert_eq!(loaded.run("in_timer", 0), Ok(0));
    let (callee, args) = loaded.kernel.called[0];
    assert_eq!((callee, args[1]), (Callee::Helper(TIMER_START), 1_000));
    let timer = *loaded.guest.timer(args[0]).expect("a timer");
    let function = timer.function.expect("a callback");
    assert_eq!(
        loaded.call(function, &[timer.map, timer.key, timer.value]),
        Ok(0)
    );
    let expired = loaded
        .guest
        .image()
        .variable("expired")
        .expect("a variable");
    let address = loaded
        .guest
        .value_address(expired.map, expired.offset as u32);
    assert_eq!(loaded.guest.load(address, 8), 42);
}

#[test]
fn pointers_within_an_arena_are_followed() {
    let mut loaded = Loaded::new(ARENA);
    assert_eq!(loaded.run("pages", 0), Ok(0));
    assert_eq!(loaded.run("reserved", 0), Ok(0));
}

#[test]
fn objects_are_linked_in_lists_and_trees() {
    let mut loaded = Loaded::new(GRAPH);
    for program in ["in_list", "in_tree", "in_list"] {
        assert_eq!(loaded.run(program, 0), Ok(0), "{program}");
    }
    assert_eq!(loaded.guest.faults(), 0);
    let ended = loaded.run("dropped", 0).expect_err("an ending");
    assert!(matches!(
        ended.ending,
        Ending::Argument {
            wanted: "object of its own",
            ..
        }
    ));
}

#[test]
fn a_broken_rule_is_an_ending_with_its_place() {
    let mut loaded = Loaded::new(BROKEN);
    let mut ending = |program: &str, arg| {
        let ended = loaded.run(program, arg).expect_err(program);
        assert_eq!(ended.program, program);
        let line = ended.line.clone().expect("a line");
        assert!(
            line.place().starts_with("broken.bpf.c:"),
            "{}",
            line.place()
        );
        (ended.ending, ended.function, line.text.to_string())
    };
    let (ending_of, _, text) = ending("endless", 0);
    assert_eq!(ending_of, Ending::TooLong(1_000_000));
    assert!(text.contains("go"), "{text}");
    let (ending_of, function, _) = ending("too_deep", 0);
    assert_eq!(
        (ending_of, function.as_str()),
        (Ending::TooDeep(16), "deeper")
    );
    for address in [
        0,
        0xffff_8880_7fff_fff8,
        u64::MAX - 3,
        0xfffe_0000_0000_0000,
    ] {
        let (ending_of, _, text) = ending("null", address);
        assert_eq!(ending_of, Ending::Store { address, size: 8 });
        assert!(text.contains("ctx->argument = 1"), "{text}");
    }
    assert!(matches!(
        ending("rodata", 0).0,
        Ending::Store { size: 8, .. }
    ));
    let Ending::Store { address, .. } = ending("overflow", 0).0 else {
        panic!("it wrote")
    };
    assert!(address < STACK, "{address:#x}");
    assert!(matches!(
        ending("handle", 0).0,
        Ending::Argument { wanted: "map", .. }
    ));
}

#[test]
fn an_ending_is_one_sentence_with_its_place() {
    let ended = Loaded::new(BROKEN).run("null", 0).expect_err("an ending");
    let place = ended.line.as_ref().expect("a line").place();
    let expected = format!(
        "null (instruction {} of null, {place}): it wrote 8 bytes at 0x0, which is not its to write",
        ended.instruction
    );
    assert_eq!(ended.to_string(), expected);
}

#[test]
fn a_load_from_nowhere_is_0_and_counted() {
    let mut loaded = Loaded::new(BROKEN);
    assert_eq!(loaded.run("faults", 1 << 50), Ok(0));
    assert_eq!(loaded.guest.faults(), 1);
}

#[test]
fn accesses_are_charged_but_those_of_the_stack() {
    let mut loaded = Loaded::new(VALUES);
    loaded.run("atomics", 0).expect("it runs");
    let charged = &loaded.kernel.charged;
    assert!(
        charged
            .iter()
            .any(|(_, size, access)| (*size, *access) == (4, Access::Atomic))
    );
    assert!(
        charged
            .iter()
            .all(|(address, ..)| address >> 40 != STACK >> 40),
        "{charged:x?}"
    );
}

#[test]
fn instructions_are_counted() {
    let mut loaded = Loaded::new(BROKEN);
    let before = loaded.guest.instructions();
    loaded.run("faults", 0).expect("it runs");
    // Its argument, the load, the exit.
    assert_eq!(loaded.guest.instructions() - before, 3);
}

#[test]
fn two_guests_of_one_object_are_alike() {
    let digest = || {
        let mut loaded = Loaded::new(MAPS);
        let task = loaded.guest.allocate(64).expect("memory");
        for program in ["in_array", "in_hash", "in_storage", "in_kptr"] {
            loaded.run(program, task).expect(program);
        }
        (loaded.kernel.charged, loaded.guest.instructions())
    };
    assert_eq!(digest(), digest());
}

#[test]
fn maps_that_do_not_fit_are_refused() {
    let mut object = Object::read(MAPS).expect("an object");
    object.resize("percpu", u32::MAX).expect("a map");
    let huge = common::fit(&object);
    let refused = Guest::new(huge, Shape::of(4)).err();
    assert_eq!(refused, Some(Ending::Memory(1 << 30)));
    let mut guest = Guest::new(common::image(BROKEN), Shape::of(4)).expect("memory");
    assert_eq!(guest.allocate(u64::MAX), Err(Ending::Memory(1 << 30)));
    assert_eq!(
        guest.allocate_per_cpu(u64::MAX),
        Err(Ending::Memory(1 << 30))
    );
}
