//! The Rust side, on the kernel that there is: it must hold with a scheduler and without one.

use std::thread;

use proptest::prelude::*;
use warmq_hint::{Answer, Scope, current, enter, leave, listening, pack, unpack};

#[test]
fn a_hint_is_the_pair_plus_one() {
    // tests/c/packing.c has the same table.
    let table = [
        ((0, 0), 1),
        ((0, 1), 2),
        ((1, 0), 0x1_0000_0001),
        ((7, 42), 0x7_0000_002b),
        ((0, u32::MAX), 0x1_0000_0000),
        ((u32::MAX, 0), 0xffff_ffff_0000_0001),
        ((u32::MAX, u32::MAX - 1), u64::MAX),
    ];
    for ((app, fragment), hint) in table {
        assert_eq!(pack(app, fragment).map(u64::from), Some(hint));
    }
    assert_eq!(pack(u32::MAX, u32::MAX), None);
}

proptest! {
    #[test]
    fn a_hint_has_its_pair(app: u32, fragment: u32) {
        prop_assume!((app, fragment) != (u32::MAX, u32::MAX));
        let hint = pack(app, fragment).expect("not the reserved pair");
        prop_assert_eq!(unpack(hint), (app, fragment));
        enter(app, fragment);
        prop_assert_eq!(current(), Some((app, fragment)));
    }
}

#[test]
fn the_reserved_pair_changes_nothing() {
    enter(1, 2);
    assert_eq!(enter(u32::MAX, u32::MAX), Answer::Reserved);
    assert_eq!(current(), Some((1, 2)));
    let scope = Scope::enter(u32::MAX, u32::MAX);
    assert_eq!(scope.answer(), Answer::Reserved);
    drop(scope);
    assert_eq!(current(), Some((1, 2)));
}

#[test]
fn the_answer_is_the_same_whoever_asks() {
    let heard = listening();
    assert_eq!(enter(1, 2).is_heard(), heard);
    assert_eq!(leave().is_heard(), heard);
    assert_eq!(Scope::enter(1, 2).answer().is_heard(), heard);
}

#[test]
fn scopes_nest() {
    assert_eq!(current(), None);
    let outer = Scope::enter(1, 1);
    {
        let _inner = Scope::enter(1, 2);
        assert_eq!(current(), Some((1, 2)));
    }
    assert_eq!(current(), Some((1, 1)));
    drop(outer);
    assert_eq!(current(), None);
}

#[test]
fn a_scope_goes_back_whatever_was_entered_in_it() {
    enter(1, 1);
    {
        let _scope = Scope::enter(1, 2);
        enter(1, 3);
        leave();
    }
    assert_eq!(current(), Some((1, 1)));
}

#[test]
fn a_scope_ends_with_a_panic() {
    enter(1, 1);
    let ended = std::panic::catch_unwind(|| {
        let _scope = Scope::enter(1, 2);
        panic!("on purpose");
    });
    assert!(ended.is_err());
    assert_eq!(current(), Some((1, 1)));
}

#[test]
fn every_thread_has_its_own_hint() {
    thread::scope(|threads| {
        for app in 0..64 {
            threads.spawn(move || {
                assert_eq!(current(), None);
                for fragment in 0..1000 {
                    enter(app, fragment);
                    assert_eq!(current(), Some((app, fragment)));
                }
            });
        }
    });
}
