//! Runs each program of compiled objects once, under a kernel that answers 0 to every call:
//! `run_all SERIES FILE...`. No opcode may be unknown, and nothing may panic.

use std::sync::Arc;

use warmq_bpf::{KernelTable, Object};
use warmq_bpf_run::{Access, Callee, Ending, Guest, Kernel, Program, Shape, offered};

/// A kernel that answers 0.
struct Zero;

impl Kernel for Zero {
    fn call(&mut self, _: Callee, _: [u64; 5], _: &mut Guest) -> Result<u64, Ending> {
        Ok(0)
    }
    fn charge(&mut self, _: u64, _: u32, _: Access) {}
    fn now(&self) -> u64 {
        1_000
    }
    fn cpu(&self) -> u32 {
        0
    }
    fn random(&mut self) -> u32 {
        4
    }
}

/// Runs all programs of an object; a line for each that ended.
fn run_all(bytes: &[u8], kernel: &KernelTable) -> Result<Vec<String>, String> {
    let object = Object::read(bytes).map_err(|error| error.to_string())?;
    let mut offer = offered();
    offer.kfuncs.extend(kernel.kfuncs.keys().cloned());
    offer.helpers.extend(1..=211);
    offer.maps.extend(1..=33);
    offer.variables.extend(kernel.variables.keys().cloned());
    let image = object.fit(kernel, &offer).map_err(|missing| {
        let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
        all.join("; ")
    })?;
    let image = Arc::new(image);
    let mut guest = Guest::new(image.clone(), Shape::of(4)).map_err(|ending| ending.to_string())?;
    let task = guest
        .allocate(16_384)
        .map_err(|ending| ending.to_string())?;
    for name in &image.kernel_variables {
        let at = guest.allocate_per_cpu(8_192);
        guest.set_variable(name, at.map_err(|ending| ending.to_string())?);
    }
    let program = Program::new(&guest);
    let mut ended = Vec::new();
    for one in &image.programs {
        let result = program.run_context(
            &mut guest,
            &mut Zero,
            one.function,
            &[task, task, task, task],
        );
        ended.extend(result.err().map(|ended| ended.to_string()));
    }
    let live = image.live.iter().filter(|live| **live).count();
    println!(
        "  {} programs, {live} of {} instructions live, {} run, {} loads from nowhere",
        image.programs.len(),
        image.code.len(),
        guest.instructions(),
        guest.faults()
    );
    Ok(ended)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let kernel = args.next().and_then(|series| KernelTable::of(&series));
    let kernel = kernel.expect("a series that is known: run_all 7.3 FILE...");
    for path in args {
        println!("{path}");
        let bytes = std::fs::read(&path).expect("a file");
        match run_all(&bytes, &kernel) {
            Ok(ended) => ended.iter().for_each(|ended| println!("  {ended}")),
            Err(error) => println!("  is not run: {error}"),
        }
    }
}
