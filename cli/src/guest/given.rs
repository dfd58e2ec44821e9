//! What is given to a guest, as it is typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use warmq_units::printable;

use crate::failure::Failure;

/// Longer than this nobody waits, and no clock has to be asked whether it can count so far.
const LONGEST_SECONDS: f64 = 1e6;

/// A number of seconds, whole or not.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let fits = |seconds: &f64| *seconds > 0.0 && *seconds <= LONGEST_SECONDS;
    let seconds = seconds.filter(fits);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "write a number of seconds, as in 90".to_owned())
}

/// A file of the host, and where it goes in the guest if that is said.
///
/// # Errors
/// When there is no such file.
pub fn file(text: &OsStr) -> Result<(PathBuf, Option<String>), Failure> {
    let (host, guest) = places(text);
    Ok((found(host)?, guest))
}

/// `HOST[:GUEST]`. The guest's part begins with a slash, so that a colon may be in the host's.
fn places(text: &OsStr) -> (PathBuf, Option<String>) {
    let whole = PathBuf::from(text);
    let parts = text
        .to_str()
        .filter(|_| !whole.exists())
        .and_then(|text| text.rsplit_once(":/"));
    match parts {
        Some((host, guest)) => (host.into(), Some(format!("/{guest}"))),
        None => (whole, None),
    }
}

fn found(host: PathBuf) -> Result<PathBuf, Failure> {
    if host.exists() {
        return Ok(host);
    }
    let named = warmq_vm::program_on_path(host.as_os_str());
    named.ok_or_else(|| {
        Failure::usage(
            format!("--file {}: there is no such file", printable(&host)),
            "write its path",
        )
    })
}

/// `NAME=VALUE`, or `NAME` for what it is here.
///
/// # Errors
/// When it is not set here.
pub fn variable(text: &OsStr) -> Result<(String, OsString), Failure> {
    let bytes = text.as_bytes();
    let end = bytes
        .iter()
        .position(|byte| *byte == b'=')
        .unwrap_or(bytes.len());
    let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let here = || std::env::var_os(&name);
    let value = bytes
        .get(end + 1..)
        .map(|value| OsStr::from_bytes(value).to_owned())
        .or_else(here);
    let unset = || {
        Failure::usage(
            format!("--env {name}: it is not set here"),
            "write --env NAME=VALUE",
        )
    };
    value.map(|value| (name.clone(), value)).ok_or_else(unset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_in_the_guest_begins_at_the_last_colon_before_a_slash() {
        let split = |text: &str| {
            let (host, guest) = places(OsStr::new(text));
            (host.to_string_lossy().into_owned(), guest)
        };
        for (text, host, guest) in [
            ("a", "a", None),
            ("a:/b", "a", Some("/b")),
            ("x:y", "x:y", None),
            ("/a:1:/b/c", "/a:1", Some("/b/c")),
        ] {
            assert_eq!(
                split(text),
                (host.to_owned(), guest.map(str::to_owned)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_variable_has_the_value_given_or_the_one_here() {
        let of = |text: &str| variable(OsStr::new(text)).ok();
        let (name, value) = of("A=b=c").unwrap();
        assert_eq!((name.as_str(), value), ("A", OsString::from("b=c")));
        assert_eq!(of("A=").unwrap().1, OsString::new());
        assert_eq!(of("PATH").map(|(_, value)| value), std::env::var_os("PATH"));
        assert_eq!(of("NO_SUCH_VARIABLE_HERE"), None);
    }

    #[test]
    fn seconds_are_more_than_none_and_less_than_a_fortnight() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "inf", "1e99", "soon", ""] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
