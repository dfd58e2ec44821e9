//! Paths of variables with placeholders: `cpu_capacity[cpu]`,
//! `neighbor_ids[distance*128+neighbor]`.

use std::collections::BTreeMap;

/// What placeholders stand for, by their names.
pub(crate) type Of = BTreeMap<&'static str, usize>;

/// Names that stand for a number.
pub(crate) const PLACEHOLDERS: &[&str] = &[
    "cpu", "llc", "node", "rank", "word", "distance", "neighbor", "order", "other",
];

/// The paths that one with ranges stands for: `a[1..3]` for `a[1]`, `a[2]` and `a[3]`.
pub(crate) fn with_ranges(path: &str) -> Vec<String> {
    let range = path.split(['[', ']']).find_map(|index| {
        let (first, last) = index.split_once("..")?;
        Some((
            index,
            first.parse::<usize>().ok()?,
            last.parse::<usize>().ok()?,
        ))
    });
    let Some((range, first, last)) = range else {
        return vec![path.to_owned()];
    };
    let all = (first..=last).map(|at| path.replacen(range, &at.to_string(), 1));
    all.flat_map(|path| with_ranges(&path)).collect()
}

/// A path, in pieces: text, and the sum of products that is in brackets after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path<'p> {
    pieces: Vec<(&'p str, Option<Sum<'p>>)>,
}

type Sum<'p> = Vec<Vec<&'p str>>;

impl<'p> Path<'p> {
    pub(crate) fn read(path: &'p str) -> Path<'p> {
        let pieces = path.split_inclusive(']').map(|piece| {
            let Some((text, index)) = piece.split_once('[') else {
                return (piece, None);
            };
            let products = index.trim_end_matches(']').split('+');
            let product = |product: &'p str| product.split('*').map(str::trim).collect();
            (text, Some(products.map(product).collect()))
        });
        Path {
            pieces: pieces.collect(),
        }
    }

    /// The first placeholder that is not in `of`.
    pub(crate) fn open(&self, of: &Of) -> Option<&'static str> {
        let sums = self.pieces.iter().filter_map(|(_, sum)| sum.as_ref());
        let mut words = sums.flatten().flatten();
        words.find_map(|word| {
            let known = PLACEHOLDERS.iter().find(|known| *known == word)?;
            (!of.contains_key(known)).then_some(*known)
        })
    }

    /// The path with the numbers that its placeholders stand for.
    ///
    /// # Errors
    /// A word that is neither a number nor a placeholder.
    pub(crate) fn with(&self, of: &Of) -> Result<String, String> {
        let mut path = String::new();
        for (text, sum) in &self.pieces {
            path.push_str(text);
            if let Some(sum) = sum {
                path.push_str(&format!("[{}]", value(sum, of)?));
            }
        }
        Ok(path)
    }
}

fn value(sum: &Sum<'_>, of: &Of) -> Result<usize, String> {
    let number = |word: &&str| {
        let number = of.get(*word).copied().or_else(|| word.parse().ok());
        let known = PLACEHOLDERS.join(", ");
        number.ok_or_else(|| format!("[{word}] is neither a number nor one of {known}"))
    };
    sum.iter().try_fold(0_usize, |all, product| {
        let words = product.iter().map(number);
        let product = words.reduce(|all, one| Ok(all?.saturating_mul(one?)));
        Ok(all.saturating_add(product.unwrap_or(Ok(0))?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_a_sum_of_products() {
        let of = Of::from([("llc", 3), ("distance", 2), ("neighbor", 7)]);
        let table = [
            ("a", "a"),
            ("a[llc].b", "a[3].b"),
            ("a[llc].b[distance*128+neighbor]", "a[3].b[263]"),
            ("a[2][llc]", "a[2][3]"),
            ("a[llc * 64 + 1]", "a[193]"),
        ];
        for (path, expected) in table {
            assert_eq!(
                Path::read(path).with(&of).as_deref(),
                Ok(expected),
                "{path}"
            );
        }
        let wrong = Path::read("a[color]").with(&of).unwrap_err();
        assert!(wrong.contains("[color] is neither a number"), "{wrong}");
    }

    #[test]
    fn a_range_stands_for_all_from_its_first_to_its_last() {
        assert_eq!(with_ranges("a[2..3][cpu]"), ["a[2][cpu]", "a[3][cpu]"]);
        assert_eq!(with_ranges("a[0..1].b[7..7]"), ["a[0].b[7]", "a[1].b[7]"]);
        assert_eq!(with_ranges("a[cpu]"), ["a[cpu]"]);
    }

    #[test]
    fn placeholders_open_from_the_left() {
        let path = Path::read("a[llc].b[distance*128+neighbor]");
        let mut of = Of::new();
        for expected in ["llc", "distance", "neighbor"] {
            assert_eq!(path.open(&of), Some(expected));
            of.insert(expected, 0);
        }
        assert_eq!(path.open(&of), None);
    }
}
