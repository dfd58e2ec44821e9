//! Lines of programs, visited in turn: simulated, and measured on copies.

use std::collections::BTreeMap;

use warmq_machine::MachineDescription;
use warmq_units::{Bytes, CpuId, Duration, Seed};

use super::arena::{Arena, SMALL_PAGE};
use super::geometry::Geometry;
use super::layout::list_order;
use super::placement::{Case, Placement};
use super::simulate::{COUNTED, Caches, WARM_UP, is_within};
use super::timing::{self, Stops};
use crate::error::WalkError;
use crate::spread::Spread;
use crate::thread::Pinned;

/// Lines in an order without pattern, at their own places of pages that are numbered anew.
///
/// Invariant: `offsets` are starts of lines of `line` bytes, all below `pages` small pages, and
/// there is at least one; each stop visits the next `lines` of them, of which there is a whole
/// number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visits {
    offsets: Vec<u64>,
    lines: usize,
    line: u64,
    pages: u64,
}

/// Visits of lines on simulated caches.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SimulatedVisits {
    /// Time of a stop in ns, without the translation of its address.
    pub ns_per_visit: f64,
    /// Time of the lines of a stop that level 1 does not have, one after the other, in ns.
    pub missed_ns: f64,
    /// For each level, the share of visited lines that neither it nor a nearer one had, 0 to 1.
    pub missed: BTreeMap<u8, f64>,
}

impl Visits {
    /// Of the lines of `line` bytes that have `addresses`, each once; `None` for no address.
    pub fn of(addresses: &[u64], line: Bytes) -> Option<Visits> {
        let line = line.0.max(1);
        let (mut lines, pages) = numbered_anew(addresses, line);
        lines.sort_unstable();
        lines.dedup();
        let order = list_order(u32::try_from(lines.len()).ok()?, Seed(1));
        let visits = Visits {
            offsets: order.iter().map(|index| lines[*index as usize]).collect(),
            lines: 1,
            line,
            pages,
        };
        (!visits.offsets.is_empty()).then_some(visits)
    }

    /// Of the `hot` lines below each of `tops`, in their order: those of stacks.
    ///
    /// # Panics
    /// When there is no top, or no hot line.
    pub(crate) fn of_stops(tops: &[u64], hot: u64, line: Bytes) -> Visits {
        assert!(!tops.is_empty() && hot > 0);
        let below = |top: &u64| {
            let top = *top;
            (1..=hot).map(move |index| top - index * line.0)
        };
        let addresses: Vec<u64> = tops.iter().flat_map(below).collect();
        let (offsets, pages) = numbered_anew(&addresses, line.0);
        Visits {
            offsets,
            lines: hot as usize,
            line: line.0,
            pages,
        }
    }

    /// The same visits on the simulated caches of CPU `cpu` of `machine`: once where the places in
    /// pages choose the sets of all levels, or else with the best and with the worst placement, in
    /// this order. Nothing for a CPU without caches.
    pub fn simulate(&self, machine: &MachineDescription, cpu: CpuId) -> Vec<SimulatedVisits> {
        self.simulated(machine, cpu, Placement::cases)
    }

    /// The same with sets that are drawn by lot where the place in a page does not choose them.
    pub fn by_lot(&self, machine: &MachineDescription, cpu: CpuId) -> Option<SimulatedVisits> {
        self.simulated(machine, cpu, |_| &[Case::Lot]).pop()
    }

    /// The share of stops that begin at the same place of a page as the one before, 0 to 1.
    pub fn at_the_same_place(&self) -> f64 {
        let stops = self.offsets.chunks(self.lines);
        let places: Vec<u64> = stops.map(|stop| stop[0] % SMALL_PAGE).collect();
        let before = places.iter().cycle().skip(places.len() - 1);
        let same = places
            .iter()
            .zip(before)
            .filter(|(at, before)| at == before);
        same.count() as f64 / places.len() as f64
    }

    fn simulated(
        &self,
        machine: &MachineDescription,
        cpu: CpuId,
        cases: fn(&Placement) -> &'static [Case],
    ) -> Vec<SimulatedVisits> {
        let levels = (1..).map_while(|level| Geometry::at(machine, cpu, level));
        let levels: Vec<Geometry> = levels.collect();
        let by_place = |cache: &&Geometry| cache.way_size() > SMALL_PAGE;
        let Some(colored) = levels.iter().find(by_place).or(levels.last()) else {
            return Vec::new();
        };
        let placement = Placement::without_search(*colored);
        let case = |case: &Case| {
            let lines = self.offsets.iter().copied();
            let caches = Caches::new(machine, cpu, &placement, lines, *case);
            self.counted(caches, &levels, machine.miss_overlap)
        };
        cases(&placement).iter().map(case).collect()
    }

    /// Distinct small pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The lines of a stop but the first wait for nothing but its address; `overlap` of them are
    /// under way at a time.
    fn counted(&self, mut caches: Caches, levels: &[Geometry], overlap: u64) -> SimulatedVisits {
        let (mut total, mut beyond) = (Duration::ZERO, Duration::ZERO);
        let mut missed: BTreeMap<u8, u64> = levels.iter().map(|cache| (cache.level, 0)).collect();
        for round in 0..WARM_UP + COUNTED {
            for stop in self.offsets.chunks(self.lines) {
                let (mut first, mut all) = (None, Duration::ZERO);
                for offset in stop {
                    let (takes, served) = caches.read(*offset);
                    first.get_or_insert(takes);
                    all += takes;
                    if round < WARM_UP {
                        continue;
                    }
                    for (level, missed) in &mut missed {
                        *missed += u64::from(!is_within(served, *level));
                    }
                    if !is_within(served, 1) {
                        beyond += takes;
                    }
                }
                if round >= WARM_UP {
                    total += first.unwrap_or_default().max(all / overlap.max(1));
                }
            }
        }
        let lines = self.offsets.len() as f64 * f64::from(COUNTED);
        let share = |(level, missed): (u8, u64)| (level, missed as f64 / lines);
        let ns_a_stop = |time: Duration| time.0 as f64 / 1000.0 / lines * self.lines as f64;
        SimulatedVisits {
            ns_per_visit: ns_a_stop(total),
            missed_ns: ns_a_stop(beyond),
            missed: missed.into_iter().map(share).collect(),
        }
    }

    fn time(&self, arena: &mut Arena, min_time: Duration) -> f64 {
        let mut ring = arena.link(&self.offsets, self.line.min(8));
        let stops = Stops {
            count: self.offsets.len() as u64,
            lines: 1,
            line: self.line,
        };
        timing::time(&mut ring, stops, min_time.as_ns()).ns_per_step
    }
}

/// The lines of `addresses`, in pages that are numbered anew, and how many pages there are.
fn numbered_anew(addresses: &[u64], line: u64) -> (Vec<u64>, u64) {
    let mut pages: Vec<u64> = addresses.iter().map(|at| at / SMALL_PAGE).collect();
    pages.sort_unstable();
    pages.dedup();
    let anew = |address: &u64| {
        let page = pages.partition_point(|page| *page < address / SMALL_PAGE) as u64;
        page * SMALL_PAGE + address % SMALL_PAGE / line * line
    };
    (addresses.iter().map(anew).collect(), pages.len() as u64)
}

/// Times visits of copies of the lines on this machine, all of `layouts` in turn in each of
/// `repetitions`, for each of which memory is mapped anew in small pages. `cpu` is the CPU, the
/// last one allowed if `None`. The result has the ns a visit of each layout, with the translation
/// of its address.
///
/// # Errors
/// A CPU that this thread may not use, no memory.
pub fn measure_visits(
    layouts: &[Visits],
    cpu: Option<CpuId>,
    repetitions: u32,
    min_time: Duration,
) -> Result<Vec<Spread>, WalkError> {
    let _pinned = Pinned::to(cpu)?;
    let pages = layouts.iter().map(|layout| layout.pages).max().unwrap_or(1);
    let mut times = vec![Vec::new(); layouts.len()];
    for _ in 0..repetitions.max(1) {
        let mut arena = Arena::new(Bytes(pages * SMALL_PAGE), false)?;
        for (layout, times) in layouts.iter().zip(&mut times) {
            times.push(layout.time(&mut arena, min_time));
        }
    }
    Ok(times.iter().filter_map(|times| Spread::of(times)).collect())
}
