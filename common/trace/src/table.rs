//! One entry for each CPU, task or lock that a trace names.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use warmq_units::{CpuId, LockId, TaskId};

/// An id that is counted from 0.
pub trait Id: Copy + Ord {
    /// The id as a number.
    fn number(self) -> u32;
    /// The id of `number`; the inverse of [`Id::number`].
    fn numbered(number: u32) -> Self;
}

macro_rules! counted {
    ($id:ident) => {
        impl Id for $id {
            #[inline]
            fn number(self) -> u32 {
                self.0.into()
            }
            #[inline]
            fn numbered(number: u32) -> $id {
                $id(number as _)
            }
        }
    };
}

counted!(CpuId);
counted!(TaskId);
counted!(LockId);

/// Ids from here on are kept in a tree.
const DENSE: u32 = 1 << 18;

/// An entry for each id, in the order of ids. An id that was never touched has the default entry.
///
/// Ids are counted from 0, so nearly all of them are indices into an array. An id that is out of
/// all proportion, as in a damaged trace file, costs one node of a tree and not gigabytes of array.
#[derive(Clone, Debug)]
pub struct Table<I, T> {
    // Entry i is that of id i; ids of `DENSE` and above are in `sparse`.
    dense: Vec<Option<T>>,
    sparse: BTreeMap<u32, T>,
    ids: PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Table<I, T> {
        Table {
            dense: Vec::new(),
            sparse: BTreeMap::new(),
            ids: PhantomData,
        }
    }
}

impl<I: Id, T: Default> Table<I, T> {
    /// The entry of `id`, if it was ever touched.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        match self.dense.get(id.number() as usize) {
            Some(entry) => entry.as_ref(),
            None => self.sparse.get(&id.number()),
        }
    }

    /// The entry of `id`, made on the first touch.
    #[inline]
    pub fn touch(&mut self, id: I) -> &mut T {
        self.touch_or(id, T::default)
    }

    /// The same, but the entry is what `first` makes.
    #[inline]
    pub fn touch_or(&mut self, id: I, first: impl FnOnce() -> T) -> &mut T {
        let number = id.number();
        if number >= DENSE {
            return self.sparse.entry(number).or_insert_with(first);
        }
        let index = number as usize;
        if index >= self.dense.len() {
            self.dense.resize_with(index + 1, || None);
        }
        self.dense[index].get_or_insert_with(first)
    }

    /// Every entry that was touched, in the order of ids, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let dense = self.dense.iter_mut().flatten();
        dense.chain(self.sparse.values_mut())
    }

    /// Every entry that was touched, in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        let dense = (0u32..)
            .zip(&self.dense)
            .filter_map(|(id, entry)| Some((id, entry.as_ref()?)));
        let sparse = self.sparse.iter().map(|(id, entry)| (*id, entry));
        dense
            .chain(sparse)
            .map(|(id, entry)| (I::numbered(id), entry))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_is_a_tree_of_ids(
            ids in prop::collection::vec(prop_oneof![0u32..9, DENSE - 2..DENSE + 2, any::<u32>()], 0..40)
        ) {
            let (mut table, mut tree) = (Table::<TaskId, u32>::default(), BTreeMap::new());
            for id in ids {
                *table.touch(TaskId(id)) += 1;
                *tree.entry(TaskId(id)).or_insert(0) += 1;
                prop_assert_eq!(table.get(TaskId(id)), tree.get(&TaskId(id)));
            }
            prop_assert_eq!(table.get(TaskId(9)), tree.get(&TaskId(9)));
            prop_assert!(table.iter().eq(tree.iter().map(|(id, count)| (*id, count))));
        }
    }
}
