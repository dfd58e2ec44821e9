//! What the interpreter asks of whoever runs it.

use crate::ending::Ending;
use crate::guest::Guest;

/// What a program calls that is not in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// By its number in `enum bpf_func_id`.
    Helper(u32),
    /// By its index in `Image::kfuncs`.
    Kfunc(u32),
}

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Load,
    /// Written.
    Store,
    /// Read and written at once.
    Atomic,
}

/// The kernel around a program. The interpreter knows it only by this; helpers and kfuncs that need
/// nothing but memory and maps ([`crate::offered`]) never reach it.
pub trait Kernel {
    /// Whether it wants to know of each function and instruction. Where it does not, that costs
    /// nothing.
    const STEPS: bool = false;
    /// Whether [`crate::Interrupted::go_on`] comes back before each access to memory that others
    /// see, and before each call. Where it does not, that costs nothing.
    const INTERRUPTED: bool = false;
    /// A function of the object begins, by its index in `Image::functions`.
    fn entered(&mut self, function: u32) {
        let _ = function;
    }
    /// An instruction is run, by its index in `Image::code`.
    fn step(&mut self, instruction: u32) {
        let _ = instruction;
    }
    /// Runs what `callee` names, with the five arguments of the calling convention, and returns
    /// what it returns.
    ///
    /// # Errors
    /// How the program ends, where it must: `scx_bpf_error`, a call that is not offered.
    fn call(&mut self, callee: Callee, args: [u64; 5], guest: &mut Guest) -> Result<u64, Ending>;
    /// A program calls `callee`, whoever runs it: for costs. Called before [`Kernel::call`], and
    /// for calls that never get there.
    fn called(&mut self, callee: Callee, args: &[u64; 5]) {
        let _ = (callee, args);
    }
    /// A program accesses `size` bytes at `address`, which is in memory that exists and is not the
    /// stack. Called before the access.
    fn charge(&mut self, address: u64, size: u32, access: Access);
    /// Nanoseconds of the clock that `bpf_ktime_get_ns` reads.
    fn now(&self) -> u64;
    /// The CPU that runs the program.
    fn cpu(&self) -> u32;
    /// A number from the stream of `bpf_get_prandom_u32`.
    fn random(&mut self) -> u32;
    /// The first CPU that `cpumask_any_distribute()` tries on the CPU that runs the program. (The
    /// very first is CPU 1.)
    fn turn(&self) -> u32 {
        1
    }
    /// It took `cpu`; next time it goes on behind that.
    fn took(&mut self, cpu: u32) {
        let _ = cpu;
    }
}
