//! The calls of the operating system that pools and arenas need.
//!
//! They are declared here, as the library has no dependency; Rust's standard library links the C
//! library anyway.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_long, c_void};
use std::ptr::NonNull;
use std::sync::LazyLock;

use crate::error::Error;

const PROT_READ_WRITE: c_int = 3;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x02 | 0x20;
const MAP_NORESERVE: c_int = 0x4000;
const MADV_FREE: c_int = 8;
const MADV_HUGEPAGE: c_int = 14;
const SC_PAGESIZE: c_int = 30;

/// A huge page of x86-64, and of ARM64 with small pages of 4 KB.
const HUGE_PAGE: usize = 2 << 20;

const FIX: &str = "free memory, raise vm.max_map_count or the limit of address space (ulimit -v)";

// SAFETY: the declarations are those of POSIX and of Linux's C libraries on 64-bit systems, where
// off_t is a long.
unsafe extern "C" {
    fn mmap(
        at: *mut c_void,
        length: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, length: usize) -> c_int;
    #[cfg(not(miri))]
    fn mprotect(at: *mut c_void, length: usize, access: c_int) -> c_int;
    #[cfg(not(miri))]
    fn madvise(at: *mut c_void, length: usize, advice: c_int) -> c_int;
    fn sysconf(name: c_int) -> c_long;
}

/// Miri maps memory that is open from the start (`Mapping::new`), and has no pages to forget.
#[cfg(miri)]
unsafe fn mprotect(_at: *mut c_void, _length: usize, _access: c_int) -> c_int {
    0
}
#[cfg(miri)]
use mprotect as madvise;

/// The size of a small page.
pub(crate) fn page() -> usize {
    static PAGE: LazyLock<usize> = LazyLock::new(|| {
        // SAFETY: sysconf only answers.
        let page = unsafe { sysconf(SC_PAGESIZE) };
        usize::try_from(page)
            .ok()
            .filter(|page| page.is_power_of_two())
            .unwrap_or(4096)
    });
    *PAGE
}

/// Reserved addresses, given back on drop.
///
/// Invariant: `length` bytes from `start` on, whole pages, are mapped and belong to this value.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is of the process, not of a thread, and nothing here writes to it.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared references only compute addresses and change pages by system calls.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `length` bytes that nobody may touch before [`Mapping::open`].
    pub(crate) fn closed(length: usize) -> Result<Mapping, Error> {
        Mapping::new(length, 0)
    }

    /// Maps at least `length` bytes for reading and writing, whole huge pages where the system
    /// gives some. That it gives none is no error.
    pub(crate) fn huge(length: usize) -> Result<Mapping, Error> {
        let whole = length.next_multiple_of(HUGE_PAGE);
        let mut mapping = Mapping::new(whole + HUGE_PAGE, PROT_READ_WRITE)?;
        mapping.trim(HUGE_PAGE, whole);
        // SAFETY: the range is this mapping's own.
        unsafe { madvise(mapping.start.as_ptr().cast(), whole, MADV_HUGEPAGE) };
        Ok(mapping)
    }

    fn new(length: usize, access: c_int) -> Result<Mapping, Error> {
        let length = length.next_multiple_of(page());
        let (access, flags) = match cfg!(miri) {
            true => (PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS),
            false => (access, MAP_PRIVATE_ANONYMOUS | MAP_NORESERVE),
        };
        // SAFETY: a new anonymous mapping at an address that the kernel chooses touches nobody's.
        let start = unsafe { mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            // MAP_FAILED is the address -1.
            Some(start) if start.as_ptr().addr() != usize::MAX => Ok(Mapping { start, length }),
            _ => Err(Error::system(&format!("map {length} bytes"), FIX)),
        }
    }

    /// Keeps `length` bytes from the first multiple of `alignment` on, and gives back the rest.
    fn trim(&mut self, alignment: usize, length: usize) {
        let before =
            self.start.as_ptr().addr().next_multiple_of(alignment) - self.start.as_ptr().addr();
        let after = self.length - before - length;
        // SAFETY: before + length + after is the length of the mapping: the three parts are its
        // own, and only the middle one is kept.
        unsafe {
            let start = self.start.as_ptr();
            unmap(start, before);
            unmap(start.add(before + length), after);
            self.start = self.start.add(before);
        }
        self.length = length;
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The address of byte `offset`, with the right to use this mapping.
    ///
    /// # Panics
    /// When it lies beyond the end.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.length, "{offset} of {}", self.length);
        // SAFETY: the end of an allocation, and all before it, may be computed.
        unsafe { self.start.add(offset) }
    }

    /// Lets `length` bytes from `offset` on be read and written. Both are whole pages.
    pub(crate) fn open(&self, offset: usize, length: usize) -> Result<(), Error> {
        assert!(offset + length <= self.length);
        // SAFETY: the range is this mapping's own, as was checked.
        let answer = unsafe { mprotect(self.at(offset).as_ptr().cast(), length, PROT_READ_WRITE) };
        if answer == 0 {
            Ok(())
        } else {
            Err(Error::system("open a stack between its guard pages", FIX))
        }
    }

    /// Lets the kernel take the pages of a range whose contents nobody needs any more, when it is
    /// short of memory. Both numbers are whole pages.
    pub(crate) fn forget(&self, offset: usize, length: usize) {
        assert!(offset + length <= self.length);
        // SAFETY: the range is this mapping's own. A kernel that refuses leaves it as it is.
        unsafe { madvise(self.at(offset).as_ptr().cast(), length, MADV_FREE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and the value ends.
        unsafe { unmap(self.start.as_ptr(), self.length) };
    }
}

/// # Safety
/// The caller owns the range and uses it no more.
unsafe fn unmap(start: *mut u8, length: usize) {
    if length > 0 {
        // SAFETY: as this function asks. Nothing can be done where the kernel refuses (it may lack
        // memory to split a mapping): the range stays mapped then.
        unsafe { munmap(start.cast(), length) };
    }
}
