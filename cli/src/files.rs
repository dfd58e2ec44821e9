//! Files that are there whole or not at all.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::exit::Exit;
use crate::failure::Failure;

/// Files that are being written, under their preliminary names.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that has its name only once it is finished; dropped before, it leaves nothing.
#[derive(Debug)]
pub struct Unfinished {
    path: PathBuf,
    preliminary: PathBuf,
}

impl Unfinished {
    /// Begins `path`, and hands out what to write to.
    ///
    /// # Errors
    /// When its folder refuses.
    pub fn begin(path: &Path) -> Result<(Unfinished, BufWriter<File>), Failure> {
        let preliminary = path.with_added_extension("unfinished");
        let file = File::create(&preliminary).map_err(|error| refused(path, &error))?;
        let path = path.to_owned();
        let unfinished = Unfinished { path, preliminary };
        with_list(|list| list.push(unfinished.preliminary.clone()));
        Ok((unfinished, BufWriter::new(file)))
    }

    /// Writes out the rest, and gives the file its name.
    ///
    /// # Errors
    /// When the file cannot be written to its end.
    pub fn finish(self, mut out: BufWriter<File>) -> Result<(), Failure> {
        let named = out
            .flush()
            .and_then(|()| fs::rename(&self.preliminary, &self.path));
        named.map_err(|error| refused(&self.path, &error))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Gone already where the file is finished.
        let _ = fs::remove_file(&self.preliminary);
        with_list(|list| list.retain(|other| *other != self.preliminary));
    }
}

/// That `path` cannot be written.
pub fn refused(path: &Path, why: &dyn Display) -> Failure {
    Failure::System(format!("write {}", path.display()), why.to_string())
}

/// Lets Ctrl-C remove what is unfinished before the command ends.
pub fn forget_unfinished_when_interrupted() {
    let handler = || {
        with_list(|list| list.iter().for_each(|path| drop(fs::remove_file(path))));
        std::process::exit(Exit::Interrupted as i32);
    };
    // Where no handler can be set, Ctrl-C ends the command all the same.
    let _ = ctrlc::set_handler(handler);
}

fn with_list(change: impl FnOnce(&mut Vec<PathBuf>)) {
    if let Ok(mut list) = UNFINISHED.lock() {
        change(&mut list);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let name = format!("warmq-files-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let begun = || {
            let (unfinished, mut out) = Unfinished::begin(&path).unwrap();
            out.write_all(b"all of it").unwrap();
            (unfinished, out)
        };
        let (unfinished, out) = begun();
        assert!(!path.exists());
        let preliminary = unfinished.preliminary.clone();
        drop((unfinished, out));
        assert!(!path.exists() && !preliminary.exists());

        let (unfinished, out) = begun();
        unfinished.finish(out).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"all of it");
        assert!(!preliminary.exists());
        fs::remove_file(&path).unwrap();
    }
}
