//! Enumerations whose variants have names.

/// Declares enumerations without fields, each variant with its name, and what follows from that:
/// lists of all of them, and the name of one.
///
/// ```
/// warmq_units::named! {
///     /// How a task is chosen.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Order {
///         /// Who came first.
///         Fifo = "first come",
///         /// Who came last.
///         Lifo = "last come",
///     }
/// }
/// assert_eq!(Order::ALL.map(Order::name), Order::WORDS);
/// assert_eq!(Order::NAMES[1], ("last come", Order::Lifo));
/// ```
#[macro_export]
macro_rules! named {
    ($(
        $(#[$about:meta])*
        $seen:vis enum $of:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }
    )*) => {$(
        $(#[$about])*
        $seen enum $of {
            $($(#[$doc])* $variant,)*
        }

        #[allow(dead_code, reason = "not everybody needs all that follows from names")]
        impl $of {
            /// All of them, in their order.
            $seen const ALL: [$of; [$($name),*].len()] = [$($of::$variant),*];
            /// Their names.
            $seen const WORDS: [&'static str; $of::ALL.len()] = [$($name),*];
            /// All of them by their names.
            $seen const NAMES: [(&'static str, $of); $of::ALL.len()] = [$(($name, $of::$variant)),*];

            /// Its name.
            $seen const fn name(self) -> &'static str {
                match self {
                    $($of::$variant => $name,)*
                }
            }
        }
    )*};
}
