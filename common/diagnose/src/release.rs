//! Which kernel a trace is of.

use warmq_trace::Header;

/// `6.18.15`: major, minor and, if it is known, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    pub major: u32,
    pub minor: u32,
    pub patch: Option<u32>,
}

impl Release {
    /// Of a text that begins with one.
    pub fn of_text(text: &str) -> Option<Release> {
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit());
        let mut next = || numbers.next()?.parse::<u32>().ok();
        Some(Release {
            major: next()?,
            minor: next()?,
            patch: next(),
        })
    }

    /// The kernel whose scheduler a trace is of, and what it is called there; the lab's schedulers
    /// are named after kernels.
    pub fn of(header: &Header) -> Option<(&str, Release)> {
        let simulated = header.scheduler.strip_prefix("eevdf-");
        let name = match simulated {
            Some(_) => &header.scheduler,
            None => &header.kernel,
        };
        let release = Release::of_text(simulated.unwrap_or(&header.kernel))?;
        Some((name, release))
    }

    pub fn is_from(self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_from_what_kernels_and_the_labs_schedulers_are_called() {
        let release = |major, minor, patch| {
            Some(Release {
                major,
                minor,
                patch,
            })
        };
        for (text, expected) in [
            ("6.18.15+deb14-amd64", release(6, 18, Some(15))),
            ("7.0", release(7, 0, None)),
            ("linux", None),
            ("6", None),
        ] {
            assert_eq!(Release::of_text(text), expected, "{text}");
        }
        let of = |kernel: &str, scheduler: &str| {
            let header = Header {
                kernel: kernel.to_owned(),
                scheduler: scheduler.to_owned(),
                ..Header::default()
            };
            Release::of(&header).map(|(name, release)| (name.to_owned(), release.minor))
        };
        assert_eq!(of("6.12.1", "kernel"), Some(("6.12.1".to_owned(), 12)));
        let simulated = Some(("eevdf-6.18".to_owned(), 18));
        assert_eq!(of("modern", "eevdf-6.18"), simulated);
        assert_eq!(of("", "o1"), None);
    }
}
