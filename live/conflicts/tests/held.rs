//! What caches hold: laws for any addresses, and the paper's arithmetic.

use proptest::prelude::*;
use warmq_coloring::{Blocks, Cache, Coloring};
use warmq_conflicts::{Frames, Held, Kind, Layout, Level, UserBlocks};

fn level(number: u8, size: u64, ways: u64) -> Level {
    let cache = Cache::new(size, ways, 64).expect("a cache");
    Level { number, cache }
}

fn first() -> Level {
    level(1, 32 << 10, 8)
}

fn blocks(stride: u64, count: u64) -> Layout {
    UserBlocks::new(0x7f00_0000_0000, stride, count)
        .expect("blocks")
        .layout()
}

fn held(level: Level, layout: &Layout) -> Held {
    Held::of(level, layout, &Frames::default())
}

#[test]
fn blocks_of_pages_fill_one_set_of_level_1_and_an_unknown_number_of_level_2() {
    let (layout, second) = (blocks(16 << 10, 200), level(2, 512 << 10, 8));
    let near = held(first(), &layout);
    assert_eq!((near.least, near.most, near.used_sets), (8, 8, Some(1)));
    assert_eq!((near.most_in_a_set, near.colors), (Some(200), Some(64)));
    assert_eq!(near.by_set, [(0, 200)]);
    let far = held(second, &layout);
    assert_eq!((far.least, far.most), (8, 200));
    // 200 blocks of pages over 16 colors of pages with 8 ways each: two colors, and twice as many.
    assert_eq!(
        (far.used_sets, far.by_frames, far.colors),
        (None, None, Some(4))
    );
}

#[test]
fn blocks_that_are_held_need_no_colors_whatever_their_stride() {
    let lines = blocks(64, 512);
    assert_eq!(held(first(), &lines).colors, Some(1));
    let coloring = Coloring::new(32, 16 << 10, first().cache);
    let colored = blocks(16 << 10, 200).colored(coloring);
    let near = held(first(), &colored);
    assert_eq!((near.least, near.colors), (200, Some(1)));
}

#[test]
fn stacks_are_colored_downwards_and_blocks_upwards() {
    let coloring = Coloring::new(2, 4096, first().cache);
    let of = |kind| Layout::new(kind, vec![0x10000, 0x11000]).colored(coloring);
    assert_eq!(of(Kind::StackPointers).addresses(), [0x10000, 0x11000 - 64]);
    assert_eq!(of(Kind::Blocks).addresses(), [0x10000, 0x11000 + 64]);
}

#[test]
fn the_stride_is_that_of_most_neighbours() {
    let layout = Layout::new(Kind::Blocks, vec![0, 10, 20, 25, 30, 40, 100]);
    assert_eq!(layout.stride(), Some(10));
    assert_eq!(Layout::new(Kind::Blocks, vec![7, 7]).stride(), None);
}

#[test]
fn blocks_of_which_there_cannot_be_any_are_refused_with_a_fix() {
    for (text, what) in [
        ("0x1000,0,8", "a stride of 0"),
        ("0x1000,4KB,0", "0 blocks"),
        ("0x1000,4KB,2000000", "2000000 blocks"),
        ("0xffffffffffff0000,1GB,100", "beyond all addresses"),
        ("1000h,4KB,8", "no address"),
        ("0x1000,4KB", "ADDRESS,STRIDE,COUNT"),
        ("0x1000,4KX,8", "not a size"),
        ("0x1000,4KB,many", "no number of blocks"),
    ] {
        let error = text.parse::<UserBlocks>().expect_err(text);
        assert!(error.contains(what), "{text}: {error}");
    }
}

prop_compose! {
    fn any_level()(number in 1_u8..4, sets in 0_u32..11, ways in 1_u64..17) -> Level {
        level(number, (64 << sets) * ways, ways)
    }
}

proptest! {
    #[test]
    fn no_more_is_held_than_there_is_and_than_there_is_room_for(
        level in any_level(),
        addresses in prop::collection::vec(0_u64..1 << 24, 1..400),
    ) {
        let layout = Layout::new(Kind::Samples, addresses);
        let held = held(level, &layout);
        prop_assert!(held.least <= held.most);
        prop_assert!(held.most <= layout.lines(64).len() as u64);
        prop_assert!(held.most <= level.cache.lines());
        if let Some(used) = held.used_sets {
            prop_assert!(held.least <= used * held.ways);
            prop_assert_eq!(held.by_set.len() as u64, used);
        }
    }

    #[test]
    fn colors_never_lose_lines_of_level_1(pages in 1_u64..20, count in 1_u64..2_000) {
        let layout = blocks(pages << 12, count);
        let blocks = Blocks::new(count, pages << 12);
        let coloring = Coloring::of(blocks, &[first().cache]);
        let (plain, colored) = (held(first(), &layout), held(first(), &layout.colored(coloring)));
        prop_assert!(colored.least >= plain.least);
        let fits = count <= 512;
        prop_assert_eq!(colored.least == count, fits, "{} colors", coloring.colors());
    }
}
