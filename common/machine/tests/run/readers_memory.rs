//! Laws of the page allocator.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_machine::{Fragmentation, MemoryDescription, PhysicalMemory};
use warmq_units::{Address, Bytes, Duration, Seed};

const PAGE: u64 = 4096;

/// The order of a huge page.
const HUGE: u32 = 9;

fn memory_of(size: Bytes) -> MemoryDescription {
    MemoryDescription {
        size,
        page: Bytes(PAGE),
        huge_page: Bytes::from_mb(2),
        latency: Duration::from_ns(100),
        dma_into_llc: false,
    }
}

fn worn(cluster: u32, used_percent: u8) -> Fragmentation {
    Fragmentation::Worn {
        cluster,
        used_percent,
    }
}

fn built(size: Bytes, fragmentation: Fragmentation, seed: u64) -> PhysicalMemory {
    PhysicalMemory::new(&memory_of(size), fragmentation, Seed(seed).stream("pages"))
}

fn fragmentations() -> impl Strategy<Value = Fragmentation> {
    let worn = (0_u32..40, 0_u8..=100).prop_map(|(cluster, used)| worn(cluster, used));
    prop_oneof![Just(Fragmentation::Fresh), worn]
}

/// Allocations (`true`) and frees (`false`, of the live block that the number selects).
fn steps() -> impl Strategy<Value = Vec<(bool, u32, usize)>> {
    prop::collection::vec(
        (prop::bool::weighted(0.6), 0_u32..12, any::<usize>()),
        1..300,
    )
}

/// Adds a live block; panics if it overlaps another.
fn insert(live: &mut BTreeMap<u64, u32>, block: Address, order: u32) {
    let end = block.0 + (PAGE << order);
    let before = live.range(..end).next_back();
    if let Some((start, order)) = before {
        assert!(
            start + (PAGE << order) <= block.0,
            "{block} overlaps {start:#x}"
        );
    }
    live.insert(block.0, order);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn live_blocks_are_aligned_and_apart_and_every_page_is_accounted_for(
        pages in 256_u64..20_000,
        fragmentation in fragmentations(),
        steps in steps(),
        seed in any::<u64>(),
    ) {
        let mut memory = built(Bytes(pages * PAGE), fragmentation, seed);
        let at_first = memory.free_pages();
        prop_assert!(at_first <= pages);
        let mut live = BTreeMap::new();
        for (allocates, order, pick) in steps {
            if allocates {
                let Ok(block) = memory.allocate(order) else { continue };
                prop_assert_eq!(block.0 % (PAGE << order), 0);
                prop_assert!(block.0 + (PAGE << order) <= pages * PAGE);
                insert(&mut live, block, order);
            } else if !live.is_empty() {
                let start = *live.keys().nth(pick % live.len()).unwrap();
                memory.free(Address(start), live.remove(&start).unwrap());
            }
            let taken: u64 = live.values().map(|order| 1 << order).sum();
            prop_assert_eq!(memory.free_pages() + taken, at_first);
        }
    }

    #[test]
    fn every_free_page_can_be_allocated(
        pages in 256_u64..6_000,
        fragmentation in fragmentations(),
        seed in any::<u64>(),
    ) {
        let mut memory = built(Bytes(pages * PAGE), fragmentation, seed);
        let mut live = BTreeMap::new();
        for _ in 0..memory.free_pages() {
            insert(&mut live, memory.allocate(0).unwrap(), 0);
        }
        let refusal = memory.allocate(0).unwrap_err();
        prop_assert_eq!((refusal.order, refusal.free_pages), (0, 0));
    }

    #[test]
    fn equal_seeds_give_equal_addresses(fragmentation in fragmentations(), seed in any::<u64>()) {
        let addresses = || {
            let mut memory = built(Bytes::from_mb(64), fragmentation, seed);
            (0..200).map(|i| memory.allocate(i % 3)).collect::<Vec<_>>()
        };
        prop_assert_eq!(addresses(), addresses());
    }
}

#[test]
fn buddies_merge_until_the_largest_block_is_whole_again() {
    let mut memory = built(Bytes::from_mb(4), Fragmentation::Fresh, 1);
    let blocks: Vec<Address> = (0..1024).map(|_| memory.allocate(0).unwrap()).collect();
    assert!(memory.allocate(0).is_err());
    for block in blocks
        .iter()
        .step_by(2)
        .chain(blocks.iter().skip(1).step_by(2))
    {
        memory.free(*block, 0);
    }
    assert_eq!(memory.allocate(memory.largest_order()), Ok(Address(0)));
}

#[test]
fn fresh_memory_is_contiguous_and_ascends() {
    let mut memory = built(Bytes::from_mb(640), Fragmentation::Fresh, 1);
    for block in 0..80 * 1024 {
        assert_eq!(memory.allocate(1), Ok(Address(block * 2 * PAGE)));
    }
    assert!(memory.allocate(1).is_err());
}

#[test]
fn the_block_freed_last_is_allocated_first() {
    let mut memory = built(Bytes::from_mb(64), worn(8, 50), 1);
    let blocks: Vec<Address> = (0..100).map(|_| memory.allocate(1).unwrap()).collect();
    memory.free(blocks[40], 1);
    assert_eq!(memory.allocate(1), Ok(blocks[40]));
}

#[test]
fn worn_memory_gives_runs_of_about_a_cluster_from_all_over() {
    for cluster in [1, 4, 8, 16] {
        let mut memory = built(Bytes::from_mb(640), worn(cluster, 50), 7);
        let blocks: Vec<u64> = (0..4096)
            .map(|_| memory.allocate(1).unwrap().0 / (2 * PAGE))
            .collect();
        let breaks = blocks
            .windows(2)
            .filter(|pair| pair[0].abs_diff(pair[1]) > 64)
            .count();
        let mean = blocks.len() / (breaks + 1);
        let expected = cluster as usize;
        assert!(
            (expected * 3 / 4..=expected * 3 / 2).contains(&mean),
            "{cluster}: {mean}"
        );

        let eighth = Bytes::from_mb(80).0 / (2 * PAGE);
        for part in 0..8 {
            let here = blocks
                .iter()
                .filter(|block| **block / eighth == part)
                .count();
            assert!(
                here > 4096 / 8 / 2,
                "{cluster}: {here} blocks of 4096 in eighth {part}"
            );
        }
    }
}

#[test]
fn large_blocks_do_not_change_where_small_ones_come_from() {
    let small = |large_first: bool| {
        let mut memory = built(Bytes::from_mb(640), worn(8, 50), 7);
        if large_first {
            memory.allocate(HUGE).unwrap();
        }
        (0..1000)
            .map(|_| memory.allocate(1).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(small(false), small(true));
}

#[test]
fn a_huge_page_that_is_given_back_can_be_had_again() {
    let mut memory = built(Bytes::from_mb(64), worn(8, 50), 3);
    let mut huge = Vec::new();
    while let Ok(page) = memory.allocate(HUGE) {
        assert_eq!(page.offset_in(Bytes::from_mb(2)), 0);
        huge.push(page);
    }
    assert!(!huge.is_empty());
    memory.free(huge[0], HUGE);
    assert_eq!(memory.allocate(HUGE), Ok(huge[0]));
}

#[test]
fn memory_that_others_hold_is_not_free() {
    let memory = built(Bytes::from_mb(640), worn(8, 75), 1);
    let quarter = 640 * 256 / 4;
    assert!(
        memory.free_pages().abs_diff(quarter) <= 1,
        "{}",
        memory.free_pages()
    );
}

#[test]
fn a_terabyte_costs_only_what_is_touched() {
    let mut memory = built(Bytes(1 << 40), worn(8, 50), 1);
    let (low, high) = (0..10_000)
        .map(|_| memory.allocate(1).unwrap().0)
        .fold((u64::MAX, 0), |(low, high), address| {
            (low.min(address), high.max(address))
        });
    assert!(
        low < 1 << 36 && high > 15 << 36,
        "from all over: {low:#x}..{high:#x}"
    );
}

#[test]
#[should_panic(expected = "no live block")]
fn freeing_twice_is_a_bug() {
    let mut memory = built(Bytes::from_mb(4), Fragmentation::Fresh, 1);
    let block = memory.allocate(1).unwrap();
    memory.free(block, 1);
    memory.free(block, 1);
}

#[test]
fn a_block_larger_than_any_is_refused() {
    let mut memory = built(Bytes::from_mb(64), Fragmentation::Fresh, 1);
    assert!(memory.allocate(memory.largest_order() + 1).is_err());
    assert!(memory.allocate(u32::MAX).is_err());
}
