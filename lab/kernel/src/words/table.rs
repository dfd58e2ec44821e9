//! Tables of what programs and schedulers have handles of.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The number of an entry of a [`Table`].
pub(crate) trait Handle: Copy {
    /// The handle of the entry with this number.
    fn of(index: usize) -> Self;

    /// The number of the entry.
    fn index(self) -> usize;
}

/// Entries that are made once and found by their handles.
pub(crate) struct Table<H, T> {
    entries: Vec<T>,
    handles: PhantomData<H>,
}

impl<H, T> Default for Table<H, T> {
    fn default() -> Table<H, T> {
        Table {
            entries: Vec::new(),
            handles: PhantomData,
        }
    }
}

impl<H: Handle, T> Table<H, T> {
    /// Adds an entry; returns its handle.
    pub(crate) fn add(&mut self, entry: T) -> H {
        let handle = self.next();
        self.entries.push(entry);
        handle
    }

    /// The handle of the entry that is added next.
    pub(crate) fn next(&self) -> H {
        H::of(self.entries.len())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut()
    }
}

impl<H: Handle, T> Index<H> for Table<H, T> {
    type Output = T;

    #[inline]
    fn index(&self, handle: H) -> &T {
        &self.entries[handle.index()]
    }
}

impl<H: Handle, T> IndexMut<H> for Table<H, T> {
    #[inline]
    fn index_mut(&mut self, handle: H) -> &mut T {
        &mut self.entries[handle.index()]
    }
}
