//! What a person may ask for: parsed here, checked here, used elsewhere.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use warmq_units::Duration;

/// The most groups that the BPF program has room for: MAX_GROUPS of state.bpf.h, without number 0.
pub const MOST_GROUPS: i64 = 1023;

static VERSION: LazyLock<String> =
    LazyLock::new(|| scx_utils::build_id::full_version(env!("CARGO_PKG_VERSION")));
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\nneeds Linux 6.13 or later with CONFIG_SCHED_CLASS_EXT; tried on 6.18",
        *VERSION
    )
});

const ABOUT: &str = "A scheduler for Linux (sched_ext) that keeps data warm and starves nobody";
const LONG_ABOUT: &str = "\
A scheduler for Linux (sched_ext) that keeps data warm and starves nobody.

Without a command it takes over all ordinary tasks of this machine until it is stopped by Ctrl-C, \
SIGTERM, or SysRq-S; then the kernel's own scheduler has them back. Tasks share CPU time by weight \
(nice, cgroup). Tasks that name the data that they are about to use (warmq.h, or `scx_warmq \
label`) form groups; a group has a home, and its tasks run there in succession.

Times are written with a unit: 500us, 4ms, 1s; 0 is off where that makes sense.";
const AFTER: &str = "\
Exit status: 0 stopped by a signal or --exit-after; 1 it did not start, or there is nothing to \
show; 2 wrong options; 3 the kernel threw it out for a fault; 4 somebody else ended it (SysRq-S, \
or a program).";
const AFTER_LABEL: &str = "\
A label wins over what the thread says itself, holds in the whole system, and ends with its \
thread; children do not inherit it (see --follow). A running scx_warmq sees it within a --period.

Examples:
  scx_warmq label --name 'db-shard-1*' 1
  scx_warmq label --cgroup /sys/fs/cgroup/system.slice/web.service 7 --follow
  scx_warmq label --remove --all
  scx_warmq label --list";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "scx_warmq", version = VERSION.as_str(), long_version = LONG_VERSION.as_str(),
    about = ABOUT, long_about = LONG_ABOUT, after_long_help = AFTER,
    args_conflicts_with_subcommands = true
)]
pub struct Options {
    /// How to schedule.
    #[command(flatten)]
    pub schedule: Schedule,

    /// Show a running scx_warmq, every so many SECONDS
    ///
    /// A table that is drawn anew on a terminal (q or Ctrl-C ends it), plain lines elsewhere. Needs
    /// no privilege but to reach /sys/fs/bpf.
    #[arg(
        long, value_name = "SECONDS", exclusive = true, value_parser = seconds,
        help_heading = "To look at a running one"
    )]
    pub monitor: Option<f64>,

    /// Print what a running scx_warmq counts, as JSON
    ///
    /// One object, or one in a line every SECONDS until it is stopped. Counters count from the
    /// scheduler's start.
    #[arg(long, value_name = "SECONDS", exclusive = true, value_parser = seconds, num_args = 0..=1,
        help_heading = "To look at a running one")]
    pub stats_json: Option<Option<f64>>,

    /// What else to do than to schedule.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How to schedule. The defaults are those of decide.h.
#[derive(Clone, Debug, Args)]
pub struct Schedule {
    /// What the home of a group is [default: llc, or cpu where all CPUs share one cache]
    ///
    /// llc: the CPUs of a last-level cache; a group's data stays in that cache, and its tasks use
    /// all of its CPUs. cpu: one CPU, for groups whose data fits the CPU's own caches and whose
    /// tasks mostly take turns; a group can then use no more than that CPU until an imbalance
    /// splits it. With one cache, llc would be one home for all groups: that is why cpu is the
    /// default there.
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        help_heading = "Groups",
        hide_possible_values = false
    )]
    pub place: Option<Place>,

    /// How long a task runs, at most, before the next is chosen
    ///
    /// Longer: fewer switches, warmer caches; shorter: less waiting. 100us to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "4ms", value_parser = span("100us", "1s"),
        help_heading = "Time"
    )]
    pub slice: Duration,

    /// How long a task runs, at least, however many wait
    ///
    /// Longer keeps throughput under overload. 50us to 100ms, and no more than --slice.
    #[arg(
        long, value_name = "TIME", default_value = "500us", value_parser = span("50us", "100ms"),
        help_heading = "Time"
    )]
    pub slice_min: Duration,

    /// In which everybody runs once while few are runnable; sleeps are counted in it
    ///
    /// The slice is this divided by those who wait for a CPU, between --slice-min and --slice.
    /// Labels are looked for once in it. 1ms to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "20ms", value_parser = span("1ms", "1s"),
        help_heading = "Time"
    )]
    pub period: Duration,

    /// How far behind others a task that slept may start, in CPU time
    ///
    /// It is what a sleeper may catch up on. More: it runs sooner after waking, and others wait
    /// longer for it. 0 to 1s, and no more than --limit.
    #[arg(
        long, value_name = "TIME", default_value = "2ms", value_parser = span("0", "1s"),
        help_heading = "Time"
    )]
    pub credit: Duration,

    /// How far anything may stand from its fair share, in CPU time
    ///
    /// Old debts and claims beyond it are forgotten, which bounds the longest wait. Less: shorter
    /// waits, but shares are less exact where tasks are bound to CPUs. From --slice to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "40ms", value_parser = span("1ms", "1s"),
        help_heading = "Time"
    )]
    pub limit: Duration,

    /// By how much one sleep a second makes it harder for a task to preempt
    ///
    /// A task that wakes preempts only when it stands behind the running one by more than this
    /// times its sleeps a second (formula 5-1 of the paper on starvation; a heavier task needs
    /// less). More: those who wake often (packets) disturb others less and wait longer. 0 is the
    /// same as --no-granularity. 0 to 1ms.
    #[arg(
        long, value_name = "TIME", default_value = "1us", value_parser = span("0", "1ms"),
        help_heading = "Wakeups"
    )]
    pub alpha: Duration,

    /// The least time between two preemptions of a CPU by wakeups
    ///
    /// Bounds how often a running task is interrupted, whoever wakes. Raise it where a CPU-bound
    /// task suffers from frequent wakeups; what wakes then waits up to so long. 0 (off) to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "1ms", value_parser = span("0", "1s"),
        help_heading = "Wakeups"
    )]
    pub preempt_interval: Duration,

    /// A shorter sleep earns no credit and does not preempt
    ///
    /// A plain rule against tasks that nap to get ahead. It hits whoever sleeps briefly for a good
    /// reason as well, so it is off. 0 (off) to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "0", value_parser = span("0", "1s"),
        help_heading = "Wakeups"
    )]
    pub min_sleep: Duration,

    /// No wakeup preempts: what wakes waits for the running task's slice to end
    ///
    /// The most throughput, and the longest latency.
    #[arg(long, help_heading = "Wakeups")]
    pub no_preempt: bool,

    /// Wakeups preempt however often a task sleeps: as --alpha 0
    #[arg(long, conflicts_with = "alpha", help_heading = "Wakeups")]
    pub no_granularity: bool,

    /// How long the tasks of a group run in succession on a CPU while others wait
    ///
    /// Longer: data that is loaded once serves more tasks; others wait longer for the group, and
    /// are then served as much longer. 0 (no succession) to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "8ms", value_parser = span("0", "1s"),
        help_heading = "Groups"
    )]
    pub batch_budget: Duration,

    /// By how many percent a place may be busier than another before groups move
    ///
    /// More: fewer moves and warmer caches; less: more even load. 0 to 1000.
    #[arg(
        long, value_name = "PERCENT", default_value_t = 25,
        value_parser = clap::value_parser!(u64).range(0..=1000),
        help_heading = "Groups")]
    pub imbalance: u64,

    /// How long an imbalance lasts that no move can mend before a group is split
    ///
    /// A group larger than its home then lends tasks to idle CPUs elsewhere. 0 to 60s.
    #[arg(
        long, value_name = "TIME", default_value = "20ms", value_parser = span("0", "60s"),
        help_heading = "Groups"
    )]
    pub patience: Duration,

    /// How often busy places are compared
    ///
    /// A CPU without work looks for some at once in any case. 1ms to 1s.
    #[arg(
        long, value_name = "TIME", default_value = "10ms", value_parser = span("1ms", "1s"),
        help_heading = "Groups"
    )]
    pub balance_interval: Duration,

    /// Ignore what tasks and labels say about fragments: all tasks are alike
    #[arg(long, help_heading = "Groups")]
    pub no_groups: bool,

    /// Whose equal fragments are the same: those of a process, a user, or everybody
    ///
    /// Wider lets processes share groups, and lets them interfere with each other's. Labels always
    /// count for everybody.
    #[arg(
        long, value_enum, value_name = "WHOSE", default_value_t = Scope::Process,
        help_heading = "Groups"
    )]
    pub scope: Scope,

    /// How many groups there may be at a time
    ///
    /// Tasks of further fragments are scheduled as if they had none. 1 to 1023.
    #[arg(long, value_name = "N", default_value_t = MOST_GROUPS as u32,
        value_parser = clap::value_parser!(u32).range(1..=MOST_GROUPS), help_heading = "Groups")]
    pub groups: u32,

    /// How many groups one process may have (one user, with --scope user)
    ///
    /// So that no program takes them all. 1 to 1023.
    #[arg(
        long, value_name = "N", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=MOST_GROUPS),
        help_heading = "Groups")]
    pub groups_per_process: u32,

    /// Also make groups of tasks that nobody named, from who wakes whom
    ///
    /// For programs that give no hints. It guesses: look at the monitor to see whether the groups
    /// make sense.
    #[arg(long, conflicts_with = "no_groups", help_heading = "Groups")]
    pub infer: bool,

    /// How many tasks an inferred group has at most
    ///
    /// 2 to 1023. Only with --infer.
    #[arg(
        long, value_name = "N", default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(2..=MOST_GROUPS),
        requires = "infer", help_heading = "Groups")]
    pub infer_size: u32,

    /// Stop by itself after so many SECONDS
    ///
    /// To try it on a machine that you could lose your way into.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub exit_after: Option<f64>,

    /// Say more: what libbpf and the verifier say, and the kernel's dump when it throws the
    /// scheduler out
    #[arg(short, long)]
    pub verbose: bool,
}

/// The home of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// One CPU.
    Cpu,
    /// The CPUs of a last-level cache.
    Llc,
}

impl Place {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Place::Cpu => "cpu",
            Place::Llc => "llc",
        }
    }
}

/// Whose equal fragments are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Those of a process.
    Process,
    /// Those of a user.
    User,
    /// Everybody's.
    System,
}

impl Scope {
    /// As state.bpf.h numbers them.
    pub const ALL: [Scope; 3] = [Scope::Process, Scope::User, Scope::System];

    /// As it is written.
    pub fn name(self) -> &'static str {
        ["process", "user", "system"][self as usize]
    }
}

/// What else to do than to schedule.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say which data the threads of a program use that does not say so itself
    Label(Label),
    /// Forget all hints and labels: remove what a stopped scx_warmq left in /sys/fs/bpf/scx_warmq
    ///
    /// They are kept when it stops, so that programs need not tell it again when it is started
    /// again. Until then they cost about 100 bytes for each thread that gave a hint.
    Unpin,
}

/// Labels: an administrator's hints.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("threads").args(["tid", "pid", "name", "cgroup", "all"]),
    group = ArgGroup::new("what").args(["fragment", "remove", "list"]).required(true),
    after_long_help = AFTER_LABEL
)]
pub struct Label {
    /// The thread with this number; may be given several times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub tid: Vec<i32>,

    /// All threads of this process; may be given several times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Vec<i32>,

    /// All threads whose name (comm, up to 15 characters) fits this pattern: * any text, ? any
    /// character, [abc] one of them
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub name: Option<glob::Pattern>,

    /// All threads of this cgroup and those below it: a folder, or its path under /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,

    /// All threads that have a label (with --remove)
    #[arg(long, requires = "remove", conflicts_with = "fragment")]
    pub all: bool,

    /// The fragment: threads with the same number use the same data
    #[arg(requires = "threads")]
    pub fragment: Option<u32>,

    /// Whose fragment it is, where several programs number theirs
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["remove", "list"])]
    pub app: u32,

    /// Go on and label new threads each second, until it is stopped
    #[arg(long, requires = "fragment", conflicts_with_all = ["remove", "list"])]
    pub follow: bool,

    /// Take the labels away
    #[arg(long, requires = "threads")]
    pub remove: bool,

    /// List the threads that have a label
    #[arg(long, conflicts_with = "threads")]
    pub list: bool,

    /// With --list: as JSON
    #[arg(long, requires = "list")]
    pub json: bool,
}

impl Options {
    /// Reads the command line; leaves the program where it is wrong.
    pub fn read() -> Options {
        let options = Options::parse();
        if let Err(flaw) = options.schedule.check() {
            Options::command()
                .error(ErrorKind::ValueValidation, flaw)
                .exit();
        }
        options
    }
}

impl Schedule {
    /// What no single option can be wrong about.
    pub fn check(&self) -> Result<(), String> {
        let no_more_than = |name: &str, small: Duration, other: &str, large: Duration| {
            if small <= large {
                return Ok(());
            }
            let (small, large) = (small.exact(), large.exact());
            Err(format!(
                "--{name} {small} is more than --{other} {large}: lower --{name} or raise --{other}"
            ))
        };
        no_more_than("slice-min", self.slice_min, "slice", self.slice)?;
        no_more_than("slice", self.slice, "limit", self.limit)?;
        no_more_than("credit", self.credit, "limit", self.limit)
    }
}

/// A parser of a time between two others.
fn span(
    least: &'static str,
    most: &'static str,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync + 'static {
    move |text| {
        let span = time(text)?;
        let bound = |bound: &str| time(bound).unwrap_or_default();
        if span < bound(least) || span > bound(most) {
            return Err(format!("write a time from {least} to {most}"));
        }
        Ok(span)
    }
}

/// Reads a time; 0 needs no unit.
fn time(text: &str) -> Result<Duration, String> {
    if text.trim() == "0" {
        return Ok(Duration::default());
    }
    let number = text.trim();
    text.parse().map_err(|_| {
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("the unit is missing: write {number}us, {number}ms or {number}s")
        } else {
            "write a whole number and its unit, as in 500us, 4ms or 1s".to_owned()
        }
    })
}

/// Reads an interval in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .filter(|seconds| (0.1..=86_400.0).contains(seconds))
        .ok_or_else(|| "write a number of seconds from 0.1 to 86400".to_owned())
}

fn pattern(text: &str) -> Result<glob::Pattern, String> {
    glob::Pattern::new(text)
        .map_err(|flaw| format!("{flaw}; put special characters into brackets, as in [*]"))
}

#[cfg(test)]
mod tests;
