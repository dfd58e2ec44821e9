//! Threads: where the control block and the stack of each begin.

use std::collections::BTreeSet;

use warmq_color::threads::{builder, colored_size};

thread_local! {
    static OWN: u8 = const { 0 };
}

#[test]
fn a_size_is_whole_pages_and_the_color() {
    for (index, size) in [
        (0, 8192),
        (1, 8192 + 64),
        (63, 8192 + 63 * 64),
        (64, 8192 + 64),
    ] {
        assert_eq!(colored_size(8000, index), size, "thread {index}");
    }
    assert_eq!(colored_size(usize::MAX, 63), usize::MAX);
}

/// Needs a C library that does not round the size of a stack to pages, as glibc.
#[test]
#[cfg(target_env = "gnu")]
fn stacks_and_thread_locals_lie_at_many_offsets_of_a_page() {
    let place = || {
        let on_stack = 0_u8;
        let addresses = [
            OWN.with(|own| std::ptr::from_ref(own).addr()),
            (&raw const on_stack).addr(),
        ];
        addresses.map(|address| address % 4096 / 64)
    };
    let spawn = |_| builder(64 << 10).spawn(place).expect("a thread");
    let threads: Vec<_> = (0..64).map(spawn).collect();
    let places: Vec<[usize; 2]> = threads
        .into_iter()
        .map(|thread| thread.join().expect("ends"))
        .collect();
    for which in 0..2 {
        let offsets: BTreeSet<usize> = places.iter().map(|place| place[which]).collect();
        assert!(offsets.len() >= 32, "{offsets:?}");
    }
}
