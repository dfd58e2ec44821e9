//! What a hint costs its program on this machine: nanoseconds a call.
//!
//! Whether a scheduler listens is printed first, as the figures depend on it. `ask_at_once` is
//! little but the system call, which is what a thread pays to be heard. What a slot costs is
//! measured by `slot.c`, over the tests' kernel, so that it can be had on any machine.

use std::path::Path;
use std::process::Command;

use divan::Bencher;

const ROOMS: u32 = 1;

fn main() {
    println!(
        "{}",
        match warmq_hint::listening() {
            true => "a scheduler listens",
            false => "no scheduler listens",
        }
    );
    divan::main();
    warmq_hint::leave();
    // Under `cargo test` this only has to run.
    if std::env::args().any(|argument| argument == "--bench") {
        println!("with a slot that is read:");
        with_a_slot().unwrap_or_else(|why| println!("not measured: {why}"));
    }
}

/// Compiles and runs `slot.c`.
fn with_a_slot() -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("slot");
    let compiled = Command::new("cc")
        .args(["-O2", "-I"])
        .arg(folder.join("include"))
        .arg(folder.join("benches/slot.c"))
        .arg("-o")
        .arg(&program)
        .status()?;
    if !compiled.success() {
        return Err(std::io::Error::other("cc could not compile slot.c"));
    }
    Command::new(program).status().map(drop)
}

#[divan::bench]
fn enter_the_same_fragment() -> warmq_hint::Answer {
    warmq_hint::enter(ROOMS, divan::black_box(7))
}

#[divan::bench]
fn enter_two_fragments_in_turn(bencher: Bencher) {
    let mut fragment = 0;
    bencher.bench_local(|| {
        fragment ^= 1;
        warmq_hint::enter(ROOMS, fragment)
    });
}

#[divan::bench]
fn leave() -> warmq_hint::Answer {
    warmq_hint::leave()
}

#[divan::bench]
fn a_scope() {
    let _scope = warmq_hint::Scope::enter(ROOMS, divan::black_box(7));
}

#[divan::bench]
fn ask_at_once() -> bool {
    warmq_hint::listening()
}
