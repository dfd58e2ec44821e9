//! How many instructions a second the interpreter runs, beside that of rbpf.

use std::sync::Arc;

use divan::{Bencher, counter::ItemsCount};
use warmq_bpf::{Image, KernelTable, Object};
use warmq_bpf_run::{Access, Callee, Ending, Guest, Kernel, Program, Shape, offered};

/// Of a round: instructions of the loop in bench.bpf.c.
const ROUND: u64 = 24;
const ROUNDS: u64 = 1_000_000;

fn main() {
    divan::main();
}

/// A kernel that costs nothing.
struct Free;

impl Kernel for Free {
    fn call(&mut self, callee: Callee, _: [u64; 5], _: &mut Guest) -> Result<u64, Ending> {
        Err(Ending::Call(format!("{callee:?}")))
    }
    fn charge(&mut self, _: u64, _: u32, _: Access) {}
    fn now(&self) -> u64 {
        0
    }
    fn cpu(&self) -> u32 {
        0
    }
    fn random(&mut self) -> u32 {
        0
    }
}

fn image() -> Arc<Image> {
    let object = Object::read(include_bytes!("../tests/programs/bench.bpf.o")).expect("an object");
    let kernel = KernelTable::of("7.3").expect("a table");
    Arc::new(object.fit(&kernel, &offered()).expect("it fits"))
}

/// The memory of the program: rounds, and what it calculates with.
fn words() -> [u64; 6] {
    [ROUNDS, 12_345, 7, 9, 3, 1 << 40]
}

#[divan::bench(sample_count = 20)]
fn own(bencher: Bencher<'_, '_>) {
    let shape = Shape {
        instructions: u64::MAX / 2,
        ..Shape::of(1)
    };
    let mut guest = Guest::new(image(), shape).expect("memory");
    let memory = guest.allocate(64).expect("memory");
    let program = Program::new(&guest);
    bencher
        .counter(ItemsCount::new(ROUNDS * ROUND))
        .bench_local(|| {
            for (at, word) in (0..).zip(words()) {
                guest.store(memory + at * 8, 8, word).expect("memory");
            }
            program
                .run(&mut guest, &mut Free, 0, &[memory])
                .expect("it runs")
        });
}

#[divan::bench(sample_count = 20)]
fn rbpf(bencher: Bencher<'_, '_>) {
    let image = image();
    let code: Vec<u8> = image
        .code
        .iter()
        .flat_map(|insn| {
            let registers = insn.src << 4 | insn.dst;
            let [low, high] = insn.off.to_le_bytes();
            let [a, b, c, d] = insn.imm.to_le_bytes();
            [insn.code, registers, low, high, a, b, c, d]
        })
        .collect();
    let vm = rbpf::EbpfVmRaw::new(Some(&code)).expect("a program");
    bencher
        .counter(ItemsCount::new(ROUNDS * ROUND))
        .bench_local(|| {
            let mut memory: Vec<u8> = words().iter().flat_map(|word| word.to_le_bytes()).collect();
            vm.execute_program(&mut memory).expect("it runs")
        });
}
