//! `--only`: which runs of a plan.

use std::str::FromStr;

/// Digits of a digest.
const DIGITS: usize = 32;

/// Runs of a plan, as they are typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// By number, the last included.
    Numbers(u64, u64),
    /// By digest: looked for in the whole plan.
    Digest(String),
    /// By number, if its digest is this one.
    Checked(u64, String),
    /// Whatever standard input names, one a line.
    Input,
}

impl FromStr for Wanted {
    type Err = String;

    /// `17`, `0-99`, a digest, `17:DIGEST`, or `-`.
    fn from_str(text: &str) -> Result<Wanted, String> {
        let text = text.trim();
        let wrong = || {
            format!(
                "`{text}` names no run; write a number (17), numbers (0-99), a digest, or - for those on standard input"
            )
        };
        let number = |word: &str| word.parse::<u64>().map_err(|_| wrong());
        if text == "-" {
            return Ok(Wanted::Input);
        }
        if is_digest(text) {
            return Ok(Wanted::Digest(text.to_owned()));
        }
        if let Some((at, digest)) = text.split_once(':') {
            let digest = is_digest(digest).then_some(digest).ok_or_else(wrong)?;
            return Ok(Wanted::Checked(number(at)?, digest.to_owned()));
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (number(first)?, number(last)?) {
            (first, last) if first <= last => Ok(Wanted::Numbers(first, last)),
            _ => Err(wrong()),
        }
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == DIGITS
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_by_number_by_digest_or_by_both() {
        let digest = "0123456789abcdef0123456789abcdef";
        let table = [
            ("17", Wanted::Numbers(17, 17)),
            ("0-99", Wanted::Numbers(0, 99)),
            ("-", Wanted::Input),
            (digest, Wanted::Digest(digest.to_owned())),
            (
                &format!("3:{digest}"),
                Wanted::Checked(3, digest.to_owned()),
            ),
        ];
        for (text, wanted) in table {
            assert_eq!(text.parse(), Ok(wanted), "{text}");
        }
        for text in ["", "a", "2-1", "-1", "1:2", "1-", "all"] {
            assert!(text.parse::<Wanted>().is_err(), "{text}");
        }
    }
}
