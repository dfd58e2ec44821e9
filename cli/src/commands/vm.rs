//! `warmq vm`: another kernel, and a command in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use warmq_vm::{Cache, Ending, Guest, Kernel, Outcome, Stage, Step, Streams};

use crate::failure::Failure;
use crate::files;
use crate::output::{self, say};
use crate::progress::Watch;

const EXAMPLES: &str = "\
Examples:
  warmq vm run -- uname -a
  warmq vm run --cpus 8 --llcs 4 -- sh -c 'cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list'
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
    /// Boot a kernel in QEMU and run a command in it.
    Run(RunArguments),
    /// Get a kernel and print where it is.
    Fetch(FetchArguments),
}

/// Which kernel.
#[derive(Args, Debug)]
struct Which {
    /// The newest kernel of this series that is in the cache, else that Debian's mirror has.
    #[arg(long, value_name = "SERIES", default_value = "6.18")]
    release: String,
    /// Where Debian's packages are [default: where the machine's own apt gets them].
    #[arg(long, value_name = "URI")]
    mirror: Option<String>,
}

/// Get a kernel and print where it is.
///
/// It is downloaded with apt, which verifies it by the keys of Debian's archive, from the mirror that
/// apt here already uses; nothing is installed, and root is not needed. It is kept in
/// $XDG_CACHE_HOME/warmq (or ~/.cache/warmq); what is there and whole is not downloaded again.
#[derive(Args, Debug)]
struct FetchArguments {
    #[command(flatten)]
    which: Which,
    /// Ask the mirror for a newer one even if there is one in the cache.
    #[arg(long)]
    update: bool,
}

/// Boot a kernel in QEMU and run a command in it.
///
/// The command's program, its shared objects and the files named with --file go into the guest's
/// memory, with busybox for the rest. Root is not needed. Standard output and standard error are
/// passed on byte by byte as they come, apart from each other and from the kernel's messages;
/// standard input is empty. The guest has no disk and no network but loopback; cgroup2, tracefs,
/// debugfs and bpffs are mounted. When the command ends, so does the guest, with everything that
/// is still running in it.
///
/// The guest is emulated instruction by instruction: it shows what a kernel does, not how fast.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
struct RunArguments {
    #[command(flatten)]
    which: Which,
    /// A kernel of your own (a bzImage, as /boot/vmlinuz is) instead.
    #[arg(long, value_name = "VMLINUZ", conflicts_with_all = ["release", "mirror"])]
    kernel: Option<PathBuf>,
    /// Its configuration, which BPF programs may need [default: in the image or beside it].
    #[arg(long, value_name = "FILE", requires = "kernel")]
    config: Option<PathBuf>,
    /// CPUs [default: 2, or 1 with --instructions].
    #[arg(long, value_name = "N")]
    cpus: Option<u32>,
    /// Last-level caches, each shared by the same number of CPUs.
    #[arg(long, value_name = "M", default_value_t = 1)]
    llcs: u32,
    /// Memory in MiB; the files of the guest are in it.
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    memory: u32,
    /// Kill the guest after so many seconds, its boot included, and exit with 124.
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    timeout: Duration,
    /// Time in the guest is its count of instructions, a nanosecond each: the same on any machine.
    #[arg(long)]
    instructions: bool,
    /// Give the guest a file or folder, with what it needs to run; a name without a slash that is
    /// not here is a program on PATH. May be given several times.
    #[arg(long = "file", value_name = "HOST[:GUEST]")]
    files: Vec<OsString>,
    /// Set a variable for the command; without a value, to what it is here.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<OsString>,
    /// Add to the kernel's command line. May be given several times.
    #[arg(long, value_name = "KERNEL_ARGS", allow_hyphen_values = true)]
    append: Vec<String>,
    /// Write how it went into this file as JSON: kernel, release, seconds_to_boot, seconds, ending,
    /// status.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write what the kernel said on its console into this file.
    #[arg(long, value_name = "FILE")]
    console: Option<PathBuf>,
    /// The program to run, and its arguments, exactly as they are.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXIT_CODES: &str = "\
Exit codes:
  the command's own; 128 and the signal's number if a signal ended it, 126 or 127 if it could not start
  124  the time was up
  125  the guest ended and not the command: a panic, or it was switched off
  2  bad input or usage, before any guest
  6  this machine cannot do it: something is missing, before any guest
  130  interrupted (Ctrl-C)
Where this matters, --json tells the cases apart.";

fn long_help() -> String {
    format!("{EXAMPLES}\n\n{EXIT_CODES}")
}

/// Longer than this nobody waits, and no clock has to be asked whether it can count so far.
const LONGEST_SECONDS: f64 = 1e6;

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let fits = |seconds: &f64| *seconds > 0.0 && *seconds <= LONGEST_SECONDS;
    let seconds = seconds.filter(fits);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "write a number of seconds, as in 90".to_owned())
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
        output::print(&kernel.image.display().to_string())
    }
}

impl Which {
    /// From the cache, else from the mirror.
    fn kernel(&self, update: bool) -> Result<Kernel, Failure> {
        let cache = Cache::usual()?;
        let mut watch = None;
        let mut seen = |step: Step| {
            watch = None;
            match &step {
                Step::Broken { .. } => say(&format!("warmq: {}", told(&step))),
                step => watch = Some(Watch::until_done(&told(step))),
            }
        };
        let mirror = self.mirror.as_deref();
        let kernel = if update {
            cache.newest(&self.release, mirror, &mut seen)
        } else {
            cache.kernel(&self.release, mirror, &mut seen)
        };
        drop(watch);
        Ok(kernel?)
    }
}

fn told(step: &Step) -> String {
    match step {
        Step::Broken { release, problem } => {
            format!("the kernel {release} in the cache is broken ({problem}) and is not used")
        }
        Step::Listing => "asking the mirror for its kernels".to_owned(),
        Step::Downloading { release, bytes } => {
            format!(
                "downloading the kernel {release}, {} MB",
                bytes.div_ceil(1_000_000)
            )
        }
    }
}

impl RunArguments {
    fn run(&self) -> Result<(), Failure> {
        let kernel = self.kernel()?;
        if kernel.config.is_none() {
            let hint = "BPF programs that look into it will not load; give it with --config";
            say(&format!(
                "warmq: no configuration of {} was found: {hint}",
                kernel.release
            ));
        }
        let guest = self.guest(kernel)?;
        let outcome = self.watched(&guest)?;
        self.note(guest.kernel(), &outcome)?;
        match outcome.ending {
            Ending::Exited(0) => Ok(()),
            _ => Err(Failure::Guest(outcome.status(), self.word(&outcome))),
        }
    }

    fn kernel(&self) -> Result<Kernel, Failure> {
        match &self.kernel {
            Some(image) => Ok(Kernel::from_file(image, self.config.as_deref())?),
            None => self.which.kernel(false),
        }
    }

    fn guest(&self, kernel: Kernel) -> Result<Guest, Failure> {
        let mut guest = Guest::new(kernel).timeout(self.timeout);
        if self.instructions {
            guest = guest.instructions();
        }
        if let Some(cpus) = self.cpus {
            guest = guest.cpus(cpus);
        }
        guest = guest.llcs(self.llcs).memory_mib(self.memory);
        for text in &self.append {
            guest = guest.append(text);
        }
        for variable in &self.environment {
            let (name, value) = setting(variable)?;
            guest = guest.env(name, value);
        }
        for file in &self.files {
            let (host, inside) = places(file);
            let host = found(host)?;
            guest = match inside {
                Some(inside) => guest.file_at(host, inside),
                None => guest.file(host),
            };
        }
        Ok(guest)
    }

    /// Runs it with a word on a terminal while nothing else comes.
    fn watched(&self, guest: &Guest) -> Result<Outcome, Failure> {
        let mut watch = None;
        let mut seen = |stage| match stage {
            // A file that gets the command's errors shall get nothing else.
            Stage::Booting if io::stderr().is_terminal() => {
                let release = &guest.kernel().release;
                watch = Some(Watch::until_done(&format!("booting {release}")));
            }
            Stage::Booting => {}
            Stage::Running => watch = None,
        };
        let (mut stdout, mut stderr) = (io::stdout(), io::stderr());
        let streams = Streams {
            stdout: &mut stdout,
            stderr: &mut stderr,
        };
        let outcome = guest.stream(&self.command, streams, &mut seen);
        drop(watch);
        Ok(outcome?)
    }

    /// Writes the files that were asked for.
    fn note(&self, kernel: &Kernel, outcome: &Outcome) -> Result<(), Failure> {
        if let Some(path) = &self.console {
            write(path, outcome.console.as_bytes())?;
        }
        let Some(path) = &self.json else {
            return Ok(());
        };
        let seconds = |time: Duration| (time.as_secs_f64() * 1e3).round() / 1e3;
        let note = serde_json::json!({
            "kernel": kernel.image.to_string_lossy(),
            "release": kernel.release,
            "seconds_to_boot": outcome.boot.map(seconds),
            "seconds": seconds(outcome.total),
            "ending": ending(outcome.ending),
            "status": outcome.status(),
        });
        write(path, format!("{note}\n").as_bytes())
    }

    /// What there is to say about a guest that ended before its command.
    fn word(&self, outcome: &Outcome) -> String {
        match outcome.ending {
            Ending::Exited(_) => String::new(),
            Ending::TimeUp => {
                let limit = self.timeout.as_secs_f64();
                let stage = if outcome.boot.is_some() {
                    ""
                } else {
                    " while it booted"
                };
                format!("the guest was killed after {limit} s{stage}; --timeout gives it longer")
            }
            Ending::Panicked => format!(
                "the guest's kernel panicked; it said last:\n{}",
                last(outcome)
            ),
            Ending::SwitchedOff => {
                format!(
                    "the guest was switched off before the command ended; its kernel said last:\n{}",
                    last(outcome)
                )
            }
        }
    }
}

fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Exited(_) => "exited",
        Ending::TimeUp => "time_up",
        Ending::Panicked => "panicked",
        Ending::SwitchedOff => "switched_off",
    }
}

/// Lines of the kernel's that are shown: a panic with one backtrace.
const LINES_SHOWN: usize = 60;

fn last(outcome: &Outcome) -> String {
    let lines: Vec<&str> = outcome.console.lines().collect();
    let from = lines.len().saturating_sub(LINES_SHOWN);
    lines[from..].join("\n")
}

/// `HOST[:GUEST]`. The guest's part begins with a slash, so that a colon may be in the host's.
fn places(text: &OsStr) -> (PathBuf, Option<String>) {
    let whole = PathBuf::from(text);
    let parts = text
        .to_str()
        .filter(|_| !whole.exists())
        .and_then(|text| text.rsplit_once(":/"));
    match parts {
        Some((host, guest)) => (host.into(), Some(format!("/{guest}"))),
        None => (whole, None),
    }
}

fn found(host: PathBuf) -> Result<PathBuf, Failure> {
    if host.exists() {
        return Ok(host);
    }
    let named = warmq_vm::program_on_path(host.as_os_str());
    named.ok_or_else(|| {
        Failure::usage(
            format!("--file {}: there is no such file", host.display()),
            "write its path",
        )
    })
}

/// `NAME=VALUE`, or `NAME` for what it is here.
fn setting(text: &OsStr) -> Result<(String, OsString), Failure> {
    let bytes = text.as_bytes();
    let end = bytes
        .iter()
        .position(|byte| *byte == b'=')
        .unwrap_or(bytes.len());
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let here = || std::env::var_os(&name);
    let value = bytes
        .get(end + 1..)
        .map(|value| OsStr::from_bytes(value).to_owned())
        .or_else(here);
    let unset = || {
        Failure::usage(
            format!("--env {name}: it is not set here"),
            "write --env NAME=VALUE",
        )
    };
    value.map(|value| (name.clone(), value)).ok_or_else(unset)
}

fn write(path: &Path, text: &[u8]) -> Result<(), Failure> {
    let mut file = File::create(path).map_err(|error| files::refused(path, &error))?;
    file.write_all(text)
        .map_err(|error| files::refused(path, &error))
}
