//! Welch's test: whether the means of two samples of unlike variance differ.

/// Critical values of Student's t, two-sided at 5 %, by degrees of freedom from 1 on; beyond them
/// that of the normal distribution is near. Any table of the distribution has them.
const T95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
const NORMAL95: f64 = 1.960;

/// Half the width of the interval that has the difference of the means with 95 %:
///
/// ```text
///     h = t(v) * sqrt(s1^2/n1 + s2^2/n2)
///     v = (s1^2/n1 + s2^2/n2)^2 / ((s1^2/n1)^2/(n1 - 1) + (s2^2/n2)^2/(n2 - 1))
///
///     s^2 := variance    n := how many    v := degrees of freedom (Welch, Satterthwaite), cut
/// ```
///
/// None if a sample has fewer than two values: then nothing says how far they vary. 0 if neither
/// varies.
pub fn half_width(one: &[f64], other: &[f64]) -> Option<f64> {
    let [a, b] = [error(one)?, error(other)?];
    let freedom = (a + b).powi(2)
        / (a.powi(2) / (one.len() - 1) as f64 + b.powi(2) / (other.len() - 1) as f64);
    match freedom.is_finite() {
        true => {
            let t = T95.get(freedom.max(1.0) as usize - 1).unwrap_or(&NORMAL95);
            Some(t * (a + b).sqrt())
        }
        false => Some(0.0),
    }
}

/// The variance of the mean.
fn error(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    Some(squares.sum::<f64>() / (count - 1.0) / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: variances 1 and 4, three values each; v = (1/3 + 4/3)^2 / ((1/9)/2 +
    /// (16/9)/2) = 2.94, so t(2) = 4.303.
    #[test]
    fn the_interval_is_that_of_the_formula() {
        let width = half_width(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap();
        assert!(
            (width - 4.303 * (5.0f64 / 3.0).sqrt()).abs() < 1e-9,
            "{width}"
        );
    }

    #[test]
    fn what_does_not_vary_has_no_width_and_one_value_says_nothing() {
        assert_eq!(half_width(&[2.0, 2.0], &[3.0, 3.0]), Some(0.0));
        assert_eq!(half_width(&[2.0], &[3.0, 3.0]), None);
        let many = [1.0, 2.0].repeat(50);
        assert!(half_width(&many, &many).unwrap() < 0.2);
    }
}
