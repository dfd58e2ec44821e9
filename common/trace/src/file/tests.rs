//! Laws of the file.

use std::io::{self, Write};

use proptest::prelude::*;
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use super::{Damage, Reader, Writer};
use crate::arbitrary::records;
use crate::{Comm, Digest, Header, Names, Observer, Record};

/// A header with an empty and a repeated field.
fn header() -> Header {
    Header {
        world: "lab".to_owned(),
        machine: "four CPUs".to_owned(),
        places: vec![(0, 0), (0, 0), (1, 7)],
        names: Names {
            tasks: vec!["hog".to_owned(), "Ärger".to_owned()],
            ..Names::default()
        },
        ..Header::default()
    }
}

fn written(records: &[(Instant, Record)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header());
    records
        .iter()
        .for_each(|(at, record)| writer.see(*at, record));
    writer.finish().expect("a vector takes everything")
}

/// Everything that can be read, and the damage that stopped it.
fn read(bytes: &[u8]) -> (Vec<(Instant, Record)>, Option<Damage>) {
    let mut entries = Vec::new();
    let reader = match Reader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (entries, Some(error.damage)),
    };
    for entry in reader {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                assert!(error.offset <= bytes.len() as u64);
                assert_eq!(error.records, entries.len() as u64);
                return (entries, Some(error.damage));
            }
        }
    }
    (entries, None)
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(records in records()) {
        let bytes = written(&records);
        let (entries, damage) = read(&bytes);
        prop_assert!(damage.is_none(), "{damage:?}");
        prop_assert_eq!(entries, records);
        let again = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(again.header(), &header());
    }

    #[test]
    fn a_file_that_is_cut_anywhere_gives_a_part_of_its_records_and_an_error(records in records()) {
        let bytes = written(&records);
        for end in 0..bytes.len() {
            let (entries, damage) = read(&bytes[..end]);
            prop_assert!(matches!(damage, Some(Damage::CutOff | Damage::NotATrace | Damage::Header)));
            prop_assert!(records.starts_with(&entries));
        }
    }

    #[test]
    fn no_changed_byte_goes_unseen(
        records in records(), place in any::<prop::sample::Index>(), change in 1u8..
    ) {
        let mut bytes = written(&records);
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(read(&bytes).1.is_some());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = written(&[]);
        bytes.truncate(9);
        bytes.extend(&noise);
        prop_assert!(read(&noise).1.is_some());
        read(&bytes);
    }
}

#[test]
fn the_format_never_changes() {
    let records = [
        (
            0,
            Record::Fork {
                parent: None,
                child: TaskId(0),
                comm: Comm::new("walk"),
            },
        ),
        (
            0,
            Record::Wakeup {
                waker: CpuId(0),
                task: TaskId(0),
                target: CpuId(1),
            },
        ),
        (
            300,
            Record::Switch {
                cpu: CpuId(1),
                prev: None,
                prev_runnable: false,
                next: Some(TaskId(0)),
            },
        ),
        (
            299,
            Record::Lock {
                cpu: CpuId(1),
                lock: LockId(2),
                waited: Duration(0),
                held: Duration(129),
            },
        ),
    ]
    .map(|(at, record)| (Instant(at), record));
    let records_and_end = [
        [1, 0, 0, 0, 0xf7, 0xc2, 0xb1, 0xdb, 6, 0].as_slice(),
        &[3, 0, 0, 0, 1],
        &[4, 0xd8, 4, 1, 0, 0, 1],
        &[9, 1, 1, 2, 0, 0x81, 1],
        &[0, 4],
        &0xfea2_2cc3_17de_7f8b_u64.to_le_bytes(),
    ]
    .concat();
    let first = [b"\x89WarmQ\r\n\x01".as_slice(), &records_and_end].concat();
    assert_eq!(read(&first).0, records, "format 1 is still read");
    let about = b"\x07\x05world\x03lab\x07machine\x09four CPUs\
        \x05place\x030 0\x05place\x030 0\x05place\x031 7\
        \x04task\x03hog\x04task\x06\xc3\x84rger";
    let checksum = xxhash_rust::xxh3::xxh3_64(about).to_le_bytes();
    let second = [
        b"\x89WarmQ\r\n\x02".as_slice(),
        about,
        &checksum,
        &records_and_end,
    ];
    assert_eq!(written(&records), second.concat());
}

#[test]
fn each_damage_is_distinguished_from_the_others() {
    let mut writer = Writer::new(Vec::new(), &Header::default());
    writer.see(Instant(1), &Record::Recalculate { cpu: CpuId(0) });
    let good = writer.finish().unwrap();
    let with = |place: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[place] = byte;
        bytes
    };
    let damage = |bytes: &[u8]| read(bytes).1.expect("damage").to_string();
    assert!(damage(b"PK\x03\x04zipped").contains("no recording of WarmQ"));
    assert!(damage(&with(8, 3)).contains("format 3"));
    assert!(damage(&with(10, !good[10])).contains("header"));
    assert!(damage(&with(18, 99)).contains("kind 99"));
    assert!(damage(&with(22, 2)).contains("2 records"));
    assert!(damage(&with(23, !good[23])).contains("digest"));
    assert!(damage(&[&good[..], b"\n"].concat()).contains("follow the end"));
    let head = &good[..18];
    assert!(damage(&[head, &[10, 0, 0xff, 0xff, 4]].concat()).contains("out of its range"));
    assert!(damage(&[head, &[10], &[0xff; 10]].concat()).contains("64 bits"));
}

#[test]
fn the_digest_of_a_file_is_that_of_its_run() {
    let record = Record::RescheduleSent {
        from: CpuId(0),
        to: CpuId(1),
    };
    let cpu = CpuId(0);
    let detail = Record::Drop { cpu, reason: 3 };
    let bytes = written(&[(Instant(5), record), (Instant(6), detail)]);
    let mut digest = Digest::new();
    digest.see(Instant(5), &record);
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!(reader.digest(), &digest);
}

/// A disk with room for `0` bytes more.
struct Disk(usize);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.0.min(bytes.len());
        self.0 -= room;
        if room == 0 {
            Err(io::Error::other("full"))
        } else {
            Ok(room)
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_at_the_end() {
    for room in 0..31 {
        let mut writer = Writer::new(Disk(room), &Header::default());
        writer.see(Instant(1), &Record::Recalculate { cpu: CpuId(0) });
        assert!(writer.finish().is_err(), "room for {room} bytes");
    }
    let mut writer = Writer::new(Disk(31), &Header::default());
    writer.see(Instant(1), &Record::Recalculate { cpu: CpuId(0) });
    assert!(writer.finish().is_ok());
}
