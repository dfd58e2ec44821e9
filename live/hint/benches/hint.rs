//! What a hint costs its program on this machine: nanoseconds a call.
//!
//! Whether a scheduler listens is printed first, as all figures depend on it. The system call by
//! itself stands beside them: it is what the thread pays when it asks the kernel.

use divan::Bencher;

const ROOMS: u32 = 1;

fn main() {
    let listening = if warmq_hint::listening() {
        "a scheduler listens"
    } else {
        "no scheduler listens"
    };
    println!("{listening}");
    divan::main();
    warmq_hint::leave();
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
