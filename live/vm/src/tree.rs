//! The guest's files, and the archive that the kernel unpacks them from.
//!
//! The archive is cpio's `newc` (the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`), and not compressed: an archive of
//! 42 MB took QEMU 7.2 5.0 s of CPU time to boot uncompressed, and 5.3 s compressed (three times
//! each in turn), because decompression is emulated and copying is not.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, trailer};

use crate::{VmError, input};

/// Top-level folders that are links, as on every merged-/usr system. As the host's `/lib/x.so` and
/// `/usr/lib/x.so` are one file, the guest gets one, too.
const MERGED: &[(&str, &str)] = &[
    ("bin", "usr/bin"),
    ("sbin", "usr/sbin"),
    ("lib", "usr/lib"),
    ("lib64", "usr/lib64"),
];

/// File types of `st_mode`.
const FOLDER: u32 = 0o040_000;
const DEVICE: u32 = 0o020_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Folder,
    /// A text, and whether it may be executed.
    Text(Vec<u8>, bool),
    /// A file of the host, to be read when the archive is written.
    Host(PathBuf, bool),
    Link(String),
    /// A character device, by major and minor number.
    Device(u32, u32),
}

/// The guest's files by path, parents before children.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// A tree with the mount points, and the console that the kernel opens before `/init` runs.
    pub(crate) fn new() -> Tree {
        let nodes = BTreeMap::new();
        let mut tree = Tree { nodes };
        for (name, target) in MERGED {
            tree.folder(target);
            tree.put(name, Node::Link((*target).to_owned()));
        }
        for name in ["proc", "sys", "dev", "tmp", "run", "root", "var", "etc"] {
            tree.folder(name);
        }
        tree.put("dev/console", Node::Device(5, 1));
        tree.put("dev/null", Node::Device(1, 3));
        tree
    }

    /// A folder, empty or not.
    pub(crate) fn folder(&mut self, path: &str) {
        if !path.is_empty() && !self.nodes.contains_key(path) {
            self.put(path, Node::Folder);
        }
    }

    /// A file that we wrote.
    pub(crate) fn text(&mut self, path: &str, text: impl Into<Vec<u8>>, executable: bool) {
        self.put(path, Node::Text(text.into(), executable));
    }

    /// A file of the host.
    pub(crate) fn host(&mut self, path: &str, file: &Path, executable: bool) {
        self.put(path, Node::Host(file.to_owned(), executable));
    }

    /// A symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.put(path, Node::Link(target.to_owned()));
    }

    /// Whether `path` exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.nodes.contains_key(path)
    }

    /// Leaves out what `other` has, too.
    pub(crate) fn without(mut self, other: &Tree) -> Tree {
        self.nodes
            .retain(|path, node| other.nodes.get(path) != Some(node));
        self
    }

    fn put(&mut self, path: &str, node: Node) {
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.folder(parent);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// When a file of the host cannot be read, or `out` refuses.
    pub(crate) fn write(&self, out: &mut impl Write) -> Result<(), VmError> {
        for (number, (path, node)) in self.nodes.iter().enumerate() {
            write_node(out, number, path, node)?;
        }
        trailer(out)
            .map(drop)
            .map_err(VmError::system("write the guest's files"))
    }
}

fn write_node(out: &mut impl Write, number: usize, path: &str, node: &Node) -> Result<(), VmError> {
    let read;
    let (mode, content): (u32, &[u8]) = match node {
        Node::Folder => (FOLDER | folder_mode(path), &[]),
        Node::Text(text, executable) => (REGULAR | file_mode(*executable), text),
        Node::Host(file, executable) => {
            read = input::bytes(file)?;
            (REGULAR | file_mode(*executable), &read)
        }
        Node::Link(target) => (LINK | 0o777, target.as_bytes()),
        Node::Device(..) => (DEVICE | 0o600, &[]),
    };
    // The format cannot hold files of more than 4 GiB.
    let size = u32::try_from(content.len()).map_err(|_| {
        let problem = "more than the 4 GiB that the archive can hold";
        VmError::setting("file", path, problem, "leave it out")
    })?;
    let mut entry = Builder::new(path).ino(number as u32 + 1).mode(mode);
    if let Node::Device(major, minor) = node {
        entry = entry.rdev_major(*major).rdev_minor(*minor);
    }
    let written = |out: &mut _| -> io::Result<()> {
        let mut writer = entry.write(out, size);
        writer.write_all(content)?;
        writer.finish().map(drop)
    };
    written(out).map_err(VmError::system("write the guest's files"))
}

fn file_mode(executable: bool) -> u32 {
    if executable { 0o755 } else { 0o644 }
}

/// Everybody may write to /tmp.
fn folder_mode(path: &str) -> u32 {
    if path == "tmp" { 0o1777 } else { 0o755 }
}

/// A path of the guest as the tree stores it: without the first slash, `.`, `..` and links among
/// the top-level folders. `None` for the root itself.
pub(crate) fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let first = *parts.first()?;
    let merged = MERGED.iter().find(|(name, _)| *name == first);
    if let Some((_, target)) = merged.filter(|_| parts.len() > 1) {
        parts[0] = target;
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;

    use cpio::newc::Reader;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::*;

    /// Path, mode and content of everything in the archive, in its order.
    fn unpacked(tree: &Tree) -> Vec<(String, u32, Vec<u8>)> {
        let mut archive = Vec::new();
        tree.write(&mut archive).unwrap();
        let (mut left, mut entries) = (archive.as_slice(), Vec::new());
        loop {
            let mut reader = Reader::new(left).unwrap();
            if reader.entry().is_trailer() {
                return entries;
            }
            let (name, mode) = (reader.entry().name().to_owned(), reader.entry().mode());
            let mut content = Vec::new();
            reader.read_to_end(&mut content).unwrap();
            entries.push((name, mode, content));
            left = reader.finish().unwrap();
        }
    }

    #[test]
    fn a_file_that_no_guest_can_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("huge");
        fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        let mut tree = Tree::new();
        tree.host("huge", &path, false);
        let said = tree.write(&mut io::sink()).unwrap_err().to_string();
        assert!(said.ends_with("huge: it has more than 1024 MB"), "{said}");
    }

    proptest! {
        #[test]
        fn every_file_is_in_the_archive_behind_its_folders(
            files in btree_map("[a-c]{1,2}(/[a-z0-9][a-z0-9.-]{0,3}){0,3}/f-", vec(any::<u8>(), 0..9), 0..12)
        ) {
            let mut tree = Tree::new();
            for (path, content) in &files {
                tree.text(path, content.clone(), false);
            }
            let entries = unpacked(&tree);
            for (path, content) in &files {
                let found = entries.iter().find(|(name, ..)| name == path);
                prop_assert_eq!(found, Some(&(path.clone(), 0o100_644, content.clone())));
            }
            for (at, (name, ..)) in entries.iter().enumerate() {
                if let Some((parent, _)) = name.rsplit_once('/') {
                    let before = &entries[..at];
                    prop_assert!(before.iter().any(|(name, ..)| name == parent), "{}", name);
                }
            }
        }
    }

    #[test]
    fn a_guest_is_merged_and_has_a_console() {
        let entries = unpacked(&Tree::new());
        let of = |path: &str| entries.iter().find(|(name, ..)| name == path).unwrap();
        assert_eq!(
            of("lib64"),
            &("lib64".to_owned(), 0o120_777, b"usr/lib64".to_vec())
        );
        assert_eq!(of("dev/console").1, 0o020_600);
        assert_eq!(of("tmp").1, 0o041_777);
    }

    #[test]
    fn paths_have_one_spelling() {
        for (path, expected) in [
            (
                "/lib/x86_64-linux-gnu/libc.so.6",
                Some("usr/lib/x86_64-linux-gnu/libc.so.6"),
            ),
            ("/usr/lib/x", Some("usr/lib/x")),
            ("/lib64/ld.so", Some("usr/lib64/ld.so")),
            ("/bin", Some("bin")),
            ("/opt//a/./b/../c", Some("opt/a/c")),
            ("../../etc", Some("etc")),
            ("/libs/x", Some("libs/x")),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(normal(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_gone_is_named() {
        let mut tree = Tree::new();
        tree.host("x", Path::new("/no/such/file"), false);
        let said = tree.write(&mut Vec::new()).unwrap_err().to_string();
        assert!(said.starts_with("cannot read /no/such/file: "), "{said}");
    }
}
