//! Ids: small integers that cannot be mistaken for one another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a table that has one entry an id.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($letter, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A logical CPU, counted from 0 as Linux counts them.
    CpuId(u16),
    "cpu"
);
id!(
    /// A task (a thread), counted from 0 in the order of creation; never used again after exit.
    TaskId(u32),
    "task"
);
id!(
    /// A spin lock that a scheduler or the kernel declared, counted from 0.
    LockId(u16),
    "lock"
);
