//! Fibers on plain and on colored stacks, measured here and predicted.

mod table;

use serde::Serialize;
use warmq_machine::MachineDescription;
use warmq_units::{Bytes, CpuId};
use warmq_walk::{FiberRow, FiberSettings, LatencyReport, Translation, measure_fibers};

use crate::failure::Failure;
use crate::progress::Watch;
use crate::{machines, output, walk};

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
///     hidden = few + missed / overlap + translation      waiting = few + max(missed, translation)
///
///     few     := a switch of fibers whose lines are all in level 1, measured
///     missed  := time of a stack's hot lines that level 1 has not, one after the other, on
///                simulated caches whose level 2 hashes its index
///     overlap := misses of a CPU that overlap
/// ```
///
/// Nothing in a switch needs what the one before has loaded, so that a processor runs ahead and
/// hides misses. But a load from the place of a page to which the switch before has stored, in
/// another page, may have to wait for that store (docs/coloring.md).
#[derive(Serialize)]
struct Predicted {
    /// ns a switch: where no load waits for a store, and where those at the place of the switch
    /// before do.
    ns: [f64; 2],
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
    pub fn json_lines(&self) -> Result<String, Failure> {
        output::lines_of(&self.rows)
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
        let simulated = visits.by_lot(machine, CPU);
        let missed_ns = simulated.as_ref().map_or(0.0, |visits| visits.missed_ns);
        let translation = translation.map_or(0.0, |cost| cost.ns(visits.pages()));
        let hidden = missed_ns / machine.miss_overlap.max(1) as f64 + translation;
        let waiting = missed_ns.max(translation).max(hidden);
        let share = visits.at_the_same_place();
        let missed = simulated.as_ref().and_then(|visits| visits.missed.get(&1));
        Predicted {
            missed: missed.copied().unwrap_or(0.0),
            ns: [hidden, hidden + share * (waiting - hidden)].map(|more| row.few_ns + more),
        }
    }
}
