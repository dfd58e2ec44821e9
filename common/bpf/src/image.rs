//! What a loaded object is: code, functions, programs, maps, and what they name of the kernel.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::btf::Btf;
use crate::variables::Variables;

/// An object that fits a kernel: every relocation is done, and what is left to be resolved is named
/// by indexes into the lists of this struct. It is never changed after loading but by variables,
/// which are bytes of [`Map::initial`].
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// All functions one after another. `ld_imm64` takes two, the second of which is never reached.
    pub code: Vec<Insn>,
    /// Whether each instruction can run at all on this kernel.
    pub live: Vec<bool>,
    /// Sorted by their first instruction.
    pub functions: Vec<Function>,
    /// Whoever the kernel can call.
    pub programs: Vec<Program>,
    /// Maps of `.maps`, then sections of data.
    pub maps: Vec<Map>,
    /// Names of the kfuncs that live code calls, by the numbers in [`To::Kfunc`].
    pub kfuncs: Vec<String>,
    /// Names of the kernel's variables that live code addresses, by the numbers in [`To::Kernel`].
    pub kernel_variables: Vec<String>,
    /// The struct of callbacks, if the object has one.
    pub ops: Option<StructOps>,
    /// Which line an instruction is of, by the first instruction of each line.
    pub lines: BTreeMap<u32, Line>,
    pub(crate) variables: Arc<Variables>,
    pub(crate) btf: Arc<Btf>,
}

/// One instruction as the kernel's `struct bpf_insn` has it, and what it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// Class, size or source, and operation.
    pub code: u8,
    /// The destination register, 0 to 10.
    pub dst: u8,
    /// The source register, 0 to 10; in calls and `ld_imm64`, a kind.
    pub src: u8,
    /// Of a jump, in instructions; of memory, in bytes.
    pub off: i16,
    /// The constant.
    pub imm: i32,
    /// What an `ld_imm64` or a call names.
    pub to: To,
}

/// What an instruction names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum To {
    /// Nothing.
    #[default]
    Nothing,
    /// `ld_imm64` of a constant.
    Number(u64),
    /// `ld_imm64` of a map, by its index in [`Image::maps`].
    Map(u32),
    /// `ld_imm64` of a byte of a map's only value.
    MapValue(u32, u32),
    /// `ld_imm64` of a function, or a call of it, by its index in [`Image::functions`].
    Function(u32),
    /// `ld_imm64` of a variable of the kernel, by its index in [`Image::kernel_variables`].
    Kernel(u32),
    /// A call of a helper, by its number in `enum bpf_func_id`.
    Helper(u32),
    /// A call of a kfunc, by its index in [`Image::kfuncs`].
    Kfunc(u32),
}

/// A function of the object: a program or what programs call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// The section that it is in.
    pub section: String,
    /// Its first instruction in [`Image::code`].
    pub start: u32,
    /// One after its last.
    pub end: u32,
}

/// A function that the kernel calls, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The function's name.
    pub name: String,
    /// Index in [`Image::functions`].
    pub function: u32,
    /// What it is attached to.
    pub kind: ProgramKind,
    /// Whether it can sleep: `struct_ops.s/`, `fentry.s/`, and all of `syscall`.
    pub sleepable: bool,
    /// Whether user space has to turn it on: `SEC("?...")`.
    pub optional: bool,
}

/// What a program is attached to, by its section's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    /// A callback of the struct in [`Image::ops`].
    StructOps,
    /// Run by user space.
    Syscall,
    /// A tracepoint with its raw arguments: `tp_btf/NAME`.
    Tracepoint(String),
    /// Before a function of the kernel: `fentry/NAME`.
    Fentry(String),
    /// After a function of the kernel: `fexit/NAME`.
    Fexit(String),
    /// Instead of a function of the kernel, if it returns anything but 0: `fmod_ret/NAME`.
    ModifyReturn(String),
    /// Whatever else a section names (`kprobe/NAME`...): not attached in the lab.
    Other(String),
}

/// A `struct sched_ext_ops` in `.struct_ops` or `.struct_ops.link`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructOps {
    /// The variable's name.
    pub variable: String,
    /// The type's name, without what follows `___`.
    pub type_name: String,
    /// Members that are callbacks, and their functions ([`Image::functions`]).
    pub callbacks: BTreeMap<String, u32>,
    /// Members that are numbers: `flags`, `timeout_ms`...
    pub numbers: BTreeMap<String, u64>,
    /// Members that are text: `name`.
    pub texts: BTreeMap<String, String>,
    /// Where members are in the struct, and their bytes.
    pub members: BTreeMap<String, (u32, u32)>,
}

impl StructOps {
    /// Where a member is in the struct.
    pub(crate) fn place(&self, member: &str) -> usize {
        self.members.get(member).map_or(0, |(at, _)| *at as usize)
    }
}

/// A map, as it is declared or as libbpf makes it of a section of data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// Its variable's name, or the section's.
    pub name: String,
    /// What it is.
    pub kind: MapKind,
    /// Bytes.
    pub key_size: u32,
    /// Bytes.
    pub value_size: u32,
    /// The type of its values; 0: none.
    pub value_type: u32,
    /// Values of arrays; the most that a hash or a queue holds; pages of an arena.
    pub max_entries: u32,
    /// `BPF_F_...`.
    pub flags: u32,
    /// What else a map's kind wants (of an arena, where user space has it).
    pub extra: u64,
    /// What a map of maps holds.
    pub inner: Option<Box<Map>>,
    /// The maps that a map of maps is declared with, by their indexes in [`Image::maps`].
    pub values: Vec<Option<u32>>,
    /// Fields of the value that only the kernel may change.
    pub special: Vec<Special>,
    /// The only value's bytes at first, of sections of data; of an arena, its first pages.
    pub initial: Arc<Vec<u8>>,
    /// Whether programs can only read it: `.rodata*` and `.kconfig`.
    pub frozen: bool,
}

/// Kinds of maps, by the numbers of `enum bpf_map_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MapKind {
    /// `BPF_MAP_TYPE_HASH`.
    Hash,
    /// `BPF_MAP_TYPE_ARRAY`; sections of data, too.
    #[default]
    Array,
    /// `BPF_MAP_TYPE_PERF_EVENT_ARRAY`.
    PerfEventArray,
    /// `BPF_MAP_TYPE_PERCPU_HASH`.
    PerCpuHash,
    /// `BPF_MAP_TYPE_PERCPU_ARRAY`.
    PerCpuArray,
    /// `BPF_MAP_TYPE_LRU_HASH`.
    LruHash,
    /// `BPF_MAP_TYPE_ARRAY_OF_MAPS`.
    ArrayOfMaps,
    /// `BPF_MAP_TYPE_HASH_OF_MAPS`.
    HashOfMaps,
    /// `BPF_MAP_TYPE_QUEUE`.
    Queue,
    /// `BPF_MAP_TYPE_STACK`.
    Stack,
    /// `BPF_MAP_TYPE_RINGBUF`.
    RingBuffer,
    /// `BPF_MAP_TYPE_TASK_STORAGE`.
    TaskStorage,
    /// `BPF_MAP_TYPE_USER_RINGBUF`.
    UserRingBuffer,
    /// `BPF_MAP_TYPE_CGRP_STORAGE`.
    CgroupStorage,
    /// `BPF_MAP_TYPE_ARENA`.
    Arena,
    /// Any other.
    Other(u32),
}

/// A field of a map's value that only the kernel may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Special {
    /// From the value's first byte.
    pub offset: u32,
    /// What it is.
    pub kind: SpecialKind,
}

/// Kinds of [`Special`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecialKind {
    /// A pointer that `bpf_kptr_xchg` swaps, and the type that it points to.
    Kptr(String),
    /// `struct bpf_timer`.
    Timer,
    /// `struct bpf_spin_lock`.
    SpinLock,
}

/// A line of the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// As the compiler saw it; [`Line::place`] has its end only.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
    /// Its text.
    pub text: Arc<str>,
}

impl Line {
    /// `main.bpf.c:12`.
    pub fn place(&self) -> String {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        format!("{name}:{}", self.line)
    }
}

impl ProgramKind {
    /// The event at which the kernel runs it, as its section says it: `tp_btf/sched_switch`.
    pub fn event(&self) -> Option<String> {
        match self {
            ProgramKind::StructOps | ProgramKind::Syscall => None,
            ProgramKind::Tracepoint(to) => Some(format!("tp_btf/{to}")),
            ProgramKind::Fentry(to) => Some(format!("fentry/{to}")),
            ProgramKind::Fexit(to) => Some(format!("fexit/{to}")),
            ProgramKind::ModifyReturn(to) => Some(format!("fmod_ret/{to}")),
            ProgramKind::Other(section) => Some(section.clone()),
        }
    }
}

impl Image {
    /// The function that an instruction is in.
    pub fn function_at(&self, at: u32) -> Option<&Function> {
        let after = self
            .functions
            .partition_point(|function| function.start <= at);
        let function = &self.functions[after.checked_sub(1)?];
        (at < function.end).then_some(function)
    }

    /// The line that an instruction is of.
    pub fn line_at(&self, at: u32) -> Option<&Line> {
        let start = self.function_at(at)?.start;
        let (_, line) = self.lines.range(start..=at).next_back()?;
        Some(line)
    }

    /// Bytes of one of the object's own types, by its id.
    pub fn type_size(&self, id: u32) -> u64 {
        self.btf.size(id)
    }

    /// The map of a name, and its index.
    pub fn map(&self, name: &str) -> Option<(u32, &Map)> {
        let at = self.maps.iter().position(|map| map.name == name)?;
        Some((at as u32, &self.maps[at]))
    }

    /// The program of a name.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == name)
    }
}
