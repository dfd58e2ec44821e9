//! Objects with wrong bytes are refused or end, and never panic.

use std::sync::Arc;

use proptest::prelude::*;
use warmq_bpf::{KernelTable, Object};
use warmq_bpf_run::{Guest, Program, Shape, offered};

use crate::common::{Quiet, TIMER_START};

/// A machine with little memory and little patience.
fn small() -> Shape {
    Shape {
        cpus: 3,
        memory: 1 << 22,
        instructions: 20_000,
    }
}

/// Fits an object, if it can be read, and runs all its programs.
fn run_all(bytes: &[u8], kernel: &KernelTable) {
    let Ok(object) = Object::read(bytes) else {
        return;
    };
    let mut offer = offered();
    offer.helpers.insert(TIMER_START);
    let Ok(image) = object.fit(kernel, &offer) else {
        return;
    };
    let image = Arc::new(image);
    let Ok(mut guest) = Guest::new(image.clone(), small()) else {
        return;
    };
    let program = Program::new(&guest);
    let mut around = Quiet::default();
    for one in &image.programs {
        let _ = program.run_context(&mut guest, &mut around, one.function, &[1 << 50, 3]);
        around.charged.clear();
    }
}

fn table() -> &'static KernelTable {
    static TABLE: std::sync::OnceLock<KernelTable> = std::sync::OnceLock::new();
    TABLE.get_or_init(|| KernelTable::of("7.3").expect("a table"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(5_000) })]

    #[test]
    fn flipped_bytes_never_panic(
        which in 0_usize..5,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let objects = [crate::VALUES, crate::MAPS, crate::ARENA, crate::GRAPH, crate::BROKEN];
        let mut bytes = objects[which].to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        run_all(&bytes, table());
    }

    /// Only code changes, so that what is read nearly always runs.
    #[test]
    fn flipped_instructions_never_panic(
        which in 0_usize..5,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let objects = [crate::VALUES, crate::MAPS, crate::ARENA, crate::GRAPH, crate::BROKEN];
        let mut bytes = objects[which].to_vec();
        let code = code_of(&bytes);
        for (at, value) in flips {
            let at = code[at.index(code.len())];
            bytes[at] = value;
        }
        run_all(&bytes, table());
    }
}

/// Where the bytes of code are in a file: sections of its own, found by their instructions.
fn code_of(bytes: &[u8]) -> Vec<usize> {
    let number = |at: usize, size: usize| {
        bytes[at..at + size]
            .iter()
            .rev()
            .fold(0_usize, |all, byte| all << 8 | usize::from(*byte))
    };
    let (headers, size, count) = (number(40, 8), number(58, 2), number(60, 2));
    let headers = (0..count).map(|at| headers + at * size);
    // SHT_PROGBITS with SHF_EXECINSTR
    let code = headers.filter(|at| number(at + 4, 4) == 1 && number(at + 8, 8) & 4 != 0);
    code.flat_map(|at| number(at + 24, 8)..number(at + 24, 8) + number(at + 32, 8))
        .collect()
}
