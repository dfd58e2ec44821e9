//! Settings as a table, a row each: the name, what it takes, what it does, and where its default
//! comes from. What a program has of those that were chosen can stand in the same rows.

use warmq_units::{Bytes, Cycles, Duration};

use crate::Value;

/// What a program has of the value of a setting.
pub trait OfValue: Sized {
    /// Nothing if it is no such value.
    fn of_value(value: &Value) -> Option<Self>;
}

macro_rules! of_value {
    ($($type:ty: $($value:pat => $is:expr),+;)*) => {
        $(impl OfValue for $type {
            fn of_value(value: &Value) -> Option<$type> {
                match value {
                    $($value => $is,)+
                    _ => None,
                }
            }
        })*
    };
}

// A time is its nanoseconds where a program counts in these.
of_value! {
    bool: Value::Bool(flag) => Some(*flag);
    u64: Value::Integer(count) => Some(u64::try_from(*count).unwrap_or(0));
    usize: Value::Integer(count) => Some(usize::try_from(*count).unwrap_or(0));
    i64: Value::Duration(span) => Some(i64::try_from(span.as_ns()).unwrap_or(i64::MAX));
    Cycles: Value::Integer(count) => Some(Cycles(u64::try_from(*count).unwrap_or(0)));
    Bytes: Value::Bytes(size) => Some(*size);
    Duration: Value::Duration(span) => Some(*span);
}

/// A list of settings.
///
/// ```
/// let settings: Vec<warmq_config::Setting> = warmq_config::settings! {
///     "colors", count((1, 32), 8, "colors"), "how many colors a cache has", "assumed";
///     "walks", flag(true), "whether the run queue is walked", "Linux 2.4";
/// };
/// assert_eq!(settings[0].unit, "colors");
/// ```
#[macro_export]
macro_rules! settings {
    ($($name:expr, $takes:ident($($bound:expr),*), $what:expr, $source:expr;)*) => {
        vec![$($crate::Setting::$takes($name, $($bound),*).says($what, $source)),*]
    };
}

/// A list of settings, and what of them a program has: each row may name a field of a structure and
/// the type of its value. Fields that follow from several settings stand before the rows.
///
/// ```
/// use warmq_config::{Chosen, Setting};
/// warmq_config::settings_of! {
///     /// What a walk is like.
///     struct Walk(chosen, cpus: u64) {
///         /// Steps of all CPUs.
///         steps: u64 = cpus * chosen.count("steps"),
///     }
///     /// What can be set.
///     fn settings(most: i64) {
///         "steps", count((1, most), 8, "steps"), "how far each CPU walks", "assumed";
///         "again" => repeats: bool, flag(true), "whether it begins anew", "assumed";
///     }
/// }
/// let walk = Walk::new(&Chosen::defaults(settings(100)), 4);
/// assert!(walk.steps == 32 && walk.repeats);
/// ```
#[macro_export]
macro_rules! settings_of {
    (
        $(#[$about:meta])*
        $seen:vis struct $of:ident($chosen:ident $(, $given:ident: $given_type:ty)*) {
            $($(#[$doc:meta])* $derived:ident: $derived_type:ty = $value:expr,)*
        }
        $(#[$listed:meta])*
        $list_seen:vis fn $list:ident($($argument:ident: $argument_type:ty)?) {
            $($name:literal $(=> $(#[$says:meta])* $field:ident: $type:ty)?,
                $takes:ident($($bound:expr),*), $what:expr, $source:expr;)*
        }
    ) => {
        $(#[$about])*
        $seen struct $of {
            $($(#[$doc])* $seen $derived: $derived_type,)*
            $($($(#[$says])* $seen $field: $type,)?)*
        }

        impl $of {
            /// What was chosen.
            $seen fn new($chosen: &$crate::Chosen $(, $given: $given_type)*) -> $of {
                $of {
                    $($derived: $value,)*
                    $($($field: $chosen.get::<$type>($name),)?)*
                }
            }
        }

        $(#[$listed])*
        $list_seen fn $list($($argument: $argument_type)?) -> Vec<$crate::Setting> {
            $crate::settings! { $($name, $takes($($bound),*), $what, $source;)* }
        }
    };
}

/// Enumerations of which a setting names one: those of [`named!`](warmq_units::named).
#[macro_export]
macro_rules! choices {
    ($(
        $(#[$about:meta])*
        $seen:vis enum $of:ident { $($variants:tt)* }
    )*) => {$(
        $crate::named! {
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            $seen enum $of { $($variants)* }
        }

        impl $crate::OfValue for $of {
            fn of_value(value: &$crate::Value) -> Option<$of> {
                let $crate::Value::Text(name) = value else {
                    return None;
                };
                let found = $of::NAMES.into_iter().find(|(known, _)| known == name);
                found.map(|(_, of)| of)
            }
        }
    )*};
}
