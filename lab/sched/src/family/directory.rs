//! Page directories under the walk: what its TLB misses read.
//!
//! 2.4 maps the kernel by global pages of 4 MB, for which a P6 has a TLB of 8 entries. Structures
//! that lie all over memory miss it at nearly every visit, and the entry is then read from the page
//! directory of the process whose address space is loaded: words at 0xc00 and up of a page, eight
//! in a line of 32 bytes, so that 896 MB take 28 lines. Each process has its own directory, and so
//! each process's walk needs other 28 lines.

use std::collections::BTreeMap;

use warmq_kernel::{Context, Mm};
use warmq_machine::Access;
use warmq_units::{Address, Bytes, CpuId};

/// Entries of the data TLB for large pages.
const ENTRIES: usize = 8;
/// log2 of a large page.
const LARGE_PAGE: u32 = 22;
/// Where the kernel's part of a page directory begins: 3 GB over 4 MB, in words.
const KERNEL_PART: u64 = 0xc00;
/// Large pages of low memory, 896 MB, where the kernel's structures lie. Our memory is not divided;
/// what lies above is taken to lie that much lower.
const LOW_PAGES: u64 = 224;
/// No page of memory has this number.
const NO_PAGE: u32 = u32::MAX;

/// The page directories of all address spaces, and what each CPU's TLB has of large pages.
pub(crate) struct Directories {
    cpus: Vec<Tlb>,
    /// The kernel threads' own, before a CPU ran anybody else, is that of `None`.
    directories: BTreeMap<Option<Mm>, Address>,
}

/// The last large pages that a CPU translated, replaced in turn.
#[derive(Clone)]
struct Tlb {
    pages: [u32; ENTRIES],
    oldest: usize,
    directory: Option<Address>,
}

impl Directories {
    pub(crate) fn new(cpus: u16) -> Directories {
        let cold = Tlb {
            pages: [NO_PAGE; ENTRIES],
            oldest: 0,
            directory: None,
        };
        Directories {
            cpus: vec![cold; usize::from(cpus)],
            directories: BTreeMap::new(),
        }
    }

    /// Makes a page directory for `mm`.
    pub(crate) fn admit(&mut self, context: &mut Context<'_>, mm: Option<Mm>) {
        let page = || context.data(Bytes::from_kb(4));
        self.directories.entry(mm).or_insert_with(page);
    }

    /// `cpu` works with the directory of `mm` from now on. Global entries stay in its TLB.
    pub(crate) fn load(&mut self, cpu: CpuId, mm: Option<Mm>) {
        self.cpus[cpu.index()].directory = self.directories.get(&mm).copied();
    }

    /// Translates `address` on the CPU of `context`.
    #[inline]
    pub(crate) fn translate(&mut self, context: &mut Context<'_>, address: Address) {
        let page = ((address.0 >> LARGE_PAGE) % LOW_PAGES) as u32;
        let tlb = &mut self.cpus[context.cpu().index()];
        if tlb.has(page) {
            return;
        }
        if let Some(directory) = tlb.directory {
            let entry = KERNEL_PART + u64::from(page) * 4;
            context.touch(directory + entry, Access::Read);
        }
    }
}

impl Tlb {
    /// Whether `page` is there; from now on it is.
    #[inline]
    fn has(&mut self, page: u32) -> bool {
        if self.pages.contains(&page) {
            return true;
        }
        self.pages[self.oldest] = page;
        self.oldest = (self.oldest + 1) % ENTRIES;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tlb_holds_the_last_eight_large_pages_of_its_cpu() {
        let mut directories = Directories::new(2);
        let mut misses = |cpu: usize, page| !directories.cpus[cpu].has(page);
        assert!((0..8).all(|page| misses(0, page)));
        assert!((0..8).all(|page| !misses(0, page)));
        assert!(misses(0, 8), "a ninth");
        assert!(misses(0, 0), "in the place of the oldest");
        assert!(misses(1, 8), "another CPU has its own");
    }
}
