//! Guests: without one where it can be, with one where QEMU and a kernel are there.

use std::process::Command;

use serde_json::Value;

use super::support::{Folder, Ran};

/// A mirror that nobody has: whoever asks it fails.
const NO_MIRROR: &str = "--mirror http://127.0.0.1:9/debian";

#[test]
fn without_qemu_nothing_is_downloaded_and_the_package_is_named() {
    let folder = Folder::new("vm-no-qemu");
    let mut command = folder.command(&format!("vm run {NO_MIRROR} -- true"));
    command
        .env("PATH", "/nonexistent")
        .env("XDG_CACHE_HOME", &folder.0);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (6, ""));
    let help = "warmq: this machine has no qemu-system-x86_64; apt-get install qemu-system-x86\n";
    assert_eq!(ran.err, help);
    assert_eq!(folder.names(), [""; 0], "nothing is left");
}

#[test]
fn a_mirror_that_does_not_answer_is_reported_with_what_may_help() {
    let folder = Folder::new("vm-no-mirror");
    let mut command = folder.command(&format!("vm fetch {NO_MIRROR}"));
    command.env("XDG_CACHE_HOME", &folder.0);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.out.as_str()), (6, ""));
    assert!(
        ran.err.contains("; ") && ran.err.contains("--kernel"),
        "{}",
        ran.err
    );
    assert!(!folder.0.join("warmq/kernels/.unfinished").exists());
}

#[test]
fn a_file_that_is_no_kernel_is_refused() {
    let folder = Folder::new("vm-no-kernel").with("vmlinuz", "not at all");
    // The machine's lacks come first: only where there are none is the file looked at.
    let ran = folder.run("vm run --kernel vmlinuz -- true");
    let lacking = ran.code == 6 && ran.err.contains("apt-get install");
    let refused = ran.code == 2 && ran.err.contains("not a Linux kernel for x86");
    assert!(lacking || refused, "{}", ran.err);
}

/// Whether QEMU and a kernel are there already; tests download neither.
fn can_boot(folder: &Folder) -> bool {
    let fetched = folder.run(&format!("vm fetch {NO_MIRROR}")).code == 0;
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    let busybox = Command::new("busybox").output();
    let there = fetched && qemu.is_ok() && busybox.is_ok();
    if !there {
        eprintln!("skipped: no QEMU, busybox or kernel (warmq vm fetch) here");
    }
    there
}

#[test]
fn a_command_in_a_guest_has_its_output_its_status_and_a_note() {
    let folder = Folder::new("vm-run").with("given", "from the host\n");
    if !can_boot(&folder) {
        return;
    }
    let options =
        "--file given:/etc/given --json note.json --console console.txt --append loglevel=7";
    let mut command = folder.command(&format!("vm run {options} --"));
    command.args([
        "busybox",
        "sh",
        "-c",
        "cat /etc/given; echo wrong >&2; exit 3",
    ]);
    let ran = Ran::of(command.output().unwrap());
    let found = (ran.code, ran.out.as_str(), ran.err.as_str());
    assert_eq!(found, (3, "from the host\n", "wrong\n"));
    let note: Value = serde_json::from_str(&folder.text("note.json")).unwrap();
    assert_eq!(
        (&note["ending"], &note["status"]),
        (&"exited".into(), &3.into())
    );
    assert!(note["release"].as_str().unwrap().starts_with("6.18."));
    let (boot, total) = (note["seconds_to_boot"].as_f64(), note["seconds"].as_f64());
    assert!(boot.unwrap() > 0.0 && boot <= total, "{note}");
    assert!(
        folder
            .text("console.txt")
            .contains("Run /init as init process")
    );
}
