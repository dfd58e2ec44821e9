//! Recordings that are cut or damaged: nothing panics, what stands before the damage is used, and
//! the place is said.

use proptest::prelude::*;
use warmq_recordings::{Contents, records_of};

use crate::{NAMES, bytes, read_bytes};

/// Formats whose files have an end that can be missed.
const BINARY: [&str; 5] = [
    "perf-pipe.data",
    "perf.data",
    "trace-v6.dat",
    "trace-v7-zstd.dat",
    "trace-v7.dat",
];

/// Those that say at their beginning where their events are, and what these are like.
const BEGIN_WITH_PLACES: [&str; 2] = ["perf-pipe.data", "trace-v6.dat"];

fn damage(contents: &Contents) -> Option<u64> {
    contents.damage.as_ref().map(|damage| damage.offset)
}

#[test]
fn what_is_cut_is_used_as_far_as_it_goes_and_the_place_is_said() {
    for name in BINARY {
        let whole = bytes(name);
        let (all, contents) = read_bytes(whole.clone()).expect("it is one");
        assert_eq!(damage(&contents), None, "{name}");
        let mut used = 0;
        for tenth in 1..10 {
            let cut = whole[..whole.len() * tenth / 10].to_vec();
            let length = cut.len() as u64;
            // Before the events nothing can be read.
            let Ok(mut records) = records_of(cut) else {
                continue;
            };
            let some: Vec<_> = records.by_ref().map(Result::unwrap).collect();
            let contents = records.contents().expect("it is of another program");
            assert!(some.len() <= all.len(), "{name}");
            assert!(
                damage(&contents).is_some_and(|at| at <= length),
                "{name} {tenth}"
            );
            used += 1;
        }
        assert_eq!(used > 0, BEGIN_WITH_PLACES.contains(&name), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn whatever_is_damaged_is_read_or_refused(
        which in 0..NAMES.len(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        near in any::<bool>(),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = bytes(NAMES[which]);
        // What stands at the beginning decides most.
        let reach = if near { bytes.len().min(600) } else { bytes.len() };
        for (place, byte) in places {
            let place = place.index(reach);
            bytes[place] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()) + 1);
        }
        if let Some((records, _)) = read_bytes(bytes) {
            prop_assert!(records.is_sorted_by_key(|(at, _)| *at));
        }
    }
}
