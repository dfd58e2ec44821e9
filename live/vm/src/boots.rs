//! Machines that have booted, kept as they were when `/init` had nothing left to do but its
//! command: who runs many commands in guests that are equal boots one.
//!
//! Kept is what QEMU migrates (its RAM and the state of its devices; some 110 MB), in a file
//! without a name. The machine itself becomes the first guest. Each gets its files by the control
//! port, and the kernel draws its random numbers anew (the generation of a virtual machine,
//! vmgenid).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::VmError;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::qemu::{Qemu, nameless_file, path_of};

/// How many are kept: the last ones that were asked for.
const MOST_KEPT: usize = 6;
/// Who takes longer is not kept.
const LONGEST_BOOT: Duration = Duration::from_secs(120);
/// What `/init` says when it waits for files.
const WAITS: &str = "kept";
/// How QEMU says what a machine does, and that its state was written.
const STATUS: &str = "VM status:";
const MIGRATED: &str = "postmigrate";

/// What a machine boots with.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub kernel: Kernel,
    pub hardware: Hardware,
    /// The kernel's command line.
    pub arguments: String,
}

/// By what kept machines are known: the kernel's image, the hardware, the command line.
type Key = (PathBuf, Hardware, String);
/// The state; none if it could not be had.
type Kept = Arc<OnceLock<Option<File>>>;

/// Machines that have booted, by what they booted with.
#[derive(Debug, Default)]
pub struct Boots(Mutex<Vec<(Key, Kept)>>);

impl Boots {
    /// A guest on such a machine that has booted with `base`, the files that all guests have, and
    /// goes on with `files`. `None` where that cannot be: boot one as usual, which says why.
    pub(crate) fn start(&self, machine: &Machine, base: &File, files: File) -> Option<Qemu> {
        let kept = self.entry(machine);
        let mut first = None;
        let state = kept.get_or_init(|| {
            let (qemu, state) = boot(machine, base).ok()?;
            first = Some(qemu);
            state
        });
        let from_state = || {
            let (base, state) = (base.try_clone().ok()?, state.as_ref()?.try_clone().ok()?);
            Qemu::start(machine, base, Some(state)).ok()
        };
        let qemu = first.or_else(from_state)?;
        qemu.give(files).ok()?;
        Some(qemu)
    }

    fn entry(&self, machine: &Machine) -> Kept {
        let image = machine.kernel.image.clone();
        let key = (image, machine.hardware, machine.arguments.clone());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().position(|(other, _)| *other == key);
        let found = known.map_or_else(|| (key, Kept::default()), |known| all.remove(known));
        all.push(found.clone());
        let surplus = all.len().saturating_sub(MOST_KEPT);
        all.drain(..surplus);
        found.1
    }
}

/// Boots, and returns the machine, which waits for its files, and its state, if it could be had.
fn boot(machine: &Machine, base: &File) -> Result<(Qemu, Option<File>), VmError> {
    let refused = || VmError::system("keep a machine that has booted");
    let base = base.try_clone().map_err(refused())?;
    let state = nameless_file()?;
    let mut qemu = Qemu::start(machine, base, None)?;
    wait_for(&qemu.control, WAITS).map_err(refused())?;
    let file = path_of(&state);
    let orders = format!("migrate \"exec:cat > {file}\"\ninfo status\ncont\n");
    let sent = qemu.monitor.write_all(orders.as_bytes());
    sent.map_err(refused())?;
    let answer = wait_for(&qemu.monitor, STATUS).map_err(refused())?;
    Ok((qemu, answer.contains(MIGRATED).then_some(state)))
}

/// Reads up to a line with `wanted`, and returns that. Nothing behind it is read.
fn wait_for(mut port: &UnixStream, wanted: &str) -> io::Result<String> {
    port.set_read_timeout(Some(LONGEST_BOOT))?;
    let mut line = String::new();
    while !(line.ends_with('\n') && line.contains(wanted)) {
        if line.ends_with('\n') {
            line.clear();
        }
        let mut byte = [0];
        port.read_exact(&mut byte)?;
        line.push(char::from(byte[0]));
    }
    port.set_read_timeout(None)?;
    Ok(line)
}
