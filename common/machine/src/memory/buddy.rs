//! The free lists of a buddy allocator, with the state of every page that they have seen.

/// The pages of a run: `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub start: u32,
    pub end: u32,
}

/// The free lists that a region's blocks belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// Regions with pages that are in use for good.
    Worn,
    /// Regions that were free as a whole.
    Whole,
}

const NONE: u32 = u32::MAX;
const NEITHER: u8 = 0;
const FREE: u8 = 0x40;
const LIVE: u8 = 0x80;

/// Free lists by zone and order, last freed first.
///
/// Invariant: a page is the head of a free block exactly if its state is `FREE | order`, and then
/// it is on the list of its region's zone and of that order; no two free blocks are buddies.
#[derive(Clone, Debug)]
pub struct Buddy {
    region_order: u32,
    regions: Vec<Option<Box<Region>>>,
    heads: [Vec<u32>; 2],
}

/// A region of the memory that was opened.
#[derive(Clone, Debug)]
struct Region {
    zone: Zone,
    /// By page: the head of a free block, the head of a live block, or neither.
    state: Vec<u8>,
    /// By page, when it is the head of a free block: its neighbours on the list.
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

impl Run {
    /// Whether an aligned block of 2^`order` pages lies in the run.
    pub fn holds(self, order: u32) -> bool {
        let block = 1_u64 << order;
        u64::from(self.start).next_multiple_of(block) + block <= u64::from(self.end)
    }
}

impl Buddy {
    /// Memory of `regions` regions of 2^`region_order` pages, none of them opened.
    pub fn new(regions: usize, region_order: u32) -> Buddy {
        let heads = vec![NONE; region_order as usize + 1];
        let regions = std::iter::repeat_with(|| None).take(regions).collect();
        Buddy {
            region_order,
            regions,
            heads: [heads.clone(), heads],
        }
    }

    /// Opens a region, which has `pages` pages; none of them is free yet.
    pub fn open(&mut self, region: u32, zone: Zone, pages: u32) {
        let pages = pages as usize;
        let links = vec![
            Link {
                previous: NONE,
                next: NONE
            };
            pages
        ];
        let opened = Region {
            zone,
            state: vec![NEITHER; pages],
            links,
        };
        self.regions[region as usize] = Some(Box::new(opened));
    }

    /// Makes a run of an opened region free, as the fewest aligned blocks.
    pub fn insert(&mut self, run: Run) {
        let mut start = run.start;
        while start < run.end {
            let fits = (run.end - start).ilog2();
            let order = start.trailing_zeros().min(fits).min(self.region_order);
            self.push(start, order);
            start += 1 << order;
        }
    }

    /// Takes a block of the zone: the smallest that is large enough, its lower end.
    pub fn take(&mut self, zone: Zone, order: u32) -> Option<u32> {
        let lists = &self.heads[zone as usize];
        let fitting = (order..=self.region_order).find(|order| lists[*order as usize] != NONE)?;
        let page = lists[fitting as usize];
        self.unlink(page, fitting);
        for upper in (order..fitting).rev() {
            self.push(page + (1 << upper), upper);
        }
        self.set_state(page, LIVE | order as u8);
        Some(page)
    }

    /// Frees a block and merges it with its buddies as far as they are free.
    ///
    /// # Panics
    /// When no block of this order was taken there.
    pub fn free(&mut self, page: u32, order: u32) {
        let live = self.state(page) == LIVE | order as u8;
        assert!(live, "page {page:#x} is no live block of order {order}");
        self.set_state(page, NEITHER);
        let (mut page, mut order) = (page, order);
        while order < self.region_order {
            let buddy = page ^ (1 << order);
            if self.state(buddy) != FREE | order as u8 {
                break;
            }
            self.unlink(buddy, order);
            page = page.min(buddy);
            order += 1;
        }
        self.push(page, order);
    }

    fn split(&self, page: u32) -> (usize, usize) {
        let mask = (1 << self.region_order) - 1;
        ((page >> self.region_order) as usize, (page & mask) as usize)
    }

    /// The state of a page, also of one beyond the end of the memory or not opened.
    fn state(&self, page: u32) -> u8 {
        let (region, offset) = self.split(page);
        let region = self.regions.get(region).and_then(Option::as_ref);
        region
            .and_then(|region| region.state.get(offset))
            .copied()
            .unwrap_or(NEITHER)
    }

    fn region(&mut self, page: u32) -> (&mut Region, usize) {
        let (region, offset) = self.split(page);
        let region = self.regions[region]
            .as_mut()
            .expect("free blocks lie in opened regions");
        (region, offset)
    }

    fn set_state(&mut self, page: u32, state: u8) {
        let (region, offset) = self.region(page);
        region.state[offset] = state;
    }

    fn push(&mut self, page: u32, order: u32) {
        let zone = self.region(page).0.zone as usize;
        let next = std::mem::replace(&mut self.heads[zone][order as usize], page);
        let (region, offset) = self.region(page);
        region.state[offset] = FREE | order as u8;
        region.links[offset] = Link {
            previous: NONE,
            next,
        };
        if next != NONE {
            let (region, offset) = self.region(next);
            region.links[offset].previous = page;
        }
    }

    fn unlink(&mut self, page: u32, order: u32) {
        let (region, offset) = self.region(page);
        let (zone, Link { previous, next }) = (region.zone as usize, region.links[offset]);
        region.state[offset] = NEITHER;
        if next != NONE {
            let (region, offset) = self.region(next);
            region.links[offset].previous = previous;
        }
        if previous == NONE {
            self.heads[zone][order as usize] = next;
        } else {
            let (region, offset) = self.region(previous);
            region.links[offset].next = next;
        }
    }
}
