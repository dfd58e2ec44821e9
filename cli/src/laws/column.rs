//! The columns of the matrix: who is held to the laws, and where.

use std::fmt;

use clap::Args;
use warmq_experiment::LAB;
use warmq_scenario::World;

/// The lab's scheduler that real worlds have, too.
const OF_LAB: &str = "scx_warmq";
const OF_KERNEL: &str = "kernel";
const KERNEL: &str = "6.18";

/// Who is held to the laws. Lists are combined.
#[derive(Args, Clone, Debug, Default)]
pub struct Columns {
    /// Where: lab, guest (a real kernel in QEMU), host (this machine) [default: lab].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub world: Vec<String>,
    /// Schedulers: `kernel`, scx_warmq, or a sched_ext scheduler's program [default: scx_warmq in the
    /// lab, the kernel's own elsewhere].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scheduler: Vec<String>,
    /// Kernels of guests: series (6.12, 7.1) or files [default: 6.18].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Preemption models of guests: none, voluntary, full, lazy [default: the kernel's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub preempt: Vec<String>,
}

/// A scheduler in a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The world.
    pub world: World,
    /// Its kernel; of guests only.
    pub kernel: Option<String>,
    /// Its preemption model; of guests only, where one was asked for.
    pub preempt: Option<String>,
    /// The scheduler.
    pub scheduler: String,
}

impl Columns {
    /// Every column, world by world; an error names a world that there is not.
    ///
    /// # Errors
    /// That.
    pub fn all(&self) -> Result<Vec<Column>, String> {
        let worlds = or(&self.world, LAB);
        let mut columns = Vec::new();
        for name in &worlds {
            let known = World::ALL.into_iter().find(|world| world.name() == name);
            let world = known.ok_or_else(|| format!("no world is called {name}"))?;
            let usual = if world == World::Lab {
                OF_LAB
            } else {
                OF_KERNEL
            };
            let schedulers = or(&self.scheduler, usual);
            for kernel in self.kernels(world) {
                for preempt in self.models(world) {
                    columns.extend(schedulers.iter().map(|scheduler| Column {
                        world,
                        kernel: kernel.clone(),
                        preempt: preempt.clone(),
                        scheduler: scheduler.clone(),
                    }));
                }
            }
        }
        Ok(columns)
    }

    /// The options as they would be typed again.
    pub fn typed(&self) -> String {
        let lists = [
            ("world", &self.world),
            ("scheduler", &self.scheduler),
            ("kernel", &self.kernel),
            ("preempt", &self.preempt),
        ];
        let given = lists.into_iter().filter(|(_, list)| !list.is_empty());
        given
            .map(|(name, list)| format!(" --{name} {}", list.join(",")))
            .collect()
    }

    fn kernels(&self, world: World) -> Vec<Option<String>> {
        match world {
            World::Guest => or(&self.kernel, KERNEL).into_iter().map(Some).collect(),
            World::Lab | World::Host => vec![None],
        }
    }

    fn models(&self, world: World) -> Vec<Option<String>> {
        match (world, self.preempt.as_slice()) {
            (World::Guest, [_, ..]) => self.preempt.iter().cloned().map(Some).collect(),
            _ => vec![None],
        }
    }
}

fn or(list: &[String], usual: &str) -> Vec<String> {
    match list {
        [] => vec![usual.to_owned()],
        list => list.to_vec(),
    }
}

impl fmt::Display for Column {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheduler = self.scheduler.rsplit('/').next().unwrap_or_default();
        match &self.kernel {
            Some(kernel) => write!(
                formatter,
                "{} {scheduler}",
                kernel.rsplit('/').next().unwrap_or_default()
            )?,
            None => write!(formatter, "{} {scheduler}", self.world.name())?,
        }
        match &self.preempt {
            Some(preempt) => write!(formatter, ", {preempt}"),
            None => Ok(()),
        }
    }
}

impl Column {
    /// The options that choose this column alone.
    pub fn typed(&self) -> String {
        let mut typed = format!(
            " --world {} --scheduler {}",
            self.world.name(),
            self.scheduler
        );
        for (option, value) in [("kernel", &self.kernel), ("preempt", &self.preempt)] {
            if let Some(value) = value {
                typed.push_str(&format!(" --{option} {value}"));
            }
        }
        typed
    }
}
