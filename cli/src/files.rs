//! Files that are there whole or not at all, and folders with one writer: `warmq_output` with the
//! failures of this program.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use warmq_output::{Access, Folder, Output};
use warmq_units::printable;

use crate::failure::Failure;

/// A file that has its name only once it is finished; dropped before, it leaves nothing. Where its
/// path leads to a device, a pipe or an open descriptor, a stream.
#[derive(Debug)]
pub struct Unfinished {
    name: String,
    output: Output,
}

impl Unfinished {
    /// Begins `path`, and hands out what to write to.
    ///
    /// # Errors
    /// When its folder refuses, or another process writes it.
    pub fn begin(path: &Path) -> Result<(Unfinished, BufWriter<File>), Failure> {
        Unfinished::for_whom(path, Access::Usual)
    }

    /// Begins what only its owner may read: it shows what all users' programs did.
    ///
    /// # Errors
    /// When its folder refuses, or another process writes it.
    pub fn private(path: &Path) -> Result<(Unfinished, BufWriter<File>), Failure> {
        Unfinished::for_whom(path, Access::Private)
    }

    fn for_whom(path: &Path, access: Access) -> Result<(Unfinished, BufWriter<File>), Failure> {
        if is_named_again(path, std::env::args_os().skip(1)) {
            return Err(Failure::usage(
                format!(
                    "{} is read by this command, too: it would be lost",
                    printable(path)
                ),
                "write to another file",
            ));
        }
        let begun = Output::begin(path, access);
        let (output, file) = begun.map_err(|why| refused(path, &why))?;
        let name = printable(path).to_string();
        Ok((Unfinished { name, output }, BufWriter::new(file)))
    }

    /// Writes out the rest, and gives the file its name.
    ///
    /// # Errors
    /// When the file cannot be written to its end.
    pub fn finish(self, mut out: BufWriter<File>) -> Result<(), Failure> {
        let flushed = out.flush().map_err(|error| not_written(&self.name, &error));
        flushed?;
        let finished = self.output.finish(out.get_ref());
        finished.map_err(|why| not_written(&self.name, &why))
    }
}

/// Whether more than one of `arguments` names the file that is at `path`, alone or in a list: what
/// is written there is read, too.
fn is_named_again(path: &Path, arguments: impl Iterator<Item = OsString>) -> bool {
    let Ok(here) = path.canonicalize() else {
        return false;
    };
    let is_here = |name: &str| {
        Path::new(name)
            .canonicalize()
            .is_ok_and(|file| file == here)
    };
    let names = |argument: &OsString| {
        let argument = argument.to_string_lossy();
        is_here(&argument) || argument.split([',', '=', ':']).any(is_here)
    };
    here.is_file() && arguments.filter(names).count() > 1
}

/// Writes all of `bytes` to `path`.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let (unfinished, mut out) = Unfinished::begin(path)?;
    out.write_all(bytes)
        .map_err(|error| refused(path, &error))?;
    unfinished.finish(out)
}

/// Opens a file that grows, and makes it where it is missing.
///
/// # Errors
/// When it cannot be written.
pub fn append(path: &Path) -> Result<File, Failure> {
    warmq_output::append(path).map_err(|why| refused(path, &why))
}

/// Takes `folder`, which is made where it is missing, for this process alone until it is dropped.
///
/// # Errors
/// When it cannot be made, or another process writes to it.
pub fn folder(folder: &Path) -> Result<Folder, Failure> {
    Folder::take(folder).map_err(|why| {
        let action = match folder.is_dir() {
            true => "write into",
            false => "make",
        };
        let action = format!("{action} the folder {}", printable(folder));
        Failure::System(action, why.to_string())
    })
}

/// That `path` cannot be written.
pub fn refused(path: &Path, why: &dyn Display) -> Failure {
    not_written(&printable(path).to_string(), why)
}

fn not_written(name: &str, why: &dyn Display) -> Failure {
    Failure::System(format!("write {name}"), why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_read_and_written_is_named_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let name = path.to_str().unwrap();
        let other = format!("{}/./mine.toml", folder.path().display());
        let is_again = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from);
            is_named_again(&path, arguments)
        };
        assert!(
            !is_again(&["run", name, "--trace", name]),
            "it is not there yet"
        );
        std::fs::write(&path, "").unwrap();
        assert!(!is_again(&["run", "nice", "--trace", name]));
        assert!(is_again(&["run", &other, "--trace", name]));
        assert!(is_again(&[
            "run",
            "nice",
            &format!("--machine=4cpus,{name}"),
            "--trace",
            name
        ]));
        assert!(is_again(&[
            "run",
            "nice",
            &format!("--trace={name}"),
            "--scheduler",
            &format!("{other}:slice=1")
        ]));
    }
}
