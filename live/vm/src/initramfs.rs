//! All files that the guest boots with.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::VmError;
use crate::pack::{Given, bring_program, find_on_host, give};
use crate::tree::Tree;

const INIT: &str = include_str!("init.sh");
/// Where `/init` finds the command.
const OURS: &str = "run/warmq";
const BUSYBOX: &str = "usr/bin/busybox";

/// Users that programs look up by name; `guest` is for commands that must not run as root.
const USERS: &str = "\
root:x:0:0:root:/root:/bin/sh
guest:x:1000:1000:guest:/tmp:/bin/sh
nobody:x:65534:65534:nobody:/:/bin/false
";
const GROUPS: &str = "root:x:0:\nguest:x:1000:\nnogroup:x:65534:\n";

/// The guest's command and files.
pub(crate) struct Wanted<'a> {
    pub command: &'a [OsString],
    pub environment: &'a [(String, OsString)],
    pub files: &'a [Given],
}

/// The files of any guest with such a kernel.
///
/// # Errors
/// When one of them is missing.
pub(crate) fn base(config: Option<(&str, &[u8])>) -> Result<Tree, VmError> {
    let mut tree = Tree::new();
    tree.text("init", INIT, true);
    tree.folder(OURS);
    tree.text("etc/passwd", USERS, false);
    tree.text("etc/group", GROUPS, false);
    tree.text("etc/hosts", "127.0.0.1 localhost guest\n", false);
    busybox(&mut tree)?;
    if let Some((release, config)) = config {
        tree.text(&format!("boot/config-{release}"), config, false);
    }
    Ok(tree)
}

/// Adds what one guest gets.
///
/// # Errors
/// When one of its files is missing.
pub(crate) fn add(tree: &mut Tree, wanted: &Wanted<'_>) -> Result<(), VmError> {
    for given in wanted.files {
        give(tree, given)?;
    }
    for (number, (name, value)) in wanted.environment.iter().enumerate() {
        let mut text = OsString::from(name);
        text.push("=");
        text.push(value);
        tree.text(
            &format!("{OURS}/environment/{number}"),
            dotted(&text),
            false,
        );
    }
    command(tree, wanted.command)
}

/// The command: the program's path in the guest, and its arguments unchanged.
fn command(tree: &mut Tree, command: &[OsString]) -> Result<(), VmError> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(VmError::missing(
            "there is no command",
            "name a program to run",
        ));
    };
    let program = bring_program(tree, program)?;
    let all = std::iter::once(&program).chain(arguments);
    for (number, argument) in all.enumerate() {
        tree.text(
            &format!("{OURS}/arguments/{number}"),
            dotted(argument),
            false,
        );
    }
    Ok(())
}

/// The dot keeps the shell from removing the last newlines. `/init` removes it.
fn dotted(text: &OsStr) -> Vec<u8> {
    [text.as_bytes(), b"."].concat()
}

/// The shell of `/init` and the usual small programs.
fn busybox(tree: &mut Tree) -> Result<(), VmError> {
    let found = busybox_program()?;
    let guest = Some(format!("/{BUSYBOX}"));
    give(
        tree,
        &Given {
            host: found.clone(),
            guest,
        },
    )?;
    for name in applets(&found)? {
        tree.link(&format!("usr/bin/{name}"), "/bin/busybox");
    }
    Ok(())
}

/// Where busybox is.
pub(crate) fn busybox_program() -> Result<PathBuf, VmError> {
    let found = find_on_host(OsStr::new("busybox"));
    let found = found.or_else(|| find_on_host(OsStr::new("/bin/busybox")));
    found.ok_or_else(|| {
        let help = "apt-get install busybox-static";
        VmError::missing("this machine has no busybox", help)
    })
}

fn applets(busybox: &Path) -> Result<Vec<String>, VmError> {
    let action = format!("ask {} what it can do", busybox.display());
    let answer = Command::new(busybox).arg("--list").output();
    let answer = answer.map_err(VmError::system(action))?;
    let list = String::from_utf8_lossy(&answer.stdout);
    Ok(list
        .lines()
        .filter(|name| *name != "busybox")
        .map(str::to_owned)
        .collect())
}
