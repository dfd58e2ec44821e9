//! `warmq.h` under several compilers and standards, and what its programs in `tests/c` show.
//!
//! `fake.h` puts a kernel of the test's own below the header; the real scheduler is met in the
//! virtual machine.

mod compiler;

use compiler::Compiler;

/// The compiler that cargo links with is always there.
const OURS: Compiler = Compiler {
    command: "cc",
    standard: "c99",
};

/// Other code from the same source: another compiler.
const OTHER: Compiler = Compiler {
    command: "clang-19",
    standard: "c11",
};

fn shows(program: &str) {
    let source = format!("{program}.c");
    assert!(OURS.run(program, &[&source]), "there is a C compiler");
    OTHER.run(program, &[&source]);
}

#[test]
fn every_standard_takes_it_without_a_warning() {
    let c = ["cc", "gcc", "clang-19"].map(|command| (command, ["c99", "c11", "c17"]));
    for (command, standards) in c {
        for standard in standards {
            Compiler { command, standard }.run("silent", &["silent.c"]);
        }
    }
    let cpp = ["g++", "clang++-19"].map(|command| (command, ["c++11", "c++17", "c++20"]));
    for (command, standards) in cpp {
        for standard in standards {
            Compiler { command, standard }.run("silent", &["-x", "c++", "silent.c"]);
        }
    }
}

#[test]
fn a_hint_is_the_pair_plus_one() {
    shows("packing");
}

#[test]
fn errno_is_kept_on_this_kernel() {
    shows("silent");
}

#[test]
fn with_a_slot_only_a_change_is_a_system_call() {
    shows("slot");
}

#[test]
fn schedulers_come_and_go() {
    shows("comes_and_goes");
}

#[test]
fn a_child_process_is_another_task() {
    shows("forked");
}

#[test]
fn every_thread_has_its_line_and_the_dead_give_theirs_back() {
    shows("threads");
}

#[test]
fn a_signal_handler_may_hint_at_any_instruction_of_a_hint() {
    shows("signals");
}

#[test]
fn a_thread_is_one_thread_in_all_parts_of_a_program() {
    assert!(OURS.run("shared", &["shared.c", "shared_part.c"]));
    let hidden = ["-fvisibility=hidden", "-flto", "shared.c", "shared_part.c"];
    assert!(OURS.run("shared_hidden", &hidden));
}

#[test]
fn a_thread_is_one_thread_in_program_and_library() {
    let part = ["-shared", "-fPIC", "shared_part.c"];
    let library = OURS
        .compile("libshared_part.so", &part)
        .expect("a C compiler");
    let library = library.to_str().expect("a path in UTF-8");
    assert!(OURS.run("shared_library", &["shared.c", library]));
}

#[test]
fn a_thread_is_one_thread_in_c_and_in_cpp() {
    let cpp = Compiler {
        command: "g++",
        standard: "c++11",
    };
    let Some(part) = cpp.compile("shared_part.o", &["-x", "c++", "-c", "shared_part.c"]) else {
        return;
    };
    let part = part.to_str().expect("a path in UTF-8");
    assert!(OURS.run("shared_cpp", &["shared.c", part]));
}

#[test]
fn the_example_runs() {
    assert!(OURS.run("rooms", &["../../examples/rooms.c"]));
}

#[test]
fn where_a_hint_does_not_fit_a_word_nobody_can_listen() {
    let example = ["-U__LP64__", "../../examples/rooms.c"];
    assert!(OURS.run("rooms_32", &example));
}

#[test]
fn a_scope_in_cpp_ends_with_its_block() {
    for command in ["g++", "clang++-19"] {
        let standard = "c++11";
        Compiler { command, standard }.run("scope", &["scope.cc"]);
    }
}
