//! How a program ends before it returns.

use warmq_bpf::{Image, Line};

/// Why a program was ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// More instructions than one callback may run.
    #[error("it ran more than {0} instructions")]
    TooLong(u64),
    /// More calls within calls than there are frames.
    #[error("its calls are more than {0} deep")]
    TooDeep(usize),
    /// A store to where no memory is that the program may write.
    #[error("it wrote {size} bytes at {address:#x}, which is not its to write")]
    Store {
        /// Where.
        address: u64,
        /// Bytes.
        size: u32,
    },
    /// An address that is no map, function or object of the kind that a call wants.
    #[error("{call} got {address:#x}, which is no {wanted}")]
    Argument {
        /// The helper or kfunc.
        call: &'static str,
        /// What it got.
        address: u64,
        /// What it wants.
        wanted: &'static str,
    },
    /// An instruction that does not exist, or that only other kernels reach.
    #[error("instruction {0:#04x} cannot be run")]
    Opcode(u8),
    /// The end of a function without `exit`, or a jump out of it.
    #[error("it left its function without an exit")]
    RanOut,
    /// Memory for maps and objects is used up.
    #[error("{0} bytes of memory are used up")]
    Memory(u64),
    /// A call that nobody offers.
    #[error("it called {0}, which is not there")]
    Call(String),
    /// The kernel around it ends the program, and why: the text of `scx_bpf_error`.
    #[error("{0}")]
    Kernel(String),
}

/// An ending and where it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} (instruction {instruction} of {function}{}): {ending}",
    .program, .line.as_ref().map(|line| format!(", {}", line.place())).unwrap_or_default())]
pub struct Ended {
    /// Why.
    pub ending: Ending,
    /// The function that the kernel called.
    pub program: String,
    /// The function in which it ended.
    pub function: String,
    /// The instruction, from the function's first.
    pub instruction: u32,
    /// The line of the source.
    pub line: Option<Line>,
}

impl Ended {
    pub(crate) fn at(image: &Image, entry: u32, at: u32, ending: Ending) -> Box<Ended> {
        let name = |at| image.function_at(at).map(|function| function.name.clone());
        let start = image.function_at(at).map_or(0, |function| function.start);
        Box::new(Ended {
            ending,
            program: name(entry).unwrap_or_default(),
            function: name(at).unwrap_or_default(),
            instruction: at.saturating_sub(start),
            line: image.line_at(at).cloned(),
        })
    }
}
