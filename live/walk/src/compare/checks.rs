//! Settings that all programs have, and what can be refused alike in all of them.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::BenchError;

use super::mode::Mode;

/// The most rounds: [`super::Against`] counts with 2^-n.
const REPETITIONS: RangeInclusive<u64> = 1..=1000;

/// From what a run needs at least to more than anybody would wait for.
const TIME_LIMIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(86_400);

/// Refuses a `value` of `field` outside of `allowed`; `unit` says of what there are so many.
pub(crate) fn check_number(
    field: &'static str,
    value: u64,
    allowed: RangeInclusive<u64>,
    unit: &str,
) -> Result<(), BenchError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (least, most) = allowed.into_inner();
    let problem = format!("that is no number of {unit}");
    let fix = format!("write {least} to {most}");
    Err(BenchError::setting(field, value, problem, fix))
}

/// [`check_number`] for each of several.
pub(crate) fn check_list(
    field: &'static str,
    values: &[u32],
    allowed: RangeInclusive<u64>,
    unit: &str,
) -> Result<(), BenchError> {
    if values.is_empty() {
        let fix = format!("write one or more, from {} on", allowed.start());
        return Err(BenchError::setting(field, "", "nothing to measure", fix));
    }
    let check = |value: &u32| check_number(field, u64::from(*value), allowed.clone(), unit);
    values.iter().try_for_each(check)
}

/// Refuses no mode at all, and a mode twice.
pub(crate) fn check_modes(modes: &[Mode]) -> Result<(), BenchError> {
    let twice = |place: usize| modes[..place].contains(&modes[place]);
    if !modes.is_empty() && !(0..modes.len()).any(twice) {
        return Ok(());
    }
    let listed: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
    let (listed, fix) = (listed.join(","), "write some of plain,bound,hinted");
    Err(BenchError::setting(
        "modes",
        listed,
        "each mode is measured once",
        fix,
    ))
}

pub(crate) fn check_repetitions(repetitions: u32) -> Result<(), BenchError> {
    check_number(
        "repetitions",
        repetitions.into(),
        REPETITIONS,
        "repetitions",
    )
}

pub(crate) fn check_time_limit(limit: Duration) -> Result<(), BenchError> {
    if TIME_LIMIT.contains(&limit) {
        return Ok(());
    }
    let value = format!("{limit:?}");
    let problem = "a measurement takes from 1 ms to a day";
    Err(BenchError::setting(
        "time_limit",
        value,
        problem,
        "write 300",
    ))
}
