//! Files that users name or that were downloaded, read up to a size.

use std::path::Path;

use warmq_config::{read_bytes, read_text};

use crate::VmError;

/// Bytes of the largest file that is read, 1 GiB: larger than any kernel, and what a guest can hold
/// twice, as it does while it unpacks its files.
pub(crate) const LARGEST: u64 = 1 << 30;

/// All of a file.
///
/// # Errors
/// It cannot be read, or is larger than [`LARGEST`].
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, VmError> {
    read_bytes(path, LARGEST).map_err(VmError::file("read", path))
}

/// All of a text.
///
/// # Errors
/// It cannot be read, is no text, or is larger than texts may be.
pub(crate) fn text(path: &Path) -> Result<String, VmError> {
    read_text(path).map_err(VmError::file("read", path))
}
