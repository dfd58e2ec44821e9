//! A large piece of memory at a good address, and chains of pointers through it.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::NonNull;

use warmq_units::Bytes;

use crate::error::WalkError;

/// A huge page of x86 and of most others: what the start of an arena is aligned on.
pub const HUGE_PAGE: u64 = 2 << 20;

/// The small page on which physical placement is known.
pub const SMALL_PAGE: u64 = 4 << 10;

/// Anonymous memory, mapped, touched, aligned on a huge page, and given back on drop.
///
/// Invariant: `length` bytes from `start` on are readable and writable and belong to this value
/// alone; `mapped_length` bytes from `mapped` on are what the kernel gave.
#[derive(Debug)]
pub struct Arena {
    start: NonNull<u8>,
    length: u64,
    mapped: *mut libc::c_void,
    mapped_length: usize,
}

impl Arena {
    /// Maps `size` bytes, rounded up to whole huge pages, asks for huge pages or for none, and
    /// touches every page in ascending order.
    ///
    /// # Errors
    /// [`WalkError::System`] where the kernel has no memory to give. That it gives no huge pages
    /// is no error: see [`super::pages::backing`].
    pub fn new(size: Bytes, huge_pages: bool) -> Result<Arena, WalkError> {
        let length = size.0.max(1).next_multiple_of(HUGE_PAGE);
        // From the pool of huge pages that an administrator reserved, if there is one.
        let reserved = huge_pages.then(|| map(length, libc::MAP_HUGETLB));
        let (mapped, mapped_length) = reserved
            .flatten()
            .or_else(|| map(length + HUGE_PAGE, 0))
            .ok_or_else(|| WalkError::last_system(format!("map {size}"), "free some memory"))?;
        let offset = (mapped as usize).next_multiple_of(HUGE_PAGE as usize) - mapped as usize;
        // SAFETY: huge pages of the pool begin at a multiple, and other mappings are one huge page
        // longer than `length`, so `offset` lies within.
        let start = unsafe { NonNull::new_unchecked(mapped.cast::<u8>().add(offset)) };
        let advice = if huge_pages {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: start..start+length lies within the mapping made above, which nobody else knows.
        // A kernel without huge pages answers EINVAL, as it does where all are huge: that is fine.
        unsafe { libc::madvise(start.as_ptr().cast(), length as usize, advice) };
        let mut arena = Arena {
            start,
            length,
            mapped,
            mapped_length,
        };
        arena.touch();
        Ok(arena)
    }

    /// The virtual address of the first byte.
    pub fn start(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// Usable bytes from [`Arena::start`] on: whole huge pages.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Links the words at `offsets` (bytes from the start) into a ring in that order. A walk of the
    /// ring may read up to `reach` bytes from each word on, the word included.
    ///
    /// # Panics
    /// When there is no offset, or one is not a multiple of 8 whose `reach` ends in the arena.
    pub fn link(&mut self, offsets: &[u64], reach: u64) -> Ring<'_> {
        let count = offsets.len();
        let reach = reach.max(size_of::<Word>() as u64);
        assert!(count > 0, "a ring has a first word");
        for offset in offsets {
            assert!(
                offset % 8 == 0 && offset + reach <= self.length,
                "offset {offset:#x}"
            );
        }
        for (index, offset) in offsets.iter().enumerate() {
            let next = Word(self.at(offsets[(index + 1) % count]));
            // SAFETY: both offsets were checked to be aligned words within the arena.
            unsafe { self.at(*offset).write(next) };
        }
        Ring {
            position: self.at(offsets[0]),
            reach,
            arena: PhantomData,
        }
    }

    /// The word `offset` bytes from the start; the caller checks that it lies within.
    fn at(&self, offset: u64) -> *mut Word {
        self.start.as_ptr().wrapping_add(offset as usize).cast()
    }

    fn touch(&mut self) {
        for offset in (0..self.length).step_by(SMALL_PAGE as usize) {
            // SAFETY: offset is below length, the arena is writable.
            unsafe { self.start.as_ptr().add(offset as usize).write_volatile(0) };
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` gave; a Ring borrows the arena and cannot outlive it.
        unsafe { libc::munmap(self.mapped, self.mapped_length) };
    }
}

/// One link of a ring: where the next one is.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Word(*const Word);

/// Linked words of an arena, and a place among them.
///
/// Invariant: every word that can be reached from `position` was written by [`Arena::link`], and
/// `reach` bytes from each on lie within the arena, which is borrowed for as long.
pub struct Ring<'arena> {
    position: *const Word,
    reach: u64,
    arena: PhantomData<&'arena mut Arena>,
}

impl Ring<'_> {
    /// Follows `steps` pointers. Each load needs the one before, so that this takes their
    /// latencies.
    #[inline(never)]
    pub fn walk(&mut self, steps: u64) {
        let mut position = self.position;
        for _ in 0..steps {
            // SAFETY: by the invariant, `position` is a word that `link` wrote. The read is
            // volatile so that it takes place although nobody wants its value.
            position = unsafe { position.read_volatile() }.0;
        }
        self.position = position;
    }

    /// Follows `steps` pointers, and at each stop also reads a word from each of the `lines - 1`
    /// lines of `line` bytes that follow; those loads wait for nothing but the pointer.
    ///
    /// # Panics
    /// When these lines were not within the reach given to [`Arena::link`].
    #[inline(never)]
    pub fn walk_lines(&mut self, steps: u64, lines: u32, line: u64) {
        assert!(
            u64::from(lines.max(1) - 1) * line + 8 <= self.reach,
            "lines beyond the reach"
        );
        let mut position = self.position;
        for _ in 0..steps {
            for index in 1..u64::from(lines) {
                // SAFETY: within `reach` of a linked word, as asserted above.
                unsafe { position.byte_add((index * line) as usize).read_volatile() };
            }
            // SAFETY: by the invariant, as in `walk`.
            position = unsafe { position.read_volatile() }.0;
        }
        self.position = position;
    }
}

fn map(length: u64, flags: i32) -> Option<(*mut libc::c_void, usize)> {
    let length = usize::try_from(length).ok()?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new private mapping at an address of the kernel's choice touches nothing of ours.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some((mapped, length))
}
