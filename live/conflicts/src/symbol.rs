//! An array by the name of its symbol, in the program of a process.

use std::fs;

use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};

use crate::error::ConflictsError;
use crate::process::Process;

/// Where symbol `name` of the program of `process` lies, and its size in bytes.
///
/// # Errors
/// A program that cannot be read, or has no such symbol.
pub fn symbol(process: &Process, name: &str) -> Result<(u64, u64), ConflictsError> {
    let exe = process.folder().join("exe");
    let file = exe.display().to_string();
    let bytes =
        fs::read(&exe).map_err(|error| ConflictsError::of_process(process.pid, "exe", error))?;
    let elf = ElfFile64::<Endianness>::parse(&*bytes).map_err(|error| {
        ConflictsError::file(&file, error.to_string(), "programs of 64 bits can be read")
    })?;
    let mut all = elf.symbols().chain(elf.dynamic_symbols());
    let found = all.find(|symbol| symbol.name() == Ok(name) && symbol.is_definition());
    let Some(found) = found else {
        let what = format!("there is no symbol {name}");
        let fix = "`nm` lists them; a program that is stripped has none, then name --blocks";
        return Err(ConflictsError::file(file, what, fix));
    };
    let base = base(process, &elf).ok_or_else(|| {
        ConflictsError::file(
            &file,
            "it is not mapped from its start",
            "name --blocks instead",
        )
    })?;
    Ok((base.wrapping_add(found.address()), found.size()))
}

/// What is added to addresses in the file: where its first byte is mapped, less where the file
/// wants it. 0 for a program that is not position-independent.
fn base(process: &Process, elf: &ElfFile64<'_>) -> Option<u64> {
    let path = fs::read_link(process.folder().join("exe")).ok()?;
    let path = path.to_str()?;
    let mut mapped = process.mappings.iter();
    let mapped = mapped.find(|mapping| mapping.path == path && mapping.offset == 0)?;
    let endian = elf.endian();
    let first = |header: &&object::elf::ProgramHeader64<Endianness>| {
        header.p_type(endian) == PT_LOAD && header.p_offset(endian) == 0
    };
    let wanted = elf
        .elf_program_headers()
        .iter()
        .find(first)?
        .p_vaddr(endian);
    Some(mapped.start.wrapping_sub(wanted))
}
