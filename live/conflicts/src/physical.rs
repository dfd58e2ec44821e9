//! Physical pages behind virtual ones, where the kernel shows them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::PAGE;
use crate::process::Process;

/// Bits 0 to 54 of an entry of /proc/PID/pagemap are the number of the frame, and bit 63 says
/// whether there is one (Documentation/admin-guide/mm/pagemap.rst of the kernel).
const FRAME: u64 = (1 << 55) - 1;
const PRESENT: u64 = 1 << 63;

/// The physical pages of a process that could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Number of the physical page by that of the virtual one.
    by_page: BTreeMap<u64, u64>,
}

impl Frames {
    /// Those behind `addresses` of `process`. Without CAP_SYS_ADMIN the kernel shows none.
    pub fn of(process: &Process, addresses: impl IntoIterator<Item = u64>) -> Frames {
        let Ok(file) = File::open(process.folder().join("pagemap")) else {
            return Frames::default();
        };
        let frame = |address: u64| {
            let (page, mut entry) = (address / PAGE, [0; 8]);
            file.read_exact_at(&mut entry, page * 8).ok()?;
            let entry = u64::from_ne_bytes(entry);
            let frame = entry & FRAME;
            (entry & PRESENT != 0 && frame != 0).then_some((page, frame))
        };
        Frames {
            by_page: addresses.into_iter().filter_map(frame).collect(),
        }
    }

    /// Adds the pages behind virtual and physical addresses, where none are known yet.
    pub fn extend(&mut self, pairs: impl IntoIterator<Item = (u64, u64)>) {
        for (address, physical) in pairs {
            let page = self.by_page.entry(address / PAGE);
            page.or_insert(physical / PAGE);
        }
    }

    /// The physical address behind `address`, if it is known.
    pub fn physical(&self, address: u64) -> Option<u64> {
        let frame = self.by_page.get(&(address / PAGE))?;
        Some(frame * PAGE + address % PAGE)
    }
}
