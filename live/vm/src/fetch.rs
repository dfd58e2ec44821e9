//! A kernel from a Debian mirror: which one, and its files out of the packages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::VmError;
use crate::agreement::{Configured, agreed};
use crate::apt::{Apt, Suite, machine_mirrors};
use crate::input;
use crate::listing::{Available, Mirrors, all_series, kernels, neighbours, newest};

/// A step on the way to a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A kernel that was downloaded before is damaged, and is skipped.
    Broken {
        /// Its release.
        release: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Reading the mirror's lists.
    Listing,
    /// The mirror has no configuration of the kernel: what its neighbours agree on is taken.
    Agreeing {
        /// Its release.
        release: String,
        /// The older and the newer release.
        between: [String; 2],
    },
    /// Packages are downloaded.
    Downloading {
        /// Their release.
        release: String,
        /// Their size together.
        bytes: u64,
    },
}

/// The suite that has kernels newer than the stable one, and those to look in next.
const BACKPORTS: &str = "trixie-backports";
const SECURITY: &str = "trixie-security";
const STABLE: &str = "trixie";

/// A kernel that a mirror has.
pub(crate) struct Shelf {
    apt: Apt,
    kernel: Available,
    /// The nearest older and newer kernels that have a configuration.
    neighbours: Option<[Available; 2]>,
}

/// The files of a downloaded kernel.
pub(crate) struct Found {
    pub image: PathBuf,
    /// The configuration: its own, or what its neighbours agree on.
    pub config: Option<String>,
}

impl Shelf {
    /// Finds the newest kernel of `series`.
    ///
    /// # Errors
    /// When no mirror is known, it cannot be reached, or it has no such kernel; the error names
    /// those that it has.
    pub(crate) fn open(
        work: &Path,
        series: &str,
        mirror: Option<&str>,
        seen: &mut dyn FnMut(Step),
    ) -> Result<Shelf, VmError> {
        seen(Step::Listing);
        let mirrors = match mirror {
            Some(archive) => Mirrors {
                archive: Some(archive.to_owned()),
                security: None,
            },
            None => machine_mirrors()?,
        };
        let apt = Apt::new(&work.join("apt"))?;
        let mut suites = Vec::new();
        let (mut there, mut wrong) = (Vec::new(), None);
        for more in suites_of(&mirrors)? {
            suites.extend(more);
            let names;
            (names, wrong) = apt.packages(&suites)?;
            there = kernels(&names);
            if let Some(kernel) = newest(&there, series).cloned() {
                let neighbours = neighbours(&there, &kernel.release);
                return Ok(Shelf {
                    neighbours: neighbours.map(|both| both.map(Available::clone)),
                    apt,
                    kernel,
                });
            }
        }
        // The kernel may be in the suite that could not be read.
        Err(wrong.unwrap_or_else(|| nothing(series, &there)))
    }

    pub(crate) fn release(&self) -> &str {
        &self.kernel.release
    }

    /// Downloads and unpacks it below `work`.
    ///
    /// # Errors
    /// When that fails, or the packages have other contents than expected.
    pub(crate) fn take(&self, work: &Path, seen: &mut dyn FnMut(Step)) -> Result<Found, VmError> {
        let kernel = &self.kernel;
        let mut packages = vec![kernel.image.clone()];
        packages.extend(kernel.config.clone().filter(|path| *path != kernel.image));
        let root = self.unpacked(work, &kernel.release, &packages, seen)?;
        let release = &kernel.release;
        let image = places("vmlinuz", release)
            .map(|place| root.join(place))
            .into_iter()
            .find(|path| path.is_file())
            .ok_or_else(|| {
                let what = format!("no kernel in {}", packages.join(" and "));
                VmError::missing(what, "choose another --release")
            })?;
        let config = match (config(&root, release)?, &self.neighbours) {
            (None, Some(neighbours)) => Some(self.agreed(work, neighbours, seen)?),
            (config, _) => config,
        };
        Ok(Found { image, config })
    }

    fn agreed(
        &self,
        work: &Path,
        neighbours: &[Available; 2],
        seen: &mut dyn FnMut(Step),
    ) -> Result<String, VmError> {
        let release = self.kernel.release.clone();
        let between = neighbours.each_ref().map(|kernel| kernel.release.clone());
        seen(Step::Agreeing { release, between });
        let [older, newer] = neighbours;
        let (one, other) = (
            self.config_of(work, older, seen)?,
            self.config_of(work, newer, seen)?,
        );
        let configured = |kernel: &'_ Available, config| Configured {
            release: kernel.release.clone(),
            config,
        };
        Ok(agreed(
            self.release(),
            &configured(older, one),
            &configured(newer, other),
        ))
    }

    fn config_of(
        &self,
        work: &Path,
        kernel: &Available,
        seen: &mut dyn FnMut(Step),
    ) -> Result<String, VmError> {
        let packages: Vec<String> = kernel.config.iter().cloned().collect();
        let root = self.unpacked(work, &kernel.release, &packages, seen)?;
        config(&root, &kernel.release)?.ok_or_else(|| {
            let what = format!("no configuration in {}", packages.join(" and "));
            VmError::missing(what, "choose another --release")
        })
    }

    /// Downloads `packages` of `release`, and unpacks them in a folder below `work`.
    fn unpacked(
        &self,
        work: &Path,
        release: &str,
        packages: &[String],
        seen: &mut dyn FnMut(Step),
    ) -> Result<PathBuf, VmError> {
        let bytes = self.apt.size(packages)?;
        let root = work.join(release);
        seen(Step::Downloading {
            release: release.to_owned(),
            bytes,
        });
        fs::create_dir(&root).map_err(VmError::file("make", &root))?;
        self.apt.unpack(packages, &root)?;
        Ok(root)
    }
}

/// Where packages have a file of a release.
fn places(name: &str, release: &str) -> [String; 2] {
    [
        format!("boot/{name}-{release}"),
        format!("usr/lib/modules/{release}/{name}"),
    ]
}

/// The configuration below `root`, if it is there.
fn config(root: &Path, release: &str) -> Result<Option<String>, VmError> {
    let mut paths = places("config", release)
        .map(|place| root.join(place))
        .into_iter();
    let Some(path) = paths.find(|path| path.is_file()) else {
        return Ok(None);
    };
    input::text(&path).map(Some)
}

/// The suites to look in: first the one that should have it, then all.
fn suites_of(mirrors: &Mirrors) -> Result<Vec<Vec<Suite>>, VmError> {
    let suite = |mirror: &Option<String>, name| mirror.clone().map(|mirror| Suite { mirror, name });
    let Some(first) = suite(&mirrors.archive, BACKPORTS) else {
        let what = "the apt of this machine has no Debian mirror";
        let help = "give one with --mirror, or a kernel of your own with --kernel";
        return Err(VmError::missing(what, help));
    };
    let others = [
        suite(&mirrors.security, SECURITY),
        suite(&mirrors.archive, STABLE),
    ];
    Ok(vec![vec![first], others.into_iter().flatten().collect()])
}

fn nothing(series: &str, there: &[Available]) -> VmError {
    let all = all_series(there).join(", ");
    let problem = format!("{BACKPORTS}, {SECURITY} and {STABLE} have no such kernel");
    let help = format!("choose one of {all}, or give a kernel of your own with --kernel");
    VmError::setting("release", series, problem, help)
}
