//! Small files under a root, and the forms in which the kernel writes numbers and lists.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use warmq_units::CpuSet;

use crate::error::HostError;

/// A file system that starts at a root.
#[derive(Clone, Copy)]
pub struct Tree<'a> {
    root: &'a Path,
}

impl<'a> Tree<'a> {
    /// The file system that starts at `root`.
    pub fn new(root: &'a Path) -> Tree<'a> {
        Tree { root }
    }

    /// An error at a file.
    pub fn error(self, path: &str, problem: impl Into<String>) -> HostError {
        HostError {
            path: self.root.join(path),
            problem: problem.into(),
            fix: "describe this machine in TOML instead".to_owned(),
        }
    }

    /// The trimmed text of a file; nothing where there is none.
    pub fn optional(self, path: &str) -> Result<Option<String>, HostError> {
        match fs::read_to_string(self.root.join(path)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.error(path, format!("it cannot be read ({error})"))),
        }
    }

    /// The trimmed text of a file that must be there.
    pub fn text(self, path: &str) -> Result<String, HostError> {
        self.optional(path)?
            .ok_or_else(|| self.error(path, "it is not there"))
    }

    /// The number in a file; nothing where there is none.
    pub fn optional_number(self, path: &str) -> Result<Option<u64>, HostError> {
        let number = |text: String| {
            text.parse()
                .map_err(|_| self.error(path, format!("`{text}` is not a number")))
        };
        self.optional(path)?.map(number).transpose()
    }

    /// The CPU numbers in a file that must be there.
    pub fn list(self, path: &str) -> Result<CpuSet, HostError> {
        let text = self.text(path)?;
        let wrong = |_| self.error(path, format!("`{text}` is not a list of CPUs"));
        text.parse().map_err(wrong)
    }

    /// The first `name: value` of a file such as /proc/cpuinfo.
    pub fn field(self, path: &str, name: &str) -> Option<String> {
        let text = self.optional(path).ok()??;
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        fields
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    }

    /// Whether there is such a file or folder.
    pub fn has(self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}
