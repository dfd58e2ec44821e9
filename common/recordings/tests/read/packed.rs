//! What `perf record -z` writes: records that zstd compressed.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::{bytes, read_bytes};

const RECORDS_AT: usize = 40;
const COMPRESSED: u32 = 81;

/// The same file, whose records are compressed in pieces of so many bytes, each a frame.
fn packed(whole: &[u8], piece: usize) -> Vec<u8> {
    let number = |at: usize| {
        let bytes: [u8; 8] = whole[at..at + 8].try_into().expect("eight");
        u64::from_le_bytes(bytes) as usize
    };
    let (begin, length) = (number(RECORDS_AT), number(RECORDS_AT + 8));
    let mut records = Vec::new();
    for piece in whole[begin..begin + length].chunks(piece) {
        let packed = compress_to_vec(piece, CompressionLevel::Fastest);
        records.extend_from_slice(&COMPRESSED.to_le_bytes());
        records.extend_from_slice(&[0, 0]);
        records.extend_from_slice(&(packed.len() as u16 + 8).to_le_bytes());
        records.extend_from_slice(&packed);
    }
    let mut file = whole[..begin].to_vec();
    file[RECORDS_AT + 8..RECORDS_AT + 16].copy_from_slice(&(records.len() as u64).to_le_bytes());
    file.extend_from_slice(&records);
    // Sections of features follow, whose places are by offsets from the beginning.
    let shift = (begin + records.len()) as i64 - (begin + length) as i64;
    let mut rest = whole[begin + length..].to_vec();
    let first = u64::from_le_bytes(rest[..8].try_into().expect("eight")) as usize;
    let list = first - (begin + length);
    for place in (0..list).step_by(16) {
        let at: [u8; 8] = rest[place..place + 8].try_into().expect("eight");
        let moved = u64::from_le_bytes(at).wrapping_add_signed(shift);
        rest[place..place + 8].copy_from_slice(&moved.to_le_bytes());
    }
    file.extend_from_slice(&rest);
    file
}

#[test]
fn compressed_records_are_those_that_were_compressed() {
    let whole = bytes("perf.data");
    let (records, contents) = read_bytes(whole.clone()).expect("it is one");
    for piece in [1_000, 5_555, 60_000] {
        let (unpacked, of) = read_bytes(packed(&whole, piece)).expect("it is one");
        assert_eq!(of.damage, None, "{piece}");
        assert_eq!(unpacked.len(), records.len(), "{piece}");
        assert_eq!(unpacked, records, "{piece}");
        assert_eq!(of.cpus, contents.cpus);
    }
}
