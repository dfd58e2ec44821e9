//! Structs of sums.

/// Declares structs of sums: what is added to one, and what was added to it since a time, is so
/// for each of its fields.
macro_rules! sums {
    ($($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $sum:ident: $of:ty,)* })*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, derive_more::AddAssign)]
        pub(crate) struct $name {
            $($(#[$doc])* pub $sum: $of,)*
        }

        impl $name {
            /// What was added since it was `before`.
            pub fn saturating_sub(self, before: $name) -> $name {
                $name { $($sum: self.$sum.saturating_sub(before.$sum),)* }
            }
        }
    )*};
}
pub(crate) use sums;
