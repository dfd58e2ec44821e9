//! What lies in the memory of a process: read, never written, and without stopping it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::PAGE;
use crate::maps::Mapping;

/// Bytes read at a time.
const PIECE: u64 = 64 << 10;

/// How far above a stack pointer a control block is looked for: the usual limit of a stack.
const FARTHEST: u64 = 8 << 20;

/// What control blocks are aligned on: a line.
const ALIGNMENT: u64 = 64;

/// The memory of a process.
#[derive(Debug)]
pub struct Memory {
    file: File,
}

impl Memory {
    /// That of the process in `folder` of /proc; `None` where it may not be read.
    pub fn open(folder: &Path) -> Option<Memory> {
        let file = File::open(folder.join("mem")).ok()?;
        Some(Memory { file })
    }

    /// The bytes from `start` to `end`, if all of them can be read.
    fn bytes(&self, start: u64, end: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; end.checked_sub(start)? as usize];
        self.file.read_exact_at(&mut bytes, start).ok()?;
        Some(bytes)
    }

    /// The control block of the thread whose stack pointer is `pointer`, on a stack that ends at
    /// `end` or earlier.
    ///
    /// glibc on x86-64 places it above the stack, and it begins with pointers to itself at 0 and 16
    /// (`tcbhead_t`: tcb, dtv, self). Other libraries and architectures have none such.
    pub fn control_block(&self, pointer: u64, end: u64) -> Option<u64> {
        let end = end.min(pointer.checked_add(FARTHEST)?);
        let mut start = pointer / PIECE * PIECE;
        while start < end {
            let (from, to) = (start.max(pointer / PAGE * PAGE), end.min(start + PIECE));
            let found = control_block_in(from, &self.bytes(from, to)?);
            if found.is_some() {
                return found;
            }
            start += PIECE;
        }
        None
    }

    /// The highest line from `start` to `end` in which a word is an address of `code`.
    pub fn code_line(&self, start: u64, end: u64, code: &dyn Fn(u64) -> bool) -> Option<u64> {
        let bytes = self.bytes(start, end)?;
        let mut words = bytes.chunks_exact(8);
        let is_code = |word: &[u8]| {
            word.try_into()
                .is_ok_and(|word| code(u64::from_ne_bytes(word)))
        };
        let last = words.rposition(is_code)?;
        Some((start + 8 * last as u64) / ALIGNMENT * ALIGNMENT)
    }

    /// The highest line in use of the last pages of `stack`: the first that is not all zeros, from
    /// above. `None` for a stack that was never used, or that has the control block of a thread,
    /// also of one that has ended.
    pub fn top(&self, stack: &Mapping) -> Option<u64> {
        let start = stack.start.max(stack.end.saturating_sub(2 * PAGE));
        let bytes = self.bytes(start, stack.end)?;
        if control_block_in(start, &bytes).is_some() {
            return None;
        }
        let last = bytes.iter().rposition(|byte| *byte != 0)?;
        Some((start + last as u64) / ALIGNMENT * ALIGNMENT)
    }
}

/// The first control block in `bytes`, which lie at `start`.
fn control_block_in(start: u64, bytes: &[u8]) -> Option<u64> {
    let word = |place: usize| {
        let word = bytes.get(place..place + 8)?;
        Some(u64::from_ne_bytes(word.try_into().ok()?))
    };
    let places = (0..bytes.len()).step_by(ALIGNMENT as usize);
    let addresses = places.map(|place| (place, start + place as u64));
    let mut blocks = addresses.filter(|(place, address)| {
        word(*place) == Some(*address) && word(place + 16) == Some(*address)
    });
    blocks.next().map(|(_, address)| address)
}
