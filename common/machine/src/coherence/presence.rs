//! Which groups of caches hold a line.

use std::ops::Range;

use crate::cache::Line;
use crate::sparse::Sparse;

/// Bits in a cell.
const CELL: usize = 16;

/// For each line a bit for each group of caches.
///
/// A *group* is a chain of caches, nearer to farther, that the same CPUs share: the level 1 and 2
/// of a core, say. Invariant: a bit is set exactly when some cache of the group holds the line.
/// Groups are numbered so that the ones under a cache follow each other.
///
/// Sixteen groups fit into one cell: an 8-way machine costs two bytes a line, one with 24 last
/// levels over 192 cores 28 bytes a line that was ever touched.
pub(crate) struct Presence {
    table: Sparse<u16>,
    kept: bool,
}

impl Presence {
    pub(crate) fn new(groups: usize) -> Presence {
        Presence {
            table: Sparse::new(groups.div_ceil(CELL)),
            kept: true,
        }
    }

    /// Nothing is noted: whoever wants to know who holds a line asks the caches.
    pub(crate) fn none() -> Presence {
        Presence {
            table: Sparse::new(1),
            kept: false,
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, line: Line, group: usize) {
        if self.kept {
            self.table.get_mut(line)[group / CELL] |= 1 << (group % CELL);
        }
    }

    /// Notes that `group` holds `line` if no group outside `own` (a `mask`) does. Whether it did.
    #[inline]
    pub(crate) fn set_if_alone(&mut self, line: Line, group: usize, own: &[u16]) -> bool {
        let cells = self.table.get_mut(line);
        let others = cells
            .iter()
            .zip(own)
            .fold(0, |others, (cell, own)| others | cell & !own);
        if others == 0 {
            cells[group / CELL] |= 1 << (group % CELL);
        }
        others == 0
    }

    #[inline]
    pub(crate) fn clear(&mut self, line: Line, group: usize) {
        if self.kept {
            self.table.get_mut(line)[group / CELL] &= !(1 << (group % CELL));
        }
    }

    /// Writes into `found`, ascending, the groups in `among` that hold `line`, but for those of
    /// which `except` (a `mask`, or nothing) has a bit.
    #[inline]
    pub(crate) fn holders(
        &self,
        line: Line,
        among: Range<usize>,
        except: &[u16],
        found: &mut Vec<u16>,
    ) {
        found.clear();
        let cells = self.table.get(line);
        if cells.is_empty() || among.is_empty() {
            return;
        }
        let (first, last) = (among.start / CELL, (among.end - 1) / CELL);
        for (cell, bits) in cells.iter().enumerate().take(last + 1).skip(first) {
            let mut bits = bits & !except.get(cell).copied().unwrap_or(0);
            while bits != 0 {
                let group = cell * CELL + bits.trailing_zeros() as usize;
                if among.contains(&group) {
                    found.push(group as u16);
                }
                bits &= bits - 1;
            }
        }
    }

    /// Every line that some group holds, with its groups, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Line, Vec<u16>)> {
        let held = self
            .table
            .iter()
            .filter(|(_, cells)| cells.iter().any(|cell| *cell != 0));
        held.map(|(line, cells)| {
            let groups = (0..cells.len() * CELL)
                .filter(|group| cells[group / CELL] >> (group % CELL) & 1 == 1)
                .map(|group| group as u16);
            (line, groups.collect())
        })
    }

    /// A set of groups as `holders` takes it.
    pub(crate) fn mask(groups: usize, members: impl Iterator<Item = usize>) -> Vec<u16> {
        let mut mask = vec![0; groups.div_ceil(CELL)];
        for group in members {
            mask[group / CELL] |= 1 << (group % CELL);
        }
        mask
    }
}
