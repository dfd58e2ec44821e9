//! Random numbers of other than even distributions, in integers alone.
//!
//! Both come from U, evenly drawn from 1 to 2^64, by inversion: an exponential number of mean m is
//! -ln(U / 2^64) m, a Pareto number of least value L and shape a is L (U / 2^64)^(-1/a). With
//! `bits` = 64 - log2(U), these are ln(2) `bits` m and L 2^(`bits` / a). Logarithms have 32 bits
//! after the point.

use crate::Stream;

/// Bits after the point of a logarithm.
const POINT: u32 = 32;
/// ln(2), 32 bits after the point.
const LN_2: u128 = 2_977_044_472;
/// The most that is drawn, in means.
const MOST_MEANS: u128 = 1_000;

/// 2^(2^-(i + 1)), 62 bits after the point: each the square root of the one before.
const ROOTS: [u128; POINT as usize] = {
    let mut roots = [0; POINT as usize];
    let mut root: u128 = 2 << 62;
    let mut index = 0;
    while index < roots.len() {
        root = (root << 62).isqrt();
        roots[index] = root;
        index += 1;
    }
    roots
};

impl Stream {
    /// An exponential number of this mean, at most a thousand times it. The mean has 63 bits.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        let bits = u128::from(bits(self.next()));
        // At most 2^63 * 2^38 * 2^32 / 2^32 before the last shift: 64 bits after the point fit.
        let scaled = (bits * LN_2) >> POINT;
        bounded((u128::from(mean) * scaled) >> POINT, u128::from(mean))
    }

    /// A Pareto number, `least` or more, at most a thousand times the mean. `shape` is in
    /// thousandths, above 1,000; `least` has 63 bits.
    pub fn pareto(&mut self, least: u64, shape: u64) -> u64 {
        let exponent = u128::from(bits(self.next())) * 1_000 / u128::from(shape);
        // The power has at most 64 bits before the point and is cut to 31 after it.
        let power = power_of_two(exponent);
        let drawn = u128::from(least).saturating_mul(power) >> 31;
        let mean = u128::from(least) * u128::from(shape) / u128::from(shape - 1_000);
        bounded(drawn, mean)
    }
}

fn bounded(drawn: u128, mean: u128) -> u64 {
    let most = (mean * MOST_MEANS).min(i64::MAX as u128);
    drawn.min(most) as u64
}

/// 64 - log2(`random` + 1), with 32 bits after the point: from 0 to 64.
fn bits(random: u64) -> u64 {
    let number = u128::from(random) + 1;
    let whole = number.ilog2();
    // The mantissa, from 1 up to 2, 63 bits after the point.
    let mut mantissa = (number << 63) >> whole;
    let mut fraction = 0_u64;
    for _ in 0..POINT {
        // log2(m^2) = 2 log2(m): where the square reaches 2, the next bit is 1.
        mantissa = (mantissa * mantissa) >> 63;
        let bit = (mantissa >> 64) as u64;
        mantissa >>= bit;
        fraction = fraction << 1 | bit;
    }
    (64 << POINT) - (u64::from(whole) << POINT | fraction)
}

/// 2^`exponent`, which has 32 bits after the point; the result has 31.
fn power_of_two(exponent: u128) -> u128 {
    let whole = (exponent >> POINT) as u32;
    let fraction = exponent & ((1 << POINT) - 1);
    let mut power: u128 = 1 << 62;
    for (index, root) in ROOTS.iter().enumerate() {
        if fraction >> (POINT as usize - 1 - index) & 1 == 1 {
            power = (power * root) >> 62;
        }
    }
    (power >> 31) << whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;
    use proptest::prelude::*;

    #[test]
    fn logarithms_and_powers_are_exact_where_they_are_whole() {
        assert_eq!(bits(u64::MAX), 0);
        assert_eq!(bits((1 << 63) - 1), 1 << POINT);
        assert_eq!(bits(0), 64 << POINT);
        assert_eq!(power_of_two(0), 1 << 31);
        assert_eq!(power_of_two(10 << POINT), 1 << 41);
        // The square root of 2 with 31 bits after the point: 3037000499.97.
        assert_eq!(power_of_two(1 << 31), 3_037_000_499);
    }

    fn mean(draws: u64, mut draw: impl FnMut() -> u64) -> u64 {
        let sum: u128 = (0..draws).map(|_| u128::from(draw())).sum();
        (sum / u128::from(draws)) as u64
    }

    fn is_within_2_percent(found: u64, wanted: u64) -> bool {
        found.abs_diff(wanted) * 50 <= wanted
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        // The standard deviation of the mean of 200,000 draws is 0.22 % of it.
        #[test]
        fn exponential_draws_have_their_mean(wanted in 1_000_u64..1 << 50, seed: u64) {
            let mut stream = Seed(seed).stream("draws");
            let found = mean(200_000, || stream.exponential(wanted));
            prop_assert!(is_within_2_percent(found, wanted), "{found} of {wanted}");
        }

        // From shape 3 on the standard deviation of a draw is at most 0.58 means.
        #[test]
        fn pareto_draws_have_their_mean(least in 1_000_u64..1 << 50, shape in 3_000_u64..9_000, seed: u64) {
            let mut stream = Seed(seed).stream("draws");
            let wanted = (u128::from(least) * u128::from(shape) / u128::from(shape - 1_000)) as u64;
            let found = mean(200_000, || stream.pareto(least, shape));
            prop_assert!(is_within_2_percent(found, wanted), "{found} of {wanted}");
        }

        // Heavy tails have no useful mean of samples; half of all draws are below L 2^(1/a).
        #[test]
        fn pareto_draws_have_their_median_and_bounds(least in 1_000_u64..1 << 50, shape in 1_001_u64..9_000, seed: u64) {
            let mut stream = Seed(seed).stream("draws");
            let median = (u128::from(least) * power_of_two((1000 << POINT) / u128::from(shape))) >> 31;
            let most = u128::from(least) * u128::from(shape) * 1_000 / u128::from(shape - 1_000);
            let draws: Vec<u64> = (0..40_000).map(|_| stream.pareto(least, shape)).collect();
            prop_assert!(draws.iter().all(|draw| *draw >= least && u128::from(*draw) <= most));
            let below = draws.iter().filter(|draw| u128::from(**draw) < median).count();
            prop_assert!((19_200..=20_800).contains(&below), "{below}");
        }
    }
}
