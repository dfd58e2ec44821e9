//! Blocks of a page or more that begin with a hot header.
//!
//! ```text
//!     | T and bytes    .|.T and bytes    | ..T and bytes   | ...   one block of whole pages each
//!       color 0          color 1           color 2
//! ```
#![allow(unsafe_code)]

use std::mem::{align_of, size_of};
use std::path::Path;
use std::ptr::NonNull;
use std::slice;

use warmq_coloring::{Blocks, Coloring};

use crate::error::Error;
use crate::machine;
use crate::system::{Mapping, page};

/// A block of an [`Arena`]: its number, and how often that place was used before, so that a name of
/// a block that was freed names no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    index: u32,
    uses: u32,
}

/// Blocks of one size, each with a header of type `T` and bytes behind it. The header of each block
/// lies at its color.
///
/// ```
/// struct Connection { last_seen: u64 }
///
/// # fn main() -> Result<(), warmq_color::Error> {
/// let mut arena = warmq_color::Arena::new(8192, 1_000)?;
/// let id = arena.insert(Connection { last_seen: 1 })?;
/// arena.get_mut(id).unwrap().last_seen = 2;
/// arena.bytes_mut(id).unwrap()[0] = b'x';
/// assert_eq!(arena.iter().map(|(_, header)| header.last_seen).sum::<u64>(), 2);
/// assert_eq!(arena.remove(id).unwrap().last_seen, 2);
/// assert!(arena.get(id).is_none());
/// # Ok(())
/// # }
/// ```
///
/// Invariant: slot `i` lies in block `i % per_region` of region `i / per_region`; its header is
/// initialized exactly while `slots[i].used`, and `free` has exactly the others, each once.
pub struct Arena<T> {
    regions: Vec<Mapping>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    block: usize,
    coloring: Coloring,
    owned: std::marker::PhantomData<T>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    used: bool,
    uses: u32,
}

/// Blocks that are mapped at a time.
const AT_A_TIME: usize = 64;

impl<T> Arena<T> {
    /// An arena of blocks of `block` bytes, rounded up to whole pages, of which about `count` are
    /// in use at a time and are visited in turn: [`Coloring::of`] chooses the colors for this
    /// machine's caches.
    ///
    /// # Errors
    /// A header that does not fit.
    pub fn new(block: usize, count: u64) -> Result<Arena<T>, Error> {
        let caches = machine::caches(Path::new("/"));
        let line = caches.first().map_or(64, |cache| cache.line());
        let hot_lines = (size_of::<T>() as u64).div_ceil(line).max(1);
        let whole = block.checked_next_multiple_of(page()).unwrap_or(block);
        let blocks = Blocks::new(count, whole as u64).with_hot_lines(hot_lines);
        Arena::with_coloring(block, Coloring::of(blocks, &caches))
    }

    /// An arena of blocks of `block` bytes, rounded up to whole pages, with this coloring.
    ///
    /// # Errors
    /// A header that does not fit beside the largest offset.
    pub fn with_coloring(block: usize, coloring: Coloring) -> Result<Arena<T>, Error> {
        let fits = |block: &usize| block.checked_mul(AT_A_TIME).is_some();
        let whole = block.checked_next_multiple_of(page()).filter(fits);
        let whole =
            whole.ok_or_else(|| Error::new(format!("a block of {block} bytes"), "ask for less"))?;
        let least = coloring.reach() as usize + align_of::<T>() + size_of::<T>();
        if least > whole || align_of::<T>() > page() {
            return Err(Error::new(
                format!(
                    "a header of {} bytes and {} colors do not fit into blocks of {whole}",
                    size_of::<T>(),
                    coloring.colors()
                ),
                format!("ask for blocks of {least} bytes at least, or for fewer colors"),
            ));
        }
        Ok(Arena {
            regions: Vec::new(),
            slots: Vec::new(),
            free: Vec::new(),
            block: whole,
            coloring,
            owned: std::marker::PhantomData,
        })
    }

    /// Puts `header` into a block. The bytes behind it are those that the block had before, or 0.
    ///
    /// # Errors
    /// The system has no more memory to give.
    pub fn insert(&mut self, header: T) -> Result<Id, Error> {
        if self.free.is_empty() {
            self.grow()?;
        }
        let index = self.free.pop().expect("some, after it has grown");
        // SAFETY: the slot is free, so that nobody else refers to it, and its place is mapped,
        // aligned and large enough (`header`).
        unsafe { self.header(index).write(header) };
        let slot = &mut self.slots[index as usize];
        slot.used = true;
        Ok(Id {
            index,
            uses: slot.uses,
        })
    }

    /// Takes the header out of a block, and frees the block. `None` if it was freed before.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        self.find(id)?;
        let slot = &mut self.slots[id.index as usize];
        slot.used = false;
        slot.uses = slot.uses.wrapping_add(1);
        self.free.push(id.index);
        // SAFETY: the header was initialized, and from here on the slot counts as free.
        Some(unsafe { self.header(id.index).read() })
    }

    /// The header of a block.
    pub fn get(&self, id: Id) -> Option<&T> {
        // SAFETY: a used slot's header is initialized, and is borrowed as the arena is.
        Some(unsafe { self.find(id)?.as_ref() })
    }

    /// The header of a block, to change it.
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        // SAFETY: as in `get`; the arena is borrowed mutably.
        Some(unsafe { self.find(id)?.as_mut() })
    }

    /// The bytes of a block behind its header, to read and write.
    pub fn bytes_mut(&mut self, id: Id) -> Option<&mut [u8]> {
        let header = self.find(id)?;
        let (start, length) = (size_of::<T>(), self.room(id.index));
        // SAFETY: the bytes from the header's end to the block's end are mapped, were zeroed by the
        // kernel, belong to this block alone, and are borrowed as the arena is.
        Some(unsafe { slice::from_raw_parts_mut(header.cast::<u8>().add(start).as_ptr(), length) })
    }

    /// All headers in use, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        let used = self.slots.iter().enumerate().filter(|(_, slot)| slot.used);
        used.map(|(index, slot)| {
            let index = index as u32;
            let id = Id {
                index,
                uses: slot.uses,
            };
            // SAFETY: as in `get`.
            (id, unsafe { self.header(index).as_ref() })
        })
    }

    /// How many blocks are in use.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether no block is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which colors the blocks have.
    pub fn coloring(&self) -> Coloring {
        self.coloring
    }

    fn grow(&mut self) -> Result<(), Error> {
        let first = self.slots.len() as u32;
        let last = first.checked_add(AT_A_TIME as u32);
        let last = last.ok_or_else(|| Error::new("more than 2^32 blocks", "use two arenas"))?;
        let region = Mapping::closed(self.block * AT_A_TIME)?;
        region.open(0, region.length())?;
        self.regions.push(region);
        self.slots.extend([Slot::default(); AT_A_TIME]);
        self.free.extend((first..last).rev());
        Ok(())
    }

    /// The header of a block in use.
    fn find(&self, id: Id) -> Option<NonNull<T>> {
        let slot = self.slots.get(id.index as usize)?;
        (slot.used && slot.uses == id.uses).then(|| self.header(id.index))
    }

    /// The place of the header of slot `index`: aligned for `T`, and at least `size_of::<T>()`
    /// bytes before the end of its block, as `with_coloring` checked.
    fn header(&self, index: u32) -> NonNull<T> {
        let region = &self.regions[index as usize / AT_A_TIME];
        region
            .at(index as usize % AT_A_TIME * self.block + self.offset(index))
            .cast()
    }

    /// How far into its block the header of slot `index` lies.
    fn offset(&self, index: u32) -> usize {
        let offset = self.coloring.offset(u64::from(index)) as usize;
        offset.next_multiple_of(align_of::<T>())
    }

    /// Bytes behind the header of slot `index`.
    fn room(&self, index: u32) -> usize {
        self.block - self.offset(index) - size_of::<T>()
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        for index in 0..self.slots.len() {
            if std::mem::take(&mut self.slots[index].used) {
                // SAFETY: the header is initialized, and the slot counts as free from here on, so
                // that it is dropped once, whatever its own drop does.
                unsafe { self.header(index as u32).drop_in_place() };
            }
        }
    }
}

// SAFETY: an arena owns its headers as a vector does; the regions are the process's.
unsafe impl<T: Send> Send for Arena<T> {}
// SAFETY: shared references give shared references to headers only.
unsafe impl<T: Sync> Sync for Arena<T> {}
