//! The programs that a world needs: the player, and schedulers.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use warmq_experiment::KERNEL;

/// The program that plays.
pub const PLAYER: &str = "warmq-player";

/// The program `name`: a path, one that was built with this one, or one on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let beside = std::env::current_exe().ok();
    let beside = beside.iter();
    let folders = beside.flat_map(|program| program.ancestors().skip(1).take(2));
    let built = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    built.or_else(|| warmq_vm::program_on_path(OsStr::new(name)))
}

/// What has the compiled scheduler `name` in it: its program, or `NAME.bpf.o` in the same places.
pub fn compiled(name: &str) -> Option<PathBuf> {
    let object = format!("{name}.bpf.o");
    let found = find(name).or_else(|| find(&object));
    found.or_else(|| on_path(&object))
}

/// A file in one of the folders of PATH, which need not be a program.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// The program of a scheduler; none for the kernel's own.
///
/// # Errors
/// There is no such program.
pub fn scheduler(name: &str) -> Result<Option<PathBuf>, String> {
    if name == KERNEL {
        return Ok(None);
    }
    compiled(name).map(Some).ok_or_else(|| {
        format!(
            "no scheduler {name} is found: give \"{KERNEL}\", the path of a sched_ext scheduler's \
             program or object, or the name of one on PATH (scx_warmq is built by `cargo build --release -p \
             scx_warmq`)"
        )
    })
}

/// A program of ours: the one that plays, or the one that attaches schedulers.
///
/// # Errors
/// It is not where this one is.
pub fn ours(name: &str) -> Result<PathBuf, String> {
    find(name).ok_or_else(|| {
        format!(
            "{name} is not found beside this program: build it with `cargo build --release -p \
             {name}`, or put it on PATH"
        )
    })
}

/// The name of `program` without its folders.
pub fn file_name(program: &Path) -> String {
    program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}
