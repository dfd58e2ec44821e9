//! What users name: symbols of a program, and samples.
#![allow(unsafe_code)]

use std::path::Path;

use warmq_conflicts::{Process, UserSymbol, hit_lines, samples, symbol};

/// An array that the tests find by its name.
#[unsafe(no_mangle)]
pub static WARMQ_CONFLICTS_SLOTS: [u64; 4096] = [1; 4096];

#[test]
fn an_array_of_this_program_is_found_by_its_symbol() {
    let process = Process::look(Path::new("/"), std::process::id()).expect("our own process");
    let found = symbol(&process, "WARMQ_CONFLICTS_SLOTS").expect("it is there");
    let address = std::hint::black_box(&WARMQ_CONFLICTS_SLOTS).as_ptr() as u64;
    assert_eq!(found, (address, 4096 * 8));
    let missing = symbol(&process, "no_such_symbol").expect_err("none");
    assert!(
        missing.to_string().contains("no symbol no_such_symbol"),
        "{missing}"
    );
}

#[test]
fn a_symbol_has_as_many_blocks_as_it_has_room_for_or_as_are_named() {
    let blocks = |text: &str, size| {
        let symbol: UserSymbol = text.parse().expect(text);
        symbol
            .blocks(0x1000, size)
            .map(|blocks| blocks.layout().addresses().len())
    };
    assert_eq!(blocks("slots,4KB", 32 << 10).unwrap(), 8);
    assert_eq!(blocks("slots,4KB,100", 8).unwrap(), 100);
    assert!(
        blocks("slots,4KB", 8)
            .unwrap_err()
            .to_string()
            .contains("8 bytes")
    );
    for wrong in ["slots", ",4KB", "slots,0", "slots,4KB,0", "slots,4KB,1,2"] {
        assert!(wrong.parse::<UserSymbol>().is_err(), "{wrong}");
    }
}

/// The lines of 64 bytes that the samples in `text` hit, or why there are none.
fn hit(text: &str) -> Result<Vec<u64>, String> {
    let lines = samples("a.txt", text).and_then(|all| hit_lines("a.txt", all, 64));
    lines
        .map(|layout| layout.addresses().to_vec())
        .map_err(|error| error.to_string())
}

#[test]
fn lines_with_more_than_one_sample_are_hot() {
    let text = "  7f0000001040\n7f0000001048 more\n\n0x7f0000002000\n0\n";
    assert_eq!(hit(text).expect("samples"), [0x7f00_0000_1040]);
    assert_eq!(hit("1000\n2000\n").expect("samples").len(), 2);
}

#[test]
fn samples_without_addresses_are_refused_with_their_line() {
    let why = |text| hit(text).expect_err("refused");
    assert!(why("1000\nmain+0x7\n").contains("a.txt: line 2: `main+0x7`"));
    assert!(why("0\n0\n").contains("no sample with an address"));
    assert!(why("").contains("no sample with an address"));
}
