//! What coloring promises: headers spread evenly, equation 3 at its bounds, the paper's cases.

use proptest::prelude::*;
use warmq_coloring::{
    Blocks, Cache, Coloring, PAGE, Spread, color_of, first_free_bit, needed_colors,
};

fn cache(kb: u64, ways: u64, line: u64) -> Cache {
    Cache::new(kb << 10, ways, line).expect("a cache")
}

#[test]
fn what_is_no_cache_is_refused() {
    for (size, ways, line) in [
        (0, 8, 64),
        (32 << 10, 0, 64),
        (32 << 10, 8, 0),
        (32 << 10, 8, 48),
        (32 << 10, 7, 64),
        (64, u64::MAX, 64),
    ] {
        assert_eq!(Cache::new(size, ways, line), None, "{size} {ways} {line}");
    }
}

/// The paper's figure 4 and its three level-2 caches.
#[test]
fn the_first_color_bit_lies_right_above_the_set_index() {
    for (kb, ways, bit) in [(512, 4, 17), (256, 4, 16), (1024, 4, 18), (32, 1, 15)] {
        assert_eq!(cache(kb, ways, 32).first_free_bit(), bit);
    }
    assert_eq!(first_free_bit(0), 0);
}

#[test]
fn bits_beyond_the_address_make_no_color() {
    assert_eq!(color_of(u64::MAX, 64, 32), 0);
    assert_eq!(color_of(u64::MAX, 63, 32), 1);
    assert_eq!(color_of(u64::MAX, 0, 1), 0);
}

/// Decision case 15 of the paper's specification, equation 3.
#[test]
fn as_many_colors_as_processes_over_blocks_of_the_cache() {
    for (kb, expected) in [(256, [32, 16, 8]), (512, [16, 8, 4]), (1_024, [8, 4, 2])] {
        for (processes, needed) in [1_024, 512, 256].into_iter().zip(expected) {
            let blocks = Blocks::new(processes, 8 << 10);
            assert_eq!(
                blocks.colors(cache(kb, 4, 32)),
                Some(needed),
                "{kb} {processes}"
            );
        }
    }
    assert_eq!(needed_colors(0, 0), 1);
    assert_eq!(needed_colors(u64::MAX, 1), 1 << 63);
}

#[test]
fn colors_end_where_the_cache_cannot_hold_the_lines() {
    let level_1 = cache(32, 8, 64);
    let colors = |count| Blocks::new(count, 4 << 10).colors(level_1);
    assert_eq!(colors(8), Some(1));
    assert_eq!(colors(9), Some(2));
    assert_eq!(colors(512), Some(64));
    assert_eq!(colors(513), None, "the cache has 512 lines");
    let three = |count| {
        Blocks::new(count, 4 << 10)
            .with_hot_lines(3)
            .colors(level_1)
    };
    assert_eq!(three(8), Some(1), "three sets, 8 lines in each");
    assert_eq!(three(170), Some(64));
    assert_eq!(three(171), None);
    assert_eq!(
        Blocks::new(u64::MAX, 64).with_hot_lines(2).colors(level_1),
        None
    );
}

/// Level 1 is one of pages; level 2 holds what lots give it, with two lines of page tables for each
/// block. The columns: blocks, hot lines, stride in KB, colors.
#[test]
fn colors_are_for_the_nearest_cache_that_can_hold_the_lines() {
    let caches = [cache(32, 8, 64), cache(512, 8, 64), cache(32 << 10, 16, 64)];
    for (count, hot_lines, stride, colors) in [
        (8, 3, 68, 1),     // one set a line holds all
        (9, 3, 68, 8),     // level 1: equation 3 asks for 4
        (64, 3, 68, 32),   // level 1: 24, and no more stay within a page
        (512, 1, 68, 64),  // level 1: all of it
        (513, 1, 68, 16),  // level 2: 4.01
        (86, 3, 68, 1),    // level 2 holds 128 of the same line wherever their pages are
        (129, 3, 68, 8),   // level 2: 3.02
        (592, 3, 68, 32),  // level 2: 13.9; 2.9 of 8 ways are used in the mean
        (592, 3, 260, 32), // the stride says nothing of physical pages
        (593, 3, 68, 1),   // level 2: too many for lots
        (592, 4, 68, 1),   // the same
        (988, 1, 68, 16),  // level 2: 7.7
        (1_024, 3, 68, 1),
        (4_096, 1, 4, 1),   // level 2 has as many lines, but none for page tables
        (16_000, 3, 68, 1), // level 3 is not for colors
    ] {
        let blocks = Blocks::new(count, stride << 10).with_hot_lines(hot_lines);
        let chosen = Coloring::of(blocks, &caches).colors();
        assert_eq!(
            chosen, colors,
            "{count} blocks, {hot_lines} lines, {stride} KB"
        );
    }
}

/// Of two server cores: 2 MB with 16 ways hold four times as many.
#[test]
fn a_larger_level_2_takes_more_blocks() {
    let caches = [cache(48, 12, 64), cache(2 << 10, 16, 64)];
    let colors =
        |count| Coloring::of(Blocks::new(count, 68 << 10).with_hot_lines(3), &caches).colors();
    assert_eq!(
        [90, 200, 600, 3_147, 3_148, 20_000].map(colors),
        [32, 1, 8, 32, 1, 1]
    );
}

/// Where level 2 holds all of them as they are, and level 1 does not.
#[test]
fn blocks_that_are_stored_to_have_colors_against_waiting_loads() {
    let caches = [cache(48, 12, 64), cache(2 << 10, 16, 64)];
    let colors = |count| {
        let blocks = Blocks::new(count, 68 << 10).with_hot_lines(3);
        Coloring::of(blocks.that_are_stored_to(), &caches).colors()
    };
    assert_eq!(
        [12, 90, 200, 512, 600, 3_148].map(colors),
        [1, 32, 16, 16, 8, 1]
    );
}

/// Strides of an odd number of pages use all pages of a way, and need fewer colors.
#[test]
fn an_odd_stride_colors_pages_by_itself() {
    let level_2 = cache(512, 8, 64);
    assert_eq!((level_2.period(16 << 10), level_2.fit(16 << 10)), (4, 32));
    assert_eq!((level_2.period(20 << 10), level_2.fit(20 << 10)), (16, 128));
    assert_eq!((level_2.period(64 << 10), level_2.fit(1 << 20)), (1, 8));
}

fn caches() -> impl Strategy<Value = Cache> {
    let (sets, ways, line) = (0..12_u32, 1..20_u64, 4..8_u32);
    (sets, ways, line).prop_map(|(sets, ways, line)| {
        let line = 1 << line;
        Cache::new((ways * line) << sets, ways, line).expect("a cache")
    })
}

proptest! {
    /// Sets that headers reach hold equally many, or one more, after any number of blocks.
    #[test]
    fn headers_are_spread_evenly(
        cache in caches(),
        stride_in_lines in 1..2_000_u64,
        colors in 1..300_u64,
        count in 1..3_000_u64,
        first in 0..500_u64,
    ) {
        let stride = stride_in_lines * cache.line();
        let coloring = Coloring::new(colors, stride, cache);
        let header = |index: u64| (first + index * stride_in_lines) * cache.line() + coloring.offset(index);
        let spread = Spread::of(cache, (0..count).map(header));
        let reached = cache.period(stride) * coloring.colors();
        prop_assert!(reached <= cache.sets());
        prop_assert_eq!(spread.used() as u64, reached.min(count));
        prop_assert_eq!(spread.most(), count.div_ceil(reached));
        let least = spread.counts().iter().filter(|lines| **lines > 0).min();
        prop_assert!(spread.most() - least.expect("some set is used") <= 1);
    }

    /// Each line of a page has as many headers as any other, whatever the cache does with them.
    #[test]
    fn colors_are_used_alike(cache in caches(), stride in 1..100_000_u64, colors in 1..300_u64) {
        let coloring = Coloring::new(colors, stride, cache);
        let rounds = 4 * cache.period(stride).next_multiple_of(coloring.colors());
        let mut uses = vec![0; coloring.colors() as usize];
        for index in 0..rounds {
            uses[coloring.color(index) as usize] += 1;
        }
        prop_assert!(uses.iter().all(|count| *count == rounds / coloring.colors()));
    }

    /// With the colors of equation 3, and not with half of them, all headers stay in the cache.
    #[test]
    fn equation_3_is_as_many_as_needed(
        cache in caches(), pages in 1..64_u64, count in 1..3_000_u64,
    ) {
        let stride = pages << 12;
        let blocks = Blocks::new(count, stride);
        let misses = |colors| {
            let coloring = Coloring::new(colors, stride, cache);
            let headers = (0..count).map(|index| index * stride + coloring.offset(index));
            Spread::of(cache, headers).misses_in_turn()
        };
        match blocks.colors(cache) {
            Some(1) => prop_assert_eq!(misses(1), 0),
            Some(colors) => {
                prop_assert_eq!(misses(colors), 0);
                prop_assert!(misses(colors / 2) > 0);
            }
            None => prop_assert!(misses(u64::MAX) > 0, "no number of colors is enough"),
        }
    }

    /// Colors for the sake of a cache are at least those of equation 3, and none where that says
    /// none; hot lines that begin at a page end in it.
    #[test]
    fn what_is_worthwhile_keeps_equation_3_and_the_page(
        cache in caches(), pages in 1..64_u64, count: u64, small in 1..5_000_u64, hot_lines in 1..70_u64,
    ) {
        for count in [count, small] {
            let blocks = Blocks::new(count, pages << 12).with_hot_lines(hot_lines);
            let Some(colors) = blocks.worthwhile(cache) else { continue };
            let least = blocks.colors(cache);
            if colors > 1 && cache.way_size() <= PAGE {
                prop_assert!(least.is_some_and(|least| least <= colors));
            }
            if colors > 1 {
                prop_assert!((colors - 1 + hot_lines) * cache.line() <= PAGE);
                prop_assert!(count.saturating_mul(hot_lines) <= cache.lines());
            }
        }
    }

    #[test]
    fn a_header_stays_within_reach(colors in 1..1_000_u64, stride in 0..1_000_000_u64, index: u64) {
        let cache = cache(512, 8, 64);
        let coloring = Coloring::new(colors, stride, cache);
        prop_assert!(coloring.offset(index) <= coloring.reach());
        prop_assert_eq!(coloring.offset(index) % cache.line(), 0);
    }
}
