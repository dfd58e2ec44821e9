//! A table indexed by line that takes memory only where it was written.

use crate::cache::Line;

/// Lines in a chunk: 2 MB of lines of 64 bytes.
const CHUNK: u64 = 1 << 15;

/// For each line `stride` cells, zero until written.
///
/// A chunk is allocated on the first write to one of its lines; the allocator hands out zeroed
/// pages lazily, so that even a chunk costs only the pages that are touched.
pub(crate) struct Sparse<T> {
    chunks: Vec<Vec<T>>,
    stride: usize,
}

impl<T: Copy + Default> Sparse<T> {
    pub(crate) fn new(stride: usize) -> Sparse<T> {
        Sparse {
            chunks: Vec::new(),
            stride,
        }
    }

    /// The cells of `line`; none if nothing was ever written near it.
    #[inline]
    pub(crate) fn get(&self, line: Line) -> &[T] {
        match self.chunks.get((line.0 / CHUNK) as usize) {
            Some(chunk) if !chunk.is_empty() => {
                &chunk[(line.0 % CHUNK) as usize * self.stride..][..self.stride]
            }
            _ => &[],
        }
    }

    /// The cells of `line`, to be written.
    #[inline]
    pub(crate) fn get_mut(&mut self, line: Line) -> &mut [T] {
        let number = (line.0 / CHUNK) as usize;
        if self.chunks.get(number).is_none_or(Vec::is_empty) {
            self.allocate(number);
        }
        let start = (line.0 % CHUNK) as usize * self.stride;
        &mut self.chunks[number][start..start + self.stride]
    }

    #[cold]
    fn allocate(&mut self, number: usize) {
        if self.chunks.len() <= number {
            self.chunks.resize_with(number + 1, Vec::new);
        }
        self.chunks[number] = vec![T::default(); CHUNK as usize * self.stride];
    }

    /// Every line of every chunk with its cells, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Line, &[T])> {
        self.chunks.iter().enumerate().flat_map(|(number, chunk)| {
            let lines = chunk.chunks_exact(self.stride).enumerate();
            lines.map(move |(index, cells)| (Line(number as u64 * CHUNK + index as u64), cells))
        })
    }
}
