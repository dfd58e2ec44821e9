//! Colored blocks: a map from names to headers, whatever is done with it.

use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use warmq_color::coloring::{Cache, Coloring, Spread};
use warmq_color::{Arena, Id};

fn level_1() -> Cache {
    Cache::new(32 << 10, 8, 64).expect("a cache")
}

fn colored<T>(block: usize, colors: u64) -> Arena<T> {
    let coloring = Coloring::new(colors, block as u64, level_1());
    Arena::with_coloring(block, coloring).expect("an arena")
}

#[test]
fn headers_are_spread_evenly_over_the_sets() {
    let mut arena = colored(8192, 64);
    for number in 0..500_u64 {
        arena.insert(number).expect("memory");
    }
    let addresses = arena
        .iter()
        .map(|(_, header)| std::ptr::from_ref(header).addr() as u64);
    let spread = Spread::of(level_1(), addresses);
    let least = spread.counts().iter().min().expect("sets");
    assert!(spread.most() - least <= 1, "{spread:?}");
}

#[test]
fn headers_that_do_not_fit_are_refused_with_the_fix() {
    let coloring = Coloring::new(64, 4096, level_1());
    let error = Arena::<[u8; 100]>::with_coloring(4096, coloring)
        .err()
        .expect("refused");
    assert_eq!(
        error.to_string(),
        "a header of 100 bytes and 64 colors do not fit into blocks of 4096: ask for blocks of 4133 \
         bytes at least, or for fewer colors"
    );
    assert!(Arena::<u8>::new(usize::MAX, 1).is_err());
    assert!(Arena::<u8>::new(0, 1).is_err());
}

#[test]
fn each_header_is_dropped_once() {
    let (token, mut arena) = (Rc::new(()), colored(4096, 4));
    let ids: Vec<Id> = (0..100)
        .map(|_| arena.insert(Rc::clone(&token)).expect("memory"))
        .collect();
    drop(arena.remove(ids[3]));
    assert_eq!(Rc::strong_count(&token), 100);
    assert!(arena.remove(ids[3]).is_none());
    drop(arena);
    assert_eq!(Rc::strong_count(&token), 1);
}

#[test]
fn a_header_of_a_large_alignment_keeps_it() {
    #[repr(align(256))]
    struct Wide(u8);
    let mut arena = colored(8192, 16);
    for number in 0..40 {
        let id = arena.insert(Wide(number)).expect("memory");
        let header = arena.get(id).expect("a header");
        assert_eq!(
            (std::ptr::from_ref(header).addr() % 256, header.0),
            (0, number)
        );
    }
}

#[derive(Clone, Debug)]
enum Act {
    Insert(u64),
    Remove(usize),
    Write(usize, u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        any::<u64>().prop_map(Act::Insert),
        any::<usize>().prop_map(Act::Remove),
        (any::<usize>(), any::<u8>()).prop_map(|(which, byte)| Act::Write(which, byte)),
    ];
    proptest::collection::vec(act, 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn it_is_a_map(acts in acts(), pages in 1..4_usize, colors in 1..40_u64) {
        let mut arena: Arena<u64> = colored(pages << 12, colors);
        let (mut known, mut names) = (BTreeMap::new(), Vec::new());
        for act in acts {
            let named = |which: usize| names.get(which.checked_rem(names.len())?).copied();
            match act {
                Act::Insert(value) => {
                    let id = arena.insert(value).expect("memory");
                    arena.bytes_mut(id).expect("bytes").fill(value as u8);
                    prop_assert!(known.insert(id, (value, value as u8)).is_none());
                    names.push(id);
                }
                Act::Remove(which) => if let Some(id) = named(which) {
                    let expected = known.remove(&id).map(|(value, _)| value);
                    prop_assert_eq!(arena.remove(id), expected);
                },
                Act::Write(which, byte) => if let Some(id) = named(which) {
                    let bytes = arena.bytes_mut(id);
                    prop_assert_eq!(bytes.is_some(), known.contains_key(&id));
                    if let Some(bytes) = bytes {
                        prop_assert!(bytes.len() + 8 + 39 * 64 >= pages << 12);
                        bytes.fill(byte);
                        known.get_mut(&id).expect("known").1 = byte;
                    }
                },
            }
        }
        prop_assert_eq!(arena.len(), known.len());
        let found: BTreeMap<Id, u64> = arena.iter().map(|(id, value)| (id, *value)).collect();
        prop_assert!(found.iter().eq(known.iter().map(|(id, (value, _))| (id, value)).collect::<Vec<_>>()));
        for (id, (_, byte)) in known {
            prop_assert!(arena.bytes_mut(id).expect("bytes").iter().all(|found| *found == byte));
        }
    }
}
