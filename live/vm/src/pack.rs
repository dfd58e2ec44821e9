//! What a command needs in the guest: its program, the shared objects of programs, the
//! interpreters of scripts.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::shared::shared_objects;
use crate::tree::{Tree, normal};
use crate::{VmError, input};

/// The dynamic loader's cache of paths. The guest has objects at the host's paths, so the host's
/// cache is right for it, too.
const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// A file or folder of the host for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub host: PathBuf,
    /// `None`: at the same path.
    pub guest: Option<String>,
}

/// Puts a file, or a folder with its contents, into the guest.
pub(crate) fn give(tree: &mut Tree, given: &Given) -> Result<(), VmError> {
    let host = std::path::absolute(&given.host).map_err(VmError::file("find", &given.host))?;
    let guest = match &given.guest {
        Some(guest) => guest.clone(),
        None => text_of(&host)?.to_owned(),
    };
    let path = place(&guest)?;
    put(tree, &host, &path)
}

/// Folders over which something is mounted, which would hide files given there.
const MOUNTED_OVER: &[&str] = &["proc", "sys", "dev"];

fn place(guest: &str) -> Result<String, VmError> {
    let wrong = |problem: &str| {
        let help = "give it another path, as in --file HOST:/GUEST";
        Err(VmError::setting("file", guest, problem, help))
    };
    match normal(guest) {
        None => wrong("a file cannot replace the guest's root"),
        Some(path)
            if path
                .split('/')
                .next()
                .is_some_and(|first| MOUNTED_OVER.contains(&first)) =>
        {
            wrong("the guest mounts one of the kernel's file systems there")
        }
        Some(path) => Ok(path),
    }
}

fn put(tree: &mut Tree, host: &Path, path: &str) -> Result<(), VmError> {
    let about = fs::metadata(host).map_err(VmError::file("read", host))?;
    if about.is_file() {
        let executable = about.permissions().mode() & 0o111 != 0;
        tree.host(path, host, executable);
        return needs(tree, host);
    }
    if !about.is_dir() {
        let problem = "it is neither a file nor a folder";
        return Err(VmError::setting(
            "file",
            host.display(),
            problem,
            "leave it out",
        ));
    }
    tree.folder(path);
    for entry in fs::read_dir(host).map_err(VmError::file("read", host))? {
        let entry = entry.map_err(VmError::file("read", host))?.path();
        let name = entry.file_name().unwrap_or_default();
        put(
            tree,
            &entry,
            &format!("{path}/{}", text_of(Path::new(name))?),
        )?;
    }
    Ok(())
}

/// Adds what the file needs to run, if it is a program or a script.
fn needs(tree: &mut Tree, host: &Path) -> Result<(), VmError> {
    let content = input::bytes(host)?;
    if content.starts_with(b"\x7fELF") {
        for object in shared_objects(host, &content)? {
            put_plain(tree, &object)?;
        }
        let cache = Path::new(LOADER_CACHE);
        return if cache.is_file() {
            put_plain(tree, cache)
        } else {
            Ok(())
        };
    }
    match interpreter(&content) {
        Some(interpreter) => bring_interpreter(tree, host, &interpreter),
        None => Ok(()),
    }
}

/// Adds a file without looking at what it needs.
fn put_plain(tree: &mut Tree, host: &Path) -> Result<(), VmError> {
    if let Some(path) = normal(text_of(host)?) {
        tree.host(&path, host, true);
    }
    Ok(())
}

/// The interpreter of a script: the path after `#!` or, if that is `env`, the name that it looks
/// for.
fn interpreter(content: &[u8]) -> Option<String> {
    let line = content
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let is_env = Path::new(first).file_name() == Some(OsStr::new("env"));
    let name = if is_env {
        words.find(|word| !word.starts_with('-') && !word.contains('='))?
    } else {
        first
    };
    Some(name.to_owned())
}

/// Adds the program of an interpreter, but not the modules that it may load, which are unknown.
fn bring_interpreter(tree: &mut Tree, script: &Path, name: &str) -> Result<(), VmError> {
    if find_inside(tree, name).is_some() {
        return Ok(());
    }
    let found = find_on_host(OsStr::new(name)).ok_or_else(|| {
        let what = format!(
            "{} needs the interpreter {name}, which is not found",
            script.display()
        );
        VmError::missing(what, "install it")
    })?;
    let path = normal(text_of(&found)?).unwrap_or_default();
    if tree.has(&path) {
        Ok(())
    } else {
        put(tree, &found, &path)
    }
}

/// Brings the command's program into the guest, and returns its path there.
///
/// A name without a slash is a program on the host's PATH or else one of the guest's own (busybox).
/// A path is one in the guest if a file was given there, otherwise one of the host.
pub(crate) fn bring_program(tree: &mut Tree, name: &OsStr) -> Result<OsString, VmError> {
    let inside = name.to_str().and_then(|name| find_inside(tree, name));
    let is_path = name.as_encoded_bytes().contains(&b'/');
    if let Some(inside) = inside.clone().filter(|_| is_path) {
        return Ok(inside.into());
    }
    if let Some(host) = find_on_host(name) {
        let guest = None;
        give(
            tree,
            &Given {
                host: host.clone(),
                guest,
            },
        )?;
        return Ok(host.into());
    }
    inside.map(OsString::from).ok_or_else(|| {
        let what = format!("this machine has no program {}", name.display());
        VmError::missing(what, "write its path, or add it with --file")
    })
}

/// The path of `name` in the guest, if it is there.
fn find_inside(tree: &Tree, name: &str) -> Option<String> {
    if name.contains('/') {
        let path = normal(name).filter(|path| tree.has(path))?;
        return Some(format!("/{path}"));
    }
    let folders = ["usr/local/bin", "usr/bin", "usr/sbin"];
    let mut paths = folders.iter().map(|folder| format!("{folder}/{name}"));
    paths
        .find(|path| tree.has(path))
        .map(|path| format!("/{path}"))
}

/// The path of the program `name` on this machine, as a shell would find it.
pub fn find_on_host(name: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| {
        let about = fs::metadata(path);
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if name.as_encoded_bytes().contains(&b'/') {
        return std::path::absolute(name).ok().filter(runs);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin:/usr/sbin:/sbin".into());
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(name));
    found
        .find(runs)
        .and_then(|path| std::path::absolute(path).ok())
}

fn text_of(path: &Path) -> Result<&str, VmError> {
    path.to_str().ok_or_else(|| {
        let problem = "its name is not UTF-8, which the archive requires";
        VmError::setting("file", path.display(), problem, "rename it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_run_by_who_its_first_line_names() {
        for (script, expected) in [
            ("#!/bin/sh\n", Some("/bin/sh")),
            ("#! /bin/bash -e\n", Some("/bin/bash")),
            ("#!/usr/bin/env python3\nx", Some("python3")),
            ("#!/usr/bin/env -S A=1 awk -f", Some("awk")),
            ("#!\n/bin/sh", None),
            ("echo", None),
            ("", None),
        ] {
            assert_eq!(
                interpreter(script.as_bytes()).as_deref(),
                expected,
                "{script}"
            );
        }
    }

    #[test]
    fn a_place_that_is_mounted_over_is_refused() {
        for path in [
            "/proc/x",
            "/sys/fs/bpf/y",
            "/dev/null",
            "/tmp/../dev/z",
            "/",
        ] {
            let said = place(path).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--file {path}: ")), "{said}");
        }
        assert_eq!(place("/devices/x").unwrap(), "devices/x");
    }

    #[test]
    fn a_folder_comes_with_all_that_is_in_it_and_with_what_that_needs() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("deep")).unwrap();
        let script = "#!/no/such/interpreter\n";
        fs::write(folder.path().join("deep/script"), script).unwrap();
        let given = Given {
            host: folder.path().into(),
            guest: Some("/opt/it".to_owned()),
        };
        let said = give(&mut Tree::new(), &given).unwrap_err().to_string();
        assert!(
            said.contains("needs the interpreter /no/such/interpreter"),
            "{said}"
        );

        let mut tree = Tree::new();
        tree.text("no/such/interpreter", "", true);
        give(&mut tree, &given).unwrap();
        assert!(tree.has("opt/it/deep/script"));
    }

    #[test]
    fn a_program_of_the_guest_is_meant_by_its_path_and_by_its_name() {
        let mut tree = Tree::new();
        tree.text("usr/bin/only-in-the-guest", "", true);
        for name in [
            "only-in-the-guest",
            "/usr/bin/only-in-the-guest",
            "/bin/only-in-the-guest",
        ] {
            let program = bring_program(&mut tree, OsStr::new(name)).unwrap();
            assert_eq!(program, "/usr/bin/only-in-the-guest");
        }
        let said = bring_program(&mut tree, OsStr::new("nowhere-at-all"))
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("nowhere-at-all") && said.contains("--file"),
            "{said}"
        );
    }
}
