//! Releases of Linux, from which on a limit is another one.

use std::fmt;
use std::str::FromStr;

/// A series of releases: 7.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    major: u16,
    minor: u16,
}

impl Release {
    /// The first release that `text` names: of `7.3`, `7.3.4+deb13-amd64`, `eevdf-7.3` and
    /// `boot/vmlinuz-7.3.4`; none where it names none.
    pub fn within(text: &str) -> Option<Release> {
        let name = text.rsplit('/').next()?;
        let digits = name.find(|c: char| c.is_ascii_digit())?;
        let mut numbers = name[digits..].split(|c: char| !c.is_ascii_digit());
        let major = numbers.next()?.parse().ok()?;
        let minor = numbers.next()?.parse().ok()?;
        Some(Release { major, minor })
    }
}

impl FromStr for Release {
    type Err = ();

    /// Of a text that is a release alone.
    fn from_str(text: &str) -> Result<Release, ()> {
        let known = Release::within(text).filter(|release| release.to_string() == text);
        known.ok_or(())
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_in_names_of_kernels() {
        for (text, found) in [
            ("7.3", Some("7.3")),
            ("7.10.4+deb13-cloud-amd64", Some("7.10")),
            ("eevdf-6.12", Some("6.12")),
            ("/boot/5.1/vmlinuz-7.3.4", Some("7.3")),
            ("kernel", None),
            ("7", None),
            ("", None),
            ("99999999.1", None),
        ] {
            let release = Release::within(text).map(|release| release.to_string());
            assert_eq!(release.as_deref(), found, "{text}");
        }
        assert!(Release::within("7.10") > Release::within("7.9"));
        assert!("7.3".parse::<Release>().is_ok());
        assert!("7.3.4".parse::<Release>().is_err());
    }
}
