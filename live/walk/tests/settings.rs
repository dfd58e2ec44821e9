//! Settings that allow no measurement are rejected, with the field and the fix.

use warmq_units::{Bytes, Duration};
use warmq_walk::{Geometry, WalkError, WalkSettings};

const LEVEL_2: Geometry = Geometry {
    level: 2,
    size: Bytes::from_mb(2),
    ways: 16,
    line: Bytes(64),
};

/// Spoils one field.
type Change = &'static dyn Fn(&mut WalkSettings);

fn refused(change: impl Fn(&mut WalkSettings)) -> String {
    let mut settings = WalkSettings::default();
    change(&mut settings);
    match settings.check(LEVEL_2) {
        Err(error @ WalkError::Setting { .. }) => error.to_string(),
        other => panic!("{settings:?} gave {other:?}"),
    }
}

#[test]
fn the_default_settings_are_good() {
    WalkSettings::default().check(LEVEL_2).unwrap();
}

#[test]
fn each_nonsense_is_refused_by_its_name() {
    let table: [(&str, Change); 13] = [
        ("blocks", &|s| s.blocks = vec![]),
        ("blocks", &|s| s.blocks = vec![256, 0]),
        ("blocks", &|s| s.blocks = vec![u32::MAX]),
        ("block_size", &|s| s.block_size = Bytes(8000)),
        ("block_size", &|s| s.block_size = Bytes(64)),
        ("lines", &|s| s.lines = 0),
        ("lines", &|s| s.lines = 128),
        ("colors", &|s| s.colors = vec![1, 3]),
        ("colors", &|s| s.colors = vec![256]),
        ("color_bits", &|s| s.color_bits = Some(12)),
        ("repetitions", &|s| s.repetitions = 0),
        ("min_time", &|s| s.min_time = Duration::ZERO),
        ("search_time", &|s| s.search_time = Duration::from_s(601)),
    ];
    for (field, change) in table {
        let message = refused(change);
        assert!(message.starts_with(&format!("{field} = ")), "{message}");
        assert!(message.contains("; write "), "no fix: {message}");
    }
}

#[test]
fn what_is_refused_reads_as_a_sentence() {
    assert_eq!(
        refused(|s| s.colors = vec![1, 6]),
        "colors = [1, 6]: colors are bits of an address, so their number is a power of two; \
         write 1,4,32"
    );
    assert_eq!(
        refused(|s| s.color_bits = Some(9)),
        "color_bits = 9: bit 9 is zero in the address of every block; write 13 or more"
    );
}
