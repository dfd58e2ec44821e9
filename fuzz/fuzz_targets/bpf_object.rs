//! Whatever the bytes, the reader of compiled BPF objects answers, and what fits a kernel runs to
//! its end or to an ending, in bounded memory and time.

#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use warmq_bpf::{KernelTable, Object};
use warmq_bpf_run::{Access, Callee, Ending, Guest, Kernel, Program, Shape, offered};

/// A kernel that offers nothing.
struct Nobody;

impl Kernel for Nobody {
    fn call(&mut self, callee: Callee, _: [u64; 5], _: &mut Guest) -> Result<u64, Ending> {
        Err(Ending::Call(format!("{callee:?}")))
    }
    fn charge(&mut self, _: u64, _: u32, _: Access) {}
    fn now(&self) -> u64 {
        1
    }
    fn cpu(&self) -> u32 {
        0
    }
    fn random(&mut self) -> u32 {
        4
    }
}

static KERNEL: OnceLock<KernelTable> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    let kernel = KERNEL.get_or_init(|| KernelTable::of("7.3").expect("a table"));
    let Ok(object) = Object::read(bytes) else { return };
    let image = match object.fit(kernel, &offered()) {
        Ok(image) => Arc::new(image),
        Err(missing) => return assert!(!missing.is_empty()),
    };
    let shape = Shape { cpus: 3, memory: 1 << 22, instructions: 20_000 };
    let Ok(mut guest) = Guest::new(image.clone(), shape) else { return };
    let program = Program::new(&guest);
    for one in &image.programs {
        let before = guest.instructions();
        let _ = program.run_context(&mut guest, &mut Nobody, one.function, &[1 << 50, 3]);
        assert!(guest.instructions() - before <= shape.instructions + image.code.len() as u64);
    }
});
