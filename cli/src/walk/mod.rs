//! The real walk and its simulated twin, side by side.

mod json;
mod section;
mod table;

use std::path::Path;

use warmq_host::Latencies;
use warmq_machine::MachineDescription;
use warmq_units::{Bytes, CpuId};
use warmq_walk::{
    Geometry, Known, LatencyReport, Progress, SimulatedWalk, WalkReport, WalkRow, WalkSettings,
    measure, measure_latencies, simulate_walk,
};

use crate::failure::Failure;
use crate::machines;
use crate::progress::Watch;

pub use json::json_lines;
pub use section::section;
pub use table::{on_what, table};

/// Who says how long this machine's caches take.
const MEASURED: &str = "measured here: chains of pointers through buffers of each level's size";

/// The simulated twin of a measured row.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    /// With the sets that were found; with the best possible placement where they are unknown.
    pub least: SimulatedWalk,
    /// With the worst possible placement; the same as `least` where the sets are known.
    pub most: SimulatedWalk,
}

impl Twin {
    /// The least and the most that simulated over measured can be.
    pub fn ratios(&self, row: &WalkRow) -> (f64, f64) {
        let over = |twin: SimulatedWalk| twin.ns_per_visit / row.ns_per_visit.median;
        (over(self.least), over(self.most))
    }
}

/// A walk that was measured, and simulated on a description of the same machine.
pub struct Walk {
    /// The latencies and how they were found: the simulated walk's input.
    pub latencies: LatencyReport,
    /// The same after the walk, when other programs may have let go of the caches or taken them.
    pub latencies_after: LatencyReport,
    /// What was measured.
    pub report: WalkReport,
    /// What was simulated, a row each.
    pub simulated: Vec<Twin>,
}

impl Walk {
    /// Measures latencies and the walk, then simulates the walk, with progress shown.
    ///
    /// # Errors
    /// Settings that make no sense; what the operating system refuses.
    pub fn measure(settings: &WalkSettings) -> Result<Walk, Failure> {
        let mut machine = machines::host()?;
        if let Some(cache) = Geometry::to_color(&machine, CpuId(0)) {
            // What cannot be meant is refused before anything that takes time.
            settings.check(cache)?;
        }
        let latencies = latencies_of(&machine, settings)?;
        let measured = latencies.for_machine(&machine);
        set_latencies(&mut machine, &measured)?;
        let cpu = described(CpuId(latencies.cpu))?;
        let cache = Geometry::to_color(&machine, cpu).ok_or_else(|| {
            Failure::usage(
                format!("CPU {} has no cache", latencies.cpu),
                "choose another --cpu",
            )
        })?;
        let report = walked(settings, cache, &latencies)?;
        let latencies_after = latencies_of(&machine, settings)?;
        let simulated = simulated(&machine, cpu, &report, &latencies);
        Ok(Walk {
            latencies,
            latencies_after,
            report,
            simulated,
        })
    }

    /// Every measured row with its simulated twin.
    pub fn rows(&self) -> impl Iterator<Item = (&WalkRow, &Twin)> {
        self.report.rows.iter().zip(&self.simulated)
    }

    /// Whether it is known which lines share a set.
    pub fn sets_known(&self) -> bool {
        self.report.facts.sets.by != Known::Unknown
    }
}

/// The number that the description gives the CPU that the system calls `cpu`.
fn described(cpu: CpuId) -> Result<CpuId, Failure> {
    let online = warmq_host::online(Path::new("/"))?;
    let place = online.iter().position(|other| *other == cpu);
    Ok(place.map_or(cpu, |place| CpuId(place as u16)))
}

/// Measures the latencies of the caches of `machine`, which is this one, and sets them.
///
/// # Errors
/// What the operating system refuses.
pub fn measured_caches(
    machine: &mut MachineDescription,
    stride: Bytes,
) -> Result<LatencyReport, Failure> {
    let watch = Watch::until_done("measuring the latencies of this machine's caches");
    let report = measure_latencies(machine, None, stride)?;
    drop(watch);
    set_latencies(machine, &report.for_machine(machine))?;
    Ok(report)
}

fn set_latencies(machine: &mut MachineDescription, latencies: &Latencies) -> Result<(), Failure> {
    warmq_host::set_latencies(machine, latencies, MEASURED)
        .map_err(|flaw| Failure::System("use the latencies".to_owned(), flaw.to_string()))
}

fn latencies_of(
    machine: &MachineDescription,
    settings: &WalkSettings,
) -> Result<LatencyReport, Failure> {
    let _watch = Watch::until_done("measuring the latencies of this machine's caches");
    Ok(measure_latencies(
        machine,
        settings.cpu,
        settings.block_size,
    )?)
}

fn walked(
    settings: &WalkSettings,
    cache: Geometry,
    latencies: &LatencyReport,
) -> Result<WalkReport, Failure> {
    let searching = Watch::over("thousandths of the search for the cache's sets", 1000);
    let count = settings.repetitions as usize * settings.blocks.len() * settings.colors.len();
    let mut walking = None;
    Ok(measure(
        settings,
        cache,
        latencies,
        &mut |progress| match progress {
            Progress::Searching(done) => searching.see(done as usize, 1000, ""),
            Progress::Walking { done, total } => walking
                .get_or_insert_with(|| Watch::over("measurements of the walk", count))
                .see(done as usize, total as usize, ""),
        },
    )?)
}

fn simulated(
    machine: &MachineDescription,
    cpu: CpuId,
    report: &WalkReport,
    latencies: &LatencyReport,
) -> Vec<Twin> {
    let watch = Watch::over("simulated walks", report.rows.len());
    let translation = Some(&latencies.translation);
    let twin = |(index, row): (usize, &WalkRow)| {
        let (facts, placement) = (&report.facts, &report.placement);
        let walks = simulate_walk(machine, cpu, facts, placement, row, translation);
        watch.see(index + 1, report.rows.len(), "");
        Twin {
            least: walks[0],
            most: walks[walks.len() - 1],
        }
    };
    report.rows.iter().enumerate().map(twin).collect()
}
