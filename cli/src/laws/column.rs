//! The columns of the matrix: who is held to the laws, and where.

use std::fmt;

use clap::Args;
use warmq_config::did_you_mean;
use warmq_experiment::{LAB, Part, Simulator};
use warmq_scenario::World;

use crate::pair::Pair;
use crate::typed;

/// The scheduler of a kernel, in any world.
const OF_KERNEL: &str = "kernel";
const KERNEL: &str = "6.18";

/// The option of a comparison, as it is typed.
const ALIKE: &str = "--alike";

/// Who is held to the laws. Lists are combined.
#[derive(Args, Clone, Debug, Default)]
pub struct Columns {
    /// Where: lab, guest (a real kernel in QEMU), host (this machine) [default: lab].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub world: Vec<String>,
    /// Schedulers: `kernel`, scx_warmq, or a sched_ext scheduler's program; one of the lab with
    /// settings as NAME:KEY=VALUE;KEY=VALUE [default: kernel, whose model in the lab is eevdf].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub scheduler: Vec<String>,
    /// Kernels of guests and of the lab: series (6.12, 7.1), or files of guests [default: 6.18].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub kernel: Vec<String>,
    /// Preemption models of guests and of the lab: none, voluntary, full, lazy [default: the
    /// kernel's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub preempt: Vec<String>,
    /// Play for a comparison, in which lab and guests differ in nothing but what is simulated: the
    /// lab on a machine with the costs of such a guest, guests of several CPUs by the clock where
    /// this machine has the cores. `--world lab,guest` means it.
    #[arg(long)]
    pub alike: bool,
}

/// A scheduler in a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The world.
    pub world: World,
    /// Its kernel; of guests, and of the lab where that has the kernel's own scheduler.
    pub kernel: Option<String>,
    /// Its preemption model, where one was asked for; this machine's is as it is.
    pub preempt: Option<String>,
    /// The scheduler; one of the lab with its settings, as they were typed.
    pub scheduler: String,
    /// Whether lab and guest are made as like each other as can be.
    pub alike: bool,
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
            let schedulers = or(&self.scheduler, OF_KERNEL);
            for kernel in self.kernels(world) {
                for preempt in self.models(world) {
                    let of_scheduler = |scheduler: &String| Column {
                        world,
                        // The lab's other schedulers are the same whatever the kernel.
                        kernel: kernel
                            .clone()
                            .filter(|_| world == World::Guest || scheduler == OF_KERNEL),
                        preempt: preempt.clone(),
                        scheduler: scheduler.clone(),
                        alike: self.is_alike(),
                    };
                    for column in schedulers.iter().map(of_scheduler) {
                        if !columns.contains(&column) {
                            columns.push(column);
                        }
                    }
                }
            }
        }
        Ok(columns)
    }

    /// Whether lab and guests are played for a comparison.
    pub fn is_alike(&self) -> bool {
        let has = |world: World| self.world.iter().any(|name| name == world.name());
        self.alike || has(World::Lab) && has(World::Guest)
    }

    /// The options as they would be typed again.
    pub fn typed(&self) -> Vec<String> {
        let lists = [
            ("world", &self.world),
            ("scheduler", &self.scheduler),
            ("kernel", &self.kernel),
            ("preempt", &self.preempt),
        ];
        let lists = lists.into_iter();
        let given = lists.flat_map(|(name, list)| typed::list(name, list));
        given.chain(self.alike.then(|| ALIKE.to_owned())).collect()
    }

    fn kernels(&self, world: World) -> Vec<Option<String>> {
        match world {
            World::Guest | World::Lab => or(&self.kernel, KERNEL).into_iter().map(Some).collect(),
            World::Host => vec![None],
        }
    }

    fn models(&self, world: World) -> Vec<Option<String>> {
        match (world, self.preempt.as_slice()) {
            (World::Guest | World::Lab, [_, ..]) => {
                self.preempt.iter().cloned().map(Some).collect()
            }
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
        if self.world == World::Lab && self.kernel.is_some() {
            write!(formatter, "lab ")?;
        }
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
    /// The scheduler's name. Only the lab's have settings: elsewhere a path may have a colon.
    pub fn name(&self) -> &str {
        match self.split() {
            Some((name, _)) => name,
            None => &self.scheduler,
        }
    }

    /// What is set on the scheduler.
    ///
    /// # Errors
    /// A part that is no `key=value`.
    pub fn settings(&self) -> Result<Vec<Pair>, String> {
        let Some((name, settings)) = self.split() else {
            return Ok(Vec::new());
        };
        let pairs = settings.split(';').map(|pair| {
            pair.parse().map_err(|_| {
                format!("`{pair}` of {name} sets nothing: write {name}:KEY=VALUE;KEY=VALUE")
            })
        });
        pairs.collect()
    }

    /// Whether `simulator` has the scheduler in this world, and the scheduler the settings.
    ///
    /// # Errors
    /// What is wrong, and what could be meant.
    pub fn check(&self, simulator: &dyn Simulator) -> Result<(), (String, String)> {
        let plain = |what: String| (what, String::new());
        let name = self.name();
        simulator
            .takes(self.world.name(), Part::Scheduler, name)
            .map_err(plain)?;
        let pairs = self.settings().map_err(plain)?;
        if pairs.is_empty() {
            return Ok(());
        }
        let known = simulator.settings(Part::Scheduler, name);
        let known = known.map_err(|why| plain(why.to_string()))?;
        for Pair { key, .. } in &pairs {
            if !known.iter().any(|setting| setting.name == *key) {
                let help = did_you_mean(key, known.iter().map(|setting| setting.name.as_str()));
                return Err((format!("{name} has no setting `{key}`"), help));
            }
        }
        Ok(())
    }

    fn split(&self) -> Option<(&str, &str)> {
        let of_lab = self.world == World::Lab;
        of_lab.then(|| self.scheduler.split_once(':')).flatten()
    }

    /// The options that choose this column alone.
    pub fn typed(&self) -> Vec<String> {
        let options = [
            ("world", Some(self.world.name())),
            ("scheduler", Some(self.scheduler.as_str())),
            ("kernel", self.kernel.as_deref()),
            ("preempt", self.preempt.as_deref()),
        ];
        let options = options.into_iter();
        let given = options.filter_map(|(name, value)| Some(typed::option(name, value?)));
        let alike = self.alike.then(|| ALIKE.to_owned());
        given.flatten().chain(alike).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(world: &str, scheduler: &str) -> Vec<Column> {
        let columns = Columns {
            world: vec![world.to_owned()],
            scheduler: vec![scheduler.to_owned()],
            ..Columns::default()
        };
        columns.all().unwrap()
    }

    #[test]
    fn a_scheduler_of_the_lab_is_named_with_its_settings() {
        let column = &columns("lab", "broken:fault=lifo;x=1ms")[0];
        let pairs: Vec<String> = column
            .settings()
            .unwrap()
            .iter()
            .map(Pair::to_string)
            .collect();
        assert_eq!(column.name(), "broken");
        assert_eq!(pairs, ["fault=lifo", "x=1ms"]);
        let typed = ["--world", "lab", "--scheduler", "broken:fault=lifo;x=1ms"];
        assert_eq!(column.typed(), typed);
        assert!(columns("lab", "broken:fault")[0].settings().is_err());
        assert!(columns("lab", "broken")[0].settings().unwrap().is_empty());
    }

    #[test]
    fn lab_and_guest_have_the_kernels_side_by_side() {
        let columns = Columns {
            world: vec!["lab".into(), "guest".into()],
            scheduler: vec!["kernel".into(), "scx_warmq".into()],
            kernel: vec!["6.12".into(), "7.2".into()],
            preempt: vec!["full".into()],
            alike: false,
        };
        let shown = columns.all().unwrap();
        assert!(shown.iter().all(|column| column.alike));
        let shown: Vec<String> = shown.iter().map(Column::to_string).collect();
        let expected = [
            "lab 6.12 kernel, full",
            "lab scx_warmq, full",
            "lab 7.2 kernel, full",
            "6.12 kernel, full",
            "6.12 scx_warmq, full",
            "7.2 kernel, full",
            "7.2 scx_warmq, full",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn elsewhere_a_colon_is_part_of_a_path() {
        let column = &columns("guest", "./a:b=c")[0];
        assert_eq!(
            (column.name(), column.settings().unwrap().len()),
            ("./a:b=c", 0)
        );
    }
}
