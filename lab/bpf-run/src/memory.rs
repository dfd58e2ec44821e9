//! Guest memory: windows of 64-bit addresses, none of which is a pointer of this program.
//!
//! | window | what is in it |
//! |---|---|
//! | [`HEAP`] | objects of the kernel, values of maps; programs read and write it |
//! | [`FROZEN`] | `.rodata` and `.kconfig`: a store there ends the program |
//! | [`STACK`] | the frames of the program that runs |
//! | [`ARENA`] | the arena as user space sees it; below 4 GiB, the same as a program's cast gives it |
//! | [`HANDLES`] | maps and functions: names only, which no access may touch |

use std::collections::BTreeMap;

use crate::ending::Ending;

/// Objects of the kernel and values of maps.
pub const HEAP: u64 = 0xffff_8880_0000_0000;
/// What programs only read.
pub const FROZEN: u64 = 0xffff_8980_0000_0000;
/// Frames of 512 bytes, from the deepest up.
pub const STACK: u64 = 0xffff_c900_0000_0000;
/// The arena's first byte, as user space and pointers within the arena have it.
pub const ARENA: u64 = 0x0000_1000_0000_0000;
/// Maps and functions.
pub const HANDLES: u64 = 0xfffe_0000_0000_0000;
/// Bytes of a page: what an arena allocates, and the stride of per-CPU data at least.
pub const PAGE: u64 = 4096;
/// Bytes of a frame.
pub const FRAME: u64 = 512;
/// The most calls within calls, the first included.
pub const FRAMES: usize = 16;

/// From one frame to the next. A frame has 512 bytes, then come 256 for the arguments of a program
/// that takes a pointer to them, then 256 that nobody may touch.
pub(crate) const FRAME_STRIDE: u64 = 2 * FRAME;
const STACK_BYTES: usize = FRAMES * FRAME_STRIDE as usize;
/// The frames of a run.
pub(crate) type Stack = Box<[u8; STACK_BYTES]>;
/// A window's bytes are so many bits; what is above says which one it is.
const WINDOW_BITS: u32 = 40;
const HEAP_AT: u64 = HEAP >> WINDOW_BITS;
const FROZEN_AT: u64 = FROZEN >> WINDOW_BITS;
const STACK_AT: u64 = STACK >> WINDOW_BITS;
/// Every object begins a line of the caches.
const LINE: u64 = 64;

/// All memory that a program can reach.
#[derive(Clone, Debug)]
pub struct Memory {
    heap: Vec<u8>,
    frozen: Vec<u8>,
    stack: Stack,
    arena: Vec<u8>,
    pages: Vec<Page>,
    /// Freed objects by their size, which the next of that size takes.
    free: BTreeMap<u64, Vec<u64>>,
    /// Bytes of heap, frozen and arena at most.
    limit: u64,
    /// Loads from where no memory is. They read 0, as the kernel's `PROBE_MEM` does.
    pub(crate) faults: u64,
}

/// What a page of the arena is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Free,
    /// Nobody gets it, and nothing is there.
    Reserved,
    There,
}

/// Where bytes are.
#[derive(Clone, Copy)]
enum Window {
    Heap,
    Frozen,
    Stack,
    Arena,
}

/// The lines that an object takes, in bytes.
fn whole_lines(size: u64) -> u64 {
    size.max(1)
        .checked_next_multiple_of(LINE)
        .unwrap_or(u64::MAX)
}

/// Whether bytes of the stack are in a frame, and not in what parts it from the next.
#[inline]
fn in_frame(from: usize, size: u64) -> bool {
    let last = from.wrapping_add(size as usize).wrapping_sub(1);
    (from | last) & 0x300 != 0x300
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Memory {
        Memory {
            heap: Vec::new(),
            frozen: Vec::new(),
            stack: Memory::new_stack(),
            arena: Vec::new(),
            pages: Vec::new(),
            free: BTreeMap::new(),
            limit,
            faults: 0,
        }
    }

    pub(crate) fn new_stack() -> Stack {
        Box::new([0; STACK_BYTES])
    }

    /// Puts another run's stack in the place of the one that is there.
    pub(crate) fn exchange_stack(&mut self, other: &mut Stack) {
        std::mem::swap(&mut self.stack, other);
    }

    /// An object of `size` bytes, all 0, at the beginning of a line.
    ///
    /// # Errors
    /// If memory is used up.
    pub fn allocate(&mut self, size: u64) -> Result<u64, Ending> {
        let size = whole_lines(size);
        if let Some(address) = self.free.get_mut(&size).and_then(Vec::pop) {
            self.bytes_mut(address, size).unwrap_or_default().fill(0);
            return Ok(address);
        }
        self.fits(size)?;
        let address = HEAP + self.heap.len() as u64;
        self.heap.resize(self.heap.len() + size as usize, 0);
        Ok(address)
    }

    /// Gives back an object of `size` bytes. What still points to it reads whatever comes there.
    pub fn free(&mut self, address: u64, size: u64) {
        let size = whole_lines(size);
        self.free.entry(size).or_default().push(address);
    }

    pub(crate) fn freeze(&mut self, bytes: &[u8]) -> Result<u64, Ending> {
        let size = whole_lines(bytes.len() as u64);
        self.fits(size)?;
        let address = FROZEN + self.frozen.len() as u64;
        self.frozen.extend_from_slice(bytes);
        let end = (address - FROZEN + size) as usize;
        self.frozen.resize(end, 0);
        Ok(address)
    }

    /// Whether `more` bytes are within the limit.
    fn fits(&self, more: u64) -> Result<(), Ending> {
        let used = self.heap.len() + self.frozen.len() + self.arena.len();
        let fits = (used as u64)
            .checked_add(more)
            .is_some_and(|all| all <= self.limit);
        if fits {
            Ok(())
        } else {
            Err(Ending::Memory(self.limit))
        }
    }

    /// The window that an address is in, and how far from its beginning.
    #[inline]
    fn window(&self, address: u64) -> (Window, usize) {
        match address >> WINDOW_BITS {
            HEAP_AT => (Window::Heap, address.wrapping_sub(HEAP) as usize),
            STACK_AT => (Window::Stack, address.wrapping_sub(STACK) as usize),
            FROZEN_AT => (Window::Frozen, address.wrapping_sub(FROZEN) as usize),
            _ if address >> 32 == 0 || address >> 32 == ARENA >> 32 => {
                (Window::Arena, address as u32 as usize)
            }
            _ => (Window::Heap, usize::MAX),
        }
    }

    /// `size` bytes at an address, if all of them exist.
    #[inline]
    pub fn bytes(&self, address: u64, size: u64) -> Option<&[u8]> {
        let (window, from) = self.window(address);
        let bytes: &[u8] = match window {
            Window::Heap => &self.heap,
            Window::Stack if in_frame(from, size) => &self.stack[..],
            Window::Stack => return None,
            Window::Frozen => &self.frozen,
            Window::Arena if self.has_pages(from as u64, size) => &self.arena,
            Window::Arena => return None,
        };
        bytes.get(from..from.checked_add(size as usize)?)
    }

    /// The same, if programs may write there.
    #[inline]
    pub fn bytes_mut(&mut self, address: u64, size: u64) -> Option<&mut [u8]> {
        let (window, from) = self.window(address);
        let bytes: &mut [u8] = match window {
            Window::Heap => &mut self.heap,
            Window::Stack if in_frame(from, size) => &mut self.stack[..],
            Window::Stack => return None,
            Window::Frozen => return None,
            Window::Arena if self.has_pages(from as u64, size) => &mut self.arena,
            Window::Arena => return None,
        };
        bytes.get_mut(from..from.checked_add(size as usize)?)
    }

    fn has_pages(&self, from: u64, size: u64) -> bool {
        let last = from.saturating_add(size.max(1)) - 1;
        let pages = (from / PAGE) as usize..=(last / PAGE) as usize;
        let pages = self.pages.get(pages);
        pages.is_some_and(|pages| pages.iter().all(|page| *page == Page::There))
    }

    /// The 1, 2, 4 or 8 bytes at an address as a number; 0 where no memory is.
    #[inline]
    pub fn load(&mut self, address: u64, size: u64) -> u64 {
        if let Some(value) = self.peek(address, size) {
            return value;
        }
        self.faults += 1;
        0
    }

    /// The 1, 2, 4 or 8 bytes at an address as a number.
    #[inline]
    pub fn peek(&self, address: u64, size: u64) -> Option<u64> {
        let bytes = self.bytes(address, size)?;
        Some(match size {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            _ => u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// Writes the lowest 1, 2, 4 or 8 bytes of a number.
    ///
    /// # Errors
    /// If no memory is there that programs may write.
    #[inline]
    pub fn store(&mut self, address: u64, size: u64, value: u64) -> Result<(), Ending> {
        let Some(bytes) = self.bytes_mut(address, size) else {
            // Unallocated pages of an arena swallow what is stored, as in the kernel.
            let arena = matches!(self.window(address).0, Window::Arena);
            self.faults += u64::from(arena);
            let size = size as u32;
            return if arena && address >= PAGE {
                Ok(())
            } else {
                Err(Ending::Store { address, size })
            };
        };
        match size {
            1 => bytes[0] = value as u8,
            2 => bytes.copy_from_slice(&(value as u16).to_le_bytes()),
            4 => bytes.copy_from_slice(&(value as u32).to_le_bytes()),
            _ => bytes.copy_from_slice(&value.to_le_bytes()),
        }
        Ok(())
    }

    /// Whether an address is in the stack, whose accesses are not charged.
    #[inline]
    pub fn is_stack(address: u64) -> bool {
        address >> WINDOW_BITS == STACK_AT
    }

    /// Text up to its first 0, `most` bytes at most.
    pub fn text(&self, address: u64, most: u64) -> String {
        let bytes = (0..most).map_while(|at| self.peek(address.wrapping_add(at), 1));
        let bytes: Vec<u8> = bytes
            .take_while(|byte| *byte != 0)
            .map(|byte| byte as u8)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// `count` neighbouring pages of an arena of `most` pages, all 0: the first that are free, or
    /// those at `wanted`. Returns the address as user space has it, or `None` if there are none.
    pub fn allocate_pages(&mut self, wanted: Option<u64>, count: u64, most: u64) -> Option<u64> {
        let most = most.min(1 << 20) as usize;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| (1..=most).contains(count))?;
        let free = |at: &usize| self.are_free(*at, count);
        let from = match wanted {
            Some(address) => Some((address as u32 / PAGE as u32) as usize).filter(free),
            // Page 0 stays free, so that no pointer within the arena is null.
            None => (1..=most.saturating_sub(count)).find(free),
        }?;
        let end = from.checked_add(count).filter(|end| *end <= most)?;
        let bytes = end * PAGE as usize;
        let more = bytes.saturating_sub(self.arena.len());
        self.fits(more as u64).ok()?;
        self.arena.resize(self.arena.len() + more, 0);
        self.mark(from, count, Page::There);
        self.arena[from * PAGE as usize..bytes].fill(0);
        Some(ARENA + (from as u64) * PAGE)
    }

    fn are_free(&self, from: usize, count: usize) -> bool {
        let pages = self.pages.iter().skip(from);
        pages.take(count).all(|page| *page == Page::Free)
    }

    fn mark(&mut self, from: usize, count: usize, page: Page) {
        let end = from + count;
        self.pages.resize(self.pages.len().max(end), Page::Free);
        self.pages[from..end].fill(page);
    }

    /// Keeps neighbouring pages of an arena of `most` pages from being allocated; whether they were
    /// free, or `None` if they are outside (`arena_reserve_pages`).
    pub fn reserve_pages(&mut self, address: u64, count: u64, most: u64) -> Option<bool> {
        let from = u64::from(address as u32) / PAGE;
        let end = from.checked_add(count)?;
        if end > most.min(1 << 20) {
            return None;
        }
        let (from, count) = (from as usize, count as usize);
        let free = self.are_free(from, count);
        if free {
            self.mark(from, count, Page::Reserved);
        }
        Some(free)
    }

    /// Gives back pages of an arena.
    pub fn free_pages(&mut self, address: u64, count: u64) {
        let from = (address as u32 / PAGE as u32) as usize;
        let pages = self.pages.iter_mut().skip(from);
        pages
            .take(count as usize)
            .for_each(|page| *page = Page::Free);
    }
}
