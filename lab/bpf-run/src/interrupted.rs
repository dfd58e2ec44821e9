//! Runs that are interrupted: several at a time, in the memory of one [`Guest`].
//!
//! A run is a value: registers, frames, and where it goes on. It has a stack of its own, which is
//! in the guest's memory only while it goes on, so that any other can go on in between.

use crate::calls;
use crate::decode::{Op, own};
use crate::ending::Ended;
use crate::guest::Guest;
use crate::kernel::{Access, Callee, Kernel};
use crate::memory::{FROZEN, Memory, Stack};
use crate::program::{Program, Run, Thread, write_context};

/// A run that may be interrupted before each access to memory that others see (which is not its
/// stack, and not what nobody writes), and before each call that depends on others.
#[derive(Clone, Debug)]
pub struct Interrupted {
    thread: Thread,
    stack: Stack,
    arguments: u64,
    /// Instructions that it may still run.
    left: u64,
}

/// What a run that is interrupted does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It accesses so many bytes at an address.
    Access(u64, u32, Access),
    /// It calls what is not in the object, with these arguments.
    Call(Callee, [u64; 5]),
}

impl Interrupted {
    /// A run of a function with up to five arguments, which has not begun.
    pub fn new(program: &Program, guest: &Guest, function: u32, args: &[u64]) -> Interrupted {
        Interrupted {
            thread: program.thread(0, function, args),
            stack: Memory::new_stack(),
            arguments: args.len() as u64,
            left: guest.shape.instructions,
        }
    }

    /// The same of a program that takes a pointer to its arguments, as [`Program::run_context`].
    pub fn with_context(
        program: &Program,
        guest: &mut Guest,
        function: u32,
        args: &[u64],
    ) -> Interrupted {
        let mut new = Interrupted::new(program, guest, function, &[]);
        new.exchange(guest);
        let context = write_context(guest, args);
        new.exchange(guest);
        new.thread.registers[1] = context;
        new
    }

    /// Goes on until it is interrupted again (`None`), or returns.
    ///
    /// # Errors
    /// How it ended before, and where.
    pub fn go_on<K: Kernel>(
        &mut self,
        program: &Program,
        guest: &mut Guest,
        kernel: &mut K,
    ) -> Result<Option<u64>, Box<Ended>> {
        self.exchange(guest);
        guest.end = guest.instructions.saturating_add(self.left);
        let result = program.resume(guest, kernel, &mut self.thread);
        self.left = guest.end.saturating_sub(guest.instructions);
        guest.depth = 0;
        self.exchange(guest);
        result
    }

    /// Puts its stack and its arguments into the guest, or takes them out.
    fn exchange(&mut self, guest: &mut Guest) {
        guest.memory.exchange_stack(&mut self.stack);
        std::mem::swap(&mut guest.arguments, &mut self.arguments);
    }

    /// What it does next, where it was interrupted.
    pub fn next(&self, program: &Program) -> Option<Next> {
        let op = program.ops.get(self.thread.at)?;
        match op.code {
            own::HELPER => Some(self.call(Callee::Helper(op.imm as u32))),
            own::KFUNC => Some(self.call(Callee::Kfunc(op.imm as u32))),
            _ => {
                let (address, size, access) = accessed(op, &self.thread.registers)?;
                Some(Next::Access(address, size, access))
            }
        }
    }

    fn call(&self, callee: Callee) -> Next {
        let registers = &self.thread.registers;
        Next::Call(callee, std::array::from_fn(|at| registers[at + 1]))
    }

    /// The instruction that it runs next, by its index in `Image::code`.
    pub fn at(&self, program: &Program) -> u32 {
        program.place(self.thread.at)
    }
}

/// What an instruction accesses: its address, bytes, and how.
fn accessed(op: &Op, registers: &[u64; 16]) -> Option<(u64, u32, Access)> {
    let base = |register: u8| registers[usize::from(register & 15)].wrapping_add(op.off as u64);
    let size = match op.code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    };
    match (op.code & 7, op.code & 0xe0) {
        (1, 0x60 | 0x80) => Some((base(op.src), size, Access::Load)),
        (2 | 3, 0x60) => Some((base(op.dst), size, Access::Store)),
        (3, 0xc0) => Some((base(op.dst), size, Access::Atomic)),
        _ => None,
    }
}

impl<K: Kernel> Run<'_, K> {
    /// Whether an instruction depends on what others do, or they on it.
    pub(crate) fn is_shared(&self, op: &Op) -> bool {
        match op.code {
            own::HELPER => calls::helper(op.imm as u32).is_none_or(calls::Local::is_shared),
            own::KFUNC => {
                let local = self.program.local.get(op.imm as usize).copied().flatten();
                local.is_none_or(calls::Local::is_shared)
            }
            _ => {
                let accessed = accessed(op, &self.thread.registers);
                accessed.is_some_and(|(address, ..)| {
                    !Memory::is_stack(address) && address >> 40 != FROZEN >> 40
                })
            }
        }
    }
}
