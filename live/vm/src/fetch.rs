//! A kernel from a Debian mirror: which one, and its files out of the packages.

use std::fs;
use std::path::{Path, PathBuf};

use crate::VmError;
use crate::apt::{Apt, Suite, machine_mirrors};
use crate::listing::{Available, Mirrors, all_series, kernels, newest};

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
}

/// The files of a downloaded kernel.
pub(crate) struct Found {
    pub image: PathBuf,
    /// The configuration, which not every package has.
    pub config: Option<PathBuf>,
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
                return Ok(Shelf { apt, kernel });
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
        let packages = &self.kernel.packages;
        let bytes = self.apt.size(packages)?;
        let release = self.kernel.release.clone();
        seen(Step::Downloading { release, bytes });
        let root = work.join("root");
        fs::create_dir(&root).map_err(VmError::file("make", &root))?;
        self.apt.unpack(packages, &root)?;
        self.found(&root)
    }

    fn found(&self, root: &Path) -> Result<Found, VmError> {
        let release = self.release();
        let one_of = |places: [String; 2]| {
            let mut paths = places.iter().map(|place| root.join(place));
            paths.find(|path| path.is_file())
        };
        let modules = |name: &str| format!("usr/lib/modules/{release}/{name}");
        let boot = |name: &str| format!("boot/{name}-{release}");
        let image = one_of([boot("vmlinuz"), modules("vmlinuz")]).ok_or_else(|| {
            let what = format!("no kernel in {}", self.kernel.packages.join(" and "));
            VmError::missing(what, "choose another --release")
        })?;
        let config = one_of([boot("config"), modules("config")]);
        Ok(Found { image, config })
    }
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
