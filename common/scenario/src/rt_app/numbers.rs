//! Whole numbers, as rt-app has them: of 32 bits with a sign.

use std::ops::RangeInclusive;

use warmq_config::{Fields, Item, NodeKind};

/// The largest number of a script.
pub(super) const LARGEST: i64 = i32::MAX as i64;
/// All numbers of a script. rt-app refuses none, and takes a negative time or count as one without
/// a sign: it lasts for ever ([`super::tree::endless`]).
pub(super) const ANY: RangeInclusive<i64> = i32::MIN as i64..=LARGEST;

/// A whole number within `range`.
pub(super) fn whole(item: &Item<'_>, range: RangeInclusive<i64>) -> Option<i64> {
    match item.node.kind {
        NodeKind::Integer(number) if range.contains(&number) => Some(number),
        _ => {
            let (least, most) = (range.start(), range.end());
            item.wrong(&format!("a whole number from {least} to {most}"))
        }
    }
}

/// The whole number `key` within `range`, or `otherwise` where it is missing.
pub(super) fn whole_or(
    fields: &Fields<'_>,
    key: &'static str,
    range: RangeInclusive<i64>,
    otherwise: i64,
) -> Option<i64> {
    fields.or(key, otherwise, |item| whole(item, range))
}

/// The text `key`, or `otherwise` where it is missing.
pub(super) fn text_or(fields: &Fields<'_>, key: &'static str, otherwise: &str) -> Option<String> {
    fields.or(key, otherwise.to_owned(), Item::text)
}
