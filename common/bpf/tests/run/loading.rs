//! What a loader does, as data.

use std::collections::BTreeMap;

use warmq_bpf::{Entry, Loading, Object, Package, Write, is_object};

const SIZED: &[u8] = include_bytes!("../programs/sized.bpf.o");

fn sized() -> Object {
    Object::read(SIZED).expect("an object")
}

fn write(map: &str, at: usize, bytes: &[u8]) -> Write {
    let (map, bytes) = (map.to_owned(), bytes.to_vec());
    Write { map, at, bytes }
}

#[test]
fn nothing_is_done_to_an_object_that_is_as_it_was() {
    assert_eq!(Loading::between(&sized(), &sized()), Loading::default());
}

#[test]
fn what_differs_is_named_by_maps_and_programs() {
    let mut set = sized();
    set.resize("queue", 7).expect("a map");
    set.resize("per_cpu", 3).expect("an array");
    set.set("one[0]", 0x0100_00ff).expect("a number");
    set.set("per_cpu[0].second", 1).expect("a number");
    set.turn_on("on_switch").expect("a program");
    set.take_out("running");
    let loading = Loading::between(&sized(), &set);
    assert_eq!(loading.elements, BTreeMap::from([("queue".into(), 7)]));
    let sizes = BTreeMap::from([(".data.per_cpu".into(), 48)]);
    assert_eq!(loading.sizes, sizes);
    let programs = [("on_switch".into(), true), ("running".into(), false)];
    assert_eq!(loading.programs, BTreeMap::from(programs));
    let expected = [
        write(".bss", 0, &[255]),
        write(".bss", 3, &[1]),
        write(".data.per_cpu", 8, &[1]),
        write("sized", 8, &[0; 8]),
    ];
    assert_eq!(loading.writes.len(), expected.len());
    for one in expected {
        assert!(loading.writes.contains(&one), "{one:?}: {loading:?}");
    }
}

#[test]
fn a_package_is_a_script_of_its_loader_and_is_read_again() {
    let entry = Entry {
        map: "unused".to_owned(),
        key: Vec::new(),
        value: vec![b'\n', 0, 255],
    };
    let package = Package {
        loading: Loading {
            entries: vec![entry],
            cpu: Some(3),
            ..Loading::default()
        },
        object: SIZED,
    };
    let bytes = package.bytes("/bin/loader");
    assert!(bytes.starts_with(b"#!/bin/loader\n{"));
    assert_eq!(Package::read(&bytes), Ok(package));
    assert!(!is_object(&bytes));
}

#[test]
fn an_object_alone_is_a_package_for_which_nothing_else_is_done() {
    let package = Package::read(SIZED).expect("an object");
    assert_eq!(package.loading, Loading::default());
    assert_eq!(package.object, SIZED);
}

#[test]
fn what_is_no_package_is_refused() {
    for (bytes, why) in [
        (&b""[..], "no compiled scheduler"),
        (b"#!/bin/sh\n", "no compiled scheduler"),
        (b"one\ntwo\nthree", "no compiled scheduler"),
        (b"#!/bin/sh\nexit 1\nmore", "what its loader does"),
        (b"\x7fELF", "no compiled scheduler"),
    ] {
        let refused = Package::read(bytes).expect_err("it is none");
        assert!(refused.contains(why), "{refused}");
    }
}
