//! The shared objects that a program needs.
//!
//! The dynamic loader that the program names lists them (`LOADER --list PROGRAM`, as `ldd` does).
//! It knows the cache, run paths and hardware variants best, and runs no code of the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::Endianness;
use object::elf::{DT_NEEDED, EM_X86_64, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::VmError;

/// The loader of a shared object that names none.
const USUAL_LOADER: &str = "/lib64/ld-linux-x86-64.so.2";

/// How an ELF file wants to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Linkage {
    Static,
    /// By this loader, if it names one.
    Dynamic(Option<String>),
}

/// The files that `file` needs at the same paths, including its loader. None for a static program.
///
/// # Errors
/// When one of them is missing, or the file cannot run on x86-64.
pub(crate) fn shared_objects(file: &Path, elf: &[u8]) -> Result<Vec<PathBuf>, VmError> {
    let linkage = linkage(elf).map_err(|problem| unfit(file, &problem))?;
    let Linkage::Dynamic(loader) = linkage else {
        return Ok(Vec::new());
    };
    let loader = loader.unwrap_or_else(|| USUAL_LOADER.to_owned());
    let listing = ask(&loader, file)?;
    let mut objects = vec![PathBuf::from(loader)];
    for line in listing.lines() {
        match listed(line) {
            Listed::At(path) => objects.push(path.into()),
            Listed::Nowhere(name) => return Err(absent(file, name)),
            Listed::Nothing => {}
        }
    }
    objects.sort();
    objects.dedup();
    Ok(objects)
}

fn linkage(elf: &[u8]) -> Result<Linkage, String> {
    let text = |error: object::read::Error| error.to_string();
    let header = FileHeader64::<Endianness>::parse(elf).map_err(text)?;
    let endian = header.endian().map_err(text)?;
    if header.e_machine(endian) != EM_X86_64 {
        return Err("it is not made for x86-64".to_owned());
    }
    let mut needs = false;
    for segment in header.program_headers(endian, elf).map_err(text)? {
        if let Some(name) = segment.interpreter(endian, elf).map_err(text)? {
            let name = String::from_utf8_lossy(name).into_owned();
            return Ok(Linkage::Dynamic(Some(name)));
        }
        // A static program at a random address has such a segment, too, and needs no loader.
        let entries = segment.dynamic(endian, elf).map_err(text)?.unwrap_or(&[]);
        needs |= entries.iter().any(|entry| entry.tag(endian) == DT_NEEDED);
    }
    Ok(if needs {
        Linkage::Dynamic(None)
    } else {
        Linkage::Static
    })
}

/// The loader's list of what it would load with `file`. The loader fails if something is missing,
/// and reports it on either stream.
fn ask(loader: &str, file: &Path) -> Result<String, VmError> {
    let answer = Command::new(loader)
        .arg("--list")
        .arg(file)
        // The guest does not have these variables, so objects found through them would be missing.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("LD_PRELOAD")
        .output()
        .map_err(VmError::system(format!(
            "ask {loader} what {} needs",
            file.display()
        )))?;
    let list = String::from_utf8_lossy(&answer.stdout).into_owned();
    if answer.status.success() || list.contains(NOWHERE) {
        return Ok(list);
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    Err(VmError::Tool {
        tool: format!("{loader} --list {}", file.display()),
        said: said.trim().to_owned(),
        help: "install what is missing, or link the program statically".to_owned(),
    })
}

/// What the loader writes after the name of an object that it does not find.
const NOWHERE: &str = " => not found";

/// The meaning of a line of the loader's list.
#[derive(Debug, PartialEq, Eq)]
enum Listed<'a> {
    At(&'a str),
    Nowhere(&'a str),
    /// The vDSO, which is the kernel's, or the loader, which is already known.
    Nothing,
}

fn listed(line: &str) -> Listed<'_> {
    if let Some(name) = line.trim().strip_suffix(NOWHERE) {
        return Listed::Nowhere(name);
    }
    let place = line.split_once(" => ").map(|(_, place)| place);
    let path = place.and_then(|place| Some(place.rsplit_once(" (0x")?.0));
    path.map_or(Listed::Nothing, Listed::At)
}

fn unfit(file: &Path, problem: &str) -> VmError {
    let help = "give a program for x86-64 Linux";
    VmError::setting("file", file.display(), problem, help)
}

fn absent(file: &Path, name: &str) -> VmError {
    VmError::missing(
        format!("{} needs {name}, which is not found", file.display()),
        "install it, or add its folder to /etc/ld.so.conf.d and run ldconfig",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_lines_of_a_loader_are_understood() {
        for (line, expected) in [
            ("\tlinux-vdso.so.1 (0x00007f10)", Listed::Nothing),
            (
                "\tlibc.so.6 => /lib/libc.so.6 (0x00007f10)",
                Listed::At("/lib/libc.so.6"),
            ),
            (
                "\tlibx.so => /a b (0x1)/libx.so (0x2)",
                Listed::At("/a b (0x1)/libx.so"),
            ),
            (
                "\t/lib64/ld-linux-x86-64.so.2 (0x00007f10)",
                Listed::Nothing,
            ),
            (
                "\tlibgone.so.2 => not found",
                Listed::Nowhere("libgone.so.2"),
            ),
            ("", Listed::Nothing),
        ] {
            assert_eq!(listed(line), expected, "{line}");
        }
    }

    #[test]
    fn a_program_comes_with_its_libraries_and_its_loader() {
        let this = std::env::current_exe().unwrap();
        let elf = fs::read(&this).unwrap();
        let Linkage::Dynamic(Some(loader)) = linkage(&elf).unwrap() else {
            // Built for a static target: it needs nothing.
            assert_eq!(shared_objects(&this, &elf).unwrap(), Vec::<PathBuf>::new());
            return;
        };
        let objects = shared_objects(&this, &elf).unwrap();
        assert!(objects.contains(&PathBuf::from(loader)), "{objects:?}");
        assert!(objects.len() >= 2, "{objects:?}");
        assert!(
            objects
                .iter()
                .all(|object| object.is_absolute() && object.is_file()),
            "{objects:?}"
        );
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let refused = |elf: &[u8]| shared_objects(Path::new("x"), elf).unwrap_err().to_string();
        assert!(refused(b"\x7fELF").starts_with("--file x: "));
        let mut other = fs::read(std::env::current_exe().unwrap()).unwrap();
        // e_machine: AArch64.
        other[18] = 183;
        assert!(refused(&other).contains("not made for x86-64"));
    }
}
