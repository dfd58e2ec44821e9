//! Simulated time in picoseconds, and CPU cycles with the frequency that turns them into time.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::str::FromStr;

use derive_more::{Add, Mul, Sub, SubAssign, Sum};

use crate::times;

/// A point of simulated time: picoseconds since the machine was switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

/// A span of simulated time in picoseconds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Sub, SubAssign, Sum,
)]
pub struct Duration(pub u64);

/// A text that is not a time such as `300ms`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a time; write a number and a unit, such as 300ms or 1.5s")]
pub struct ParseDurationError {
    text: String,
}

/// A number of CPU clock cycles. Becomes a [`Duration`] only through a [`Hertz`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Add, Mul)]
pub struct Cycles(pub u64);

/// A clock frequency, in kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hertz {
    khz: u64,
}

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

/// The units of a time that a person writes, the largest first.
const UNITS: [(&str, u64); 5] = [
    ("s", PS_PER_S),
    ("ms", PS_PER_MS),
    ("us", PS_PER_US),
    ("ns", PS_PER_NS),
    ("ps", 1),
];

impl Instant {
    /// The moment the machine was switched on.
    pub const START: Instant = Instant(0);

    /// The time since `earlier`; zero if that is later than `self`.
    #[inline]
    pub fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// So long before; at the earliest the start.
    pub fn before(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);

    /// A span of whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Duration {
        Duration(ns * PS_PER_NS)
    }

    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Duration {
        Duration(us * PS_PER_US)
    }

    /// A span of whole milliseconds.
    pub const fn from_ms(ms: u64) -> Duration {
        Duration(ms * PS_PER_MS)
    }

    /// A span of whole seconds.
    pub const fn from_s(s: u64) -> Duration {
        Duration(s * PS_PER_S)
    }

    /// Whole nanoseconds, rounded down.
    #[inline]
    pub fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// Whole microseconds, rounded down.
    #[inline]
    pub fn as_us(self) -> u64 {
        self.0 / PS_PER_US
    }

    /// Seconds, for reports only: no decision may rest on a float.
    #[expect(clippy::float_arithmetic, reason = "for reports only")]
    pub fn as_s_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// The time in the largest unit that gives a whole number (`300ms`), so that parsing the text
    /// gives the same time.
    pub fn exact(self) -> String {
        let divides = |ps: u64| self.0 > 0 && self.0.is_multiple_of(ps);
        let largest = UNITS.into_iter().find(|(_, ps)| divides(*ps));
        let (unit, ps) = largest.unwrap_or(UNITS[0]);
        format!("{}{unit}", self.0 / ps)
    }

    /// The difference, or zero where `other` is longer.
    #[inline]
    pub fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Hertz {
    /// A frequency of `khz` thousand cycles a second; more than zero.
    ///
    /// # Panics
    /// When `khz` is 0; the reader of a machine's description refuses that before.
    pub fn from_khz(khz: u64) -> Hertz {
        assert!(khz > 0, "a clock that stands still");
        Hertz { khz }
    }

    /// The frequency in kHz.
    pub fn khz(self) -> u64 {
        self.khz
    }

    /// How long `cycles` take, rounded to the nearest picosecond.
    ///
    /// ```
    /// use warmq_units::{Cycles, Duration, Hertz};
    /// assert_eq!(Hertz::from_khz(200_000).time_of(Cycles(3)), Duration::from_ns(15));
    /// ```
    #[inline]
    pub fn time_of(self, cycles: Cycles) -> Duration {
        let half = self.khz / 2;
        // Up to seconds of any clock the product fits into 64 bits, whose division is cheaper.
        if let Some(product) = cycles
            .0
            .checked_mul(PS_PER_MS)
            .and_then(|product| product.checked_add(half))
        {
            return Duration(product / self.khz);
        }
        let product = u128::from(cycles.0) * u128::from(PS_PER_MS) + u128::from(half);
        Duration((product / u128::from(self.khz)) as u64)
    }

    /// How many whole cycles fit into `span`.
    pub fn cycles_in(self, span: Duration) -> Cycles {
        Cycles((u128::from(span.0) * u128::from(self.khz) / u128::from(PS_PER_MS)) as u64)
    }
}

// Time ends after 2^64 ps, 213 days: what would be later is then. A trace may say any time, and a
// scenario any span.

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Duration;
    /// The span since an earlier instant.
    ///
    /// # Panics
    /// In builds that check overflow, when `earlier` is later than `self`: time never runs back.
    #[inline]
    fn sub(self, earlier: Instant) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn div(self, parts: u64) -> Duration {
        Duration(self.0 / parts)
    }
}

impl FromStr for Duration {
    type Err = ParseDurationError;

    /// Reads a number with a unit from s to ps: `300ms`, `1.5s`, `10 us`. It is a whole number of
    /// ps.
    ///
    /// ```
    /// use warmq_units::Duration;
    /// assert_eq!("300ms".parse(), Ok(Duration::from_ms(300)));
    /// assert_eq!("1.5s".parse(), Ok(Duration::from_ms(1_500)));
    /// assert!("300".parse::<Duration>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Duration, ParseDurationError> {
        let trimmed = text.trim();
        let of_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let digits = trimmed.bytes().take_while(of_number).count();
        let (number, unit) = trimmed.split_at(digits);
        let unit = UNITS
            .into_iter()
            .find(|(name, _)| *name == unit.trim_start());
        let parsed = unit.and_then(|(_, ps)| times(number, ps));
        parsed.map(Duration).ok_or_else(|| ParseDurationError {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..PS_PER_NS => return write!(formatter, "{} ps", self.0),
            PS_PER_NS..PS_PER_US => (PS_PER_NS, "ns"),
            PS_PER_US..PS_PER_MS => (PS_PER_US, "us"),
            PS_PER_MS..PS_PER_S => (PS_PER_MS, "ms"),
            _ => (PS_PER_S, "s"),
        };
        let thousandths = self.0 % unit * 1_000 / unit;
        write!(formatter, "{}.{thousandths:03} {name}", self.0 / unit)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_ends_and_does_not_begin_again() {
        let (end, longest) = (Instant(u64::MAX), Duration(u64::MAX));
        assert_eq!(end + Duration(1), end);
        assert_eq!(Instant(1) + longest, end);
        assert_eq!(longest + Duration(1), longest);
        assert_eq!(longest * 2, longest);
    }

    #[test]
    fn cycles_become_the_nearest_picosecond() {
        let xeon = Hertz::from_khz(550_000);
        for (cycles, ps) in [
            (0, 0),
            (1, 1_818),
            (11, 20_000),
            (550_000_000, PS_PER_S),
            (550_000_000_000, 1_000 * PS_PER_S),
        ] {
            assert_eq!(xeon.time_of(Cycles(cycles)), Duration(ps));
        }
        assert_eq!(xeon.cycles_in(Duration::from_ns(20)), Cycles(11));
    }

    #[test]
    fn a_span_prints_in_the_unit_a_person_would_use() {
        let printed = [
            Duration(7),
            Duration::from_ns(34),
            Duration(1_500_000),
            Duration::from_s(3),
        ]
        .map(|span| span.to_string());
        assert_eq!(printed, ["7 ps", "34.000 ns", "1.500 us", "3.000 s"]);
    }
    #[test]
    fn an_exact_time_is_read_back() {
        for ps in [0, 1, 999, 1_000, 1_500_000, 200 * PS_PER_MS, 3 * PS_PER_S] {
            let exact = Duration(ps).exact();
            assert_eq!(exact.parse(), Ok(Duration(ps)), "{exact}");
        }
        assert_eq!(Duration::from_ms(500).exact(), "500ms");
        assert_eq!(Duration::ZERO.exact(), "0s");
    }

    #[test]
    fn a_time_may_have_a_part_of_its_unit() {
        let read = ["1.5s", "0.000001 ms", "2.50us"].map(|text| text.parse());
        let ns = [1_500_000_000, 1, 2_500].map(|ns| Ok(Duration::from_ns(ns)));
        assert_eq!(read, ns);
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused() {
        for text in [
            "",
            "5",
            "ms",
            "-5ms",
            ".5s",
            "1.s",
            "1.2.3s",
            "1.5ps",
            "5 parsecs",
            "99999999999999s",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }
}
