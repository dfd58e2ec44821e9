//! The configuration that a kernel image may contain (CONFIG_IKCONFIG).

use std::io::Read;

use flate2::read::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::input::LARGEST;

/// The mark before the compressed configuration (the kernel's `kernel/configs.c`).
const MARK: &[u8] = b"IKCFG_ST";

/// Offsets in a bzImage (the kernel's `Documentation/arch/x86/boot.rst`).
const SETUP_SECTORS_AT: usize = 0x1f1;
const PAYLOAD_OFFSET_AT: usize = 0x248;
const PAYLOAD_LENGTH_AT: usize = 0x24c;
const SECTOR: usize = 512;

/// The configuration in a bzImage, if it has one and is packed by gzip or zstd, as most are.
pub(crate) fn config(image: &[u8]) -> Option<Vec<u8>> {
    marked(image).or_else(|| marked(&unpacked(payload(image)?)?))
}

fn marked(kernel: &[u8]) -> Option<Vec<u8>> {
    let mut left = kernel;
    // The text of the mark occurs elsewhere in the kernel, too; what follows it decides.
    while let Some(at) = left.windows(MARK.len()).position(|window| window == MARK) {
        left = &left[at + MARK.len()..];
        let mut config = Vec::new();
        if GzDecoder::new(left)
            .take(LARGEST)
            .read_to_end(&mut config)
            .is_ok()
        {
            return Some(config);
        }
    }
    None
}

/// The compressed kernel, which follows the code that unpacks it.
fn payload(image: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let sectors = usize::from(*image.get(SETUP_SECTORS_AT)?);
    let from = (sectors + 1) * SECTOR + number(PAYLOAD_OFFSET_AT)?;
    image.get(from..from.checked_add(number(PAYLOAD_LENGTH_AT)?)?)
}

fn unpacked(payload: &[u8]) -> Option<Vec<u8>> {
    let mut kernel = Vec::new();
    let read = match payload {
        [0x1f, 0x8b, ..] => GzDecoder::new(payload)
            .take(LARGEST)
            .read_to_end(&mut kernel),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = StreamingDecoder::new(payload).ok()?;
            decoder.take(LARGEST).read_to_end(&mut kernel)
        }
        _ => return None,
    };
    read.is_ok().then_some(kernel)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    const CONFIG: &[u8] = b"CONFIG_SCHED_CLASS_EXT=y\n";

    fn zipped(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// A kernel in which the mark's text occurs before the mark.
    fn kernel(config: &[u8]) -> Vec<u8> {
        [
            b"code IKCFG_ST code ",
            MARK,
            &zipped(config),
            b"IKCFG_ED more code",
        ]
        .concat()
    }

    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR + 100];
        image[SETUP_SECTORS_AT] = 1;
        image[PAYLOAD_OFFSET_AT..][..4].copy_from_slice(&100_u32.to_le_bytes());
        let length = u32::try_from(payload.len()).unwrap();
        image[PAYLOAD_LENGTH_AT..][..4].copy_from_slice(&length.to_le_bytes());
        image.extend(payload);
        image.extend(b"a checksum");
        image
    }

    #[test]
    fn a_configuration_is_found_however_the_kernel_is_packed() {
        let kernel = kernel(CONFIG);
        let zstd = compress_to_vec(kernel.as_slice(), CompressionLevel::Fastest);
        for payload in [kernel.clone(), zipped(&kernel), zstd] {
            assert_eq!(config(&image(&payload)).as_deref(), Some(CONFIG));
        }
    }

    #[test]
    fn an_image_without_one_or_cut_short_has_none() {
        assert_eq!(config(&image(&zipped(b"code IKCFG_ST code"))), None);
        let whole = image(&zipped(&kernel(CONFIG)));
        for length in [0, 0x1f1, 0x24e, whole.len() - 60] {
            assert_eq!(config(&whole[..length]), None, "{length} bytes");
        }
    }
}
