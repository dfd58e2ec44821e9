//! `touch`: real accesses to memory.

use std::sync::atomic::Ordering::Relaxed;

use warmq_scenario::TaskKindId;
use warmq_scenario::program::{Do, Lines, Op, Touch};

use super::{Left, Performer};
use crate::stage::Stage;
use crate::stage::objects::Word;
use crate::sys::memory;

/// Which of the accesses write, spread evenly: `percent` of each hundred.
struct Writes {
    percent: u64,
    owed: u64,
}

impl Writes {
    #[inline]
    fn next(&mut self) -> bool {
        self.owed += self.percent;
        let writes = self.owed >= 100;
        if writes {
            self.owed -= 100;
        }
        writes
    }
}

/// Reads a word of a line, or adds one to it.
#[inline]
fn access(word: &Word, writes: bool) {
    // An atomic access is an ordinary one of the processor, which the compiler cannot leave out.
    let value = word.load(Relaxed);
    if writes {
        word.store(value.wrapping_add(1), Relaxed);
    } else {
        std::hint::black_box(value);
    }
}

/// Steps through `lines` lines, from `first` on, `stride` apart, around the end.
struct Walk {
    line: u64,
    stride: u64,
    lines: u64,
}

impl Walk {
    fn new(first: u64, stride: u64, lines: u64) -> Walk {
        Walk {
            line: first % lines,
            stride: stride % lines,
            lines,
        }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let line = self.line;
        self.line += self.stride;
        if self.line >= self.lines {
            self.line -= self.lines;
        }
        line
    }
}

/// Numbers without a pattern that a processor could guess: a step of a linear congruential
/// generator, the high half of which is scaled to the lines.
struct Scattered {
    state: u64,
    lines: u64,
}

impl Scattered {
    #[inline]
    fn next(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(1);
        ((u128::from(self.state) * u128::from(self.lines)) >> 64) as u64
    }
}

/// Regions of a table that a task may touch are mapped beforehand if they are no larger than this
/// together; else each page is mapped when it is touched first.
const MOST_BYTES: usize = 16 << 20;

/// Maps what the tasks in `slots` touch into this process, so that no access waits for a page.
pub fn populate_regions(stage: &Stage, slots: &[u32]) {
    let kinds = slots.iter().map(|slot| stage.role(stage.slots.of(*slot)).0);
    let mut kinds: Vec<TaskKindId> = kinds.collect();
    kinds.dedup();
    for program in kinds.iter().map(|kind| &stage.programs[kind.0 as usize]) {
        for op in program.ops() {
            let Op::Do(Do::Touch(touch)) = op else {
                continue;
            };
            let places = touch.region.places(&stage.bound);
            let regions = &stage.objects().regions[places];
            let bytes: usize = regions.iter().map(|region| size_of_val(*region)).sum();
            if regions.len() == 1 || bytes <= MOST_BYTES {
                regions.iter().for_each(|region| memory::populate(region));
            }
        }
    }
}

impl Performer {
    pub(super) fn touch(&mut self, touch: &Touch) -> Result<(), Left> {
        let region = self.objects.regions[self.place(&touch.region)?];
        let bytes_of_line = self.stage.line;
        let words_of_line = (bytes_of_line as usize / size_of::<Word>()).max(1);
        let of_region = (region.len() / words_of_line).max(1) as u64;
        let whole = (of_region, bytes_of_line);
        let accesses = touch.part.lines(whole, |number| self.get(number))?;
        let percent = self.get(&touch.write_percent)?.min(100);
        let mut writes = Writes { percent, owed: 0 };
        let mut line = |line: u64| access(&region[line as usize * words_of_line], writes.next());
        match &touch.lines {
            Lines::Stride { first, stride } => {
                let stride = self.get(stride)?.max(1);
                let mut walk = Walk::new(self.get(first)?, stride, of_region);
                (0..accesses).for_each(|_| line(walk.next()));
            }
            Lines::Random(from) => {
                let state = self.random(*from);
                let lines = of_region;
                let mut scattered = Scattered { state, lines };
                (0..accesses).for_each(|_| line(scattered.next()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_walk_goes_around_the_end(first: u64, stride: u64, lines in 1_u64..1 << 40) {
            let mut walk = Walk::new(first, stride, lines);
            for step in 0..50_u128 {
                let wanted = (u128::from(first) + step * u128::from(stride)) % u128::from(lines);
                prop_assert_eq!(u128::from(walk.next()), wanted);
            }
        }

        #[test]
        fn as_many_accesses_write_as_asked(percent in 0_u64..=100) {
            let mut writes = Writes { percent, owed: 0 };
            let written = (0..700).filter(|_| writes.next()).count() as u64;
            prop_assert_eq!(written, 7 * percent);
        }

        #[test]
        fn scattered_lines_are_lines_of_the_region(state: u64, lines in 1_u64..1 << 40) {
            let mut scattered = Scattered { state, lines };
            prop_assert!((0..100).all(|_| scattered.next() < lines));
        }
    }
}
