//! What the tests of programs share: a kernel that does nothing, and their objects.

use std::sync::Arc;

use warmq_bpf::{Image, KernelTable, Object};
use warmq_bpf_run::{Access, Callee, Ended, Ending, Guest, Kernel, Program, Shape, offered};

/// A kernel that notes what it is asked for.
#[derive(Default)]
pub struct Quiet {
    pub charged: Vec<(u64, u32, Access)>,
    pub called: Vec<(Callee, [u64; 5])>,
}

/// `bpf_timer_start`.
pub const TIMER_START: u32 = 171;

impl Kernel for Quiet {
    fn call(&mut self, callee: Callee, args: [u64; 5], _: &mut Guest) -> Result<u64, Ending> {
        self.called.push((callee, args));
        match callee {
            Callee::Helper(TIMER_START) => Ok(0),
            _ => Err(Ending::Call(format!("{callee:?}"))),
        }
    }
    fn charge(&mut self, address: u64, size: u32, access: Access) {
        self.charged.push((address, size, access));
    }
    fn now(&self) -> u64 {
        1_000
    }
    fn cpu(&self) -> u32 {
        2
    }
    fn random(&mut self) -> u32 {
        4
    }
}

/// An object of the tests, fitted to 7.3.
pub fn image(bytes: &[u8]) -> Arc<Image> {
    fit(&Object::read(bytes).expect("an object"))
}

/// An object, fitted to 7.3.
pub fn fit(object: &Object) -> Arc<Image> {
    let mut offer = offered();
    offer.helpers.insert(TIMER_START);
    let kernel = KernelTable::of("7.3").expect("a table");
    let image = object.fit(&kernel, &offer);
    Arc::new(image.unwrap_or_else(|missing| panic!("{missing:?}")))
}

/// An object that can run on four CPUs.
pub struct Loaded {
    pub guest: Guest,
    pub kernel: Quiet,
    program: Program,
}

impl Loaded {
    pub fn new(bytes: &[u8]) -> Loaded {
        let guest = Guest::new(image(bytes), Shape::of(4)).expect("memory");
        let program = Program::new(&guest);
        Loaded {
            guest,
            kernel: Quiet::default(),
            program,
        }
    }

    /// Runs a program of a name with one argument.
    pub fn run(&mut self, name: &str, arg: u64) -> Result<u64, Box<Ended>> {
        let program = self.program.image().program(name);
        let function = program
            .unwrap_or_else(|| panic!("no program {name}"))
            .function;
        self.program
            .run_context(&mut self.guest, &mut self.kernel, function, &[arg])
    }

    /// Runs a function with arguments.
    pub fn call(&mut self, function: u32, args: &[u64]) -> Result<u64, Box<Ended>> {
        self.program
            .run(&mut self.guest, &mut self.kernel, function, args)
    }
}
