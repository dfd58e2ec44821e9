//! The command line: parsed and checked here, used elsewhere.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::RangedI64ValueParser;
use clap::error::ErrorKind;
use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand, ValueEnum};
use warmq_hint::abi;
use warmq_units::Duration;

use crate::access;

/// The most groups that there may be: number 0 is never used.
fn most_groups() -> i64 {
    i64::from(abi::MAX_GROUPS) - 1
}

/// A parser of a number of groups, or of tasks in one.
fn count(least: i64) -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(least..=most_groups())
}

static VERSION: LazyLock<String> =
    LazyLock::new(|| scx_utils::build_id::full_version(env!("CARGO_PKG_VERSION")));
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\nneeds Linux 6.13 or later with CONFIG_SCHED_CLASS_EXT; tested on 6.16 to 7.0 and on 7.3",
        *VERSION
    )
});

const ABOUT: &str = "A scheduler for Linux (sched_ext) that keeps data warm and starves nobody";
const LONG_ABOUT: &str = "\
A scheduler for Linux (sched_ext) that keeps data warm and starves nobody.

Without a command it schedules all ordinary tasks of this machine until it is stopped by Ctrl-C, \
SIGTERM, or SysRq-S; then the kernel's own scheduler takes them back. Tasks share CPU time by weight \
(nice, cgroup). Tasks that name the data they are about to use (warmq.h, or `scx_warmq label`) form \
groups: a group has a home, and its tasks run there one after another.

Write times with a unit: 500us, 4ms, 1s. 0 switches off what can be switched off.";
const AFTER: &str = "\
Exit status: 0 stopped by a signal or --exit-after; 1 it could not start, or no scx_warmq runs that \
could be shown; 2 wrong options; 3 the kernel stopped it because of a fault; 4 somebody else stopped \
it (SysRq-S, or a program).";
const AFTER_LABEL: &str = "\
A label overrides the thread's own hints. Threads of different processes with the same label are in \
one group. The label ends with its thread, and children do not inherit it (see --follow). A running \
scx_warmq sees it within one --period.

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

    /// Show what a running scx_warmq does, every SECONDS seconds
    ///
    /// On a terminal a table is redrawn (q or Ctrl-C ends it); elsewhere plain lines are printed.
    /// It only needs access to /sys/fs/bpf.
    #[arg(
        long, value_name = "SECONDS", exclusive = true, value_parser = seconds,
        help_heading = "Observe a running scx_warmq"
    )]
    pub monitor: Option<f64>,

    /// Print the statistics of a running scx_warmq as JSON
    ///
    /// One object, or with SECONDS one line per interval until it is stopped. Counters start from 0
    /// when the scheduler starts.
    #[arg(long, value_name = "SECONDS", exclusive = true, value_parser = seconds, num_args = 0..=1,
        help_heading = "Observe a running scx_warmq")]
    pub stats_json: Option<Option<f64>>,

    /// Say what each number means that scx's own tools can ask a running scx_warmq for
    ///
    /// They ask at /var/run/scx/root/stats, as of any scheduler of the scx project.
    #[arg(long, exclusive = true, help_heading = "Observe a running scx_warmq")]
    pub help_stats: bool,

    /// A command instead of scheduling.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How to schedule. The defaults are those of decide.h.
#[derive(Clone, Debug, Args)]
pub struct Schedule {
    /// Members of this Unix group may give slots to the scheduler, and look at it
    ///
    /// A name or a number. Else only root may: whoever can write to the map of slots can void those
    /// of other programs, and its tables say who runs what. Hints by prctl and labels need no
    /// group.
    #[arg(long, value_name = "GROUP", value_parser = access::group)]
    pub access_group: Option<u32>,

    /// Start even where a quota (cpu.max) is set that this kernel does not tell schedulers of
    ///
    /// Before Linux 6.17. Without this, scx_warmq does not start there while a quota is set.
    #[arg(long)]
    pub ignore_quotas: bool,

    /// Also print what --monitor shows, every SECONDS seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub stats: Option<f64>,

    /// Stop after SECONDS seconds
    ///
    /// For trying it on a machine that you might lose access to.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub exit_after: Option<f64>,

    /// Also print the messages of libbpf and of the verifier, and the kernel's dump if it stops the
    /// scheduler because of a fault
    #[arg(short, long)]
    pub verbose: bool,

    /// Which tasks are together, and where.
    #[command(flatten)]
    pub groups: Groups,

    /// How long tasks run, and how much lag counts.
    #[command(flatten)]
    pub time: Time,

    /// What a task that wakes may do.
    #[command(flatten)]
    pub wakeups: Wakeups,
}

/// Which tasks are together, and where.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Groups")]
pub struct Groups {
    /// What the home of a group is [default: llc, or cpu if all CPUs share one cache]
    ///
    /// llc: the CPUs that share a last-level cache. A group's data stays in that cache, and its
    /// tasks may use all of these CPUs. cpu: a single CPU, for groups whose data fits the CPU's own
    /// caches and whose tasks mostly take turns. Such a group uses only that CPU until an imbalance
    /// splits it. If all CPUs share one cache, llc would give all groups the same home; therefore
    /// cpu is the default there.
    #[arg(long, value_enum, value_name = "WHAT", hide_possible_values = false)]
    pub place: Option<Place>,

    /// How long tasks of one group run one after another on a CPU while others wait
    ///
    /// Longer: data that is loaded once serves more tasks; others wait longer for the group, and
    /// then run longer in turn. 0 (off) to 1s.
    #[arg(long, value_name = "TIME", default_value = "8ms", value_parser = span("0", "1s"))]
    pub batch_budget: Duration,

    /// By how many percent one home may be busier than another before groups move
    ///
    /// More: fewer moves and warmer caches. Less: more even load. 0 to 1000.
    #[arg(
        long, value_name = "PERCENT", default_value_t = 25,
        value_parser = clap::value_parser!(u64).range(0..=1000)
    )]
    pub imbalance: u64,

    /// How long an imbalance that no move can correct must last before a group is split
    ///
    /// Then idle CPUs elsewhere run single tasks of a group that is larger than its home. A task
    /// that shares its core goes to a better one under another cache after so long. 0 to 60s.
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = span("0", "60s"))]
    pub patience: Duration,

    /// How often the load of busy homes is compared
    ///
    /// A CPU without work looks for some at once, independent of this. 1ms to 1s.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = span("1ms", "1s"))]
    pub balance_interval: Duration,

    /// Ignore hints and labels: no groups
    #[arg(long)]
    pub no_groups: bool,

    /// Also group the tasks that name nothing: by the memory that they share, their process, or
    /// their cgroup
    ///
    /// For programs that give no hints. By memory and by process, only programs of several threads
    /// get a group. Hints and labels come first.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["no_groups", "infer"])]
    pub group_by: Option<GroupBy>,

    /// Within what equal fragments mean the same data: a process, a user, or the whole system
    ///
    /// With user or system, processes can share groups, and can also interfere with each other's
    /// groups. Labels always hold for the whole system.
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t = Scope::Process)]
    pub scope: Scope,

    /// How many groups there may be at a time
    ///
    /// Tasks of further fragments are scheduled without a group. 1 to 1023.
    #[arg(long, value_name = "N", default_value_t = most_groups() as u32, value_parser = count(1))]
    pub groups: u32,

    /// How many groups one process may have (with --scope user: one user)
    ///
    /// This keeps one program from taking all groups. 1 to 1023.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = count(1))]
    pub groups_per_process: u32,

    /// How many groups all processes of one user may have
    ///
    /// This keeps two users from taking all groups. Users of a user namespace count as the one who
    /// made it. Labels are nobody's. 1 to 1023.
    #[arg(long, value_name = "N", default_value_t = 384, value_parser = count(1))]
    pub groups_per_user: u32,

    /// Also infer groups of tasks without hints, from which task wakes which
    ///
    /// For programs that give no hints. It is a guess: check in --monitor whether the groups make
    /// sense.
    #[arg(long, conflicts_with = "no_groups")]
    pub infer: bool,

    /// The most tasks in an inferred group
    ///
    /// 2 to 1023. Only with --infer.
    #[arg(long, value_name = "N", default_value_t = 64, requires = "infer")]
    #[arg(value_parser = count(2))]
    pub infer_size: u32,

    /// Also read hints from a map of task storage that is pinned at this file
    ///
    /// As scx_layered's option of this name: values of 32 bytes that begin with a hint of 64 bits,
    /// by pidfd. For programs that give such hints already. A thread's own slot comes first, a
    /// label before both. The map is made if there is none, and stays. Only root may write to it
    /// or, with --access-group, the members of that group, whereas everybody may write to
    /// scx_layered's.
    #[arg(long, value_name = "FILE", conflicts_with = "no_groups")]
    pub task_hint_map: Option<PathBuf>,
}

/// How long tasks run, and how much lag counts.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct Time {
    /// The longest slice: how long a task may run before the next is picked
    ///
    /// Longer: fewer switches and warmer caches. Shorter: less waiting. A task that shares its core
    /// goes to a better one that has been there for a slice. 100us to 1s.
    #[arg(long, value_name = "TIME", default_value = "4ms", value_parser = span("100us", "1s"))]
    pub slice: Duration,

    /// The shortest slice, however many tasks wait
    ///
    /// Longer: more throughput under overload. 50us to 100ms, and no more than --slice.
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = span("50us", "100ms"))]
    pub slice_min: Duration,

    /// The time in which every task runs once while few are runnable
    ///
    /// The slice is this time divided by the number of tasks that wait for a CPU, between
    /// --slice-min and --slice. Sleeps are counted per period (see --alpha), and labels are looked
    /// up once per period. 1ms to 1s.
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = span("1ms", "1s"))]
    pub period: Duration,

    /// How much lag (service owed to it) a task keeps at most when it wakes
    ///
    /// In CPU time at nice 0. More: a task runs sooner after waking, and others wait longer for it.
    /// 0 to 1s, and no more than --lag-max.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = span("0", "1s"))]
    pub wakeup_lag_max: Duration,

    /// The bound of lag: how far the service of a task may be from its fair share
    ///
    /// In CPU time at nice 0. Lag beyond it is forgotten, which bounds the longest wait. Less:
    /// shorter waits, but less exact shares where tasks are bound to CPUs. From --slice to 1s.
    #[arg(long, value_name = "TIME", default_value = "40ms", value_parser = span("1ms", "1s"))]
    pub lag_max: Duration,
}

/// What a task that wakes may do.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Wakeups")]
pub struct Wakeups {
    /// The wakeup granularity for one sleep per second
    ///
    /// A task that wakes preempts the running one only if its deadline is earlier by more than this
    /// times its sleeps per second (formula 5-1 of A. Al-Mane's thesis; a heavier task needs less).
    /// More: tasks that wake often (packets) disturb others less, and wait longer. 0 is the same as
    /// --no-granularity. 0 to 1ms.
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = span("0", "1ms"))]
    pub alpha: Duration,

    /// The least time between two wakeup preemptions of one CPU
    ///
    /// It bounds how often running tasks are preempted, whichever task wakes. Raise it if a
    /// CPU-bound task suffers from frequent wakeups; a task that wakes then waits up to that long.
    /// 0 (off) to 1s.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span("0", "1s"))]
    pub preempt_interval: Duration,

    /// After a shorter sleep a task keeps no lag and does not preempt
    ///
    /// A simple rule against tasks that take short naps to run sooner. It also affects tasks that
    /// sleep briefly for a good reason, so it is off by default. 0 (off) to 1s.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span("0", "1s"))]
    pub min_sleep: Duration,

    /// No wakeup preemption: a task that wakes waits until the running task's slice ends
    ///
    /// This gives the most throughput and the longest latency.
    #[arg(long)]
    pub no_preempt: bool,

    /// No wakeup granularity, however often a task sleeps: the same as --alpha 0
    #[arg(long, conflicts_with = "alpha")]
    pub no_granularity: bool,
}

warmq_units::named! {
    /// The home of a group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub enum Place {
        /// One CPU.
        Cpu = "cpu",
        /// The CPUs of a last-level cache.
        Llc = "llc",
    }
}

/// What tasks that name nothing have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupBy {
    /// Their memory (mm).
    Mm,
    /// Their cgroup.
    Cgroup,
    /// Their process.
    Tgid,
}

warmq_units::named! {
    /// Within what equal fragments are the same, as hint.bpf.h numbers them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    pub enum Scope {
        /// Within a process.
        Process = "process",
        /// Within a user's processes.
        User = "user",
        /// Within the whole system.
        System = "system",
    }
}

/// The commands; without one it schedules.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Name the data that threads use, for programs that give no hints
    Label(Label),
    /// Forget all hints and labels that a stopped scx_warmq left in /sys/fs/bpf/scx_warmq
    ///
    /// They are kept when it stops, so that programs need not give their hints again when it is
    /// restarted. Until then they take about 100 bytes for each thread that gave a hint.
    Unpin,
    /// Write the manual page
    Man,
    /// Write completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
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

    /// All threads whose name (comm, at most 15 characters) matches this pattern: * is any text, ?
    /// any character, [abc] one of these
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub name: Option<glob::Pattern>,

    /// All threads of this cgroup and those below it: a folder, or its path under /sys/fs/cgroup
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<PathBuf>,

    /// All threads that have a label (with --remove)
    #[arg(long, requires = "remove", conflicts_with = "fragment")]
    pub all: bool,

    /// The fragment: threads with the same number share data
    #[arg(requires = "threads")]
    pub fragment: Option<u32>,

    /// The app that the fragment belongs to, so that several programs can number their fragments
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["remove", "list"])]
    pub app: u32,

    /// Keep running, and label new threads every second until stopped
    #[arg(long, requires = "fragment", conflicts_with_all = ["remove", "list"])]
    pub follow: bool,

    /// Remove the labels
    #[arg(long, requires = "threads")]
    pub remove: bool,

    /// List the threads that have a label
    #[arg(long, conflicts_with = "threads")]
    pub list: bool,

    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub json: bool,
}

impl Options {
    /// Reads the command line. Ends the program if it is wrong.
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
    /// Checks options against each other.
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
        no_more_than("slice-min", self.time.slice_min, "slice", self.time.slice)?;
        no_more_than("slice", self.time.slice, "lag-max", self.time.lag_max)?;
        no_more_than(
            "wakeup-lag-max",
            self.time.wakeup_lag_max,
            "lag-max",
            self.time.lag_max,
        )
    }
}

/// A parser of a time between two bounds.
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
            "write a number and its unit, as in 500us, 1.5ms or 1s".to_owned()
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
