//! Where task structures lie: the vanilla layout, cache coloring, and slab coloring.
//!
//! The fields that the walk reads lie in one 32-byte line of the structure, at 0x20..0x3f; the
//! first of them that is read, `has_cpu`, at 0x30 (`struct task_struct` of Linux 2.4.4 on x86).

use warmq_coloring::{color_of, first_free_bit};
use warmq_config::{Chosen, Setting, settings};
use warmq_kernel::{Attach, Context};
use warmq_units::{Address, Bytes, TaskId};

/// Offset of `state`, in the line with `need_resched` (0x14), which whoever wakes or preempts a
/// task writes.
const STATE: u64 = 0x00;
/// Offset of `has_cpu`, the field that the walk reads first.
const HAS_CPU: u64 = 0x30;
/// Offset of `run_list.prev`, in the line after the one that the walk reads: with `sleep_time`
/// (0x44), the links of the list of all tasks (0x48) and `active_mm` (0x50).
const PREV_LINK: u64 = 0x40;
/// Offset of `thread`, where a switch keeps the registers.
const THREAD: u64 = 0x270;
/// Task structures in a slab are this far apart (`sizeof(struct task_struct)`, about 1.7 KB).
const STRUCTURE: u64 = 0x6c0;
/// A slab is two pages.
const SLAB: Bytes = Bytes::from_kb(8);

/// Where each task structure lies.
pub(crate) struct Layout {
    kind: Kind,
    line: u64,
    structures: Vec<Address>,
}

enum Kind {
    /// At the bottom of the 8 KB block of the kernel stack, moved up by the block's color.
    Block { colors: u64, first_bit: u32 },
    /// In slabs; each slab starts one line further in than the one before (Spraul).
    Slab {
        colors: u64,
        slabs: u64,
        current: Option<(Address, u64)>,
    },
}

/// The settings that [`Layout`] reads.
pub(crate) fn settings() -> Vec<Setting> {
    settings! {
        "colors", power_of_two((1, 256), 1, "colors"),
            "how many colors task structures take; 1 is the vanilla kernel",
            "coloring paper, section on equation 1";
        "first_bit", count((0, 40), 0, "bit"),
            "the lowest bit of a block's address that makes its color; 0 takes the one right above \
             log2(cache size / associativity) of the level-2 cache. The paper's shift is this less \
             log2(line size)",
            "coloring paper, equation 1";
        "layout", choice(&["block", "slab"]),
            "`block`: the structure shares its 8 KB block with the kernel stack; `slab`: structures \
             come from slabs whose starts are colored in the order of allocation",
            "coloring paper; Spraul's slab coloring";
    }
}

impl Layout {
    /// The layout that `chosen` asks for on the machine of `attach`.
    pub(crate) fn new(attach: &Attach<'_>, chosen: &Chosen) -> Layout {
        let colors = chosen.count("colors");
        let line = attach.line();
        let kind = if chosen.choice("layout") == "slab" {
            Kind::Slab {
                colors,
                slabs: 0,
                current: None,
            }
        } else {
            let first_bit = match chosen.count("first_bit") {
                0 => {
                    let way = attach.way_size(2).or(attach.way_size(1));
                    first_free_bit(way.map_or(0, |way| way.0))
                }
                bit => bit as u32,
            };
            Kind::Block { colors, first_bit }
        };
        Layout {
            kind,
            line,
            structures: Vec::new(),
        }
    }

    /// Structures at these addresses, for tests.
    #[cfg(test)]
    pub(crate) fn of(structures: Vec<Address>) -> Layout {
        let (colors, first_bit) = (1, 0);
        Layout {
            kind: Kind::Block { colors, first_bit },
            line: 32,
            structures,
        }
    }

    /// True where computing `current` takes more than masking the stack pointer.
    pub(crate) fn is_colored(&self) -> bool {
        match self.kind {
            Kind::Block { colors, .. } => colors > 1,
            Kind::Slab { .. } => true,
        }
    }

    /// Finds a place for the structure of `task`, which was just created.
    pub(crate) fn place(&mut self, context: &mut Context<'_>, task: TaskId) {
        let line = self.line;
        let block = context.task(task).block();
        let structure = match &mut self.kind {
            Kind::Block { colors, first_bit } => {
                block + color_of(block.0, *first_bit, *colors) * line
            }
            Kind::Slab {
                colors,
                slabs,
                current,
            } => {
                let start = current.take().unwrap_or_else(|| {
                    let offset = *slabs % *colors * line;
                    *slabs += 1;
                    (context.data(SLAB) + offset, (SLAB.0 - offset) / STRUCTURE)
                });
                let (structure, left) = start;
                *current = (left > 1).then(|| (structure + STRUCTURE, left - 1));
                structure
            }
        };
        // Forks on two CPUs may be reported in another order than that of their numbers.
        let known = self.structures.len().max(task.index() + 1);
        self.structures.resize(known, Address(0));
        self.structures[task.index()] = structure;
    }

    fn structure(&self, task: TaskId) -> Address {
        self.structures[task.index()]
    }

    /// Line 0: `state`, `need_resched`.
    pub(crate) fn state(&self, task: TaskId) -> Address {
        self.structure(task) + STATE
    }

    /// Line 1, which the walk reads, at the field that it reads first: `counter`, `processor`,
    /// `run_list.next` lie in it too.
    #[inline]
    pub(crate) fn hot(&self, task: TaskId) -> Address {
        self.structure(task) + HAS_CPU
    }

    /// Line 2: the backward link of the run list, the links of the list of all tasks, `active_mm`.
    pub(crate) fn links(&self, task: TaskId) -> Address {
        self.structure(task) + PREV_LINK
    }

    /// The registers of a task that does not run.
    pub(crate) fn thread(&self, task: TaskId) -> Address {
        self.structure(task) + THREAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(block: Address, colors: u64, first_bit: u32) -> u64 {
        color_of(block.0, first_bit, colors)
    }

    /// The paper's figure 4: mask 0x60 for 4 colors, 0xe0 for 8, with 32-byte lines.
    #[test]
    fn colors_move_the_structure_as_the_papers_macro_does() {
        for (colors, mask) in [(4, 0x60), (8, 0xe0), (32, 0x3e0)] {
            for block in (0..2_000).map(|number| number * 0x2000) {
                let shift = 15 - 5;
                let macros = (block >> shift) & mask;
                assert_eq!(
                    color(Address(block), colors, 15) * 32,
                    macros,
                    "block {block:#x}"
                );
            }
        }
    }

    #[test]
    fn one_color_moves_nothing() {
        assert_eq!(color(Address(0xffff_e000), 1, 17), 0);
    }

    /// Decision case 12 of the coloring paper's specification.
    #[test]
    fn which_line_each_field_lies_in() {
        let layout = Layout {
            kind: Kind::Block {
                colors: 32,
                first_bit: 17,
            },
            line: 32,
            structures: vec![Address(0), Address(0x3e0)],
        };
        let (plain, color_31) = (TaskId(0), TaskId(1));
        assert_eq!(layout.state(plain), Address(0x00));
        assert_eq!(
            layout.hot(plain),
            Address(0x30),
            "has_cpu; run_list.next is at 0x3c"
        );
        assert_eq!(
            layout.links(plain),
            Address(0x40),
            "run_list.prev; active_mm is at 0x50"
        );
        assert_eq!(layout.hot(color_31).0 / 32 * 32, 0x400);
    }

    /// Decision case 13: figure 5, and a block of 512 KB's machine.
    #[test]
    fn where_a_block_of_a_color_starts() {
        let (mask_60, mask_3e0) = (4, 32);
        assert_eq!(color(Address(72 << 10), mask_60, 15) * 32, 0x40);
        assert_eq!(color(Address(0x24_0000), mask_3e0, 17), 18);
        assert_eq!(color(Address(0x24_0000), mask_3e0, 17) * 32, 0x240);
    }

    /// The most blocks of the first `blocks` of memory whose hot lines share a set of a cache of
    /// `kb` KB with 4 ways.
    fn most_in_a_set(blocks: u64, kb: u64, colors: u64) -> usize {
        let (way, lines) = (kb << 8, (kb << 8) / 32);
        let first_bit = first_free_bit(way);
        let mut sets = vec![0; lines as usize];
        for block in (0..blocks).map(|number| Address(number * 0x2000)) {
            let hot = block.0 + color(block, colors, first_bit) * 32 + HAS_CPU;
            sets[(hot / 32 % lines) as usize] += 1;
        }
        sets.into_iter().max().expect("a cache has sets")
    }

    /// Decision case 15, equation 3: so many colors, and not half of them, hold all processes where
    /// blocks are contiguous.
    #[test]
    fn as_many_colors_as_processes_over_blocks_of_the_cache() {
        let table = [(256, [32, 16, 8]), (512, [16, 8, 4]), (1_024, [8, 4, 2])];
        for (kb, needed) in table {
            for (processes, colors) in [1_024, 512, 256].into_iter().zip(needed) {
                assert!(
                    most_in_a_set(processes, kb, colors) <= 4,
                    "{kb} KB, {processes}"
                );
                assert!(
                    most_in_a_set(processes, kb, colors / 2) > 4,
                    "{kb} KB, {processes}"
                );
            }
        }
    }

    /// Misses of one round over `blocks` blocks, again and again, on the machine with 512 KB.
    fn misses_a_round(blocks: u64, colors: u64, first_bit: u32) -> u64 {
        use warmq_machine::{Hierarchy, Options, builtin, read_toml};
        let text = builtin("ppro-4way").expect("a shipped machine");
        let machine = read_toml("ppro-4way.toml", text).expect("a sound machine");
        let mut caches = Hierarchy::new(&machine, Options::default());
        let cpu = warmq_units::CpuId(0);
        let now = warmq_units::Instant::START;
        for round in 0..5 {
            if round == 4 {
                caches.reset_counts();
            }
            for block in (0..blocks).map(|number| Address(number * 0x2000)) {
                let hot = block + color(block, colors, first_bit) * 32 + HAS_CPU;
                caches.access(cpu, hot, warmq_machine::Access::Read, now);
            }
        }
        caches.counts().level(cpu, 2).misses()
    }

    /// Decision case 16: four blocks a set fit, a fifth costs its set all five; colors of bits that
    /// choose the set anyway change nothing.
    #[test]
    fn a_round_too_long_for_one_set_misses_in_that_set_only() {
        for (colors, first_bit) in [(1, 17), (16, 13)] {
            assert_eq!(misses_a_round(64, colors, first_bit), 0, "{colors} colors");
            assert_eq!(misses_a_round(65, colors, first_bit), 5, "{colors} colors");
        }
    }

    /// Sets of a level-2 cache (512 KB, 4 ways, 32-byte lines) that the hot lines of `tasks` blocks
    /// of worn memory cover.
    fn sets_covered(tasks: usize, colors: u64, first_bit: u32) -> usize {
        const SETS: u64 = (512 << 10) / 4 / 32;
        let description = warmq_machine::MemoryDescription {
            size: Bytes::from_mb(640),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(4),
            latency: warmq_units::Duration::from_ns(200),
            dma_into_llc: false,
        };
        let worn = warmq_machine::Fragmentation::Worn {
            cluster: 8,
            used_percent: 50,
        };
        let stream = warmq_units::Seed(7).stream("pages");
        let mut memory = warmq_machine::PhysicalMemory::new(&description, worn, stream);
        let set = |block: Address| {
            let hot = block.0 + color(block, colors, first_bit) * 32 + HAS_CPU;
            hot / 32 % SETS
        };
        let sets = (0..tasks).map(|_| set(memory.allocate(1).expect("room for a block")));
        sets.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Without colors there are 128 KB / 8 KB = 16 sets, whatever the number of tasks.
    #[test]
    fn more_colors_cover_more_sets() {
        let covered = [1, 2, 4, 8, 16, 32].map(|colors| sets_covered(1_024, colors, 17));
        assert_eq!(covered[0], 16);
        for pair in covered.windows(2) {
            assert!(pair[0] < pair[1], "{covered:?}");
        }
        assert!(covered[5] > 256, "half of 16 * 32 at least: {covered:?}");
    }

    /// Bits 13 to 16 choose one of the 16 sets; colors made of them move each of the 16 as a whole.
    #[test]
    fn colors_of_bits_below_b_cover_no_set_more() {
        for (colors, first_bit) in [(2, 13), (4, 13), (16, 13), (4, 15), (2, 16)] {
            let covered = sets_covered(1_024, colors, first_bit);
            assert_eq!(covered, 16, "{colors} colors of bit {first_bit} on");
        }
        assert_eq!(sets_covered(1_024, 2, 17), 32);
    }
}
