//! `warmq vm`: another kernel, and a command in it.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use warmq_units::printable;
use warmq_vm::{Cache, Guest, Hardware, Kernel, Outcome, Stage, Streams, VmError};

use crate::failure::Failure;
use crate::files;
use crate::guest::kernel::Reporter;
use crate::guest::{ended, given};
use crate::output::{self, say};
use crate::progress::Watch;

const EXAMPLES: &str = "\
Examples:
  warmq vm run -- uname -a
  warmq vm run --cpus 8 --llcs 4 --timeout 60 -- grep . -r /sys/devices/system/cpu/cpu7/cache
  warmq vm run --file target/release/warmq:/usr/bin/warmq -- warmq machines host
  warmq vm run --kernel ~/linux/arch/x86/boot/bzImage --config ~/linux/.config -- dmesg
  warmq vm run --json outcome.json -- ./my-test && jq .seconds outcome.json";

/// Run a command in another kernel.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Run(Box<RunArguments>),
    Fetch(FetchArguments),
}

/// Which kernel.
#[derive(Args, Debug)]
struct Which {
    /// The newest kernel of this series, from the cache or, if it has none, from Debian's mirror.
    #[arg(long, value_name = "SERIES", default_value = "6.18")]
    release: String,
    /// The mirror of Debian's packages [default: the one that this machine's apt uses].
    #[arg(long, value_name = "URI")]
    mirror: Option<String>,
}

/// Download a kernel and print its path.
///
/// apt downloads it, from the mirror that it already uses, and verifies it with the keys of
/// Debian's archive. Nothing is installed, and root is not needed. The kernel is kept in
/// $XDG_CACHE_HOME/warmq (or ~/.cache/warmq) and is not downloaded again while it is undamaged.
#[derive(Args, Debug)]
struct FetchArguments {
    #[command(flatten)]
    which: Which,
    /// Look for a newer kernel at the mirror even if there is one in the cache.
    #[arg(long)]
    update: bool,
}

/// Boot a kernel in QEMU and run a command in it.
///
/// The guest's memory gets the command's program, its shared objects, the files named with --file,
/// and busybox for everything else. Root is not needed. Standard output and standard error are
/// passed on unchanged and separately, without the kernel's messages; standard input is empty. The
/// guest has no disk, and no network except loopback; cgroup2, tracefs, debugfs and bpffs are
/// mounted. The guest ends with the command, and so does everything that is still running in it.
///
/// The guest is emulated instruction by instruction: it shows what a kernel does, not how fast it
/// is.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
struct RunArguments {
    #[command(flatten)]
    which: Which,
    /// Use your own kernel (a bzImage, like /boot/vmlinuz).
    #[arg(long, value_name = "VMLINUZ", conflicts_with_all = ["release", "mirror"])]
    kernel: Option<PathBuf>,
    /// The configuration of that kernel, which BPF programs may need [default: the one in the image
    /// or beside it].
    #[arg(long, value_name = "FILE", requires = "kernel")]
    config: Option<PathBuf>,
    /// Number of CPUs [default: 2, or 1 with --instructions].
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Number of last-level caches, each shared by the same number of CPUs [default: 1].
    #[arg(long, value_name = "M")]
    llcs: Option<u32>,
    /// CPUs of a core [default: 1].
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Memory in MiB, which also holds the guest's files [default: 1024].
    #[arg(long, value_name = "MIB")]
    memory: Option<u32>,
    /// Kill the guest after SECONDS, including its boot, and exit with status 124.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = given::seconds)]
    timeout: Duration,
    /// Let the guest's clock count instructions, NS nanoseconds each (1, 2, 4... 1024), so that
    /// time does not depend on this machine and its load. A larger number runs faster.
    #[arg(long, value_name = "NS", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    instructions: Option<u32>,
    /// Give the guest a file or folder, and whatever a program among them needs to run. A name
    /// without a slash that is not a file here is looked up on PATH. May be given several times.
    #[arg(long = "file", value_name = "HOST[:GUEST]")]
    files: Vec<OsString>,
    /// Set a variable for the command; without VALUE, to its value here.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<OsString>,
    /// Add to the kernel's command line. May be given several times.
    #[arg(long, value_name = "KERNEL_ARGS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Write the outcome into this file as JSON (it may be /dev/stderr): kernel, release,
    /// seconds_to_boot, seconds, ending, status.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the kernel's console messages into this file.
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// The program to run and its arguments, passed on unchanged.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXIT_CODES: &str = "\
Exit codes:
  that of the command; 128 plus the number of the signal that ended it; 126 or 127 if it did not
  start
  124  the time was up
  125  the guest ended before the command: its kernel panicked, or it was switched off
  2  bad input or usage; no guest was started
  6  something is missing on this machine; no guest was started
  130  interrupted (Ctrl-C)
  141  the reader of the output is gone
The command may use these numbers, too; --json distinguishes the cases.";

/// 128 plus the number of SIGPIPE, as in shells.
const BROKEN_PIPE: u8 = 141;

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

/// Fetches, or runs.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.action {
        Action::Run(arguments) => arguments.run(),
        Action::Fetch(arguments) => arguments.fetch(),
    }
}

impl FetchArguments {
    fn fetch(&self) -> Result<(), Failure> {
        let kernel = self.which.kernel(self.update)?;
        output::print(&printable(&kernel.image).to_string())
    }
}

impl Which {
    /// From the cache, else from the mirror.
    fn kernel(&self, update: bool) -> Result<Kernel, Failure> {
        let cache = Cache::usual()?;
        let mut reporter = Reporter::default();
        let mut seen = |step| reporter.report(&step);
        let mirror = self.mirror.as_deref();
        let kernel = if update {
            cache.newest(&self.release, mirror, &mut seen)
        } else {
            cache.kernel(&self.release, mirror, &mut seen)
        };
        Ok(kernel?)
    }
}

impl RunArguments {
    fn run(&self) -> Result<(), Failure> {
        let guest = self.guest()?;
        let outcome = self.watched(&guest)?;
        if let Some(path) = &self.console {
            files::write(path, outcome.console.as_bytes())?;
        }
        if let Some(path) = &self.json {
            files::write(path, ended::json(guest.kernel(), &outcome).as_bytes())?;
        }
        if outcome.success() {
            return Ok(());
        }
        let word = ended::word(&outcome, self.timeout);
        Err(Failure::Command(outcome.status(), word))
    }

    /// Checks everything before a kernel is downloaded.
    fn guest(&self) -> Result<Guest, Failure> {
        let hardware = self.hardware();
        hardware.check()?;
        let variables = self.environment.iter().map(|text| given::variable(text));
        let variables = variables.collect::<Result<Vec<_>, _>>()?;
        let files = self.files.iter().map(|text| given::file(text));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        warmq_vm::ready()?;
        let mut guest = Guest::new(self.kernel()?)
            .hardware(hardware)
            .timeout(self.timeout);
        for (name, value) in variables {
            guest = guest.env(name, value);
        }
        for (host, inside) in files {
            guest = match inside {
                Some(inside) => guest.file_at(host, inside),
                None => guest.file(host),
            };
        }
        for text in &self.append {
            guest = guest.append(text);
        }
        Ok(guest)
    }

    fn hardware(&self) -> Hardware {
        let usual = Hardware::default();
        let cpus = if self.instructions.is_some() {
            1
        } else {
            usual.cpus
        };
        Hardware {
            cpus: self.cpus.unwrap_or(cpus),
            llcs: self.llcs.unwrap_or(usual.llcs),
            threads_per_core: self.threads.unwrap_or(usual.threads_per_core),
            memory_mib: self.memory.unwrap_or(usual.memory_mib),
            instructions: self.instructions,
        }
    }

    fn kernel(&self) -> Result<Kernel, Failure> {
        let kernel = match &self.kernel {
            Some(image) => Kernel::from_file(image, self.config.as_deref())?,
            None => self.which.kernel(false)?,
        };
        if kernel.config.is_none() {
            let hint =
                "BPF programs that need it will not load; give it with --kernel and --config";
            say(&format!(
                "warmq: the configuration of {} was not found: {hint}",
                kernel.release
            ));
        }
        Ok(kernel)
    }

    /// Runs the guest. On a terminal it shows what it is doing until the command starts.
    fn watched(&self, guest: &Guest) -> Result<Outcome, Failure> {
        let mut watch = None;
        let mut seen = |stage| match stage {
            // If the command's errors go to a file, nothing else should.
            Stage::Booting if io::stderr().is_terminal() => {
                let release = &guest.kernel().release;
                watch = Some(Watch::until_done(&format!("booting {release}")));
            }
            Stage::Booting => {}
            Stage::BootingAgain => {
                say(
                    "warmq: the emulator broke the guest's boot (a breakpoint that nobody set); once more",
                );
            }
            Stage::Running => watch = None,
        };
        let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
        let streams = Streams {
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let outcome = guest.stream(&self.command, streams, &mut seen);
        drop(watch);
        outcome.map_err(|error| match error {
            // The reader is gone (`| head`). Other programs are ended by a signal then.
            VmError::System { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => {
                Failure::Command(BROKEN_PIPE, String::new())
            }
            error => error.into(),
        })
    }
}
