//! How long tasks waited for a CPU, by classes that are twice as wide each.

use serde::Serialize;

/// How many waits there were of each class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waits {
    /// What the waits of each class are below, in ns; the last class has all longer ones, too.
    below_ns: Vec<u64>,
    /// How many there are in each class.
    count: Vec<u64>,
}

impl Waits {
    /// The sum of several tables of the BPF program (WARMQ_WAIT_CLASSES of warmq_abi.h).
    pub fn sum<'a>(tables: impl Iterator<Item = &'a [u64]>) -> Waits {
        let mut count: Vec<u64> = Vec::new();
        for table in tables {
            count.resize(table.len().max(count.len()), 0);
            for (sum, more) in count.iter_mut().zip(table) {
                *sum = sum.wrapping_add(*more);
            }
        }
        Waits {
            below_ns: (0..count.len()).map(|class| 1024 << class).collect(),
            count,
        }
    }

    /// What came since `before`; all of it if that began anew.
    pub fn since(&self, before: &Waits) -> Waits {
        let pairs = self.count.iter().zip(&before.count);
        let grown: Option<Vec<u64>> = pairs.map(|(now, then)| now.checked_sub(*then)).collect();
        match grown {
            Some(count) if count.len() == self.count.len() => Waits {
                count,
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// What that part of the waits (0 to 1) was below, in ns; nothing if there were none.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let total: u64 = self.count.iter().sum();
        let wanted = ((total as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let mut classes = self.below_ns.iter().zip(&self.count);
        let class = classes.find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        class.filter(|_| total > 0).map(|(below, _)| *below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(count: &[u64]) -> Waits {
        Waits::sum([count].into_iter())
    }

    #[test]
    fn quantiles_are_bounds_of_classes() {
        let waits = Waits::sum([&[90, 0, 5, 0][..], &[0, 0, 4, 1][..]].into_iter());
        let table = [
            (0.5, 1024),
            (0.9, 1024),
            (0.91, 4096),
            (0.99, 4096),
            (1.0, 8192),
        ];
        for (part, expected) in table {
            assert_eq!(waits.quantile(part), Some(expected), "{part}");
        }
        assert_eq!(Waits::default().quantile(0.5), None);
        assert_eq!(
            super::Waits::sum([&[0, 0][..]].into_iter()).quantile(0.5),
            None
        );
    }

    #[test]
    fn what_came_since_is_a_difference_unless_it_began_anew() {
        let (before, now) = (waits(&[3, 4]), waits(&[5, 4]));
        assert_eq!(now.since(&before), waits(&[2, 0]));
        assert_eq!(before.since(&now), before);
        assert_eq!(now.since(&Waits::default()), now);
    }
}
