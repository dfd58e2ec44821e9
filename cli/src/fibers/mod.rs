//! Fibers on plain and on colored stacks, measured here and predicted.

mod table;

use serde::Serialize;
use warmq_machine::MachineDescription;
use warmq_report::Versioned;
use warmq_units::{Bytes, CpuId};
use warmq_walk::{FiberRow, FiberSettings, LatencyReport, Translation, measure_fibers};

use crate::failure::Failure;
use crate::progress::Watch;
use crate::{machines, walk};

pub use table::text;

/// Whose caches are described: CPU 0's, as the library `warmq-color` takes them.
const CPU: CpuId = CpuId(0);

/// The distance of pages at which the cost of translation is measured: so many of them are
/// measured as fibers are of interest, and few share a line of page tables.
const STRIDE: Bytes = Bytes(16 << 10);

/// Fibers that were measured, and the caches that they were predicted on.
pub struct Fibers {
    latencies: LatencyReport,
    rows: Vec<Row>,
}

/// What so many fibers took, and what was predicted.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    measured: FiberRow,
    plain: Predicted,
    colored: Predicted,
}

/// A switch on simulated caches.
///
/// ```text
///     switch = few + visit - level 1 + translation
///
///     few   := a switch of fibers whose lines are all in level 1, measured
///     visit := the hot lines of a stack on simulated caches, of which only the first is waited for
/// ```
#[derive(Serialize)]
struct Predicted {
    /// ns a switch; two where sets are not known, with the best and with the worst placement.
    ns: Vec<f64>,
    /// The share of hot lines that level 1 does not have.
    missed: f64,
}

impl Fibers {
    /// Measures the latencies of caches and then the fibers, and predicts these.
    ///
    /// # Errors
    /// Settings that make no sense; what the operating system refuses.
    pub fn measure(settings: &FiberSettings) -> Result<Fibers, Failure> {
        settings.check()?;
        let mut machine = machines::host()?;
        let latencies = walk::measured_caches(&mut machine, STRIDE)?;
        let measured = measured(settings)?;
        // Huge pages may be mapped in small ones by a hypervisor or not: nobody says.
        let translation = (!settings.huge_pages).then_some(&latencies.translation);
        let rows = measured.into_iter().map(|row| {
            let [plain, colored] =
                [0, 1].map(|which| Predicted::of(&row, which, &machine, translation));
            Row {
                measured: row,
                plain,
                colored,
            }
        });
        Ok(Fibers {
            rows: rows.collect(),
            latencies,
        })
    }

    /// All rows, an object a line, without an end of line after the last.
    pub fn json_lines(&self) -> String {
        let text =
            |row| serde_json::to_string(&Versioned::of(row)).expect("plain data becomes JSON");
        self.rows
            .iter()
            .map(text)
            .collect::<Vec<String>>()
            .join("\n")
    }
}

fn measured(settings: &FiberSettings) -> Result<Vec<FiberRow>, Failure> {
    let cases = settings.stacks.len() * settings.fibers.len();
    let watch = Watch::over("rounds of fibers", cases * settings.rounds as usize);
    let mut see = |done, total| watch.see(done as usize, total as usize, "");
    Ok(measure_fibers(settings, &mut see)?)
}

impl Predicted {
    /// Of the plain (0) or colored (1) fibers of `row`.
    fn of(
        row: &FiberRow,
        which: usize,
        machine: &MachineDescription,
        translation: Option<&Translation>,
    ) -> Predicted {
        let visits = &row.visits[which];
        let simulated = visits.simulate(machine, CPU);
        let translation = translation.map_or(0.0, |cost| cost.ns(visits.pages()));
        let nearest = machine.caches.iter().find(|cache| cache.level == 1);
        let nearest = nearest.map_or(0.0, |cache| {
            machine.clock.time_of(cache.latency).0 as f64 / 1000.0
        });
        let switch = |visit: f64| row.few_ns + (visit - nearest).max(0.0) + translation;
        let missed = simulated.first().and_then(|visits| visits.missed.get(&1));
        Predicted {
            missed: missed.copied().unwrap_or(0.0),
            ns: simulated
                .iter()
                .map(|visits| switch(visits.ns_per_visit))
                .collect(),
        }
    }
}
