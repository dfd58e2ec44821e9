//! Releases of Linux, whose order decides which rules hold.

use std::fmt;
use std::str::FromStr;

/// `6.18.15`: major, minor and, where it is known, patch. A series is before its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub struct Release {
    pub major: u32,
    pub minor: u32,
    pub patch: Option<u32>,
}

impl Release {
    /// The first release in a file's name, or in what a kernel or scheduler is called: of `7.3`,
    /// `7.3.4+deb13-amd64`, `eevdf-7.3` and `boot/vmlinuz-7.3.4`; none where there is none.
    pub fn within(text: &str) -> Option<Release> {
        let name = text.rsplit('/').next()?;
        let digits = name.find(|c: char| c.is_ascii_digit())?;
        Release::at_start_of(&name[digits..])
    }

    /// The release that `text` begins with, as what `uname -r` says does.
    pub fn at_start_of(text: &str) -> Option<Release> {
        let mut parts = text.splitn(3, '.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?;
        let is_whole = minor.bytes().all(|byte| byte.is_ascii_digit());
        let patch = parts.next().filter(|_| is_whole).and_then(leading);
        let minor = leading(minor)?;
        Some(Release {
            major,
            minor,
            patch,
        })
    }

    /// The release without its patch: 6.18 of 6.18.15.
    pub fn series(self) -> Release {
        Release {
            patch: None,
            ..self
        }
    }

    /// Whether this is `major.minor`, one of its releases, or a later one.
    pub fn is_from(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

/// The number that `text` begins with.
fn leading(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text[..end.unwrap_or(text.len())].parse().ok()
}

impl FromStr for Release {
    type Err = ();

    /// Of a text that is a release alone.
    fn from_str(text: &str) -> Result<Release, ()> {
        let known = Release::at_start_of(text).filter(|release| release.to_string() == text);
        known.ok_or(())
    }
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)?;
        self.patch
            .map_or(Ok(()), |patch| write!(formatter, ".{patch}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_found_in_names_of_kernels() {
        for (text, found) in [
            ("7.3", Some("7.3")),
            ("7.10.4+deb13-cloud-amd64", Some("7.10.4")),
            ("6.18.15+deb14-amd64", Some("6.18.15")),
            ("7.3-rc4", Some("7.3")),
            ("3.2-4.5-amd64", Some("3.2")),
            ("6.1.x", Some("6.1")),
            ("eevdf-6.12", Some("6.12")),
            ("/boot/5.1/vmlinuz-7.3.4", Some("7.3.4")),
            ("linux", None),
            ("7", None),
            ("7.x", None),
            ("", None),
            ("99999999999.1", None),
        ] {
            let release = Release::within(text).map(|release| release.to_string());
            assert_eq!(release.as_deref(), found, "{text}");
        }
        assert_eq!(Release::at_start_of("eevdf-6.12"), None);
    }

    #[test]
    fn a_series_is_before_its_releases() {
        let release = |text: &str| text.parse::<Release>().unwrap();
        let ordered = [
            "6.9.1", "6.18", "6.18.5", "6.18.12", "6.19", "7.0.4", "7.10",
        ];
        assert!(ordered.map(release).is_sorted_by(|one, next| one < next));
        assert_eq!(release("6.18.5").series(), release("6.18"));
        assert!(release("6.18").is_from(6, 18) && release("7.0").is_from(6, 18));
        assert!(!release("6.9.1").is_from(6, 18));
        assert!("7.3-rc4".parse::<Release>().is_err());
    }
}
