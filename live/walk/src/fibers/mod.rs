//! Fibers that yield in turn, on plain and on colored stacks: ns a switch.
//!
//! ```text
//!     round 1: map stacks, plain colored colored plain ...    round 2: map others, colored plain ...
//! ```
//!
//! Key decision: plain and colored fibers run on the same stacks, one after the other, and only
//! their tops differ. Which physical pages a stack has may change a switch by more than its color
//! does (where a hypervisor maps small pages, where a hash puts lines); and a kernel that gives a
//! program the pages that it gave back last makes every round of one kind run on the same ones.

mod ring;
mod settings;

use std::time;

use warmq_color::coloring::Coloring;
use warmq_color::{Options, Pool, Stack};
use warmq_units::{Bytes, Seed};

use crate::error::WalkError;
use crate::layout::list_order;
use crate::spread::Spread;
use crate::thread::Pinned;
use crate::visits::Visits;
use ring::Ring;
pub use settings::FiberSettings;

/// How often plain and colored fibers take turns on the same stacks.
const TURNS: u32 = 4;

/// Bytes of a line, by which the stacks are colored.
const LINE: u64 = 64;

/// So few fibers that level 1 has all their lines, whatever its ways.
const FEW: u32 = 2;

/// What so many fibers on stacks of one size took.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct FiberRow {
    /// The size of a stack in bytes.
    #[serde(serialize_with = "crate::result::bytes")]
    pub stack: Bytes,
    /// How many fibers run in turn.
    pub fibers: u32,
    /// The colors of the colored stacks.
    pub colors: u64,
    /// Whether huge pages were asked for.
    pub huge_pages: bool,
    /// ns a switch into a fiber and out of it, plain.
    pub plain_ns: Spread,
    /// The same with colors.
    pub colored_ns: Spread,
    /// Plain over colored, of each round: above 1, colors gain.
    pub ratio: Spread,
    /// ns a switch of fibers that are so few that level 1 has all their lines.
    pub few_ns: f64,
    /// The hot lines, plain and colored, as they are visited.
    #[serde(skip)]
    pub visits: [Visits; 2],
}

/// Measures each size of stacks with each number of fibers and of colors. `progress` is called
/// after each round, with the rounds done and all that there are.
///
/// # Errors
/// Settings that make no sense; what the operating system refuses.
pub fn measure_fibers(
    settings: &FiberSettings,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<FiberRow>, WalkError> {
    settings.check()?;
    let _pinned = Pinned::to(None)?;
    let total = (settings.stacks.len() * settings.fibers.len()) as u64 * u64::from(settings.rounds);
    let mut done = 0;
    let mut rows = Vec::new();
    for stack in &settings.stacks {
        let mut few = f64::INFINITY;
        for fibers in &settings.fibers {
            let mut case = Case::new(settings, *stack, *fibers)?;
            for round in 0..settings.rounds {
                case.round(settings, round as usize)?;
                few = few.min(case.few_ns);
                done += 1;
                progress(done, total);
            }
            rows.extend(case.into_rows());
        }
        let of_size = rows.iter_mut().filter(|row| row.stack == *stack);
        of_size.for_each(|row| row.few_ns = few);
    }
    Ok(rows)
}

/// One number of fibers on stacks of one size.
///
/// Invariant: `times` has a list for each of `colorings`, all of the same length.
struct Case {
    stack: Bytes,
    fibers: u32,
    options: Options,
    /// Plain, then what was asked for.
    colorings: Vec<Coloring>,
    times: Vec<Vec<f64>>,
    visits: Vec<Option<Visits>>,
    few_ns: f64,
    huge_pages: bool,
    /// The stacks of the round before, so that this round gets other pages.
    before: Vec<Stack>,
}

impl Case {
    fn new(settings: &FiberSettings, stack: Bytes, fibers: u32) -> Result<Case, WalkError> {
        let options = settings.options(stack);
        let mut colorings = vec![Coloring::NONE];
        for colors in &settings.colors {
            let colored = match colors {
                Some(colors) => options.clone().colors(*colors),
                None => options.clone().fibers(u64::from(fibers)),
            };
            colorings.push(pool(colored)?.coloring());
        }
        Ok(Case {
            stack,
            fibers,
            options: options.colors(1),
            times: vec![Vec::new(); colorings.len()],
            visits: vec![None; colorings.len()],
            few_ns: f64::INFINITY,
            huge_pages: settings.huge_pages,
            colorings,
            before: Vec::new(),
        })
    }

    /// Measures all colorings on stacks that are mapped anew, in turn.
    fn round(&mut self, settings: &FiberSettings, round: usize) -> Result<(), WalkError> {
        let mut stacks = self.stacks()?;
        let time = time::Duration::from_nanos(settings.time.as_ns() / u64::from(TURNS));
        let count = self.colorings.len();
        let mut best = vec![f64::INFINITY; count];
        for turn in 0..TURNS as usize {
            for place in 0..count {
                // Who is first changes from round to round, and the direction from turn to turn.
                let place = if turn % 2 == 0 {
                    place
                } else {
                    count - 1 - place
                };
                let which = (place + round) % count;
                let mut ring = Ring::new(stacks, self.colorings[which], settings.lines as usize);
                best[which] = best[which].min(ring.ns_per_switch(time));
                let visits = || Visits::of_stops(ring.tops(), settings.hot_lines(), Bytes(LINE));
                self.visits[which].get_or_insert_with(visits);
                stacks = ring.into_stacks();
            }
        }
        for (times, best) in self.times.iter_mut().zip(best) {
            times.push(best);
        }
        let rest = stacks.split_off(stacks.len().min(FEW as usize));
        let mut few = Ring::new(stacks, Coloring::NONE, settings.lines as usize);
        self.few_ns = self.few_ns.min(few.ns_per_switch(time));
        self.before = few.into_stacks();
        self.before.extend(rest);
        Ok(())
    }

    /// New stacks, in the order in which their fibers run. That is not the order of their
    /// addresses, as with fibers that wait for events: a stream of prefetches would hide misses.
    fn stacks(&self) -> Result<Vec<Stack>, WalkError> {
        let pool = pool(self.options.clone())?;
        let stack = |_| pool.stack().map_err(WalkError::Stacks).map(Some);
        let mut stacks: Vec<Option<Stack>> =
            (0..self.fibers).map(stack).collect::<Result<_, _>>()?;
        let order = list_order(self.fibers, Seed(1));
        let in_order = order.iter().map(|index| stacks[*index as usize].take());
        Ok(in_order.flatten().collect())
    }

    fn into_rows(self) -> Vec<FiberRow> {
        let mut all = self.colorings.iter().zip(&self.times).zip(self.visits);
        let Some(((_, plain), Some(plain_visits))) = all.next() else {
            return Vec::new();
        };
        let row = |((coloring, colored), visits): ((&Coloring, &Vec<f64>), Option<Visits>)| {
            let ratios: Vec<f64> = plain
                .iter()
                .zip(colored)
                .map(|(one, other)| one / other)
                .collect();
            Some(FiberRow {
                stack: self.stack,
                fibers: self.fibers,
                colors: coloring.colors(),
                huge_pages: self.huge_pages,
                plain_ns: Spread::of(plain)?,
                colored_ns: Spread::of(colored)?,
                ratio: Spread::of(&ratios)?,
                few_ns: self.few_ns,
                visits: [plain_visits.clone(), visits?],
            })
        };
        all.filter_map(row).collect()
    }
}

fn pool(options: Options) -> Result<Pool, WalkError> {
    options.pool().map_err(WalkError::Stacks)
}
