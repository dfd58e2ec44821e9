//! The simulated walk.

use std::collections::BTreeMap;

use warmq_machine::description::{
    CacheDescription, Coherence, CpuPlace, Inclusion, MachineDescription, MemoryDescription,
    Replacement,
};
use warmq_units::{Address, Bytes, CpuId, Cycles, Duration, Hertz, Seed};
use warmq_walk::{
    Backing, Geometry, Known, Layout, Placement, Search, SimulatedWalk, Spread, Translation,
    Visits, WalkFacts, WalkRow, list_order, measure_visits, simulate_walk,
};

/// One CPU at 1 GHz, so that a cycle is a nanosecond: 4 KB direct-mapped, then 64 KB in 4 ways.
fn machine() -> MachineDescription {
    let cache = |level, kb, ways, latency| CacheDescription {
        level,
        size: Bytes::from_kb(kb),
        ways,
        line: Bytes(64),
        latency: Cycles(latency),
        replacement: Replacement::Lru,
        inclusion: Inclusion::NonInclusive,
        cpus: vec![CpuId(0)],
    };
    MachineDescription {
        name: "tiny".into(),
        title: "One CPU".into(),
        clock: Hertz::from_khz(1_000_000),
        cpus: vec![CpuPlace {
            socket: 0,
            llc: 0,
            core: 0,
        }],
        caches: vec![cache(1, 4, 1, 2), cache(2, 64, 4, 10)],
        coherence: Coherence::Bus {
            line_transfer: Duration::ZERO,
            address_only: Duration::ZERO,
            cache_to_cache: Duration::from_ns(100),
            crossing: None,
        },
        memory: MemoryDescription {
            size: Bytes::from_mb(64),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(2),
            latency: Duration::from_ns(100),
            dma_into_llc: false,
        },
        miss_overlap: 4,
        smt_speed: 1_000,
        priorities: Vec::new(),
        capacities: Vec::new(),
        nodes: Vec::new(),
        node_distances: Vec::new(),
        card: None,
        steals: Vec::new(),
        costs: BTreeMap::new(),
        sources: BTreeMap::new(),
        left_out: Vec::new(),
    }
}

/// A walk over `blocks` neighbouring blocks, as if it had been measured.
fn walk(blocks: u32, colors: u32, lines: u32) -> (WalkFacts, WalkRow) {
    let cache = Geometry::to_color(&machine(), CpuId(0)).unwrap();
    let color_bits = cache.first_free_bit();
    let block_size = Bytes::from_kb(8);
    let layout = Layout {
        block_size,
        line: Bytes(64),
        lines,
        colors,
        color_bits,
    };
    let starts: Vec<Address> = (0..blocks)
        .map(|index| Address(u64::from(index) << 13))
        .collect();
    let visits = layout.visits(&starts, &list_order(blocks, Seed(1)));
    let row = WalkRow {
        blocks,
        colors,
        needed_colors: 1,
        ns_per_visit: Spread::of(&[1.0]).unwrap(),
        repetitions: 1,
        disturbed: 0,
        visits: visits.iter().map(|visit| visit.0).collect(),
    };
    let facts = WalkFacts {
        cpu: 0,
        block_size,
        lines,
        cache,
        first_free_bit: color_bits,
        color_bits,
        huge_pages_asked: true,
        pages: Backing::Huge,
        fit_without_colors: 8,
        sets: Search {
            by: Known::Offset,
            why: None,
            pages_wanted: 0,
            pages_known: 0,
            sets: 256,
            sets_at_one_line: 8,
            questions: 0,
            attempts: 0,
            seconds: 0.0,
        },
        seed: 1,
        min_time_ns: 1,
    };
    (facts, row)
}

/// With sets that follow from the addresses.
fn simulated(blocks: u32, colors: u32, lines: u32) -> (f64, f64) {
    let (facts, row) = walk(blocks, colors, lines);
    let placement = Placement::Offset(facts.cache);
    match simulate_walk(&machine(), CpuId(0), &facts, &placement, &row, None)[..] {
        [one] => (one.ns_per_visit, one.miss_ratio),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_that_fits_costs_the_latency_of_the_level_it_fits_into() {
    // One block: level 1. Eight blocks: two sets of four ways in level 2, one set in level 1.
    assert_eq!(simulated(1, 1, 1), (2.0, 0.0));
    assert_eq!(simulated(8, 1, 1), (10.0, 0.0));
}

#[test]
fn twice_as_many_blocks_as_fit_miss_always_and_two_colors_cure_it() {
    assert_eq!(simulated(16, 1, 1), (100.0, 1.0));
    assert_eq!(simulated(16, 2, 1), (10.0, 0.0));
    // Equation 3: 32 blocks of 8 KB in 64 KB need four colors; two do not help.
    assert_eq!(simulated(32, 2, 1), (100.0, 1.0));
    assert_eq!(simulated(32, 4, 1), (10.0, 0.0));
}

#[test]
fn further_lines_hide_behind_the_pointer_until_too_many_are_under_way() {
    assert_eq!(simulated(8, 1, 4).0, 10.0);
    assert_eq!(simulated(8, 1, 8).0, 20.0);
}

#[test]
fn translation_is_added_to_every_visit() {
    let (facts, row) = walk(8, 1, 1);
    let translation = Translation {
        stride: Bytes(8192),
        table: vec![(8, 3.0)],
    };
    let placement = Placement::Offset(facts.cache);
    let some = Some(&translation);
    let simulated = simulate_walk(&machine(), CpuId(0), &facts, &placement, &row, some);
    let expected = SimulatedWalk {
        ns_per_visit: 13.0,
        translation_ns: 3.0,
        miss_ratio: 0.0,
    };
    assert_eq!(simulated, [expected]);
}

#[test]
fn unknown_sets_give_the_best_and_the_worst_that_is_possible() {
    // 16 blocks overflow the sets that their addresses would choose, twice over. Spread over all
    // sets they fit; in one set they always miss, with and without colors of their own lines.
    for (blocks, colors, best, worst) in
        [(16, 1, 10.0, 100.0), (1, 1, 2.0, 2.0), (64, 2, 10.0, 100.0)]
    {
        let (facts, row) = walk(blocks, colors, 1);
        let placement = Placement::Unknown(facts.cache);
        let walks = simulate_walk(&machine(), CpuId(0), &facts, &placement, &row, None);
        let times: Vec<f64> = walks.iter().map(|walk| walk.ns_per_visit).collect();
        assert_eq!(times, [best, worst], "{blocks} blocks, {colors} colors");
    }
}

fn visits(addresses: impl Iterator<Item = u64>) -> Visits {
    Visits::of(&addresses.collect::<Vec<u64>>(), Bytes(64)).expect("some addresses")
}

#[test]
fn lines_at_one_place_of_pages_miss_in_level_1_and_within_a_range_in_level_2() {
    let same = visits((0..10).map(|page| 0x7f00_0000_0840 + (page << 16)));
    let walks = same.simulate(&machine(), CpuId(0));
    let [best, worst] = &walks[..] else {
        panic!("a range: {walks:?}")
    };
    // Four ways hold no ten lines of a set; a memory of 100 ns is behind.
    assert_eq!(
        (best.missed[&1], best.missed[&2], best.ns_per_visit),
        (1.0, 0.0, 10.0)
    );
    assert_eq!(
        (worst.missed[&1], worst.missed[&2], worst.ns_per_visit),
        (1.0, 1.0, 100.0)
    );
}

#[test]
fn lines_in_sets_by_lot_miss_in_level_2_between_the_best_and_the_worst() {
    let mut seen = Vec::new();
    for pages in [10, 100, 400] {
        let same = visits((0..pages).map(|page| 0x840 + (page << 16)));
        let walks = same.simulate(&machine(), CpuId(0));
        let lot = same.by_lot(&machine(), CpuId(0)).expect("caches");
        let missed = lot.missed[&2];
        assert!(
            missed >= walks[0].missed[&2] && missed <= walks[1].missed[&2],
            "{lot:?}"
        );
        // Level 1 has none of them; level 2 takes 10 ns, memory 100.
        assert!(
            (lot.missed_ns - (10.0 + 90.0 * missed)).abs() < 0.01,
            "{lot:?}"
        );
        seen.push(missed);
    }
    assert!(seen.is_sorted() && seen[2] > seen[0], "{seen:?}");
}

#[test]
fn stops_at_the_same_place_of_a_page_as_the_one_before_are_counted() {
    let of = |places: u64| visits((0..64).map(|page| (page << 12) + page % places * 64));
    assert_eq!(of(1).at_the_same_place(), 1.0);
    assert_eq!(of(64).at_the_same_place(), 0.0);
    let half = of(2).at_the_same_place();
    assert!((0.2..0.8).contains(&half), "{half}");
    assert_eq!(visits([64].into_iter()).at_the_same_place(), 1.0);
}

#[test]
fn lines_at_places_of_their_own_are_held_by_level_1() {
    let spread = visits((0..10).map(|page| 0x7f00_0000_0000 + (page << 16) + page * 64));
    for walk in spread.simulate(&machine(), CpuId(0)) {
        assert_eq!((walk.missed[&1], walk.ns_per_visit), (0.0, 2.0), "{walk:?}");
    }
}

#[test]
fn lines_are_visited_once_and_keep_their_pages_and_places() {
    let of = |addresses: &[u64]| Visits::of(addresses, Bytes(64));
    let far = of(&[0x1_0000_0040, 0x5_0000_0080, 0x5_0000_0040]);
    assert_eq!(far, of(&[0x1040, 0x1044, 0x2040, 0x2080, 0x2081]));
    assert_ne!(far, of(&[0x1040, 0x2040, 0x3080]));
    assert_eq!(far.map(|visits| visits.pages()), Some(2));
    assert_eq!(of(&[]), None);
}

#[test]
fn copies_are_timed_for_each_layout() {
    let layouts =
        [1, 64].map(|lines| visits((0..100).map(|page| (page << 12) + page % lines * 64)));
    let measured = measure_visits(&layouts, None, 2, Duration::from_ms(1)).expect("measured");
    assert_eq!(measured.len(), 2);
    assert!(measured.iter().all(|spread| spread.min > 0.0));
}
