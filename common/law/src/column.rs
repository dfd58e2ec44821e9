//! The columns of the matrix: who is held to the laws, and where.

use std::fmt;

use serde::{Deserialize, Serialize};
use warmq_config::Pair;
use warmq_scenario::WorldKind;

use crate::law::Law;

/// The scheduler of a kernel, in any world.
pub const OF_KERNEL: &str = "kernel";
const KERNEL: &str = "6.18";

/// In a comparison guests of so many CPUs are played by the clock.
const CORES: u16 = 2;

/// Who is held to the laws: lists, which are combined.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Worlds; none: the lab.
    pub world: Vec<String>,
    /// Schedulers; none: the kernel's own.
    pub scheduler: Vec<String>,
    /// Kernels of guests and of the lab; none: 6.18.
    pub kernel: Vec<String>,
    /// Preemption models of guests and of the lab; none: the kernel's.
    pub preempt: Vec<String>,
    /// Whether lab and guests are played for a comparison. Those that are both named are.
    pub alike: bool,
}

/// A scheduler in a world.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The world.
    #[serde(with = "by_name")]
    pub world: WorldKind,
    /// Its kernel; of guests, and of the lab beside guests or with the kernel's own scheduler.
    pub kernel: Option<String>,
    /// Its preemption model, where one was asked for; this machine's is as it is.
    pub preempt: Option<String>,
    /// The scheduler, with its settings if it has any, as they were typed.
    pub scheduler: String,
    /// Whether lab and guest are made as like each other as can be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alike: bool,
}

/// A world in a line of JSON.
mod by_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use warmq_scenario::WorldKind;

    pub fn serialize<S: Serializer>(world: &WorldKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(world.name())
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<WorldKind, D::Error> {
        let name = String::deserialize(from)?;
        super::world(&name).map_err(D::Error::custom)
    }
}

fn world(name: &str) -> Result<WorldKind, String> {
    let mut all = WorldKind::ALL.into_iter();
    let known = all.find(|world| world.name() == name);
    known.ok_or_else(|| format!("no world is called {name}"))
}

impl Columns {
    /// Every column, world by world; an error names a world that there is not.
    ///
    /// # Errors
    /// That.
    pub fn all(&self) -> Result<Vec<Column>, String> {
        let worlds = or(&self.world, WorldKind::Lab.name());
        let mut columns = Vec::new();
        for name in &worlds {
            let world = world(name)?;
            let schedulers = or(&self.scheduler, OF_KERNEL);
            for kernel in self.kernels(world) {
                for preempt in self.models(world) {
                    let of_scheduler = |scheduler: &String| Column {
                        world,
                        // Alone the lab's other schedulers are the same whatever the kernel.
                        kernel: kernel.clone().filter(|_| {
                            world == WorldKind::Guest || self.is_alike() || scheduler == OF_KERNEL
                        }),
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
        let has = |world: WorldKind| self.world.iter().any(|name| name == world.name());
        self.alike || has(WorldKind::Lab) && has(WorldKind::Guest)
    }

    fn kernels(&self, world: WorldKind) -> Vec<Option<String>> {
        match world {
            WorldKind::Guest | WorldKind::Lab => {
                or(&self.kernel, KERNEL).into_iter().map(Some).collect()
            }
            WorldKind::Host => vec![None],
        }
    }

    fn models(&self, world: WorldKind) -> Vec<Option<String>> {
        match (world, self.preempt.as_slice()) {
            (WorldKind::Guest | WorldKind::Lab, [_, ..]) => {
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
        if self.world == WorldKind::Lab && self.kernel.is_some() {
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
    /// The scheduler's name. Those of the lab and of guests have settings; a path may have a colon.
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

    /// What chooses this column alone: lists of [`Columns`], with a value each.
    pub fn chosen(&self) -> Vec<(&'static str, &str)> {
        let lists = [
            ("world", Some(self.world.name())),
            ("scheduler", Some(self.scheduler.as_str())),
            ("kernel", self.kernel.as_deref()),
            ("preempt", self.preempt.as_deref()),
        ];
        let given = lists.into_iter();
        given
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }

    /// Whether times of `law` are this machine's, which others may lengthen. What a guest of
    /// several CPUs that counts instructions shows of their times is nothing that the lab could be
    /// compared with.
    pub fn is_by_the_clock(&self, law: &Law) -> bool {
        let counted = law.counted && !(self.alike && law.cpus <= CORES);
        match self.world {
            WorldKind::Lab => false,
            WorldKind::Guest => law.cpus > 1 && !counted,
            WorldKind::Host => true,
        }
    }

    fn split(&self) -> Option<(&str, &str)> {
        let (name, settings) = self.scheduler.split_once(':')?;
        let is_set = match self.world {
            WorldKind::Lab => true,
            WorldKind::Guest => settings.contains('='),
            WorldKind::Host => false,
        };
        is_set.then_some((name, settings))
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
        let chosen = [("world", "lab"), ("scheduler", "broken:fault=lifo;x=1ms")];
        assert_eq!(column.chosen(), chosen);
        assert!(columns("lab", "broken:fault")[0].settings().is_err());
        assert!(columns("lab", "broken")[0].settings().unwrap().is_empty());
    }

    #[test]
    fn an_object_of_a_guest_has_settings_and_a_path_may_have_a_colon() {
        let names = |world, scheduler| columns(world, scheduler)[0].name().to_owned();
        assert_eq!(names("guest", "./a.bpf.o:slice=1"), "./a.bpf.o");
        assert_eq!(names("guest", "/opt/a:b/scx"), "/opt/a:b/scx");
        assert_eq!(names("host", "a:b=c"), "a:b=c");
        let set = columns("guest", "/opt/a:b/scx")[0].settings();
        assert_eq!(set.unwrap().len(), 0);
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
            "lab 6.12 scx_warmq, full",
            "lab 7.2 kernel, full",
            "lab 7.2 scx_warmq, full",
            "6.12 kernel, full",
            "6.12 scx_warmq, full",
            "7.2 kernel, full",
            "7.2 scx_warmq, full",
        ];
        assert_eq!(shown, expected);
    }
}
