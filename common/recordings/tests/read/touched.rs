//! Addresses of data in a profile of perf: `perf record -e page-faults -e mem:0x600000000040/1:w`
//! with `-c 1 -d --phys-data`, of a program that writes to byte 64 of 40 blocks of 16 KB, three
//! times, and gives them back in between.

use std::fs::{self, File};
use std::io::Write;

use proptest::prelude::*;
use warmq_recordings::{Foreign, Recorded, Touched, Unreadable};

use crate::{bytes, path};

const NAME: &str = "touched.data";
const FIRST: u64 = 0x6000_0000_0040;

fn touched(bytes: &[u8]) -> Result<Vec<Touched>, Unreadable> {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(bytes).expect("it is written");
    Recorded::of(file)?.touched()
}

#[test]
fn samples_of_two_events_have_their_addresses_and_their_physical_ones() {
    let recorded = Recorded::of(File::open(path(NAME)).expect("it is there"));
    let all = recorded.and_then(|recorded| recorded.touched());
    let all = all.expect("it is whole");
    // As `perf script` counts them.
    assert_eq!(all.len(), 149);
    assert!(all.iter().all(|touched| touched.process == all[0].process));
    let of_blocks = all.iter().filter(|touched| touched.address >= FIRST);
    let blocks = of_blocks.filter(|touched| touched.address < FIRST + 40 * 0x4000);
    let (faults, writes): (Vec<&Touched>, Vec<&Touched>) =
        blocks.partition(|touched| touched.physical.is_none());
    // A page that is not there yet is nowhere.
    assert_eq!(faults.len(), 120);
    assert!(
        faults
            .iter()
            .all(|touched| (touched.address - FIRST).is_multiple_of(0x4000))
    );
    assert_eq!(writes.len(), 3);
    assert!(writes.iter().all(|touched| touched.address == FIRST));
    assert!(
        writes
            .iter()
            .all(|touched| touched.physical.is_some_and(|at| at % 4096 == 64))
    );
}

#[test]
fn what_has_no_addresses_is_said_to_have_none_and_what_is_no_profile_is_refused() {
    // Tracepoints of the scheduler.
    assert_eq!(touched(&bytes("perf.data")).expect("a profile"), []);
    let trace = touched(&bytes("trace-v7.dat"));
    assert!(
        matches!(trace, Err(Unreadable::NotOne(Foreign::TraceDat))),
        "{trace:?}"
    );
    let text = touched(b"600000000040\n");
    assert!(matches!(text, Err(Unreadable::NotOne(_))), "{text:?}");
}

#[test]
fn a_profile_that_is_cut_off_is_refused_with_the_place() {
    let whole = bytes(NAME);
    for tenth in 1..10 {
        let length = whole.len() * tenth / 10;
        let Err(Unreadable::Damaged { damage, .. }) = touched(&whole[..length]) else {
            panic!("{tenth} of 10 were read");
        };
        assert!(damage.offset <= whole.len() as u64, "{damage}");
    }
    // Of a compressed one the end is missing.
    let packed = fs::read(path(NAME)).expect("it is there");
    let cut = touched(&packed[..packed.len() / 2]);
    assert!(matches!(cut, Err(Unreadable::Damaged { .. })), "{cut:?}");
}

proptest! {
    #[test]
    fn whatever_is_damaged_is_read_or_refused(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = bytes(NAME);
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(all) = touched(&bytes) {
            prop_assert!(all.len() <= bytes.len());
        }
    }
}
