//! apt's lists, and which packages in them have the kernel that is wanted.

use std::collections::BTreeSet;

use crate::release::{belongs, order, series};

/// The fields that apt prints of each index; see [`mirrors`].
pub(crate) const INDEX_FORMAT: &str = "$(CREATED_BY)|$(ORIGIN)|$(LABEL)|$(REPO_URI)";

/// The mirrors of Debian's packages and of its security updates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mirrors {
    pub archive: Option<String>,
    pub security: Option<String>,
}

/// Mirrors from a listing in [`INDEX_FORMAT`]. It is empty if apt has never been updated.
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

/// Mirrors from the files that apt would get in an update (`'URI' FILE SIZE`). Only the usual names
/// of the folders show whose packages they are.
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
    /// Its release, as `uname -r` will print it.
    pub release: String,
    /// The package that has its image.
    pub image: String,
    /// The package that has its configuration; it may be the same one.
    pub config: Option<String>,
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
        let mut prefixes = prefixes.iter();
        let release = prefixes.find_map(|prefix| name.strip_prefix(prefix))?;
        is_release(release).then(|| release.to_owned())
    };
    let releases: BTreeSet<String> = names.iter().filter_map(release).collect();
    let mut kernels: Vec<Available> = releases
        .into_iter()
        .map(|release| available(&names, release))
        .collect();
    kernels.sort_by(|one, other| order(&one.release, &other.release));
    kernels
}

/// Excludes the unsigned package, the debug symbols, and the package that depends on the newest.
fn is_release(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_digit()) && name.ends_with(FLAVOUR)
}

/// From 6.19 on the image is in `linux-binary`, and the configuration in `linux-base`, on which
/// `linux-binary` depends. Of 6.19, 7.0 and 7.1 the mirror has no `linux-base` (their other
/// packages are without a configuration, too).
fn available(names: &BTreeSet<&str>, release: String) -> Available {
    let named = |kind: &str| format!("linux-{kind}-{release}");
    let there = |name: &String| names.contains(name.as_str());
    let (image, config) = if there(&named("binary")) {
        (named("binary"), Some(named("base")).filter(there))
    } else {
        (named("image"), Some(named("image")))
    };
    Available {
        release,
        image,
        config,
    }
}

/// The nearest older and newer kernels that come with their configuration.
pub(crate) fn neighbours<'a>(
    kernels: &'a [Available],
    release: &str,
) -> Option<[&'a Available; 2]> {
    let at = kernels.iter().position(|known| known.release == release)?;
    let configured = |kernel: &&Available| kernel.config.is_some();
    let older = kernels[..at].iter().rev().find(configured)?;
    let newer = kernels[at + 1..].iter().find(configured)?;
    Some([older, newer])
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

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
linux-image-6.18.9+deb13-cloud-amd64 - Linux 6.18.9 for x86-64 cloud (signed)
linux-image-6.18.12+deb13-cloud-amd64 - Linux 6.18.12 for x86-64 cloud (signed)
linux-image-6.18.12+deb13-amd64 - Linux 6.18.12 for 64-bit PCs (signed)
linux-image-6.18.15+deb13-rt-amd64 - Linux 6.18.15 for 64-bit PCs, PREEMPT_RT (signed)
linux-image-6.18.15+deb13-cloud-amd64-dbg - Linux 6.18.15 for x86-64 cloud (debug symbols)
linux-image-6.18.15+deb13-cloud-amd64-unsigned - Linux 6.18.15 for x86-64 cloud
linux-image-6.19.14+deb13-cloud-amd64 - Linux 6.19.14 for x86-64 cloud
linux-binary-6.19.14+deb13-cloud-amd64 - Binary for Linux 6.19.14 (signed)
linux-binary-unsigned-7.2.12+deb13-cloud-amd64 - Linux 7.2.12 for x86-64 cloud
linux-binary-7.2.12+deb13-cloud-amd64 - Linux 7.2.12 for x86-64 cloud (kernel image)
linux-base-7.2.12+deb13-cloud-amd64 - Linux 7.2.12 for x86-64 cloud (base files)
linux-image-7.2.12+deb13-cloud-amd64 - Linux 7.2.12 for x86-64 cloud
linux-image-cloud-amd64 - Linux for x86-64 cloud (meta-package)
";

    fn chosen(series: &str) -> Option<Available> {
        newest(&kernels(LISTED), series).cloned()
    }

    #[test]
    fn the_newest_of_a_series_is_chosen_and_neither_its_twins_nor_its_symbols() {
        for (series, release, image, config) in [
            ("6.18", "6.18.12", "image", Some("image")),
            ("6.18.9", "6.18.9", "image", Some("image")),
            ("6.19", "6.19.14", "binary", None),
            ("7.2", "7.2.12", "binary", Some("base")),
        ] {
            let release = format!("{release}+deb13-cloud-amd64");
            let named = |kind: &str| format!("linux-{kind}-{release}");
            let (image, config) = (named(image), config.map(named));
            let expected = Available {
                release,
                image,
                config,
            };
            assert_eq!(chosen(series), Some(expected));
        }
        assert_eq!(chosen("6.1"), None);
        assert_eq!(chosen("6.18.15"), None, "an unsigned twin is not it");
        assert_eq!(all_series(&kernels(LISTED)), ["6.18", "6.19", "7.2"]);
    }

    #[test]
    fn neighbours_are_the_nearest_that_have_a_configuration() {
        let kernels = kernels(LISTED);
        let around = |series: &str| {
            let release = &newest(&kernels, series)?.release;
            let series = |kernel: &Available| crate::release::series(&kernel.release);
            neighbours(&kernels, release).map(|kernel| kernel.map(series))
        };
        assert_eq!(around("6.19"), Some(["6.18", "7.2"].map(str::to_owned)));
        assert_eq!(around("7.2"), None, "there is no newer one");
        assert_eq!(around("6.18.9"), None, "there is no older one");
    }

    #[test]
    fn mirrors_are_those_of_debian_and_not_of_others() {
        let listing = "\
DEP-11|Debian|Debian|http://other.example/debian/
Packages|Somebody|Somebody|http://somebody.example/debian/
Packages|Debian|Debian-Security|http://mirror.example/debian-security/
Packages|Debian|Debian|http://mirror.example/debian/
Packages|Debian|Debian|http://second.example/debian/
";
        let expected = Mirrors {
            archive: Some("http://mirror.example/debian/".to_owned()),
            security: Some("http://mirror.example/debian-security/".to_owned()),
        };
        assert_eq!(mirrors(listing), expected);
        assert_eq!(mirrors(""), Mirrors::default());
    }

    #[test]
    fn an_apt_that_was_never_updated_is_understood_by_the_names_of_folders() {
        let uris = "\
'https://somebody.example/apt/dists/stable/InRelease' somebody_InRelease 0
'http://mirror.example/debian/dists/bookworm/InRelease' mirror_InRelease 0
'http://mirror.example/debian-security/dists/bookworm-security/InRelease' mirror_InRelease 0
";
        let expected = Mirrors {
            archive: Some("http://mirror.example/debian".to_owned()),
            security: Some("http://mirror.example/debian-security".to_owned()),
        };
        assert_eq!(mirrors_by_name(uris), expected);
    }
}
