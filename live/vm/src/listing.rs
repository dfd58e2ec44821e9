//! What apt lists, and which packages of that hold the kernel that is wanted.

use std::collections::BTreeSet;

use crate::release::{belongs, order, series};

/// What apt is asked to tell of each index it knows; see [`mirrors`].
pub(crate) const INDEX_FORMAT: &str = "$(CREATED_BY)|$(ORIGIN)|$(LABEL)|$(REPO_URI)";

/// Where this machine gets Debian's packages from, and where its security updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mirrors {
    pub archive: Option<String>,
    pub security: Option<String>,
}

/// Mirrors from a listing in [`INDEX_FORMAT`]; it is empty as long as apt was never updated.
pub(crate) fn mirrors(listing: &str) -> Mirrors {
    let mut mirrors = Mirrors::default();
    for line in listing.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        match fields[..] {
            ["Packages", "Debian", "Debian", uri] => note(&mut mirrors.archive, uri),
            ["Packages", "Debian", "Debian-Security", uri] => note(&mut mirrors.security, uri),
            _ => {}
        }
    }
    mirrors
}

/// Mirrors from what apt would ask for in an update (`'URI' FILE SIZE`): there nobody says whose
/// packages they are but the usual names of the folders.
pub(crate) fn mirrors_by_name(uris: &str) -> Mirrors {
    let mut mirrors = Mirrors::default();
    for uri in uris.lines().filter_map(|line| line.strip_prefix('\'')) {
        let Some((mirror, _)) = uri.split_once("/dists/") else {
            continue;
        };
        match mirror.rsplit('/').next() {
            Some("debian") => note(&mut mirrors.archive, mirror),
            Some("debian-security") => note(&mut mirrors.security, mirror),
            _ => {}
        }
    }
    mirrors
}

/// The first one counts, as it does for apt.
fn note(place: &mut Option<String>, uri: &str) {
    place.get_or_insert_with(|| uri.to_owned());
}

/// A kernel that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Available {
    /// What `uname -r` will say.
    pub release: String,
    /// Which packages hold its image and its configuration.
    pub packages: Vec<String>,
}

/// Debian's kernels for virtual machines have this flavour.
const FLAVOUR: &str = "-cloud-amd64";

/// All kernels in a list of packages, a name at the beginning of each line, oldest first.
pub(crate) fn kernels(listing: &str) -> Vec<Available> {
    let names: BTreeSet<&str> = listing
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let prefixes = ["linux-image-", "linux-binary-"];
    let release = |name: &&'_ str| -> Option<String> {
        let release = prefixes
            .iter()
            .find_map(|prefix| name.strip_prefix(prefix))?;
        is_release(release).then(|| release.to_owned())
    };
    let releases: BTreeSet<String> = names.iter().filter_map(release).collect();
    let mut kernels: Vec<Available> = releases
        .into_iter()
        .map(|release| Available {
            packages: packages(&names, &release),
            release,
        })
        .collect();
    kernels.sort_by(|one, other| order(&one.release, &other.release));
    kernels
}

/// Not the unsigned twin, not the debug symbols, not the package that names the newest.
fn is_release(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_digit()) && name.ends_with(FLAVOUR)
}

/// From 6.19 on the image is in `linux-binary`, and the configuration in `linux-base`.
fn packages(names: &BTreeSet<&str>, release: &str) -> Vec<String> {
    let named = |kind: &str| format!("linux-{kind}-{release}");
    let there = |name: &String| names.contains(name.as_str());
    if there(&named("binary")) {
        [named("binary"), named("base")]
            .into_iter()
            .filter(there)
            .collect()
    } else {
        vec![named("image")]
    }
}

/// The newest of `wanted` (`6.18`, or longer).
pub(crate) fn newest<'a>(kernels: &'a [Available], wanted: &str) -> Option<&'a Available> {
    kernels
        .iter()
        .rev()
        .find(|kernel| belongs(&kernel.release, wanted))
}

/// The series that there are, oldest first.
pub(crate) fn all_series(kernels: &[Available]) -> Vec<String> {
    let mut all: Vec<String> = kernels
        .iter()
        .map(|kernel| series(&kernel.release))
        .collect();
    all.dedup();
    all
}
