//! From values to places along an axis: the range, the ticks and their words.

use crate::chart::ruler::Ruler;
use crate::{Axis, Scale, number};

/// An axis of numbers with its range and ticks chosen.
///
/// Places run evenly along the axis: for a logarithmic scale they are logarithms.
pub(crate) struct Spread {
    scale: Scale,
    hexadecimal: bool,
    /// Both ends, as places; `low < high`.
    pub low: f64,
    pub high: f64,
    /// Values that get a tick, ascending, within the range.
    pub ticks: Vec<f64>,
}

impl Spread {
    /// A vertical axis that holds all of `values`: from zero on a linear scale where nothing is
    /// negative, and up to the tick above the highest.
    pub fn vertical(
        axis: &Axis,
        values: impl Iterator<Item = f64> + Clone,
        ticks: usize,
    ) -> Spread {
        match axis.scale {
            Scale::Linear => {
                let (low, high) = extent(values).unwrap_or((0.0, 1.0));
                let (low, high) = (low.min(0.0), high.max(0.0));
                let high = if low == high { 1.0 } else { high };
                let step = step(high - low, ticks, axis.hexadecimal);
                let (first, last) = ((low / step).floor(), (high / step - 1e-6).ceil());
                let ticks = multiples(first as i64, last as i64, step);
                Spread {
                    low: first * step,
                    high: last * step,
                    ..Spread::of(axis, ticks)
                }
            }
            Scale::Log2 | Scale::Log10 => Spread::logarithmic(axis, values, ticks, 0.06),
        }
    }

    /// A horizontal axis that holds all of `values` with a little air at both ends. Few, well
    /// separated values get a tick each.
    pub fn horizontal(axis: &Axis, values: &[f64], ticks: usize, air: f64) -> Spread {
        if axis.scale != Scale::Linear {
            return Spread::logarithmic(axis, values.iter().copied(), ticks, air);
        }
        let (low, high) = extent(values.iter().copied()).unwrap_or((0.0, 1.0));
        let span = if low == high { 1.0 } else { high - low };
        let apart = values
            .windows(2)
            .all(|pair| pair[1] - pair[0] > 0.6 * span / ticks as f64);
        let ticks = if values.len() <= ticks + 1 && apart {
            values.to_vec()
        } else {
            let step = step(span, ticks, axis.hexadecimal);
            multiples(
                (low / step).ceil() as i64,
                (high / step).floor() as i64,
                step,
            )
        };
        let air = if low == high { 0.5 } else { air };
        Spread {
            low: low - air * span,
            high: high + air * span,
            ..Spread::of(axis, ticks)
        }
    }

    fn logarithmic(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        ticks: usize,
        air: f64,
    ) -> Spread {
        let base: f64 = if axis.scale == Scale::Log2 { 2.0 } else { 10.0 };
        let (low, high) = extent(values.filter(|value| *value > 0.0)).unwrap_or((1.0, base));
        let (low, high) = (low.log(base), high.log(base));
        let span = (high - low).max(1.0);
        let (low, high) = (low - air * span, high + air * span);
        let powers = (low.ceil() as i32)..=(high.floor() as i32);
        let stride = powers.clone().count().div_ceil(ticks.max(1)).max(1);
        let ticks = powers
            .step_by(stride)
            .map(|power| base.powi(power))
            .collect();
        Spread {
            low,
            high,
            ..Spread::of(axis, ticks)
        }
    }

    fn of(axis: &Axis, ticks: Vec<f64>) -> Spread {
        Spread {
            scale: axis.scale,
            hexadecimal: axis.hexadecimal,
            low: 0.0,
            high: 1.0,
            ticks,
        }
    }

    /// Where `value` is; at the low end if it has no logarithm.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => value,
            Scale::Log2 => value.log2(),
            Scale::Log10 => value.log10(),
        };
        if place.is_nan() {
            self.low
        } else {
            place.clamp(self.low, self.high)
        }
    }

    /// The axis with its ticks as places and words.
    pub fn ruler(&self) -> Ruler {
        let tick = |value: &f64| (self.place(*value), self.word(*value));
        Ruler {
            low: self.low,
            high: self.high,
            ticks: self.ticks.iter().map(tick).collect(),
        }
    }

    /// The word at a tick, or for a value under the cursor.
    pub fn word(&self, value: f64) -> String {
        if self.hexadecimal {
            return format!("{:#x}", value.round() as i64);
        }
        number::exact((value * 1e9).round() / 1e9)
    }
}

/// The smallest and the largest of the finite values.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| value.is_finite())
        .fold(None, |extent, value| {
            let (low, high) = extent.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        })
}

/// A round step that divides `span` into at most about `ticks` parts.
fn step(span: f64, ticks: usize, hexadecimal: bool) -> f64 {
    let raw = span / ticks.max(1) as f64;
    if hexadecimal {
        return 2f64.powf(raw.log2().ceil());
    }
    let power = 10f64.powf(raw.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|round| round * power >= raw * 0.999);
    round.unwrap_or(10.0) * power
}

fn multiples(first: i64, last: i64, step: f64) -> Vec<f64> {
    (first..=last).map(|index| index as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(spread: &Spread) -> Vec<String> {
        spread.ticks.iter().map(|tick| spread.word(*tick)).collect()
    }

    #[test]
    fn a_linear_axis_starts_at_zero_and_ends_on_a_tick() {
        let spread = Spread::vertical(&Axis::default(), [3.0, 98.0].into_iter(), 5);
        assert_eq!(words(&spread), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!((spread.low, spread.high), (0.0, 100.0));
    }

    #[test]
    fn few_values_get_a_tick_each() {
        let spread = Spread::horizontal(&Axis::default(), &[1.0, 2.0, 4.0, 8.0], 8, 0.0);
        assert_eq!(words(&spread), ["1", "2", "4", "8"]);
    }

    #[test]
    fn a_logarithmic_axis_has_its_ticks_at_powers() {
        let axis = Axis::default().on(Scale::Log2);
        let spread = Spread::horizontal(&axis, &[256.0, 2048.0], 8, 0.01);
        assert_eq!(words(&spread), ["256", "512", "1,024", "2,048"]);
        assert_eq!(spread.place(0.0), spread.low);
    }

    #[test]
    fn offsets_are_counted_in_hexadecimal() {
        let axis = Axis {
            hexadecimal: true,
            ..Axis::default()
        };
        let values: Vec<f64> = (0..256).map(|bin| f64::from(bin) * 16.0).collect();
        let spread = Spread::horizontal(&axis, &values, 4, 0.0);
        assert_eq!(words(&spread), ["0x0", "0x400", "0x800", "0xc00"]);
    }

    #[test]
    fn nothing_to_show_is_no_reason_to_stop() {
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
            let axis = Axis::default().on(scale);
            for values in [
                vec![],
                vec![0.0],
                vec![f64::NAN],
                vec![5.0, 5.0],
                vec![-1.0],
            ] {
                let vertical = Spread::vertical(&axis, values.iter().copied(), 5);
                let horizontal = Spread::horizontal(&axis, &values, 5, 0.02);
                assert!(vertical.low < vertical.high, "{scale:?} {values:?}");
                assert!(horizontal.low < horizontal.high, "{scale:?} {values:?}");
            }
        }
    }
}
