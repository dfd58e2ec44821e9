//! `--seeds`: how many, or which.

use std::str::FromStr;

/// More seeds than this are a typing mistake.
const MOST: u64 = 1000;

/// The seeds of every point. Not empty, no two equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    /// `3` means 1, 2 and 3; `4,7` means those; `7,` means 7 alone.
    fn from_str(text: &str) -> Result<Seeds, String> {
        let help = "write how many (3), or which (4,7; a single one with a comma: 7,)";
        let number = |word: &str| {
            let parsed = word.trim().parse::<u64>();
            parsed.map_err(|_| format!("`{word}` is not a whole number; {help}"))
        };
        if !text.contains(',') {
            return match number(text)? {
                0 => Err(format!("a run needs a seed; {help}")),
                count if count > MOST => Err(format!("at most {MOST} seeds")),
                count => Ok(Seeds(warmq_experiment::seeds(count))),
            };
        }
        let listed = text.strip_suffix(',').unwrap_or(text).split(',');
        let seeds = listed.map(number).collect::<Result<Vec<u64>, String>>()?;
        let twice = seeds
            .iter()
            .enumerate()
            .find(|(at, seed)| seeds[..*at].contains(seed));
        match twice {
            Some((_, seed)) => Err(format!("seed {seed} is listed twice")),
            None => Ok(Seeds(seeds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_and_a_list_names() {
        let table: [(&str, &[u64]); 4] = [
            ("3", &[1, 2, 3]),
            ("4,7", &[4, 7]),
            ("7,", &[7]),
            ("2, 1", &[2, 1]),
        ];
        for (text, seeds) in table {
            assert_eq!(text.parse(), Ok(Seeds(seeds.to_vec())), "{text}");
        }
        for text in ["", "0", "none", "1,1", "1,,2", ",", "-1", "1001"] {
            assert!(text.parse::<Seeds>().is_err(), "{text}");
        }
    }
}
