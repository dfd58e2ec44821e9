//! A guest: its properties, and running a command in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::VmError;
use crate::boots::{Boots, Machine};
use crate::hardware::Hardware;
use crate::initramfs::{self, Wanted};
use crate::kernel::Kernel;
use crate::outcome::Outcome;
use crate::pack::Given;
use crate::qemu::{self, Qemu, nameless_file};
use crate::tree::Tree;
use crate::watch::{Streams, watch};

/// How long a guest may take by default.
const USUAL_TIMEOUT: Duration = Duration::from_secs(600);

/// How often a guest is booted at most if [the emulator breaks the boot](Outcome::emulator_broke).
const MOST_BOOTS: usize = 3;

/// The kernel and its first programs need about this much beside the guest's files.
const MEMORY_BESIDE_FILES_MIB: u64 = 192;

/// Whether this machine has what any guest needs.
///
/// # Errors
/// What is missing, and how to get it.
pub fn ready() -> Result<(), VmError> {
    if std::env::consts::ARCH != "x86_64" {
        let what = "guests run x86-64, and so must this machine, whose programs they get";
        return Err(VmError::missing(what, "run this on an x86-64 Linux"));
    }
    qemu::program()?;
    initramfs::busybox_program().map(drop)
}

/// The progress of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// QEMU was started.
    Booting,
    /// It was started again, since [the emulator broke the boot](Outcome::emulator_broke).
    BootingAgain,
    /// The command is about to start.
    Running,
}

/// The files of a guest.
struct Files {
    /// All of them.
    archive: File,
    /// Those that each guest with such a kernel has, and the others.
    base: Tree,
    own: Tree,
}

impl Files {
    fn start(&self, machine: &Machine, boots: Option<&Boots>) -> Result<Qemu, VmError> {
        if let Some(boots) = boots {
            let base = archive(&self.base)?;
            if let Some(guest) = boots.start(machine, &base, archive(&self.own)?) {
                return Ok(guest);
            }
        }
        let all = self.archive.try_clone();
        let all = all.map_err(VmError::system("pass on the guest's files"))?;
        Qemu::start(machine, all, None)
    }
}

fn cannot_write() -> impl FnOnce(io::Error) -> VmError {
    VmError::system("write the guest's files")
}

/// An archive of these files, to be read from its beginning.
fn archive(tree: &Tree) -> Result<File, VmError> {
    let mut out = BufWriter::new(nameless_file()?);
    tree.write(&mut out)?;
    let written = out.into_inner().map_err(io::IntoInnerError::into_error);
    let mut file = written.map_err(cannot_write())?;
    file.rewind().map_err(cannot_write())?;
    Ok(file)
}

/// The description of a guest: a kernel, a machine, files.
///
/// ```no_run
/// # fn main() -> Result<(), warmq_vm::VmError> {
/// use warmq_vm::{Guest, Hardware, Kernel};
///
/// let kernel = Kernel::from_file("/boot/vmlinuz".as_ref(), None)?;
/// let hardware = Hardware {
///     cpus: 8,
///     llcs: 4,
///     ..Hardware::default()
/// };
/// let outcome = Guest::new(kernel).hardware(hardware).run(["nproc"])?;
/// assert_eq!(outcome.stdout, b"8\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Guest {
    kernel: Kernel,
    hardware: Hardware,
    boots: Option<Arc<Boots>>,
    timeout: Duration,
    files: Vec<Given>,
    environment: Vec<(String, OsString)>,
    append: Vec<String>,
}

impl Guest {
    /// Two CPUs with one last-level cache, 1 GiB of memory, ten minutes.
    pub fn new(kernel: Kernel) -> Guest {
        Guest {
            kernel,
            hardware: Hardware::default(),
            boots: None,
            timeout: USUAL_TIMEOUT,
            files: Vec::new(),
            environment: Vec::new(),
            append: Vec::new(),
        }
    }

    /// Use this machine.
    pub fn hardware(mut self, hardware: Hardware) -> Guest {
        self.hardware = hardware;
        self
    }

    /// Go on from where such a machine had booted, which is booted once for all that share `boots`.
    pub fn boots(mut self, boots: &Arc<Boots>) -> Guest {
        self.boots = Some(Arc::clone(boots));
        self
    }

    /// Kill the guest when it has run this long, its boot included.
    pub fn timeout(mut self, timeout: Duration) -> Guest {
        self.timeout = timeout;
        self
    }

    /// Give the guest a file or folder of the host, at the same path. Programs come with their
    /// shared objects, scripts with their interpreter.
    pub fn file(mut self, host: impl Into<PathBuf>) -> Guest {
        let host = host.into();
        self.files.push(Given { host, guest: None });
        self
    }

    /// The same at a path of its own in the guest.
    pub fn file_at(mut self, host: impl Into<PathBuf>, guest: impl Into<String>) -> Guest {
        let (host, guest) = (host.into(), Some(guest.into()));
        self.files.push(Given { host, guest });
        self
    }

    /// Sets a variable of the command's environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Guest {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Adds to the kernel's command line.
    pub fn append(mut self, arguments: impl Into<String>) -> Guest {
        self.append.push(arguments.into());
        self
    }

    /// Boots, runs `command`, and collects what it writes.
    ///
    /// # Errors
    /// When there is no guest: that the command fails in it is an [`Outcome`].
    pub fn run<S: AsRef<OsStr>>(
        &self,
        command: impl IntoIterator<Item = S>,
    ) -> Result<Outcome, VmError> {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let streams = Streams {
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let outcome = self.stream(command, streams, &mut |_| {})?;
        Ok(Outcome {
            stdout,
            stderr,
            ..outcome
        })
    }

    /// Boots, runs `command`, and passes on what it writes as it comes.
    ///
    /// # Errors
    /// When there is no guest, or a stream cannot be written to.
    pub fn stream<S: AsRef<OsStr>>(
        &self,
        command: impl IntoIterator<Item = S>,
        mut streams: Streams<'_>,
        seen: &mut dyn FnMut(Stage),
    ) -> Result<Outcome, VmError> {
        let command = command.into_iter().map(|word| word.as_ref().to_owned());
        let command: Vec<OsString> = command.collect();
        self.check()?;
        let files = self.files(&command)?;
        let began = Instant::now();
        let mut boot = |stage| {
            let qemu = files.start(&self.machine(), self.boots.as_deref())?;
            seen(stage);
            let Streams { stdout, stderr } = &mut streams;
            let left = self.timeout.saturating_sub(began.elapsed());
            watch(qemu, left, Streams { stdout, stderr }, seen)
        };
        let mut outcome = boot(Stage::Booting)?;
        for _ in 1..MOST_BOOTS {
            if !outcome.emulator_broke() {
                break;
            }
            outcome = boot(Stage::BootingAgain)?;
        }
        Ok(outcome)
    }

    fn check(&self) -> Result<(), VmError> {
        ready()?;
        let named = |name: &str| {
            let mut letters = name.bytes();
            letters
                .next()
                .is_some_and(|letter| letter.is_ascii_alphabetic() || letter == b'_')
                && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        };
        if let Some((name, _)) = self.environment.iter().find(|(name, _)| !named(name)) {
            let problem = "this is not a name of a variable";
            return Err(VmError::setting(
                "env",
                name,
                problem,
                "use letters, digits and _",
            ));
        }
        self.kernel.check()?;
        self.hardware.check()
    }

    fn files(&self, command: &[OsString]) -> Result<Files, VmError> {
        let config = self.kernel.config.as_deref();
        let config = config.map(|config| (self.kernel.release.as_str(), config));
        let base = initramfs::base(config)?;
        let mut all = base.clone();
        let wanted = Wanted {
            command,
            environment: &self.environment,
            files: &self.files,
        };
        initramfs::add(&mut all, &wanted)?;
        let archive = archive(&all)?;
        let size = archive.metadata();
        self.check_room(size.map_err(cannot_write())?.len())?;
        let own = all.without(&base);
        Ok(Files { archive, base, own })
    }

    fn machine(&self) -> Machine {
        Machine {
            kernel: self.kernel.clone(),
            hardware: self.hardware,
            arguments: self.kernel_arguments(),
        }
    }

    /// The archive and the files unpacked from it are in the guest's memory at the same time.
    fn check_room(&self, size: u64) -> Result<(), VmError> {
        let files_mib = size.div_ceil(1 << 20);
        let needed = 2 * files_mib + MEMORY_BESIDE_FILES_MIB;
        if needed <= u64::from(self.hardware.memory_mib) {
            return Ok(());
        }
        let problem =
            format!("the guest's files take {files_mib} MiB, and twice that while it boots");
        let help = format!("give {needed} or more");
        Err(VmError::setting(
            "memory",
            self.hardware.memory_mib,
            problem,
            help,
        ))
    }

    fn kernel_arguments(&self) -> String {
        let machine = self.hardware.kernel_arguments();
        let usual = format!("console=ttyS0 quiet panic=-1 oops=panic {machine}");
        [usual.trim_end()]
            .into_iter()
            .chain(self.append.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The kernel that is booted.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}
