//! An interpreter of compiled BPF programs, with memory and maps of its own.
//!
//! It knows no scheduler: whoever runs a program implements [`Kernel`], and gets the calls that
//! need more than memory and maps, and each access to memory that is not the stack.
//!
//! ```text
//! let image = Arc::new(object.fit(&kernel_table, &offer)?);      // common/bpf
//! let mut guest = Guest::new(image, Shape::of(cpus))?;           // maps have their first contents
//! let task = guest.allocate(task_size)?;                         // an object of the kernel
//! guest.store(task + weight_at, 4, 100)?;
//! guest.set_variable("runqueues", guest.allocate_per_cpu(size)?);
//! let program = Program::new(&guest);                            // decoded once
//! let returned = program.run(&mut guest, &mut kernel, function, &[task, flags])?;
//! ```
//!
//! Arguments of a callback are plain numbers here. A program of struct_ops, tp_btf, fentry or fexit
//! gets one pointer to an array of them instead, as in the kernel: [`Program::run_context`] makes
//! it. [`offered`] says which calls and maps need nothing of the [`Kernel`].

#![deny(clippy::float_arithmetic)]
#![warn(missing_docs)]

mod calls;
mod cpumask;
mod decode;
mod ending;
mod graph;
mod guest;
mod interrupted;
mod kernel;
mod maps;
mod memory;
mod program;
mod ring;

pub use calls::offered;
pub use ending::{Ended, Ending};
pub use guest::{Guest, Shape, Timer, function_handle, function_of, map_handle, map_of};
pub use interrupted::{Interrupted, Next};
pub use kernel::{Access, Callee, Kernel};
pub use memory::{ARENA, FRAME, FRAMES, FROZEN, HANDLES, HEAP, Memory, PAGE, STACK};
pub use program::Program;
