//! Every parameter of a run, with its unit and source.

use warmq_config::{Chosen, Kind};
use warmq_kernel::Settings;
use warmq_machine::{Fragmentation, MachineDescription};

use super::CostTable;
use crate::simulator::Parameter;

/// The parts that a run was made of.
pub(super) struct Parts<'a> {
    pub(super) machine: &'a MachineDescription,
    pub(super) costs: &'a CostTable,
    pub(super) settings: &'a Settings,
    /// The kernel whose timers `settings` has.
    pub(super) timers_of: &'static str,
    pub(super) scheduler: &'a Chosen,
    pub(super) workload: &'a Chosen,
}

const KERNEL: &str = "Linux 2.4 on x86";

fn parameter(name: impl Into<String>, value: String, unit: &str, source: &str) -> Parameter {
    Parameter {
        name: name.into(),
        value,
        unit: unit.to_owned(),
        source: source.to_owned(),
    }
}

impl Parts<'_> {
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        let mut parameters = self.of_machine();
        parameters.extend(self.of_caches());
        parameters.extend(self.of_coherence());
        parameters.extend(self.of_kernel());
        parameters.extend(self.costs.iter().map(|(name, cost)| {
            parameter(
                format!("cost.{name}"),
                cost.cycles.0.to_string(),
                "cycles",
                &cost.source,
            )
        }));
        for (part, chosen) in [("scheduler", self.scheduler), ("workload", self.workload)] {
            parameters.extend(chosen.in_force().map(|(setting, value)| {
                let unit = match setting.kind {
                    Kind::Integer { .. } | Kind::PowerOfTwo { .. } => setting.unit.as_str(),
                    _ => "",
                };
                let name = format!("{part}.{}", setting.name);
                parameter(name, value.to_string(), unit, &setting.source)
            }));
        }
        parameters
    }

    /// The source of the most specific key that the machine gives one for.
    fn source(&self, group: &str, key: &str) -> String {
        let sources = &self.machine.sources;
        let fine = sources.get(&format!("{group}.{key}"));
        fine.or_else(|| sources.get(group))
            .cloned()
            .unwrap_or_else(|| "not given".to_owned())
    }

    fn given(&self, group: &str, key: &str, value: String, unit: &str) -> Parameter {
        parameter(
            format!("machine.{group}.{key}"),
            value,
            unit,
            &self.source(group, key),
        )
    }

    fn of_machine(&self) -> Vec<Parameter> {
        let machine = self.machine;
        let mhz = machine.clock.khz() / 1_000;
        let memory = machine.memory;
        vec![
            self.given("cpu", "clock", mhz.to_string(), "MHz"),
            self.given("cpu", "miss_overlap", machine.miss_overlap.to_string(), ""),
            self.given("topology", "cpus", machine.cpus.len().to_string(), "CPUs"),
            self.given("memory", "size", memory.size.to_string(), ""),
            self.given(
                "memory",
                "latency",
                memory.latency.as_ns().to_string(),
                "ns",
            ),
        ]
    }

    fn of_caches(&self) -> Vec<Parameter> {
        let mut level = 0;
        let mut parameters = Vec::new();
        for cache in self.machine.caches.iter().filter(|cache| {
            let first = cache.level > level;
            level = level.max(cache.level);
            first
        }) {
            let group = format!("cache.l{}", cache.level);
            let shape = format!("{} {}-way, {} lines", cache.size, cache.ways, cache.line);
            parameters.push(self.given(&group, "shape", shape, ""));
            let latency = cache.latency.0.to_string();
            parameters.push(self.given(&group, "latency", latency, "cycles"));
        }
        parameters
    }

    fn of_coherence(&self) -> impl Iterator<Item = Parameter> + '_ {
        let times = self.machine.coherence.times().into_iter();
        times.filter_map(|(key, time)| {
            Some(self.given("coherence", key, time?.as_ns().to_string(), "ns"))
        })
    }

    fn of_kernel(&self) -> Vec<Parameter> {
        let settings = self.settings;
        let (cluster, used) = match settings.fragmentation {
            Fragmentation::Fresh => (0, 0),
            Fragmentation::Worn {
                cluster,
                used_percent,
            } => (cluster, used_percent),
        };
        vec![
            parameter("kernel.tick", settings.tick.to_string(), "", self.timers_of),
            parameter("kernel.block", settings.block.to_string(), "", KERNEL),
            parameter(
                "kernel.spin_locks",
                settings.locks.name().to_owned(),
                "",
                self.timers_of,
            ),
            parameter(
                "kernel.socket_lines",
                settings.socket_lines.to_string(),
                "lines",
                self.timers_of,
            ),
            parameter(
                "memory.page_cluster",
                cluster.to_string(),
                "blocks of 8 KB",
                "coloring paper, note on table 2",
            ),
            parameter("memory.used", used.to_string(), "%", "assumed"),
        ]
    }
}
