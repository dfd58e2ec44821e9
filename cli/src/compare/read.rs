//! A recording from its file.

use std::path::Path;

use warmq_metrics::compare::Recording;
use warmq_recordings::{Records, Unreadable};

use crate::failure::Failure;
use crate::recording;

/// Records of a recording, which are all in memory: 3 GB of them. Half a million a second are much.
const MOST_RECORDS: usize = 50_000_000;

/// The recording in the file called `name`.
///
/// # Errors
/// It is not there, or what is wrong with it: where, and how to fix it.
pub fn read(name: &str) -> Result<Recording, Failure> {
    let file = Path::new(name);
    let records = recording::Recording::open(file)?.records()?;
    let recording = of(records).map_err(|error| recording::unreadable(file, &error))?;
    if recording.records.len() > MOST_RECORDS {
        let what = format!("{name}: it has more than {MOST_RECORDS} records");
        return Err(Failure::usage(what, "record less, or a shorter time"));
    }
    Ok(recording)
}

fn of(records: Records) -> Result<Recording, Unreadable> {
    let header = records.header().clone();
    let records = records.take(MOST_RECORDS + 1).collect::<Result<_, _>>()?;
    Ok(Recording { header, records })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;
    use warmq_metrics::compare::{Extent, compare};
    use warmq_recordings::Recorded;
    use warmq_trace::file::{ReadError, Writer};
    use warmq_trace::{Header, Observer, Record};
    use warmq_units::{CpuId, Instant, TaskId};

    use super::*;

    fn of_bytes(bytes: &[u8]) -> Result<Recording, Unreadable> {
        let mut file = tempfile::tempfile()?;
        file.write_all(bytes)?;
        of(Recorded::of(file)?.records()?)
    }

    fn of_error(error: &Unreadable) -> &ReadError {
        match error {
            Unreadable::Own(error) => error,
            other => panic!("{other}"),
        }
    }

    /// A file with some tasks that take turns.
    fn written() -> Vec<u8> {
        let mut header = Header::default();
        header.names.tasks = vec!["hog".to_owned()];
        let mut writer = Writer::new(Vec::new(), &header);
        for number in 0..3 {
            let task = TaskId(number);
            let role = Record::Role {
                task,
                table: 0,
                number,
            };
            writer.see(Instant(0), &role);
        }
        for turn in 0..40 {
            let switch = Record::Switch {
                cpu: CpuId(0),
                prev: Some(TaskId(turn % 3)),
                prev_runnable: true,
                next: Some(TaskId((turn + 1) % 3)),
            };
            writer.see(Instant(u64::from(turn) * 1_000_000), &switch);
        }
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_refused_with_the_byte() {
        let whole = written();
        assert_eq!(of_bytes(&whole).unwrap().records.len(), 43);
        // With less of it nobody knows what it is.
        for end in 8..whole.len() {
            let error = of_bytes(&whole[..end]).unwrap_err();
            let error = of_error(&error);
            assert_eq!(error.offset, end as u64);
            assert!(error.to_string().contains(&format!("(byte {end}, ")));
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_refused_or_compared_but_nothing_panics(
            place in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            end in any::<prop::sample::Index>(),
        ) {
            let whole = of_bytes(&written()).unwrap();
            let mut bytes = written();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
            if let Ok(damaged) = of_bytes(&bytes) {
                let _ = compare([&whole, &damaged], Extent::default());
            }
        }
    }
}
