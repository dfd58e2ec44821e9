//! Bytes that were compressed, of known length.

use std::io::Read;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

/// What was compressed by `by`, which has `length` bytes at most.
///
/// # Errors
/// Why it cannot be unpacked.
pub(crate) fn unpack(bytes: &[u8], by: &str, length: usize) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let read = match by {
        "zstd" => {
            let decoder = StreamingDecoder::new(bytes).map_err(|error| error.to_string())?;
            decoder.take(length as u64).read_to_end(&mut unpacked)
        }
        "zlib" => {
            let decoder = ZlibDecoder::new(bytes);
            decoder.take(length as u64).read_to_end(&mut unpacked)
        }
        other => {
            return Err(format!(
                "{other} compressed it, and zlib and zstd are unpacked"
            ));
        }
    };
    read.map_err(|error| format!("what is compressed is damaged: {error}"))?;
    Ok(unpacked)
}
