//! The effects of long use: which regions are worn, and where their free clusters are.

use warmq_units::Stream;

use super::buddy::Run;

/// How many worn regions are opened together. Clusters are drawn from a batch in random order, so
/// it must be large enough that neighbours in time are not neighbours in memory (1 GB here).
const BATCH: usize = 256;
/// One region of so many is free as a whole.
const WHOLE_ONE_IN: u64 = 8;

/// Worn regions that are not opened yet.
///
/// Invariant: `free_units` of the `units` of two pages in all worn regions are free, spread evenly
/// over the regions in the order in which they are opened.
#[derive(Clone, Debug, Default)]
pub struct Wear {
    cluster: u32,
    units: u64,
    free_units: u64,
    seen_units: u64,
    /// Region and its units, in the order of opening, reversed.
    closed: Vec<(u32, u32)>,
}

/// A worn region that is about to be opened.
pub struct WornRegion {
    pub region: u32,
    pub free_units: u32,
}

/// Fragments memory of `pages` pages, of which `free` are to be free. Returns the worn regions,
/// those free as a whole, and the number of free pages after rounding to whole units.
pub fn wear(
    pages: u64,
    region_order: u32,
    free: u64,
    cluster: u32,
    stream: &mut Stream,
) -> (Wear, Vec<u32>, u64) {
    let region_pages = 1_u64 << region_order;
    let full = pages / region_pages;
    let mut regions: Vec<u32> = (0..full as u32).collect();
    stream.shuffle(&mut regions);
    let whole_count = (full / WHOLE_ONE_IN).min(free / 2 / region_pages);
    let whole = regions.split_off(regions.len() - whole_count as usize);

    let full_units = (region_pages / 2) as u32;
    let mut closed: Vec<(u32, u32)> = regions.iter().map(|region| (*region, full_units)).collect();
    let rest_units = (pages % region_pages / 2) as u32;
    if rest_units > 0 {
        closed.push((full as u32, rest_units));
    }
    let units: u64 = closed.iter().map(|(_, units)| u64::from(*units)).sum();
    let free_units = ((free - whole_count * region_pages) / 2).min(units);
    let free_pages = 2 * free_units + whole_count * region_pages;
    (
        Wear {
            cluster,
            units,
            free_units,
            seen_units: 0,
            closed,
        },
        whole,
        free_pages,
    )
}

impl Wear {
    /// No worn region at all.
    pub fn none() -> Wear {
        Wear {
            cluster: 1,
            ..Wear::default()
        }
    }

    /// The next regions to open; none when all are open.
    pub fn next_batch(&mut self) -> Vec<WornRegion> {
        let kept = self.closed.len().saturating_sub(BATCH);
        let batch = self.closed.split_off(kept);
        batch
            .into_iter()
            .rev()
            .map(|(region, units)| self.share(region, units))
            .collect()
    }

    /// A region's share of the free units: the difference of two cumulative shares, so that all
    /// shares add up exactly.
    fn share(&mut self, region: u32, units: u32) -> WornRegion {
        let until = |seen: u64| {
            (u128::from(self.free_units) * u128::from(seen) / u128::from(self.units)) as u64
        };
        let next = self.seen_units + u64::from(units);
        let free_units = (until(next) - until(self.seen_units)) as u32;
        self.seen_units = next;
        WornRegion { region, free_units }
    }

    /// The free clusters of a region of `units` units, of which `free` are free, ascending.
    ///
    /// Free and used stretches alternate; every way of cutting them is equally likely, so lengths
    /// are nearly geometric around the mean.
    pub fn clusters(&self, units: u32, free: u32, stream: &mut Stream) -> Vec<Run> {
        if free == 0 {
            return Vec::new();
        }
        let used = units - free;
        let wanted = (free + self.cluster / 2) / self.cluster;
        let count = wanted.clamp(1, free.min(used + 1));
        // The stretches before the first and after the last cluster may be empty.
        let gaps = composition(used + 2, count + 1, stream);
        let lengths = composition(free, count, stream);
        let mut end = 0;
        let place = |(index, (length, gap)): (usize, (&u32, &u32))| {
            let start = end + gap - u32::from(index == 0);
            end = start + length;
            Run { start, end }
        };
        lengths.iter().zip(&gaps).enumerate().map(place).collect()
    }
}

/// Cuts `total` into `parts` parts of at least 1 at random; `parts` is from 1 to `total`.
fn composition(total: u32, parts: u32, stream: &mut Stream) -> Vec<u32> {
    let mut lengths = Vec::with_capacity(parts as usize);
    let mut last_cut = 0;
    for place in 1..total {
        let (cuts_left, places_left) = (parts - 1 - lengths.len() as u32, total - place);
        if stream.chance(cuts_left.into(), places_left.into()) {
            lengths.push(place - last_cut);
            last_cut = place;
        }
    }
    lengths.push(total - last_cut);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use warmq_units::Seed;

    #[test]
    fn a_composition_adds_up() {
        let mut stream = Seed(5).stream("composition");
        for (total, parts) in [(1, 1), (7, 7), (7, 1), (100, 13), (512, 64)] {
            let lengths = composition(total, parts, &mut stream);
            assert_eq!(lengths.len(), parts as usize);
            assert_eq!(lengths.iter().sum::<u32>(), total);
            assert!(lengths.iter().all(|length| *length > 0));
        }
    }
}
