//! Where the hot lines of a walk lie.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warmq_coloring::needed_colors;
use warmq_units::{Address, Bytes, Seed};
use warmq_walk::{Geometry, HOT_OFFSET, Layout, WalkSettings, list_order};

/// The level 2 of the development machine: 2 MB, 16 ways, so b = 17.
const LEVEL_2: Geometry = Geometry {
    level: 2,
    size: Bytes::from_mb(2),
    ways: 16,
    line: Bytes(64),
};

fn layout(colors: u32, color_bits: u32) -> Layout {
    let block_size = Bytes::from_kb(8);
    Layout {
        block_size,
        line: Bytes(64),
        lines: 1,
        colors,
        color_bits,
    }
}

fn neighbours(blocks: u64) -> Vec<Address> {
    (0..blocks)
        .map(|index| Address((1 << 30) + index * 8192))
        .collect()
}

/// How many different sets of level 2 a walk over neighbouring blocks uses.
fn sets_used(layout: Layout, blocks: u32) -> usize {
    let visits = layout.visits(&neighbours(blocks.into()), &list_order(blocks, Seed(1)));
    visits
        .iter()
        .map(|visit| LEVEL_2.set_of(visit.0))
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn the_first_bit_above_the_sets_is_that_of_equation_1() {
    assert_eq!(LEVEL_2.first_free_bit(), 17);
    let pentium_3 = Geometry {
        level: 2,
        size: Bytes::from_kb(512),
        ways: 4,
        line: Bytes(32),
    };
    assert_eq!(
        pentium_3.first_free_bit(),
        17,
        "the paper's example: 512 KB, 4-way"
    );
    assert_eq!(WalkSettings::default().layout(32, LEVEL_2).color_bits, 17);
}

#[test]
fn colors_from_the_bits_above_b_multiply_the_sets_and_colors_from_below_do_not() {
    // 2 MB / 16 ways / 8 KB: without colors, blocks use 16 sets.
    assert_eq!(sets_used(layout(1, 17), 2048), 16);
    for colors in [2, 4, 8, 32] {
        assert_eq!(sets_used(layout(colors, 17), 8192), 16 * colors as usize);
    }
    // Four bits below b are the block's number among those 16: each color goes with one set.
    for colors in [2, 4, 8, 16] {
        assert_eq!(sets_used(layout(colors, 13), 8192), 16);
    }
}

#[test]
fn the_colors_needed_are_those_of_equation_3() {
    let needed = |blocks| needed_colors(blocks, LEVEL_2.fit(Bytes::from_kb(8)));
    let table = [
        (1, 1),
        (256, 1),
        (257, 2),
        (512, 2),
        (1024, 4),
        (1025, 8),
        (2048, 8),
    ];
    for (blocks, colors) in table {
        assert_eq!(needed(blocks), colors, "{blocks} blocks");
    }
}

#[test]
fn another_seed_is_another_order() {
    assert_eq!(list_order(100, Seed(1)), list_order(100, Seed(1)));
    assert_ne!(list_order(100, Seed(1)), list_order(100, Seed(2)));
}

proptest! {
    #[test]
    fn a_walk_visits_every_block_once_within_its_bounds(
        blocks in 1_u32..600,
        colors in (0_u32..6).prop_map(|power| 1 << power),
        color_bits in 13_u32..22,
        lines in 1_u32..8,
        seed in any::<u64>(),
    ) {
        let layout = Layout { lines, ..layout(colors, color_bits) };
        let starts = neighbours(blocks.into());
        let visits = layout.visits(&starts, &list_order(blocks, Seed(seed)));
        let mut visited: Vec<Address> =
            visits.iter().map(|visit| Address(visit.0 & !8191)).collect();
        visited.sort_unstable();
        prop_assert_eq!(visited, starts);
        for visit in visits {
            let start = Address(visit.0 & !8191);
            let color = start.0 >> color_bits & u64::from(colors - 1);
            prop_assert_eq!(visit.0 - start.0, HOT_OFFSET + color * 64);
            prop_assert!(visit.0 - start.0 + u64::from(lines) * 64 <= layout.end_of_hot());
        }
    }
}
