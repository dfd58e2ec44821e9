//! Stacks: they never overlap, keep their alignment, end at guard pages, and return to the pool.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use corosensei::{Coroutine, CoroutineResult};
use proptest::prelude::*;
use warmq_color::coloring::{Cache, Spread};
use warmq_color::{Pool, Stack};

const PAGE: usize = 4096;

fn level_1() -> Cache {
    Cache::new(32 << 10, 8, 64).expect("a cache")
}

fn stacks(pool: &Pool, count: usize) -> Vec<Stack> {
    (0..count).map(|_| pool.stack().expect("a stack")).collect()
}

/// Writes the lowest and the highest word that a fiber may use.
fn touch(stack: &Stack, value: usize) {
    let (top, low) = (stack.top().get(), stack.top().get() - stack.usable());
    for address in [low, top - size_of::<usize>()] {
        let word = std::ptr::with_exposed_provenance_mut::<usize>(address);
        // SAFETY: the word lies between guard page and top of a stack that this test owns.
        unsafe { word.write(value) };
    }
}

fn touched(stack: &Stack) -> [usize; 2] {
    let (top, low) = (stack.top().get(), stack.top().get() - stack.usable());
    [low, top - size_of::<usize>()].map(|address| {
        // SAFETY: as in `touch`, which has written it.
        unsafe { std::ptr::with_exposed_provenance::<usize>(address).read() }
    })
}

#[test]
fn tops_are_spread_evenly_over_the_sets() {
    let pool = Pool::of_size(16 << 10)
        .caches(vec![level_1()])
        .fibers(128)
        .pool();
    let pool = pool.expect("a pool");
    assert_eq!(pool.coloring().colors(), 32, "256 lines, 8 a set: 32 sets");
    let stacks = stacks(&pool, 130);
    let tops = stacks.iter().map(|stack| stack.top().get() as u64 - 1);
    let spread = Spread::of(level_1(), tops);
    let used = spread.counts().iter().filter(|count| **count > 0);
    let least = used.min().expect("sets");
    assert!(spread.most() - least <= 1, "{spread:?}");
}

#[test]
fn one_color_begins_at_a_page() {
    let pool = Pool::of_size(16 << 10).colors(1).pool().expect("a pool");
    for stack in stacks(&pool, 70) {
        assert_eq!((stack.top().get() % PAGE, stack.usable()), (0, 16 << 10));
    }
}

#[test]
fn too_many_fibers_for_a_cache_are_not_colored() {
    let colors = |fibers| {
        let pool = Pool::of_size(16 << 10)
            .caches(vec![level_1()])
            .fibers(fibers)
            .pool();
        pool.expect("a pool").coloring().colors()
    };
    assert_eq!([8, 9, 128, 129].map(colors), [1, 8, 32, 1]);
}

/// Loads of a switch wait for the stores of the one before to the same place of another page.
#[test]
fn fibers_that_level_2_holds_as_they_are_have_colors_if_level_1_does_not() {
    let level_2 = Cache::new(2 << 20, 16, 64).expect("a cache");
    let colors = |fibers| {
        let pool = Pool::of_size(16 << 10)
            .caches(vec![level_1(), level_2])
            .fibers(fibers)
            .pool();
        pool.expect("a pool").coloring().colors()
    };
    // 512 lines at one place of their pages are all that level 2 holds.
    assert_eq!([8, 129, 512, 513, 100_000].map(colors), [1, 16, 16, 8, 1]);
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no memory for an address space")]
fn what_makes_no_sense_is_refused_with_the_fix() {
    let error = |size, colors| {
        let pool = Pool::of_size(size)
            .colors(colors)
            .caches(vec![level_1()])
            .pool();
        pool.expect_err("refused").to_string()
    };
    let small = "a stack of 4096 bytes is too small for 64 colors: ask for 8128 bytes at least, or for \
                 fewer colors";
    assert_eq!(error(4096, 64), small);
    assert!(error(0, 1).contains("ask for 4096 bytes at least"));
    assert!(error(usize::MAX, 1).ends_with("ask for less"));
    assert!(error(usize::MAX / 100, 1).ends_with("ask for less"));
    // More than any address space: the kernel refuses, and the pool is as it was.
    let pool = Pool::of_size(1 << 50)
        .pool()
        .expect("nothing is mapped yet");
    assert!(
        pool.stack()
            .expect_err("refused")
            .to_string()
            .contains("cannot map")
    );
    assert_eq!(pool.made(), 0);
}

#[test]
fn the_stack_that_was_used_last_is_given_out_first() {
    let pool = Pool::of_size(16 << 10).keep(1).pool().expect("a pool");
    let mut all = stacks(&pool, 5);
    let (last, first) = (all.remove(2), all.remove(0));
    let (last_index, first_index) = (last.index(), first.index());
    drop(first);
    drop(last);
    // `first` may have lost its pages meanwhile; it can be used all the same.
    let again = stacks(&pool, 3);
    assert_eq!(again[0].index(), last_index);
    assert_eq!(again[1].index(), first_index);
    assert_eq!(again[2].index(), 5);
    again.iter().for_each(|stack| touch(stack, 1));
}

#[test]
fn a_stack_outlives_its_pool() {
    let pool = Pool::of_size(16 << 10).pool().expect("a pool");
    let stack = pool.stack().expect("a stack");
    drop(pool);
    touch(&stack, 7);
    assert_eq!(touched(&stack), [7, 7]);
}

/// So no set of a TLB or of level 2 has more of them than any other.
#[test]
#[cfg_attr(miri, ignore = "Miri gives back no part of a mapping")]
fn stacks_in_huge_pages_begin_at_all_pages_of_one_alike() {
    const HUGE_PAGE: usize = 2 << 20;
    let options = Pool::of_size(16 << 10);
    // SAFETY: nothing runs on these stacks.
    let pool = unsafe { options.huge_without_guards() }
        .pool()
        .expect("a pool");
    assert_eq!(pool.stride(), 20 << 10, "an odd number of pages");
    let stacks = stacks(&pool, 1_100);
    stacks
        .iter()
        .enumerate()
        .for_each(|(index, stack)| touch(stack, index));
    for (index, stack) in stacks.iter().enumerate() {
        assert_eq!(touched(stack), [index; 2]);
    }
    let places = stacks[..1_024]
        .iter()
        .map(|stack| stack.low().get() % HUGE_PAGE);
    let mut uses = std::collections::BTreeMap::new();
    places.for_each(|place| *uses.entry(place).or_insert(0) += 1);
    assert_eq!(uses.len(), HUGE_PAGE / PAGE);
    assert!(uses.values().all(|count| *count == 2));
}

#[test]
#[cfg_attr(miri, ignore = "a switch is assembly")]
fn fibers_run_on_them() {
    let pool = Pool::of_size(32 << 10).pool().expect("a pool");
    let fiber = |start: usize| {
        Coroutine::<(), usize, usize, Stack>::with_stack(
            pool.stack().expect("a stack"),
            move |yielder, ()| {
                for value in start..start + 3 {
                    yielder.suspend(value);
                }
                start
            },
        )
    };
    let mut fibers: Vec<_> = (0..100).map(fiber).collect();
    for round in 0..3 {
        for (start, fiber) in fibers.iter_mut().enumerate() {
            assert!(
                matches!(fiber.resume(()), CoroutineResult::Yield(value) if value == start + round)
            );
        }
    }
    drop(fibers);
    assert_eq!(pool.made(), 100);
}

/// A child process runs into the guard page of a stack, which ends it.
#[test]
#[cfg_attr(miri, ignore = "Miri starts no process")]
fn below_a_stack_is_a_guard_page() {
    const CHILD: &str = "WARMQ_COLOR_TEST_GUARD";
    if std::env::var_os(CHILD).is_some() {
        let pool = Pool::of_size(16 << 10).pool().expect("a pool");
        let stacks = stacks(&pool, 3);
        let below = stacks[1].top().get() - stacks[1].usable() - 1;
        // SAFETY: not sound, and meant to be so: the kernel must end this process.
        unsafe { std::ptr::with_exposed_provenance_mut::<u8>(below).write_volatile(1) };
        std::process::exit(0);
    }
    let own = std::env::current_exe().expect("this program");
    let mut child = std::process::Command::new(own);
    child
        .args(["--exact", "below_a_stack_is_a_guard_page"])
        .env(CHILD, "1");
    let ended = child.output().expect("a child").status;
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(ended.signal(), Some(11), "{ended:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn stacks_never_overlap(
        size in 1..200_000_usize, colors in 1..100_u64, count in 1..150_usize,
        huge in any::<bool>().prop_map(|huge| huge && !cfg!(miri)),
        freed in proptest::collection::vec(0..150_usize, 0..50),
    ) {
        let mut options = Pool::of_size(size).colors(colors).caches(vec![level_1()]).keep(3);
        if huge {
            // SAFETY: nothing runs on these stacks.
            options = unsafe { options.huge_without_guards() };
        }
        let Ok(pool) = options.pool() else {
            prop_assert!(size.next_multiple_of(PAGE) < 2 * PAGE + 63 * 64);
            return Ok(());
        };
        let mut stacks = stacks(&pool, count);
        for index in freed {
            if index < stacks.len() {
                drop(stacks.swap_remove(index));
            }
            stacks.push(pool.stack().expect("a stack"));
        }
        let (mut ends, mut indices) = (Vec::new(), BTreeSet::new());
        for stack in &stacks {
            prop_assert_eq!(stack.top().get() % 64, 0);
            prop_assert!(stack.usable() >= PAGE);
            prop_assert!(stack.usable() + pool.coloring().reach() as usize >= size);
            prop_assert!(indices.insert(stack.index()));
            let guard = if huge { 0 } else { PAGE };
            prop_assert_eq!(stack.top().get() - stack.usable() - guard, stack.low().get());
            ends.push((stack.low().get(), stack.top().get()));
            touch(stack, stack.index());
        }
        ends.sort_unstable();
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        for stack in &stacks {
            prop_assert_eq!(touched(stack), [stack.index(); 2]);
        }
    }
}
