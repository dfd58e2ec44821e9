//! The files of the tree.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the wings of the house are.
pub const WINGS: [&str; 4] = ["common", "lab", "live", "cli"];

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file in Rust.
pub struct Source {
    /// Its path below the root.
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    /// Wing and crate: `lab/sched`; the command is a wing with one crate.
    pub fn crate_name(&self) -> String {
        let parts: Vec<_> = self
            .path
            .iter()
            .map(|part| part.to_string_lossy())
            .collect();
        match parts[0].as_ref() {
            "cli" => "cli".to_owned(),
            wing => format!("{wing}/{}", parts[1]),
        }
    }

    /// Where the files of its modules are.
    pub fn folder_of_modules(&self) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default();
        match stem.to_str() {
            Some("mod" | "lib" | "main") => self.path.with_file_name(""),
            _ => self.path.with_extension(""),
        }
    }
}

/// All files in Rust of all wings, in order.
pub fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for wing in WINGS {
        collect(Path::new(wing), &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

fn collect(folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            if entry.file_name() != "target" {
                collect(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(root().join(&path)).expect("text");
            found.push(Source { path, text });
        }
    }
}
