//! A guest as a world: a real kernel in QEMU.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use warmq_config::{Chosen, Setting, Value};
use warmq_experiment::{AnyObserver, Configured, Measured, Plan, Play, Played, RunError, World};
use warmq_machine::MachineDescription;
use warmq_scenario::{Scenario, SchedulerChoice, Set, Site, TaskKindId, WorldKind};
use warmq_units::Release;
use warmq_vm::{Boots, Cache, Ending, Guest, Hardware, Kernel, VmError};

use crate::guest::kernel::Reporter;

use super::player::{OPTIONS, arguments, options, played, refused};
use super::programs::{self, PLAYER};
use super::scheduler::{Program, in_guest, temporary};
use super::tunables;

/// The preemption models of Linux, as its command line has them.
const PREEMPT: &[&str] = &["default", "none", "voluntary", "full", "lazy"];
const DEFAULT: &str = "default";

/// How a guest's clock runs.
const CLOCKS: &[&str] = &["auto", "instructions", "wall"];

/// Where the guest finds the scenario.
const FOLDER: &str = "/scenario";

/// No statistics of memory accesses (30 times a second since 6.17), no sums of counters, no
/// compaction in advance, no writing back.
const QUIET: &str = "damon_stat.enabled=0 sysctl.vm.stat_interval=3600 \
     sysctl.vm.compaction_proactiveness=0 sysctl.vm.dirty_writeback_centisecs=0";

/// QEMU emulates each instruction, so that a second of the guest may take many.
const SLOWEST: u32 = 60;
const LONGEST_BOOT: Duration = Duration::from_secs(120);

/// Guests.
#[derive(Default)]
pub struct Guests {
    /// The kernels that were looked for so far: each once, whether it was found or not.
    kernels: Mutex<BTreeMap<String, Result<Kernel, String>>>,
    boots: Arc<Boots>,
}

impl World for Guests {
    fn kind(&self) -> WorldKind {
        WorldKind::Guest
    }

    fn settings(&self) -> Vec<Setting> {
        let ours = |setting: Setting, what: &str| setting.says(what, "ours");
        vec![
            ours(
                Setting::text("kernel", "6.18"),
                "the newest kernel of a series (6.12, 7.1), downloaded once, or the file of one",
            ),
            Setting::choice("preempt", PREEMPT).says(
                "the kernel's preemption model",
                "preempt= of its command line; which there are depends on the kernel",
            ),
            options(),
            ours(
                Setting::text("tunables", ""),
                "what is written into files of /proc and /sys before the run, as FILE=VALUE, \
                 separated by spaces",
            ),
            ours(
                Setting::choice("clock", CLOCKS),
                "what the guest's time is: a count of instructions, or this machine's clock; auto \
                 counts where there is one CPU",
            ),
            Setting::count("instruction", (1, 1024), 1, "ns").says(
                "how long an instruction takes where they are counted, a power of two",
                "about one instruction a cycle at 1 GHz",
            ),
        ]
    }

    fn takes_scheduler(&self, name: &str) -> Result<(), String> {
        programs::scheduler(name).map(drop)
    }

    /// Counted instructions are the same beside other work.
    fn needs_quiet(&self, plan: &Plan) -> bool {
        let cpus = match plan.machine.settings.get("cpus") {
            Some(Value::Integer(cpus)) => *cpus,
            _ => 2,
        };
        !counts(&plan.world, cpus as usize)
    }

    fn play(
        &self,
        play: &Play<'_>,
        watcher: Option<&mut dyn AnyObserver>,
    ) -> Result<Measured, RunError> {
        self.done(play)?.measured(self.kind(), play, watcher)
    }
}

/// Why there is no guest.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("{0}")]
    Vm(#[from] VmError),
    #[error("{0}")]
    Kernel(String),
    #[error("{0}")]
    Program(String),
    #[error("a file for the guest: {0}")]
    File(#[from] std::io::Error),
}

impl Guests {
    /// Plays to the end, in a guest that is booted for it.
    fn done(&self, request: &Play<'_>) -> Result<Played, RunError> {
        let boot = || {
            let outcome = self.outcome(request);
            outcome.map_err(|why| refused(why.to_string()))
        };
        let mut outcome = boot()?;
        let broke_down = has_broken_down(&outcome).then(|| last_words(&outcome.console));
        if broke_down.is_some() {
            outcome = boot()?;
        }
        let said = String::from_utf8_lossy(&outcome.stderr);
        let played = played(outcome.status(), &outcome.stdout, &said).map_err(|mut error| {
            if !outcome.success() && outcome.stderr.is_empty() {
                error.what = format!(
                    "the guest ended: {:?}; {}",
                    outcome.ending,
                    last_words(&outcome.console)
                );
            }
            error
        })?;
        let mut played = played;
        if let Some(why) = broke_down {
            let note = format!("The guest broke down and was booted once more: {why}");
            played.notes.push(note);
        }
        // Where instructions are counted the clock does not run meanwhile.
        if self.needs_quiet(request.plan) {
            let ran = outcome
                .total
                .saturating_sub(outcome.boot.unwrap_or_default());
            let delay = outcome.cpu_delay.unwrap_or_default();
            played.delay_per_second = delay.as_secs_f64() / ran.as_secs_f64().max(1e-3);
        }
        let wanted = text(&request.plan.world, "preempt");
        match played.header.preemption.as_str() {
            has if wanted == DEFAULT || has.is_empty() || has == wanted => {}
            has => {
                let kernel = &played.header.kernel;
                let what =
                    format!("the kernel {kernel} has no preempt={wanted}; it runs with {has}");
                return Err(refused(what));
            }
        }
        Ok(noted(played, request))
    }

    fn outcome(&self, request: &Play<'_>) -> Result<warmq_vm::Outcome, Refusal> {
        let plan = request.plan;
        let player = programs::ours(PLAYER).map_err(Refusal::Program)?;
        let kernel = self.kernel(text(&plan.world, "kernel"))?;
        let series =
            Release::at_start_of(&kernel.release).map(|release| release.series().to_string());
        let series = series.unwrap_or_default();
        let scheduler = Program::of(request, &plan.scheduler.name, &series)?;
        let (named, written) = request.text();
        let ending = Path::new(named).extension().unwrap_or_default();
        let scenario = format!("{FOLDER}.{}", ending.to_string_lossy());
        let file = temporary(written.as_bytes(), 0o600)?;

        let simulated = plan.warmup + plan.time;
        let longest = Duration::from_nanos(simulated.as_ns()) * SLOWEST;
        let mut guest = Guest::new(kernel)
            .hardware(hardware(request))
            .boots(&self.boots)
            .timeout(LONGEST_BOOT + longest)
            // The kernel tests its ciphers in the first seconds, beside what is measured.
            .append("cryptomgr.notests=1")
            // What else it does now and then takes the CPU from tasks that are compared switch by
            // switch.
            .append(QUIET)
            .file_at(file.path(), scenario.as_str())
            .file_at(&player, "/bin/warmq-player");
        let preempt = text(&plan.world, "preempt");
        if preempt != DEFAULT {
            guest = guest.append(format!("preempt={preempt}"));
        }
        let mut command = vec!["/bin/warmq-player".to_owned()];
        command.extend(arguments(plan, &scenario));
        if let Some(program) = &scheduler {
            let name = in_guest(&program.file);
            let options = text(&plan.world, OPTIONS);
            program.takes(options)?;
            guest = program.give(guest, &name)?;
            command.extend(["--load".to_owned(), name]);
            command.push(format!("--options={options}"));
            command.push(format!("--counters={}", request.counters()));
        }
        let others = changed_to(request).into_iter();
        let others = others.map(|name| Program::of(request, &name, &series).map(|one| (name, one)));
        let others: Vec<(String, Option<Program>)> = others.collect::<Result<_, _>>()?;
        for (name, program) in &others {
            let is_new = |program: &&Program| !command.contains(&in_guest(&program.file));
            if let Some(program) = program.as_ref().filter(is_new) {
                guest = program.give(guest, &format!("/bin/{name}"))?;
            }
        }
        let tunables = text(&plan.world, "tunables");
        Ok(guest.run(tunables::set_before(command, tunables).map_err(Refusal::Program)?)?)
    }

    fn kernel(&self, named: &str) -> Result<Kernel, Refusal> {
        let mut known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(named.to_owned());
        let found = found.or_insert_with(|| kernel(named).map_err(|error| not_found(named, error)));
        found.clone().map_err(Refusal::Kernel)
    }
}

/// The kernel of a series, or that in a file.
fn kernel(named: &str) -> Result<Kernel, VmError> {
    if named.contains('/') {
        return Kernel::from_file(Path::new(named), None);
    }
    let mut reporter = Reporter::default();
    Cache::usual()?.kernel(named, None, &mut |step| reporter.report(&step))
}

/// Why there is no kernel `named`. What was typed was `--kernel`, whatever the option of `warmq vm`
/// is called.
fn not_found(named: &str, error: VmError) -> String {
    match error {
        VmError::Setting { problem, help, .. } => format!("--kernel {named}: {problem}; {help}"),
        other => other.to_string(),
    }
}

/// The schedulers that the scenario's changes load, each once.
fn changed_to(request: &Play<'_>) -> BTreeSet<String> {
    let scenario = request.workload.scenario().into_iter();
    let sets = scenario.flat_map(Scenario::sets);
    sets.filter_map(|set| match set {
        Set::Scheduler(SchedulerChoice::Loaded { name, .. }) => Some(name.clone()),
        _ => None,
    })
    .collect()
}

/// The machine's CPUs and last-level caches.
fn hardware(request: &Play<'_>) -> Hardware {
    let cpus = request.machine.cpus.len();
    let world = &request.plan.world;
    let ns = match world.settings.get("instruction") {
        Some(Value::Integer(ns)) => *ns as u32,
        _ => 1,
    };
    Hardware {
        cpus: cpus as u32,
        llcs: last_level_caches(request.machine),
        threads_per_core: threads_per_core(request.machine),
        memory_mib: memory_mib(request),
        instructions: counts(world, cpus).then_some(ns),
    }
}

/// Linux lets one user have a thread for each 256 KiB of memory (fork_init() and
/// user_struct::nproc: half of what fits into an eighth, at 16 KiB a stack).
const TASK_KIB: u64 = 256;

/// Enough for the tasks that the scenario begins with.
fn memory_mib(request: &Play<'_>) -> u32 {
    let usual = Hardware::default().memory_mib;
    let more = (tasks(request).unwrap_or(0) * TASK_KIB / 1024) as u32;
    match more > usual / 2 {
        true => usual + more,
        false => usual,
    }
}

/// How many tasks the scenario begins with; none where it cannot be bound, which whoever plays it
/// will say.
fn tasks(request: &Play<'_>) -> Option<u64> {
    let scenario = request.workload.scenario()?;
    let given = request.plan.workload.settings.clone();
    let chosen = Chosen::new(scenario.settings(), given).ok()?;
    let bound = scenario.bind(&chosen, &Site::default()).ok()?;
    let tables = 0..scenario.tasks().len() as u32;
    Some(tables.map(|table| bound.tasks(TaskKindId(table))).sum())
}

fn last_level_caches(machine: &MachineDescription) -> u32 {
    let llcs: BTreeSet<_> = machine.cpus.iter().map(|cpu| cpu.llc).collect();
    llcs.len().max(1) as u32
}

/// Those of its first core; 1 where the cores differ.
fn threads_per_core(machine: &MachineDescription) -> u32 {
    let threads = |core| machine.cpus.iter().filter(|cpu| cpu.core == core).count();
    let mut all = machine.cpus.iter().map(|cpu| threads(cpu.core));
    let first = all.next().unwrap_or(1);
    match all.all(|other| other == first) {
        true => first as u32,
        false => 1,
    }
}

/// Whether the guest's time is a count of its instructions.
fn counts(world: &Configured, cpus: usize) -> bool {
    match text(world, "clock") {
        "instructions" => true,
        "wall" => false,
        _ => cpus == 1,
    }
}

fn text<'p>(world: &'p Configured, setting: &str) -> &'p str {
    match world.settings.get(setting) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// What a reader must know about the times of such a guest.
fn noted(mut played: Played, request: &Play<'_>) -> Played {
    let cpus = request.machine.cpus.len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let counted = counts(&request.plan.world, cpus);
    if counted {
        "instructions".clone_into(&mut played.header.clock);
        let mut parameters = played.parameters.iter_mut();
        if let Some(clock) = parameters.find(|parameter| parameter.name == "guest.clock") {
            "instructions".clone_into(&mut clock.value);
        }
    }
    match (counted, cpus) {
        (true, 2..) => played.notes.push(format!(
            "In the guest, {cpus} CPUs take turns of up to 100 ms, since its instructions are counted: \
             nothing that happens between CPUs may be judged by its times."
        )),
        (false, cpus) if cpus > cores => played.notes.push(format!(
            "The guest has {cpus} CPUs and this machine {cores}: who runs where is right, when is not."
        )),
        _ => {}
    }
    played
}

/// Emulators have faults, too: some guest in forty breaks down for no reason of its own.
fn has_broken_down(outcome: &warmq_vm::Outcome) -> bool {
    matches!(outcome.ending, Ending::Panicked | Ending::SwitchedOff)
}

/// What a guest's console says of its end: the first fault of the kernel and where it was, and the
/// last line.
fn last_words(console: &str) -> String {
    const FAULTS: &[&str] = &["BUG: ", "Oops: ", "kernel BUG at", "general protection"];
    let starting = |marks: &[&str]| {
        let marked = |line: &&str| marks.iter().any(|mark| line.contains(mark));
        console.lines().find(marked)
    };
    let said = [
        starting(FAULTS),
        starting(&["RIP: "]),
        console.lines().last(),
    ];
    let said: Vec<&str> = said.into_iter().flatten().map(str::trim).collect();
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn a_panic_is_reported_by_its_first_fault() {
        let console = "booting\n[ 4.1] BUG: kernel NULL pointer dereference, address: 0\n\
                       [ 4.2] RIP: 0010:pick_task_scx+0x12/0x80\n[ 4.3] RIP: 0010:other\n\
                       [ 4.4] Kernel panic - not syncing: Fatal exception";
        let expected = "[ 4.1] BUG: kernel NULL pointer dereference, address: 0; \
                        [ 4.2] RIP: 0010:pick_task_scx+0x12/0x80; \
                        [ 4.4] Kernel panic - not syncing: Fatal exception";
        assert_eq!(last_words(console), expected);
        assert_eq!(last_words("one\ntwo"), "two");
        assert_eq!(last_words(""), "");
    }
}
